package runbooks

import (
	"slices"
	"strconv"

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
