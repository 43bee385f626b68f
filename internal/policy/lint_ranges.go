package policy

import (
	"fmt"
	"strconv"
)

// lastCriticality is what is rejected first.
const lastCriticality = 3

// Bounds of numbers that are written down and not computed. They keep the
// arithmetic of a plan inside what a float64 and a reader can hold.
const (
	maxCalls     = 10_000      // backend calls of one page
	maxQPS       = 10_000_000  // calls per second to one dependency
	maxTimeoutMS = 60_000      // a caller that waits longer has left
	maxAttempts  = 10          // retries multiply at every hop
	maxRPS       = 100_000_000 // requests per second of one service
	maxEngineers = 10_000
	maxOutages   = 1_000
	maxLasts     = 10_000 // minutes of an outage: a week
	percent      = 100
)

// number is one value of a document and the range that it stands in.
type number struct {
	path              string
	value, least, top float64
}

func sayOutside(say say, file string, numbers ...number) {
	for _, n := range numbers {
		if !(n.value >= n.least && n.value <= n.top) { // NaN is outside too
			say(file, n.path, "%s is not between %s and %s", plain(n.value), plain(n.least), plain(n.top))
		}
	}
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func rangeRules() []rule {
	return []rule{{"out-of-range", LintError, outOfRange}}
}

func outOfRange(l *lint, say say) {
	features, ladder := fileOf(Features), fileOf(Ladder)
	l.eachFeature(func(path, _ string, f *Feature) {
		sayOutside(say, features, number{path + ".calls", float64(f.Calls), 0, maxCalls})
	})
	l.eachEndpoint(func(path string, _ *Feature, e *Endpoint) {
		sayOutside(say, features, number{path + ".criticality", float64(e.Criticality), 0, lastCriticality})
	})
	l.eachCall(func(c *call) {
		sayOutside(say, features,
			number{c.path + ".qps", c.QPS, 0, maxQPS},
			number{c.path + ".timeout_ms", float64(c.TimeoutMS), 1, maxTimeoutMS},
			number{c.path + ".attempts", float64(c.Attempts), 1, maxAttempts})
		if c.Fallback != nil {
			sayOutside(say, features, number{c.path + ".fallback.traffic", c.Fallback.Traffic, 0, percent})
		}
	})
	if l.Features != nil && l.Features.Programme != nil {
		p := l.Features.Programme
		sayOutside(say, features,
			number{"programme.engineers", p.Engineers, 0, maxEngineers},
			number{"programme.outages", float64(p.Outages), 0, maxOutages},
			number{"programme.lasts", float64(p.Lasts), 0, maxLasts},
			number{"programme.retained", p.Retained, 0, percent})
	}
	l.eachService(func(path, _ string, s *Service) {
		sayOutside(say, ladder, number{path + ".capacity", s.Capacity, 0, maxRPS}, number{path + ".peak", s.Peak, 0, maxRPS})
	})
	if l.root != nil {
		for _, name := range sortedKeys(l.root.Roles) {
			sayOutside(say, l.rootName(), number{fmt.Sprintf("roles.%s.max_tier", name), float64(l.root.Roles[name].MaxTier), 0, maxTiers})
		}
	}
}
