package decisions

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Evaluate judges one request. It collects every reason, so that a person is
// not sent from one refusal to the next. The same inputs give the same verdict,
// in any order of readings, hosts and issued directives.
func Evaluate(b *policy.Bundle, w *model.World, r *model.Request) model.Verdict {
	v := model.Verdict{Outcome: model.Permitted, Direction: b.Direction(&r.Directive), Assurance: model.HostHeld}
	e := evaluation{b: b, w: w, r: r, d: &r.Directive, v: &v}
	e.right, _, e.known = b.Right(r.Directive.Right)
	if r.Directive.IsRecovery() && r.Directive.From == 0 {
		e.add(model.Reason{Code: NothingToEnd, Name: string(model.Shed)})
		return v
	}
	e.static()
	e.dynamic()
	return v
}

// evaluation is the state of one Evaluate call.
type evaluation struct {
	b     *policy.Bundle
	w     *model.World
	r     *model.Request
	d     *model.Directive
	v     *model.Verdict
	right policy.Right
	known bool
}

func (e *evaluation) add(r model.Reason) {
	e.v.Reasons = append(e.v.Reasons, r)
	switch {
	case !soft[r.Code]:
		e.v.Outcome = model.Denied
	case e.v.Outcome == model.Permitted:
		e.v.Outcome = model.Needs
	}
}

// static asks Admit, as every host will, and gives its code the arguments that
// a person needs.
func (e *evaluation) static() {
	if e.w.Mode == model.ReadOnly {
		e.add(model.Reason{Code: IsReadOnly})
	}
	code := e.b.AdmitNamed(e.d, e.r.Actor, e.r.Cosigners, e.w.Now)
	if code == "" {
		return
	}
	reason := model.Reason{Code: code}
	switch code {
	case model.CodeUnknownRight, model.CodeInactiveDomain:
		reason.Name = e.d.Right
	case model.CodeUnknownKey:
		reason.Name = e.r.Actor
	case model.CodeWrongRole:
		reason.Other = e.right.Who
	case model.CodeQuorum:
		reason.N, reason.Other = e.missing(), e.right.Cosign.Of
	case model.CodeOutOfScope:
		reason.Name = e.d.Scope
	case model.CodeOverTier:
		if e.right.Tiers != nil {
			reason.N, reason.M = int64(e.right.Tiers.From), int64(e.right.Tiers.To)
		}
	case model.CodeOverDuration:
		reason.Wait = e.right.Lasts
		if e.right.Bypass != nil {
			reason.Wait = e.right.Bypass.Lasts
		}
	case model.CodeUnknownFeature:
		reason.Name = e.d.Feature
	case model.CodeUnknownControl:
		reason.Name = e.d.Control
	case model.CodeForeignFleet:
		reason.Name = e.d.Fleet
	}
	e.add(reason)
}

// missing counts the co-signatures that are still wanted.
func (e *evaluation) missing() int64 {
	n := e.right.Cosign.Count
	for i, name := range e.r.Cosigners {
		if name != e.r.Actor && !slices.Contains(e.r.Cosigners[:i], name) && e.b.Root.InGroup(e.right.Cosign.Of, name) {
			n--
		}
	}
	return int64(max(n, 1))
}

// dynamic holds what only the console can know. Tightening asks for nothing of
// it: no signals, no lease, no durable log, no fit clock.
func (e *evaluation) dynamic() {
	switch e.v.Direction {
	case model.Tighten:
		e.tighten()
	case model.Recover:
		e.lease()
		e.freeze()
		e.recover()
	case model.Loosen:
		e.lease()
		e.freeze()
		e.loosen()
	}
}

// tighten refuses only an ending of nothing. A shed that seems to be in force
// already may be given again: what we know of the fleet may be wrong.
func (e *evaluation) tighten() {
	if e.d.Kind == model.End {
		e.endsSomething()
	}
}

func (e *evaluation) endsSomething() {
	if len(e.d.IDs) == 0 {
		e.add(model.Reason{Code: NothingToEnd, Name: string(e.d.Ends)})
	}
}

