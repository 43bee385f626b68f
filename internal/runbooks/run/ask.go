package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/untrusted"
)

// Answer is what a person says to a question.
type Answer struct {
	Choose  string // a decision, or what to do about a step that did not hold
	Seen    string // what was seen
	Confirm bool   // the preview was shown and confirmed
	Asked   bool   // a person was asked; false when a file or --yes answered
}

// QuestionKind says what an answer has to hold.
type QuestionKind string

// The kinds of question.
const (
	AskConfirm QuestionKind = "confirm" // Confirm, after Typed was typed
	AskChoose  QuestionKind = "choose"  // Choose, one of Options
	AskSeen    QuestionKind = "seen"    // Seen
	AskMissed  QuestionKind = "missed"  // Choose: it did not hold in time
	AskReality QuestionKind = "reality" // Choose and Seen: nobody can read what became of it
	AskNoData  QuestionKind = "no-data" // Choose and Seen: there is no answer to the check
)

// Words of the questions that are not the runbook's own.
const (
	ChooseAgain   = "again"    // look again
	ChooseGoOn    = "go-on"    // without it
	ChooseStop    = "stop"     // stay here
	ChooseHolds   = "holds"    // it was seen with one's own eyes
	ChooseDone    = "done"     // the effect is there
	ChooseNotDone = "not-done" // the effect is not there, and may be tried again
)

// Choice is one possible answer.
type Choice struct {
	Choose string `json:"choose"`
	Means  string `json:"means"`
	Goto   string `json:"goto,omitempty"`
}

// Question is what the current step has to be told before it can go on.
type Question struct {
	Step    string              `json:"step"`
	Kind    QuestionKind        `json:"kind"`
	Text    string              `json:"text"`
	Options []Choice            `json:"options,omitempty"`
	Typed   string              `json:"typed,omitempty"` // to type before it is confirmed; "" asks for "yes"
	Preview *incident.Preview   `json:"preview,omitempty"`
	Plan    *incident.BreakPlan `json:"plan,omitempty"`
}

// shown is what a person has seen and may confirm: that, and nothing else, is
// done.
type shown struct {
	step      string
	undo      bool
	preview   *incident.Preview
	plan      *incident.BreakPlan
	operation string // that is removed
}

// Question is what the current step asks; nil when Next needs no answer or the run
// is over.
func (r *Run) Question(ctx context.Context) (*Question, error) {
	step, _ := r.state.position(r.rb)
	if step == nil || r.state.End != "" {
		return nil, nil
	}
	switch step.Kind {
	case runbooks.KindDecide:
		q := &Question{Step: step.ID, Kind: AskChoose, Text: step.Decide.Ask}
		for _, o := range step.Decide.Options {
			q.Options = append(q.Options, Choice(o))
		}
		return q, nil
	case runbooks.KindNote:
		return &Question{Step: step.ID, Kind: AskSeen, Text: step.Note.Ask}, nil
	case runbooks.KindManual:
		return &Question{Step: step.ID, Kind: AskSeen, Text: step.Title + ": what did you see?"}, nil
	case runbooks.KindCheck, runbooks.KindWait:
		return r.missedQuestion(step, r.state.Steps[step.ID], ""), nil
	}
	return r.effectQuestion(ctx, r.jobOf(step, false))
}

// effectQuestion is what an effect asks at the point where it stands.
func (r *Run) effectQuestion(ctx context.Context, j *job) (*Question, error) {
	switch j.st.word() {
	case "", stRefused, stNotDone:
		s, err := r.show(ctx, j)
		if err != nil {
			return nil, err
		}
		return s.question(j.step.ID), nil
	case stAbsent:
		return &Question{Step: j.step.ID, Kind: AskConfirm, Text: "it was signed and has reached nobody: hand over the same signed text, so that nothing is signed twice"}, nil
	case stUnknown:
		o := j.st.last(j.st.begun().ID)
		text := "it was begun, and what became of it is UNKNOWN"
		if o != nil && o.Detail != "" {
			text += ": " + o.Detail
		}
		return &Question{Step: j.step.ID, Kind: AskReality, Text: text, Options: []Choice{
			{Choose: ChooseAgain, Means: "read reality again"},
			{Choose: ChooseDone, Means: "you have seen that it is done: say what you saw"},
			{Choose: ChooseNotDone, Means: "you have seen that it is not done: say what you saw; it may then be tried again"},
		}}, nil
	}
	return r.missedQuestion(j.step, j.st, j.st.begun().ID), nil
}

