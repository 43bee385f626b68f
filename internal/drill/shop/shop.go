package shop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/model"
)

// How a request ended, in the classes of the documents.
const (
	primarySuccess   = iota // answered as designed
	degradedSuccess         // answered without the check that a bypass skips, or from a snapshot
	rejectedCapacity        // no room: an error
	rejectedSafety          // turned away on purpose: not an error
	failedDependency        // a dependency did not answer in time, or the everyday failure: an error
	outcomes
)

// requestOutcomes are the values of the label "outcome" of a request.
var requestOutcomes = [outcomes]string{
	"primary_success", "degraded_success", "rejected_capacity", "rejected_safety", "failed_dependency",
}

// Shop is the state of the model. It belongs to one goroutine, the kernel's.
type Shop struct {
	p       Params
	load    *kernel.Stream
	orders  *kernel.Stream
	demand  int64 // ppm of the design load
	risk    bool  // payment-risk answers
	slow    bool  // catalog-slow
	cells   map[string]*cell
	refresh breaker // recommendations at the edge give up on the catalog
	fanOut  []int64 // by feature: calls that reach the catalog, in ppm of the design's pages
	arrived []arrival
	tallies [len(OrderOutcomes)]Tally
	last    Tick
}

// cell is one service.
type cell struct {
	name    string
	station Station
	hosts   []*host
	up      []*host // this second
	hist    histogram
	total   histogram
	p99     int64 // µs, mean over the hosts
	wait    int64 // µs, mean over the hosts
}

// host is one host and what the model remembers of it.
type host struct {
	Host
	station
	rate     int64 // millionths of a request per second, this second
	cpu      int64 // ppm
	risk     breaker
	debt     int64 // millionths of requests that belong to refused orders
	tier     int
	counts   [outcomes]int64 // millionths of requests, ever
	now      [outcomes]int64 // this second
	unscored Tally
}

// New builds a shop over hosts, in any order. Every service needs at least one.
func New(p Params, seed uint64, hosts []Host) (*Shop, error) {
	s := &Shop{
		p: p, demand: million, risk: true, fanOut: make([]int64, len(p.Features)), cells: make(map[string]*cell),
		load: kernel.NewStream(seed, "shop/load"), orders: kernel.NewStream(seed, "shop/orders"),
	}
	for _, sh := range shares {
		st := p.Stations[sh.service]
		s.cells[sh.service] = &cell{name: sh.service, station: st, p99: st.P99}
	}
	sorted := slices.SortedFunc(slices.Values(hosts), func(a, b Host) int { return strings.Compare(a.Name(), b.Name()) })
	for i, h := range sorted {
		if i > 0 && sorted[i-1].Name() == h.Name() {
			return nil, fmt.Errorf("build the shop: two hosts are named %s", h.Name())
		}
		c := s.cells[h.Service()]
		if c == nil {
			return nil, fmt.Errorf("build the shop: host %s has the service %q, which it does not know", h.Name(), h.Service())
		}
		c.hosts = append(c.hosts, &host{Host: h})
	}
	for _, sh := range shares {
		if len(s.cells[sh.service].hosts) == 0 {
			return nil, fmt.Errorf("build the shop: no host has the service %s", sh.service)
		}
	}
	return s, nil
}

// SetDemand sets the load in parts per million of the design load; Surge is the
// fault load-surge.
func (s *Shop) SetDemand(ppm int64) { s.demand = max(0, ppm) }

// Surge is the demand of the fault load-surge.
func (s *Shop) Surge() int64 { return s.p.SurgeLoad }

// SetRiskDown is the fault payment-risk-down.
func (s *Shop) SetRiskDown(down bool) { s.risk = !down }

// SetCatalogSlow is the fault catalog-slow.
func (s *Shop) SetCatalogSlow(slow bool) { s.slow = slow }

// Tick is what happened in one second.
type Tick struct {
	Services [len(shares)]Vitals // by name
	Orders   []Order             // valid until the next tick
}

