package ladder

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
)

const (
	robot = templates.LadderController
	p99   = templates.CheckoutP99
	cpu   = templates.CPU
	fails = templates.CheckoutErrors
)

var day0 = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// fleet is a world in which time goes by in ticks of ten seconds, a value of every
// signal is read at each, and what Next proposes is done at once and everywhere.
type fleet struct {
	t        testing.TB
	b        *policy.Bundle
	now      time.Time
	machine  string
	issued   []model.Issued
	readings map[string]model.Reading
	blind    map[string]time.Time
	moves    []Proposal // that were made, in order
	last     Outcome
	serial   int
	kept     int // samples of a history
}

const tick = 10 * time.Second

// unread is a value that was not read.
type unread model.ReadingState

// calm are values that enter nothing and leave everything.
func calm() map[string]any { return map[string]any{p99: 0.2, cpu: 40.0, fails: 0.1} }

// with is calm with something else in it.
func with(changes ...any) map[string]any {
	out := calm()
	for i := 0; i < len(changes); i += 2 {
		out[changes[i].(string)] = changes[i+1]
	}
	return out
}

func newFleet(t testing.TB, b *policy.Bundle) *fleet {
	return &fleet{t: t, b: b, now: day0, machine: robot, readings: map[string]model.Reading{}, blind: map[string]time.Time{}, kept: 190}
}

// read takes one reading of every signal.
func (f *fleet) read(values map[string]any) {
	for name := range f.b.Signals {
		r := f.readings[name]
		r.Signal, r.Step = name, f.b.Signals[name].Step
		switch v := values[name].(type) {
		case float64:
			r.State, r.Value, r.At = model.ReadingValue, v, f.now
			r.History = append(slices.Clone(r.History), model.Sample{At: f.now, Value: v})
			delete(f.blind, name)
		default:
			r.State, r.Value = model.ReadingNoData, 0
			if state, ok := v.(unread); ok {
				r.State = model.ReadingState(state)
			}
			if _, known := f.blind[name]; !known {
				f.blind[name] = f.now
			}
		}
		if len(r.History) > f.kept {
			r.History = r.History[len(r.History)-f.kept:]
		}
		f.readings[name] = r
	}
}

func (f *fleet) world() *model.World {
	return &model.World{
		V: 1, Now: f.now, Clock: model.ClockOK, Fleet: f.b.Root.Fleet, Mode: model.Live, Durable: true, Policy: f.b.Ref,
		Incident: model.Incident{ID: "night", OpenedAt: day0}, Readings: f.readings, Issued: f.issued,
	}
}

func (f *fleet) input() Input {
	return Input{Bundle: f.b, World: f.world(), Moves: MovesOf(f.b, f.issued, f.now), Machine: f.machine, Blind: f.blind}
}

// tick lets ten seconds go by with these values and does what the ladder says.
func (f *fleet) tick(values map[string]any) Outcome {
	f.now = f.now.Add(tick)
	f.read(values)
	f.last = Next(f.input())
	if p := f.last.Move; p != nil {
		f.moves = append(f.moves, *p)
		f.give(p.Request.Directive, f.machine)
	}
	return f.last
}

// run lets time go by with the same values.
func (f *fleet) run(d time.Duration, values map[string]any) Outcome {
	for range d / tick {
		f.tick(values)
	}
	return f.last
}

// give issues a directive and applies what it ends.
func (f *fleet) give(d model.Directive, signers ...string) string {
	f.serial++
	d.ID = fmt.Sprintf("01J%023d", f.serial)
	if d.NotBefore.IsZero() {
		d.NotBefore = f.now
	}
	f.issued = slices.Clone(f.issued)
	if d.Kind == model.End {
		for i := range f.issued {
			if o := &f.issued[i].Directive; slices.Contains(d.IDs, o.ID) && o.EndedAs() == d.Ends && o.Scope == d.Scope {
				f.issued[i].EndedBy = d.ID
			}
		}
	}
	f.issued = append(f.issued, model.Issued{Directive: d, Signers: signers})
	return d.ID
}

// by has somebody use a right, whatever a verdict would say.
func (f *fleet) by(who string, ask decisions.Ask) model.Directive {
	f.t.Helper()
	ask.Actor = who
	r, err := decisions.Draft(f.b, f.world(), ask)
	if err != nil {
		f.t.Fatal(err)
	}
	f.give(r.Directive, who)
	return r.Directive
}

func (f *fleet) tier() int { return decisions.ChainOf(f.world(), model.AnyScope).Tier }

// purposes are those of the moves made so far.
func (f *fleet) purposes() string {
	out := ""
	for _, m := range f.moves {
		d := &m.Request.Directive
		switch {
		case d.IsRecovery():
			out += fmt.Sprintf(" %s %d>%d@%d", m.Purpose, d.From, d.To, d.Percent)
		default:
			out += fmt.Sprintf(" %s %d", m.Purpose, d.Tier)
		}
	}
	return out
}

func (f *fleet) alarm(kind Kind) *Alarm {
	for i := range f.last.Alarms {
		if f.last.Alarms[i].Kind == kind {
			return &f.last.Alarms[i]
		}
	}
	return nil
}
