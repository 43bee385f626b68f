package fallback

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/host/metrics"
)

// Names of the metrics.
const (
	MetricFallbacks = "ic_fallback_total"             // {dependency, reason}
	MetricStaleAge  = "ic_fallback_stale_age_seconds" // {dependency}: a histogram
)

const (
	// MaxDependencies is how many dependencies are told apart: what one service
	// calls, several times over. The rest is counted as Other.
	MaxDependencies = 64
	maxName         = 64 // bytes of a dependency's name
)

// Other is the label of everything that has none of its own.
const Other = "other"

// Reason is why a fallback was served. Each asks for another remedy: a slow
// dependency, a broken one, load that is shed already, or a pool that is too small.
type Reason string

// The closed set of reasons. Anything else is counted as Other.
const (
	Timeout     Reason = "timeout"
	Error       Reason = "error"
	CircuitOpen Reason = "circuit_open"
	Bulkhead    Reason = "bulkhead"
)

// reasons are the labels, in the order in which they are kept and printed.
var reasons = [...]Reason{Timeout, Error, CircuitOpen, Bulkhead, Other}

// Errors that a breaker and a bulkhead wrap, so that ReasonOf knows them.
var (
	ErrCircuitOpen = errors.New("the circuit is open")
	ErrBulkhead    = errors.New("the bulkhead is full")
)

// ReasonOf is the reason that an error of a dependency stands for.
func ReasonOf(err error) Reason {
	var slow interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrCircuitOpen):
		return CircuitOpen
	case errors.Is(err, ErrBulkhead):
		return Bulkhead
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return Timeout
	}
	return Error
}

// ages are the upper bounds of the histogram in seconds: from an answer of five
// seconds ago to one of four hours ago, which are different products.
var ages = [...]float64{1, 5, 30, 60, 300, 900, 3600, 14400}

// Config of counters.
type Config struct {
	// Dependencies that are known ahead are shown from the start, at zero: a rate
	// has something to begin from. Others join when they are first counted.
	Dependencies []string
}

// Counters count. They are safe for concurrent use.
type Counters struct {
	mu    sync.RWMutex
	by    map[string]*dependency
	other dependency
}

// dependency is what is counted for one label.
type dependency struct {
	fallbacks [len(reasons)]atomic.Uint64

	mu   sync.Mutex
	aged [len(ages) + 1]uint64 // the last one: older than all
	sum  float64
}

// New makes counters. It fails when more dependencies are declared than are told
// apart, or a name could not be a label.
func New(cfg Config) (*Counters, error) {
	if len(cfg.Dependencies) > MaxDependencies {
		return nil, fmt.Errorf("count fallbacks: %d dependencies, at most %d are told apart", len(cfg.Dependencies), MaxDependencies)
	}
	c := &Counters{by: map[string]*dependency{}}
	for _, name := range cfg.Dependencies {
		if !usable(name) {
			return nil, fmt.Errorf("count fallbacks: dependency %q has to be 1 to %d printable characters of ASCII", name, maxName)
		}
		c.by[name] = &dependency{}
	}
	return c, nil
}

// Count counts one fallback that was served without an age: a default, a simpler
// answer, or nothing.
func (c *Counters) Count(name string, why Reason) {
	c.of(name).fallbacks[placeOf(why)].Add(1)
}

// Stale counts one fallback and how old the answer was that was served.
func (c *Counters) Stale(name string, why Reason, age time.Duration) {
	d := c.of(name)
	d.fallbacks[placeOf(why)].Add(1)
	seconds := max(0, age.Seconds())
	place, _ := slices.BinarySearch(ages[:], seconds)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aged[place]++
	d.sum += seconds
}

// of finds or makes the place of a dependency. When there are as many as are told
// apart, new ones are the other one.
func (c *Counters) of(name string) *dependency {
	c.mu.RLock()
	d, ok := c.by[name]
	full := len(c.by) >= MaxDependencies
	c.mu.RUnlock()
	switch {
	case ok:
		return d
	case full || name == Other || !usable(name):
		return &c.other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d, ok = c.by[name]; ok {
		return d
	}
	if len(c.by) >= MaxDependencies {
		return &c.other
	}
	d = &dependency{}
	c.by[strings.Clone(name)] = d // the caller's may be part of a whole request
	return d
}

func usable(name string) bool {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	return name != "" && name != Other && len(name) <= maxName && !strings.ContainsFunc(name, odd)
}

func placeOf(why Reason) int {
	for i, r := range reasons {
		if r == why {
			return i
		}
	}
	return len(reasons) - 1
}

// Metrics implements metrics.Source.
func (c *Counters) Metrics() []metrics.Family {
	c.mu.RLock()
	by := maps.Clone(c.by)
	c.mu.RUnlock()
	fallbacks := metrics.Family{Name: MetricFallbacks, Type: metrics.Counter, Help: "Fallbacks served instead of an answer, by dependency and reason."}
	aged := metrics.Family{Name: MetricStaleAge, Type: metrics.Histogram, Help: "Age of what was served instead of an answer, in seconds."}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		by[name].add(name, true, &fallbacks, &aged)
	}
	c.other.add(Other, false, &fallbacks, &aged)
	return []metrics.Family{fallbacks, aged}
}

// add appends the lines of one dependency. Those of no reason and of other are
// left out while they are zero, and so is a histogram without an age.
func (d *dependency) add(name string, known bool, fallbacks, aged *metrics.Family) {
	for i, why := range reasons {
		if n := d.fallbacks[i].Load(); n > 0 || known && why != Other {
			fallbacks.Samples = append(fallbacks.Samples, metrics.Sample{
				Labels: []string{"dependency", name, "reason", string(why)}, Value: float64(n),
			})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var count uint64
	var lines []metrics.Sample
	for i, n := range d.aged {
		bound := "+Inf"
		if count += n; i < len(ages) {
			bound = fmt.Sprintf("%g", ages[i])
		}
		lines = append(lines, metrics.Sample{Suffix: "_bucket", Labels: []string{"dependency", name, "le", bound}, Value: float64(count)})
	}
	if count == 0 {
		return
	}
	aged.Samples = append(aged.Samples, append(lines,
		metrics.Sample{Suffix: "_sum", Labels: []string{"dependency", name}, Value: math.Round(d.sum*1000) / 1000},
		metrics.Sample{Suffix: "_count", Labels: []string{"dependency", name}, Value: float64(count)},
	)...)
}
