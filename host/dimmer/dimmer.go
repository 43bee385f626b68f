package dimmer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/host/latency"
	"github.com/degradedmode/ic/host/metrics"
)

// Defaults where nothing is signed and nothing else is configured.
const (
	DefaultTarget  = 300 * time.Millisecond
	DefaultFloor   = 0.02
	DefaultCeiling = 1
)

const (
	// Every is the time between two steps.
	Every = 5 * time.Second

	gain     = 0.3
	quantile = 0.95

	// MinSamples is how many requests a step needs: of fewer the slowest twentieth
	// is nobody. They wait for the next step, for a minute at most.
	MinSamples = 20
	maxWindow  = time.Minute
)

// Bounds within which a dimmer moves.
type Bounds struct {
	Target  time.Duration // of the 95th percentile
	Floor   float64       // lowest share, above 0
	Ceiling float64       // highest share, Floor to 1
}

func (b Bounds) check() error {
	if b.Target <= 0 || !(b.Floor > 0 && b.Floor <= b.Ceiling && b.Ceiling <= 1) {
		return fmt.Errorf("a target of %s and shares from %g to %g: want a target above zero and 0 < floor <= ceiling <= 1", b.Target, b.Floor, b.Ceiling)
	}
	return nil
}

func (b Bounds) clamp(share float64) float64 { return max(b.Floor, min(b.Ceiling, share)) }

// Config of a dimmer. Name is required.
type Config struct {
	Name string // in metrics
	// Bounds while nothing is signed; fields of zero are the defaults.
	Bounds Bounds
	// Signed are the bounds of directives in force, such as Host.Dimmer; false when
	// there is none. They are asked for with every request, so that a directive
	// counts at once. nil: never.
	Signed func() (Bounds, bool)

	Now  func() time.Time // nil: time.Now
	Rand func() float64   // from 0 to below 1, safe for concurrent use; nil: math/rand/v2
}

// Dimmer is one dimmer. It is safe for concurrent use and runs no goroutine: it
// steps when it is used.
type Dimmer struct {
	cfg    Config
	start  time.Time
	window latency.Histogram

	next  atomic.Int64  // time since start of the next step
	share atomic.Uint64 // bits of a float64

	mu     sync.Mutex // held during a step
	opened time.Duration
	p95    time.Duration // of the last step; 0: none yet

	shown, hidden atomic.Uint64
}

// New makes a dimmer at its ceiling: everything is shown until it is measured to
// be too slow.
func New(cfg Config) (*Dimmer, error) {
	if cfg.Name == "" {
		return nil, errors.New("make a dimmer: it needs a name")
	}
	if cfg.Bounds.Target == 0 {
		cfg.Bounds.Target = DefaultTarget
	}
	if cfg.Bounds.Floor == 0 {
		cfg.Bounds.Floor = DefaultFloor
	}
	if cfg.Bounds.Ceiling == 0 {
		cfg.Bounds.Ceiling = DefaultCeiling
	}
	if err := cfg.Bounds.check(); err != nil {
		return nil, fmt.Errorf("make dimmer %s: %w", cfg.Name, err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	d := &Dimmer{cfg: cfg, start: cfg.Now()}
	d.next.Store(int64(Every))
	d.share.Store(math.Float64bits(1))
	return d, nil
}

// bounds are the signed ones, if there are any that make sense.
func (d *Dimmer) bounds() Bounds {
	if d.cfg.Signed != nil {
		if b, ok := d.cfg.Signed(); ok && b.check() == nil {
			return b
		}
	}
	return d.cfg.Bounds
}

// Observe counts how long a request took, with or without optional work.
func (d *Dimmer) Observe(took time.Duration) {
	d.step()
	d.window.Observe(took)
}

// Share is the share of requests for which optional work is done now.
func (d *Dimmer) Share() float64 {
	d.step()
	return d.bounds().clamp(math.Float64frombits(d.share.Load()))
}

// Show decides for one request by chance. Ask once per request and feature.
func (d *Dimmer) Show() bool { return d.decide(d.cfg.Rand()) }

// ShowFor decides by the names of a feature and of a request, a user or a session:
// the same names get the same answer for as long as the share does, on every host,
// and who is shown something at one share is shown it at every higher one.
func (d *Dimmer) ShowFor(feature, request string) bool { return d.decide(place(feature, request)) }

func (d *Dimmer) decide(at float64) bool {
	if at < d.Share() {
		d.shown.Add(1)
		return true
	}
	d.hidden.Add(1)
	return false
}

// step moves the share when it is time. Whoever comes while another does it goes
// on with the share of before.
func (d *Dimmer) step() {
	at := d.cfg.Now().Sub(d.start)
	if int64(at) < d.next.Load() || !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	if int64(at) < d.next.Load() {
		return
	}
	d.next.Store(int64(at + Every))
	if d.window.Count() < MinSamples {
		if at-d.opened >= maxWindow { // too old to say anything of now
			d.window.Take()
			d.opened = at
		}
		return
	}
	d.opened = at
	seen := d.window.Take()
	p95, ok := seen.Quantile(quantile)
	if !ok {
		return
	}
	d.p95 = p95
	b := d.bounds()
	share := b.clamp(math.Float64frombits(d.share.Load()))
	share += gain * float64(b.Target-p95) / float64(b.Target)
	d.share.Store(math.Float64bits(b.clamp(share)))
}

// place is a number from 0 to below 1 that two names always have: FNV-1a of both,
// and the finalizer of MurmurHash3, since FNV leaves the highest bits of short
// names almost alone.
func place(feature, request string) float64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(feature) {
		h = (h ^ uint64(feature[i])) * prime
	}
	h = (h ^ 0xff) * prime // no byte of UTF-8: "ab"+"c" is not "a"+"bc"
	for i := range len(request) {
		h = (h ^ uint64(request[i])) * prime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return float64(h>>11) / (1 << 53)
}

// Names of the metrics. Every one has the label dimmer.
const (
	MetricShare    = "ic_dimmer_share"
	MetricTarget   = "ic_dimmer_target_seconds"
	MetricP95      = "ic_dimmer_p95_seconds"    // of the last step; absent before the first
	MetricRequests = "ic_dimmer_requests_total" // {shown}: true or false
)

// Metrics implements metrics.Source.
func (d *Dimmer) Metrics() []metrics.Family {
	share, b := d.Share(), d.bounds()
	d.mu.Lock()
	p95 := d.p95
	d.mu.Unlock()
	sample := func(value float64, labels ...string) metrics.Sample {
		return metrics.Sample{Labels: append([]string{"dimmer", d.cfg.Name}, labels...), Value: value}
	}
	slow := metrics.Family{Name: MetricP95, Type: metrics.Gauge, Help: "95th percentile of latency at the last step."}
	if p95 > 0 {
		slow.Samples = []metrics.Sample{sample(p95.Seconds())}
	}
	return []metrics.Family{
		{Name: MetricShare, Type: metrics.Gauge, Help: "Share of requests for which optional work is done.", Samples: []metrics.Sample{sample(share)}},
		{Name: MetricTarget, Type: metrics.Gauge, Help: "Target of the 95th percentile of latency.", Samples: []metrics.Sample{sample(b.Target.Seconds())}},
		slow,
		{Name: MetricRequests, Type: metrics.Counter, Help: "Requests with and without optional work.", Samples: []metrics.Sample{
			sample(float64(d.shown.Load()), "shown", "true"), sample(float64(d.hidden.Load()), "shown", "false"),
		}},
	}
}
