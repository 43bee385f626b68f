package run

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/runbooks"
)

// States of an outcome in the log. Those that end a step come with Next.
const (
	stDone      = "done"
	stSkipped   = "skipped"
	stContinued = "failed" // went on although it did not hold
	stRefused   = "refused"
	stProposed  = "proposed"
	stSent      = "sent"
	stTimeout   = "timeout"
	stUnknown   = "UNKNOWN"
	stNotDone   = "not-done"
	stAbsent    = "absent" // it was signed, and is nowhere
	stNoData    = "no-data"
)

// States of a run that is over.
const (
	Finished = audit.RunFinished
	Aborted  = audit.RunAborted
)

// State is what the log says about one run. It is computed, never stored.
type State struct {
	audit.RunStart
	By      string // who began it
	At      time.Time
	Takes   int    // how often it was begun or taken up
	TakenBy string // who did last
	TakenAt time.Time
	End     string // "", Finished or Aborted
	EndWhy  string
	EndedAt time.Time
	Steps   map[string]*StepState
	Undos   map[string]*StepState
	Kept    bool // the kept copy is followed

	last int // highest number of an entry
}

// StepState is what was begun and what came of it, in the order of the log.
type StepState struct {
	Begins   []Begin
	Outcomes []Outcome
}

// Begin is an attempt.
type Begin struct {
	audit.RunStep
	By      string
	At      time.Time
	Session string
}

// takesBack: the push of this attempt removes an override, whose operation is the
// attempt's id.
func (b *Begin) takesBack() bool {
	var p runbooks.Push
	return json.Unmarshal([]byte(b.Params), &p) == nil && p.Undo != ""
}

// Outcome is one word about a step.
type Outcome struct {
	audit.RunOutcome
	By string
	At time.Time
}

// Fold computes every run from the logs of one incident, in the order in which they
// began. It is pure, and gives the same for every order of the sessions. Within a
// run entries go by their number: clocks of two machines do not agree.
func Fold(sessions []audit.Session) []State {
	byRun := map[string][]audit.Entry{}
	var order []string
	for _, e := range audit.InOrder(sessions) {
		run, _ := placeOf(e.Body)
		if b, ok := e.Body.(audit.RunStart); ok && !slices.Contains(order, b.Run) {
			order = append(order, b.Run)
		}
		byRun[run] = append(byRun[run], e)
	}
	out := make([]State, 0, len(order))
	for _, run := range order {
		entries := byRun[run]
		slices.SortStableFunc(entries, func(a, b audit.Entry) int {
			_, na := placeOf(a.Body)
			_, nb := placeOf(b.Body)
			return cmp.Compare(na, nb)
		})
		var s State
		seen := map[written]bool{}
		for _, e := range entries {
			_, n := placeOf(e.Body)
			once := written{e.Session, n, e.Kind()}
			if !seen[once] {
				s.take(e)
			}
			seen[once] = true
		}
		out = append(out, s)
	}
	return out
}

// written is what tells one entry of a run from another: one that was written
// again, because the first write was not acknowledged, counts once.
type written struct {
	session string
	n       int
	kind    audit.Kind
}

// placeOf is the run that an entry belongs to, "" for none, and its number there.
func placeOf(body audit.Body) (run string, n int) {
	switch b := body.(type) {
	case audit.RunStart:
		return b.Run, 0
	case audit.RunResume:
		return b.Run, b.N
	case audit.RunStep:
		return b.Run, b.N
	case audit.RunOutcome:
		return b.Run, b.N
	case audit.RunEnd:
		return b.Run, math.MaxInt
	default:
		return "", 0
	}
}

// numbered gives an entry the next number of the run.
func (s *State) numbered(body audit.Body) audit.Body {
	switch b := body.(type) {
	case audit.RunResume:
		b.N = s.last + 1
		return b
	case audit.RunStep:
		b.N = s.last + 1
		return b
	case audit.RunOutcome:
		b.N = s.last + 1
		return b
	default:
		return body
	}
}

