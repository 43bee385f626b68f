package engine

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// Memory is a folder that lasts as long as the process, for simulated hosts. It
// keeps apart what was written and what was synced, so that a simulated loss of
// power loses what a real one may lose.
type Memory struct {
	mu      sync.Mutex
	visible map[string]*content
	synced  map[string]*content // names that survive a loss of power
	fault   error
}

type content struct {
	data   []byte
	synced int // bytes of data that survive a loss of power
}

// NewMemory returns an empty folder.
func NewMemory() *Memory {
	return &Memory{visible: map[string]*content{}, synced: map[string]*content{}}
}

// Fail makes every change of the folder fail with err, as a full disk does, until
// Fail(nil).
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = err
}

// Crash returns the folder as it is found after a loss of power: what was not
// synced is gone. The old folder is not changed.
func (m *Memory) Crash() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMemory()
	for name, c := range m.synced {
		kept := &content{data: bytes.Clone(c.data[:c.synced]), synced: c.synced}
		after.visible[name], after.synced[name] = kept, kept
	}
	return after
}

// Names implements Folder.
func (m *Memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.visible)), nil
}

// Read implements Folder.
func (m *Memory) Read(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.visible[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return bytes.Clone(c.data), nil
}

// Create implements Folder.
func (m *Memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return nil, m.fault
	}
	c := &content{}
	m.visible[name] = c
	return &memoryFile{folder: m, content: c}, nil
}

// Rename implements Folder.
func (m *Memory) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.visible[from]
	switch {
	case m.fault != nil:
		return m.fault
	case !ok:
		return fmt.Errorf("rename %s: %w", from, fs.ErrNotExist)
	}
	delete(m.visible, from)
	m.visible[to] = c
	return nil
}

// Remove implements Folder.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	delete(m.visible, name)
	return nil
}

// Sync implements Folder.
func (m *Memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return m.fault
	}
	m.synced = maps.Clone(m.visible)
	return nil
}

// Close implements Folder.
func (m *Memory) Close() error { return nil }

type memoryFile struct {
	folder  *Memory
	content *content
}

// Write implements File.
func (f *memoryFile) Write(p []byte) (int, error) {
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	if f.folder.fault != nil {
		return 0, f.folder.fault
	}
	f.content.data = append(f.content.data, p...)
	return len(p), nil
}

// Sync implements File.
func (f *memoryFile) Sync() error {
	f.folder.mu.Lock()
	defer f.folder.mu.Unlock()
	if f.folder.fault != nil {
		return f.folder.fault
	}
	f.content.synced = len(f.content.data)
	return nil
}

// Close implements File.
func (f *memoryFile) Close() error { return nil }
