package main

import (
	"context"
	"errors"
	"sync"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
	runs "github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/internal/tui"
)

// rehearsalDesk is the person's desk, which tells the record what the person does.
type rehearsalDesk struct {
	*incident.Desk
	r *rehearsal
}

// Preview is asked when a person opens a dialog: that is an answer to an alarm, and no
// act yet.
func (d *rehearsalDesk) Preview(ask decisions.Ask) (incident.Preview, error) {
	d.r.attends()
	return d.Desk.Preview(ask)
}

// Execute gives an order in the rehearsal.
func (d *rehearsalDesk) Execute(ctx context.Context, act incident.Act) (incident.Result, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts(ctx)
	scene := d.Desk.Scene()
	shown := scene.Judge(act.Request)
	result, err := d.Desk.Execute(ctx, act)
	if shown.Exposure != nil && (err == nil || result.State == incident.Proposed) {
		d.r.post("cap", func() { d.r.run.Record().CapCents += shown.Exposure.WorstCase.Minor })
	}
	if result.State == incident.Proposed {
		d.r.asked()
		return result, err
	}
	d.r.told(ctx, shown.Title, act.Request.Directive.Right, err)
	return result, err
}

// told writes down what was done, or why it was not. What a step of a runbook did
// counts as that step, and once.
func (r *rehearsal) told(ctx context.Context, what, right string, err error) {
	if err == nil {
		if !inStep(ctx) {
			r.happened(score.Event{Kind: score.Step, What: what})
		}
		return
	}
	code := "failed"
	switch {
	case errors.Is(err, incident.ErrDenied):
		code = "denied"
	case errors.Is(err, incident.ErrNeeds):
		code = "needs"
	}
	r.happened(score.Event{Kind: score.Denied, What: what, Right: right, Code: code, Detail: err.Error()})
}

// PlanBreak asks a pipeline of the rehearsal.
func (d *rehearsalDesk) PlanBreak(ctx context.Context, backend string) (incident.BreakPlan, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.BreakPlan{}, err
	}
	defer leave()
	d.r.attends()
	return d.Desk.PlanBreak(ctx, backend)
}

// Push goes through a pipeline of the rehearsal.
func (d *rehearsalDesk) Push(ctx context.Context, plan incident.BreakPlan, asked bool, progress func(incident.Progress)) (incident.Result, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts(ctx)
	began := d.r.run.Now()
	result, err := d.Desk.Push(ctx, plan, asked, progress)
	if err == nil {
		pushed := result
		d.r.post("push", func() { d.r.run.Pushed(began, d.r.person.Name, &plan, &pushed) })
	}
	d.r.told(ctx, "push "+plan.Backend, "", err)
	return result, err
}

// UndoBreak removes an override in the rehearsal.
func (d *rehearsalDesk) UndoBreak(ctx context.Context, operation string, asked bool, progress func(incident.Progress)) (incident.Result, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts(ctx)
	result, err := d.Desk.UndoBreak(ctx, operation, asked, progress)
	d.r.told(ctx, "undo "+incident.ShortID(operation), "", err)
	return result, err
}

// rehearsalConsole is the desk in the words of the console.
type rehearsalConsole struct{ *rehearsalDesk }

// Snapshot is the desk's, without what goes wrong: a person has to find that out.
func (d *rehearsalConsole) Snapshot() incident.Snapshot {
	s := d.Desk.Snapshot()
	s.Faults = nil
	return s
}

// Command implements tui.Desk.
func (d *rehearsalConsole) Command(ctx context.Context, action, person string) (incident.Result, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts(ctx)
	return d.Desk.Command(ctx, incident.Action(action), person, "")
}

// Cosign implements tui.Desk.
func (d *rehearsalConsole) Cosign(ctx context.Context, token string) (incident.Result, error) {
	ctx, leave, err := d.r.enter(ctx)
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts(ctx)
	p, err := d.ReadProposal(ctx, token)
	if err != nil {
		return incident.Result{}, err
	}
	return d.Desk.Cosign(ctx, p, true)
}

// Fault implements tui.Desk. The scenario alone says what goes wrong.
func (d *rehearsalConsole) Fault(context.Context, string, bool) error {
	return errors.New("the scenario says what goes wrong in this rehearsal")
}

// stepKey marks the context of what a step of a runbook does.
type stepKey struct{}

