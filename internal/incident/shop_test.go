package incident

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/crypto/ssh"
)

// clock is set by hand: nothing in these tests waits.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return model.Instant{Wall: c.at, Boot: c.at.Sub(policytest.Now()) + time.Hour, BootID: "boot", State: model.ClockOK}
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// flags is a flag service in memory, which hosts that are not cut off see at
// once.
type flags struct {
	mu     sync.Mutex
	tokens map[string]string
	down   error
	note   string
	sink   func(token string)
}

func (f *flags) Name() string { return "flags" }

func (f *flags) Put(_ context.Context, id, token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	f.tokens[id] = token
	f.sink(token)
	return nil
}

func (f *flags) Read(context.Context) (map[string]string, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.tokens), f.note, f.down
}

// board is a store with compare-and-swap in memory.
type board struct {
	mu        sync.Mutex
	lease     Cell
	proposals map[string]Cell
}

func (b *board) Lease(context.Context) (Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lease, nil
}

func (b *board) SwapLease(_ context.Context, previous int64, value string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lease.Revision != previous {
		return errors.New("somebody was faster")
	}
	b.lease = Cell{Value: value, Revision: previous + 1}
	return nil
}

func (b *board) Proposal(_ context.Context, id string) (Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proposals[id], nil
}

func (b *board) SwapProposal(_ context.Context, id string, previous int64, value string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proposals[id] = Cell{Value: value, Revision: previous + 1}
	return nil
}

func (b *board) Proposals(context.Context) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for id, cell := range b.proposals {
		out[id] = cell.Value
	}
	return out, nil
}

// shop is a fleet of real engines on memory folders, with real keys and the
// example policy.
type shop struct {
	t        *testing.T
	clock    *clock
	bundle   *policy.Bundle
	keys     map[string]ssh.Signer
	flags    *flags
	board    *board
	hosts    []*host
	readings map[string]model.Reading
	state    string
	sessions int
}

type host struct {
	name, service string
	engine        *engine.Engine
	cutOff        bool
	silent        bool
}

// newShop makes a shop of the test's own. Most of what its tests do is to wait, for a
// disk and for hosts that will not come, so they wait together.
func newShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	return anotherShop(t)
}

// anotherShop is for a test that has one already.
func anotherShop(t *testing.T) *shop {
	t.Helper()
	_, bundle, keys := policytest.Shop(t)
	s := &shop{t: t, clock: &clock{at: policytest.Now()}, bundle: bundle, keys: keys, state: t.TempDir(),
		board: &board{proposals: map[string]Cell{}}}
	s.flags = &flags{tokens: map[string]string{}, sink: s.deliver}
	for i, service := range []string{"edge", "catalog", "checkout", "checkout", "checkout", "checkout", "payment-risk"} {
		h := &host{name: fmt.Sprintf("%s-%02d", service, i), service: service}
		e, _, err := engine.Open(engine.Config{
			Fleet: policytest.Fleet, Host: h.name, Services: []string{service}, Realm: directive.Production, Bundle: bundle,
			Folder: engine.NewMemory(), Rand: rand.Reader, Software: "test",
		}, s.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		h.engine = e
		s.hosts = append(s.hosts, h)
	}
	s.calm()
	return s
}

// calm makes every signal good for the last hour, with room on both sides of no
// threshold: a value below every "above" and every "below" of the policy.
func (s *shop) calm() {
	s.readings = map[string]model.Reading{}
	for name, signal := range s.bundle.Signals {
		s.readings[name] = steady(name, s.good(name), s.clock.Now().Wall, signal.Step.Std())
	}
}

// good is a value that satisfies every leave condition of a signal.
func (s *shop) good(name string) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	for _, tier := range s.bundle.Tiers {
		for _, c := range tier.Leave {
			if c.Signal == name && c.Below != nil {
				high = min(high, *c.Below)
			}
			if c.Signal == name && c.Above != nil {
				low = max(low, *c.Above)
			}
		}
	}
	if a := s.bundle.Signals[name].Abnormal; a != nil {
		if a.Above != nil {
			high = min(high, *a.Above)
		}
		if a.Below != nil {
			low = max(low, *a.Below)
		}
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return 0
	case math.IsInf(low, -1):
		return high / 2
	case math.IsInf(high, 1):
		return low + 1
	}
	return (low + high) / 2
}

