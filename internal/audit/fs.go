package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

const (
	folderMode = 0o700 // an incident's log names people, reasons and amounts
	fileMode   = 0o600
)

// FS is what a writer needs of a file system. OS is the real one; a test loses
// power with another.
type FS interface {
	// Mkdir makes one folder and reports whether it was not there before.
	Mkdir(folder string) (made bool, err error)
	// Create makes a new file for appending, locked by this process. It fails if
	// the name exists.
	Create(path string) (File, error)
	// SyncDir makes the names in a folder durable.
	SyncDir(folder string) error
	// Remove takes a file away that holds nothing acknowledged.
	Remove(path string) error
}

// File is one segment being written.
type File interface {
	Write(p []byte) (int, error)
	Sync() error
	// Length is the file's length. It fails if the path no longer leads to it.
	Length() (int64, error)
	Close() error
}

// OS is the operating system's file system.
type OS struct{}

// Mkdir implements FS.
func (OS) Mkdir(folder string) (bool, error) {
	err := os.Mkdir(folder, folderMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// Create implements FS.
func (OS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, fileMode)
	if err != nil {
		return nil, err
	}
	if err := lock(f, unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return &osFile{File: f, path: path}, nil
}

// SyncDir implements FS.
func (OS) SyncDir(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Remove implements FS.
func (OS) Remove(path string) error { return os.Remove(path) }

type osFile struct {
	*os.File
	path string
}

// Length implements File.
func (f *osFile) Length() (int64, error) {
	held, err := f.Stat()
	if err != nil {
		return 0, err
	}
	there, err := os.Lstat(f.path)
	if err != nil {
		return 0, err
	}
	if !os.SameFile(held, there) {
		return 0, errors.New("another file has taken its place")
	}
	return held.Size(), nil
}

// Held reports whether a living process writes the file: a session without an
// end that nobody holds has crashed.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	err = lock(f, unix.LOCK_SH|unix.LOCK_NB)
	if closing := f.Close(); closing != nil {
		return false, closing
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

func lock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
