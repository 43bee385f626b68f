package incident

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// historyLimit is how long a look at the log may hold up whoever wants a
// snapshot, in real time. A disk that hangs must not hold up a shed.
const historyLimit = time.Second

// drillHistoryLimit is for a desk that waits in a drill's time: a busy machine must
// not decide what such a desk has seen.
const drillHistoryLimit = time.Minute

// errSlowLog means that what is shown of the log may be old.
var errSlowLog = errors.New("the log could not be read within " + historyLimit.String() + ": what is shown of it may be old")

// history follows the log of the open incident. The console's own state is a
// fold over it: there is no other memory.
type history struct {
	states []string
	limit  time.Duration // how long a look may take
	turn   chan struct{} // held by the one read that is under way

	mu        sync.Mutex
	incident  string // "" when none is open
	reader    *audit.Reader
	state     audit.State
	past      past   // what other incidents on disk have left behind
	allClosed string // stamp of the folders when every incident in them was closed
}

func newHistory(states ...string) *history {
	h := &history{limit: historyLimit, turn: make(chan struct{}, 1)}
	for _, s := range states {
		if s != "" {
			h.states = append(h.states, s)
		}
	}
	return h
}

// read takes in what was appended, by us or by another session, and notices
// when an incident was opened or closed by somebody else. It gives up waiting
// after historyLimit; the read itself goes on and no second one begins.
func (h *history) read() error {
	limit := time.NewTimer(h.limit)
	defer limit.Stop()
	select {
	case h.turn <- struct{}{}:
	case <-limit.C:
		return errSlowLog
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-h.turn }()
		done <- h.readNow()
	}()
	select {
	case err := <-done:
		return err
	case <-limit.C:
		return errSlowLog
	}
}

// readNow reads files and holds no lock meanwhile.
func (h *history) readNow() error {
	h.mu.Lock()
	incident, reader, closed := h.incident, h.reader, h.allClosed
	h.mu.Unlock()
	if incident == "" {
		return h.find(closed)
	}
	changed, err := reader.Poll()
	var state audit.State
	if changed {
		state = audit.Fold(reader.Sessions())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reader != reader {
		return nil // another incident began meanwhile
	}
	if changed {
		h.state = state
		if !state.ClosedAt.IsZero() {
			h.drop()
		}
	}
	return err
}

// find looks for the incident that was opened last and is still open. While
// every incident on disk is closed and no new folder has appeared, there is
// nothing to read.
func (h *history) find(allClosed string) error {
	stamp := h.stamp()
	if stamp != "" && stamp == allClosed {
		return nil
	}
	all, err := audit.List(h.states...)
	if err != nil {
		return fmt.Errorf("look for an open incident: %w", err)
	}
	closed, latest := true, -1
	for i, s := range all {
		closed = closed && !s.State.ClosedAt.IsZero()
		if s.State.IsOpen() && (latest < 0 || s.State.Incident.OpenedAt.After(all[latest].State.Incident.OpenedAt)) {
			latest = i
		}
	}
	before := past{rehearsals: map[string]model.Rehearsal{}}
	for i, s := range all {
		if i != latest {
			before.add(&s.State)
			before.states = append(before.states, s.State)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.past = before
	if closed {
		h.allClosed = stamp
	}
	if latest >= 0 && h.incident == "" {
		h.incident, h.reader, h.state = all[latest].ID, all[latest].Reader, all[latest].State
	}
	return nil
}

// past is what a verdict has to know of other incidents: when something was last
// used live, the bypasses, whose uses are counted per day and not per incident, and
// the endings, for a store that was put back to a state of before them.
type past struct {
	rehearsals map[string]model.Rehearsal
	bypasses   []model.Issued
	endings    []model.Issued
	states     []audit.State // of each of them, for what it still owes
}

func (p *past) add(s *audit.State) {
	for name, r := range s.Rehearsals {
		if r.Live.After(p.rehearsals[name].Live) {
			p.rehearsals[name] = r
		}
	}
	for _, is := range s.Issued {
		switch is.Directive.Kind {
		case model.Bypass:
			p.bypasses = append(p.bypasses, is)
		case model.End:
			p.endings = append(p.endings, is)
		}
	}
}

// join adds the past to the state of the present incident, which is not changed.
func (p *past) join(s audit.State) audit.State {
	now := past{rehearsals: maps.Clone(p.rehearsals)}
	if now.rehearsals == nil {
		now.rehearsals = map[string]model.Rehearsal{}
	}
	now.add(&audit.State{Rehearsals: s.Rehearsals})
	s.Rehearsals, s.Issued = now.rehearsals, slices.Concat(p.bypasses, s.Issued)
	return s
}

// withPast adds what other incidents have left behind.
func (h *history) withPast(s *audit.State) audit.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.join(*s)
}

// endings lists those of other incidents.
func (h *history) endings() []model.Issued {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.endings
}

// before lists what other incidents have left behind.
func (h *history) before() []audit.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.past.states
}

// again has all incidents read anew: something was added to one that is over.
func (h *history) again() {
	h.mu.Lock()
	incident := h.incident
	h.allClosed = ""
	h.mu.Unlock()
	if incident == "" {
		return // the next read does it
	}
	all, err := audit.List(h.states...)
	if err != nil {
		return // what was owed before is shown as owed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.past.states = nil
	for i := range all {
		if all[i].ID != incident {
			h.past.states = append(h.past.states, all[i].State)
		}
	}
}

// stamp changes when an incident's folder appears, and when a session appears in
// one.
func (h *history) stamp() string {
	var out strings.Builder
	for _, state := range h.states {
		root := filepath.Dir(audit.Folder(state, "any"))
		found, err := os.ReadDir(root)
		if err != nil {
			continue
		}
		for _, f := range found {
			if info, err := f.Info(); err == nil {
				out.WriteString(f.Name() + " " + info.ModTime().String() + "\n")
			}
		}
	}
	return out.String()
}

func (h *history) drop() { h.incident, h.reader, h.state = "", nil, audit.State{} }

// follow starts an incident that we have opened ourselves.
func (h *history) follow(incident string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.incident != incident {
		h.incident, h.reader, h.state = incident, audit.NewReader(incident, h.states...), audit.State{}
	}
}

// forget ends it.
func (h *history) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop()
}

// follows is the incident that is being followed.
func (h *history) follows() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.incident
}

// now is the fold and the incident it belongs to.
func (h *history) now() (string, audit.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.incident, h.state
}
