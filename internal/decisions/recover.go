package decisions

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func (e *evaluation) recover() {
	if !e.d.IsRecovery() {
		e.endsSomething()
		e.nothingAbnormal()
		return
	}
	c := ChainOf(e.w, e.d.Scope)
	if c.Tier == 0 {
		e.add(model.Reason{Code: NothingToEnd, Name: string(model.Shed)})
		return
	}
	soak := e.scheduled(c.Tier)
	e.rehearsed()
	tier, known := e.b.TierOf(c.Tier)
	left := remaining(c.Since, tier.Dwell, e.w.Now)
	if c.Ramp != nil {
		left = remaining(c.Since, tier.RampStep, e.w.Now)
	}
	e.step(&c, &tier, left)
	if e.right.Blind {
		if strings.TrimSpace(e.r.Evidence) == "" {
			e.add(model.Reason{Code: NoEvidence})
		}
		return
	}
	if c.Unseen != "" && e.v.Assurance == model.HostHeld {
		e.add(model.Reason{Code: Unseen, Name: c.Unseen})
	}
	if !known || len(tier.Leave) == 0 {
		// The ladder is not in force, or another one sheds that high: without a
		// condition there is nothing that could be known to be good.
		e.add(model.Reason{Code: NoExit, N: int64(c.Tier)})
		return
	}
	e.leaveConditions(&tier, soak)
}

// step checks that the request is exactly the next step and that its time has
// come.
func (e *evaluation) step(c *Chain, tier *policy.Tier, left time.Duration) {
	d := e.d
	if d.From != c.Tier {
		e.add(model.Reason{Code: NotThatTier, N: int64(d.From), M: int64(c.Tier)})
		return
	}
	if d.From-d.To != 1 {
		e.add(model.Reason{Code: OneTier, N: int64(d.From), M: int64(d.To), Wait: model.Duration(left)})
		return
	}
	// All of the chain, not only what is live: a host that has missed a step still
	// holds what that step has ended.
	for _, id := range c.IDs {
		if !slices.Contains(d.IDs, id) {
			e.add(model.Reason{Code: IncompleteChain, Name: id})
		}
	}
	next := nextPercent(tier.Ramp, c.Ramp)
	if d.Percent != next {
		e.add(model.Reason{Code: NotNextPercent, N: int64(d.Percent), M: int64(next)})
	}
	if c.Ramp != nil && d.Ramp != c.Ramp.ID {
		e.add(model.Reason{Code: OtherRamp, Name: c.Ramp.ID})
	}
	switch {
	case left <= 0:
	case c.Ramp != nil:
		e.add(model.Reason{Code: RampStep, Wait: model.Duration(left), N: int64(c.Ramp.Percent), M: int64(next)})
	default:
		e.add(model.Reason{Code: Dwell, Wait: model.Duration(left), N: int64(c.Tier)})
	}
}

// remaining is rounded up to whole seconds: a wait that is said is long enough.
func remaining(since time.Time, least model.Duration, now time.Time) time.Duration {
	left := since.Add(least.Std()).Sub(now)
	if whole := left.Truncate(time.Second); whole < left {
		return whole + time.Second
	}
	return left
}

// leaveConditions wants every reading of every window of the tier to be good.
// The last known good does not count, and a gap is a gap. Soak lengthens windows
// that are shorter.
func (e *evaluation) leaveConditions(tier *policy.Tier, soak model.Duration) {
	for i := range tier.Leave {
		c := &tier.Leave[i]
		reading, ok := e.w.Readings[c.Signal]
		if !ok {
			e.add(model.Reason{Code: SignalUnknown, Name: c.Signal, Other: string(model.ReadingNoData)})
			continue
		}
		if reading.State != model.ReadingValue {
			e.add(model.Reason{Code: SignalUnknown, Name: c.Signal, Other: string(reading.State)})
			continue
		}
		if window := max(c.For, soak); !heldFor(&reading, c.Threshold, window, e.w.Now) {
			e.add(model.Reason{Code: SignalNotGood, Name: c.Signal, Wait: window})
		}
	}
}

// gapSteps is how many steps may lie between two samples of one unbroken window.
const gapSteps = 3

// Held reports whether a condition held for its whole window up to now: every
// sample is there and beyond the threshold, and so is the value. Anything but a
// value never does.
func Held(r *model.Reading, c *policy.Condition, now time.Time) bool {
	return r.State == model.ReadingValue && heldFor(r, c.Threshold, c.For, now)
}

// Beyond reports whether a number is beyond a threshold. NaN is beyond none.
func Beyond(t policy.Threshold, v float64) bool { return holds(t, v) }

// heldFor reports whether a condition held for its whole window up to now.
func heldFor(r *model.Reading, t policy.Threshold, window model.Duration, now time.Time) bool {
	if !holds(t, r.Value) {
		return false
	}
	gap := max(r.Step.Std(), time.Second) * gapSteps
	start, last := now.Add(-window.Std()), now
	for i := len(r.History) - 1; i >= 0 && last.After(start); i-- {
		s := r.History[i]
		if s.At.After(last) {
			continue
		}
		if last.Sub(s.At) > gap || !holds(t, s.Value) {
			return false
		}
		last = s.At
	}
	// What is older than the window does not matter; what is missing does.
	return last.Sub(start) <= gap
}

// holds is false for NaN, whichever way the comparison points.
func holds(t policy.Threshold, v float64) bool {
	switch {
	case t.Above != nil && t.Below == nil:
		return v > *t.Above
	case t.Below != nil && t.Above == nil:
		return v < *t.Below
	default:
		return false
	}
}

// within reports whether a value is known to be on the good side of a threshold:
// one that cannot be compared, on either side, is not.
func within(t policy.Threshold, v float64) bool {
	switch {
	case t.Above != nil && t.Below == nil:
		return v <= *t.Above
	case t.Below != nil && t.Above == nil:
		return v >= *t.Below
	default:
		return false
	}
}

// nothingAbnormal is what switching a feature on or ending a freeze needs: every
// signal known, none beyond its threshold.
func (e *evaluation) nothingAbnormal() {
	if len(e.b.Signals) == 0 {
		e.add(model.Reason{Code: NoExit})
		return
	}
	for name, signal := range e.b.Signals {
		if signal.Abnormal == nil {
			continue
		}
		reading, ok := e.w.Readings[name]
		switch {
		case !ok:
			e.add(model.Reason{Code: SignalUnknown, Name: name, Other: string(model.ReadingNoData)})
		case reading.State != model.ReadingValue:
			e.add(model.Reason{Code: SignalUnknown, Name: name, Other: string(reading.State)})
		case !within(*signal.Abnormal, reading.Value):
			e.add(model.Reason{Code: SignalNotGood, Name: name, Wait: signal.Step})
		}
	}
	slices.SortFunc(e.v.Reasons, func(a, b model.Reason) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Name, b.Name))
	})
}
