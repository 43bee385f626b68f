package explain

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// PlanReport is what a policy's own numbers add up to.
type PlanReport struct {
	V             int                         `json:"v"`
	Fleet         string                      `json:"fleet"`
	Factor        string                      `json:"load_factor"` // what peaks were multiplied by
	Capacity      []decisions.ServiceCapacity `json:"capacity"`
	Staleness     []decisions.Staleness       `json:"staleness"`
	Bulkheads     []decisions.Bulkhead        `json:"bulkheads"`
	Amplification []decisions.Amplification   `json:"amplification"`
	Recovery      []decisions.TierRecovery    `json:"recovery"`
	Exposure      []RightWorst                `json:"exposure"`
	Cost          decisions.Cost              `json:"cost"`

	programme *policy.Programme
}

// RightWorst is the worst case of one bypass.
type RightWorst struct {
	Right string         `json:"right"`
	Lasts model.Duration `json:"lasts"`
	Worst
}

// Limits of a load factor: a plan for a millionfold load is no plan.
const (
	maxFactorDigits = 7 // before the point
	maxFactorPlaces = 6 // behind it
)

// ErrFactor is the error of ParseFactor.
var ErrFactor = errors.New("a load factor is a number above 0, like 1, 1.5 or 10")

// ParseFactor reads what peaks are multiplied by, as an exact fraction.
func ParseFactor(text string) (*big.Rat, error) {
	whole, places, _ := strings.Cut(text, ".")
	if whole == "" || strings.HasSuffix(text, ".") || len(whole) > maxFactorDigits || len(places) > maxFactorPlaces || strings.Trim(whole+places, "0123456789") != "" {
		return nil, fmt.Errorf("%q: %w", clean(text), ErrFactor)
	}
	factor, ok := new(big.Rat).SetString(text)
	if !ok || factor.Sign() <= 0 {
		return nil, fmt.Errorf("%q: %w", clean(text), ErrFactor)
	}
	return factor, nil
}

// Plan computes capacity, staleness, bulkheads, retry amplification, recovery,
// exposure and cost. factor is as ParseFactor returns it.
func Plan(src Source, factor *big.Rat) (PlanReport, error) {
	r := PlanReport{
		V: 1, Factor: strings.TrimSuffix(strings.TrimRight(factor.FloatString(maxFactorPlaces), "0"), "."),
		Capacity:  decisions.CapacityOf(src.Docs.Features, src.Docs.Ladder, factor),
		Staleness: decisions.StalenessOf(src.Docs.Features), Bulkheads: decisions.BulkheadsOf(src.Docs.Features),
		Amplification: decisions.AmplificationOf(src.Docs.Features), Recovery: decisions.RecoveryOf(src.Docs.Ladder),
		Exposure: []RightWorst{},
	}
	if src.Docs.Features != nil {
		r.programme = src.Docs.Features.Programme
	}
	r.Cost = decisions.CostOf(r.programme, src.Docs.Ladder, src.Now)
	p, err := newPage(src, "")
	if err != nil {
		return r, err
	}
	r.Fleet = src.Root.Fleet
	for _, name := range p.b.RightNames() {
		if w := p.worst(name); w != nil {
			right, _, _ := p.b.Right(name)
			r.Exposure = append(r.Exposure, RightWorst{Right: name, Lasts: right.Bypass.Lasts, Worst: *w})
		}
	}
	return r, nil
}

// sections put a plan into sentences, each question with its formula.
func (r *PlanReport) sections() []Section {
	return []Section{
		{Name: "capacity", Title: "Capacity: which tier a load needs", Parts: r.capacity()},
		{Name: "staleness", Title: "Staleness: how old a snapshot gets", Parts: r.staleness()},
		{Name: "bulkheads", Title: "Bulkheads: how many calls may be in flight", Parts: r.bulkheads()},
		{Name: "amplification", Title: "Retry amplification: calls in the last layer for one request", Parts: r.amplification()},
		{Name: "recovery", Title: "Recovery: how long the way back takes", Parts: r.recovery()},
		{Name: "exposure", Title: "Exposure: what a bypass may cost", Parts: r.exposure()},
		{Name: "cost", Title: "Cost of the programme in a year", Parts: r.cost()},
	}
}

// Text writes a plan as plain text.
func (r *PlanReport) Text(w io.Writer) {
	fmt.Fprintf(w, "The plan of %s, from the numbers of its own policy; load: peak x %s\n", clean(r.Fleet), r.Factor)
	writeSections(w, r.sections())
}

