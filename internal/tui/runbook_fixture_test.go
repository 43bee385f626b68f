package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

const riskText = `---
v: 1
id: payment-risk-down
owner: payments
use_when: payment-risk does not answer and checkout fails
signals: [payment-risk-up]
valid_until: 2027-03-01
max_duration: 45m
---
# Payment risk is gone

You see orders fail at checkout. Risk scoring does not answer.

## Is it so?

Look at the graph, not at the chat.

` + "```ic-step" + `
id: see
check: {signal: payment-risk-up, is: abnormal}
timeout: 2m
on_timeout: stop
` + "```" + `

` + "```sh\nkubectl -n payments get pods | grep risk   # to look at, nothing runs it\n```" + `

## What is on the graph?

` + "```ic-step" + `
id: graph
note: {ask: 'Which graph did you look at, and what did it show?'}
` + "```" + `

## How large?

` + "```ic-step" + `
id: choose
decide:
  ask: Which orders may go through unscored?
  options:
    - {choose: small, means: orders under 50 dollars, goto: open}
    - {choose: none, means: nothing is opened, goto: end}
` + "```" + `

## Skip the check for small orders

` + "```ic-step" + `
id: open
do: {right: risk-bypass-small-orders, scope: checkout, for: 15m, reason: payment-risk is gone}
timeout: 2m
on_timeout: ask
probe: {reach: {at_least: 95}}
irreversible: orders that went through cannot be taken back
` + "```" + `

## Wait until it is back

` + "```ic-step" + `
id: back
wait: {until: {signal: payment-risk-up, is: normal}, at_most: 15m}
on_timeout: continue
` + "```" + `

## Carry it past the flag service

` + "```ic-step" + `
id: carry
push: {backend: git}
timeout: 5m
on_timeout: ask
probe: {reach: {at_least: 95}}
undo: {push: {undo: git}}
` + "```" + `
`

const checkText = "# Look at the catalog\n\n## Open the dashboard\n\nIt is linked in the channel.\n\n## Call the database team\n"

func bookOf(t testing.TB, id, text string, s runbooks.SignState) Book {
	t.Helper()
	rb, err := runbooks.Parse(id+".md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b := Book{ID: id, Runbook: rb, Signature: &runbooks.Signature{State: s, Group: "owners", By: []string{}}}
	if s == runbooks.Signed {
		b.Signature.By = []string{"carol", "dave"}
	} else {
		b.Signature.Why = "nobody of the group owners has signed it"
	}
	return b
}

// fakeRuns is a shelf and an engine that moves on with every answer. What has an
// effect is counted where the desk's effects are.
type fakeRuns struct {
	desk *fakeDesk

	mu      sync.Mutex
	shelf   Shelf
	f       Following
	answers []run.Answer
	err     error // what the next call fails with
	preview func() incident.Preview
}

func newRuns(t testing.TB, d *fakeDesk) *fakeRuns {
	risk := bookOf(t, "payment-risk-down", riskText, runbooks.Signed)
	return &fakeRuns{desk: d, shelf: Shelf{Where: "runbooks", Books: []Book{
		bookOf(t, "dashboards", checkText, runbooks.Unsigned),
		{ID: "broken", Error: "broken.md:3:1: unknown key ownr; did you mean owner?"},
		bookOf(t, "flags-down", riskTextAs("flags-down"), runbooks.Changed),
		risk,
	}}}
}

// riskTextAs is the runbook under another id.
func riskTextAs(id string) string {
	return replaced(riskText, "id: payment-risk-down", "id: "+id, "signals: [payment-risk-up]\n", "")
}

func (r *fakeRuns) Shelf(context.Context) (Shelf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shelf, nil
}

func (r *fakeRuns) Start(_ context.Context, id string) (Following, error) {
	r.desk.count("command")
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.shelf.Books {
		if b := &r.shelf.Books[i]; b.ID == id {
			r.f = Following{Book: b.Runbook, View: run.View{Run: "R7K2", Runbook: id, Title: b.Runbook.Title, Signature: string(b.Signature.State), By: "alice", At: night, TakenBy: "alice"}}
			for k := range b.Runbook.Steps {
				s := &b.Runbook.Steps[k]
				r.f.Steps = append(r.f.Steps, run.StepView{ID: s.ID, Title: s.Title, Kind: s.Kind, State: run.Pending})
			}
			r.at(0)
			return r.f, nil
		}
	}
	return Following{}, run.ErrNoRun
}

// at puts the run on a step.
func (r *fakeRuns) at(i int) {
	r.f.Steps = slices.Clone(r.f.Steps)
	if i >= len(r.f.Steps) {
		r.f.Finished, r.f.End, r.f.Current = true, run.Finished, ""
		return
	}
	r.f.Current, r.f.Steps[i].State = r.f.Steps[i].ID, run.Current
}

func (r *fakeRuns) place() int {
	return slices.IndexFunc(r.f.Steps, func(s run.StepView) bool { return s.ID == r.f.Current })
}

func (r *fakeRuns) Resume(_ context.Context, name string, kept bool) (Following, error) {
	r.desk.count("command")
	if name == "R-CHANGED" && !kept {
		return Following{}, &run.ChangedError{Run: name, Began: "aa", Now: "bb", Steps: []run.Difference{{Step: "open", What: "changed"}}}
	}
	return r.Start(context.Background(), "payment-risk-down")
}

func (r *fakeRuns) Ask(context.Context) (*run.Question, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desk.count("ask")
	step := r.f.Book.Step(r.f.Current)
	switch step.Kind {
	case runbooks.KindDecide:
		q := &run.Question{Step: step.ID, Kind: run.AskChoose, Text: step.Decide.Ask}
		for _, o := range step.Decide.Options {
			q.Options = append(q.Options, run.Choice(o))
		}
		return q, nil
	case runbooks.KindNote, runbooks.KindManual:
		return &run.Question{Step: step.ID, Kind: run.AskSeen, Text: "what did you see?"}, nil
	case runbooks.KindDo:
		p := previewOf(decisions.Ask{Right: step.Do.Right, Reason: step.Do.Reason, Actor: "alice"})
		if r.preview != nil {
			p = r.preview()
		}
		return &run.Question{Step: step.ID, Kind: run.AskConfirm, Text: p.Title, Typed: p.Typed, Preview: &p}, nil
	case runbooks.KindPush:
		plan := samplePlan(step.Push.Backend)
		return &run.Question{Step: step.ID, Kind: run.AskConfirm, Plan: &plan}, nil
	}
	if s := r.f.Steps[r.place()]; s.State == run.Failed {
		return &run.Question{Step: step.ID, Kind: run.AskNoData, Text: "there is no answer", Options: []run.Choice{
			{Choose: run.ChooseAgain, Means: "look again"}, {Choose: run.ChooseHolds, Means: "you have seen it yourself: say what you saw"}, {Choose: run.ChooseStop, Means: "stop here"}}}, nil
	}
	return nil, nil
}

func (r *fakeRuns) Next(_ context.Context, a run.Answer, _ func(string)) (Following, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, a)
	if a.Confirm {
		r.desk.count("execute")
	}
	if a.Seen == "done" {
		return r.f, fmt.Errorf("%w: step %s: say what you saw", run.ErrAnswer, r.f.Current)
	}
	i := r.place()
	r.f.Steps = slices.Clone(r.f.Steps)
	s := &r.f.Steps[i]
	s.By, s.At = "alice", night
	if r.err != nil {
		s.State, s.Detail = run.Failed, "no-data: prometheus does not answer"
		return r.f, r.err
	}
	s.State, s.Choice, s.Seen = run.Done, a.Choose, a.Seen
	if s.Kind == runbooks.KindCheck {
		s.Value, s.AgeS = "payment-risk-up is 0, abnormal (below 1)", 4
	}
	if s.Kind == runbooks.KindDo {
		s.Directive, s.Done, s.Total, s.Value = bypassID, 58, 60, "58 of 60 hosts report it"
	}
	next := i + 1
	if step := r.f.Book.Step(s.ID); step.Decide != nil && a.Choose == "none" {
		next = len(r.f.Steps)
	}
	r.at(next)
	return r.f, nil
}

