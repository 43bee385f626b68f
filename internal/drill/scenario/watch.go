package scenario

import (
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
)

// watch looks every second at what is on its way: faults that have to take, acts
// that have to arrive, a bypass that opens or closes.
func (r *Run) watch() {
	if !r.waits() {
		return
	}
	r.see(r.w.Facts())
}

// waits reports whether a look between two samples could see anything.
func (r *Run) waits() bool {
	return r.open || slices.ContainsFunc(r.injected, func(in *injection) bool { return in.state == waiting }) ||
		slices.ContainsFunc(r.tracked, func(t *tracked) bool { return t.pending() })
}

// see takes in how the world is now.
func (r *Run) see(f sim.Facts) {
	r.facts = f
	r.sees(&f)
	r.follow(&f)
	if n := bypassed(&f); n > 0 != r.open {
		r.open = n > 0
		e := score.Event{Kind: score.Opened, What: "bypass " + shop.PaymentRisk, Scope: shop.Checkout, Done: n, Total: serviceOf(&f, shop.Checkout).Hosts}
		if !r.open {
			e.Kind = score.Closed
		}
		r.Happened(e)
	}
}

// look takes a sample, and lets those who wait for a cue look too.
func (r *Run) look() {
	if r.over {
		return
	}
	r.see(r.w.Facts())
	r.readSignals()
	r.sample()
	if !r.aborts() {
		r.cues()
	}
}

// sample writes the world down.
func (r *Run) sample() {
	f := &r.facts
	r.missed += missed(f, r.demand(), r.params.OrdersPerMinute)
	s := score.Sample{
		AtMS: r.Now().Milliseconds(), Tier: map[string]int{}, Oracle: r.oracle(), ErrorsPPM: map[string]int64{}, Orders: map[string]int64{},
		ImpactPPM: impact(f), UnscoredCents: f.UnscoredCents(), LostCents: f.LostCents() + r.missed, BypassOpen: bypassed(f),
	}
	for i := range f.Services {
		one := &f.Services[i]
		s.Tier[one.Service], s.ErrorsPPM[one.Service] = most(one.Tiers), one.ErrorsPPM
	}
	for i, name := range shop.OrderOutcomes {
		s.Orders[name] = f.Orders[i].Count
	}
	s.Reached, s.Hosts = r.reach(f)
	for _, name := range slices.Sorted(maps.Keys(s.Tier)) {
		if from, to := r.tiers[name], s.Tier[name]; from != to {
			r.Happened(score.Event{Kind: score.Moved, Scope: name, Done: from, Total: to})
		}
	}
	r.tiers = s.Tier
	r.rec.Samples = append(r.rec.Samples, s)
}

// meanOrder is what an order of the shop is worth on average, in cents; it follows
// from the distribution of its amounts (docs/drill-model.md).
const meanOrder = 57_35

// missed is what the visitors would have bought who got no page with a way to
// checkout, in cents, since the last sample: the model has no order of theirs.
func missed(f *sim.Facts, load, perMinute int64) int64 {
	edge := serviceOf(f, shop.Edge)
	served := million - edge.ErrorsPPM
	if static := edge.Tiers[lastTier(shop.Edge)]; edge.Up > 0 {
		served = served * int64(edge.Up-static) / int64(edge.Up)
	}
	wanted := perMinute * meanOrder * int64(sampleEvery/time.Second) / 60 * load / million
	return wanted * (million - served) / million
}

// bypassed is on how many hosts the check is skipped: those that make it. A naive
// flag stands on every host.
func bypassed(f *sim.Facts) (n int) {
	for i := range f.Fleet {
		if h := &f.Fleet[i]; h.Open && h.Service == shop.Checkout {
			n++
		}
	}
	return n
}

// most is the tier of most hosts, the higher one of two that are as many.
func most(tiers map[int]int) int {
	best := 0
	for _, tier := range slices.Sorted(maps.Keys(tiers)) {
		if tiers[tier] > 0 && tiers[tier] >= tiers[best] {
			best = tier
		}
	}
	return best
}

// impact is the share (ppm) of the customers' two journeys that do not go as
// designed: looking at a page, and buying, for which a page is needed too.
func impact(f *sim.Facts) int64 {
	browse, till := serviceOf(f, shop.Edge).ImpactPPM, serviceOf(f, shop.Checkout).ImpactPPM
	buy := million - (million-browse)*(million-till)/million
	return (browse + buy) / 2
}

// busyLimit is where the oracle would shed: the policy's own threshold.
const busyLimit = 800_000 // ppm of CPU

// oracle is the tier that someone who knew everything would have chosen: none for
// what a tier does not help, snapshots while the catalog is slow, and the lowest
// tier at which the edge has room for its visitors.
func (r *Run) oracle() map[string]int {
	out := map[string]int{}
	for i := range r.facts.Services {
		out[r.facts.Services[i].Service] = 0
	}
	tier := r.roomAt(r.demand())
	if r.active(faults.CatalogSlow) {
		tier = max(tier, 2)
	}
	if tier > 0 {
		out[shop.Edge], out[shop.Catalog] = tier, tier
	}
	return out
}

// roomAt is the lowest tier at which the edge's work fits under the limit.
func (r *Run) roomAt(load int64) int {
	p := r.params
	edge := p.Stations[shop.Edge]
	for tier := range 4 {
		live := int64(0)
		for _, f := range p.Features {
			if tier < f.GoneFrom {
				live += f.FanOut
			}
		}
		work := million - edge.Optional + edge.Optional*live/million
		if edge.Busy*load/million*work/million <= busyLimit {
			return tier
		}
	}
	return 4
}

// demand is the load in ppm of the design load.
func (r *Run) demand() int64 {
	if r.active(faults.LoadSurge) {
		return r.params.SurgeLoad
	}
	return r.load
}

// active reports whether the world has a fault now.
func (r *Run) active(fault string) bool {
	for _, s := range r.w.Faults().List() {
		if s.Name == fault {
			return s.Active
		}
	}
	return false
}
