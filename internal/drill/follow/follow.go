package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/internal/signals"
)

const (
	// lookEvery is how often somebody who waits for an alarm looks.
	lookEvery = 5 * time.Second
	// looks is how often a step that did not hold is looked at again before it is
	// passed.
	looks = 3
	// maxAnswers bounds a run: every step a few times.
	maxAnswers = 4 * runbooks.MaxSteps
	// nobody is what the log says of what a person was to look at.
	nobody = "rehearsal without anybody at the console: nobody has looked at this"
	// realTime is the deadline of a query in the same process.
	realTime = time.Minute
)

// follower is one person with one runbook in one scenario.
type follower struct {
	rb     *runbooks.Runbook
	r      *scenario.Run
	person scenario.Person
	run    *run.Run
	missed map[string]int // by step
	source *signals.Source
}

// Acts makes what acts in a scenario out of a runbook. As is a person of the
// scenario or the role of one; "" is the first.
func Acts(rb *runbooks.Runbook, as string) func(context.Context, *scenario.Run) error {
	return func(_ context.Context, r *scenario.Run) error {
		person, err := personOf(r.Scenario(), as)
		if err != nil {
			return err
		}
		w := r.World()
		source, err := signals.New(signals.Options{URL: "http://prometheus.invalid", RoundTripper: w.Prometheus(), Now: w.Kernel().Now, Timeout: realTime})
		if err != nil {
			return err
		}
		f := &follower{rb: rb, r: r, person: person, missed: map[string]int{}, source: source}
		r.Record().Runbook, r.Record().Digest = rb.ID, rb.Digest
		return w.As(person.Name, "follows "+rb.ID, w.Kernel().Now(), f.act)
	}
}

func personOf(s *scenario.Scenario, as string) (scenario.Person, error) {
	var there []string
	for _, p := range s.People {
		if p.Absent {
			continue
		}
		if as == "" || p.Name == as || p.Role == as {
			return p, nil
		}
		there = append(there, p.Name+" ("+p.Role+")")
	}
	return scenario.Person{}, fmt.Errorf("nobody in the scenario is %q; there are %s", as, strings.Join(there, ", "))
}

// act is everything that the person does.
func (f *follower) act(ctx context.Context, d *incident.Desk) error {
	if err := f.alarmed(ctx); err != nil {
		return err
	}
	w := f.r.World()
	var err error
	f.run, err = run.Start(ctx, run.Options{
		Desk: d, Runbook: f.rb, Signature: runbooks.Signature{State: runbooks.Unsigned},
		Clock: w.Kernel().HostClock("desk/" + f.person.Name), Rand: w.Kernel().Stream("runbook"), Wait: w.Sleep, Query: f.query,
	})
	if err != nil {
		return f.refused("", "starts the runbook", err)
	}
	for range maxAnswers {
		if err := w.Sleep(ctx, f.person.Acts); err != nil {
			return err
		}
		over, err := f.next(ctx)
		if err != nil || over {
			return err
		}
	}
	return f.refused("", "follows the runbook", fmt.Errorf("it is not over after %d answers", maxAnswers))
}

// alarmed waits for the first alarm and the person's reaction to it.
func (f *follower) alarmed(ctx context.Context) error {
	for !slices.ContainsFunc(f.r.Record().Events, func(e score.Event) bool { return e.Kind == score.Alarm }) {
		if err := f.r.World().Sleep(ctx, lookEvery); err != nil {
			return err
		}
	}
	if err := f.r.World().Sleep(ctx, f.person.Reacts); err != nil {
		return err
	}
	f.r.Happened(score.Event{Kind: score.Acknowledged, Who: f.person.Name})
	return nil
}