// Vitals is one service in one second. Without a host that is up all but Service
// and Hosts is zero.
type Vitals struct {
	Service       string
	Hosts, Up     int
	Rate          int64 // millionths of a request per second
	P50, P95, P99 int64 // µs
	CPU           int64 // ppm, mean over the hosts that are up
	Errors        int64 // ppm: failed or rejected for want of capacity
	Primary       int64 // millionths of a request per second that went as designed
	Breakers      int   // open on so many hosts
}

// Service is one service of the tick; nil for a name that is none.
func (t *Tick) Service(name string) *Vitals {
	for i := range t.Services {
		if t.Services[i].Service == name {
			return &t.Services[i]
		}
	}
	return nil
}

// Tick computes one second and returns it.
func (s *Shop) Tick() *Tick {
	s.begin()
	pages := s.edgeWork()
	s.catalogWork()
	reached := s.edgePages(pages)
	s.checkoutWork(reached)
	s.riskWork()
	s.finish()
	return &s.last
}

// Tallies are the orders since the start, in the order of OrderOutcomes.
func (s *Shop) Tallies() [len(OrderOutcomes)]Tally { return s.tallies }

// UnscoredOn is what one host let through without a check since the start.
func (s *Shop) UnscoredOn(name string) Tally {
	hosts := s.cells[Checkout].hosts
	at, found := slices.BinarySearchFunc(hosts, name, func(h *host, name string) int { return strings.Compare(h.Name(), name) })
	if !found {
		return Tally{}
	}
	return hosts[at].unscored
}

// begin asks who is up and in which tier. A host that was down comes back with
// nothing waiting, cold caches and breakers that have yet to learn.
func (s *Shop) begin() {
	for _, sh := range shares {
		c := s.cells[sh.service]
		c.hist = histogram{}
		c.up = c.up[:0]
		for _, h := range c.hosts {
			h.now = [outcomes]int64{}
			h.rate, h.cpu = 0, 0
			if !h.Up() {
				h.station = station{cold: million}
				h.risk, h.debt = breaker{}, 0
				continue
			}
			h.tier = h.Tier()
			c.up = append(c.up, h)
		}
	}
}

// add counts n requests of a host.
func (h *host) add(outcome int, n int64) { h.now[outcome] += n }

// finish moves the second's counts into the totals and takes the vitals.
func (s *Shop) finish() {
	for i, sh := range shares {
		c := s.cells[sh.service]
		r := Vitals{Service: c.name, Hosts: len(c.hosts), Up: len(c.up)}
		var all, bad int64
		for _, h := range c.up {
			for o, n := range h.now {
				h.counts[o] += n
				all += n
			}
			bad += h.now[rejectedCapacity] + h.now[failedDependency]
			r.Primary += h.now[primarySuccess]
			r.CPU += h.cpu
			if h.risk.open {
				r.Breakers++
			}
		}
		if c.name == Edge && s.refresh.open {
			r.Breakers = len(c.up)
		}
		if len(c.up) > 0 {
			r.CPU /= int64(len(c.up))
		}
		r.Rate, r.Errors = all, part(bad, million, all)
		if c.hist.count > 0 {
			r.P50, r.P95, r.P99 = c.hist.quantile(500_000), c.hist.quantile(950_000), c.hist.quantile(990_000)
		}
		c.total.merge(&c.hist)
		s.last.Services[i] = r
	}
}

// serveAll lets the up hosts of c do a second's work. demand is in ppm of the
// design load of the whole service; work is what a request costs on a host, in
// ppm of the design.
func (s *Shop) serveAll(c *cell, demand int64, work func(*host) int64, each func(*host, served)) {
	c.p99, c.wait = 0, 0
	if len(c.up) == 0 {
		return
	}
	perHost := part(of(c.station.Busy, demand), int64(len(c.hosts)), int64(len(c.up)))
	for _, h := range c.up {
		got := h.serve(of(perHost, work(h)), c.station.Busy, s.p.QueueLimit)
		h.cpu = got.cpu
		c.p99 += of(c.station.P99, got.stretch) / int64(len(c.up))
		c.wait += got.wait / int64(len(c.up))
		each(h, got)
	}
}

func (s *Shop) money(cents int64) model.Money {
	return model.Money{Minor: cents, Currency: s.p.Currency}
}
