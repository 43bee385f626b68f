package sim

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// Facts is what is really so, whatever anybody's console shows.
type Facts struct {
	At         time.Time
	Hosts, Up  int
	Services   []ServiceFacts                      // by name
	Fleet      []HostFacts                         // by name
	BypassOpen []string                            // hosts on which the shop's control is bypassed
	Orders     [len(shop.OrderOutcomes)]shop.Tally // since the start, in the order of shop.OrderOutcomes
	ImpactPPM  int64                               // share of the customers' requests of the last second that did not go as designed
	Live       []model.Directive                   // everything signed that is in force now, by id
	Ends       []model.Directive                   // every ending so far of anything but a tier: it acts at once, and is not in force itself
}

// ServiceFacts is one service, in the last second.
type ServiceFacts struct {
	Service   string
	Issued    int         // the highest tier that is ordered of one of its hosts
	Tiers     map[int]int // hosts that are up, by the tier that they obey
	Hosts, Up int
	ErrorsPPM int64
	ImpactPPM int64 // share of its requests that did not go as designed
	P99       int64 // µs
	CPUPPM    int64
}

// HostFacts is one host.
type HostFacts struct {
	Host, Service string
	Up            bool
	Issued        int // tier that the statements in force order of this host
	Tier          int // tier that it obeys
	Off           []string
	Open          bool  // the shop's control is bypassed
	Version       int64 // of the flags that it has read last; 0 none
	Unscored      shop.Tally

	host *host
}

// Obeys reports whether a directive is in force on the host, by its own engine. It
// looks at the host as it is when it is asked, and a host that is down obeys nothing.
func (h *HostFacts) Obeys(id string) bool {
	if h.host == nil || !h.host.awake() {
		return false
	}
	return slices.ContainsFunc(h.host.engine.Standing(h.host.clock.Now()), func(s engine.Standing) bool { return s.Directive.ID == id })
}

// UnscoredCents is what went through without a check since the start.
func (f Facts) UnscoredCents() int64 { return f.outcome(shop.Unscored).Cents }

// LostCents is what was refused or failed since the start.
func (f Facts) LostCents() int64 {
	return f.outcome(shop.Refused).Cents + f.outcome(shop.Failed).Cents
}

func (f Facts) outcome(name string) shop.Tally {
	for i, o := range shop.OrderOutcomes {
		if o == name {
			return f.Orders[i]
		}
	}
	return shop.Tally{}
}

// Facts is the ground truth now.
func (w *World) Facts() Facts {
	f := Facts{At: w.k.Now(), Hosts: len(w.hosts), Orders: w.shop.Tallies(), Ends: w.ends}
	standing := w.oracle.Standing(w.oracleC.Now())
	for i := range standing {
		f.Live = append(f.Live, standing[i].Directive)
	}
	var all, primary int64
	for i := range w.tick.Services {
		v := &w.tick.Services[i]
		f.Services = append(f.Services, ServiceFacts{
			Service: v.Service, Tiers: map[int]int{}, Hosts: v.Hosts, ErrorsPPM: v.Errors, P99: v.P99, CPUPPM: v.CPU,
			ImpactPPM: missing(v.Primary, v.Rate),
		})
		if v.Service == shop.Edge || v.Service == shop.Checkout { // what customers ask
			all, primary = all+v.Rate, primary+v.Primary
		}
	}
	f.ImpactPPM = missing(primary, all)
	for _, h := range w.hosts {
		f.add(h, standing)
	}
	return f
}

// missing is the share (ppm) of all that is not in part; of nothing everything is
// missing: a service without a host serves nobody.
func missing(part, all int64) int64 {
	const million = 1_000_000
	if all == 0 {
		return million
	}
	return million - part*1000/max(1, all/1000)
}

func (f *Facts) add(h *host, standing []engine.Standing) {
	one := HostFacts{
		Host: h.spec.Name, Service: h.spec.Service, Up: h.Up(), Issued: orderedOf(h, standing),
		Version: h.version, Unscored: h.w.shop.UnscoredOn(h.spec.Name), host: h,
	}
	s := f.Service(h.spec.Service)
	s.Issued = max(s.Issued, one.Issued)
	if one.Up {
		one.Tier, one.Open = h.Tier(), h.Open(h.w.o.Params.Control)
		for i := range h.w.o.Params.Features {
			if name := h.w.o.Params.Features[i].Name; h.Off(name) {
				one.Off = append(one.Off, name)
			}
		}
		s.Tiers[one.Tier]++
		s.Up++
		f.Up++
		if one.Open {
			f.BypassOpen = append(f.BypassOpen, one.Host)
		}
	}
	if h.w.plain != nil {
		one.Version = h.plain.version
	}
	f.Fleet = append(f.Fleet, one)
}

// orderedOf is the tier that everything in force orders of a host.
func orderedOf(h *host, standing []engine.Standing) int {
	tier := 0
	for i := range standing {
		d := &standing[i].Directive
		if (d.Kind == model.Shed || d.Kind == model.End) && d.Covers(h.spec.Service) {
			tier = max(tier, directive.TierOn(*d, h.spec.Name))
		}
	}
	return min(tier, h.w.bundle.LastTier(h.spec.Service))
}

// Service is one service by its name; nil for one that is none.
func (f Facts) Service(name string) *ServiceFacts {
	for i := range f.Services {
		if f.Services[i].Service == name {
			return &f.Services[i]
		}
	}
	return nil
}
