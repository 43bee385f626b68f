package engine

import "github.com/degradedmode/ic/internal/model"

// Dimming is what the live dimmers of a service say: optional work is done for a
// share of its requests between Floor and Ceiling, in percent, so that its latency
// stays at TargetMS. The zero value says nothing.
type Dimming struct {
	TargetMS int
	Floor    int
	Ceiling  int
}

// Dimmer is the lowest of each bound over the live dimmers that cover a service;
// ok is false when there is none.
func (e *Engine) Dimmer(service string, now model.Instant) (d Dimming, ok bool) {
	s := e.at(now)
	d = s.dims[service].lowest(s.dims[model.AnyScope])
	return d, d != Dimming{}
}

func dimmingOf(d *model.Directive) Dimming { return Dimming{d.TargetMS, d.Floor, d.Ceiling} }

// lowest joins two. A directive has no bound of zero: that stands for none.
func (d Dimming) lowest(other Dimming) Dimming {
	switch {
	case d == Dimming{}:
		return other
	case other == Dimming{}:
		return d
	}
	return Dimming{min(d.TargetMS, other.TargetMS), min(d.Floor, other.Floor), min(d.Ceiling, other.Ceiling)}
}