func formula(text string) Part { return Part{Sentences: []Sentence{say("formula", "%s", text)}} }

// none is the part of a question that the policy holds no numbers for.
func none(parts []Part, text string) []Part {
	if len(parts) > 1 {
		return parts
	}
	return append(parts, Part{Sentences: []Sentence{say("none", "%s", text)}})
}

func (r *PlanReport) capacity() []Part {
	out := []Part{formula("freed(tier) = calls of features that are off at the tier / calls of all features of the service. Lowest tier with capacity x (1 + freed) >= peak x " + r.Factor + ". A feature that only gets simpler frees nothing here.")}
	for _, s := range r.Capacity {
		part := Part{Name: s.Service}
		if !s.Measured {
			part.Sentences = append(part.Sentences, say("capacity.unmeasured", "Not measured: capacity or peak is 0 in the ladder."))
		}
		if s.Calls == 0 {
			part.Sentences = append(part.Sentences, say("capacity.no-calls", "No feature of it makes calls: no tier frees anything."))
		}
		for _, t := range s.Tiers {
			part.Sentences = append(part.Sentences, tierCapacity(&s, t)...)
		}
		switch {
		case s.Required == decisions.NoTier && s.Measured:
			part.Sentences = append(part.Sentences, say("capacity.short", "NO TIER SUFFICES for a load of %s a second.", s.Load))
		case s.Measured:
			part.Sentences = append(part.Sentences, say("capacity.required", "A load of %s a second needs tier %d.", s.Load, s.Required))
		}
		out = append(out, part)
	}
	return none(out, "The ladder names no service.")
}

func tierCapacity(s *decisions.ServiceCapacity, t decisions.TierCapacity) []Sentence {
	if !s.Measured && t.Freed == 0 || s.Calls == 0 && t.Tier > 0 {
		return nil // it would say nothing
	}
	freed := fmt.Sprintf("freed %d / %d = %s %%", t.Freed, s.Calls, percent(t.Freed, s.Calls))
	if s.Calls == 0 {
		freed = "freed 0 %"
	}
	if len(t.Off) > 0 {
		freed += " (" + list(t.Off) + ")"
	}
	if !s.Measured {
		return []Sentence{say("capacity.freed", "Tier %d: %s.", t.Tier, freed)}
	}
	return []Sentence{say("capacity.tier", "Tier %d: %s; serves %s x (1 + freed) = %s a second.", t.Tier, freed, s.Capacity, t.Serves)}
}

// percent is part of whole in tenths of a percent, rounded down.
func percent(part, whole int64) string {
	if whole <= 0 {
		return "0"
	}
	tenths := new(big.Int).Mul(big.NewInt(part), big.NewInt(1000))
	tenths.Quo(tenths, big.NewInt(whole))
	text := new(big.Rat).SetFrac(tenths, big.NewInt(10)).FloatString(1)
	return strings.TrimSuffix(text, ".0")
}

func (r *PlanReport) staleness() []Part {
	out := []Part{formula("oldest = refresh + job + one missed run (refresh again), against what product accepts.")}
	for _, s := range r.Staleness {
		verdict := "within"
		if !s.Holds {
			verdict = "OLDER THAN"
		}
		out = append(out, Part{Name: s.Feature + ", " + s.Endpoint, Sentences: []Sentence{
			say("staleness", "%s: %s + %s + %s = %s, %s the accepted %s.", s.Dependency, s.Refresh, s.Job, s.Refresh, s.Oldest, verdict, s.MaxAge),
		}})
	}
	return none(out, "No fallback serves a snapshot.")
}

func (r *PlanReport) bulkheads() []Part {
	out := []Part{formula("slots = calls per second x timeout in seconds x 1.5, rounded up; endpoints of one service share the pool to a dependency.")}
	for _, b := range r.Bulkheads {
		terms := make([]string, len(b.Terms))
		for i, t := range b.Terms {
			terms[i] = fmt.Sprintf("%s x %s s (%s, %s)", t.QPS, t.Timeout, t.Feature, t.Endpoint)
		}
		sum := strings.Join(terms, " + ")
		if len(terms) > 1 {
			sum = "(" + sum + ")"
		}
		out = append(out, Part{Name: b.Service + " to " + b.Dependency, Sentences: []Sentence{say("bulkhead", "%s x 1.5 = %s.", sum, count(b.Slots, "slot", "slots"))}})
	}
	return none(out, "No endpoint says what it calls.")
}

