package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/ladder"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Line is what one look has seen and done.
type Line struct {
	At          time.Time             `json:"at"`
	Machine     string                `json:"machine"`
	Leads       bool                  `json:"leads"`         // of several controllers, this one acts
	Gap         string                `json:"gap,omitempty"` // why nothing from before was relied on
	Tiers       map[string]int        `json:"tiers"`         // scope -> tier in force, by what was issued; scopes at tier 0 are left out
	Target      int                   `json:"target"`        // highest tier that signals call for, automatic or not
	Signals     map[string]SignalLine `json:"signals"`
	Move        *MoveLine             `json:"move,omitempty"`
	Why         []string              `json:"why"` // why nothing else moves
	Alarms      []ladder.Alarm        `json:"alarms"`
	Latch       time.Time             `json:"latch,omitzero"`
	Frozen      bool                  `json:"frozen"` // a freeze stands in the way of a move
	Turns       int                   `json:"turns"`
	Spent       int64                 `json:"spent_s"`
	Again       time.Time             `json:"again,omitzero"`
	Stale       bool                  `json:"stale,omitempty"` // the view had grown old before the move was signed
	Redelivered int                   `json:"redelivered,omitempty"`
	Problems    []string              `json:"problems,omitempty"`
	TookMS      int64                 `json:"took_ms"`
}

// SignalLine is one signal as it was read.
type SignalLine struct {
	State model.ReadingState `json:"state"`
	Value float64            `json:"value"` // meaningful when state is value
	Text  string             `json:"text"`
}

// MoveLine is a move and what became of it.
type MoveLine struct {
	Purpose  ladder.Purpose `json:"purpose"`
	Title    string         `json:"title"`
	Text     string         `json:"text"` // why, in a sentence
	Cause    []ladder.Cause `json:"cause"`
	ID       string         `json:"id,omitempty"`
	Incident string         `json:"incident,omitempty"`
	State    incident.State `json:"state,omitempty"`
	Done     int            `json:"done"`
	Total    int            `json:"total"`
	Carriers []string       `json:"carriers,omitempty"`
	Receipt  string         `json:"receipt,omitempty"`
	Error    string         `json:"error,omitempty"`
}

func moveOf(p *ladder.Proposal) MoveLine {
	return MoveLine{Purpose: p.Purpose, Title: incident.TitleOf(&p.Request.Directive), Text: p.Text, Cause: p.Cause}
}

func (l *Line) problem(err error) { l.Problems = append(l.Problems, err.Error()) }

// see fills in what the ladder looked at and came to.
func (l *Line) see(b *policy.Bundle, w *model.World, out *ladder.Outcome) {
	l.Tiers, l.Signals = map[string]int{}, map[string]SignalLine{}
	for i := range w.Issued {
		scope := w.Issued[i].Directive.Scope
		if tier := decisions.ChainOf(w, scope).Tier; tier > 0 {
			l.Tiers[scope] = tier
		}
	}
	for name := range b.Signals {
		s := SignalLine{State: model.ReadingNoData, Text: "was not read"}
		if r, ok := w.Readings[name]; ok {
			s = SignalLine{State: r.State, Text: r.Detail}
			if r.State == model.ReadingValue {
				s.Value, s.Text = r.Value, decisions.Quantity(r.Value, b.Signals[name].Unit)
			}
		}
		l.Signals[name] = s
	}
	l.Target, l.Why, l.Alarms, l.Again = out.Target, out.Why, out.Alarms, out.Again
	l.Latch, l.Frozen, l.Turns, l.Spent = out.Latch, out.Frozen, out.Turns, out.Spent
}

// Text is the line for people: what moved, or where it stands and why nothing
// does.
func (l *Line) Text() string {
	parts := []string{tiersText(l.Tiers)}
	if !l.Leads {
		parts = []string{"another controller leads"}
	}
	if l.Gap != "" {
		parts = append(parts, l.Gap)
	}
	if m := l.Move; m != nil {
		what := fmt.Sprintf("%s: %s: %s", m.Purpose, m.Title, m.Text)
		if m.Error != "" {
			what += " (not done: " + m.Error + ")"
		} else {
			what += fmt.Sprintf(" (%s, %d of %d hosts)", m.State, m.Done, m.Total)
		}
		parts = append(parts, what)
	}
	parts = append(parts, l.Why...)
	for _, a := range l.Alarms {
		parts = append(parts, fmt.Sprintf("ALARM %s: %s", a.Kind, a.Text))
	}
	return strings.Join(append(parts, l.Problems...), " | ")
}

func tiersText(tiers map[string]int) string {
	if len(tiers) == 0 {
		return "tier 0"
	}
	var out []string
	for _, scope := range slices.Sorted(maps.Keys(tiers)) {
		name := scope
		if scope == model.AnyScope {
			name = "all services"
		}
		out = append(out, fmt.Sprintf("%s at tier %d", name, tiers[scope]))
	}
	return strings.Join(out, ", ")
}
