package shop

import (
	"testing"
)

func TestTierOneTakesTheEdgeFrom82To65PercentAndLeavingItTo95(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
	b.shop.SetDemand(b.shop.Surge())
	before := b.run(10, Edge).last.Service(Edge)
	b.near("CPU under the surge", before.CPU, 823_500, 1*percent)
	b.each(Edge, func(h *puppet) { h.tier = 1 })
	b.near("CPU at tier 1", b.run(30, Edge).last.Service(Edge).CPU, 652_600, 1*percent)
	b.each(Edge, func(h *puppet) { h.tier = 0 })
	b.near("CPU with cold caches", b.run(1, Edge).last.Service(Edge).CPU, 955_000, 1*percent)
	b.near("CPU with warm caches", b.run(130, Edge).last.Service(Edge).CPU, 823_500, 1*percent)
}

func TestFeaturesAndTiersFreeWhatTheyCost(t *testing.T) {
	calls := func(change func(*puppet)) int64 {
		b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
		b.each(Edge, change)
		return b.run(5, Catalog).last.Service(Catalog).Rate
	}
	all := calls(func(*puppet) {})
	for name, c := range map[string]struct {
		change func(*puppet)
		left   int64
	}{
		"tier 1 sheds half":                {func(h *puppet) { h.tier = 1 }, 500_000},
		"tier 2 keeps a fifth":             {func(h *puppet) { h.tier = 2 }, 200_000},
		"tier 4 calls nobody":              {func(h *puppet) { h.tier = 4 }, 0},
		"recommendations off":              {func(h *puppet) { h.off[Recommendations] = true }, 800_000},
		"off what the tier has gone as it": {func(h *puppet) { h.tier = 1; h.off[Badges] = true }, 500_000},
		"off an unknown feature":           {func(h *puppet) { h.off["no-such"] = true }, million},
	} {
		if got := part(calls(c.change), million, all); got != c.left {
			t.Errorf("%s: %d ppm of the calls are left, want %d", name, got, c.left)
		}
	}
}

func TestACatalogAtTierOneDropsWhatIsStillAskedFor(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
	before := b.run(5, Catalog).last.Service(Catalog)
	b.each(Catalog, func(h *puppet) { h.tier = 1 })
	after := b.run(5, Catalog).last.Service(Catalog)
	if after.Rate != before.Rate {
		t.Errorf("its callers asked %d and then %d", before.Rate, after.Rate)
	}
	b.near("its CPU", after.CPU, before.CPU/2, 1*percent)
}

func TestASlowCatalogIsSeenAndATierTwoPageDoesNotWaitForIt(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
	b.shop.SetCatalogSlow(true)
	got := b.run(15, Edge)
	b.near("the catalog's p99", got.last.Service(Catalog).P99, 900_000, 1*percent)
	if r := got.last.Service(Edge); r.P99 < 800_000 || r.Errors < 10_000 {
		t.Errorf("the edge has p99 %d µs and %d ppm errors: it should feel the catalog", r.P99, r.Errors)
	}
	// After 20 s recommendations fall back on a snapshot: the catalog has less to do.
	calmer := b.run(60, Edge)
	if r := calmer.last.Service(Edge); r.Breakers != 10 || calmer.last.Service(Catalog).CPU >= got.last.Service(Catalog).CPU {
		t.Errorf("recommendations still call the slow catalog: %+v", r)
	}
	b.each(Edge, func(h *puppet) { h.tier = 2 })
	r := b.run(5, Edge).last.Service(Edge)
	if r.P99 > 170_000 || r.Errors > 2_000 {
		t.Errorf("at tier 2 the edge has p99 %d µs and %d ppm errors", r.P99, r.Errors)
	}
	b.shop.SetCatalogSlow(false)
	b.each(Edge, func(h *puppet) { h.tier = 0 })
	b.run(60, Edge)
	if r := b.run(5, Edge).last.Service(Edge); r.Breakers != 0 || r.P99 > 220_000 {
		t.Errorf("after the fault: %+v", r)
	}
}

// The first of the documents' incidents: the fallback of a 5 % feature asks the
// same catalog, and 90 s later no page is left.
func TestASharedFallbackTakesThePageDownAndSwitchingItOffBringsItBack(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.SharedFallback = true })
	b.run(10, Edge)
	b.shop.SetCatalogSlow(true)
	if e := b.run(15, Edge).last.Service(Edge).Errors; e > 50_000 {
		t.Errorf("15 s in, %d ppm of the pages fail already", e)
	}
	if e := b.run(75, Edge).last.Service(Edge).Errors; e < 990_000 {
		t.Errorf("90 s in, %d ppm of the pages fail, want all", e)
	}
	if o := b.run(60, Edge).orders; len(o) != 0 {
		t.Errorf("orders without a page: %v", o)
	}
	if r := b.ended(Edge, rejectedCapacity); r < 200_000 {
		t.Errorf("%d ppm of the pages find no slot: the pool is not saturated by those that wait for the fallback", r)
	}
	b.each("", func(h *puppet) { h.off[Recommendations] = true })
	b.run(30, Edge)
	if e := b.run(30, Edge).last.Service(Edge).Errors; e > 50_000 {
		t.Errorf("with recommendations off, %d ppm of the pages fail", e)
	}
}

