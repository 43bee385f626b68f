package cache

import (
	"slices"
	"sync/atomic"

	"github.com/degradedmode/ic/host/metrics"
)

// Names of the metrics. Every one has the label cache, the name of the dependency.
const (
	MetricAnswers = "ic_cache_answers_total" // {outcome}: fresh, fetched, stale, or why it was refused
	MetricEntries = "ic_cache_entries"
	MetricBytes   = "ic_cache_bytes"
	MetricEvicted = "ic_cache_evicted_total" // to keep the limits
	MetricUnkept  = "ic_cache_unkept_total"  // answers that were too large to keep
)

// Places in outcomes of what is no refusal.
const (
	fresh = iota
	fetched
	stale
)

var outcomeNames = []string{
	fresh: "fresh", fetched: "fetched", stale: "stale",
	3: string(Nothing), 4: string(TooOld), 5: string(Corrupt), 6: string(NoScope), 7: string(NoPolicy), 8: string(Gone),
}

// outcomes counts what became of each question.
type outcomes [9]atomic.Uint64

func (o *outcomes) count(place int) { o[place].Add(1) }

func (o *outcomes) refused(why Why) { o.count(slices.Index(outcomeNames, string(why))) }

// Metrics implements metrics.Source.
func (c *Cache[V]) Metrics() []metrics.Family {
	c.mu.Lock()
	entries, bytes := len(c.entries), c.bytes
	c.mu.Unlock()
	answers := metrics.Family{Name: MetricAnswers, Type: metrics.Counter, Help: "Answers by what became of the question."}
	for place, name := range outcomeNames {
		answers.Samples = append(answers.Samples, metrics.Sample{
			Labels: []string{"cache", c.cfg.Name, "outcome", name}, Value: float64(c.outcomes[place].Load()),
		})
	}
	single := func(name string, kind metrics.Type, help string, value float64) metrics.Family {
		return metrics.Family{Name: name, Type: kind, Help: help, Samples: []metrics.Sample{{Labels: []string{"cache", c.cfg.Name}, Value: value}}}
	}
	return []metrics.Family{
		answers,
		single(MetricEntries, metrics.Gauge, "Answers that are kept.", float64(entries)),
		single(MetricBytes, metrics.Gauge, "Bytes of what is kept.", float64(bytes)),
		single(MetricEvicted, metrics.Counter, "Answers dropped to keep the limits.", float64(c.evicted.Load())),
		single(MetricUnkept, metrics.Counter, "Answers that were too large to keep.", float64(c.unkept.Load())),
	}
}
