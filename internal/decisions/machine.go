package decisions

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// IsMachine reports whether a name is that of a machine of the trust root.
func IsMachine(b *policy.Bundle, name string) bool {
	_, ok := b.Root.Machines[name]
	return ok
}

// Own reports whether everything in a chain, live or ended, was signed by
// machines that hold role, and by nobody else. Such a chain a machine of that
// role may leave without command. What it cannot see in the world it does not
// take for its own.
func Own(b *policy.Bundle, w *model.World, c *Chain, role string) bool {
	if len(c.IDs) == 0 {
		return false
	}
	signers := make(map[string][]string, len(w.Issued))
	for i := range w.Issued {
		signers[w.Issued[i].Directive.ID] = w.Issued[i].Signers
	}
	for _, id := range c.IDs {
		if !onlyMachines(b, signers[id], role) {
			return false
		}
	}
	return true
}

// Underway reports whether the ramp of a chain was begun or continued by a
// person, or by a machine that holds role: a machine of that role may take its
// next step without command. It never begins one for a person.
func Underway(b *policy.Bundle, w *model.World, c *Chain, role string) bool {
	if c.Ramp == nil {
		return false
	}
	for i := range w.Issued {
		is := &w.Issued[i]
		r := rampOf(is)
		if r == nil || *r != *c.Ramp || !slices.Contains(c.Live, is.Directive.ID) {
			continue
		}
		person := slices.ContainsFunc(is.Signers, func(name string) bool {
			_, ok := b.Root.People[name]
			return ok
		})
		if person || onlyMachines(b, is.Signers, role) {
			return true
		}
	}
	return false
}

func onlyMachines(b *policy.Bundle, signers []string, role string) bool {
	return len(signers) > 0 && !slices.ContainsFunc(signers, func(name string) bool {
		return !IsMachine(b, name) || !b.Root.HasRole(role, policy.Signer{Name: name, Machine: true})
	})
}

// command is who may recover or loosen: whoever holds the lease. A machine can
// hold none. It recovers what machines of its role have shed themselves, and
// takes the next step of a ramp that is under way; everything else of a person
// is left to people.
func (e *evaluation) command() {
	if !e.d.IsRecovery() || !IsMachine(e.b, e.r.Actor) || e.w.Incident.Lease.Held(e.r.Actor, e.w.Now) {
		e.lease()
		return
	}
	c := ChainOf(e.w, e.d.Scope)
	if c.Tier > 0 && !Own(e.b, e.w, &c, e.right.Who) && !Underway(e.b, e.w, &c, e.right.Who) {
		e.add(model.Reason{Code: NotOwn, N: int64(c.Tier)})
	}
}