// missedQuestion is asked where a step did not hold and says that a person is to
// be asked.
func (r *Run) missedQuestion(step *runbooks.Step, st *StepState, id string) *Question {
	o := st.last(id)
	if o == nil || st.looking(id) {
		return nil
	}
	again := Choice{Choose: ChooseAgain, Means: "look again"}
	stop := Choice{Choose: ChooseStop, Means: "stop here"}
	switch {
	case o.State == stTimeout && step.OnTimeout == runbooks.OnAsk:
		return &Question{Step: step.ID, Kind: AskMissed, Text: oneLine("it did not hold in time", o.Value, o.Detail), Options: []Choice{
			again, {Choose: ChooseGoOn, Means: "go on without it", Goto: after(r.rb, step)}, stop}}
	case o.State == stNoData && asksOnNoData(step):
		return &Question{Step: step.ID, Kind: AskNoData, Text: oneLine("there is no answer", cmp.Or(r.byHand(st, id), o.Detail)), Options: []Choice{
			again, {Choose: ChooseHolds, Means: "you have seen it yourself: say what you saw", Goto: after(r.rb, step)}, stop}}
	}
	return nil
}

// asksOnNoData: the check says so, or it proves an effect that is to ask when it
// did not hold. What nobody can read, as where a person does it by hand, never
// holds by itself, and without this question the run could never go on.
func asksOnNoData(step *runbooks.Step) bool {
	c := proofOf(step)
	return c != nil && (c.NoData == runbooks.NoDataAsk || step.Kind.HasEffect() && step.OnTimeout == runbooks.OnAsk)
}

// byHand is what a person was told to do when an effect was begun that no host
// verifies; "" otherwise.
func (r *Run) byHand(st *StepState, id string) string {
	scene := r.o.Desk.Scene()
	at := issuedAt(scene.World.Issued, id)
	if at < 0 || scene.World.Issued[at].Outcome != audit.StateAdvised {
		return ""
	}
	for i := range st.Outcomes {
		if o := &st.Outcomes[i]; o.ID == id && o.State == stSent {
			return o.Detail
		}
	}
	return ""
}

// proofOf is the check that a step holds by.
func proofOf(step *runbooks.Step) *runbooks.Check {
	switch {
	case step.Check != nil:
		return step.Check
	case step.Wait != nil:
		return step.Wait.Until
	}
	return step.Probe
}

// looking: an attempt at a step without an effect is under way.
func (st *StepState) looking(id string) bool {
	if st == nil || id != "" {
		return false
	}
	missed := 0
	for i := range st.Outcomes {
		if s := st.Outcomes[i].State; s == stTimeout || s == stNoData {
			missed++
		}
	}
	return len(st.Begins) > missed
}

func (s *shown) question(step string) *Question {
	q := &Question{Step: step, Kind: AskConfirm, Preview: s.preview, Plan: s.plan}
	switch {
	case s.preview != nil:
		q.Text, q.Typed = s.preview.Title, s.preview.Typed
	case s.plan != nil:
		q.Text = "push everything in force through " + s.plan.Backend
		q.Typed = "break " + s.plan.Backend
	default:
		q.Text = "remove the override " + s.operation
	}
	return q
}

// show makes the preview of an effect and keeps it: what is confirmed is what was
// shown.
func (r *Run) show(ctx context.Context, j *job) (*shown, error) {
	s := &shown{step: j.step.ID, undo: j.undo}
	switch {
	case j.step.Push != nil && j.step.Push.Undo != "":
		operation, err := r.operationOf(j.step.Push.Undo)
		if err != nil {
			return nil, err
		}
		s.operation = operation
	case j.step.Push != nil:
		plan, err := r.o.Desk.PlanBreak(ctx, j.step.Push.Backend)
		if err != nil {
			return nil, err
		}
		s.plan = &plan
	default:
		r.o.Desk.Refresh(ctx)
		ask, err := r.askOf(j)
		if err != nil {
			return nil, err
		}
		preview, err := r.o.Desk.Preview(ask)
		if err != nil {
			return nil, err
		}
		if err := matches(j.step, &preview.Request.Directive); err != nil {
			return nil, err
		}
		s.preview = &preview
	}
	r.shown = s
	return s, nil
}

