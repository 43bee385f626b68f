package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
)

// ChangedError says that the file is not what the run began with, and which steps
// differ. Steps is empty when only the text around them does.
type ChangedError struct {
	Run   string
	Began string // digest
	Now   string
	Steps []Difference
}

// Unwrap is ErrChanged.
func (e *ChangedError) Unwrap() error { return ErrChanged }

func (e *ChangedError) Error() string {
	what := "no step differs, the text around them does"
	if len(e.Steps) > 0 {
		var parts []string
		for _, d := range e.Steps {
			parts = append(parts, d.Step+" "+d.What)
		}
		what = "steps: " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%v: run %s began with sha256 %.12s, the file has %.12s (%s)", ErrChanged, e.Run, e.Began, e.Now, what)
}

// Resume takes a run up: ours after a crash, or somebody else's. It reads reality
// for what was begun and never concluded, writes down what it found, and repeats
// nothing.
func Resume(ctx context.Context, o Options) (*Run, error) {
	o.defaults()
	s := o.Desk.Snapshot()
	if s.Person == "" {
		return nil, fmt.Errorf("%w: no key of yours is in the trust root (ic keys list)", incident.ErrReadOnly)
	}
	r, sessions, err := open(o)
	if err != nil {
		return nil, err
	}
	if r.state.End != "" && !o.Over {
		return nil, fmt.Errorf("%w: run %s was %s at %s", ErrOver, r.state.Run, r.state.End, clockTime(r.state.EndedAt))
	}
	if err := mayFollow(runbooks.Signature{State: runbooks.SignState(r.state.Signature)}, s.Rehearsal); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.state.Run, err)
	}
	kept := o.Runbook != nil && o.Runbook.Digest != r.rb.Digest
	if err := r.record(ctx, audit.RunResume{Run: r.state.Run, Digest: r.rb.Digest, Kept: kept}, true); err != nil {
		return nil, err
	}
	r.takes = r.state.Takes
	return r, r.settle(ctx, sessions)
}

// Look opens a run to see where it stands. It writes nothing and asks nobody.
func Look(o Options) (View, error) {
	o.defaults()
	o.Kept = true
	r, _, err := open(o)
	if err != nil {
		return View{}, err
	}
	return r.View(), nil
}

// open folds the logs and finds the run and its text.
func open(o Options) (*Run, []audit.Session, error) {
	sessions, err := o.Desk.Logs()
	if err != nil && len(sessions) == 0 {
		return nil, nil, fmt.Errorf("read the runs: %w", err)
	}
	state, err := Find(Fold(sessions), o.Run)
	if err != nil {
		return nil, nil, err
	}
	rb, err := textOf(&o, sessions, state)
	if err != nil {
		return nil, nil, err
	}
	return &Run{o: o, rb: rb, state: *state, takes: state.Takes}, sessions, nil
}

// textOf is the text that a run is followed under: that which it began with.
func textOf(o *Options, sessions []audit.Session, state *State) (*runbooks.Runbook, error) {
	if o.Runbook != nil && o.Runbook.Digest == state.Digest {
		return o.Runbook, nil
	}
	raw, err := keptSource(sessions, state.Digest, int(state.Bytes))
	if err != nil {
		return nil, fmt.Errorf("run %s cannot go on: %w", state.Run, err)
	}
	began, err := runbooks.Parse(state.Runbook+".md", raw)
	if err != nil {
		return nil, fmt.Errorf("run %s cannot go on: the runbook that it began with cannot be read by this version: %w", state.Run, err)
	}
	if o.Runbook != nil && !o.Kept && !state.Kept {
		return nil, &ChangedError{Run: state.Run, Began: state.Digest, Now: o.Runbook.Digest, Steps: differences(began, o.Runbook)}
	}
	return began, nil
}

// settle reads reality for every effect that was begun and has no word behind it.
func (r *Run) settle(ctx context.Context, sessions []audit.Session) error {
	open := r.unsettled()
	if len(open) == 0 {
		return nil
	}
	r.o.Desk.Refresh(ctx)
	if err := r.o.Desk.Reconcile(ctx); err != nil {
		r.o.Progress("reality was read and could not be written down: " + err.Error())
	}
	// What was reconciled stands in the log now.
	if fresh, err := r.o.Desk.Logs(); err == nil {
		sessions = fresh
	}
	for _, b := range open {
		out := r.reality(sessions, b)
		if err := r.record(ctx, out, true); err != nil {
			return err
		}
	}
	return nil
}

// unsettled are the attempts of which nobody has read what became of them.
func (r *Run) unsettled() []*Begin {
	var out []*Begin
	for i := range r.rb.Steps {
		id := r.rb.Steps[i].ID
		for _, st := range []*StepState{r.state.Steps[id], r.state.Undos[id]} {
			if b := st.begun(); b != nil && b.ID != "" && st.over() == nil && st.word() == stUnknown {
				out = append(out, b)
			}
		}
	}
	return out
}

