package decisions

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Staleness compares the oldest answer of a snapshot with what product accepts.
type Staleness struct {
	Feature    string         `json:"feature"`
	Endpoint   string         `json:"endpoint"`
	Dependency string         `json:"dependency"`
	Refresh    model.Duration `json:"refresh"`
	Job        model.Duration `json:"job"`
	Oldest     model.Duration `json:"oldest"` // refresh + job + one missed run, which is refresh again
	MaxAge     model.Duration `json:"max_age"`
	Holds      bool           `json:"holds"` // oldest <= max_age
}

// StalenessOf computes refresh + job + one missed run for every snapshot.
func StalenessOf(doc *policy.FeaturesDoc) []Staleness {
	out := []Staleness{}
	eachDependency(doc, func(at place, dep *policy.Dependency) {
		if dep.Fallback == nil || dep.Fallback.Source != policy.Snapshot {
			return
		}
		f := dep.Fallback
		oldest := model.Duration(sum(sum(int64(f.Refresh), int64(f.Job)), int64(f.Refresh)))
		out = append(out, Staleness{
			Feature: at.feature, Endpoint: at.endpoint, Dependency: at.dependency,
			Refresh: f.Refresh, Job: f.Job, Oldest: oldest, MaxAge: f.MaxAge, Holds: oldest <= f.MaxAge,
		})
	})
	return out
}

type place struct{ feature, service, endpoint, dependency string }

func eachDependency(doc *policy.FeaturesDoc, fn func(place, *policy.Dependency)) {
	if doc == nil {
		return
	}
	for _, feature := range sorted(doc.Features) {
		f := doc.Features[feature]
		for _, endpoint := range sorted(f.Endpoints) {
			for _, name := range sorted(f.Endpoints[endpoint].Dependencies) {
				dep := f.Endpoints[endpoint].Dependencies[name]
				fn(place{feature, f.Service, endpoint, name}, &dep)
			}
		}
	}
}

// Bulkhead is the pool of calls from one service to one dependency.
type Bulkhead struct {
	Service    string         `json:"service"` // the caller, who holds the pool
	Dependency string         `json:"dependency"`
	Terms      []BulkheadTerm `json:"terms"` // one for each endpoint that calls it
	Slots      int64          `json:"slots"` // sum of qps x timeout, x 1.5, rounded up
}

// BulkheadTerm is the share of one endpoint.
type BulkheadTerm struct {
	Feature  string      `json:"feature"`
	Endpoint string      `json:"endpoint"`
	QPS      json.Number `json:"qps"`
	Timeout  json.Number `json:"timeout_s"`
}

// bulkheadRoom is the room above the mean number of calls in flight: 1.5.
func bulkheadRoom() *big.Rat { return big.NewRat(3, 2) }

// BulkheadsOf computes qps x timeout x 1.5 for every pair of a service and a
// dependency that it calls, rounded up. Endpoints of one service share the pool.
func BulkheadsOf(doc *policy.FeaturesDoc) []Bulkhead {
	busy := make(map[[2]string]*big.Rat)
	pools := make(map[[2]string]*Bulkhead)
	eachDependency(doc, func(at place, dep *policy.Dependency) {
		qps, ok := exact(dep.QPS)
		if !ok {
			return
		}
		key := [2]string{at.service, at.dependency}
		if pools[key] == nil {
			pools[key], busy[key] = &Bulkhead{Service: at.service, Dependency: at.dependency}, new(big.Rat)
		}
		timeout := big.NewRat(int64(max(dep.TimeoutMS, 0)), 1000)
		pools[key].Terms = append(pools[key].Terms, BulkheadTerm{Feature: at.feature, Endpoint: at.endpoint, QPS: precise(qps), Timeout: precise(timeout)})
		busy[key].Add(busy[key], new(big.Rat).Mul(qps, timeout))
	})
	out := []Bulkhead{}
	for key, pool := range pools {
		pool.Slots = capped(ceiling(new(big.Rat).Mul(busy[key], bulkheadRoom())))
		out = append(out, *pool)
	}
	slices.SortFunc(out, func(a, b Bulkhead) int {
		return slices.Compare([]string{a.Service, a.Dependency}, []string{b.Service, b.Dependency})
	})
	return out
}

