package overload

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/host/metrics"
)

// Mode is how much is too much.
type Mode int32

// The modes, in ascending order.
const (
	Normal   Mode = iota
	Degraded      // leave out what is optional
	Severe        // refuse what can be refused
)

// String names the mode.
func (m Mode) String() string {
	if m < Normal || m > Severe {
		return "?"
	}
	return [...]string{"NORMAL", "DEGRADED", "SEVERE"}[m]
}

// Defaults of a Config.
const (
	DefaultLeaveAfter = 10 * time.Minute
	DefaultMaxGap     = time.Minute // readings come every few seconds; a minute without is no evidence
)

// Band is a pair of thresholds: a mode is entered above Enter, and left below
// Leave, which is lower.
type Band struct {
	Enter, Leave float64
}

// Limit is what one signal may be. More of it is worse: a utilisation, a latency, a
// number of requests. A band of zero means that the signal does not bring the mode
// about.
type Limit struct {
	Signal   string
	Degraded Band
	Severe   Band
}

// Config of a detector. Name and at least one limit are required.
type Config struct {
	Name   string // in metrics
	Limits []Limit

	EnterAfter time.Duration // how long a reading has to be too high; 0: the first one counts
	LeaveAfter time.Duration // how long all readings have to be low; 0: DefaultLeaveAfter
	MaxGap     time.Duration // longest time between two readings of one window; 0: DefaultMaxGap

	Now func() time.Time // nil: time.Now
}

// State is a mode with its reason.
type State struct {
	Mode   Mode
	Since  time.Time
	Signal string  // that was too high when the mode was entered; "" on the way down
	Value  float64 // its reading
}

// Detector finds the mode. It is safe for concurrent use.
type Detector struct {
	cfg  Config
	mode atomic.Int32

	mu    sync.Mutex
	state State
	last  time.Time          // reading
	hot   [Severe + 1]since  // by mode: too high
	calm  since              // low enough to leave the present mode
	moves [Severe + 1]uint64 // by mode: entered, from wherever
}

// since is when something began to hold without a break; zero: it does not.
type since struct{ at time.Time }

func (s *since) hold(holds bool, now time.Time) {
	if !holds {
		s.at = time.Time{}
	} else if s.at.IsZero() {
		s.at = now
	}
}

func (s *since) lasted(d time.Duration, now time.Time) bool {
	return !s.at.IsZero() && now.Sub(s.at) >= d
}

// New makes a detector in mode NORMAL.
func New(cfg Config) (*Detector, error) {
	if cfg.LeaveAfter == 0 {
		cfg.LeaveAfter = DefaultLeaveAfter
	}
	if cfg.MaxGap == 0 {
		cfg.MaxGap = DefaultMaxGap
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("make overload detector %q: %w", cfg.Name, err)
	}
	return &Detector{cfg: cfg, state: State{Since: cfg.Now()}}, nil
}

func (cfg *Config) check() error {
	switch {
	case cfg.Name == "":
		return errors.New("it needs a name")
	case len(cfg.Limits) == 0:
		return errors.New("without a limit nothing is ever too much")
	case min(cfg.EnterAfter, cfg.LeaveAfter, cfg.MaxGap) < 0:
		return errors.New("a time is below zero")
	}
	seen := map[string]bool{}
	for _, l := range cfg.Limits {
		if l.Signal == "" || seen[l.Signal] {
			return fmt.Errorf("signal %q has no name or two limits", l.Signal)
		}
		seen[l.Signal] = true
		if l.Degraded == (Band{}) && l.Severe == (Band{}) {
			return fmt.Errorf("signal %s has no band", l.Signal)
		}
		for _, b := range []Band{l.Degraded, l.Severe} {
			if b != (Band{}) && !(b.Leave < b.Enter) {
				return fmt.Errorf("signal %s is left at %g and entered at %g: the way out has to be lower", l.Signal, b.Leave, b.Enter)
			}
		}
		if l.Degraded != (Band{}) && l.Severe != (Band{}) && l.Severe.Enter <= l.Degraded.Enter {
			return fmt.Errorf("signal %s is severe at %g and degraded at %g: severe has to be higher", l.Signal, l.Severe.Enter, l.Degraded.Enter)
		}
	}
	return nil
}