// take folds one entry in.
func (s *State) take(e audit.Entry) {
	if _, n := placeOf(e.Body); n != math.MaxInt {
		s.last = max(s.last, n)
	}
	switch b := e.Body.(type) {
	case audit.RunStart:
		s.RunStart, s.By, s.At = b, e.Actor, e.At
		s.taken(e)
	case audit.RunResume:
		s.Kept = s.Kept || b.Kept
		s.taken(e)
	case audit.RunStep:
		st := s.step(b.Step, b.Undo)
		st.Begins = append(st.Begins, Begin{RunStep: b, By: e.Actor, At: e.At, Session: e.Session})
	case audit.RunOutcome:
		st := s.step(b.Step, b.Undo)
		st.Outcomes = append(st.Outcomes, Outcome{RunOutcome: b, By: e.Actor, At: e.At})
	case audit.RunEnd:
		if s.End == "" { // once over, a run stays over
			s.End, s.EndWhy, s.EndedAt = b.State, b.Reason, e.At
		}
	}
}

func (s *State) taken(e audit.Entry) {
	s.Takes++
	s.TakenBy, s.TakenAt = e.Actor, e.At
}

// step is the state of a step, or of its undo.
func (s *State) step(id string, undo bool) *StepState {
	of := &s.Steps
	if undo {
		of = &s.Undos
	}
	if *of == nil {
		*of = map[string]*StepState{}
	}
	if (*of)[id] == nil {
		(*of)[id] = &StepState{}
	}
	return (*of)[id]
}

// over is the outcome that ended a step; nil while it is not over. Of two that
// people who did not see each other have written, the first counts: the way of the
// run must not change afterwards.
func (st *StepState) over() *Outcome {
	if st == nil {
		return nil
	}
	for i := range st.Outcomes {
		if st.Outcomes[i].Next != "" {
			return &st.Outcomes[i]
		}
	}
	return nil
}

// begun is the last attempt.
func (st *StepState) begun() *Begin {
	if st == nil || len(st.Begins) == 0 {
		return nil
	}
	return &st.Begins[len(st.Begins)-1]
}

// last is the last word about an attempt; of a step without an effect every word
// is about it.
func (st *StepState) last(id string) *Outcome {
	if st == nil {
		return nil
	}
	for i := len(st.Outcomes) - 1; i >= 0; i-- {
		if st.Outcomes[i].ID == id {
			return &st.Outcomes[i]
		}
	}
	return nil
}

// word is how far the effect of a step has come: "" when nothing was begun, and
// UNKNOWN when it was begun and nothing is written about it.
func (st *StepState) word() string {
	b := st.begun()
	if b == nil {
		return ""
	}
	o := st.last(b.ID)
	if o == nil {
		return stUnknown
	}
	return o.State
}

// position is the step that comes next, and nil when none does. passed are those
// that the way has led around.
func (s *State) position(rb *runbooks.Runbook) (current *runbooks.Step, passed map[string]bool) {
	passed = map[string]bool{}
	for i := 0; i < len(rb.Steps); {
		step := &rb.Steps[i]
		o := s.Steps[step.ID].over()
		if o == nil {
			return step, passed
		}
		next := len(rb.Steps)
		if at := slices.IndexFunc(rb.Steps, func(t runbooks.Step) bool { return t.ID == o.Next }); at > i {
			next = at
		}
		for j := i + 1; j < next; j++ {
			passed[rb.Steps[j].ID] = true
		}
		i = next
	}
	return nil, passed
}

// after is the step that follows one, or runbooks.ToEnd.
func after(rb *runbooks.Runbook, step *runbooks.Step) string {
	if step.Then != "" {
		return step.Then
	}
	at := slices.IndexFunc(rb.Steps, func(t runbooks.Step) bool { return t.ID == step.ID })
	if at >= 0 && at+1 < len(rb.Steps) {
		return rb.Steps[at+1].ID
	}
	return runbooks.ToEnd
}
