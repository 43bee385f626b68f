package explain

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// consoleOnly lists what no host checks, with what it binds here. Whoever has a
// key and no console is bound by none of it, which is why no worst case relies on
// it.
func (p *page) consoleOnly() []Part {
	var recoveries, loosens, rehearsed, waits, leads, reviews []string
	for _, name := range p.rightsInView() {
		r, _, _ := p.b.Right(name)
		switch {
		case r.Kind == model.Bypass:
			loosens = append(loosens, name)
		case r.Kind == model.End && r.Ends == model.Shed && !r.Blind:
			recoveries = append(recoveries, name)
		}
		if r.RehearsedWithin > 0 {
			rehearsed = append(rehearsed, name)
		}
		if r.NoSecond != nil {
			waits = append(waits, name)
		}
		if r.LeadTime() > 0 {
			leads = append(leads, name)
		}
		if r.Review != "" {
			reviews = append(reviews, name)
		}
	}
	var out []Sentence
	add := func(code string, names []string, format string) {
		if len(names) > 0 {
			out = append(out, sayConsole(code, format, list(names)))
		}
	}
	add("console.signals", recoveries, "Known-good signals before a tier is left, and the dwell and the steps of the ramp: %s.")
	add("console.rehearsed", rehearsed, "That it was rehearsed lately: %s.")
	add("console.per-day", loosens, "How many grants begin in one UTC day, counted over all consoles: %s.")
	add("console.total", loosens, "That the worst case of a grant stays within its total: hosts know their own budgets only: %s.")
	add("console.no-second", waits, "That a proposal has waited in vain: %s.")
	add("console.lead", leads, "The time between a proposal and its start: %s.")
	add("console.review", reviews, "That a review follows each use: %s.")
	out = append(out,
		sayConsole("console.lease", "That whoever recovers or loosens holds command of the incident."),
		sayConsole("console.freeze", "A freeze: it binds consoles and controllers; people may always shed."),
		sayConsole("console.durable", "That the log holds the intent before anything is loosened."))
	if events := p.events(); len(events) > 0 {
		out = append(out, sayConsole("console.soak", "The soak before a tier is left during a scheduled event: %s.", list(events)))
	}
	if p.ladderInView() {
		out = append(out, sayConsole("console.automatic", "The limits of automatic moves: one in %s, more than %d in %s latch the ladder.",
			p.Docs.Ladder.Automatic.Every, p.Docs.Ladder.Automatic.Flaps, p.Docs.Ladder.Automatic.FlapWindow))
	}
	return []Part{{Sentences: out}}
}

func (p *page) ladderInView() bool {
	return p.Docs.Ladder != nil && p.signs(p.Root.Domains[policy.Ladder].Group)
}

func (p *page) events() []string {
	if !p.ladderInView() {
		return nil
	}
	return sortedKeys(p.Docs.Ladder.Schedule)
}

// hostsEnforce lists what a host checks of every directive, whoever carries it.
func (p *page) hostsEnforce() []Part {
	out := []Sentence{
		say("hosts.signatures", "Signatures: only keys of the trust root that are not revoked, counted by people; a machine is never a second person."),
		say("hosts.right", "The right, its role, its quorum, its scope, its tiers; the fleet %s and no other.", p.Root.Fleet),
	}
	money, windows := false, false
	for _, name := range p.rightsInView() {
		r, _, _ := p.b.Right(name)
		money = money || r.Kind == model.Bypass
		windows = windows || r.Kind == model.Bypass || r.Kind == model.Freeze || r.Kind == model.Ping
	}
	if windows {
		out = append(out, say("hosts.window", "The longest window of a use, and its end by the host's own clock; a clock that cannot be trusted loosens nothing."))
	}
	if money {
		out = append(out,
			say("hosts.budget", "The worth of each item, the number and the worth of items per host, right and UTC day, and how many grants are in force at once. A crash forfeits what is left of a reserved budget."),
			say("hosts.policy", "A policy at least as new as the one the directive was judged by, before anything is loosened."))
	}
	for _, name := range sortedKeys(p.b.Controls) {
		if p.b.Controls[name].Protects == policy.ProtectsAuthorization {
			out = append(out, say("hosts.never", "%s protects authorization and never opens.", name))
		}
	}
	return []Part{{Sentences: out}}
}
