package decisions

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Ramp is the state of a recovery that is under way in one scope.
type Ramp struct {
	ID      string
	From    int
	To      int
	Percent int
	Since   time.Time // when the last step began
}

// Chain is what a recovery in one scope has to know: the tier in force by what
// has been issued, everything that a step must list, and since when.
type Chain struct {
	Tier  int       // highest of live sheds and recoveries; a ramp below 100 % counts as its From
	Since time.Time // latest start among what holds the tier
	By    string    // id of what started then
	IDs   []string  // the whole chain, live or ended, ascending
	Live  []string  // its live part
	Ramp  *Ramp     // the live ramp that holds the tier, if any
	// Unseen is the id of what began last, if it is on its way or UNKNOWN and no host that
	// reports has it: its time has not begun to run.
	Unseen string
}

// ChainOf collects the chain of one scope: exactly that scope, because an ending
// ends only what has its own scope.
func ChainOf(w *model.World, scope string) Chain {
	var c Chain
	listed := make(map[string]bool)
	for i := range w.Issued {
		is := &w.Issued[i]
		d := &is.Directive
		if d.Scope != scope || d.EndedAs() != model.Shed || !is.LiveAt(w.Now) || heldTier(d) == 0 {
			continue // a finished recovery stays live for ever at tier 0 and holds nothing
		}
		c.Live = append(c.Live, d.ID)
		listed[d.ID] = true
		for _, id := range d.IDs {
			listed[id] = true
		}
		c.raise(w, is)
	}
	slices.Sort(c.Live)
	for id := range listed {
		c.IDs = append(c.IDs, id)
	}
	slices.Sort(c.IDs)
	return c
}

// raise takes a live shed or recovery step into account. A shed at the same
// tier as a ramp is a halt: the ramp no longer holds the tier alone.
func (c *Chain) raise(w *model.World, is *model.Issued) {
	d, begun := &is.Directive, is.Begun()
	tier := heldTier(d)
	switch {
	case tier > c.Tier:
		c.Tier, c.Since, c.By, c.Ramp, c.Unseen = tier, begun, d.ID, rampOf(is), unseen(w, is)
	case tier == c.Tier:
		if later(begun, d.ID, c.Since, c.By) {
			c.Since, c.By, c.Unseen = begun, d.ID, unseen(w, is)
		}
		switch r := rampOf(is); {
		case r == nil:
			c.Ramp = nil
		case c.Ramp != nil && r.slower(c.Ramp):
			c.Ramp = r
		}
	}
}

// slower: of two steps that are live because neither console saw the other's, the one
// that lets fewer hosts go holds the rest.
func (r *Ramp) slower(than *Ramp) bool {
	return r.Percent < than.Percent || r.Percent == than.Percent && later(r.Since, r.ID, than.Since, than.ID)
}

// later orders by time and then by id, so that two of the same second do not
// trade places with the order in which they are given.
func later(a time.Time, aID string, b time.Time, bID string) bool {
	if a.Equal(b) {
		return aID > bID
	}
	return a.After(b)
}

// heldTier is the tier that a live directive holds on at least one host.
func heldTier(d *model.Directive) int {
	switch {
	case d.Kind == model.Shed:
		return d.Tier
	case d.Percent < 100:
		return d.From
	default:
		return d.To
	}
}

// unseen is the id of what no host reports. A shed that is known to be nowhere holds
// nobody; a step of a recovery is gone on from only where it is.
func unseen(w *model.World, is *model.Issued) string {
	id := is.Directive.ID
	switch {
	case !is.FirstSeen.IsZero():
		return ""
	case is.Directive.IsRecovery(), is.Outcome == "", len(is.Carried) > 0, model.Pushed(w.Overrides, id):
		return id
	default:
		return ""
	}
}

func rampOf(is *model.Issued) *Ramp {
	d := &is.Directive
	if !d.IsRecovery() || d.Percent == 100 {
		return nil
	}
	return &Ramp{ID: d.Ramp, From: d.From, To: d.To, Percent: d.Percent, Since: is.Begun()}
}

// TierOf is the tier of a service by what has been issued: the highest over its
// own scope and the scope of all.
func TierOf(w *model.World, service string) int {
	tier := 0
	for i := range w.Issued {
		d := &w.Issued[i].Directive
		if d.EndedAs() == model.Shed && d.Covers(service) && w.Issued[i].LiveAt(w.Now) {
			tier = max(tier, heldTier(d))
		}
	}
	return tier
}

// LiveOf lists the live directives of a kind in a scope, by id.
func LiveOf(w *model.World, kind model.Kind, scope string) []string {
	var ids []string
	for i := range w.Issued {
		d := &w.Issued[i].Directive
		if d.Kind == kind && d.Scope == scope && w.Issued[i].LiveAt(w.Now) {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// WindowOf is how far back a signal has to be known: the longest window that any
// tier is entered or left by, the soak of an event that wants that tier included.
func WindowOf(b *policy.Bundle, signal string) model.Duration {
	var longest model.Duration
	for _, tier := range b.Tiers {
		for _, c := range tier.Enter {
			if c.Signal == signal {
				longest = max(longest, c.For)
			}
		}
		for _, c := range tier.Leave {
			if c.Signal == signal {
				longest = max(longest, c.For, longestSoak(b, tier.Tier))
			}
		}
	}
	return longest
}

func longestSoak(b *policy.Bundle, tier int) model.Duration {
	var longest model.Duration
	for _, event := range b.Schedule {
		if tier >= event.Tier {
			longest = max(longest, event.Soak)
		}
	}
	return longest
}
