package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/signals"
)

// watched is one signal of the policy as somebody in front of a dashboard sees it,
// with ic or without.
type watched struct {
	abnormal, normal bool // both false: nobody knows
	since            time.Duration
	reading          model.Reading
}

// signals are the policy's, read by its own queries from the world's Prometheus.
type dashboard struct {
	source *signals.Source
	specs  []signals.Spec
	policy map[string]policy.Signal
	now    map[string]*watched
	seen   bool // an alarm that nobody has reacted to yet
}

// realTime is the deadline of a read: no machine is slow enough for real time to
// decide what a simulation sees.
const realTime = time.Hour

func (d *dashboard) begin(w *sim.World) error {
	// The address goes nowhere: the answers come from the same process.
	source, err := signals.New(signals.Options{URL: "http://prometheus.invalid", RoundTripper: w.Prometheus(), Now: w.Kernel().Now, Timeout: realTime})
	if err != nil {
		return fmt.Errorf("read the signals: %w", err)
	}
	d.source, d.policy, d.now = source, w.Bundle().Signals, map[string]*watched{}
	for _, name := range slices.Sorted(maps.Keys(d.policy)) {
		s := d.policy[name]
		d.specs = append(d.specs, signals.Spec{Name: name, Query: s.Query, Unit: s.Unit, MaxAge: s.MaxAge, Step: s.Step})
		d.now[name] = &watched{}
	}
	return nil
}

// look reads every signal once and says which have turned abnormal.
func (d *dashboard) look(at time.Duration) (alarms []string) {
	readings := d.source.Read(context.Background(), d.specs)
	for _, spec := range d.specs {
		s, reading, one := d.policy[spec.Name], readings[spec.Name], d.now[spec.Name]
		abnormal := decisions.Abnormal(&s, &reading)
		normal := !abnormal && reading.State == model.ReadingValue
		if abnormal && !one.abnormal {
			alarms = append(alarms, spec.Name)
		}
		if abnormal != one.abnormal || normal != one.normal {
			one.since = at
		}
		one.abnormal, one.normal, one.reading = abnormal, normal, reading
	}
	return alarms
}

// readSignals looks at the dashboard and writes the alarms down.
func (r *Run) readSignals() {
	for _, name := range r.dashboard.look(r.Now()) {
		r.dashboard.seen = true
		r.Happened(score.Event{Kind: score.Alarm, What: name, Detail: decisions.Quantity(r.dashboard.now[name].reading.Value, r.dashboard.policy[name].Unit)})
	}
}

// Acknowledge is the first thing that a person does after an alarm; without one it is
// nothing.
func (r *Run) Acknowledge(who string) {
	if r.dashboard.seen && r.cast[who] != nil {
		r.dashboard.seen = false
		r.acknowledged = r.Now()
		r.Happened(score.Event{Kind: score.Acknowledged, Who: who})
	}
}
