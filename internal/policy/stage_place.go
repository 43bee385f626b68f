package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What lies beside a policy folder while its next version is made. All of it is
// on the folder's own file system, so that a rename is enough.
const (
	stagedSuffix   = ".staged"   // the next version, while people edit and sign it
	nextSuffix     = ".next"     // there only while Apply is at work, or was killed
	previousSuffix = ".previous" // one folder for each version that was in force
	lockSuffix     = ".lock"     // hidden; an empty file that Stage and Apply hold
	oldSuffix      = ".old"      // of a staged folder that is being replaced
	baseFile       = ".base"     // in the staged folder: the manifest that it was made from
)

// ErrBusy means that another process stages or applies in this folder.
var ErrBusy = errors.New("another process is staging or applying this policy; wait for it")

// place is a policy folder and its neighbours.
type place struct {
	live, staged, next, previous string
}

// placeOf follows links to the folder itself: what is swapped has to be the folder
// and not a link to it.
func placeOf(dir string) (place, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place{}, fmt.Errorf("find the policy folder %s: %w", dir, err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	if abs == filepath.Dir(abs) {
		return place{}, fmt.Errorf("%s cannot be a policy folder: its next version is made beside it", abs)
	}
	return place{live: abs, staged: abs + stagedSuffix, next: abs + nextSuffix, previous: abs + previousSuffix}, nil
}

// IsStaged reports whether a next version of the policy folder dir is being made,
// and where: in a folder beside it.
func IsStaged(dir string) (string, bool) {
	p, err := placeOf(dir)
	if err != nil {
		return "", false
	}
	return p.staged, isFolder(p.staged)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lock keeps two processes from staging and applying at once. It never waits:
// whoever finds it held has nothing to do but to look again later.
func (p place) lock() (unlock func() error, err error) {
	path := filepath.Join(filepath.Dir(p.live), "."+filepath.Base(p.live)+lockSuffix)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the policy folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", p.live, err), f.Close())
	}
	return f.Close, nil // closing lets it go
}

// whileLocked runs do with the folder locked and whatever a killed Apply has left
// behind put right.
func (p place) whileLocked(d disk, do func() error) error {
	unlock, err := p.lock()
	if err != nil {
		return err
	}
	if err := p.recover(d); err != nil {
		return errors.Join(err, unlock())
	}
	return errors.Join(do(), unlock())
}
