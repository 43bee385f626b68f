package score

import (
	"fmt"
	"slices"
)

// A run is worse than the last one on an axis when it is worse by more than a
// tenth and by more than a floor: a rehearsal is deterministic, so what differs
// is the product or the runbook, but a second of delay is no news.
const (
	worseShare    = 10     // one part in ten
	floorTimeMS   = 5_000  // of a time
	floorTierMS   = 60_000 // tier x time: one tier for a minute
	floorImpactMS = 6_000  // a tenth of a minute of everybody
	floorCents    = 100_00 // a hundred of the currency
	floorCount    = 0      // one flap more is one too many
)

// Regressions says, one sentence each, on which axes this run is worse than a
// run before it. Where a run before had no value there is nothing to compare; a
// value that was lost is a regression.
func (s *Score) Regressions(last *Score) []string {
	var out []string
	if rank(s.Verdict) > rank(last.Verdict) {
		out = append(out, fmt.Sprintf("%s, and %s the last time", s.Verdict, last.Verdict))
	}
	now, before := &s.Axes, &last.Axes
	for _, x := range comparisons() {
		a, b := x.of(now), x.of(before)
		switch {
		case b == nil:
		case a == nil:
			out = append(out, fmt.Sprintf("%s is %s, and was %s", x.name, unknown, x.text(before)))
		case *a-*b > max(x.floor, abs(*b)/worseShare):
			out = append(out, fmt.Sprintf("%s is %s, and was %s", x.name, x.text(now), x.text(before)))
		}
	}
	if before.Evidence != nil && before.Evidence.Complete() && (now.Evidence == nil || !now.Evidence.Complete()) {
		out = append(out, "the evidence was complete, and is not")
	}
	return out
}

func rank(v Verdict) int {
	return slices.Index([]Verdict{Passed, Inconclusive, NotInjected, Aborted, Failed}, v)
}

func abs(n int64) int64 { return max(n, -n) }

// comparison is an axis on which more is worse.
type comparison struct {
	name  string
	floor int64
	of    func(*Axes) *int64
	text  func(*Axes) string
}

func comparisons() []comparison {
	times := func(name string, of func(*Axes) *int64) comparison {
		return comparison{name, floorTimeMS, of, func(a *Axes) string { return lasting(of(a)) }}
	}
	cents := func(name string, of func(*Axes) *int64) comparison {
		return comparison{name, floorCents, of, func(a *Axes) string { return amount(of(a), a.Currency) }}
	}
	count := func(name string, of func(*Axes) int) comparison {
		wide := func(a *Axes) *int64 { n := int64(of(a)); return &n }
		return comparison{name, floorCount, wide, func(a *Axes) string { return fmt.Sprint(of(a)) }}
	}
	tiers := func(name string, of func(*Axes) int64) comparison {
		return comparison{name, floorTierMS, func(a *Axes) *int64 { n := of(a); return &n }, func(a *Axes) string { return tierMinutes(of(a)) }}
	}
	return []comparison{
		times("detect", func(a *Axes) *int64 { return a.DetectMS }),
		times("decide", func(a *Axes) *int64 { return a.DecideMS }),
		times("effect", func(a *Axes) *int64 { return a.EffectMS }),
		times("stabilise", func(a *Axes) *int64 { return a.StabiliseMS }),
		times("recover", func(a *Axes) *int64 { return a.RecoverMS }),
		count("wrong role", func(a *Axes) int { return a.WrongRole }),
		count("blocked attempts", func(a *Axes) int { return a.Blocked }),
		tiers("tier too high", func(a *Axes) int64 { return a.OverTierMS }),
		tiers("tier too low", func(a *Axes) int64 { return a.UnderTierMS }),
		count("flaps", func(a *Axes) int { return a.Flaps }),
		count("recovery jumps", func(a *Axes) int { return a.Jumps }),
		cents("unscored", func(a *Axes) *int64 { return a.UnscoredCents }),
		cents("lost", func(a *Axes) *int64 { return a.LostCents }),
		{"customer impact", floorImpactMS, func(a *Axes) *int64 { return a.ImpactMS }, func(a *Axes) string { return impact(a.ImpactMS) }},
		count("acts skipped", func(a *Axes) int { return a.Skipped }),
	}
}
