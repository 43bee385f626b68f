package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// How fast the flag service is. A watch hands on within a moment; a host reads
// everything now and then, which repairs what a watch has missed.
const (
	watchLeast    = 20 * time.Millisecond
	watchMost     = 400 * time.Millisecond
	fullReadEvery = 10 * time.Second
	slowBy        = 4 * time.Minute // the fault flags-slow
)

var (
	errUnreachable = errors.New("connection refused")
	errFlagsDown   = errors.New("etcd: connection refused")
	errConflict    = errors.New("somebody else was faster")
)

// flagService is a store of statements that hosts watch, and the board of the
// desks. It carries what it is given and can mint nothing.
type flagService struct {
	w           *World
	down        bool
	partitioned bool // the second half of the fleet cannot reach it
	slow        bool
	entries     []entry
	tokens      map[string]string
	lease       incident.Cell
	proposals   map[string]incident.Cell
}

// entry is a statement and when the hosts' side of the store shows it.
type entry struct {
	token string
	at    time.Time
}

var (
	_ incident.Carrier = (*flagService)(nil)
	_ incident.Board   = (*flagService)(nil)
)

func newFlagService(w *World) *flagService {
	return &flagService{w: w, tokens: map[string]string{}, proposals: map[string]incident.Cell{}}
}

// reaches says whether a host can reach the service now.
func (f *flagService) reaches(h *host) bool { return !f.down && (!f.partitioned || h.spec.Half == 0) }

// Name implements incident.Carrier: the word that backends use for it as a
// dependency.
func (f *flagService) Name() string { return "etcd" }

// Put implements incident.Carrier. Whoever is connected has it a moment later.
func (f *flagService) Put(ctx context.Context, id, token string) error {
	defer f.w.enter(ctx)()
	f.w.learn(token)
	if f.down {
		return errFlagsDown
	}
	if f.tokens[id] == token {
		return nil
	}
	at := f.w.k.Now()
	if f.slow {
		at = at.Add(slowBy)
	}
	f.tokens[id] = token
	f.entries = append(f.entries, entry{token, at})
	f.w.k.Log("flags", "put", kernel.Word("id", id))
	for _, h := range f.w.hosts {
		f.w.k.At(at.Add(f.w.jitter("flags", watchLeast, watchMost)), func() {
			if f.reaches(h) {
				h.offer(token)
			}
		})
	}
	return nil
}

// visible is every statement that hosts can read now, oldest first.
func (f *flagService) visible() []string {
	now := f.w.k.Now()
	out := make([]string, 0, len(f.entries))
	for _, e := range f.entries {
		if !e.at.After(now) {
			out = append(out, e.token)
		}
	}
	return out
}

// fullReads lets every host read everything.
func (f *flagService) fullReads() {
	for _, h := range f.w.hosts {
		if h.awake() {
			h.fullRead()
		}
	}
}

// Read implements incident.Carrier.
func (f *flagService) Read(ctx context.Context) (map[string]string, string, error) {
	defer f.w.enter(ctx)()
	if f.down {
		return nil, "", errFlagsDown
	}
	out := make(map[string]string, len(f.tokens))
	for id, token := range f.tokens {
		out[id] = token
	}
	return out, "", nil
}

// Lease implements incident.Board.
func (f *flagService) Lease(ctx context.Context) (incident.Cell, error) {
	defer f.w.enter(ctx)()
	if f.down {
		return incident.Cell{}, errFlagsDown
	}
	return f.lease, nil
}

// SwapLease implements incident.Board.
func (f *flagService) SwapLease(ctx context.Context, previous int64, value string) error {
	defer f.w.enter(ctx)()
	return f.swap(&f.lease, previous, value)
}

func (f *flagService) swap(cell *incident.Cell, previous int64, value string) error {
	switch {
	case f.down:
		return errFlagsDown
	case cell.Revision != previous:
		return errConflict
	}
	*cell = incident.Cell{Value: value, Revision: previous + 1}
	return nil
}

// Proposal implements incident.Board.
func (f *flagService) Proposal(ctx context.Context, id string) (incident.Cell, error) {
	defer f.w.enter(ctx)()
	if f.down {
		return incident.Cell{}, errFlagsDown
	}
	return f.proposals[id], nil
}

// SwapProposal implements incident.Board.
func (f *flagService) SwapProposal(ctx context.Context, id string, previous int64, value string) error {
	defer f.w.enter(ctx)()
	cell := f.proposals[id]
	if err := f.swap(&cell, previous, value); err != nil {
		return fmt.Errorf("post the proposal %s: %w", id, err)
	}
	f.proposals[id] = cell
	return nil
}

// Proposals implements incident.Board.
func (f *flagService) Proposals(ctx context.Context) (map[string]string, error) {
	defer f.w.enter(ctx)()
	if f.down {
		return nil, errFlagsDown
	}
	out := make(map[string]string, len(f.proposals))
	for id, cell := range f.proposals {
		out[id] = cell.Value
	}
	return out, nil
}

// learn tells the oracle of a statement that somebody has signed, wherever it goes.
func (w *World) learn(token string) {
	if !slices.Contains(w.tokens, token) {
		w.tokens = append(w.tokens, token)
	}
	if !w.oracle.Offer("signed", token, w.oracleC.Now()).New {
		return
	}
	if signed, err := directive.Verify(token, directive.Drill, Fleet); err == nil && signed.Directive.Kind == model.End && !signed.Directive.IsRecovery() {
		w.ends = append(w.ends, signed.Directive)
	}
}
