package engine

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/oklog/ulid/v2"
)

// MaxHeld bounds the statements of a host: at ten incidents a month with thirty
// statements each, four years of sheds and endings. What has an end of its own
// is forgotten after it.
const MaxHeld = 16384

// Version of the engine in a report: of what it obeys and how.
const Version = 1

// Config says which host this is and what it may believe.
type Config struct {
	Fleet    string
	Host     string // the name in the inventory; it decides the host's place on a ramp
	Services []string
	Realm    directive.Realm
	Bundle   *policy.Bundle
	Folder   Folder    // where the host keeps what it knows; nil only for a volatile one
	Volatile bool      // no folder: opens nothing unless the right says so, forgets at every start
	Rand     io.Reader // for the id of a new folder
	Software string    // version of the program, for the report
}

// Opened is what a host found in its folder.
type Opened struct {
	Condition Condition
	Notes     []string // one sentence for each thing that was not as it should be
	Held      int      // statements read back
	Read      bool     // the folder had a generation of this host that could be used
}

// Engine is what one host knows. It is safe for concurrent use.
type Engine struct {
	cfg Config

	// disk is held during a write. It is taken before mu, and mu never for as long
	// as a write takes: a disk that hangs holds up nobody who asks.
	disk  sync.Mutex
	store *store // nil: volatile

	mu      sync.Mutex
	bundle  *policy.Bundle
	last    lastTiers
	set     set
	refused refusals
	sources map[string]*source
	floor   floor
	budgets budgets
	heads   heads

	condition Condition
	closed    bool
	storeErr  error         // of the last write; nil when it succeeded
	retryAt   time.Duration // boot clock: no new attempt to write before
	noted     time.Duration // boot clock of the last clock record

	snap     atomic.Pointer[snapshot]
	revision atomic.Uint64
	changed  chan struct{} // closed and replaced at every change; see Changed
}

// Open reads what the folder holds, before anything can be offered. It does not
// fail because of what it finds there: a host starts, and says what it lost.
func Open(cfg Config, now model.Instant) (*Engine, Opened, error) {
	if err := cfg.check(); err != nil {
		return nil, Opened{}, fmt.Errorf("start host %q: %w", cfg.Host, err)
	}
	e := &Engine{
		cfg: cfg, bundle: cfg.Bundle, last: lastTiersOf(cfg.Bundle), set: newSet(),
		refused: refusals{by: map[string]*refusal{}},
		sources: map[string]*source{},
		budgets: budgets{by: map[period]*budget{}},
		heads:   heads{by: map[string]*origin{}},
		noted:   now.Boot, condition: StateVolatile, changed: make(chan struct{}),
	}
	var found loaded
	if !cfg.Volatile {
		e.store = &store{folder: cfg.Folder, who: identity{cfg.Fleet, cfg.Host}}
		found = e.store.load()
		e.condition = found.condition
	}
	if err := e.restore(&found, now); err != nil {
		return nil, Opened{}, fmt.Errorf("start host %q: %w", cfg.Host, err)
	}
	e.refresh(now)
	return e, Opened{Condition: e.condition, Notes: found.notes, Held: len(e.set.byKey), Read: found.read}, nil
}

func (c *Config) check() error {
	switch {
	case !directive.Name(c.Fleet) || !directive.Name(c.Host):
		return fmt.Errorf("fleet %q and host %q have to be names of a-z, 0-9, '-', '.', '_'", c.Fleet, c.Host)
	case c.Bundle == nil:
		return errors.New("there is no verified policy, so no signature could be judged")
	case c.Bundle.Root.Fleet != c.Fleet:
		return fmt.Errorf("the policy is of fleet %q, this is %q", c.Bundle.Root.Fleet, c.Fleet)
	case c.Volatile != (c.Folder == nil):
		return errors.New("a host has a state folder or is volatile, one of them")
	case !c.Volatile && c.Rand == nil:
		return errors.New("a new state folder needs a source of randomness for its id")
	}
	return nil
}

// Result is what became of one token.
type Result struct {
	ID   string     // what the token says of itself, or the beginning of its SHA-256
	Code model.Code // why it was not taken; "" when the host holds it
	New  bool       // taken now for the first time

	carried bool // it counts among what its source carries
}

// Offer hands over one token that source has delivered.
func (e *Engine) Offer(source, token string, now model.Instant) Result {
	return e.offer(source, []string{token}, now)[0]
}

