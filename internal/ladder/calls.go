package ladder

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// call is whether a tier is called for.
type call struct {
	tier   *policy.Tier
	held   bool    // by values
	blind  bool    // by values and by signals that are missing; never above the tier that the policy lets blindness enter
	causes []Cause // the conditions behind it
}

// callOf counts the conditions of a tier that held for their whole windows. One
// whose signal has been missing as long may hold as well: it counts where
// blindness may enter the tier, and nowhere else.
func (l *look) callOf(tier *policy.Tier) call {
	c := call{tier: tier}
	held, missing := 0, 0
	for i := range tier.Enter {
		cond := &tier.Enter[i]
		r, known := l.w.Readings[cond.Signal]
		switch {
		case known && decisions.Held(&r, cond, l.now):
			held++
			c.causes = append(c.causes, l.causeOf(cond, "beyond"))
		case l.blindFor(cond):
			missing++
			c.causes = append(c.causes, l.causeOf(cond, "missing"))
		case known && r.State == model.ReadingValue && decisions.Beyond(cond.Threshold, r.Value):
			l.againWhole(&r, cond)
		}
	}
	needs := tier.EnterNeeds
	c.held = needs >= 1 && held >= needs
	c.blind = needs >= 1 && held+missing >= needs && tier.Tier <= min(l.b.Automatic.Blind, maxBlind)
	if c.held || !c.blind {
		c.causes = slices.DeleteFunc(c.causes, func(one Cause) bool { return one.Is == "missing" })
	}
	return c
}

// maxBlind is the highest tier that missing signals alone may enter, whatever a
// policy says.
const maxBlind = 1

// blindFor reports whether a signal has been missing for a whole window.
func (l *look) blindFor(c *policy.Condition) bool {
	if r, known := l.w.Readings[c.Signal]; known && r.State == model.ReadingValue {
		return false
	}
	since, watched := l.Blind[c.Signal]
	if !watched {
		return false
	}
	l.again(since.Add(c.For.Std()))
	return l.now.Sub(since) >= c.For.Std()
}

// finer is into how many parts the last step of a window is cut: a condition began
// to hold somewhere between two samples, and is whole as much earlier.
const finer = 5

// againWhole asks for a look when a condition may have held for its whole window:
// at the earliest, and from then on every part of a step until at the latest.
func (l *look) againWhole(r *model.Reading, c *policy.Condition) {
	step := max(r.Step.Std(), time.Second)
	latest := beyondSince(r, c.Threshold).Add(c.For.Std())
	earliest := latest.Add(-step)
	if part := l.now.Add(max(step/finer, time.Second)); part.After(earliest) {
		earliest = part
	}
	if earliest.After(latest) {
		earliest = latest
	}
	l.again(earliest)
}

// beyondSince is the first sample of the unbroken run up to now: only a hint when
// to look again.
func beyondSince(r *model.Reading, t policy.Threshold) time.Time {
	since := r.At
	for _, s := range slices.Backward(r.History) {
		if !decisions.Beyond(t, s.Value) {
			break
		}
		since = s.At
	}
	return since
}

// callsFor reports whether anything in the window for leaving a tier called for
// it, or for a higher one: the worst that was recommended counts, and what is not
// known now might be the worst.
func (l *look) callsFor(leaving *policy.Tier) bool {
	window := time.Duration(0)
	for _, c := range leaving.Leave {
		window = max(window, c.For.Std())
	}
	for _, c := range l.calls {
		if c.tier.Tier < leaving.Tier {
			continue
		}
		for i := range c.tier.Enter {
			if l.calledBy(&c.tier.Enter[i], window) {
				l.because("leaving tier " + number(leaving.Tier) + " waits: " + c.tier.Enter[i].Signal + " has called for tier " + number(c.tier.Tier) + " within " + model.Duration(window).String() + ", or is not known")
				return true
			}
		}
	}
	return false
}

func (l *look) calledBy(c *policy.Condition, window time.Duration) bool {
	r, known := l.w.Readings[c.Signal]
	if !known || r.State != model.ReadingValue || decisions.Beyond(c.Threshold, r.Value) {
		return true
	}
	from := l.now.Add(-window)
	return slices.ContainsFunc(r.History, func(s model.Sample) bool {
		return !s.At.Before(from) && decisions.Beyond(c.Threshold, s.Value)
	})
}

// brokenSteps is for how many steps a condition for leaving is broken before a
// ramp is halted: one sample out of line delays the next step and no more.
const brokenSteps = 2

// broken lists the conditions for leaving that a ramp under way fails by values.
func (l *look) broken(chain *decisions.Chain) []Cause {
	tier, known := l.b.TierOf(chain.Tier)
	if chain.Ramp == nil || !known {
		return nil
	}
	var out []Cause
	for i := range tier.Leave {
		c := &tier.Leave[i]
		if r, ok := l.w.Readings[c.Signal]; ok && failing(&r, c.Threshold, l.now) {
			out = append(out, l.causeOf(c, "outside"))
		}
	}
	return out
}

// failing: the value, and every sample of the last steps, are on the wrong side.
func failing(r *model.Reading, t policy.Threshold, now time.Time) bool {
	if r.State != model.ReadingValue || decisions.Beyond(t, r.Value) {
		return false
	}
	from, samples := now.Add(-brokenSteps*max(r.Step.Std(), time.Second)), 0
	for _, s := range slices.Backward(r.History) {
		if s.At.Before(from) {
			break
		}
		if decisions.Beyond(t, s.Value) {
			return false
		}
		samples++
	}
	return samples >= brokenSteps
}
