package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
)

// Next takes the current step as far as it goes with the answer. ErrAnswer says
// that an answer is missing or says nothing, ErrStopped that the step did not hold
// and a person has to decide: Next looks again, Skip goes on, Abort ends it.
func (r *Run) Next(ctx context.Context, a Answer) (StepView, error) {
	if r.state.End != "" {
		return StepView{}, fmt.Errorf("%w: run %s was %s", ErrOver, r.state.Run, r.state.End)
	}
	if err := r.stillOurs(); err != nil {
		return StepView{}, err
	}
	step, _ := r.state.position(r.rb)
	if step == nil {
		return StepView{}, r.finish(ctx)
	}
	err := r.take(ctx, step, a)
	if err == nil {
		if next, _ := r.state.position(r.rb); next == nil {
			err = r.finish(ctx)
		}
	}
	return r.stepView(step), err
}

func (r *Run) take(ctx context.Context, step *runbooks.Step, a Answer) error {
	switch step.Kind {
	case runbooks.KindDecide:
		return r.decide(ctx, step, a)
	case runbooks.KindNote, runbooks.KindManual:
		seen, err := saw(a.Seen)
		if err != nil {
			return fmt.Errorf("step %s: %w", step.ID, err)
		}
		out := r.outcome(step, stDone)
		out.Seen = seen
		return r.conclude(ctx, step, out)
	case runbooks.KindCheck, runbooks.KindWait:
		return r.check(ctx, step, a)
	}
	j := r.jobOf(step, false)
	return r.effect(ctx, j, a)
}

func (r *Run) finish(ctx context.Context) error {
	return r.record(ctx, audit.RunEnd{Run: r.state.Run, State: Finished}, true)
}

// stillOurs reads whether somebody else has taken the run up meanwhile: two people
// who follow one run do not know of each other's steps. Entries that no disk could
// take are only in memory, and then memory is what counts.
func (r *Run) stillOurs() error {
	if len(r.o.Desk.Snapshot().Receipts) > 0 {
		return nil
	}
	sessions, err := r.o.Desk.Logs()
	if err != nil {
		return nil // what tightens is not held up by a log that cannot be read
	}
	all := Fold(sessions)
	for i := range all {
		if s := &all[i]; s.Run == r.state.Run && s.Takes >= r.takes {
			r.state = *s
		}
	}
	if r.state.Takes > r.takes {
		return fmt.Errorf("%w: %s did at %s; ic runbook resume takes it back", ErrTaken, r.state.TakenBy, clockTime(r.state.TakenAt))
	}
	if r.state.End != "" {
		return fmt.Errorf("%w: run %s was %s", ErrOver, r.state.Run, r.state.End)
	}
	return nil
}

// outcome is a word about a step of ours.
func (r *Run) outcome(step *runbooks.Step, state string) audit.RunOutcome {
	out := audit.RunOutcome{Run: r.state.Run, Step: step.ID, State: state}
	if params, err := paramsOf(step); err == nil {
		out.Key = Key(r.state.Digest, r.state.Run, step.ID, params)
	}
	if step.Role != "" && !r.holds(step.Role) {
		out.Detail = "taken by somebody who does not hold the role " + step.Role
	}
	return out
}

// conclude ends a step.
func (r *Run) conclude(ctx context.Context, step *runbooks.Step, out audit.RunOutcome) error {
	if out.Next == "" {
		out.Next = after(r.rb, step)
	}
	return r.record(ctx, out, true)
}

func (r *Run) decide(ctx context.Context, step *runbooks.Step, a Answer) error {
	var words []string
	for _, o := range step.Decide.Options {
		if o.Choose == a.Choose {
			out := r.outcome(step, stDone)
			out.Choice, out.Seen, out.Next = o.Choose, clean(a.Seen, maxSaid), o.Goto
			return r.conclude(ctx, step, out)
		}
		words = append(words, o.Choose)
	}
	return fmt.Errorf("%w: step %s: choose one of %s", ErrAnswer, step.ID, strings.Join(words, ", "))
}

// check takes a step that only looks, or waits.
func (r *Run) check(ctx context.Context, step *runbooks.Step, a Answer) error {
	st := r.state.step(step.ID, false)
	if over, err := r.answered(ctx, step, st, "", a); over || err != nil {
		return err
	}
	if !st.looking("") {
		params, err := paramsOf(step)
		if err != nil {
			return err
		}
		begin := audit.RunStep{Run: r.state.Run, Step: step.ID, Does: string(step.Kind), Params: params,
			Key: Key(r.state.Digest, r.state.Run, step.ID, params)}
		if err := r.record(ctx, begin, true); err != nil {
			return err
		}
	}
	began := st.begun().At
	if step.Wait != nil && step.Wait.Until == nil {
		if err := r.pass(ctx, began.Add(step.Wait.For.Std())); err != nil {
			return err
		}
		out := r.outcome(step, stDone)
		out.Value = "waited " + step.Wait.For.String()
		return r.conclude(ctx, step, out)
	}
	var deadline time.Time
	switch {
	case step.Wait != nil:
		deadline = began.Add(step.Wait.AtMost.Std())
	case step.Timeout > 0:
		deadline = began.Add(step.Timeout.Std())
	}
	e, err := r.until(ctx, proofOf(step), "", deadline)
	if err != nil {
		return err
	}
	if e.Holds {
		out := r.outcome(step, stDone)
		e.put(&out, r.o.now())
		return r.conclude(ctx, step, out)
	}
	return r.missed(ctx, step, r.outcome(step, stTimeout), &e)
}

