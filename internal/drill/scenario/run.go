package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/incident"
)

// Options of one run.
type Options struct {
	Seed  uint64
	Mode  score.Mode
	State string    // an empty folder, for the logs of the desks
	Log   io.Writer // the world's event log; nil: nobody reads it

	// Acts says that somebody else acts: a person at a console, or a runbook. The
	// scenario's own acts with ic are then left out, and Acts begins what is done
	// instead; it must not wait. nil: the scenario acts. Of a scenario that follows a
	// runbook, what others than Seat do beside it is done all the same.
	Acts func(ctx context.Context, r *Run) error
	Seat string // whose place Acts takes

	// Follows follows the scenario's runbook at a person's desk, from its first step
	// to its end. nil: nobody can.
	Follows func(ctx context.Context, r *Run, d *incident.Desk, who string) error

	// Paced lets desks be used from other goroutines while one goroutine advances the
	// run at the pace of a person. The run's own methods stay with that one; Post of
	// the world's kernel is the door for others.
	Paced bool
}

// How often a run looks.
const (
	sampleEvery = 5 * time.Second // as Prometheus does
	watchEvery  = time.Second     // for an act that is on its way, and for a fault to take
)

// ErrRunbook is the error for a scenario that follows a runbook when nobody was
// given who can.
var ErrRunbook = errors.New("the scenario follows a runbook, and nobody here can run it")

// Run is a scenario under way. Its methods belong to one goroutine.
type Run struct {
	s     *Scenario
	o     Options
	w     *sim.World
	plain *sim.Plain
	rec   *score.Record
	cast  map[string]*member

	start     time.Time
	facts     sim.Facts // at the last look
	dashboard dashboard
	injected  []*injection
	tracked   []*tracked
	known     map[string]bool // ids of directives that were seen in force
	load      int64           // ppm, as "load" lines set it
	missed    int64           // cents that visitors without a page would have spent
	bypasses  int             // that came into force
	params    shop.Params

	acknowledged time.Duration // the last alarm

	due   int // acts that were left to who sits in Options.Seat
	chain chain
	naive *naiveLadder
	tiers map[string]int // by service, at the last sample
	open  bool           // a bypass was open then
	over  bool
	err   error
}

// Play runs a scenario to its end and returns what happened. The error is about
// the machinery; how the run ended is the record's verdict.
func Play(ctx context.Context, s *Scenario, o Options) (*score.Record, error) {
	r, err := Open(ctx, s, o)
	if err != nil {
		return nil, err
	}
	for r.Advance(r.Now() + time.Minute) {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(fmt.Errorf("play %s: %w", s.Name, err), r.w.Close())
		}
	}
	return r.Finish()
}

// Open builds the world and begins the scenario at its time 0.
func Open(ctx context.Context, s *Scenario, o Options) (*Run, error) {
	if s.Runbook != "" && o.Mode != score.Baseline && o.Acts == nil && o.Follows == nil {
		return nil, fmt.Errorf("play %s: %w: %s", s.Name, ErrRunbook, s.Runbook)
	}
	r := &Run{s: s, o: o, cast: newCast(s, o.Seed), known: map[string]bool{}, tiers: map[string]int{}, load: million}
	if err := r.begin(ctx); err != nil {
		if r.w != nil {
			err = errors.Join(err, r.w.Close())
		}
		return nil, fmt.Errorf("play %s: %w", s.Name, err)
	}
	return r, nil
}

const million = 1_000_000

