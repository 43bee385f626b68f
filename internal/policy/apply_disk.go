package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what Apply does to a file system. Tests break it between two steps.
type disk struct {
	rename   func(from, to string) error
	exchange func(a, b string) error // errors.ErrUnsupported where two folders cannot be swapped in one step
	syncDir  func(dir string) error
	syncTree func(dir string) error
}

func realDisk() disk {
	return disk{rename: os.Rename, exchange: exchange, syncDir: syncDir, syncTree: syncTree}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncTree makes everything in a folder durable: editors and ssh-keygen have
// written there too.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		return syncDir(path)
	})
}