// answered acts on what a person says about a step that did not hold. over: there
// is nothing left to look at.
func (r *Run) answered(ctx context.Context, step *runbooks.Step, st *StepState, id string, a Answer) (over bool, err error) {
	q := r.missedQuestion(step, st, id)
	if q == nil {
		return false, nil
	}
	out := r.outcome(step, stContinued)
	out.ID = id
	switch {
	case a.Choose == ChooseAgain:
		return false, nil
	case a.Choose == ChooseGoOn && q.Kind == AskMissed:
		out.Detail = oneLine(out.Detail, "it did not hold in time, and a person goes on without it")
	case a.Choose == ChooseHolds && q.Kind == AskNoData:
		out.State = stDone
		if out.Seen, err = saw(a.Seen); err != nil {
			return false, fmt.Errorf("step %s: %w", step.ID, err)
		}
	case a.Choose == ChooseStop:
		return false, fmt.Errorf("%w: step %s: %s", ErrStopped, step.ID, q.Text)
	default:
		return false, fmt.Errorf("%w: step %s: %s", ErrAnswer, step.ID, q.Text)
	}
	return true, r.conclude(ctx, step, out)
}

// missed writes down that a step did not hold, and goes where it says. An answer
// that is missing never lets a run go on by itself.
func (r *Run) missed(ctx context.Context, step *runbooks.Step, out audit.RunOutcome, e *Evidence) error {
	e.put(&out, r.o.now())
	switch {
	case e.NoData:
		out.State = stNoData
	case step.OnTimeout == runbooks.OnContinue:
		out.State, out.Next = stContinued, after(r.rb, step)
	case step.OnTimeout != "" && step.OnTimeout != runbooks.OnStop && step.OnTimeout != runbooks.OnAsk:
		out.State, out.Next = stContinued, step.OnTimeout
	}
	if err := r.record(ctx, out, true); err != nil || out.Next != "" {
		return err
	}
	return fmt.Errorf("%w: step %s: %s", ErrStopped, step.ID, oneLine(out.Value, out.Detail))
}

// pass lets time go by until at.
func (r *Run) pass(ctx context.Context, at time.Time) error {
	for {
		left := at.Sub(r.o.now())
		if left <= 0 {
			return nil
		}
		r.o.Progress(fmt.Sprintf("waiting; %s left", model.Duration(left.Round(time.Second))))
		if err := r.o.Wait(ctx, min(lookEvery, left)); err != nil {
			return err
		}
	}
}

// Skip goes on without the current step. It is allowed, also where it is unwise;
// the reason is in the log.
func (r *Run) Skip(ctx context.Context, reason string) (StepView, error) {
	why, err := saw(reason)
	if err != nil {
		return StepView{}, fmt.Errorf("a skipped step needs a reason: %w", err)
	}
	if err := r.stillOurs(); err != nil {
		return StepView{}, err
	}
	step, _ := r.state.position(r.rb)
	if step == nil || r.state.End != "" {
		return StepView{}, fmt.Errorf("%w: no step is left to skip", ErrOver)
	}
	out := r.outcome(step, stSkipped)
	out.Seen = why
	if b := r.state.Steps[step.ID].begun(); b != nil {
		out.ID = b.ID
	}
	if err := r.conclude(ctx, step, out); err != nil {
		return StepView{}, err
	}
	if next, _ := r.state.position(r.rb); next == nil {
		err = r.finish(ctx)
	}
	return r.stepView(step), err
}

// holds: the person at work holds a role.
func (r *Run) holds(role string) bool {
	scene := r.o.Desk.Scene()
	who := policy.Signer{Name: scene.Actor}
	_, who.Machine = scene.Bundle.Root.Machines[who.Name]
	return scene.Bundle.Root.HasRole(role, who)
}

// mayTake: a step with an effect is for the role that it names. What tightens is
// for whoever the policy lets tighten: nobody's absence holds it up.
func (r *Run) mayTake(step *runbooks.Step, direction model.Direction) error {
	if step.Role == "" || direction == model.Tighten || r.holds(step.Role) {
		return nil
	}
	scene := r.o.Desk.Scene()
	return fmt.Errorf("%w: step %s is for the role %s: call %s; they take the run up with ic runbook resume %s",
		ErrRole, step.ID, step.Role, inTurn(roleMembers(scene.Bundle.Root, step.Role), scene.Actor), r.state.Run)
}
