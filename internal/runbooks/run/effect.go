package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
)

// job is an effect to be had: that of a step, or its undo.
type job struct {
	step *runbooks.Step
	undo bool
	st   *StepState
	key  string
	body string // canonical parameters
}

func (r *Run) jobOf(step *runbooks.Step, undo bool) *job {
	j := &job{step: step, undo: undo, st: r.state.step(step.ID, undo)}
	j.body, _ = paramsOf(step) // of plain values: it cannot fail
	name := step.ID
	if undo {
		name = undoOf(name)
	}
	j.key = Key(r.state.Digest, r.state.Run, name, j.body)
	return j
}

func (r *Run) outcomeOf(j *job, state string) audit.RunOutcome {
	out := r.outcome(j.step, state)
	out.Key, out.Undo = j.key, j.undo
	if b := j.st.begun(); b != nil {
		out.ID = b.ID
	}
	return out
}

// effect takes a step with an effect from where the log says that it stands.
func (r *Run) effect(ctx context.Context, j *job, a Answer) error {
	var err error
	switch j.st.word() {
	case "", stRefused, stNotDone:
		err = r.begin(ctx, j, a)
	case stAbsent:
		err = r.handOver(ctx, j, a)
	case stUnknown:
		err = r.answerReality(ctx, j, a)
	case stTimeout, stNoData:
		var over bool
		if over, err = r.answered(ctx, j.step, j.st, j.st.begun().ID, a); over || err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if j.st.word() == stProposed {
		if err := r.awaitSignatures(ctx, j); err != nil || j.st.over() != nil {
			return err
		}
	}
	if word := j.st.word(); word != stSent && word != stTimeout && word != stNoData {
		return nil // it has to be asked for again
	}
	return r.prove(ctx, j)
}

// begin shows, asks, writes the intent down and acts. The id of the effect is in
// the log before there is an effect.
func (r *Run) begin(ctx context.Context, j *job, a Answer) error {
	s := r.shown
	if s == nil || s.step != j.step.ID || s.undo != j.undo {
		var err error
		if s, err = r.show(ctx, j); err != nil {
			return err
		}
	}
	direction := model.Tighten
	if s.preview != nil {
		direction = s.preview.Verdict.Direction
	}
	if err := r.mayTake(j.step, direction); err != nil {
		return err
	}
	if s.preview != nil && !possible(s.preview) {
		r.shown = nil // what becomes possible has to be shown again
		return r.refused(ctx, j, s.preview)
	}
	if !a.Confirm {
		return fmt.Errorf("%w: step %s: %s: confirm it", ErrAnswer, j.step.ID, s.question(j.step.ID).Text)
	}
	r.shown = nil
	id := s.operation
	if id == "" {
		var err error
		if id, err = effectID(j.key, r.o.now()); err != nil {
			return err
		}
		if s.plan != nil {
			id = strings.ToLower(id) // an operation's id is in lower case
		}
	}
	begin := audit.RunStep{Run: r.state.Run, Step: j.step.ID, Does: string(j.step.Kind), Key: j.key, ID: id, Params: j.body, Undo: j.undo}
	if err := r.record(ctx, begin, direction == model.Tighten); err != nil {
		return fmt.Errorf("step %s: %w: nothing was done", j.step.ID, err)
	}
	return r.act(ctx, j, s, id, a.Asked)
}

// act goes down the road, once.
func (r *Run) act(ctx context.Context, j *job, s *shown, id string, asked bool) error {
	var result incident.Result
	var err error
	switch {
	case s.preview != nil:
		result, err = r.o.Desk.Execute(ctx, incident.Act{Request: s.preview.Request, Asked: asked, ID: id})
	case s.plan != nil:
		plan := *s.plan
		plan.Operation = id
		result, err = r.o.Desk.Push(ctx, plan, asked, r.told)
	default:
		result, err = r.o.Desk.UndoBreak(ctx, s.operation, asked, r.told)
	}
	if result.Receipt != "" {
		r.said = append(r.said, result.Receipt)
	}
	out := r.outcomeOf(j, stSent)
	out.Done, out.Total = result.Done, result.Total
	if len(result.Advice) == 0 {
		out.Detail = clean(oneLine(out.Detail, result.Detail), maxValue)
	} else { // all of it: whoever takes the run up again has it from here
		advice := clean(oneLine(append(result.Advice, result.Detail)...), maxAdvice)
		out.Detail = oneLine(out.Detail, advice)
		r.o.Progress(advice)
	}
	switch {
	case err == nil:
	case errors.Is(err, incident.ErrRepeated):
		out.State, out.Detail = stUnknown, clean(err.Error(), maxValue)
	case result.State == incident.Proposed:
		out.State, err = stProposed, nil
	case result.State == incident.Unknown:
		out.State, out.Detail = stUnknown, clean(err.Error(), maxValue)
	default:
		out.State, out.Detail = stRefused, clean(err.Error(), maxValue)
	}
	if rerr := r.record(ctx, out, true); rerr != nil {
		return errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("step %s: %w", j.step.ID, err)
	}
	return nil
}

func (r *Run) told(p incident.Progress) {
	r.o.Progress(clean(fmt.Sprintf("%s %s %d/%d %s", p.Phase, p.Target, p.Done, p.Total, p.Message), maxValue))
}

// possible: it is permitted, or lacks nothing but other people's signatures.
func possible(p *incident.Preview) bool {
	return p.Verdict.Outcome != model.Denied && !slices.ContainsFunc(p.Verdict.Reasons, func(w model.Reason) bool { return w.Code != model.CodeQuorum })
}

// refused writes down that the policy does not let the step go on now.
func (r *Run) refused(ctx context.Context, j *job, p *incident.Preview) error {
	_, err := r.o.Desk.Refuse(ctx, *p)
	out := r.outcomeOf(j, stRefused)
	out.ID = ""
	out.Detail = clean(strings.Join(p.Reasons, "; "), maxValue)
	if rerr := r.record(ctx, out, true); rerr != nil {
		return errors.Join(err, rerr)
	}
	return fmt.Errorf("step %s: %w", j.step.ID, err)
}

// handOver gives the carriers what was signed before the crash and has reached
// nobody: the very text, so that there is one directive of this step and not two.
// What is no longer wanted by then is over, and may be asked for anew.
func (r *Run) handOver(ctx context.Context, j *job, a Answer) error {
	if !a.Confirm {
		return fmt.Errorf("%w: step %s: it was signed and has reached nobody: confirm that the same text is handed over", ErrAnswer, j.step.ID)
	}
	r.o.Desk.Refresh(ctx)
	scene := r.o.Desk.Scene()
	out := r.outcomeOf(j, stNotDone)
	out.Detail = "no carrier wants what was signed: its time is over, or it was ended"
	at := issuedAt(scene.World.Issued, out.ID)
	if at >= 0 {
		// What was issued in the second of a carrier's last answer does not count as
		// missing there yet.
		if r.o.now().Sub(scene.World.Issued[at].Directive.IssuedAt) < lookEvery {
			if err := r.o.Wait(ctx, lookEvery); err != nil {
				return err
			}
		}
		again, err := r.o.Desk.Reissue(ctx, scene.World.Issued[at].Directive.ID)
		if err != nil && len(again) == 0 {
			return fmt.Errorf("step %s: %w", j.step.ID, err)
		}
		var failed []string
		for i := range again {
			if again[i].State == incident.Sent {
				out.State, out.Detail = stSent, "the same signed text was handed over again"
			} else {
				failed = append(failed, again[i].Carrier+": "+again[i].Detail)
			}
		}
		if len(failed) > 0 && out.State != stSent {
			return fmt.Errorf("%w: step %s: %s", ErrStopped, j.step.ID, clean(strings.Join(failed, "; "), maxValue))
		}
	}
	return r.record(ctx, out, true)
}

// answerReality takes a person's word for what cannot be read, with what was seen.
// What the log knows to be signed is not signed again whatever is said here: the
// road refuses it.
func (r *Run) answerReality(ctx context.Context, j *job, a Answer) error {
	b := j.st.begun()
	out := r.outcomeOf(j, stSent)
	switch a.Choose {
	case ChooseAgain:
		r.o.Desk.Refresh(ctx)
		if err := r.o.Desk.Reconcile(ctx); err != nil {
			return err
		}
		sessions, err := r.o.Desk.Logs()
		if err != nil {
			return err
		}
		out = r.reality(sessions, b)
	case ChooseDone, ChooseNotDone:
		seen, err := saw(a.Seen)
		if err != nil {
			return fmt.Errorf("step %s: %w", j.step.ID, err)
		}
		if a.Choose == ChooseNotDone {
			out.State = stNotDone
		}
		out.Seen = seen
	default:
		return fmt.Errorf("%w: step %s: what became of it is UNKNOWN: choose %s, %s or %s", ErrAnswer, j.step.ID, ChooseAgain, ChooseDone, ChooseNotDone)
	}
	if err := r.record(ctx, out, true); err != nil {
		return err
	}
	if out.State == stUnknown {
		return fmt.Errorf("%w: step %s is still UNKNOWN: %s", ErrStopped, j.step.ID, out.Detail)
	}
	return nil
}

// awaitSignatures waits until a proposal is complete. Nobody's silence completes
// it, and the name of who is to be called next is said all the while.
func (r *Run) awaitSignatures(ctx context.Context, j *job) error {
	b := j.st.begun()
	since := j.st.last(b.ID).At
	deadline := since.Add(j.step.Timeout.Std())
	for {
		r.o.Desk.Refresh(ctx)
		scene := r.o.Desk.Scene()
		if at := issuedAt(scene.World.Issued, b.ID); at >= 0 {
			out := r.outcomeOf(j, stSent)
			out.Detail = "signed by " + strings.Join(scene.World.Issued[at].Signers, ", ")
			return r.record(ctx, out, true)
		}
		left := deadline.Sub(r.o.now())
		if left <= 0 {
			out := r.outcomeOf(j, stTimeout)
			e := Evidence{At: r.o.now(), Detail: "nobody has signed in time: nothing was opened; " + r.waitsFor(j, since)}
			return r.missed(ctx, j.step, out, &e)
		}
		r.o.Progress(fmt.Sprintf("%s; %s left", r.waitsFor(j, since), model.Duration(left.Round(time.Second))))
		if err := r.o.Wait(ctx, min(lookEvery, left)); err != nil {
			return err
		}
	}
}

// prove holds the step's probe against reality until it holds or the time is over.
func (r *Run) prove(ctx context.Context, j *job) error {
	b := j.st.begun()
	probe := j.step.Probe
	if probe == nil || j.undo {
		probe = &runbooks.Check{Reach: &runbooks.Reach{AtLeast: reachShare}}
	}
	var deadline time.Time
	last := j.st.last(b.ID)
	if j.step.Timeout > 0 {
		deadline = r.o.now().Add(j.step.Timeout.Std())
		if last.State == stSent {
			deadline = last.At.Add(j.step.Timeout.Std())
		}
	}
	var e Evidence
	var err error
	if probe.Reach != nil && j.step.Push != nil {
		e, err = r.untilPushed(ctx, probe.Reach, b, deadline)
	} else {
		e, err = r.until(ctx, probe, b.ID, deadline)
	}
	if err != nil {
		return err
	}
	out := r.outcomeOf(j, stDone)
	if !e.Holds {
		out.State = stTimeout
		return r.missed(ctx, j.step, out, &e)
	}
	e.put(&out, r.o.now())
	return r.conclude(ctx, j.step, out)
}

// untilPushed is until for a push: its reach is what the desk counts of its
// override, or that the override is gone.
func (r *Run) untilPushed(ctx context.Context, want *runbooks.Reach, b *Begin, deadline time.Time) (Evidence, error) {
	for {
		r.o.Desk.Refresh(ctx)
		s := r.o.Desk.Snapshot()
		e := overrideReach(&s, b, want)
		left := deadline.Sub(r.o.now())
		if e.Holds || left <= 0 {
			return e, ctx.Err()
		}
		r.o.Progress(fmt.Sprintf("%s; %s left", e.Value, model.Duration(left.Round(time.Second))))
		if err := r.o.Wait(ctx, min(lookEvery, left)); err != nil {
			return e, err
		}
	}
}

// overrideReach reads how far a push has come out of what the desk says about its
// override: effective, or partial n/m.
func overrideReach(s *incident.Snapshot, b *Begin, want *runbooks.Reach) Evidence {
	at := slices.IndexFunc(s.Overrides, func(o model.Override) bool { return strings.EqualFold(o.Operation, b.ID) })
	e := Evidence{At: s.At}
	if b.takesBack() {
		e.Holds, e.Value = at < 0, "the override is gone"
		if at >= 0 {
			e.Value = "the override is still there: " + s.Overrides[at].State
		}
		return e
	}
	if at < 0 {
		return noData(s.At, "no override of this step is known")
	}
	state := s.Overrides[at].State
	e.Value = "the override is " + state
	word, counts, _ := strings.Cut(state, " ")
	if _, err := fmt.Sscanf(counts, "%d/%d", &e.Done, &e.Total); err != nil || e.Total == 0 {
		e.Holds = word == string(incident.Effective)
		return e
	}
	e.Holds = e.Done*100 >= e.Total*want.AtLeast
	return e
}

// operationOf is the override that a step takes back: what this run has pushed
// through the backend last, or else the only one of the backend.
func (r *Run) operationOf(backend string) (string, error) {
	s := r.o.Desk.Snapshot()
	var own, others []string
	for i := range s.Overrides {
		if s.Overrides[i].Backend != backend {
			continue
		}
		others = append(others, s.Overrides[i].Operation)
		for _, st := range r.state.Steps {
			for k := range st.Begins {
				if strings.EqualFold(st.Begins[k].ID, s.Overrides[i].Operation) && !st.Begins[k].takesBack() {
					own = append(own, s.Overrides[i].Operation)
				}
			}
		}
	}
	switch {
	case len(own) > 0:
		return own[len(own)-1], nil
	case len(others) == 1:
		return others[0], nil
	}
	return "", fmt.Errorf("%w: %d overrides of %s are open, and none is this run's: ic break undo names one", incident.ErrNeeds, len(others), backend)
}