func (r *fakeRuns) Skip(_ context.Context, reason string) (Following, error) {
	r.desk.count("command")
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason == "done" {
		return r.f, fmt.Errorf("a skipped step needs a reason: %w", run.ErrAnswer)
	}
	i := r.place()
	r.f.Steps = slices.Clone(r.f.Steps)
	s := &r.f.Steps[i]
	s.State, s.Seen, s.By, s.At = run.Skipped, reason, "alice", night
	r.at(i + 1)
	return r.f, nil
}

func (r *fakeRuns) Abort(_ context.Context, reason string) (Following, error) {
	r.desk.count("command")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.f.Finished, r.f.End, r.f.EndWhy, r.f.Current = true, run.Aborted, reason, ""
	r.f.Undos = []run.Undoable{
		{Step: "carry", Title: "Carry it past the flag service", What: "remove the override of git", Directive: "01JDWE00000000000000PSH001"},
		{Step: "open", Title: "Skip the check for small orders", Directive: bypassID, Why: "orders that went through cannot be taken back"},
	}
	return r.f, nil
}

func (r *fakeRuns) AskUndo(_ context.Context, step string) (*run.Question, error) {
	return &run.Question{Step: step, Kind: run.AskConfirm, Text: "remove the override 01JDWE00000000000000PSH001"}, nil
}

func (r *fakeRuns) Undo(_ context.Context, step string, a run.Answer, _ func(string)) (Following, error) {
	r.desk.count("undo")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, a)
	r.f.Steps = slices.Clone(r.f.Steps)
	for i := range r.f.Steps {
		if s := &r.f.Steps[i]; s.ID == step {
			s.Undo = run.Done
		}
	}
	r.f.Undos = slices.DeleteFunc(slices.Clone(r.f.Undos), func(u run.Undoable) bool { return u.Step == step })
	return r.f, nil
}

// follows puts a person before a run of payment-risk-down, at a step.
func follows(t testing.TB, snap incident.Snapshot, width, height int, step string) *hands {
	t.Helper()
	h := sitDown(t, newDesk(snap), width, height)
	h.press("4")
	h.m.book.open("payment-risk-down")
	h.press("enter", "y")
	if h.m.book.follow == nil {
		t.Fatalf("no run is followed:\n%s", h.screen())
	}
	for f := h.m.book.follow; f.Current != step; {
		before := f.Current
		h.takes()
		if f.Current == before {
			t.Fatalf("step %s is not taken:\n%s", before, h.screen())
		}
	}
	return h
}

// openRisk are the keys that open the text of payment-risk-down.
func openRisk() []string { return []string{"4", "g", "enter"} }

// takes takes the current step, whatever it asks.
func (h *hands) takes() {
	h.t.Helper()
	kind := h.m.book.follow.current().Kind
	h.press("enter")
	switch kind {
	case runbooks.KindNote:
		h.typeText("p95 2.1 s at 03:12").press("enter")
	case runbooks.KindDecide:
		h.press("1")
	case runbooks.KindDo:
		h.typeText("skip payment-risk").press("enter")
	case runbooks.KindPush:
		h.press("pgdown", "pgdown").typeText("push git").press("enter")
	}
}

var _ Runs = (*fakeRuns)(nil)

func replaced(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
