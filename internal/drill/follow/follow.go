package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// maxWait is the longest that somebody waits in one piece until a step becomes
	// possible: the longest calm that a policy of the shop asks for.
	maxWait = 10 * time.Minute
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
	missed map[string]int // by step: how often it was not as it should be
	why    error          // the last time
	source *signals.Source
}

func newFollower(rb *runbooks.Runbook, r *scenario.Run, person scenario.Person) (*follower, error) {
	w := r.World()
	source, err := signals.New(signals.Options{URL: "http://prometheus.invalid", RoundTripper: w.Prometheus(), Now: w.Kernel().Now, Timeout: realTime})
	if err != nil {
		return nil, err
	}
	r.Record().Runbook, r.Record().Digest = rb.ID, rb.Digest
	return &follower{rb: rb, r: r, person: person, missed: map[string]int{}, source: source}, nil
}

// Acts makes what acts in a scenario out of a runbook, in the place of the scenario's
// own acts. As is a person of the scenario or the role of one; "" is the first. The
// runbook is taken at the first alarm.
func Acts(rb *runbooks.Runbook, as string) func(context.Context, *scenario.Run) error {
	return func(_ context.Context, r *scenario.Run) error {
		person, err := r.Scenario().Seat(as)
		if err != nil {
			return err
		}
		f, err := newFollower(rb, r, person)
		if err != nil {
			return err
		}
		w := r.World()
		return w.As(person.Name, "follows "+rb.ID, w.Kernel().Now(), func(ctx context.Context, d *incident.Desk) error {
			if err := f.alarmed(ctx); err != nil {
				return err
			}
			return f.act(ctx, d)
		})
	}
}

// Follows follows a runbook where a scenario says that somebody takes it.
func Follows(rb *runbooks.Runbook) func(context.Context, *scenario.Run, *incident.Desk, string) error {
	return func(ctx context.Context, r *scenario.Run, d *incident.Desk, who string) error {
		person, known := r.Person(who)
		if !known {
			return fmt.Errorf("%s is not in the scenario", who)
		}
		f, err := newFollower(rb, r, person)
		if err != nil {
			return err
		}
		return f.act(ctx, d)
	}
}

// desk is the person's desk, which tells the record what was pushed.
type desk struct {
	*incident.Desk
	f *follower
}

// Push goes through a pipeline of the rehearsal.
func (d *desk) Push(ctx context.Context, plan incident.BreakPlan, asked bool, progress func(incident.Progress)) (incident.Result, error) {
	began := d.f.r.Now()
	result, err := d.Desk.Push(ctx, plan, asked, progress)
	if err == nil {
		d.f.r.Pushed(began, d.f.person.Name, &plan, &result)
	}
	return result, err
}

// act is everything that the person does with the runbook.
func (f *follower) act(ctx context.Context, d *incident.Desk) error {
	w := f.r.World()
	var err error
	f.run, err = run.Start(ctx, run.Options{
		Desk: &desk{d, f}, Runbook: f.rb, Signature: runbooks.Signature{State: runbooks.Unsigned},
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
	enough := f.missed[step] > looks
	switch {
	case enough && (q == nil || q.Kind != run.AskMissed):
		return f.giveUp(ctx, step, q)
	case err != nil:
		return f.again(ctx, step, err)
	}
	if wait := early(q); wait > 0 {
		f.why, f.missed[step] = errors.New("it is too early"), f.missed[step]+1
		return false, f.r.World().Sleep(ctx, wait)
	}
	if q != nil && q.Kind == run.AskConfirm {
		if err := f.confirms(ctx, q); err != nil {
			return true, err
		}
	}
	seen, err := f.run.Next(ctx, answer(q, enough))
	if err != nil && seen.State == run.Unknown {
		f.r.Happened(score.Event{Kind: score.Step, Who: f.person.Name, ID: step, What: seen.State, Detail: err.Error()})
		return false, nil // the question about it is the next one
	}
	if err != nil {
		return f.again(ctx, step, err)
	}
	f.r.Happened(score.Event{Kind: score.Step, Who: f.person.Name, ID: step, What: seen.State, Detail: seen.Value})
	after := f.run.View()
	if after.Finished {
		f.r.Record().Through = after.End == run.Finished
	}
	return after.Finished, nil
}

// again lets some time go by before a step that has not come to its end is looked at
// once more. Nothing is done twice by that: what was begun is asked about, not begun
// again. What the policy denies is not asked for again.
func (f *follower) again(ctx context.Context, step string, why error) (over bool, err error) {
	if errors.Is(why, incident.ErrDenied) {
		return true, f.refused(step, "takes the step", why)
	}
	f.why = why
	f.missed[step]++
	err = f.r.World().Sleep(ctx, lookEvery)
	return err != nil, err
}

// giveUp leaves a step that does not come to its end: the run ends where the runbook
// says stop, and else goes on without the step. The log of the run has the reason.
func (f *follower) giveUp(ctx context.Context, step string, q *run.Question) (over bool, err error) {
	reason := fmt.Sprintf("looked at %d times more, and it is not as it should be: %v", looks, f.why)
	asks := q != nil || !errors.Is(f.why, run.ErrStopped) // a step that stands still and asks nothing says stop
	if f.rb.Step(step).OnTimeout == runbooks.OnStop || !asks {
		if err := f.run.Abort(ctx, reason); err != nil {
			return true, f.refused(step, "ends the runbook", err)
		}
		return true, f.refused(step, "ends the runbook, as it says", f.why)
	}
	if _, err := f.run.Skip(ctx, reason); err != nil {
		return true, f.refused(step, "skips the step", err)
	}
	f.r.Happened(score.Event{Kind: score.Skipped, Who: f.person.Name, ID: step, Detail: f.why.Error()})
	after := f.run.View()
	f.r.Record().Through = after.End == run.Finished
	return after.Finished, nil
}

// answer is the fixed answer to a question; enough: the step was looked at often
// enough. What nobody has seen is never said to be there, or not to be there.
func answer(q *run.Question, enough bool) run.Answer {
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
		if a.Choose = run.ChooseAgain; enough {
			a.Choose = run.ChooseGoOn
		}
	}
	return a
}

// early is how long a person waits who reads that it is too early for a step.
func early(q *run.Question) (wait time.Duration) {
	if q == nil || q.Preview == nil {
		return 0
	}
	for _, r := range q.Preview.Verdict.Reasons {
		wait = max(wait, min(r.Wait.Std(), maxWait))
	}
	return wait
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