func (e *evaluation) lease() {
	l := e.w.Incident.Lease
	if l.Held(e.r.Actor, e.w.Now) {
		return
	}
	reason := model.Reason{Code: NoLease}
	if e.w.Now.Before(l.Until) {
		reason.Name = l.Holder
	}
	e.add(reason)
}

// freeze binds recoveries and loosenings, except the end of the freeze itself.
func (e *evaluation) freeze() {
	if e.d.Kind == model.End && e.d.Ends == model.Freeze {
		return
	}
	for i := range e.w.Issued {
		f := &e.w.Issued[i]
		if f.Directive.Kind == model.Freeze && f.LiveAt(e.w.Now) && overlap(f.Directive.Scope, e.d.Scope) {
			e.add(model.Reason{Code: Frozen, Name: f.Directive.ID, At: f.Directive.NotAfter})
			return
		}
	}
}

func overlap(a, b string) bool { return a == b || a == model.AnyScope || b == model.AnyScope }

func (e *evaluation) loosen() {
	if !e.w.Durable {
		e.add(model.Reason{Code: NotDurable})
	}
	if e.w.Clock == model.ClockUnsynced || e.w.Clock == model.ClockBehind {
		e.add(model.Reason{Code: model.CodeClockUnfit})
	}
	if e.d.Reason == "" {
		e.add(model.Reason{Code: NoReason})
	}
	if e.right.Bypass == nil {
		return
	}
	if e.d.NotAfter.Before(e.w.Now) {
		e.add(model.Reason{Code: EndsSoon})
	}
	if used := usedToday(e.w, e.d.Right, e.d.NotBefore); used >= e.right.Bypass.PerDay {
		e.add(model.Reason{Code: PerDay, N: int64(used), M: int64(e.right.Bypass.PerDay)})
	}
	worst := WorstCase(e.b, e.w, e.d)
	switch {
	case worst.Hosts == 0:
		e.add(model.Reason{Code: NoInventory})
	case worst.WorstCase.Minor > worst.Total.Minor:
		e.add(model.Reason{Code: OverTotal, Amount: worst.WorstCase, Limit: worst.Total})
	}
}

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
	tier, _ := e.b.TierOf(c.Tier)
	left := remaining(c.Since, tier.Dwell, e.w.Now)
	if c.Ramp != nil {
		left = remaining(c.Ramp.Since, tier.RampStep, e.w.Now)
	}
	e.step(&c, &tier, left)
	if e.right.Blind {
		if e.r.Evidence == "" {
			e.add(model.Reason{Code: NoEvidence})
		}
		return
	}
	e.leaveConditions(&tier)
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
	for _, id := range c.Live {
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
// The last known good does not count, and a gap is a gap.
func (e *evaluation) leaveConditions(tier *policy.Tier) {
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
		if !heldFor(&reading, c, e.w.Now) {
			e.add(model.Reason{Code: SignalNotGood, Name: c.Signal, Wait: c.For})
		}
	}
}

// gapSteps is how many steps may lie between two samples of one unbroken window.
const gapSteps = 3

// heldFor reports whether a condition held for its whole window up to now.
func heldFor(r *model.Reading, c *policy.Condition, now time.Time) bool {
	if !holds(c.Threshold, r.Value) {
		return false
	}
	gap := max(r.Step.Std(), time.Second) * gapSteps
	start, last := now.Add(-c.For.Std()), now
	for i := len(r.History) - 1; i >= 0 && last.After(start); i-- {
		s := r.History[i]
		if s.At.After(last) {
			continue
		}
		if last.Sub(s.At) > gap || !holds(c.Threshold, s.Value) {
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

// nothingAbnormal is what switching a feature on or ending a freeze needs: every
// signal known, none beyond its threshold.
func (e *evaluation) nothingAbnormal() {
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
		case reading.Value != reading.Value || holds(*signal.Abnormal, reading.Value):
			e.add(model.Reason{Code: SignalNotGood, Name: name, Wait: signal.Step})
		}
	}
	slices.SortFunc(e.v.Reasons, byName)
}

func byName(a, b model.Reason) int {
	switch {
	case a.Code != b.Code && a.Code < b.Code:
		return -1
	case a.Code != b.Code:
		return 1
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}
