package runbooks

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// rung is where a scope stands as far as the steps above say.
type rung struct {
	tier    int
	percent int // of hosts that are there already; the others are one higher
}

// climb is one way down: a scope and the tier that its ramp leads to.
type climb struct {
	scope string
	to    int
}

// standing is what is known before a step: where scopes stand, by what all ways
// agree on, and which ramps have begun on any of them.
type standing struct {
	at    map[string]rung
	begun map[climb]bool
}

// recoveries checks that recoveries go down one tier at a time and ramp by ramp,
// from the first step of each.
func (l *lint) recoveries() {
	in := make([]*standing, len(l.rb.Steps)+1)
	in[0] = &standing{at: map[string]rung{}, begun: map[climb]bool{}}
	for i := range l.rb.Steps {
		l.undoesRamp(i)
		if in[i] == nil {
			continue // unreachable
		}
		after := l.after(i, in[i])
		for _, e := range l.quietEdges(i) {
			state := after
			if e.timeout && l.rb.Steps[i].Kind.HasEffect() {
				state.at = map[string]rung{} // nobody knows how far it came
			}
			in[e.to] = agreed(in[e.to], state)
		}
	}
}

// quietEdges are the edges without saying again what is wrong with them.
func (l *lint) quietEdges(i int) []edge {
	before := len(l.found)
	out := l.edges(i)
	l.found = l.found[:before]
	return out
}

func agreed(a *standing, b standing) *standing {
	if a == nil {
		return &standing{at: maps.Clone(b.at), begun: maps.Clone(b.begun)}
	}
	maps.DeleteFunc(a.at, func(scope string, r rung) bool { return b.at[scope] != r })
	maps.Copy(a.begun, b.begun)
	return a
}

// after is what is known after a step.
func (l *lint) after(i int, in *standing) standing {
	s, out := &l.rb.Steps[i], standing{at: maps.Clone(in.at), begun: maps.Clone(in.begun)}
	switch {
	case s.Do != nil && s.Do.Tier > 0:
		if s.Do.Scope == model.AnyScope {
			clear(out.at)
		}
		out.at[s.Do.Scope] = rung{s.Do.Tier, percentMax}
	case s.Do != nil:
		if right, ok := l.known.Rights[s.Do.Right]; !ok || right.Kind == model.Shed || right.Kind == model.End {
			clear(out.at)
		}
	case s.Recover != nil:
		r := s.Recover
		if ramp, ok := l.rampStep(i, "recover", r); ok {
			l.inOrder(i, in, ramp)
		}
		out.at[r.Scope] = rung{r.To, r.Percent}
		out.begun[climb{r.Scope, r.To}] = true
	}
	return out
}

// rampStep wants a percentage that the tier being left has in its ramp, and
// returns that ramp; empty without a ladder.
func (l *lint) rampStep(i int, path string, r *Recover) (ramp []int, ok bool) {
	for _, t := range l.known.Tiers {
		if t.Tier == r.To+1 {
			ramp = t.Ramp
		}
	}
	if len(ramp) == 0 || slices.Contains(ramp, r.Percent) {
		return ramp, true
	}
	steps := make([]string, len(ramp))
	for k, p := range ramp {
		steps[k] = strconv.Itoa(p)
	}
	l.say(CodeRecoverOrder, i, path+".percent", "%d is no step of the ramp out of tier %d, which is %s", r.Percent, r.To+1, strings.Join(steps, ", "))
	return ramp, false
}

// inOrder wants the step of the ramp that comes next after what is known; where
// nothing is, and no way has begun the ramp, its first.
func (l *lint) inOrder(i int, in *standing, ramp []int) {
	r := l.rb.Steps[i].Recover
	at, known := in.at[r.Scope]
	switch {
	case known && at.percent < percentMax && r.To == at.tier && r.Percent <= at.percent:
		l.say(CodeRecoverOrder, i, "recover.percent", "%d percent are at tier %d already; a ramp only rises", at.percent, at.tier)
	case known && at.percent < percentMax && r.To == at.tier:
		if k := slices.Index(ramp, at.percent) + 1; k > 0 && k < len(ramp) && ramp[k] != r.Percent {
			l.say(CodeRecoverOrder, i, "recover.percent", "after %d percent the ramp out of tier %d goes to %d, not to %d", at.percent, r.To+1, ramp[k], r.Percent)
		}
	case known && at.percent < percentMax:
		l.say(CodeRecoverOrder, i, "recover.to", "only %d percent are at tier %d; the ramp of one tier ends at 100 before the next begins", at.percent, at.tier)
	case known && r.To != at.tier-1:
		l.say(CodeRecoverOrder, i, "recover.to", "the steps above leave %s at tier %d, and a recovery goes one tier down, to %d", quote(r.Scope), at.tier, at.tier-1)
	case known || !in.begun[climb{r.Scope, r.To}]:
		l.beginsRamp(i, "recover", r, ramp)
	}
}

func (l *lint) beginsRamp(i int, path string, r *Recover, ramp []int) {
	if len(ramp) > 0 && ramp[0] != r.Percent {
		l.say(CodeRecoverOrder, i, path+".percent", "this begins the ramp out of tier %d, and its first step is %d, not %d", r.To+1, ramp[0], r.Percent)
	}
}

// undoesRamp: the undo of a shed begins the ramp out of the tier that it shed to.
func (l *lint) undoesRamp(i int) {
	s := &l.rb.Steps[i]
	if s.Undo == nil || s.Undo.Recover == nil {
		return
	}
	r := s.Undo.Recover
	if s.Do != nil && s.Do.Tier > 0 && r.To != s.Do.Tier-1 {
		l.say(CodeRecoverOrder, i, "undo.recover.to", "the step sheds to tier %d, and a recovery goes one tier down, to %d", s.Do.Tier, s.Do.Tier-1)
	}
	if ramp, ok := l.rampStep(i, "undo.recover", r); ok {
		l.beginsRamp(i, "undo.recover", r, ramp)
	}
}
