package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	runs "github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/internal/signals"
	"github.com/degradedmode/ic/internal/tui"
	tonight "github.com/degradedmode/ic/runbooks"
)

const (
	// stepEvery is how often the world of a rehearsal is moved on, in real time.
	stepEvery = 50 * time.Millisecond
	// maxSpeed keeps what is on the screen within a minute of the world: a desk looks
	// every two seconds of real time.
	maxSpeed = 20
	// worldLimit is the deadline of a query in the same process.
	worldLimit = time.Minute
)

// rehearsal is a scenario with a person at the console. One goroutine owns the world
// and moves it on; everybody else reaches it through a desk, which the paced world
// lets in between two events, or by a post to its kernel.
type rehearsal struct {
	a      *app
	run    *scenario.Run
	person scenario.Person
	desk   *incident.Desk
	speed  int
	alarms int // that this person has acted after; owned by the world

	mu   sync.Mutex
	over bool
	busy sync.WaitGroup // calls of the console that are under way
}

// errRehearsed is what an order meets that comes after the end.
var errRehearsed = errors.New("the rehearsal is over")

// enter keeps the world from being judged while a call is under way.
func (r *rehearsal) enter() (leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, errRehearsed
	}
	r.busy.Add(1)
	return r.busy.Done, nil
}

// end refuses what comes from now on and waits for what is under way.
func (r *rehearsal) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.busy.Wait()
}

// atConsole reports whether a person is to act.
func (f *rehearsalFlags) atConsole() bool { return !f.auto && f.script == "" && !f.baseline }

