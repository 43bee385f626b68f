package scenario

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
)

// chain is what people do, step by step. A step waits for its cue once the step
// before has begun; "then" waits until that one is done.
type chain struct {
	steps  []Step
	at     int           // the step that waits or has begun
	waits  bool          // for a cue that has not come
	when   time.Duration // the step that waits is to be done then; unknown: nobody can say yet
	moot   bool          // what follows from the step before is left out, too
	skewed bool          // somebody's console shows too much skew
}

// unknown is the time of a step whose cue has not come.
const unknown = -1

// next waits for the cue of the step that comes next.
func (r *Run) next() {
	c := &r.chain
	if r.over || c.at >= len(c.steps) {
		return
	}
	for c.moot && c.at < len(c.steps) && c.steps[c.at].Cue.Kind == CueThen {
		r.skipped(&c.steps[c.at], "it follows from what was left out")
		c.at++
	}
	if c.moot = false; c.at >= len(c.steps) {
		return
	}
	step := &c.steps[c.at]
	switch step.Cue.Kind {
	case CueAt:
		r.begins(step, step.Cue.At)
	case CueThen:
		r.begins(step, r.Now()+r.takes(step, r.actTime))
	case CueTime:
		r.begins(step, step.Cue.At+r.takes(step, r.reactTime))
	default:
		c.waits = true
	}
}

// cues looks whether what is waited for has come.
func (r *Run) cues() {
	c := &r.chain
	if !c.waits {
		return
	}
	step := &c.steps[c.at]
	since := r.Now()
	switch step.Cue.Kind {
	case CueAbnormal, CueNormal:
		one := r.dashboard.now[step.Cue.Signal]
		if step.Cue.Kind == CueAbnormal && !one.abnormal || step.Cue.Kind == CueNormal && !one.normal {
			return
		}
		since = one.since
	case CueSkew:
		if !c.skewed {
			r.lookForSkew(step.Who)
			return
		}
	}
	c.waits, c.skewed = false, false
	if m := r.cast[step.Who]; m != nil && m.acted {
		since = max(since, m.free) // he was busy, and turns to it now
	}
	r.begins(step, since+r.takes(step, r.reactTime))
}

func (r *Run) reactTime(m *member) time.Duration { return m.react() }
func (r *Run) actTime(m *member) time.Duration   { return m.act() }

// takes is how long the person of a step needs; a machine needs no time.
func (r *Run) takes(step *Step, how func(*member) time.Duration) time.Duration {
	if m := r.cast[step.Who]; m != nil {
		return how(m)
	}
	return 0
}

// begins has a step done at a time, or now if that has passed.
func (r *Run) begins(step *Step, at time.Duration) {
	at = max(at, r.Now())
	r.chain.when = at
	when := r.start.Add(at)
	begin := func() {
		r.Acknowledge(step.Who)
		r.chain.at++
		r.chain.when = unknown
		if r.chain.at < len(r.chain.steps) && r.chain.steps[r.chain.at].Cue.Kind != CueThen {
			r.next()
		}
	}
	done := func() {
		if m := r.cast[step.Who]; m != nil {
			m.free, m.acted = r.Now(), true
		}
		if i := r.chain.at; i > 0 && &r.chain.steps[i-1] == step && i < len(r.chain.steps) && r.chain.steps[i].Cue.Kind == CueThen {
			r.next()
		}
	}
	if r.plain != nil {
		r.w.Kernel().At(when, func() {
			begin()
			r.actPlain(step)
			done()
		})
		return
	}
	err := r.w.As(step.Who, step.Verb, when, func(ctx context.Context, d *desk) error {
		begin()
		err := r.actAt(ctx, d, step)
		done()
		return err
	})
	if err != nil {
		r.fail(err)
	}
}

// called is the act that a person would do now and is too busy for; nil: there is none.
func (r *Run) called(who string) *Step {
	c := &r.chain
	if c.at < len(c.steps) && c.steps[c.at].Who == who && c.when != unknown && c.when <= r.Now() {
		return &c.steps[c.at]
	}
	return nil
}

// leftOut writes down what nobody came to do.
func (r *Run) leftOut() {
	for i := r.chain.at; i < len(r.chain.steps); i++ {
		step := &r.chain.steps[i]
		detail := "its time did not come"
		if r.chain.waits {
			detail = "its cue did not come"
		}
		r.skipped(step, detail)
	}
}

func (r *Run) skipped(step *Step, why string) {
	r.Happened(score.Event{Kind: score.Skipped, Who: step.Who, What: step.words(), Detail: why})
}

// words is what a step does, without its cue.
func (s *Step) words() string {
	text := s.Verb
	for _, a := range s.Args {
		text += " " + a
	}
	return text
}