// Mode is the mode of now. It costs one load.
func (d *Detector) Mode() Mode { return Mode(d.mode.Load()) }

// State is the mode with its reason.
func (d *Detector) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// Update takes one reading of the signals and returns the mode. A signal that is
// missing, NaN or infinite brings no mode about and lets none end. While nobody
// calls it the mode stays.
func (d *Detector) Update(readings map[string]float64) Mode {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.cfg.Now()
	if d.last.IsZero() || now.Sub(d.last) > d.cfg.MaxGap {
		d.calm, d.hot = since{}, [Severe + 1]since{}
	}
	d.last = now
	for mode := Severe; mode > Normal; mode-- {
		signal, value, high := d.high(mode, readings)
		d.hot[mode].hold(high, now)
		if mode > d.state.Mode && d.hot[mode].lasted(d.cfg.EnterAfter, now) {
			d.move(State{Mode: mode, Since: now, Signal: signal, Value: value})
		}
	}
	if d.state.Mode == Normal {
		return Normal
	}
	d.calm.hold(d.low(d.state.Mode, readings), now)
	if d.calm.lasted(d.cfg.LeaveAfter, now) {
		d.move(State{Mode: d.state.Mode - 1, Since: now})
	}
	return d.state.Mode
}

// move changes the mode. The window of the next one begins with the next reading.
func (d *Detector) move(to State) {
	d.state, d.calm = to, since{}
	d.moves[to.Mode]++
	d.mode.Store(int32(to.Mode))
}

// high finds a signal that brings mode about. What is severe is degraded too.
func (d *Detector) high(mode Mode, readings map[string]float64) (string, float64, bool) {
	for _, l := range d.cfg.Limits {
		value, ok := known(readings, l.Signal)
		if !ok {
			continue
		}
		for at := mode; at <= Severe; at++ {
			if b := l.band(at); b != (Band{}) && value > b.Enter {
				return l.Signal, value, true
			}
		}
	}
	return "", 0, false
}

// low reports whether every signal that can bring mode about is below its way out.
// To come down to NORMAL those that are only ever severe have to be low as well.
func (d *Detector) low(mode Mode, readings map[string]float64) bool {
	for _, l := range d.cfg.Limits {
		b := l.band(mode)
		if b == (Band{}) && mode == Degraded {
			b = l.Severe
		}
		if b == (Band{}) {
			continue
		}
		if value, ok := known(readings, l.Signal); !ok || value >= b.Leave {
			return false
		}
	}
	return true
}

func (l *Limit) band(mode Mode) Band {
	if mode == Severe {
		return l.Severe
	}
	return l.Degraded
}

func known(readings map[string]float64, signal string) (float64, bool) {
	value, ok := readings[signal]
	return value, ok && !math.IsNaN(value) && !math.IsInf(value, 0)
}

// Names of the metrics. Every one has the label detector.
const (
	MetricMode  = "ic_overload_mode"        // 0, 1, 2
	MetricMoves = "ic_overload_moves_total" // {mode}: entered
	MetricRead  = "ic_overload_last_reading_seconds"
)

// Metrics implements metrics.Source.
func (d *Detector) Metrics() []metrics.Family {
	d.mu.Lock()
	defer d.mu.Unlock()
	sample := func(value float64, labels ...string) metrics.Sample {
		return metrics.Sample{Labels: append([]string{"detector", d.cfg.Name}, labels...), Value: value}
	}
	moves := metrics.Family{Name: MetricMoves, Type: metrics.Counter, Help: "How often each mode was entered."}
	for mode := range d.moves {
		moves.Samples = append(moves.Samples, sample(float64(d.moves[mode]), "mode", Mode(mode).String()))
	}
	read := metrics.Family{Name: MetricRead, Type: metrics.Gauge, Help: "Seconds since the last reading; absent before the first."}
	if !d.last.IsZero() {
		read.Samples = []metrics.Sample{sample(max(0, d.cfg.Now().Sub(d.last).Seconds()))}
	}
	return []metrics.Family{
		{Name: MetricMode, Type: metrics.Gauge, Help: "Overload as this process sees it: 0 normal, 1 degraded, 2 severe.", Samples: []metrics.Sample{sample(float64(d.state.Mode))}},
		moves, read,
	}
}