// precise is a number as it was written: a term of a formula is not rounded.
func precise(r *big.Rat) json.Number {
	digits, _ := r.FloatPrec() // finite: it was a decimal
	return json.Number(r.FloatString(digits))
}

// Amplification is how many calls the last layer may see for one request that
// comes in at an endpoint, when every layer retries.
type Amplification struct {
	Feature  string   `json:"feature"`
	Endpoint string   `json:"endpoint"`
	Chain    []Hop    `json:"chain"`            // the worst way down
	Calls    int64    `json:"calls"`            // product of its attempts
	Circle   []string `json:"circle,omitempty"` // services that call each other in a circle: there is no bound
}

// Hop is one layer: what is called, and how often at most.
type Hop struct {
	To       string `json:"to"`
	Attempts int    `json:"attempts"`
}

// AmplificationOf multiplies attempts along the worst chain from every endpoint:
// through each dependency that is a service, on through that service's own
// endpoints. A attempts in each of L layers are A^L.
func AmplificationOf(doc *policy.FeaturesDoc) []Amplification {
	out := []Amplification{}
	if doc == nil {
		return out
	}
	g := &calls{doc: doc, known: make(map[string]worst), open: make(map[string]bool)}
	for _, feature := range sorted(doc.Features) {
		f := doc.Features[feature]
		for _, endpoint := range sorted(f.Endpoints) {
			e := f.Endpoints[endpoint]
			if len(e.Dependencies) == 0 {
				continue
			}
			g.path, g.open = []string{f.Service}, map[string]bool{f.Service: true}
			w := g.endpoint(&e)
			out = append(out, Amplification{Feature: feature, Endpoint: endpoint, Chain: append([]Hop{}, w.chain...), Calls: w.calls, Circle: w.circle})
		}
	}
	return out
}

// worst is the worst chain below one point.
type worst struct {
	calls  int64
	chain  []Hop
	circle []string
}

// than reports whether w is worse. A circle is worse than any number; of equal
// numbers the longer way shows more.
func (w *worst) than(best *worst) bool {
	switch {
	case best.circle != nil:
		return false
	case w.circle != nil:
		return true
	default:
		return cmp.Or(cmp.Compare(w.calls, best.calls), cmp.Compare(len(w.chain), len(best.chain))) > 0
	}
}

// calls walks the endpoints of services. open and path are the services on the
// way down, for noticing a circle.
type calls struct {
	doc   *policy.FeaturesDoc
	known map[string]worst
	open  map[string]bool
	path  []string
}

func (g *calls) endpoint(e *policy.Endpoint) worst {
	best := worst{calls: 1}
	for _, name := range sorted(e.Dependencies) {
		below := g.service(name)
		attempts := max(e.Dependencies[name].Attempts, 1)
		w := worst{calls: product(int64(attempts), below.calls), circle: below.circle, chain: append([]Hop{{To: name, Attempts: attempts}}, below.chain...)}
		if w.than(&best) {
			best = w
		}
	}
	return best
}

func (g *calls) service(name string) worst {
	if g.open[name] {
		from := slices.Index(g.path, name)
		return worst{calls: 1, circle: append(slices.Clone(g.path[from:]), name)}
	}
	if w, ok := g.known[name]; ok {
		return w
	}
	best := worst{calls: 1}
	g.open[name] = true
	g.path = append(g.path, name)
	own := featuresOf(g.doc, name)
	for _, feature := range sorted(own) {
		endpoints := own[feature].Endpoints
		for _, endpoint := range sorted(endpoints) {
			e := endpoints[endpoint]
			w := g.endpoint(&e)
			if w.than(&best) {
				best = w
			}
		}
	}
	g.path = g.path[:len(g.path)-1]
	delete(g.open, name)
	g.known[name] = best
	return best
}

func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
