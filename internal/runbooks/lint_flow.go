package runbooks

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// edge leads from a step to a later one. An index of len(steps) is the end.
type edge struct {
	to      int
	timeout bool // the step was not proved in time
}

// flow checks where steps lead: forward, to steps that exist, reaching every one,
// within the time that the runbook promises.
func (l *lint) flow() {
	n := len(l.rb.Steps)
	out := make([][]edge, n)
	for i := range l.rb.Steps {
		out[i] = l.edges(i)
	}
	reached := make([]bool, n+1)
	reached[0] = true
	for i := range n {
		if !reached[i] {
			l.say(CodeUnreachable, i, "id", "no way leads here: the steps above lead elsewhere; lead one to %s, or remove it", quote(l.rb.Steps[i].ID))
			continue
		}
		for _, e := range out[i] {
			reached[e.to] = true
		}
	}
	longest := make([]model.Duration, n+1)
	for i := n - 1; i >= 0; i-- {
		for _, e := range out[i] {
			longest[i] = max(longest[i], longest[e.to])
		}
		longest[i] += l.rb.Steps[i].Longest()
	}
	if total := longest[0]; total > l.rb.MaxDuration {
		at := Pos{1, 1}
		if place, ok := l.rb.where["max_duration"]; ok {
			at = place
		}
		l.add(CodeTooLong, at, "max_duration", "timeouts and waits of the longest way add up to %s, and the runbook promises %s", total, l.rb.MaxDuration)
	}
}

// Longest is how long a step may take before its timeout speaks; 0 where only a
// person is waited for.
func (s *Step) Longest() model.Duration {
	switch {
	case s.Wait != nil:
		return max(s.Wait.AtMost, s.Wait.For)
	default:
		return s.Timeout
	}
}

// edges are the ways out of a step, forward ones only; of others it is said what
// is wrong.
func (l *lint) edges(i int) []edge {
	s := &l.rb.Steps[i]
	var out []edge
	follow := func(path, word string, timeout bool) {
		if to, ok := l.target(i, path, word); ok {
			out = append(out, edge{to, timeout})
		}
	}
	if s.Kind == KindDecide && s.Decide != nil {
		for k, o := range s.Decide.Options {
			follow("decide.options["+strconv.Itoa(k)+"].goto", o.Goto, false)
		}
	} else {
		follow("then", s.Then, false)
	}
	switch s.OnTimeout {
	case "", OnStop, OnAsk:
	case OnContinue:
		follow("then", s.Then, true)
	default:
		follow("on_timeout", s.OnTimeout, true)
	}
	return out
}

// target is the index that a word leads to.
func (l *lint) target(i int, path, word string) (to int, ok bool) {
	switch word {
	case "":
		return i + 1, true
	case ToEnd:
		return len(l.rb.Steps), true
	}
	to = slices.IndexFunc(l.rb.Steps, func(s Step) bool { return s.ID == word })
	switch {
	case to < 0 && l.said(CodeUnknownStep, i, path), to >= 0 && l.said(CodeCycle, i, path):
	case to < 0:
		var ids []string
		for _, s := range l.rb.Steps[i+1:] {
			ids = append(ids, s.ID)
		}
		l.say(CodeUnknownStep, i, path, "there is no step %s%s", quote(word), nearest(word, append(ids, ToEnd)))
	case to <= i:
		l.say(CodeCycle, i, path, "%s is not below this step: a runbook leads forward only, so that it ends; to look again, give the check a timeout", quote(word))
	}
	return to, to > i
}

// said reports whether a finding stands already: then is followed twice where
// on_timeout continues.
func (l *lint) said(code string, i int, path string) bool {
	return slices.ContainsFunc(l.found, func(f Finding) bool { return f.Code == code && f.Path == join(l.rb.Steps[i].ID, path) })
}

// rung is where a scope stands as far as the steps above say.
type rung struct {
	tier    int
	percent int // of hosts that are there already; the others are one higher
}

// recoveries checks that recoveries go down one tier at a time and ramp by ramp.
// What a step knows is what all ways to it agree on.
func (l *lint) recoveries() {
	in := make([]map[string]rung, len(l.rb.Steps)+1)
	in[0] = map[string]rung{}
	for i := range l.rb.Steps {
		if in[i] == nil {
			continue // unreachable
		}
		after := l.climb(i, in[i])
		for _, e := range l.quietEdges(i) {
			state := after
			if e.timeout && l.rb.Steps[i].Kind.HasEffect() {
				state = map[string]rung{} // nobody knows how far it came
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

func agreed(a, b map[string]rung) map[string]rung {
	if a == nil {
		return maps.Clone(b)
	}
	maps.DeleteFunc(a, func(scope string, r rung) bool { return b[scope] != r })
	return a
}

// climb is the state after a step.
func (l *lint) climb(i int, in map[string]rung) map[string]rung {
	s, out := &l.rb.Steps[i], maps.Clone(in)
	switch {
	case s.Do != nil && s.Do.Tier > 0:
		if s.Do.Scope == model.AnyScope {
			clear(out)
		}
		out[s.Do.Scope] = rung{s.Do.Tier, percentMax}
	case s.Do != nil:
		if right, ok := l.known.Rights[s.Do.Right]; !ok || right.Kind == model.Shed || right.Kind == model.End {
			clear(out)
		}
	case s.Recover != nil:
		l.rampStep(i)
		if at, ok := in[s.Recover.Scope]; ok {
			l.fromTo(i, at)
		}
		out[s.Recover.Scope] = rung{s.Recover.To, s.Recover.Percent}
	}
	return out
}

// rampStep wants a percentage that the tier being left has in its ramp.
func (l *lint) rampStep(i int) {
	r := l.rb.Steps[i].Recover
	for _, t := range l.known.Tiers {
		if t.Tier != r.To+1 || slices.Contains(t.Ramp, r.Percent) {
			continue
		}
		steps := make([]string, len(t.Ramp))
		for k, p := range t.Ramp {
			steps[k] = strconv.Itoa(p)
		}
		l.say(CodeRecoverOrder, i, "recover.percent", "%d is no step of the ramp out of tier %d, which is %s", r.Percent, t.Tier, strings.Join(steps, ", "))
	}
}

func (l *lint) fromTo(i int, at rung) {
	r := l.rb.Steps[i].Recover
	switch {
	case at.percent < percentMax && r.To == at.tier && r.Percent > at.percent:
	case at.percent < percentMax && r.To == at.tier:
		l.say(CodeRecoverOrder, i, "recover.percent", "%d percent are at tier %d already; a ramp only rises", at.percent, at.tier)
	case at.percent < percentMax:
		l.say(CodeRecoverOrder, i, "recover.to", "only %d percent are at tier %d; the ramp of one tier ends at 100 before the next begins", at.percent, at.tier)
	case r.To != at.tier-1:
		l.say(CodeRecoverOrder, i, "recover.to", "the steps above leave %s at tier %d, and a recovery goes one tier down, to %d", quote(r.Scope), at.tier, at.tier-1)
	}
}
