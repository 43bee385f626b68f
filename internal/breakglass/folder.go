package breakglass

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

const (
	folderPrefix = "ic-backend-"
	lockName     = "host.lock"

	// maxParent is the longest parent under which a backend's socket can have its
	// name: macOS takes 103 bytes, and 60 of them are the folders and the socket.
	maxParent = 103 - 60
)

// parentOr is where private folders go: where we are told, else the system's
// place, unless its name is too long for a socket.
func parentOr(told string) string {
	if told != "" {
		return told
	}
	if dir := os.TempDir(); len(dir) <= maxParent {
		return dir
	}
	return "/tmp"
}

// folder is the private folder of one backend: its socket, its TMPDIR, on some
// platforms the program. It goes with the backend, and is locked while we live.
type folder struct {
	path string
	lock *os.File
}

// makeFolder makes one under parent, after it has removed what hosts left that
// were killed: such a folder may hold a secret.
func makeFolder(parent string) (*folder, error) {
	parent = parentOr(parent)
	sweep(parent)
	path, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return nil, err
	}
	// The lock gets its name once it is held, so that nobody takes it for an
	// abandoned one.
	lock, err := os.CreateTemp(path, "new-")
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &folder{path: path, lock: lock}, nil
}

func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	f.lock.Close()
	return err
}

// sweep removes the folders of hosts that are dead. It is a courtesy: what it
// cannot remove stays for the next time.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if e.IsDir() && len(e.Name()) > len(folderPrefix) && e.Name()[:len(folderPrefix)] == folderPrefix && abandoned(path) {
			os.RemoveAll(path)
		}
	}
}

// abandoned reports whether nobody holds the lock of a folder of ours.
func abandoned(path string) bool {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	info, err := lock.Stat()
	if err != nil {
		return false
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Geteuid() && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
