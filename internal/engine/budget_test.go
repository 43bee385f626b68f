package engine_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

func TestAnItemHasToBeUnderTheCap(t *testing.T) {
	h := newHost(t)
	if ok, code := h.allow(1); ok || code != engine.CodeClosed {
		t.Errorf("before anything is open: %v %s", ok, code)
	}
	h.take(open(10*time.Minute, start))
	for _, c := range []struct {
		service, control string
		amount           model.Money
		ok               bool
		code             model.Code
	}{
		{"checkout", "risk", usd(4999), true, ""},
		{"checkout", "risk", usd(5000), false, engine.CodeOverAmount},
		{"checkout", "risk", usd(0), true, ""},
		{"checkout", "risk", usd(-1), false, engine.CodeOverAmount},
		{"checkout", "risk", model.Money{Minor: 1, Currency: "EUR"}, false, engine.CodeOverAmount},
		{"catalog", "risk", usd(1), false, engine.CodeClosed},
		{"checkout", "fraud", usd(1), false, engine.CodeClosed},
	} {
		if ok, code := h.Allow(c.control, c.service, c.amount, h.clock.Now()); ok != c.ok || code != c.code {
			t.Errorf("%s of %s on %s: %v %q, want %v %q", c.amount, c.control, c.service, ok, code, c.ok, c.code)
		}
	}
}

func TestABudgetIsSharedByGrantsAndEndsExactly(t *testing.T) {
	h := newHost(t)
	h.take(open(10*time.Minute, start))
	for range 25 {
		h.wantOpen(true)
	}
	if now := h.clock.Now(); !h.IsOpen("risk", "checkout", now) || h.IsOpen("risk", "catalog", now) {
		t.Error("IsOpen is wrong about the service")
	}
	h.take(open(10*time.Minute, start), "bea")
	if n := drain(h); n != 15 {
		t.Errorf("%d items passed after 25 of 40", n)
	}
	if ok, code := h.allow(1); ok || code != engine.CodeSpent {
		t.Errorf("after the last: %v %s", ok, code)
	}
	r := h.Report(h.clock.Now())
	if len(r.Budgets) != 1 || r.Budgets[0] != (model.ReportBudget{Right: "open", Control: "risk", Period: "2026-11-30", Count: 40, Total: usd(1525)}) {
		t.Errorf("budgets: %+v", r.Budgets)
	}
	other := open(10*time.Minute, start)
	other.Right = "open-anywhere"
	h.take(other)
	h.wantOpen(true) // another right has a budget of its own
}

func TestABudgetOfMoneyEndsExactly(t *testing.T) {
	h := newHost(t)
	d := open(10*time.Minute, start)
	d.Caps.HostTotal = usd(10000)
	h.take(d)
	for _, c := range []struct {
		minor int64
		ok    bool
	}{{4999, true}, {4999, true}, {3, false}, {2, true}, {1, false}, {0, true}} {
		if ok, code := h.allow(c.minor); ok != c.ok || !ok && code != engine.CodeSpent {
			t.Errorf("%d: %v %s, want %v", c.minor, ok, code, c.ok)
		}
	}
}

func TestANewDayHasANewBudget(t *testing.T) {
	h := newHost(t)
	h.take(open(10*time.Minute, start))
	if n := drain(h); n != 40 {
		t.Fatalf("%d items passed", n)
	}
	h.clock.pass(24 * time.Hour)
	h.take(open(10*time.Minute, h.clock.Now().Wall))
	if n := drain(h); n != 40 {
		t.Errorf("%d items passed on the next day", n)
	}
	h.crash()
	h.clock.pass(time.Minute)
	if n := drain(h); n != 0 {
		t.Errorf("a restart refilled %d items", n)
	}
}

func TestACrashForfeitsAtMostABlockAndRefillsNothing(t *testing.T) {
	h := newHost(t)
	d := open(10*time.Minute, start)
	h.take(d)
	passed := 0
	for ok := true; ok && passed <= 40; {
		if ok, _ = h.allow(1); ok {
			passed++
		}
		h.crash()
	}
	if passed > 40 || passed < 16 {
		t.Errorf("%d of 40 items passed with a crash after each; a block is a sixteenth", passed)
	}
}

func TestAnItemThatCannotBeCountedIsNotLetThrough(t *testing.T) {
	h := newHost(t)
	h.take(open(10*time.Minute, start))
	h.wantOpen(true)
	h.folder.(*engine.Memory).Fail(errGone)
	for range 3 { // what is reserved may still be used, and no more
		if ok, code := h.allow(1); !ok && code != engine.CodeNotDurable {
			t.Fatal(code)
		}
	}
	if ok, code := h.allow(1); ok || code != engine.CodeNotDurable {
		t.Errorf("allow says %v %s", ok, code)
	}
	h.folder.(*engine.Memory).Fail(nil)
	h.clock.pass(10 * time.Second)
	h.wantOpen(true)
}

func TestManyAskersShareOneBudget(t *testing.T) {
	h := newHost(t)
	h.take(open(10*time.Minute, start))
	var passed atomic.Int64
	var all sync.WaitGroup
	now := h.clock.Now()
	for range 8 {
		all.Go(func() {
			for range 20 {
				if ok, _ := h.Allow("risk", "checkout", usd(100), now); ok {
					passed.Add(1)
				}
				h.Tier("checkout", now)
				h.Report(now)
			}
		})
	}
	all.Wait()
	if passed.Load() != 40 {
		t.Errorf("%d items passed, the budget is 40", passed.Load())
	}
}