// next takes the current step and reports whether the runbook is over.
func (f *follower) next(ctx context.Context) (over bool, err error) {
	before := f.run.View()
	if before.Finished {
		f.r.Record().Through = before.End == run.Finished
		return true, nil
	}
	step := before.Current
	q, err := f.run.Question(ctx)
	if err != nil {
		return true, f.refused(step, "asks", err)
	}
	answer := f.answer(step, q)
	if q != nil && q.Kind == run.AskConfirm {
		if err := f.confirms(ctx, q); err != nil {
			return true, err
		}
	}
	seen, err := f.run.Next(ctx, answer)
	switch {
	case errors.Is(err, run.ErrStopped) && f.missed[step] < looks:
		f.missed[step]++
		return false, nil
	case errors.Is(err, run.ErrStopped):
		return f.skip(ctx, step, err)
	case errors.Is(err, run.ErrAnswer) && f.missed[step] <= looks:
		f.missed[step]++ // the step has turned into a question
		return false, nil
	case err != nil:
		return true, f.refused(step, "takes the step", err)
	}
	f.r.Happened(score.Event{Kind: score.Step, Who: f.person.Name, ID: step, What: seen.State, Detail: seen.Value})
	after := f.run.View()
	if after.Finished {
		f.r.Record().Through = after.End == run.Finished
	}
	return after.Finished, nil
}

// skip passes a step that does not hold.
func (f *follower) skip(ctx context.Context, step string, why error) (bool, error) {
	if _, err := f.run.Skip(ctx, "it did not hold: "+why.Error()); err != nil {
		return true, f.refused(step, "skips the step", err)
	}
	f.r.Happened(score.Event{Kind: score.Skipped, Who: f.person.Name, ID: step, Detail: why.Error()})
	return false, nil
}

// answer is the fixed answer to a question.
func (f *follower) answer(step string, q *run.Question) run.Answer {
	a := run.Answer{Seen: nobody}
	if q == nil {
		return a
	}
	switch q.Kind {
	case run.AskConfirm:
		a.Confirm = true
	case run.AskChoose:
		if len(q.Options) > 0 {
			a.Choose = q.Options[0].Choose
		}
	case run.AskMissed, run.AskNoData, run.AskReality:
		a.Choose = run.ChooseAgain
		if f.missed[step]++; f.missed[step] > looks {
			a.Choose = run.ChooseGoOn
		}
	}
	return a
}

// confirms is what confirming an effect takes: time to type, the cap that it adds to
// the rehearsal, and the others who are asked to sign.
func (f *follower) confirms(ctx context.Context, q *run.Question) error {
	const key = 250 * time.Millisecond // of one character
	if err := f.r.World().Sleep(ctx, time.Duration(len(q.Typed))*key); err != nil {
		return err
	}
	if q.Preview == nil {
		return nil
	}
	if q.Preview.Exposure != nil {
		f.r.Record().CapCents += q.Preview.Exposure.WorstCase.Minor
	}
	if !slices.ContainsFunc(q.Preview.Verdict.Reasons, func(r model.Reason) bool { return r.Code == model.CodeQuorum }) {
		return nil
	}
	now := f.r.World().Kernel().Now()
	for _, p := range f.r.Scenario().People {
		if p.Name == f.person.Name || p.Absent {
			continue
		}
		if err := f.r.World().As(p.Name, "cosigns", now.Add(p.Reacts), f.cosigns(p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// cosigns signs what waits. Somebody whose signature does not count is told so by
// the product, and that is no attempt of his.
func (f *follower) cosigns(who string) func(context.Context, *incident.Desk) error {
	return func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		for _, waiting := range d.Snapshot().Proposals {
			approval, err := d.ReadProposal(ctx, waiting.Token)
			if err != nil {
				continue
			}
			if _, err := d.Cosign(ctx, approval, true); err == nil {
				f.r.Happened(score.Event{Kind: score.Decided, Who: who, What: "cosigns", ID: waiting.Directive.ID})
			}
		}
		return nil
	}
}

// query answers a check's PromQL from the world's own Prometheus.
func (f *follower) query(ctx context.Context, query string) model.Reading {
	const name = "check"
	spec := signals.Spec{Name: name, Query: query, MaxAge: model.Duration(time.Minute), Step: model.Duration(lookEvery)}
	return f.source.Read(context.WithoutCancel(ctx), []signals.Spec{spec})[name]
}

// refused writes down why the runbook could not go on.
func (f *follower) refused(step, what string, err error) error {
	code := "failed"
	switch {
	case errors.Is(err, incident.ErrDenied):
		code = "denied"
	case errors.Is(err, incident.ErrNeeds):
		code = "needs"
	}
	f.r.Happened(score.Event{Kind: score.Denied, Who: f.person.Name, ID: step, What: what, Code: code, Detail: err.Error()})
	return err
}
