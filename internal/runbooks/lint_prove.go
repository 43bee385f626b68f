package runbooks

import (
	"github.com/degradedmode/ic/internal/model"
)

// proves refuses a probe that asks for something else than what its step does: it
// never holds, or holds whether the step has worked or not.
func (l *lint) proves(i int) {
	s := &l.rb.Steps[i]
	switch c := s.Probe; {
	case c == nil || s.Push != nil:
	case c.Tier != nil && s.Recover != nil:
		l.provesTier(i, s.Recover.Scope, s.Recover.To)
		if p := s.Recover.Percent; p < percentMax {
			l.say(CodeNeverAnswers, i, "probe.tier", "with %d percent of the hosts at tier %d no scope is at one tier; ask for what this step has reached: {reach: {at_least: 95}}", p, s.Recover.To)
		}
	case c.Tier != nil && s.Do != nil:
		if right, known := l.known.Rights[s.Do.Right]; known && right.Kind != model.Shed {
			l.say(CodeNeverAnswers, i, "probe.tier", "%s moves no tier, so a tier does not prove it", quote(s.Do.Right))
		} else if s.Do.Tier > 0 {
			l.provesTier(i, s.Do.Scope, s.Do.Tier)
		}
	case c.Bypass != nil && s.Recover != nil:
		l.say(CodeNeverAnswers, i, "probe.bypass", "a recovery neither opens nor closes a control, so a control does not prove it")
	case c.Bypass != nil && s.Do != nil:
		l.provesBypass(i)
	}
}

// provesTier holds the tier of a probe against the one that its step goes to.
func (l *lint) provesTier(i int, scope string, to int) {
	c := l.rb.Steps[i].Probe.Tier
	if scope != "" && scope != model.AnyScope && c.Scope != model.AnyScope && c.Scope != scope {
		l.say(CodeNeverAnswers, i, "probe.tier.scope", "the step moves %s, and %s does not prove it", quote(scope), quote(c.Scope))
		return
	}
	if last, known := l.known.lastTier(c.Scope); known && c.Scope != model.AnyScope {
		to = min(to, last)
	}
	if c.Is != to {
		l.say(CodeNeverAnswers, i, "probe.tier.is", "the step brings %s to tier %d, and tier %d does not prove it", quote(c.Scope), to, c.Is)
	}
}

// provesBypass holds the control of a probe against the right of its step.
func (l *lint) provesBypass(i int) {
	s := &l.rb.Steps[i]
	c := s.Probe.Bypass
	right, known := l.known.Rights[s.Do.Right]
	if !known {
		return
	}
	opens := right.Kind == model.Bypass && right.Bypass != nil
	closes := right.Kind == model.End && right.Ends == model.Bypass
	switch {
	case !opens && !closes:
		l.say(CodeNeverAnswers, i, "probe.bypass", "%s neither opens nor closes a control, so a control does not prove it", quote(s.Do.Right))
	case opens && c.Control != right.Bypass.Control:
		l.say(CodeNeverAnswers, i, "probe.bypass.control", "%s opens %s, and %s does not prove it", quote(s.Do.Right), quote(right.Bypass.Control), quote(c.Control))
	case opens && c.Is == BypassClosed:
		l.say(CodeNeverAnswers, i, "probe.bypass.is", "%s opens the control, so it is proved by open", quote(s.Do.Right))
	case closes && c.Is == BypassOpen:
		l.say(CodeNeverAnswers, i, "probe.bypass.is", "%s closes the control, so it is proved by closed", quote(s.Do.Right))
	}
}

// undoes refuses an undo that takes back nothing of what its step does.
func (l *lint) undoes(i int) {
	s := &l.rb.Steps[i]
	u := s.Undo
	switch {
	case u == nil:
	case s.Push != nil && s.Push.Backend != "" && (u.Push == nil || u.Push.Undo != s.Push.Backend):
		l.say(CodeUndoOther, i, "undo", "the undo of this push is {push: {undo: %s}}; another one would leave the override where it is", s.Push.Backend)
	case s.Recover != nil && u.Recover != nil:
		l.say(CodeUndoOther, i, "undo.recover", "a recovery is not taken back by a recovery; shed again to the tier that it left")
	case s.Do != nil && u.Recover != nil && s.Do.Scope != "" && u.Recover.Scope != s.Do.Scope:
		l.say(CodeUndoOther, i, "undo.recover.scope", "the step sheds %s, and a recovery of %s ends nothing of that", quote(s.Do.Scope), quote(u.Recover.Scope))
	case s.Do != nil && u.Do != nil:
		l.undoesDo(i)
	}
}

func (l *lint) undoesDo(i int) {
	do, undo := *l.rb.Steps[i].Do, *l.rb.Steps[i].Undo.Do
	act, knownAct := l.known.Rights[do.Right]
	back, knownBack := l.known.Rights[undo.Right]
	do.Reason, undo.Reason = "", ""
	switch {
	case do == undo:
		l.say(CodeUndoOther, i, "undo.do", "this is the step itself once more, and takes nothing back")
	case !knownAct || !knownBack || act.Kind == model.Dimmer || act.Kind == model.End:
	case back.Kind == act.Kind:
		l.say(CodeUndoOther, i, "undo.do.right", "%s does what the step does, of the kind %s, and takes nothing back", quote(undo.Right), back.Kind)
	case back.Kind == model.End && back.Ends != act.Kind && back.Ends != model.Shed: // of a recovery it is said that it has a step of its own
		l.say(CodeUndoOther, i, "undo.do.right", "%s ends what is of the kind %s, and the step is of the kind %s", quote(undo.Right), back.Ends, act.Kind)
	}
}
