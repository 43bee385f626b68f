package sim

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/degradedmode/ic/internal/audit"
)

// errNoSpace says nothing of where: a message in a log must not depend on the
// folder in which a simulation happens to run.
var errNoSpace = errors.New("no space left on device")

// errDead is the answer to a console that is no longer there: its process was
// killed, and what it goes on doing in here has no effect.
var errDead = errors.New("the console was killed")

// disk is where one desk writes its log: the machine's own file system, without the
// wait for its disk, since a simulation that is lost is run again. It can be full,
// and it ends with its console.
type disk struct {
	audit.OS
	full *atomic.Bool // of every console
	dead atomic.Bool
	left atomic.Int64 // writes until the console dies; 0: it lives on

	mu   sync.Mutex
	open []audit.File
}

var _ audit.FS = (*disk)(nil)

// Mkdir implements audit.FS.
func (d *disk) Mkdir(folder string) (bool, error) {
	if err := d.state(); err != nil {
		return false, err
	}
	return d.OS.Mkdir(folder)
}

// Create implements audit.FS.
func (d *disk) Create(path string) (audit.File, error) {
	if err := d.state(); err != nil {
		return nil, err
	}
	f, err := d.OS.Create(path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, f)
	return &diskFile{File: f, disk: d}, nil
}

// SyncDir implements audit.FS.
func (d *disk) SyncDir(string) error { return d.state() }

func (d *disk) state() error {
	switch {
	case d.dead.Load():
		return errDead
	case d.full.Load():
		return errNoSpace
	}
	return nil
}

// kill gives back what the console held, as the end of its process does. Nothing is
// written any more.
func (d *disk) kill() {
	d.dead.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.open {
		_ = f.Close() // a second close of one that was closed is no loss
	}
	d.open = nil
}

type diskFile struct {
	audit.File
	disk *disk
}

// Write implements audit.File. The write after which the console dies is whole: it
// is what comes after it that is missing.
func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.disk.state(); err != nil {
		return 0, err
	}
	n, err := f.File.Write(p)
	if f.disk.left.Load() > 0 && f.disk.left.Add(-1) == 0 {
		f.disk.dead.Store(true)
	}
	return n, err
}

// Sync implements audit.File.
func (f *diskFile) Sync() error {
	if f.disk.full.Load() {
		return errNoSpace
	}
	return nil
}
