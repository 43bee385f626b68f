package runbooks

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// names checks the words of a step that are defined elsewhere.
func (l *lint) names(i int) {
	s := &l.rb.Steps[i]
	if s.Role != "" {
		l.named(i, "role", "the trust root has no role", s.Role, l.known.Roles != nil, keysOf(l.known.Roles))
	}
	if s.Push != nil {
		l.push(i, "push", s.Push)
	}
	if s.Recover != nil {
		l.recovery(i, "recover", s.Recover)
	}
	if s.Undo == nil {
		return
	}
	if s.Undo.Push != nil {
		l.push(i, "undo.push", s.Undo.Push)
	}
	if s.Undo.Recover != nil {
		l.recovery(i, "undo.recover", s.Undo.Recover)
	}
}

// named says that a word is defined nowhere. It reports whether the word is fine.
func (l *lint) named(i int, path, what, word string, checked bool, known []string) bool {
	if !checked || slices.Contains(known, word) {
		return true
	}
	l.say(CodeUnknownName, i, path, "%s %s%s", what, quote(word), nearest(word, known))
	return false
}

func (l *lint) service(i int, path, scope string) bool {
	if scope == "" || scope == model.AnyScope {
		return true
	}
	return l.named(i, path, "the ladder has no service", scope, l.known.Services != nil, keysOf(l.known.Services))
}

func (l *lint) push(i int, path string, p *Push) {
	word, key := p.Backend, ".backend"
	if word == "" {
		word, key = p.Undo, ".undo"
	}
	l.named(i, path+key, "the policy has no backend", word, l.known.Backends != nil, keysOf(l.known.Backends))
}

// recovery checks a step of a recovery against the ladder and the matrix.
func (l *lint) recovery(i int, path string, r *Recover) {
	if !l.service(i, path+".scope", r.Scope) {
		return
	}
	from := r.To + 1
	if last, known := l.known.lastTier(r.Scope); known && from > last {
		l.say(CodeUnknownName, i, path+".to", "%s has %d tiers, so there is no tier %d to recover from", quote(r.Scope), last, from)
		return
	}
	if l.known.Rights == nil {
		return
	}
	role := l.rb.Steps[i].Role
	may := func(right policy.Right) bool {
		return right.Kind == model.End && right.Ends == model.Shed && covers(right.Scope, r.Scope) && (role == "" || right.Who == role) &&
			right.Tiers != nil && from >= right.Tiers.From && from <= right.Tiers.To
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(l.known.Rights)), may) {
		who := "anybody"
		if role != "" {
			who = "the role " + quote(role)
		}
		l.say(CodeWrongRole, i, path, "no right lets %s recover %s from tier %d", who, quote(r.Scope), from)
	}
}

func covers(scopes []string, scope string) bool {
	return slices.Contains(scopes, model.AnyScope) || slices.Contains(scopes, scope)
}

// act checks what a step does with a right.
func (l *lint) act(i int) {
	s := &l.rb.Steps[i]
	if s.Do != nil {
		l.do(i, "do", s.Do)
		if right, ok := l.known.Rights[s.Do.Right]; ok {
			l.lead(i, &right)
			l.effectOfShed(i, &right)
		}
	}
	if s.Undo != nil && s.Undo.Do != nil {
		l.do(i, "undo.do", s.Undo.Do)
	}
}

func (l *lint) do(i int, path string, d *Do) {
	if !l.named(i, path+".right", "the policy has no right", d.Right, l.known.Rights != nil, keysOf(l.known.Rights)) || l.known.Rights == nil {
		return
	}
	right := l.known.Rights[d.Right]
	if right.Kind == model.End && right.Ends == model.Shed {
		l.say(CodeOutsideRight, i, path+".right", "%s recovers; that is the step recover: {scope, to, percent}, which goes tier by tier", quote(d.Right))
		return
	}
	if role := l.rb.Steps[i].Role; role != "" && right.Who != role {
		l.say(CodeWrongRole, i, path+".right", "the role %s does not hold the right %s; the role %s does", quote(role), quote(d.Right), quote(right.Who))
	}
	l.service(i, path+".scope", d.Scope)
	if d.Feature != "" && d.Feature != model.AnyScope {
		l.named(i, path+".feature", "the policy has no feature", d.Feature, l.known.Features != nil, keysOf(l.known.Features))
	}
	if d.Control != "" {
		l.named(i, path+".control", "the policy has no control", d.Control, l.known.Controls != nil, keysOf(l.known.Controls))
	}
	l.belongs(i, path, d, &right)
	l.bounds(i, path, d, &right)
}

// belongs refuses what the kind of a right has no use for.
func (l *lint) belongs(i int, path string, d *Do, right *policy.Right) {
	for _, p := range []struct {
		key   string
		given bool
		kinds []model.Kind
	}{
		{"tier", d.Tier != 0, []model.Kind{model.Shed}},
		{"feature", d.Feature != "", []model.Kind{model.Off}},
		{"control", d.Control != "", []model.Kind{model.Bypass}},
		{"caps", !d.Under.IsZero(), []model.Kind{model.Bypass}},
		{"for", d.For != 0, []model.Kind{model.Bypass, model.Freeze, model.Ping}},
		{"target_ms", d.TargetMS != 0, []model.Kind{model.Dimmer}},
		{"floor", d.Floor != 0, []model.Kind{model.Dimmer}},
		{"ceiling", d.Ceiling != 0, []model.Kind{model.Dimmer}},
	} {
		if p.given && !slices.Contains(p.kinds, right.Kind) {
			l.say(CodeOutsideRight, i, path+"."+p.key, "%s has no use for %q: it is of the kind %s", quote(d.Right), p.key, right.Kind)
		}
	}
	if right.Kind == model.Off && right.Feature == model.AnyScope && d.Feature == "" {
		l.say(CodeOutsideRight, i, path, "%s switches off any feature; say which: feature", quote(d.Right))
	}
}

