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

	calls context.Context // of everything that the console has asked the world for
	hush  func()          // ends them: nobody will hear the answers

	mu   sync.Mutex
	over bool
	busy sync.WaitGroup // calls of the console that are under way
}

// errRehearsed is what an order meets that comes after the end.
var errRehearsed = errors.New("the rehearsal is over")

// enter keeps the world from being judged while a call is under way. What the call
// does with its context ends when the scenario does.
func (r *rehearsal) enter(ctx context.Context) (during context.Context, leave func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return ctx, nil, errRehearsed
	}
	r.busy.Add(1)
	during, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(r.calls, cancel)
	return during, func() {
		forget()
		cancel()
		r.busy.Done()
	}, nil
}

// end refuses what comes from now on, ends what is under way and waits for it.
func (r *rehearsal) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.hush()
	r.busy.Wait()
}

// atConsole reports whether a person is to act.
func (f *rehearsalFlags) atConsole() bool { return !f.auto && f.script == "" && !f.baseline }

// conclude scores a run and keeps it.
type conclude func(*score.Record) (rehearsed, error)

// playAtConsole plays a scenario with a person in front of it, until its end or until
// the person left. Nothing of it lasts but what is kept: the folder is gone afterwards.
func (p *player) playAtConsole(ctx context.Context, s *scenario.Scenario, f *rehearsalFlags, then conclude) (out rehearsed, err error) {
	dir, err := os.MkdirTemp("", "ic-rehearsal-")
	if err != nil {
		return out, fail(exitFailed, "make a folder for the rehearsal: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &rehearsal{a: p.a, speed: f.speed}
	r.calls, r.hush = context.WithCancel(ctx)
	defer r.hush()
	if r.person, err = seatOf(s, f.as); err != nil {
		return out, err
	}
	books, err := p.booksToRehearse(f)
	if err != nil {
		return out, err
	}
	o := scenario.Options{Seed: f.seed, Mode: score.WithIC, State: dir, Paced: true, Seat: r.person.Name}
	o.Acts = func(_ context.Context, run *scenario.Run) (err error) {
		r.desk, err = run.World().Desk(r.person.Name)
		return err
	}
	if r.run, err = scenario.Open(ctx, s, o); err != nil {
		return out, fail(exitFailed, "%w", err)
	}
	r.run.Record().Played = &score.Played{
		By: score.ByPerson, Who: r.person.Name, Role: r.person.Role, Speed: f.speed, Due: r.run.Due(), Runbook: r.toFollow(f),
	}
	return r.show(ctx, books, then)
}

// seatOf finds whose seat the console is: a role or a person; "" is who follows the
// scenario's runbook, or the first who is there.
func seatOf(s *scenario.Scenario, as string) (scenario.Person, error) {
	if taken := s.Follow(); as == "" && taken != nil {
		as = taken.Who
	}
	person, err := s.Seat(as)
	if err != nil {
		return person, fail(exitUsage, "%w", err)
	}
	return person, nil
}

// toFollow is the runbook that this seat is to follow; "": none.
func (r *rehearsal) toFollow(f *rehearsalFlags) string {
	s := r.run.Scenario()
	switch taken := s.Follow(); {
	case f.with != "":
		return bookID(f.with)
	case taken != nil && taken.Who == r.person.Name:
		return s.Runbook
	default:
		return ""
	}
}

// bookID is the name that a runbook has on a shelf, by its name or its path.
func bookID(word string) string { return strings.TrimSuffix(filepath.Base(word), ".md") }

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
		raw, rerr := readSome(path, runbooks.MaxFile+1) // what is too long is said with its place
		if err = errors.Join(err, rerr); err != nil {
			return nil, err
		}
		one := tui.Book{ID: bookID(path), Signature: unsignedHere()}
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

// show lets the world go on and the person act, until one of them is at the end. At
// that of the scenario the run is judged and kept at once, and the console stays with
// what came of it until the person leaves.
func (r *rehearsal) show(ctx context.Context, books func() ([]tui.Book, error), then conclude) (out rehearsed, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := r.run.World()
	desk := &rehearsalDesk{Desk: r.desk, r: r}
	o, err := r.options(desk)
	if err != nil {
		return out, errors.Join(err, r.close())
	}
	shelf := &rehearsalRuns{consoleRuns: newConsoleRuns("this rehearsal", o, books), r: r, states: map[string]string{}}
	ending := make(chan tui.Ending, 1)
	var judged sync.WaitGroup
	var failed error
	concluded := false
	judged.Go(func() {
		if !r.pace(ctx) {
			return
		}
		concluded = true
		if out, failed = r.judge(then); failed != nil {
			cancel() // there is nothing to show
			return
		}
		ending <- endingOf(&out)
	})
	r.busy.Go(func() { r.desk.Run(r.calls) })
	err = tui.Run(ctx, &rehearsalConsole{desk}, tui.Options{
		Now: func() time.Time { return w.Kernel().Now() }, Real: r.a.real, Input: r.a.in, Output: r.a.out,
		Environ: os.Environ(), NoColor: r.a.getenv("NO_COLOR") != "",
		Runbooks: func() []tui.Runbook { return tui.RunbooksOf(w.Bundle()) }, Runs: shelf,
		Drill: &tui.Drill{Welcome: r.welcome(), Runbook: r.run.Record().Played.Runbook, Leaving: r.leaving, Over: ending},
	})
	stopped := ctx.Err() != nil || errors.Is(err, tui.ErrInterrupted)
	cancel()
	judged.Wait()
	switch {
	case concluded:
	case err != nil && !stopped:
		return out, fail(exitFailed, "%w", errors.Join(err, r.close()))
	default:
		out, failed = r.judge(then)
	}
	return out, failed
}

// close ends a world that nobody will judge.
func (r *rehearsal) close() error {
	r.end()
	_, err := r.run.Finish()
	return err
}

// judge ends the run, wherever it is, and concludes it.
func (r *rehearsal) judge(then conclude) (rehearsed, error) {
	r.end()
	w := r.run.World()
	w.Advance(w.Kernel().Now()) // what was posted last
	if record := r.run.Record(); r.run.Now() < r.run.Scenario().Lasts && record.Aborted == "" {
		record.Aborted = fmt.Sprintf("%s left at %s", r.person.Name, r.at())
	}
	record, err := r.run.Finish()
	if err != nil {
		return rehearsed{}, fail(exitFailed, "%w", err)
	}
	return then(record)
}

// at is how far the scenario has come.
func (r *rehearsal) at() string {
	return spokenOf(r.run.Now(), r.run.Scenario().Lasts)
}

// welcome says whose seat this is, and what there is to do in it.
func (r *rehearsal) welcome() string {
	text := fmt.Sprintf("you are %s (%s): %s", r.person.Name, r.person.Role, model.Duration(r.run.Scenario().Lasts))
	if r.speed > 1 {
		text += fmt.Sprintf(" at %d x real time", r.speed)
	}
	if book := r.run.Record().Played.Runbook; book != "" {
		text += "; follow " + book + " (4)"
	}
	return text
}

// leaving is what it means to leave now.
func (r *rehearsal) leaving() string {
	return r.at() + " have passed: leaving ends it here, the verdict is aborted, and nothing of it goes on"
}

// pace moves the world on with real time, and reports whether the scenario has come
// to its end.
func (r *rehearsal) pace(ctx context.Context) (over bool) {
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	began, from := r.a.real(), r.run.Now()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		if !r.run.Advance(from + r.a.real().Sub(began)*time.Duration(r.speed)) {
			return true
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

// attends says that the person asks the console for something: a dialog, a plan, an
// act. The first of it after an alarm is the answer to the alarm.
func (r *rehearsal) attends() {
	r.post("attends", func() { r.run.Acknowledge(r.person.Name) })
}

// acts says that the person acts now. What a step of a runbook does was said when the
// step was taken.
func (r *rehearsal) acts(ctx context.Context) {
	if inStep(ctx) {
		return
	}
	r.attends()
	r.post("acts", func() {
		if played := r.run.Record().Played; played != nil {
			played.Acts++
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
