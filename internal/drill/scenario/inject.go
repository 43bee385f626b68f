package scenario

import (
	"context"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
)

// takesWithin is how long a fault may take until its effect is seen in the world. A
// rehearsal whose fault never took has rehearsed nothing, and must not pass.
const takesWithin = time.Minute

// injection is a fault that was asked for and is watched until it takes.
type injection struct {
	name   string
	at     time.Duration
	before sim.Facts
	state  injected
}

type injected int

const (
	waiting injected = iota
	took
	didNot
)

// happen schedules what the world does.
func (r *Run) happen(ctx context.Context) {
	for i := range r.s.World {
		one := &r.s.World[i]
		r.w.Kernel().At(r.start.Add(one.At), func() {
			if err := r.happens(ctx, one); err != nil {
				r.fail(fmt.Errorf("line %d: %w", one.Line, err))
			}
		})
	}
}

func (r *Run) happens(ctx context.Context, one *Happening) error {
	switch one.Verb {
	case "load":
		r.w.SetDemand(one.Load)
		r.load = one.Load
		if one.Load != million {
			r.injected = append(r.injected, &injection{name: "load", at: r.Now(), before: r.w.Facts()})
		} else {
			r.clears("load")
		}
		return nil
	case "clear":
		r.clears(one.Fault)
		return r.w.Faults().Clear(ctx, one.Fault)
	}
	in := &injection{name: one.Fault, at: r.Now(), before: r.w.Facts()}
	r.injected = append(r.injected, in)
	return r.w.Faults().Inject(ctx, one.Fault)
}

// clears is the end of a fault. One that has had no effect until now never had one.
func (r *Run) clears(name string) {
	for _, in := range r.injected {
		if in.name == name && in.state == waiting {
			r.decide(in, false)
		}
	}
	r.Happened(score.Event{Kind: score.Cleared, What: name, ID: name})
}

// sees looks whether the faults that wait have taken.
func (r *Run) sees(now *sim.Facts) {
	for _, in := range r.injected {
		if in.state != waiting {
			continue
		}
		if r.effect(in, now) {
			r.decide(in, true)
		} else if r.Now()-in.at >= takesWithin {
			r.decide(in, false)
		}
	}
}

func (r *Run) decide(in *injection, hit bool) {
	e := score.Event{AtMS: in.at.Milliseconds(), Kind: score.Injected, What: in.name, ID: in.name}
	in.state = took
	if !hit {
		in.state, e.Kind = didNot, score.NotRaised
		e.Detail = "it had no effect on the world within " + takesWithin.String()
	}
	r.rec.Events = append(r.rec.Events, e) // its own time may be 0
}

// effect is what a fault does to the world where it can be seen there; of the
// others it is known only that the world has them.
func (r *Run) effect(in *injection, now *sim.Facts) bool {
	before := &in.before
	switch in.name {
	case faults.PaymentRiskDown:
		return ended(now, shop.Failed)+ended(now, shop.Unscored)+ended(now, shop.Refused) >
			ended(before, shop.Failed)+ended(before, shop.Unscored)+ended(before, shop.Refused)
	case faults.CatalogSlow:
		return serviceOf(now, shop.Catalog).P99 > 2*serviceOf(before, shop.Catalog).P99
	case faults.LoadSurge, "load":
		a, b := serviceOf(before, shop.Edge).CPUPPM, serviceOf(now, shop.Edge).CPUPPM
		return b-a > a/20 || a-b > a/20
	case faults.AutoHeal, faults.HostsPaused:
		return now.Up < before.Up
	}
	return r.active(in.name)
}

func ended(f *sim.Facts, outcome string) int64 {
	for i, name := range shop.OrderOutcomes {
		if name == outcome {
			return f.Orders[i].Count
		}
	}
	return 0
}

// serviceOf is one service; an unknown one is empty.
func serviceOf(f *sim.Facts, name string) sim.ServiceFacts {
	for i := range f.Services {
		if f.Services[i].Service == name {
			return f.Services[i]
		}
	}
	return sim.ServiceFacts{}
}

// playIn schedules the recorded signals.
func (r *Run) playIn() {
	for i := range r.s.Series {
		one := &r.s.Series[i]
		for n, p := range one.Points {
			if p.Gap {
				continue
			}
			at := r.start.Add(time.Duration(n) * one.Every)
			r.w.Kernel().At(at, func() {
				if err := r.w.Store().Append(at, one.Name, p.Value, one.Labels...); err != nil {
					r.fail(fmt.Errorf("line %d: play in %s: %w", one.Line, one.Name, err))
				}
			})
		}
	}
}
