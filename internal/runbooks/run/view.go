package run

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/runbooks"
)

// States of a step as a person sees it.
const (
	Pending  = "pending"
	Current  = "current"
	Done     = "done"
	Skipped  = "skipped"
	Failed   = "failed"  // it did not hold; the run stands here, or went on without it
	Unknown  = "UNKNOWN" // it was begun, and nobody can say what became of it
	NotDone  = "not-done"
	NotTaken = "not-taken" // the way has led around it
)

// View is a run at one moment.
type View struct {
	Run       string     `json:"run"`
	Runbook   string     `json:"runbook"`
	Title     string     `json:"title"`
	Digest    string     `json:"digest"`
	Signature string     `json:"signature"`
	Signers   []string   `json:"signers"`
	By        string     `json:"by"` // who began it
	At        time.Time  `json:"at"`
	TakenBy   string     `json:"taken_by"` // who follows it now
	TakenAt   time.Time  `json:"taken_at"`
	Kept      bool       `json:"kept,omitempty"` // the file has changed; the text that it began with is followed
	Steps     []StepView `json:"steps"`
	Current   string     `json:"current,omitempty"`
	Finished  bool       `json:"finished"`
	End       string     `json:"end,omitempty"` // finished or aborted
	EndWhy    string     `json:"end_why,omitempty"`
	Warnings  []string   `json:"warnings,omitempty"`
}

// StepView is a step with its evidence.
type StepView struct {
	ID        string        `json:"id"`
	Title     string        `json:"title"`
	Kind      runbooks.Kind `json:"kind"`
	State     string        `json:"state"`
	Undo      string        `json:"undo,omitempty"` // how far its undo has come
	Seen      string        `json:"seen,omitempty"` // what a person saw, or the reason of a skip
	Choice    string        `json:"choice,omitempty"`
	By        string        `json:"by,omitempty"`
	At        time.Time     `json:"at,omitzero"`
	Value     string        `json:"value,omitempty"`
	AgeS      int64         `json:"age_s"` // of the value, when it was read
	Directive string        `json:"directive,omitempty"`
	Done      int           `json:"done"`
	Total     int           `json:"total"`
	Detail    string        `json:"detail,omitempty"`
}

// View is where the run stands.
func (r *Run) View() View {
	s := &r.state
	v := View{Run: s.Run, Runbook: s.Runbook, Title: s.Title, Digest: s.Digest, Signature: s.Signature, Signers: s.Signers,
		By: s.By, At: s.At, TakenBy: s.TakenBy, TakenAt: s.TakenAt, Kept: s.Kept, End: s.End, EndWhy: s.EndWhy}
	current, passed := s.position(r.rb)
	for i := range r.rb.Steps {
		step := &r.rb.Steps[i]
		sv := r.stepView(step)
		switch {
		case current != nil && step.ID == current.ID:
			v.Current = step.ID
			if sv.State == Pending && s.End == "" {
				sv.State = Current
			}
		case passed[step.ID] && sv.State == Pending:
			sv.State = NotTaken
		}
		v.Steps = append(v.Steps, sv)
	}
	v.Finished = s.End != "" || current == nil
	v.Warnings = r.warnings()
	return v
}

func (r *Run) warnings() []string {
	var out []string
	now := r.o.now()
	if !r.rb.ValidUntil.IsZero() && !now.Before(r.rb.ValidUntil) {
		out = append(out, "the runbook is no longer valid since "+r.rb.ValidUntil.UTC().Format("2006-01-02"))
	}
	if limit := r.rb.MaxDuration; limit > 0 && r.state.End == "" && now.Sub(r.state.At) > limit.Std() {
		out = append(out, "the run takes longer than the "+limit.String()+" that the runbook allows")
	}
	return out
}

// stepView says of a step what the log says.
func (r *Run) stepView(step *runbooks.Step) StepView {
	v := StepView{ID: step.ID, Title: step.Title, Kind: step.Kind, State: Pending}
	if u := r.state.Undos[step.ID]; u != nil {
		if v.Undo = u.word(); u.over() != nil {
			v.Undo = u.over().State
		}
	}
	st := r.state.Steps[step.ID]
	if st == nil {
		return v
	}
	b := st.begun()
	if b != nil {
		v.Directive, v.By, v.At = b.ID, b.By, b.At
	}
	o := st.over()
	switch {
	case o != nil:
	case b != nil && b.ID != "":
		if o = st.last(b.ID); o == nil {
			v.State = Unknown
			return v
		}
	case st.looking(""):
		v.State = Current
		return v
	case len(st.Outcomes) > 0:
		o = &st.Outcomes[len(st.Outcomes)-1]
	default:
		return v
	}
	v.put(o)
	return v
}

func (v *StepView) put(o *Outcome) {
	v.Seen, v.Choice, v.By, v.At, v.Value, v.AgeS = o.Seen, o.Choice, o.By, o.At, o.Value, o.AgeS
	v.Done, v.Total, v.Detail = o.Done, o.Total, o.Detail
	if o.ID != "" {
		v.Directive = o.ID
	}
	switch o.State {
	case stDone:
		v.State = Done
	case stSkipped:
		v.State = Skipped
	case stUnknown:
		v.State = Unknown
	case stNotDone, stAbsent:
		v.State = NotDone
	case stSent, stProposed:
		v.State = Current
	default:
		v.State = Failed
	}
}

// Undoable is a step whose effect can be taken back.
type Undoable struct {
	Step      string `json:"step"`
	Title     string `json:"title"`
	What      string `json:"what"`
	Directive string `json:"directive"`
	Why       string `json:"irreversible,omitempty"` // why there is no undo
}

// Undos lists the effects of the run that stand and how each is taken back, the
// last one first.
func (r *Run) Undos() []Undoable {
	var out []Undoable
	for i := range r.rb.Steps {
		step := &r.rb.Steps[i]
		st := r.state.Steps[step.ID]
		b := st.begun()
		if b == nil || !step.Kind.HasEffect() || r.state.Undos[step.ID].over() != nil {
			continue
		}
		switch st.word() {
		case stRefused, stNotDone, stAbsent:
			continue
		}
		if step.Push == nil && st.word() == stTimeout && r.neverSigned(b.ID) {
			continue
		}
		u := Undoable{Step: step.ID, Title: step.Title, Directive: b.ID, Why: step.Irreversible}
		if step.Undo != nil {
			u.What = whatUndoes(undoStep(step))
		}
		out = append(out, u)
	}
	slices.Reverse(out)
	return out
}

// neverSigned: it was proposed, and nobody has signed it.
func (r *Run) neverSigned(id string) bool {
	scene := r.o.Desk.Scene()
	return issuedAt(scene.World.Issued, id) < 0
}

func whatUndoes(u *runbooks.Step) string {
	switch {
	case u.Do != nil:
		return "use the right " + u.Do.Right
	case u.Recover != nil:
		return "recover " + u.Recover.Scope
	case u.Push != nil && u.Push.Undo != "":
		return "remove the override of " + u.Push.Undo
	case u.Push != nil:
		return "push through " + u.Push.Backend
	}
	return ""
}

// Runs lists every run of the open incident, oldest first.
func Runs(desk Desk) ([]State, error) {
	sessions, err := desk.Logs()
	if err != nil && len(sessions) == 0 {
		return nil, err
	}
	return Fold(sessions), nil
}