// OfferAll hands over tokens that have come together, and writes down together what
// they bring.
func (e *Engine) OfferAll(source string, tokens []string, now model.Instant) []Result {
	return e.offer(source, tokens, now)
}

// Seen hands over everything that source holds, after a full read of it, or the
// error that prevented one. What it no longer carries stays in force here: a
// carrier cannot take anything back.
func (e *Engine) Seen(source string, tokens []string, err error, now model.Instant) []Result {
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sourceOf(source).err = err.Error()
		return nil
	}
	results := e.offer(source, tokens, now)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readFirst(source)
	e.sourceOf(source).full(results, now)
	e.refused.keep(source, tokens)
	return results
}

// Unchanged notes a full read of source that has brought nothing new. remark says
// what is not as it should be all the same.
func (e *Engine) Unchanged(source, remark string, now model.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.readFirst(source)
	s := e.sourceOf(source)
	s.read, s.ever, s.err = now, true, remark
}

// SetBundle changes the policy. It closes bypasses that the new one does not
// allow and nothing else, and judges afresh what was refused. A policy that is
// older than the present one is refused.
func (e *Engine) SetBundle(b *policy.Bundle, now model.Instant) error {
	if b.Root.Fleet != e.cfg.Fleet {
		return fmt.Errorf("change the policy of host %s: it is of fleet %q, this is %q", e.cfg.Host, b.Root.Fleet, e.cfg.Fleet)
	}
	e.mu.Lock()
	if old := e.bundle; b.Ref.Version < old.Ref.Version || b.Root.Version < old.Root.Version {
		e.mu.Unlock()
		return fmt.Errorf("change the policy of host %s: version %d under root %d is older than version %d under root %d",
			e.cfg.Host, b.Ref.Version, b.Root.Version, old.Ref.Version, old.Root.Version)
	}
	e.bundle, e.last = b, lastTiersOf(b)
	fit := e.floor.moment(now).fit()
	for _, h := range e.set.byKey {
		h.direction = b.Direction(h.d())
		h.close(e.judgeHeld(h.signed, h.accepted), fit)
	}
	fresh := e.rejudge(now, func(*refusal) bool { return true })
	e.change()
	e.refresh(now)
	e.mu.Unlock()
	e.persist(fresh, now)
	return nil
}

// Advance does what the passing of time asks for, and returns how long it takes
// until something changes by itself, Never if nothing will. Answers to questions
// are right without it; it keeps the folder up to date, tries failed writes
// again and judges afresh what only the clock refused. Call it at that time, and
// at least every ten seconds, since a clock may become fit at any time.
func (e *Engine) Advance(now model.Instant) time.Duration {
	e.mu.Lock()
	fit := e.floor.moment(now).fit()
	for _, h := range e.set.active {
		if fit && h.closed == model.CodeClockUnfit {
			h.closed = e.judgeHeld(h.signed, h.accepted)
		}
	}
	fresh := e.rejudge(now, func(r *refusal) bool {
		return r.code == model.CodeFuture || fit && r.code == model.CodeClockUnfit
	})
	e.refresh(now)
	e.mu.Unlock()
	e.persist(fresh, now)
	wait := e.keep(now)
	e.mu.Lock()
	defer e.mu.Unlock()
	return min(wait, e.snap.Load().wait(e.floor.moment(now)))
}

// Close gives the folder free. What is reserved of budgets and not used is lost.
func (e *Engine) Close(now model.Instant) error {
	if e.store == nil {
		return nil
	}
	e.mu.Lock()
	records, closed := e.clockRecords(now), e.closed
	e.mu.Unlock()
	if closed {
		return nil
	}
	err := e.write(records, now)
	e.disk.Lock()
	defer e.disk.Unlock()
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	return errors.Join(err, e.store.close())
}

// Revision grows whenever what is in force or the policy changes.
func (e *Engine) Revision() uint64 { return e.revision.Load() }

// Condition is the state of a report, without the rest of it: StateUnpersisted
// until everything the host holds is on disk.
func (e *Engine) Condition() Condition {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state()
}

// StoreError is why the last write to the folder failed; nil if it succeeded.
func (e *Engine) StoreError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.storeErr
}

// Bundle is the policy by which the host judges.
func (e *Engine) Bundle() *policy.Bundle { return e.snap.Load().bundle }

func newFolderID(now model.Instant, random io.Reader) (string, error) {
	id, err := ulid.New(ulid.Timestamp(now.Wall), random)
	if err != nil {
		return "", fmt.Errorf("make an id for the state folder: %w", err)
	}
	return id.String(), nil
}