func (r *Run) begin(ctx context.Context) error {
	if !slices.Contains([]score.Mode{score.Baseline, score.WithIC, score.NoSecondBypass}, r.o.Mode) {
		return fmt.Errorf("there is no mode %q", r.o.Mode)
	}
	r.params = shop.Default()
	for _, one := range r.s.Shop {
		settingNamed(one.Name).set(&r.params, one.Of, one.Value)
	}
	var err error
	r.w, err = sim.New(sim.Options{
		Seed: r.o.Seed, Hosts: r.s.Hosts, Log: r.o.Log, State: r.o.State, Params: r.params, PolicyLife: r.s.Expires,
		Controller: r.s.Ladder && r.o.Mode != score.Baseline, Paced: r.o.Paced,
	})
	if err != nil {
		return err
	}
	r.start = r.w.Kernel().Now()
	r.rec = &score.Record{
		V: score.RecordVersion, Scenario: r.s.Name, Title: r.s.Title, Seed: r.o.Seed, Mode: r.o.Mode, Start: r.start,
		LastsMS: r.s.Lasts.Milliseconds(), Currency: currency, Events: []score.Event{}, Samples: []score.Sample{},
	}
	if r.o.Mode == score.Baseline {
		r.plain = r.w.Plain()
	}
	if err := r.dashboard.begin(r.w); err != nil {
		return err
	}
	r.facts = r.w.Facts()
	r.playIn()
	r.happen(ctx)
	r.look()
	r.w.Kernel().Every(r.start.Add(watchEvery), watchEvery, r.watch)
	r.w.Kernel().Every(r.start.Add(sampleEvery), sampleEvery, r.look)
	return r.cue(ctx)
}

// cue begins what people do.
func (r *Run) cue(ctx context.Context) error {
	switch {
	case r.o.Mode == score.Baseline:
		r.chain.steps = r.s.Baseline
	case r.o.Acts != nil:
		if r.s.Runbook != "" {
			r.chain.steps = beside(r.s.IC, r.o.Seat)
		}
		r.due = len(r.s.IC) - len(r.chain.steps)
		if err := r.o.Acts(ctx, r); err != nil {
			return err
		}
	default:
		r.chain.steps = r.s.IC
	}
	r.next()
	return nil
}

// beside is what others do while somebody at a console follows the runbook: nothing
// of the seat's own, and nothing that would follow from it.
func beside(all []Step, seat string) (out []Step) {
	left := false
	for i := range all {
		s := &all[i]
		left = s.Who == seat || s.Verb == verbFollow || left && s.Cue.Kind == CueThen
		if !left {
			out = append(out, *s)
		}
	}
	return out
}

// Due is how many of the scenario's acts with ic were left to who takes part from
// outside of it (Options.Acts).
func (r *Run) Due() int { return r.due }

// World is what the scenario is played on.
func (r *Run) World() *sim.World { return r.w }

// Scenario is what is played.
func (r *Run) Scenario() *Scenario { return r.s }

// Now is the time since the beginning.
func (r *Run) Now() time.Duration { return r.w.Kernel().Now().Sub(r.start) }

// Record is what has happened so far. It is the run's own and grows.
func (r *Run) Record() *score.Record { return r.rec }

// Advance lets time pass up to until, at most to the end of the scenario, and
// reports whether there is anything left to wait for. An abort ends it at once.
func (r *Run) Advance(until time.Duration) bool {
	until = min(until, r.s.Lasts)
	for !r.over && r.Now() < until {
		r.w.Advance(r.start.Add(min(r.Now()+sampleEvery, until)))
		if r.err != nil {
			r.over = true
		}
	}
	if r.Now() >= r.s.Lasts {
		r.over = true
	}
	return !r.over
}

// Finish ends the run, wherever it is, and judges it.
func (r *Run) Finish() (*score.Record, error) {
	r.leftOut()
	err := errors.Join(r.err, r.w.Close(), r.w.Err())
	if err == nil && r.o.Mode != score.Baseline {
		err = r.evidence()
	}
	if err != nil {
		return nil, fmt.Errorf("play %s: %w", r.s.Name, err)
	}
	slices.SortStableFunc(r.rec.Events, func(a, b score.Event) int { return int(a.AtMS - b.AtMS) })
	r.judge()
	return r.rec, nil
}

// fail keeps the first error of the machinery; the run ends.
func (r *Run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Happened writes an event down, at the present time unless it has one.
func (r *Run) Happened(e score.Event) {
	if e.AtMS == 0 {
		e.AtMS = r.Now().Milliseconds()
	}
	r.rec.Events = append(r.rec.Events, e)
}

// Person is how somebody of the scenario reacts; ok is false for one it does not
// have.
func (r *Run) Person(name string) (p Person, ok bool) {
	m := r.cast[name]
	if m == nil {
		return p, false
	}
	return m.Person, true
}