func inStep(ctx context.Context) bool { return ctx.Value(stepKey{}) != nil }

// rehearsalRuns tells the record which runbook is followed, and how far.
type rehearsalRuns struct {
	*consoleRuns
	r *rehearsal

	mu     sync.Mutex
	states map[string]string // of the steps of each run, as told last
}

// acting is one thing that the person does with a runbook.
func (c *rehearsalRuns) acting(ctx context.Context, do func(context.Context) (tui.Following, error)) (tui.Following, error) {
	ctx, leave, err := c.r.enter(ctx)
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	c.r.acts(ctx)
	f, err := do(context.WithValue(ctx, stepKey{}, true))
	c.tell(f)
	return f, err
}

// asking is one thing that the person wants to know about a runbook.
func (c *rehearsalRuns) asking(ctx context.Context, ask func(context.Context) (*runs.Question, error)) (*runs.Question, error) {
	ctx, leave, err := c.r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.r.attends()
	return ask(ctx)
}

// Shelf reads the runbooks, and the logs of the rehearsal.
func (c *rehearsalRuns) Shelf(ctx context.Context) (tui.Shelf, error) {
	ctx, leave, err := c.r.enter(ctx)
	if err != nil {
		return tui.Shelf{}, err
	}
	defer leave()
	return c.consoleRuns.Shelf(ctx)
}

// Start begins a run in the rehearsal.
func (c *rehearsalRuns) Start(ctx context.Context, id string) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Start(ctx, id) })
}

// Resume takes a run of the rehearsal up.
func (c *rehearsalRuns) Resume(ctx context.Context, name string, kept bool) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Resume(ctx, name, kept) })
}

// Ask asks the world what the step would do.
func (c *rehearsalRuns) Ask(ctx context.Context) (*runs.Question, error) {
	return c.asking(ctx, c.consoleRuns.Ask)
}

// Next takes a step in the rehearsal.
func (c *rehearsalRuns) Next(ctx context.Context, a runs.Answer, told func(string)) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Next(ctx, a, told) })
}

// Skip leaves a step out in the rehearsal.
func (c *rehearsalRuns) Skip(ctx context.Context, reason string) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Skip(ctx, reason) })
}

// Abort ends the run in the rehearsal.
func (c *rehearsalRuns) Abort(ctx context.Context, reason string) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Abort(ctx, reason) })
}

// AskUndo asks the world what the undo would do.
func (c *rehearsalRuns) AskUndo(ctx context.Context, step string) (*runs.Question, error) {
	return c.asking(ctx, func(ctx context.Context) (*runs.Question, error) { return c.consoleRuns.AskUndo(ctx, step) })
}

// Undo takes the effect of a step back in the rehearsal.
func (c *rehearsalRuns) Undo(ctx context.Context, step string, a runs.Answer, told func(string)) (tui.Following, error) {
	return c.acting(ctx, func(ctx context.Context) (tui.Following, error) { return c.consoleRuns.Undo(ctx, step, a, told) })
}

// tell writes down which steps have come to another state, and whether the runbook
// was followed to its end.
func (c *rehearsalRuns) tell(f tui.Following) {
	if f.Book == nil {
		return // there is no run to tell about
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range f.Steps {
		s := &f.Steps[i]
		key, state := f.Run+" "+s.ID, s.State+" "+s.Undo
		if c.states[key] == state {
			continue
		}
		c.states[key] = state
		switch {
		case s.Undo == runs.Done:
			c.r.happened(score.Event{Kind: score.Step, ID: s.ID, What: "undone", Detail: s.Detail})
		case s.Undo != "":
		case s.State == runs.Done, s.State == runs.Failed, s.State == runs.Unknown:
			c.r.happened(score.Event{Kind: score.Step, ID: s.ID, What: s.State, Detail: s.Value})
		case s.State == runs.Skipped:
			c.r.happened(score.Event{Kind: score.Skipped, ID: s.ID, Detail: s.Seen})
		}
	}
	c.r.post("runbook", func() {
		record := c.r.run.Record()
		played := record.Played
		switch {
		case f.Runbook == played.Runbook:
			played.Begun = true
		case played.Begun:
			return // it is followed beside the one that the rehearsal is about
		}
		record.Runbook, record.Digest, record.Through = f.Book.ID, f.Book.Digest, f.Finished && f.End == runs.Finished
	})
}