func steady(name string, v float64, now time.Time, step time.Duration) model.Reading {
	step = max(step, time.Second)
	r := model.Reading{Signal: name, State: model.ReadingValue, Value: v, At: now, Step: model.Duration(step)}
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(step) {
		r.History = append(r.History, model.Sample{At: at, Value: v})
	}
	return r
}

func (s *shop) deliver(token string) {
	for _, h := range s.hosts {
		if !h.cutOff {
			h.engine.Offer("flags", token, s.clock.Now())
		}
	}
}

// pass lets time go by everywhere.
func (s *shop) pass(d time.Duration) {
	s.clock.pass(d)
	for _, h := range s.hosts {
		h.engine.Advance(s.clock.Now())
	}
	s.calm()
}

func (s *shop) views(context.Context) []model.HostView {
	now := s.clock.Now()
	var out []model.HostView
	for _, h := range s.hosts {
		v := model.HostView{Host: h.name, Services: []string{h.service}, Reachable: !h.silent, SeenAt: now.Wall, Via: "test"}
		if !h.silent {
			r := h.engine.Report(now)
			v.Report = &r
		}
		out = append(out, v)
	}
	return out
}

// desk seats a person. Two desks with one state folder are two consoles on one
// machine.
func (s *shop) desk(person string, changes ...func(*Options)) *Desk {
	s.t.Helper()
	s.sessions++
	o := Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: person, State: s.state,
		Session: fmt.Sprintf("%s-%d", person, s.sessions), Bundle: s.bundle, Clock: s.clock,
		Signer:   func(context.Context) (ssh.Signer, error) { return s.keys[person], nil },
		Carriers: []Carrier{s.flags}, Board: s.board,
		Readings: func(context.Context) map[string]model.Reading { return s.readings },
		Hosts:    s.views, Inventory: s.listing,
	}
	for _, change := range changes {
		change(&o)
	}
	d, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
	d.Refresh(context.Background())
	return d
}

func (s *shop) listing() Listing {
	return Listing{Inventory: model.Inventory{Source: "policy", At: s.clock.Now().Wall, MaxAge: model.Duration(time.Minute), Hosts: len(s.hosts)}}
}

func (s *shop) act(d *Desk, ask decisions.Ask) (Result, error) {
	s.t.Helper()
	d.Refresh(context.Background())
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	return d.Execute(context.Background(), Act{Request: p.Request, Asked: true})
}

func (s *shop) must(d *Desk, ask decisions.Ask) Result {
	s.t.Helper()
	r, err := s.act(d, ask)
	if err != nil {
		s.t.Fatalf("%+v: %v %v", ask, err, r.Reasons)
	}
	if r.State != Effective {
		s.t.Fatalf("%+v: %s, %s %v", ask, r.State, r.Detail, r.Carriers)
	}
	return r
}

func usd(cents int64) model.Money { return model.Money{Minor: cents, Currency: "USD"} }

func (s *shop) allowed(cents int64) (open int) {
	for _, h := range s.hosts {
		if ok, _ := h.engine.Allow("payment-risk", "checkout", usd(cents), s.clock.Now()); ok && h.service == "checkout" {
			open++
		}
	}
	return open
}

const small = "risk-bypass-small-orders"

// actBriefly does not wait for hosts that will not come.
func (s *shop) actBriefly(d *Desk, ask decisions.Ask) (Result, error) {
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return d.Execute(ctx, Act{Request: p.Request, Asked: true})
}
