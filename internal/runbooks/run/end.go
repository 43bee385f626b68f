package run

import (
	"context"
	"fmt"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
)

// Abort ends the run where it stands. What was done stays done: Undos lists it, and
// Undo takes it back one by one.
func (r *Run) Abort(ctx context.Context, reason string) error {
	why, err := saw(reason)
	if err != nil {
		return fmt.Errorf("an aborted run needs a reason: %w", err)
	}
	if err := r.stillOurs(); err != nil {
		return err
	}
	if r.state.End != "" {
		return fmt.Errorf("%w: run %s was %s", ErrOver, r.state.Run, r.state.End)
	}
	return r.record(ctx, audit.RunEnd{Run: r.state.Run, State: Aborted, Reason: why}, true)
}

// UndoQuestion shows what the undo of a step would do.
func (r *Run) UndoQuestion(ctx context.Context, step string) (*Question, error) {
	j, err := r.undoJob(step)
	if err != nil {
		return nil, err
	}
	return r.effectQuestion(ctx, j)
}

// Undo takes the effect of a step back: the same road, with an intent and a proof
// of its own.
func (r *Run) Undo(ctx context.Context, step string, a Answer) (StepView, error) {
	j, err := r.undoJob(step)
	if err != nil {
		return StepView{}, err
	}
	err = r.effect(ctx, j, a)
	return r.stepView(r.rb.Step(step)), err
}

func (r *Run) undoJob(id string) (*job, error) {
	step := r.rb.Step(id)
	if step == nil || r.state.Steps[id].begun() == nil {
		return nil, fmt.Errorf("step %q of run %s has done nothing that could be undone", clean(id, maxReason), r.state.Run)
	}
	if step.Undo == nil {
		return nil, fmt.Errorf("%w: step %s cannot be undone: %s", incident.ErrDenied, id, step.Irreversible)
	}
	if over := r.state.Undos[id].over(); over != nil {
		return nil, fmt.Errorf("%w: step %s was undone at %s", ErrOver, id, clockTime(over.At))
	}
	u := undoStep(step)
	u.Timeout, u.OnTimeout = step.Timeout, ""
	return r.jobOf(u, true), nil
}
