package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// dirFS is a folder in which symbolic links are refused: a link would let
// somebody who cannot write the folder choose what is read.
type dirFS struct {
	root *os.Root
}

func openDir(dir string) (dirFS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return dirFS{}, fmt.Errorf("open the policy folder: %w", err)
	}
	return dirFS{root}, nil
}

// Close releases the folder.
func (d dirFS) Close() error { return d.root.Close() }

// Open implements fs.FS. What was looked at is what is read: the opened file has
// to be the one that was no link.
func (d dirFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
		if _, err := d.look(parent); err != nil {
			return nil, err
		}
	}
	seen, err := d.look(name)
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errors.New("it changed while it was opened")}, f.Close())
	}
	return f, nil
}

func (d dirFS) look(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is a link or a device; a policy folder holds files")}
	}
	return info, nil
}
