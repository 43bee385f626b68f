package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/shop"
)

// plainAt has something done to the world without ic at a moment.
func (w *World) plainAt(t *testing.T, d time.Duration, do func(*Plain) error) {
	t.Helper()
	p := w.Plain()
	w.k.At(w.at(d), func() {
		if err := do(p); err != nil {
			t.Error(err)
		}
	})
}

func set(name, value string) func(*Plain) error {
	return func(p *Plain) error { return p.Set(name, value) }
}

func override(name, value string) func(*Plain) error {
	return func(p *Plain) error { return p.Override(name, value) }
}

// The document's night: half of the fleet does not hear of the flag, healed hosts
// boot on defaults, and the override comes after twenty minutes.
func TestWithoutICTheDocumentsNightExposesItsDollars(t *testing.T) {
	var cents []int64
	for seed := range uint64(3) {
		w := newWorld(t, Options{Seed: seed})
		w.inject(t, 0, faults.PaymentRiskDown)
		w.inject(t, 0, faults.FlagsPartition)
		w.plainAt(t, 5*time.Minute, set(FlagBypassRisk, "on"))
		w.inject(t, 8*time.Minute, faults.AutoHeal)
		w.plainAt(t, 20*time.Minute, override(FlagBypassRisk, "on"))
		w.clear(t, 35*time.Minute, faults.PaymentRiskDown)
		w.Advance(w.at(7 * time.Minute))
		if f := w.Facts(); len(f.BypassOpen) != 12 {
			t.Errorf("seed %d: the flag reached %d of 25 hosts, the document has 48 %%", seed, len(f.BypassOpen))
		}
		w.Advance(w.at(22 * time.Minute))
		if f := w.Facts(); len(f.BypassOpen) != 25 {
			t.Errorf("seed %d: after the override it is open on %d of 25", seed, len(f.BypassOpen))
		}
		w.Advance(w.at(40 * time.Minute))
		f := w.Facts()
		if len(f.BypassOpen) != 25 {
			t.Errorf("seed %d: nobody has taken it out, and it is open on %d", seed, len(f.BypassOpen))
		}
		cents = append(cents, f.UnscoredCents())
	}
	slices.Sort(cents)
	if median := cents[len(cents)/2]; median < 3_900_000 || median > 4_300_000 {
		t.Errorf("the median of three nights is %d cents: %v", median, cents)
	}
}

func TestANaiveFlagIsLostAtARestartWhereTheServiceCannotBeReached(t *testing.T) {
	w := newWorld(t, Options{Seed: 3})
	w.plainAt(t, time.Minute, set(FlagTier, "2"))
	w.inject(t, 2*time.Minute, faults.FlagsDown)
	w.inject(t, 3*time.Minute, faults.AutoHeal)
	w.Advance(w.at(4 * time.Minute))
	f := w.Facts()
	checkout := f.Service(shop.Checkout)
	if checkout.Tiers[0] != faults.HealedHosts || checkout.Tiers[2] != 25-faults.HealedHosts {
		t.Errorf("tiers of checkout: %v", checkout.Tiers)
	}
	if err := w.Faults().Clear(context.Background(), faults.FlagsDown); err != nil {
		t.Fatal(err)
	}
	w.Advance(w.at(5 * time.Minute))
	f = w.Facts()
	if n := f.Service(shop.Checkout).Tiers[2]; n != 25 {
		t.Errorf("the service is back, and %d of 25 know the flag", n)
	}
}

func TestAFlagThatNobodyKnowsIsRefused(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	for _, c := range []struct{ name, value string }{{"bypas-risk", "on"}, {FlagBypassRisk, "maybe"}, {FlagTier, "5"}, {FlagOff + shop.Reviews, "1"}} {
		if w.Plain().Set(c.name, c.value) == nil || w.Plain().Override(c.name, c.value) == nil {
			t.Errorf("%s=%s was taken", c.name, c.value)
		}
	}
}
