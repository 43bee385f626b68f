package decisions

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Evaluate judges one request. It collects every reason, so that a person is
// not sent from one refusal to the next. The same inputs give the same verdict,
// in any order of readings, hosts and issued directives.
func Evaluate(b *policy.Bundle, w *model.World, r *model.Request) model.Verdict {
	if b == nil || w == nil || r == nil {
		return model.Verdict{Outcome: model.Denied, Reasons: []model.Reason{{Code: model.CodeUnknownRight}}}
	}
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

// someReasons is more than most refusals have: one allocation instead of three.
const someReasons = 4

func (e *evaluation) add(r model.Reason) {
	if e.v.Reasons == nil {
		e.v.Reasons = make([]model.Reason, 0, someReasons)
	}
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
	if code == "" && !e.known && e.v.Direction != model.Tighten {
		// A host may trust a newer policy that named the right. We are asked for our
		// own judgement, and without the row there are no bounds to judge by.
		code = model.CodeUnknownRight
	}
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

// tighten refuses only what would do nothing and look like an act: an ending of
// nothing, a freeze that is over. A shed that seems to be in force already may be
// given again: what we know of the fleet may be wrong.
func (e *evaluation) tighten() {
	if e.d.Kind == model.End {
		e.endsSomething()
	}
	e.windowIsOpen()
}

// endsSomething: of ids that we do not know we cannot say that they are nothing,
// and ending a bypass waits for no knowledge. Leaving something that makes the
// fleet stricter does: nobody can end what he has not seen.
func (e *evaluation) endsSomething() {
	ends := false
	for _, id := range e.d.IDs {
		known := e.issued(id)
		switch {
		case known == nil:
			ends = ends || e.v.Direction == model.Tighten
		case known.EndedAs() != e.d.Ends || known.Scope != e.d.Scope:
			// Hosts heed an ending only within its own kind and scope.
			e.add(model.Reason{Code: OtherThing, Name: id, Other: known.Scope})
			ends = true
		default:
			ends = true
		}
	}
	if !ends {
		e.add(model.Reason{Code: NothingToEnd, Name: string(e.d.Ends)})
	}
}

func (e *evaluation) issued(id string) *model.Directive {
	for i := range e.w.Issued {
		if e.w.Issued[i].Directive.ID == id {
			return &e.w.Issued[i].Directive
		}
	}
	return nil
}

// windowIsOpen: what has an absolute end must not have passed it.
func (e *evaluation) windowIsOpen() {
	if !e.d.NotAfter.IsZero() && !e.w.Now.Before(e.d.NotAfter) {
		e.add(model.Reason{Code: EndsSoon})
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
	var last *model.Directive // the one that lasts longest is what to wait for
	for i := range e.w.Issued {
		f := &e.w.Issued[i]
		if f.Directive.Kind == model.Freeze && f.LiveAt(e.w.Now) && overlap(f.Directive.Scope, e.d.Scope) &&
			(last == nil || later(f.Directive.NotAfter, f.Directive.ID, last.NotAfter, last.ID)) {
			last = &f.Directive
		}
	}
	if last != nil {
		e.add(model.Reason{Code: Frozen, Name: last.ID, At: last.NotAfter})
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
	if strings.TrimSpace(e.d.Reason) == "" {
		e.add(model.Reason{Code: NoReason})
	}
	e.windowIsOpen()
	if e.right.Bypass == nil {
		return
	}
	if used := usedToday(e.w, e.d); used >= e.right.Bypass.PerDay {
		e.add(model.Reason{Code: PerDay, N: int64(used), M: int64(e.right.Bypass.PerDay)})
	}
	worst := WorstCase(e.b, e.w, e.d)
	switch c := &e.d.Caps; {
	case c.Under.Minor < 1 || c.HostCount < 1 || c.HostTotal.Minor < 1 || c.Total.Minor < 1:
		e.add(model.Reason{Code: NoRoom}) // no directive can say it, so nobody must be asked to sign it
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
	tier, known := e.b.TierOf(c.Tier)
	left := remaining(c.Since, tier.Dwell, e.w.Now)
	if c.Ramp != nil {
		left = remaining(c.Ramp.Since, tier.RampStep, e.w.Now)
	}
	e.step(&c, &tier, left)
	if e.right.Blind {
		if strings.TrimSpace(e.r.Evidence) == "" {
			e.add(model.Reason{Code: NoEvidence})
		}
		return
	}
	if !known || len(tier.Leave) == 0 {
		// The ladder is not in force, or another one sheds that high: without a
		// condition there is nothing that could be known to be good.
		e.add(model.Reason{Code: NoExit, N: int64(c.Tier)})
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
		case reading.Value != reading.Value || holds(*signal.Abnormal, reading.Value):
			e.add(model.Reason{Code: SignalNotGood, Name: name, Wait: signal.Step})
		}
	}
	slices.SortFunc(e.v.Reasons, func(a, b model.Reason) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Name, b.Name))
	})
}
