package ladder

import (
	"cmp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Move is something that was done to the ladder: a shed, a step of a recovery, or
// a freeze and its end, which move nothing and show that a person was there.
type Move struct {
	ID        string     `json:"id"`
	At        time.Time  `json:"at"` // from when it holds
	Scope     string     `json:"scope"`
	Kind      model.Kind `json:"kind"`
	From      int        `json:"from"` // tier in force in the scope before it
	To        int        `json:"to"`   // and after it; a ramp below 100 % counts as the tier that it leaves
	Percent   int        `json:"percent,omitempty"`
	Turn      bool       `json:"turn"`      // it enters a tier, begins to leave one, or halts that; going on with a ramp is none
	Automatic bool       `json:"automatic"` // no person signed it
	By        []string   `json:"by"`
}

// moves reports whether it moves the ladder at all.
func (m *Move) moves() bool { return m.Kind != model.Freeze }

// MovesOf lists what was done up to now, oldest first, from everything that was
// issued, in whatever order that is given.
func MovesOf(b *policy.Bundle, issued []model.Issued, now time.Time) []Move {
	if b == nil {
		return nil
	}
	past := make([]*model.Issued, 0, len(issued))
	for i := range issued {
		d := &issued[i].Directive
		if (d.EndedAs() == model.Shed || d.Kind == model.Freeze || d.Ends == model.Freeze) && !d.NotBefore.After(now) {
			past = append(past, &issued[i])
		}
	}
	slices.SortFunc(past, func(x, y *model.Issued) int {
		return cmp.Or(x.Directive.NotBefore.Compare(y.Directive.NotBefore), cmp.Compare(x.Directive.ID, y.Directive.ID))
	})
	scopes := make(map[string]*replay)
	out := make([]Move, 0, len(past))
	for i, is := range past {
		d := &is.Directive
		if i > 0 && past[i-1].Directive.ID == d.ID {
			continue // given twice, by the log and by a carrier
		}
		m := Move{ID: d.ID, At: d.NotBefore, Scope: d.Scope, Kind: d.Kind, By: is.Signers, Automatic: !anyPerson(b, is.Signers)}
		if d.EndedAs() == model.Shed {
			if scopes[d.Scope] == nil {
				scopes[d.Scope] = &replay{ended: map[string]bool{}, ramps: map[string]bool{}}
			}
			scopes[d.Scope].take(is, &m)
		} else {
			m.Kind = model.Freeze
		}
		out = append(out, m)
	}
	return out
}

func anyPerson(b *policy.Bundle, signers []string) bool {
	return slices.ContainsFunc(signers, func(name string) bool { return !decisions.IsMachine(b, name) })
}

// replay is one scope as it was while its past is gone through.
type replay struct {
	live  []model.Issued
	ended map[string]bool
	ramps map[string]bool // that have begun
}

func (r *replay) take(is *model.Issued, m *Move) {
	d := &is.Directive
	before := r.chain(d)
	if d.IsRecovery() {
		for _, id := range d.IDs {
			r.ended[id] = true
		}
		r.live = slices.DeleteFunc(r.live, func(l model.Issued) bool { return r.ended[l.Directive.ID] })
	}
	if !r.ended[d.ID] { // an ending may come before what it ends
		r.live = append(r.live, model.Issued{Directive: *d})
	}
	after := r.chain(d)
	m.From, m.To, m.Percent = before.Tier, after.Tier, d.Percent
	if d.IsRecovery() {
		m.Turn = !r.ramps[d.Ramp]
		r.ramps[d.Ramp] = true
		return
	}
	m.Turn = after.Tier > before.Tier || before.Ramp != nil && after.Ramp == nil
}

func (r *replay) chain(d *model.Directive) decisions.Chain {
	return decisions.ChainOf(&model.World{Now: d.NotBefore, Issued: r.live}, d.Scope)
}

// lastAutomatic is when a machine moved the ladder last.
func lastAutomatic(moves []Move) (at time.Time) {
	for i := range moves {
		if m := &moves[i]; m.Automatic && m.moves() && m.At.After(at) {
			at = m.At
		}
	}
	return at
}

// flapping is what the guard sees: how many turns by machines lie in the window
// up to now, and since when the ladder is latched.
type flapping struct {
	turns   int
	latched time.Time // zero: it is not
}

// flapsAt goes through the past: more than so many turns by machines in one
// window latch the ladder, until a person has signed something about it.
func flapsAt(a *policy.Automatic, moves []Move, now time.Time) flapping {
	var turns []time.Time
	var f flapping
	for i := range moves {
		m := &moves[i]
		switch {
		case !m.Automatic && !f.latched.IsZero():
			f.latched, turns = time.Time{}, nil
		case m.Automatic && m.Turn && f.latched.IsZero():
			turns = append(within(turns, a.FlapWindow, m.At), m.At)
			if len(turns) > a.Flaps {
				f.latched = m.At
			}
		}
	}
	f.turns = len(within(turns, a.FlapWindow, now))
	return f
}

// within keeps the times that lie less than a window before at.
func within(times []time.Time, window model.Duration, at time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(times), func(t time.Time) bool { return at.Sub(t) >= window.Std() })
}

// heldSince is since when a scope has stood at least at a tier, without a break.
func heldSince(moves []Move, scope string, tier int) (since time.Time) {
	for i := range moves {
		m := &moves[i]
		if m.Scope != scope || !m.moves() {
			continue
		}
		switch {
		case m.To < tier:
			since = time.Time{}
		case since.IsZero():
			since = m.At
		}
	}
	return since
}

// budgetTier is the tier from which on time counts against the budget of a month.
const budgetTier = 2

// spent is how long any scope has stood at budgetTier or above in the UTC month
// of now.
func spent(moves []Move, now time.Time) time.Duration {
	begin := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	at := make(map[string]int)
	high := func() bool {
		for _, tier := range at {
			if tier >= budgetTier {
				return true
			}
		}
		return false
	}
	var total time.Duration
	last := begin
	add := func(until time.Time) {
		if until.Before(begin) {
			return
		}
		if high() {
			total += until.Sub(last)
		}
		last = until
	}
	for i := range moves {
		if m := &moves[i]; m.moves() {
			add(m.At)
			at[m.Scope] = m.To
		}
	}
	add(now)
	return total
}
