package explain

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
)

// featureParts list the features by class, and what each tier does to them.
func (p *page) featureParts(doc *policy.FeaturesDoc) []Part {
	classes := Part{Name: "classes"}
	for _, class := range []policy.Class{policy.Critical, policy.Degradable, policy.Sheddable} {
		var names []string
		for _, name := range sortedKeys(doc.Features) {
			if doc.Features[name].Class == class {
				names = append(names, name)
			}
		}
		classes.Sentences = append(classes.Sentences, say("features.class", "%s (%s): %s.", capitalClass(class), classWords(class), things(names)))
	}
	out := []Part{classes}
	for _, name := range sortedKeys(doc.Features) {
		f := doc.Features[name]
		part := Part{Name: name}
		part.Sentences = append(part.Sentences, say("feature.what", "%s, of %s; %s answers for it; its class was reviewed on %s; %s.",
			capitalClass(f.Class), f.Service, f.Owner, f.Reviewed.UTC().Format("2006-01-02"), count(int64(f.Calls), "backend call", "backend calls")))
		part.Sentences = append(part.Sentences, behaviours(f.Tiers)...)
		part.Sentences = append(part.Sentences, endpointWords(&f)...)
		out = append(out, part)
	}
	return out
}

// behaviours joins neighbouring tiers that do the same; "no change" goes without
// saying.
func behaviours(tiers map[int]string) []Sentence {
	var out []Sentence
	all := sortedKeys(tiers)
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && tiers[all[last+1]] == tiers[all[i]] && all[last+1] == all[last]+1 {
			last++
		}
		at := fmt.Sprintf("At tier %d", all[i])
		if last > i {
			at = fmt.Sprintf("At tiers %d to %d", all[i], all[last])
		}
		if tiers[all[i]] != policy.NoChange {
			out = append(out, say("feature.tier", "%s: %s.", at, trimStop(tiers[all[i]])))
		}
		i = last + 1
	}
	return out
}

func capitalClass(c policy.Class) string {
	if c == "" {
		return "Without a class"
	}
	return strings.ToUpper(string(c[:1])) + string(c[1:])
}

func classWords(c policy.Class) string {
	switch c {
	case policy.Critical:
		return "shed last"
	case policy.Degradable:
		return "gets simpler"
	default:
		return "goes first"
	}
}

func endpointWords(f *policy.Feature) []Sentence {
	var out []Sentence
	for _, endpoint := range sortedKeys(f.Endpoints) {
		e := f.Endpoints[endpoint]
		for _, name := range sortedKeys(e.Dependencies) {
			dep := e.Dependencies[name]
			text := fmt.Sprintf("On %s (%s), %s is %s", endpoint, e.Path, name, dep.Need)
			switch {
			case dep.Fallback != nil:
				text += fmt.Sprintf(": when it is gone, the user gets %s", trimStop(dep.Fallback.Text))
				if dep.Fallback.MaxAge > 0 {
					text += fmt.Sprintf(", at most %s old", dep.Fallback.MaxAge)
				}
				if dep.Fallback.Marked {
					text += ", and the answer says so"
				}
			case dep.Need == policy.Required:
				text += ": when it is gone, the request fails fast"
			case dep.Need == policy.Optional:
				text += ": when it is gone, it is left out"
			}
			out = append(out, say("endpoint.dependency", "%s.", text))
		}
		for _, field := range sortedKeys(e.Invariants) {
			inv := e.Invariants[field]
			age := "only the current value"
			if inv.MaxAge > 0 {
				age = "at most " + inv.MaxAge.String() + " old"
			}
			out = append(out, say("endpoint.invariant", "On %s, %s comes from %s, %s, seen by %s; degraded: %s; told: %s; %s recovers it.",
				endpoint, field, inv.Source, age, inv.Authorization, inv.Degraded, trimStop(inv.Disclosure), inv.Owner))
		}
	}
	return out
}