func TestReadOnlyTakesNoOrdersAndCallsThatNoError(t *testing.T) {
	b := newBench(t, 60, nil)
	b.shop.SetRiskDown(true)
	b.each(Checkout, func(h *puppet) { h.tier, h.under = 3, 5_000 })
	b.run(5, Checkout)
	got := b.run(300, Checkout)
	if len(got.orders) != 1 || got.orders[Refused].Count == 0 {
		t.Errorf("orders ended as %v in read-only mode", got.orders)
	}
	b.near("errors", got.errorPPM(), 1_000, 2*percent)
	b.near("p99", got.last.Service(Checkout).P99, 300_000, 5*percent)
}

func TestLostHostsBurdenTheOthers(t *testing.T) {
	b := newBench(t, 60, nil)
	calm := b.run(10, Checkout).last.Service(Checkout)
	killed := 0
	b.each(Checkout, func(h *puppet) {
		if killed < 20 {
			h.down = true
			killed++
		}
	})
	got := b.run(60, Checkout)
	r := got.last.Service(Checkout)
	if r.Up != 5 || r.CPU != million || r.Errors < 400_000 || r.P99 < 2*calm.P99 {
		t.Errorf("5 of 25 hosts carry on as %+v", r)
	}
	b.each(Checkout, func(h *puppet) { h.down = true })
	got = b.run(60, Checkout)
	if r := got.last.Service(Checkout); r.Rate != 0 || got.orders[Failed].Count == 0 || len(got.orders) != 1 {
		t.Errorf("without a host: %+v, %v", r, got.orders)
	}
	b.each(Checkout, func(h *puppet) { h.down = false })
	b.run(5, Checkout)
	if r := b.run(5, Checkout).last.Service(Checkout); r.Errors > 2_000 {
		t.Errorf("5 s after they came back: %+v", r)
	}
}

func TestOnlySoManyRequestsWaitForADeadDependency(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
	b.shop.SetDemand(2 * million)
	b.shop.SetRiskDown(true)
	b.run(30, Checkout)
	// Slots for 1.5 times the design load, twice the load: a quarter of the
	// requests that need a check finds none.
	b.near("waiting requests", b.ended(Checkout, failedDependency), 1_000+349_000*3/4, 1*percent)
	b.near("requests without a slot", b.ended(Checkout, rejectedCapacity), 349_000/4, 1*percent)
}

func TestARestartedHostFillsItsCachesFirst(t *testing.T) {
	b := newBench(t, 60, func(p *Params) { p.LoadNoise = 0 })
	b.run(5, Edge)
	hosts := b.shop.cells[Edge].hosts
	restarted := hosts[0].Host.(*puppet)
	restarted.down = true
	b.run(3, Edge)
	restarted.down = false
	b.run(1, Edge)
	b.near("the restarted host's CPU", hosts[0].cpu, of(hosts[1].cpu, 1_160_000), 1*percent)
	b.run(130, Edge)
	b.near("its CPU two minutes later", hosts[0].cpu, hosts[1].cpu, 1)
}

func TestWithoutACatalogPagesFailAtOnce(t *testing.T) {
	b := newBench(t, 60, nil)
	b.each(Catalog, func(h *puppet) { h.down = true })
	got := b.run(30, Edge)
	if r := got.last.Service(Edge); r.Errors != million || got.orders[Scored].Count != 0 {
		t.Errorf("%+v, %v", r, got.orders)
	}
}

func TestOverloadIsRefusedAndPasses(t *testing.T) {
	b := newBench(t, 60, nil)
	b.shop.SetDemand(4 * million)
	b.run(60, Edge)
	r := b.run(60, Edge).last.Service(Edge)
	if r.CPU != million || r.Errors < 300_000 {
		t.Errorf("at four times the load: %+v", r)
	}
	b.shop.SetDemand(million)
	b.run(120, Edge)
	if r := b.run(1, Edge).last.Service(Edge); r.Errors > 2_000 || r.P99 > 250_000 {
		t.Errorf("two minutes after the load has gone: %+v", r)
	}
}
