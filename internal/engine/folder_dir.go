package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	folderMode = 0o700 // the folder decides what a host obeys after a restart
	fileMode   = 0o600
	lockName   = "lock"
)

// ErrInUse means that another process holds the folder.
var ErrInUse = errors.New("another process holds the state folder")

// Dir is a folder on disk, locked by this process until Close.
type Dir struct {
	path string
	lock *os.File
}

// OpenDir makes the folder if it is not there and locks it. It fails with
// ErrInUse if another process has it: two hosts in one folder would each forget
// what the other let through.
func OpenDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, folderMode); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open lock of state folder: %w", err)
	}
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w; stop that process or give this host a folder of its own", path, err), lock.Close())
	}
	return &Dir{path: path, lock: lock}, nil
}

// Names implements Folder.
func (d *Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Read implements Folder.
func (d *Dir) Read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(d.path, name)) }

// Create implements Folder.
func (d *Dir) Create(name string) (File, error) {
	return os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
}

// Rename implements Folder.
func (d *Dir) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

// Remove implements Folder.
func (d *Dir) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

// Sync implements Folder.
func (d *Dir) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close implements Folder. The lock is taken off by name: a child that is being
// forked at this moment shares the open file until it executes something, and
// closing alone would leave the folder locked for so long.
func (d *Dir) Close() error {
	return errors.Join(unix.Flock(int(d.lock.Fd()), unix.LOCK_UN), d.lock.Close())
}
