package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/degradedmode/ic/host/cache"
	"github.com/degradedmode/ic/host/degraded"
	"github.com/degradedmode/ic/host/fallback"
	"github.com/degradedmode/ic/host/metrics"
)

var (
	errDown = errors.New("500")
	ours    = cache.Key{Scope: "tenant-a", Policy: "3", Name: "prices"}
)

// bench is a cache of prices with a dependency that does as it is told. All of it
// runs in a bubble of package synctest: its time passes when everybody waits.
type bench struct {
	t *testing.T
	*cache.Cache[*price]
	fallbacks *fallback.Counters
	calls     atomic.Int32
}

type price struct {
	cents int
	sum   int // cents again: what Check compares
}

func right(_ cache.Key, p *price) error {
	if p.sum != p.cents {
		return errors.New("the sum is another")
	}
	return nil
}

func newBench(t *testing.T, change func(*cache.Config[*price])) *bench {
	t.Helper()
	fallbacks, err := fallback.New(fallback.Config{Dependencies: []string{"prices"}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := cache.Config[*price]{
		Name: "prices", Fresh: time.Minute, Stale: 5 * time.Minute, Timeout: 200 * time.Millisecond, Reserve: 20 * time.Millisecond,
		Size: func(*price) int { return 16 }, Check: right, MaxFetches: 2, Fallbacks: fallbacks, Rand: func() float64 { return 0.5 },
	}
	if change != nil {
		change(&cfg)
	}
	c, err := cache.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, Cache: c, fallbacks: fallbacks}
}

func (b *bench) gives(cents int) cache.Fetch[*price] {
	return func(context.Context) (*price, error) { b.calls.Add(1); return &price{cents, cents}, nil }
}

func (b *bench) fails(context.Context) (*price, error) { b.calls.Add(1); return nil, errDown }

// hangs until its time is up.
func (b *bench) hangs(ctx context.Context) (*price, error) {
	b.calls.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// holds takes a fetch's place until the returned function is called.
func (b *bench) holds(name string) (release func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = b.Get(b.t.Context(), cache.Key{Scope: "tenant-b", Policy: "3", Name: name}, func(context.Context) (*price, error) {
			<-ctx.Done()
			return nil, errDown
		})
	}()
	synctest.Wait()
	return func() { cancel(); <-done; synctest.Wait() }
}

func text(t *testing.T, s metrics.Source) string {
	t.Helper()
	var out bytes.Buffer
	if err := metrics.Write(&out, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// decision is one row of the table.
type decision struct {
	what   string
	before func(b *bench) (after func()) // changes the case; nil: nothing
	key    cache.Key
	fetch  func(b *bench) cache.Fetch[*price]
	left   time.Duration // of the caller's time; 0: without limit

	cents  int             // what is served, 0 nothing
	stale  bool            // and it is marked
	why    cache.Why       // nothing is served: what the cache says
	cause  error           // and what the dependency does
	reason fallback.Reason // under which it is counted
	calls  int             // of the dependency
	takes  time.Duration   // at most
}

// marked is the header of the response.
func (c *decision) marked(stored time.Time) string {
	switch {
	case c.why != "":
		return "missing=(prices)"
	case c.stale:
		return fmt.Sprintf("stale=(prices), as_of=@%d", stored.Unix())
	}
	return ""
}

// TestWhatIsServedInEachCase is the decision table of a fallback: with a good answer
// two minutes old in the cache, fresh for one and stale for five more, what becomes
// of a question when this happens?
func TestWhatIsServedInEachCase(t *testing.T) {
	const old, current = 4999, 5999
	for _, c := range []decision{
		{what: "success", fetch: func(b *bench) cache.Fetch[*price] { return b.gives(current) }, cents: current, calls: 1},
		{what: "timeout", fetch: func(b *bench) cache.Fetch[*price] { return b.hangs },
			cents: old, stale: true, cause: context.DeadlineExceeded, reason: fallback.Timeout, calls: 1, takes: 200 * time.Millisecond},
		{what: "error", cents: old, stale: true, cause: errDown, reason: fallback.Error, calls: 1},
		{what: "the circuit is open", fetch: func(b *bench) cache.Fetch[*price] {
			return func(context.Context) (*price, error) { b.calls.Add(1); return nil, fallback.ErrCircuitOpen }
		}, cents: old, stale: true, cause: fallback.ErrCircuitOpen, reason: fallback.CircuitOpen, calls: 1},
		{what: "an answer that is damaged", fetch: func(b *bench) cache.Fetch[*price] {
			return func(context.Context) (*price, error) { b.calls.Add(1); return &price{current, 1}, nil }
		}, cents: old, stale: true, reason: fallback.Error, calls: 1},
		{what: "corrupt cache", before: func(b *bench) func() {
			a, _ := b.Get(b.t.Context(), ours, b.fails) // stale, and then somebody writes into it
			a.Value.cents++
			return nil
		}, why: cache.Corrupt, cause: errDown, calls: 2},
		{what: "too old", before: func(b *bench) func() { time.Sleep(4*time.Minute + 1); return nil }, why: cache.TooOld, cause: errDown, calls: 1},
		{what: "the last moment of its window", before: func(b *bench) func() { time.Sleep(4 * time.Minute); return nil },
			cents: old, stale: true, cause: errDown, reason: fallback.Error, calls: 1},
		{what: "too old when the dependency has timed out", before: func(b *bench) func() { time.Sleep(4*time.Minute - 100*time.Millisecond); return nil },
			fetch: func(b *bench) cache.Fetch[*price] { return b.hangs }, why: cache.TooOld, cause: context.DeadlineExceeded, calls: 1, takes: 200 * time.Millisecond},
		{what: "wrong scope", key: cache.Key{Scope: "tenant-b", Policy: "3", Name: "prices"}, why: cache.Nothing, cause: errDown, calls: 1},
		{what: "no scope", key: cache.Key{Policy: "3", Name: "prices"}, why: cache.NoScope, cause: errDown, calls: 1},
		{what: "another policy version", key: cache.Key{Scope: "tenant-a", Policy: "4", Name: "prices"}, why: cache.Nothing, cause: errDown, calls: 1},
		{what: "no policy version", key: cache.Key{Scope: "tenant-a", Name: "prices"}, why: cache.NoPolicy, cause: errDown, calls: 1},
		{what: "no policy version, and success", key: cache.Key{Scope: "tenant-a", Name: "prices"},
			fetch: func(b *bench) cache.Fetch[*price] { return b.gives(current) }, cents: current, calls: 1},
		{what: "saturated", before: saturate, cents: old, stale: true, cause: fallback.ErrBulkhead, reason: fallback.Bulkhead},
		{what: "saturated, with nothing to serve", before: saturate, key: cache.Key{Scope: "tenant-a", Policy: "3", Name: "other"},
			why: cache.Nothing, cause: fallback.ErrBulkhead},
		{what: "saturated, without a policy version", before: saturate, key: cache.Key{Scope: "tenant-a", Name: "prices"},
			why: cache.NoPolicy, cause: fallback.ErrBulkhead},
		{what: "out of budget", left: 20 * time.Millisecond, cents: old, stale: true, cause: cache.ErrBudget, reason: fallback.Timeout},
		{what: "out of budget, with nothing to serve", left: 20 * time.Millisecond, key: cache.Key{Scope: "tenant-a", Policy: "3", Name: "other"},
			why: cache.Nothing, cause: cache.ErrBudget},
		{what: "out of budget while waiting", left: 100 * time.Millisecond, fetch: func(b *bench) cache.Fetch[*price] { return b.hangs },
			cents: old, stale: true, cause: context.DeadlineExceeded, reason: fallback.Timeout, calls: 1, takes: 80 * time.Millisecond},
		{what: "the caller has gone", left: -1, why: cache.Gone, cause: context.DeadlineExceeded},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				if _, err := b.Get(t.Context(), ours, b.gives(old)); err != nil {
					t.Fatal(err)
				}
				stored := time.Now()
				time.Sleep(2 * time.Minute)
				b.calls.Store(0)
				if c.before != nil {
					if after := c.before(b); after != nil {
						defer after()
					}
				}
				key, fetch := c.key, b.fails
				if key == (cache.Key{}) {
					key = ours
				}
				if c.fetch != nil {
					fetch = c.fetch(b)
				}
				ctx := t.Context()
				if c.left != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.left)
					defer cancel()
				}
				defer time.Sleep(time.Second) // fetches end when their own time is up
				counted := text(t, b.fallbacks)
				began := time.Now()
				a, err := b.Get(ctx, key, fetch)
				if took := time.Since(began); took > c.takes {
					t.Errorf("it takes %s, at most %s", took, c.takes)
				}
				if b.calls.Load() != int32(c.calls) {
					t.Errorf("the dependency was asked %d times, want %d", b.calls.Load(), c.calls)
				}
				var m degraded.Marker
				shown := cache.Panel(a, err).Mark(&m, "prices")
				if got := m.Degraded().String(); got != c.marked(stored) || c.reason != "" && shown.Reason() != string(c.reason) {
					t.Errorf("the response says %q, because of %q; want %q, %q", got, shown.Reason(), c.marked(stored), c.reason)
				}
				if c.why != "" {
					wantRefused(t, err, c.why, c.cause)
					if a.Value != nil || text(t, b.fallbacks) != counted {
						t.Errorf("%+v is served or counted all the same", a)
					}
					return
				}
				if err != nil || a.Value.cents != c.cents || a.Stale != c.stale {
					t.Fatalf("%+v, %v", a, err)
				}
				if !c.stale {
					if a.Age != 0 || a.Cause != nil || text(t, b.fallbacks) != counted {
						t.Errorf("an answer from now has the age %s, the cause %v", a.Age, a.Cause)
					}
					return
				}
				if a.Age != time.Since(stored) || !a.AsOf.Equal(stored) {
					t.Errorf("age %s of %s, want %s of %s", a.Age, a.AsOf, time.Since(stored), stored)
				}
				if c.cause != nil && !errors.Is(a.Cause, c.cause) {
					t.Errorf("cause %v, want %v", a.Cause, c.cause)
				}
				if line := `ic_fallback_total{dependency="prices",reason="` + string(c.reason) + `"} 1`; !strings.Contains(text(t, b.fallbacks), line) {
					t.Errorf("not counted as %s:\n%s", c.reason, text(t, b.fallbacks))
				}
			})
		})
	}
}

func saturate(b *bench) func() {
	first, second := b.holds("one"), b.holds("two")
	return func() { first(); second() }
}

func wantRefused(t *testing.T, err error, why cache.Why, cause error) {
	t.Helper()
	var refused *cache.Refused
	if !errors.As(err, &refused) || refused.Why != why || !errors.Is(err, cause) {
		t.Errorf("%v, want %s and %v", err, why, cause)
	}
}