func (r *PlanReport) amplification() []Part {
	out := []Part{formula("calls = product of the attempts along the worst chain of layers; A attempts in each of L layers are A^L. Only services whose endpoints are written down go on.")}
	for _, a := range r.Amplification {
		hops := make([]string, len(a.Chain))
		factors := make([]string, len(a.Chain))
		for i, h := range a.Chain {
			hops[i] = fmt.Sprintf("%s (%d)", h.To, h.Attempts)
			factors[i] = fmt.Sprint(h.Attempts)
		}
		part := Part{Name: a.Feature + ", " + a.Endpoint}
		if len(a.Circle) > 0 {
			part.Sentences = append(part.Sentences, say("amplification.circle", "NO BOUND: the services call each other in a circle: %s.", strings.Join(a.Circle, " -> ")))
		} else {
			part.Sentences = append(part.Sentences, say("amplification", "%s: %s = %s for one request.", strings.Join(hops, " -> "), strings.Join(factors, " x "), count(a.Calls, "call", "calls")))
		}
		out = append(out, part)
	}
	return none(out, "No endpoint says what it calls.")
}

func (r *PlanReport) recovery() []Part {
	out := []Part{formula("a tier takes dwell + steps of its ramp x time of a step; a way back takes its tiers one after the other. Signals have to be good all the time.")}
	for _, t := range r.Recovery {
		out = append(out, Part{Name: fmt.Sprintf("tier %d", t.Tier), Sentences: []Sentence{
			say("recovery", "%s + %d x %s = %s; from here to normal %s.", t.Dwell, t.Steps, t.RampStep, t.Takes, t.ToNormal),
		}})
	}
	return none(out, "The ladder has no tiers.")
}

func (r *PlanReport) exposure() []Part {
	out := []Part{formula("worst case in one UTC day = (hosts + hosts that may join) x budget of a host, from what hosts enforce alone.")}
	for _, w := range r.Exposure {
		text := fmt.Sprintf("(%d + %d) x %s = %s, against a signed total of %s", w.Hosts, w.Replacements, w.PerHost, w.WorstCase, w.Total)
		switch {
		case w.Hosts == 0:
			text = fmt.Sprintf("not known, because the inventory names no host that holds the control; %s a host, against a signed total of %s", w.PerHost, w.Total)
		case !w.Within:
			text += ": MORE than was signed"
		}
		if w.Estimate {
			text += "; an estimate, because hosts without a state folder may open"
		}
		out = append(out, Part{Name: w.Right, Sentences: []Sentence{say("exposure", "%s.", text)}})
	}
	return none(out, "No right is a bypass.")
}

func (r *PlanReport) cost() []Part {
	c, p := &r.Cost, r.programme
	out := []Part{formula("costs = engineers x month x 12 + storage x 12; keeps = revenue in an hour x length / 60 min x outages x share kept.")}
	if p == nil || !c.Assumed {
		out = append(out, Part{Sentences: []Sentence{say("cost.none", "Not measured: features.yaml holds no programme with its assumptions.")}})
	} else {
		sentences := []Sentence{
			say("cost.engineers", "Engineers: %s x %s x 12 = %s.", number(p.Engineers), p.EngineerMonth, c.Engineers),
			say("cost.storage", "Storage: %s x 12 = %s.", p.Storage, c.Storage),
			say("cost.keeps", "Keeps: %s x %d / 60 x %d x %s %% = %s.", p.Hourly, p.Lasts, p.Outages, number(p.Retained), c.Keeps),
		}
		if c.OneCurrency {
			sentences = append(sentences, say("cost.net", "Net: %s - %s = %s a year.", c.Keeps, c.Total, c.Net))
		} else {
			sentences = append(sentences, say("cost.currencies", "Net: cannot be said, the amounts are in several currencies."))
		}
		if c.Saturated {
			sentences = append(sentences, say("cost.saturated", "An amount is larger than can be written; the largest that can stands in its place."))
		}
		out = append(out, Part{Sentences: sentences})
	}
	days := Part{Name: "game days"}
	days.Sentences = append(days.Sentences, say("cost.game-days", "They are paid in the hours of the engineers above. Within a quarter (92 days): %s; not: %s.", things(c.Practised), things(c.Unpractised)))
	if len(c.Unpractised) > 0 && c.Assumed {
		days.Sentences = append(days.Sentences, say("cost.unpractised", "What is kept is an assumption where nobody has practised."))
	}
	return append(out, days)
}
