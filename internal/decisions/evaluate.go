package decisions

import (
	"slices"

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
	v := model.Verdict{Outcome: model.Permitted, Direction: b.Direction(&r.Directive), Assurance: AssuranceOf(b, w)}
	e := evaluation{b: b, w: w, r: r, d: &r.Directive, v: &v}
	e.right, e.domain, e.known = b.Right(r.Directive.Right)
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
	b      *policy.Bundle
	w      *model.World
	r      *model.Request
	d      *model.Directive
	v      *model.Verdict
	right  policy.Right
	domain policy.Domain
	known  bool
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

// missing counts the co-signatures that are still wanted, at least one: it is
// asked for when there are too few.
func (e *evaluation) missing() int64 {
	return int64(max(lacking(e.b, e.right.Cosign, e.r.Actor, e.r.Cosigners), 1))
}

// lacking is how many people besides the requester have still to sign: names are
// counted once, and only those of the group.
func lacking(b *policy.Bundle, cosign policy.Cosign, requester string, signers []string) int {
	n := cosign.Count
	for i, name := range signers {
		if name != requester && !slices.Contains(signers[:i], name) && b.Root.InGroup(cosign.Of, name) {
			n--
		}
	}
	return n
}

// dynamic holds what only the console can know. Tightening asks for nothing of
// it: no signals, no lease, no durable log, no fit clock.
func (e *evaluation) dynamic() {
	switch e.v.Direction {
	case model.Tighten:
		e.tighten()
	case model.Recover:
		e.command()
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
// given again: what we know of the fleet may be wrong. A freeze holds machines
// also when they would shed: it stops every automatic move, and no person.
func (e *evaluation) tighten() {
	switch e.d.Kind {
	case model.Shed, model.Off, model.Dimmer:
		if IsMachine(e.b, e.r.Actor) {
			e.freeze()
		}
	}
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

// covers reports whether a list of scopes holds one.
func covers(scopes []string, scope string) bool {
	return slices.Contains(scopes, model.AnyScope) || slices.Contains(scopes, scope)
}

func overlap(a, b string) bool { return a == b || a == model.AnyScope || b == model.AnyScope }
