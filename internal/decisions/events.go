package decisions

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// EventLead is how long before it begins an event of the schedule is spoken of:
// time to look, to ask and to enter its tier by hand.
const EventLead = 30 * time.Minute

// EventNow is an event of the schedule that is due: it begins within EventLead,
// or runs.
type EventNow struct {
	Name    string         `json:"event"`
	Tier    int            `json:"tier"`
	Scope   []string       `json:"scope"`
	From    time.Time      `json:"from"`
	Until   time.Time      `json:"until"`
	Soak    model.Duration `json:"soak"`
	Why     string         `json:"why"`
	Running bool           `json:"running"` // from has passed
	Lacks   []string       `json:"lacks"`   // scopes and services that are not at its tier yet; empty: it is entered
	Right   string         `json:"right"`   // by which a person enters the tier for the first of them; "" if none does
}

// EventsNow lists the events that are due, the one that begins first first.
func EventsNow(b *policy.Bundle, w *model.World) []EventNow {
	var out []EventNow
	for name, event := range b.Schedule {
		if w.Now.Before(event.From.Add(-EventLead)) || !w.Now.Before(event.Until) {
			continue
		}
		now := EventNow{
			Name: name, Tier: event.Tier, Scope: event.Scope, From: event.From, Until: event.Until, Soak: event.Soak, Why: event.Why,
			Running: !w.Now.Before(event.From), Lacks: belowTier(b, w, &event),
		}
		if len(now.Lacks) > 0 {
			now.Right = shedRight(b, event.Tier, now.Lacks[0])
		}
		out = append(out, now)
	}
	slices.SortFunc(out, func(x, y EventNow) int { return cmp.Or(x.From.Compare(y.From), cmp.Compare(x.Name, y.Name)) })
	return out
}

// belowTier lists what has still to enter the tier of an event. A service that
// does not know so many tiers stands at its last. A scope of all counts as a
// whole: one shed enters it.
func belowTier(b *policy.Bundle, w *model.World, event *policy.Event) []string {
	var lacks []string
	for _, scope := range event.Scope {
		services := []string{scope}
		if scope == model.AnyScope && len(b.Services) > 0 {
			services = sortedNames(b.Services)
		}
		if slices.ContainsFunc(services, func(s string) bool { return TierOf(w, s) < min(event.Tier, b.LastTier(s)) }) {
			lacks = append(lacks, scope)
		}
	}
	return lacks
}

// shedRight is the right by which a person enters a tier for a scope: the one
// that asks fewest others, then the one of the smallest range, then by name.
func shedRight(b *policy.Bundle, tier int, scope string) string {
	best, found := "", policy.Right{}
	for _, name := range b.RightsOf(model.Shed) {
		r, _, _ := b.Right(name)
		if r.Tiers == nil || tier < r.Tiers.From || tier > r.Tiers.To || !covers(r.Scope, scope) || len(b.Root.Roles[r.Who].Members) == 0 {
			continue
		}
		if best == "" || cmp.Or(cmp.Compare(r.Cosign.Count, found.Cosign.Count), cmp.Compare(r.Tiers.To-r.Tiers.From, found.Tiers.To-found.Tiers.From)) < 0 {
			best, found = name, r
		}
	}
	return best
}

// eventLine is what the headline says of the first event that is due and whose
// tier is not entered; its text is empty when there is none.
func eventLine(b *policy.Bundle, w *model.World) Headline {
	for _, event := range EventsNow(b, w) {
		if len(event.Lacks) == 0 {
			continue
		}
		when := "begins at"
		if event.Running {
			when = "runs since"
		}
		scope := event.Lacks[0]
		if scope == model.AnyScope {
			scope = "all services"
		}
		right, _, _ := b.Right(event.Right)
		return Headline{
			Text:  fmt.Sprintf("%s %s %s: tier %d is not entered for %s", event.Name, when, clock(event.From), event.Tier, scope),
			Right: event.Right, Runbook: right.Runbook,
		}
	}
	return Headline{}
}

// scheduled denies a machine to leave a tier that an event wants while it runs,
// and returns how long the conditions for leaving have to hold then. A person may
// leave it: an event that is calmer than feared needs no second decision.
func (e *evaluation) scheduled(from int) (soak model.Duration) {
	var last policy.Event
	named := ""
	for name, event := range e.b.Schedule {
		runs := !e.w.Now.Before(event.From) && e.w.Now.Before(event.Until)
		if !runs || from < e.wanted(&event) || !covers(event.Scope, e.d.Scope) && (e.d.Scope != model.AnyScope || len(event.Scope) == 0) {
			continue
		}
		soak = max(soak, event.Soak)
		if named == "" || later(event.Until, name, last.Until, named) {
			last, named = event, name
		}
	}
	if _, machine := e.b.Root.Machines[e.r.Actor]; machine && named != "" {
		e.add(model.Reason{Code: Scheduled, Name: named, At: last.Until})
	}
	return soak
}

// wanted is the tier below which an event's services must not fall: its own, or
// the last one that a service in question knows.
func (e *evaluation) wanted(event *policy.Event) int {
	if e.d.Scope != model.AnyScope {
		return min(event.Tier, e.b.LastTier(e.d.Scope))
	}
	tier := event.Tier
	for _, scope := range event.Scope {
		tier = min(tier, e.b.LastTier(scope))
	}
	return tier
}