// ladderParts say when each tier is entered and left, and by whom.
func (p *page) ladderParts(doc *policy.LadderDoc) []Part {
	out := []Part{}
	for i := range doc.Tiers {
		t := &doc.Tiers[i]
		who := "only people enter and leave it"
		if t.Auto {
			who = "the controller may enter and leave it without asking anybody"
		}
		needs := "any of"
		if t.EnterNeeds > 1 {
			needs = fmt.Sprintf("%d of", t.EnterNeeds)
		}
		out = append(out, Part{Name: fmt.Sprintf("tier %d, %s", t.Tier, t.Name), Sentences: []Sentence{
			say("tier.text", "The user sees: %s", sentence(t.Text)),
			say("tier.who", "%s answers for it; %s.", t.Owner, who),
			say("tier.enter", "Reasons to enter, %s: %s.", needs, conditions(doc, t.Enter, "; or ")),
			sayConsole("tier.leave", "It is left after %s in it, and when all of this holds: %s.", t.Dwell, conditions(doc, t.Leave, "; and ")),
			sayConsole("tier.ramp", "Out of it in steps of %s %% of the hosts, %s apart.", ramp(t.Ramp), t.RampStep),
		}})
	}
	a := doc.Automatic
	limits := Part{Name: "moves that no person makes", Sentences: []Sentence{
		sayConsole("automatic.every", "At most one in %s%s; more than %d in %s latch the ladder and page somebody.", a.Every,
			map[bool]string{true: ", except that a shed need not wait", false: ""}[a.ShedAtOnce], a.Flaps, a.FlapWindow),
		sayConsole("automatic.blind", "Missing signals alone enter tier %d at most. A tier held longer than %s raises an alarm.", a.Blind, a.Stuck),
	}}
	if a.Budget > 0 {
		limits.Sentences = append(limits.Sentences, sayConsole("automatic.budget", "More than %s at tier 2 and above in a month raises an alarm.", a.Budget))
	}
	out = append(out, limits)
	for _, name := range sortedKeys(doc.Schedule) {
		e := doc.Schedule[name]
		out = append(out, Part{Name: "scheduled: " + name, Sentences: []Sentence{
			sayConsole("schedule", "Tier %d %s from %s until %s; while it runs a tier is left by people only, after %s of good signals. %s",
				e.Tier, scopeWords(e.Scope), when(e.From), when(e.Until), e.Soak, sentence(e.Why)),
		}})
	}
	for _, name := range sortedKeys(doc.Exceptions) {
		e := doc.Exceptions[name]
		out = append(out, Part{Name: "exception: " + name, Sentences: []Sentence{
			say("exception", "The standard's rule %s is not kept at %s until %s; %s mends it. %s", e.Code, e.Path, when(e.Until), e.Owner, sentence(e.Why)),
		}})
	}
	return out
}

func ramp(steps []int) string {
	if len(steps) == 0 {
		return "100"
	}
	words := make([]string, len(steps))
	for i, percent := range steps {
		words[i] = fmt.Sprint(percent)
	}
	return strings.Join(words, ", ")
}

func conditions(doc *policy.LadderDoc, all []policy.Condition, between string) string {
	if len(all) == 0 {
		return "nothing is written down"
	}
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = condition(c, doc.Signals[c.Signal].Unit)
	}
	return strings.Join(words, between)
}

func condition(c policy.Condition, unit string) string {
	if unit != "" {
		unit = " " + unit
	}
	text := c.Signal
	if c.Above != nil {
		text += " above " + number(*c.Above) + unit
	}
	if c.Below != nil {
		text += " below " + number(*c.Below) + unit
	}
	return text + " for " + c.For.String()
}

func (p *page) journeyParts(doc *policy.JourneysDoc) []Part {
	out := []Part{}
	for _, name := range sortedKeys(doc.Journeys) {
		j := doc.Journeys[name]
		sets := make([]string, len(j.BrokenBy))
		for i, set := range j.BrokenBy {
			sets[i] = list(set)
			if len(set) > 1 {
				sets[i] += " together"
			}
		}
		out = append(out, Part{Name: name, Sentences: []Sentence{
			say("journey", "Nobody can %s while these are off: %s.", trimStop(j.Text), strings.Join(sets, "; or ")),
		}})
	}
	return out
}

func (p *page) backendParts(doc *policy.BackendsDoc) []Part {
	out := []Part{}
	for _, name := range sortedKeys(doc.Backends) {
		b := doc.Backends[name]
		part := Part{Name: name}
		if b.Bundled != "" {
			part.Sentences = append(part.Sentences, say("backend.bundled", "It is the backend %s that comes with ic.", b.Bundled))
		} else {
			part.Sentences = append(part.Sentences, say("backend.path", "It is the program %s, run only when its SHA-256 is the one written here (%s).", b.Path, things(sortedKeys(b.SHA256))))
		}
		part.Sentences = append(part.Sentences,
			say("backend.reach", "It reaches %s with %s (%s) and needs %s. Secrets that it may read: %s.",
				targets(b.Targets), count(int64(len(b.Config)), "setting", "settings"), things(sortedKeys(b.Config)), things(b.Dependencies), things(b.Secrets)),
			say("backend.authority", "It carries what others have signed and can permit nothing itself."))
		out = append(out, part)
	}
	inventory := Part{Name: "inventory"}
	if doc.Inventory.Query != "" {
		inventory.Sentences = append(inventory.Sentences, say("inventory.query", "Which hosts there should be is asked of Prometheus: %s; an answer counts for %s.", doc.Inventory.Query, doc.Inventory.MaxAge))
	} else {
		inventory.Sentences = append(inventory.Sentences, say("inventory.hosts", "There should be %s: %s.", count(int64(len(doc.Inventory.Hosts)), "host", "hosts"), perService(doc.Inventory.Hosts)))
	}
	return append(out, inventory)
}

func targets(names []string) string {
	if len(names) == 1 && names[0] == "*" {
		return "every service"
	}
	return things(names)
}

func perService(hosts []policy.InventoryHost) string {
	n := make(map[string]int64)
	for _, h := range hosts {
		for _, s := range h.Services {
			n[s]++
		}
	}
	var words []string
	for _, service := range sortedKeys(n) {
		words = append(words, fmt.Sprintf("%d for %s", n[service], service))
	}
	if len(words) == 0 {
		return "for no service"
	}
	return list(words)
}