// bounds refuses what the right would not permit at any moment.
func (l *lint) bounds(i int, path string, d *Do, right *policy.Right) {
	over := func(key, format string, args ...any) { l.say(CodeOutsideRight, i, path+"."+key, format, args...) }
	if d.Scope != "" && !covers(right.Scope, d.Scope) {
		over("scope", "the right %s covers %s, not %s", quote(d.Right), strings.Join(right.Scope, ", "), quote(d.Scope))
	}
	if t := right.Tiers; d.Tier != 0 && t != nil && (d.Tier < t.From || d.Tier > t.To) {
		over("tier", "the right %s covers tiers %d to %d, not %d", quote(d.Right), t.From, t.To, d.Tier)
	}
	if role, ok := l.known.Roles[right.Who]; ok && d.Tier > role.MaxTier && right.Kind == model.Shed {
		over("tier", "the role %s goes to tier %d at most, not %d", quote(right.Who), role.MaxTier, d.Tier)
	}
	if right.Kind == model.Off && d.Feature != "" && right.Feature != model.AnyScope && d.Feature != right.Feature {
		over("feature", "the right %s switches off %s, not %s", quote(d.Right), quote(right.Feature), quote(d.Feature))
	}
	lasts := right.Lasts
	if b := right.Bypass; b != nil {
		lasts = b.Lasts
		if d.Control != "" && d.Control != b.Control {
			over("control", "the right %s weakens %s, not %s", quote(d.Right), quote(b.Control), quote(d.Control))
		}
		if !d.Under.IsZero() && (d.Under.Currency != b.Under.Currency || d.Under.Minor > b.Under.Minor) {
			over("caps.under", "the right %s caps an item at %s, not at %s", quote(d.Right), b.Under, d.Under)
		}
	}
	if d.For > lasts && lasts > 0 {
		over("for", "the right %s lasts %s at most, not %s", quote(d.Right), lasts, d.For)
	}
	if m := right.Dimmer; m != nil {
		l.dimmer(i, path, d, m)
	}
}

func (l *lint) dimmer(i int, path string, d *Do, m *policy.Dimmer) {
	for _, b := range []struct {
		key              string
		value, from, to_ int
	}{{"target_ms", d.TargetMS, m.TargetMS.From, m.TargetMS.To}, {"floor", d.Floor, m.Floor, m.Ceiling}, {"ceiling", d.Ceiling, m.Floor, m.Ceiling}} {
		if b.value != 0 && (b.value < b.from || b.value > b.to_) {
			l.say(CodeOutsideRight, i, path+"."+b.key, "the right %s covers %d to %d, not %d", quote(d.Right), b.from, b.to_, b.value)
		}
	}
}

// lead: what needs a second signature starts only after its lead, and a timeout
// below that is over before anything can have happened.
func (l *lint) lead(i int, right *policy.Right) {
	s := &l.rb.Steps[i]
	if lead := right.LeadTime(); lead > 0 && s.Timeout > 0 && s.Timeout <= lead {
		l.say(CodeLead, i, "timeout", "%s wants %d more of %s and starts %s after the proposal; a timeout of %s is over before it can have begun",
			quote(s.Do.Right), right.Cosign.Count, quote(right.Cosign.Of), lead, s.Timeout)
	}
}

// effectOfShed: a shed to a tier that changes nothing for its scope gives the
// feeling of having acted.
func (l *lint) effectOfShed(i int, right *policy.Right) {
	d := l.rb.Steps[i].Do
	if right.Kind != model.Shed || d.Tier == 0 {
		return
	}
	if last, known := l.known.lastTier(d.Scope); known && d.Tier > last {
		what := fmt.Sprintf("%s knows %d tiers and stays at its last", quote(d.Scope), last)
		if d.Scope == "" || d.Scope == model.AnyScope {
			what = fmt.Sprintf("the ladder has %d tiers", last)
		}
		l.say(CodeNoEffect, i, "do.tier", "%s: a shed to %d does nothing there", what, d.Tier)
		return
	}
	if l.known.Features == nil || d.Scope == "" || d.Scope == model.AnyScope {
		return
	}
	touched, any := false, false
	for _, f := range l.known.Features {
		if f.Service != d.Scope {
			continue
		}
		any = true
		for tier := 1; tier <= d.Tier; tier++ {
			touched = touched || f.Tiers[tier] != "" && f.Tiers[tier] != policy.NoChange
		}
	}
	if any && !touched {
		l.say(CodeNoEffect, i, "do.tier", "up to tier %d no feature of %s changes: a shed there does nothing that a user could see", d.Tier, quote(d.Scope))
	}
}
