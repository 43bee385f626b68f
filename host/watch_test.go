package host_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/host/dimmer"
)

// next is the change that somebody who waits is told.
func next(t testing.TB, changes <-chan host.Change) host.Change {
	t.Helper()
	select {
	case c, open := <-changes:
		if !open {
			t.Fatal("the channel is closed")
		}
		return c
	case <-time.After(patience):
		t.Fatalf("nothing is told in %s", patience)
	}
	return host.Change{}
}

// settled watches a host whose file has been read once: until then it goes by
// defaults, and the end of that is a change of its own.
func (s *shop) settled(h *host.Host) (<-chan host.Change, host.Change) {
	s.t.Helper()
	s.write("")
	changes := h.Watch(s.t.Context())
	c := next(s.t, changes)
	first := c
	for c.New.Defaults {
		c = next(s.t, changes)
	}
	first.New = c.New
	return changes, first
}

// write makes the file of directives what tokens are.
func (s *shop) write(tokens string) {
	s.t.Helper()
	if err := os.WriteFile(s.cfg.File+".new", []byte(tokens), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.cfg.File+".new", s.cfg.File); err != nil {
		s.t.Fatal(err)
	}
}

func TestWatchTellsOfTiersFeaturesBypassesAndDimmers(t *testing.T) {
	t.Parallel() // files are looked at once a second
	s := newShop(t)
	s.cfg.File = filepath.Join(t.TempDir(), "directives")
	h := s.open()
	changes, first := s.settled(h)
	if first.Old.Tiers != nil || first.New.Tiers["checkout"] != 0 || len(first.New.Features)+len(first.New.Open)+len(first.New.Dimmers) != 0 {
		t.Errorf("at first: %+v", first)
	}
	tokens := s.shed(1)
	s.write(tokens)
	c := next(t, changes)
	reviews := host.Feature{On: true, How: "the newest three, up to a day old"}
	if c.Old.Tiers["checkout"] != 0 || c.New.Features["reviews"] != reviews || c.New.Features["recommendations"] != (host.Feature{}) {
		t.Errorf("a shed: %+v", c)
	}
	tokens += " " + s.bypass()
	s.write(tokens)
	if c = next(t, changes); c.New.Open["payment-risk"].IsZero() || !c.Old.Open["payment-risk"].IsZero() || c.At.IsZero() {
		t.Errorf("a bypass: %+v", c)
	}
	s.write(tokens + " " + s.dim(200, 10, 50))
	want := dimmer.Bounds{Target: 200 * time.Millisecond, Floor: 0.1, Ceiling: 0.5}
	if c = next(t, changes); c.New.Dimmers["checkout"] != want {
		t.Errorf("a dimmer: %+v", c)
	}
	if got, ok := h.Dimmer("checkout"); got != want || !ok {
		t.Errorf("the host says %+v, %v", got, ok)
	}
	if _, ok := h.Dimmer("catalog"); ok {
		t.Error("another service is dimmed too")
	}
}

func TestAWatcherThatIsSlowGetsOneChangeAndHoldsUpNobody(t *testing.T) {
	t.Parallel() // files are looked at once a second
	s := newShop(t)
	s.cfg.File = filepath.Join(t.TempDir(), "directives")
	h := s.open()
	slow, first := s.settled(h)
	last := first.New
	tokens := ""
	for tier := 1; tier <= 3; tier++ {
		tokens += " " + s.shed(tier)
		s.write(tokens)
		wait(t, "the shed", func() bool { return h.Tier("checkout") == tier })
	}
	told := 0
	for last.Tiers["checkout"] != 3 {
		c := next(t, slow)
		if !reflect.DeepEqual(c.Old, last) {
			t.Errorf("after %+v comes a change from %+v", last, c.Old)
		}
		last = c.New
		told++
	}
	if told > 2 { // one may have been on its way when the last one came
		t.Errorf("it is told of %d changes", told)
	}
	select {
	case c := <-slow:
		t.Errorf("and again: %+v", c)
	default:
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	h := newShop(t).open()
	ctx, cancel := context.WithCancel(t.Context())
	changes := h.Watch(ctx)
	next(t, changes)
	cancel()
	select {
	case _, open := <-changes:
		if open {
			t.Error("something has changed")
		}
	case <-time.After(patience):
		t.Error("the channel stays open")
	}
}

func TestManyAskWhileDirectivesCome(t *testing.T) {
	t.Parallel() // files are looked at once a second
	s := newShop(t)
	s.cfg.File = filepath.Join(t.TempDir(), "directives")
	h := s.open()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			highest := 0
			for c := range h.Watch(ctx) {
				if tier := c.New.Tiers["checkout"]; tier < highest {
					t.Errorf("tier %d after %d, and nothing was ended", tier, highest)
				} else {
					highest = tier
				}
			}
		})
		wg.Go(func() {
			for ctx.Err() == nil {
				h.Tier("checkout")
				h.Feature("reviews")
				h.Allow("payment-risk", 1, "USD")
				h.Dimmer("checkout")
				h.PolicyVersion()
				h.Condition()
			}
		})
	}
	tokens := s.bypass() + " " + s.dim(200, 10, 50)
	for tier := 1; tier <= 3; tier++ {
		tokens += " " + s.shed(tier)
		s.write(tokens)
		wait(t, "the shed", func() bool { return h.Tier("checkout") == tier })
	}
	stop()
	wg.Wait()
	if ok, why := h.Allow("payment-risk", 1, "USD"); ok || why != host.BudgetSpent {
		t.Errorf("after many items the budget of 2 says %v %s", ok, why)
	}
}
