package incident

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/degradedmode/ic/internal/audit"
)

// history follows the log of the open incident. The console's own state is a
// fold over it: there is no other memory.
type history struct {
	states []string

	mu        sync.Mutex
	incident  string // "" when none is open
	reader    *audit.Reader
	state     audit.State
	err       error
	allClosed string // stamp of the folders when every incident in them was closed
}

func newHistory(states ...string) *history {
	h := &history{}
	for _, s := range states {
		if s != "" {
			h.states = append(h.states, s)
		}
	}
	return h
}

// read takes in what was appended, by us or by another session, and notices
// when an incident was opened or closed by somebody else.
func (h *history) read() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.incident == "" {
		if err := h.find(); err != nil || h.incident == "" {
			return err
		}
	}
	changed, err := h.reader.Poll()
	h.err = err
	if changed {
		h.state = audit.Fold(h.reader.Sessions())
		if !h.state.ClosedAt.IsZero() {
			h.drop()
		}
	}
	return err
}

// find looks for the incident that was opened last and is still open. While
// every incident on disk is closed and no new folder has appeared, there is
// nothing to read.
func (h *history) find() error {
	stamp := h.stamp()
	if stamp != "" && stamp == h.allClosed {
		return nil
	}
	all, err := audit.List(h.states...)
	if err != nil {
		return fmt.Errorf("look for an open incident: %w", err)
	}
	closed := true
	for _, s := range all {
		closed = closed && !s.State.ClosedAt.IsZero()
		if !s.State.IsOpen() {
			continue
		}
		if h.incident == "" || s.State.Incident.OpenedAt.After(h.state.Incident.OpenedAt) {
			h.set(s.ID)
			h.state = s.State
		}
	}
	if closed {
		h.allClosed = stamp
	}
	return nil
}

// stamp changes when an incident's folder appears.
func (h *history) stamp() string {
	var out strings.Builder
	for _, state := range h.states {
		if info, err := os.Stat(filepath.Dir(audit.Folder(state, "any"))); err == nil {
			out.WriteString(info.ModTime().String() + "\n")
		}
	}
	return out.String()
}

func (h *history) set(incident string) {
	h.incident, h.reader = incident, audit.NewReader(incident, h.states...)
}

func (h *history) drop() { h.incident, h.reader, h.state, h.err = "", nil, audit.State{}, nil }

// follow starts an incident that we have opened ourselves.
func (h *history) follow(incident string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.incident != incident {
		h.set(incident)
		h.state = audit.State{}
	}
}

// forget ends it.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
}

// now is the fold and the incident it belongs to.
func (h *history) now() (string, audit.State, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.incident, h.state, h.err
}