// reality finds out what became of an attempt: from the log, the carriers and the
// hosts' own reports.
func (r *Run) reality(sessions []audit.Session, b *Begin) audit.RunOutcome {
	out := audit.RunOutcome{Run: b.Run, Step: b.Step, Key: b.Key, ID: b.ID, Undo: b.Undo}
	if by := r.atWork(sessions, b); by != "" {
		out.State, out.Detail = stUnknown, by
		return out
	}
	if runbooks.Kind(b.Does) == runbooks.KindPush {
		out.State, out.Detail = pushed(r.o.Desk.Snapshot(), sessions, b)
		return out
	}
	scene := r.o.Desk.Scene()
	w := &scene.World
	if at := issuedAt(w.Issued, b.ID); at >= 0 {
		is := &w.Issued[at]
		reach := incident.ReachOf(w, &is.Directive, r.o.ReportAge)
		out.Done, out.Total = reach.Done, reach.Total
		switch is.Outcome {
		case "":
			out.State, out.Detail = stUnknown, "it was signed, and neither hosts nor carriers could be read to the end"
		case audit.StateAbsent, audit.StateFailed, audit.StateWithdrawn:
			out.State, out.Detail = stAbsent, "it was signed, reality was read, and it is nowhere: "+is.Outcome
		default:
			out.State, out.Detail = stSent, "reality was read: "+is.Outcome
		}
		return out
	}
	snapshot := r.o.Desk.Snapshot()
	for i := range snapshot.Proposals {
		if sameEffect(snapshot.Proposals[i].Directive.ID, b.ID) {
			out.State, out.Detail = stProposed, "it waits for signatures"
			return out
		}
	}
	out.State, out.Detail = nowhere(snapshot, sessions, b, r.durableFirst(b))
	return out
}

// durableFirst: the signature of what opens or recovers is in the log before
// anybody is given it. What tightens may have gone out past a full disk.
func (r *Run) durableFirst(b *Begin) bool {
	step := r.rb.Step(b.Step)
	if step == nil {
		return false
	}
	if b.Undo {
		step = undoStep(step)
	}
	if step.Kind == runbooks.KindRecover {
		return true
	}
	if step.Do == nil {
		return false
	}
	scene := r.o.Desk.Scene()
	right, _, known := scene.Bundle.Right(step.Do.Right)
	return known && right.Kind == model.Bypass
}

// atWork: the process that began it lives and may be in the middle of it.
func (r *Run) atWork(sessions []audit.Session, b *Begin) string {
	if b.Session == r.o.Desk.Snapshot().Session {
		return ""
	}
	for i := range sessions {
		if s := &sessions[i]; strings.HasSuffix(s.Name, "/"+b.Session) && s.Name != "" {
			if held, err := audit.Held(s.File); err == nil && held && !ended(s) {
				return fmt.Sprintf("%s still has it open in another window (%s)", b.By, filepath.Base(s.File))
			}
		}
	}
	return ""
}

// ended: the session has written its last entry.
func ended(s *audit.Session) bool {
	n := len(s.Entries)
	return n > 0 && s.Entries[n-1].Kind() == audit.KindSessionEnd
}

// nowhere judges an attempt of which no trace was found. That no trace is there is
// only proof where one would have to be.
func nowhere(s incident.Snapshot, sessions []audit.Session, b *Begin, durableFirst bool) (state, detail string) {
	for _, e := range audit.InOrder(sessions) {
		switch body := e.Body.(type) {
		case audit.Signed:
			if sameEffect(body.ID, b.ID) {
				return stUnknown, "the log says that it was signed, and what was signed cannot be read"
			}
		case audit.Proposed:
			if sameEffect(body.ID, b.ID) {
				return stNotDone, "it was proposed, and its time is over without the signatures"
			}
		}
	}
	for i := range s.World.Hosts {
		if rep := s.World.Hosts[i].Report; rep != nil {
			for _, l := range rep.Live {
				if sameEffect(l.ID, b.ID) {
					return stSent, "host " + s.World.Hosts[i].Host + " reports it"
				}
			}
		}
	}
	blind := slices.ContainsFunc(s.Carriers, func(c incident.CarrierView) bool { return !c.Connected })
	for i := range s.World.Hosts {
		blind = blind || !s.World.Hosts[i].Reachable || s.World.Hosts[i].Report == nil
	}
	switch {
	case !blind:
		return stNotDone, "it was not signed: neither the log, nor a carrier, nor a host has it"
	case durableFirst && whole(sessions, b.Session):
		return stNotDone, "it was not signed: the log that began it is whole and says so"
	}
	return stUnknown, "the log has no trace of it, and not every host and carrier could be read"
}

// whole: the log of a session is here and undamaged.
func whole(sessions []audit.Session, session string) bool {
	found := false
	for i := range sessions {
		if strings.HasSuffix(sessions[i].Name, "/"+session) {
			if found = true; sessions[i].Damage != nil {
				return false
			}
		}
	}
	return found
}

// pushed judges a push, or the removal of one.
func pushed(s incident.Snapshot, sessions []audit.Session, b *Begin) (state, detail string) {
	over := slices.IndexFunc(s.Overrides, func(o model.Override) bool { return strings.EqualFold(o.Operation, b.ID) })
	intent, undone := false, false
	for _, e := range audit.InOrder(sessions) {
		switch body := e.Body.(type) {
		case audit.PushIntent:
			intent = intent || strings.EqualFold(body.Operation, b.ID)
		case audit.UndoOutcome:
			undone = undone || strings.EqualFold(body.Operation, b.ID) && body.State == audit.StateUndone
		}
	}
	switch {
	case b.takesBack():
		if over < 0 {
			return stSent, "the override is gone"
		}
		return stNotDone, "the override is still there: " + s.Overrides[over].State
	case undone:
		return stNotDone, "it was pushed and is gone again"
	case over >= 0:
		return stSent, "the override is " + s.Overrides[over].State
	case !intent:
		return stNotDone, "nothing was pushed: the log has no intent of it"
	}
	return stUnknown, "a push was begun, and what became of it cannot be read"
}
