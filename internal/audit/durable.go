package audit

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
)

// writeDurably is the only way by which an entry reaches a disk: one write, one
// fsync. Neither is ever tried again on the same file. After a failed fsync the
// kernel may have dropped the pages and a second one would lie.
func writeDurably(f File, block []byte) error {
	n, err := f.Write(block)
	if err != nil {
		return err
	}
	if n != len(block) {
		return io.ErrShortWrite
	}
	return f.Sync()
}

// createDurably makes a file whose name survives a power loss.
func createDurably(on FS, path string) (File, error) {
	folder := filepath.Dir(path)
	if err := makeFolder(on, folder); err != nil {
		return nil, err
	}
	f, err := on.Create(path)
	if err != nil {
		return nil, err
	}
	if err := on.SyncDir(folder); err != nil {
		return nil, errors.Join(err, f.Close(), on.Remove(path))
	}
	return f, nil
}

// makeFolder makes a folder and those above it, each with a durable name.
func makeFolder(on FS, folder string) error {
	made, err := on.Mkdir(folder)
	parent := filepath.Dir(folder)
	if errors.Is(err, fs.ErrNotExist) && parent != folder {
		if err := makeFolder(on, parent); err != nil {
			return err
		}
		made, err = on.Mkdir(folder)
	}
	if err != nil || !made {
		return err
	}
	return on.SyncDir(parent)
}