// askOf is what a step asks of the policy.
func (r *Run) askOf(j *job) (decisions.Ask, error) {
	reason := fmt.Sprintf("runbook %s, step %s", r.rb.ID, j.step.ID)
	if rec := j.step.Recover; rec != nil {
		right, err := r.recoveryRight(rec.Scope)
		return decisions.Ask{Right: right, Scope: rec.Scope, Tier: rec.To, Reason: reason}, err
	}
	do := j.step.Do
	ask := decisions.Ask{Right: do.Right, Scope: do.Scope, Tier: do.Tier, Feature: do.Feature, Lasts: do.For, Under: do.Under,
		TargetMS: do.TargetMS, Floor: do.Floor, Ceiling: do.Ceiling, Reason: do.Reason}
	if ask.Reason == "" {
		ask.Reason = reason
	}
	scene := r.o.Desk.Scene()
	right, _, known := scene.Bundle.Right(do.Right)
	if !known || right.Kind != model.End {
		return ask, nil
	}
	if right.Ends == model.Shed {
		if ask.Tier == 0 {
			ask.Tier = decisions.NextTier
		}
		return ask, nil
	}
	if b := r.state.Steps[j.step.ID].begun(); j.undo && b != nil {
		ask.IDs = []string{b.ID} // the undo of a step ends what that step began, and nothing else
	}
	return ask, nil
}

// recoveryRight is the right by which this person takes the next step of a
// recovery; of several the one that asks for the fewest people.
func (r *Run) recoveryRight(scope string) (string, error) {
	best, fewest := "", 0
	for _, right := range r.o.Desk.Rights() {
		fits := right.Kind == model.End && right.Ends == model.Shed && !right.Blind &&
			(slices.Contains(right.Scope, model.AnyScope) || slices.Contains(right.Scope, scope))
		if fits && (best == "" || right.Cosign.Count < fewest) {
			best, fewest = right.Name, right.Cosign.Count
		}
	}
	if best == "" {
		return "", fmt.Errorf("%w: no right of yours lets you recover %s: see ic can", incident.ErrDenied, scope)
	}
	return best, nil
}

// matches: what would be signed is what the step says. A ramp that stands
// elsewhere, or a policy that has changed since the runbook was signed, is no
// reason to do something else.
func matches(step *runbooks.Step, d *model.Directive) error {
	if rec := step.Recover; rec != nil && (d.To != rec.To || rec.Percent != 0 && d.Percent != rec.Percent) {
		return fmt.Errorf("%w: the step recovers %s to tier %d on %d %% of hosts, and the next step of the ramp is tier %d on %d %%: skip it, or take the step that fits (ic recover)",
			incident.ErrNeeds, rec.Scope, rec.To, rec.Percent, d.To, d.Percent)
	}
	if do := step.Do; do != nil && do.Control != "" && d.Kind == model.Bypass && d.Control != do.Control {
		return fmt.Errorf("%w: the step opens %s, and the right %s opens %s: the runbook does not fit the policy in force", incident.ErrDenied, do.Control, do.Right, d.Control)
	}
	return nil
}

// empty are words that say that something was done and not what was seen.
var empty = [...]string{"done", "ok", "okay", "yes", "y", "yep", "no", "n", "true", "fine", "good", "checked", "check", "seen", "x", "na", "all", "it", "is", "was", "looks", "look", "i", "did", "did it", "sure", "k"}

// saw cleans what a person says to have seen, and refuses what says nothing.
func saw(said string) (string, error) {
	text := clean(strings.TrimSpace(said), maxSaid)
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	for _, w := range words {
		if !slices.Contains(empty[:], w) {
			return text, nil
		}
	}
	return "", fmt.Errorf("%w: say what you saw, such as a value, a name or a time: %q does not let anybody judge it later", ErrAnswer, text)
}

func clean(s string, limit int) string { return untrusted.Text(s, limit) }
