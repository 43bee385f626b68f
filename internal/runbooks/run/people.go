package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/policy"
)

// membersOf lists the people of a group in the order in which the root names them,
// nested groups where they stand. That order is the order in which they are called.
func membersOf(root *policy.Root, names []string) []string {
	var out []string
	var walk func(names []string, depth int)
	walk = func(names []string, depth int) {
		for _, name := range names {
			if _, person := root.People[name]; person && !slices.Contains(out, name) {
				out = append(out, name)
			} else if g, group := root.Groups[name]; group && depth < 8 { // roots nest at most 4 deep
				walk(g.Of, depth+1)
			}
		}
	}
	walk(names, 0)
	return out
}

func roleMembers(root *policy.Root, role string) []string {
	return membersOf(root, root.Roles[role].Members)
}

// inTurn names people in the order in which to call them, without one who asks.
func inTurn(people []string, without string) string {
	left := slices.DeleteFunc(slices.Clone(people), func(p string) bool { return p == without })
	if len(left) == 0 {
		return "nobody: the trust root names no one else"
	}
	return strings.Join(left, ", then ")
}

// waitsFor says whose signature is waited for: one name at a time, and the next
// one of the matrix after each has been silent for a while.
func (r *Run) waitsFor(j *job, since time.Time) string {
	scene := r.o.Desk.Scene()
	name := ""
	if j.step.Do != nil {
		name = j.step.Do.Right
	} else if j.step.Recover != nil {
		name, _ = r.recoveryRight(j.step.Recover.Scope)
	}
	right, _, known := scene.Bundle.Right(name)
	if !known {
		return "it waits for signatures"
	}
	signed := []string{scene.Actor}
	b := j.st.begun()
	for _, p := range scene.World.Proposals {
		if p.ID == b.ID {
			signed = append(signed, p.Signers...)
		}
	}
	people := slices.DeleteFunc(membersOf(scene.Bundle.Root, []string{right.Cosign.Of}), func(p string) bool { return slices.Contains(signed, p) })
	if len(people) == 0 {
		return "it waits for signatures, and nobody is left in " + right.Cosign.Of
	}
	turn := int(r.o.now().Sub(since) / askNextName)
	at := min(turn, len(people)-1)
	text := fmt.Sprintf("it waits for %d of %s: call %s (%s)", right.Cosign.Count, right.Cosign.Of, people[at], scene.Bundle.Root.People[people[at]].Reach)
	switch {
	case at > 0:
		text += "; no answer from " + strings.Join(people[:at], ", ")
	case len(people) > 1:
		text += fmt.Sprintf("; without an answer in %s the next is %s", askNextName, people[1])
	}
	return text
}