// playAtConsole plays a scenario with a person in front of it, and returns what
// happened until its end, or until the person left. Nothing of it lasts but the
// record: the folder is gone afterwards.
func (p *player) playAtConsole(ctx context.Context, s *scenario.Scenario, f *rehearsalFlags) (record *score.Record, err error) {
	dir, err := os.MkdirTemp("", "ic-rehearsal-")
	if err != nil {
		return nil, fail(exitFailed, "make a folder for the rehearsal: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &rehearsal{a: p.a, speed: f.speed}
	if r.person, err = seatOf(s, f.as); err != nil {
		return nil, err
	}
	books, err := p.booksToRehearse(f)
	if err != nil {
		return nil, err
	}
	o := scenario.Options{Seed: f.seed, Mode: score.WithIC, State: dir, Paced: true, Seat: r.person.Name}
	o.Acts = func(_ context.Context, run *scenario.Run) (err error) {
		r.desk, err = run.World().Desk(r.person.Name)
		return err
	}
	if r.run, err = scenario.Open(ctx, s, o); err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	left := r.show(ctx, books)
	if now := r.run.Now(); now < s.Lasts && r.run.Record().Aborted == "" {
		r.run.Record().Aborted = fmt.Sprintf("%s left at %s of %s", r.person.Name, now.Round(time.Second), s.Lasts)
	}
	record, err = r.run.Finish()
	if err = errors.Join(left, err); err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	return record, nil
}

// seatOf finds whose seat the console is: a role or a person; "" is the first who is
// there.
func seatOf(s *scenario.Scenario, as string) (scenario.Person, error) {
	var there []string
	for _, p := range s.People {
		if p.Absent {
			continue
		}
		if as == "" || p.Name == as || p.Role == as {
			return p, nil
		}
		there = append(there, p.Name+" ("+p.Role+")")
	}
	return scenario.Person{}, fail(exitUsage, "nobody in the scenario is %q; there are %s", as, strings.Join(there, ", "))
}

// booksToRehearse are the runbooks beside the policy, or without them those that
// ship; --with puts one on the shelf that lies elsewhere.
func (p *player) booksToRehearse(f *rehearsalFlags) (func() ([]tui.Book, error), error) {
	var fsys fs.FS = tonight.Files
	if root, err := openRunbooks(runbooksOf(p.c)); err == nil && p.c.Policy != "" {
		fsys = root.FS()
	}
	if f.with == "" {
		return func() ([]tui.Book, error) { return booksIn(fsys) }, nil
	}
	path := f.with
	if _, err := os.Stat(path); err != nil {
		return func() ([]tui.Book, error) { return booksIn(fsys) }, p.lies(fsys, f.with)
	}
	return func() ([]tui.Book, error) {
		all, err := booksIn(fsys)
		raw, rerr := readBounded(path, runbooks.MaxFile)
		if err = errors.Join(err, rerr); err != nil {
			return nil, err
		}
		one := tui.Book{ID: strings.TrimSuffix(filepath.Base(path), ".md"), Signature: unsignedHere()}
		if one.Runbook, err = runbooks.Parse(filepath.Base(path), raw); err != nil {
			one.Error = err.Error()
		}
		all = slices.DeleteFunc(all, func(b tui.Book) bool { return b.ID == one.ID })
		return append([]tui.Book{one}, all...), nil
	}, nil
}

// lies makes sure that a runbook lies on the shelf.
func (p *player) lies(fsys fs.FS, id string) error {
	if _, err := fs.Stat(fsys, strings.TrimSuffix(id, ".md")+".md"); err != nil {
		return fail(exitUsage, "there is no runbook %s", id).hinting("ic runbook list shows what there is; a path names one elsewhere")
	}
	return nil
}

// show lets the world go on and the person act, until one of them is at the end.
func (r *rehearsal) show(ctx context.Context, books func() ([]tui.Book, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := r.run.World()
	desk := &rehearsalDesk{Desk: r.desk, r: r}
	o, err := r.options(desk)
	if err != nil {
		return err
	}
	shelf := &rehearsalRuns{consoleRuns: newConsoleRuns("this rehearsal", o, books), r: r}
	r.busy.Go(func() {
		defer cancel() // the scenario is over, and so is the console
		r.pace(ctx)
	})
	r.busy.Go(func() { r.desk.Run(ctx) })
	err = tui.Run(ctx, &rehearsalConsole{desk}, tui.Options{
		Now: func() time.Time { return w.Kernel().Now() }, Real: r.a.real, Input: r.a.in, Output: r.a.out,
		Environ: os.Environ(), NoColor: r.a.getenv("NO_COLOR") != "",
		Runbooks: func() []tui.Runbook { return tui.RunbooksOf(w.Bundle()) }, Runs: shelf,
	})
	over := ctx.Err() != nil
	cancel()
	r.end()
	w.Advance(w.Kernel().Now()) // what was posted last
	if over || errors.Is(err, tui.ErrInterrupted) {
		return nil // at the end of the scenario, or left: the card says which
	}
	return err
}

// pace moves the world on with real time.
func (r *rehearsal) pace(ctx context.Context) {
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	began, from := r.a.real(), r.run.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !r.run.Advance(from + r.a.real().Sub(began)*time.Duration(r.speed)) {
			return
		}
	}
}

// options are what a runbook is followed with in the world.
func (r *rehearsal) options(desk runs.Desk) (runs.Options, error) {
	w := r.run.World()
	source, err := signals.New(signals.Options{URL: "http://prometheus.invalid", RoundTripper: w.Prometheus(), Now: w.Kernel().Now, Timeout: worldLimit})
	if err != nil {
		return runs.Options{}, err
	}
	const name = "check"
	return runs.Options{
		Desk: desk, Clock: w.Kernel().HostClock("desk/" + r.person.Name), Rand: randReader,
		ReportAge: incident.DefaultReportAge * model.Duration(r.speed),
		Wait:      func(ctx context.Context, d time.Duration) error { return pause(ctx, d/time.Duration(r.speed)) },
		Query: func(ctx context.Context, query string) model.Reading {
			return source.Read(ctx, []signals.Spec{{Name: name, Query: query}})[name]
		},
	}, nil
}

// post has the owner of the world do something. A full inbox is one of a world that
// has stopped: then nobody reads the record either.
func (r *rehearsal) post(what string, do func()) { _ = r.run.World().Kernel().Post(what, do) }

// happened writes something down that the person did.
func (r *rehearsal) happened(e score.Event) {
	e.Who = r.person.Name
	r.post(string(e.Kind), func() { r.run.Happened(e) })
}

// acts says that the person acts now. The first act after an alarm is the answer to
// it.
func (r *rehearsal) acts() {
	r.post("acts", func() {
		alarms := 0
		for _, e := range r.run.Record().Events {
			if e.Kind == score.Alarm {
				alarms++
			}
		}
		if alarms > r.alarms {
			r.alarms = alarms
			r.run.Happened(score.Event{Kind: score.Acknowledged, Who: r.person.Name})
		}
	})
}

// asked has the others of the scenario sign what waits for them, each as quick as
// the scenario says.
func (r *rehearsal) asked() {
	r.post("asked", func() {
		w := r.run.World()
		for _, p := range r.run.Scenario().People {
			if p.Name == r.person.Name || p.Absent {
				continue
			}
			// One who has no seat in this world signs nothing, and the proposal shows it.
			_ = w.As(p.Name, "cosigns", w.Kernel().Now().Add(p.Reacts), func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				for _, waiting := range d.Snapshot().Proposals {
					approval, err := d.ReadProposal(ctx, waiting.Token)
					if err != nil {
						continue
					}
					if _, err := d.Cosign(ctx, approval, true); err == nil {
						r.run.Happened(score.Event{Kind: score.Decided, Who: p.Name, What: "cosigns", ID: waiting.Directive.ID})
					}
				}
				return nil
			})
		}
	})
}

// rehearsalDesk is the person's desk, which tells the record what the person does.
type rehearsalDesk struct {
	*incident.Desk
	r *rehearsal
}

// Execute gives an order in the rehearsal.
func (d *rehearsalDesk) Execute(ctx context.Context, act incident.Act) (incident.Result, error) {
	leave, err := d.r.enter()
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts()
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
	d.r.told(shown.Title, act.Request.Directive.Right, err)
	return result, err
}

// told writes down what was done, or why it was not.
func (r *rehearsal) told(what, right string, err error) {
	if err == nil {
		r.happened(score.Event{Kind: score.Step, What: what})
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

// Push goes through a pipeline of the rehearsal.
func (d *rehearsalDesk) Push(ctx context.Context, plan incident.BreakPlan, asked bool, progress func(incident.Progress)) (incident.Result, error) {
	leave, err := d.r.enter()
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts()
	began, what := d.r.run.Now().Milliseconds(), "push "+plan.Backend
	result, err := d.Desk.Push(ctx, plan, asked, progress)
	if err == nil {
		for _, kind := range []score.EventKind{score.Decided, score.Issued} {
			d.r.happened(score.Event{AtMS: began, Kind: kind, What: what, ID: plan.Operation})
		}
		if result.State == incident.Effective {
			d.r.happened(score.Event{Kind: score.Effective, What: what, ID: plan.Operation, Done: result.Done, Total: result.Total})
		}
	}
	d.r.told(what, "", err)
	return result, err
}

// UndoBreak removes an override in the rehearsal.
func (d *rehearsalDesk) UndoBreak(ctx context.Context, operation string, asked bool, progress func(incident.Progress)) (incident.Result, error) {
	leave, err := d.r.enter()
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts()
	result, err := d.Desk.UndoBreak(ctx, operation, asked, progress)
	d.r.told("undo "+incident.ShortID(operation), "", err)
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
	leave, err := d.r.enter()
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts()
	return d.Desk.Command(ctx, incident.Action(action), person, "")
}

// Cosign implements tui.Desk.
func (d *rehearsalConsole) Cosign(ctx context.Context, token string) (incident.Result, error) {
	leave, err := d.r.enter()
	if err != nil {
		return incident.Result{}, err
	}
	defer leave()
	d.r.acts()
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

// rehearsalRuns tells the record which runbook is followed, and how far.
type rehearsalRuns struct {
	*consoleRuns
	r *rehearsal

	mu     sync.Mutex
	states map[string]string // of the steps, as told last
}

// Start begins a run in the rehearsal.
func (c *rehearsalRuns) Start(ctx context.Context, id string) (tui.Following, error) {
	leave, err := c.r.enter()
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	c.r.acts()
	f, err := c.consoleRuns.Start(ctx, id)
	if f.Book != nil {
		c.mu.Lock()
		c.states = map[string]string{}
		c.mu.Unlock()
		c.r.post("runbook", func() {
			record := c.r.run.Record()
			record.Runbook, record.Digest, record.Through = f.Book.ID, f.Book.Digest, false
		})
	}
	return f, err
}

// Next takes a step in the rehearsal.
func (c *rehearsalRuns) Next(ctx context.Context, a runs.Answer, told func(string)) (tui.Following, error) {
	leave, err := c.r.enter()
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	f, err := c.consoleRuns.Next(ctx, a, told)
	c.tell(f)
	return f, err
}

// Skip leaves a step out in the rehearsal.
func (c *rehearsalRuns) Skip(ctx context.Context, reason string) (tui.Following, error) {
	leave, err := c.r.enter()
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	f, err := c.consoleRuns.Skip(ctx, reason)
	c.tell(f)
	return f, err
}

// tell writes down which steps have come to another state.
func (c *rehearsalRuns) tell(f tui.Following) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range f.Steps {
		s := &f.Steps[i]
		if c.states[s.ID] == s.State {
			continue
		}
		c.states[s.ID] = s.State
		switch s.State {
		case runs.Done, runs.Failed, runs.Unknown:
			c.r.happened(score.Event{Kind: score.Step, ID: s.ID, What: s.State, Detail: s.Value})
		case runs.Skipped:
			c.r.happened(score.Event{Kind: score.Skipped, ID: s.ID, Detail: s.Seen})
		}
	}
	if f.Finished && f.End == runs.Finished {
		c.r.post("through", func() { c.r.run.Record().Through = true })
	}
}
