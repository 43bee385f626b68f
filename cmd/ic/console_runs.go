package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/runbooks"
	runs "github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/internal/tui"
)

// consoleRuns is runbooks in the words of the console: a shelf, and the one run that
// is followed. Calls take turns, because a run belongs to one person who takes one
// step at a time.
type consoleRuns struct {
	where string
	read  func() ([]tui.Book, error)
	desk  runs.Desk
	o     runs.Options // of a run, but for what is followed
	turn  chan struct{}
	run   *runs.Run
	told  func(string) // of the call whose turn it is
	wrong error        // why nothing can be followed
}

func newConsoleRuns(where string, o runs.Options, read func() ([]tui.Book, error)) *consoleRuns {
	c := &consoleRuns{where: where, read: read, desk: o.Desk, turn: make(chan struct{}, 1), told: func(string) {}}
	o.Progress = func(text string) { c.told(text) }
	c.o = o
	return c
}

// consoleShelf is the shelf beside the policy for a console. That there is none, or
// that something about it is wrong, is for view 4 to say: it holds up no console.
func (a *app) consoleShelf(s *shelf, d *incident.Desk) *consoleRuns {
	root, err := openRunbooks(s.dir)
	s.root = root
	w := &walk{a: a, shelf: s}
	if err == nil {
		err = w.wire(d)
	}
	w.o.Desk = d
	c := newConsoleRuns(s.dir, w.o, s.books)
	c.wrong = err
	return c
}

// books reads all of the shelf.
func (s *shelf) books() ([]tui.Book, error) {
	names, err := runbooks.Names(s.root.FS())
	if err != nil {
		return nil, fmt.Errorf("list the runbooks: %w", err)
	}
	var out []tui.Book
	for _, name := range names {
		one := s.read(s.root.FS(), name)
		out = append(out, tui.Book{ID: strings.TrimSuffix(name, ".md"), Runbook: one.Runbook, Signature: one.Signature, Error: one.Error})
	}
	return out, nil
}

// booksIn reads the runbooks of a file system whose signatures nobody asks for.
func booksIn(fsys fs.FS) ([]tui.Book, error) {
	names, err := runbooks.Names(fsys)
	if err != nil {
		return nil, fmt.Errorf("list the runbooks: %w", err)
	}
	var out []tui.Book
	for _, name := range names {
		one := tui.Book{ID: strings.TrimSuffix(name, ".md"), Signature: unsignedHere()}
		raw, err := runbooks.ReadFile(fsys, name, runbooks.MaxFile)
		if err == nil {
			one.Runbook, err = runbooks.Parse(name, raw)
		}
		if err != nil {
			one.Error = err.Error()
		}
		out = append(out, one)
	}
	return out, nil
}

// unsignedHere is what a signature is worth in a rehearsal, which has keys of its own.
func unsignedHere() *runbooks.Signature {
	return &runbooks.Signature{State: runbooks.Unsigned, By: []string{}, Why: "signatures of a real fleet do not count in a rehearsal"}
}

// Shelf implements tui.Runs.
func (c *consoleRuns) Shelf(context.Context) (tui.Shelf, error) {
	if c.wrong != nil {
		return tui.Shelf{}, c.wrong
	}
	s := tui.Shelf{Where: c.where}
	var err error
	if s.Books, err = c.read(); err != nil {
		return s, err
	}
	all, err := runs.Runs(c.desk)
	if errors.Is(err, incident.ErrNoIncident) {
		return s, nil
	}
	for i := range all {
		if all[i].End == "" {
			s.Going = append(s.Going, tui.Going{Run: all[i].Run, Runbook: all[i].Runbook, TakenBy: all[i].TakenBy, TakenAt: all[i].TakenAt})
		}
	}
	return s, err
}

// take waits for our turn. told hears what is waited for until it is over.
func (c *consoleRuns) take(ctx context.Context, told func(string)) (leave func(), err error) {
	if c.wrong != nil {
		return nil, c.wrong
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the step under way has not ended: %w", ctx.Err())
	}
	if told != nil {
		c.told = told
	}
	return func() {
		c.told = func(string) {}
		<-c.turn
	}, nil
}

// Start implements tui.Runs.
func (c *consoleRuns) Start(ctx context.Context, id string) (tui.Following, error) {
	leave, err := c.take(ctx, nil)
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	b, err := c.book(id)
	if err != nil {
		return tui.Following{}, err
	}
	o := c.o
	o.Runbook = b.Runbook
	if b.Signature != nil {
		o.Signature = *b.Signature
	}
	return c.followed(runs.Start(ctx, o))
}

// book reads a runbook again: what is followed is what lies there now.
func (c *consoleRuns) book(id string) (*tui.Book, error) {
	all, err := c.read()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].ID == id && all[i].Runbook != nil {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("there is no runbook %s in %s that can be read", id, c.where)
}

// Resume implements tui.Runs.
func (c *consoleRuns) Resume(ctx context.Context, name string, kept bool) (tui.Following, error) {
	leave, err := c.take(ctx, nil)
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	o := c.o
	o.Run, o.Kept = name, kept
	all, err := runs.Runs(c.desk)
	if err != nil && len(all) == 0 {
		return tui.Following{}, err
	}
	if state, err := runs.Find(all, name); err == nil {
		if b, err := c.book(state.Runbook); err == nil {
			o.Runbook = b.Runbook
		}
	}
	return c.followed(runs.Resume(ctx, o))
}

// followed keeps the run that is followed from now on.
func (c *consoleRuns) followed(r *runs.Run, err error) (tui.Following, error) {
	if r == nil {
		return tui.Following{}, err
	}
	c.run = r
	return c.stands(), err
}

// stands is where the run stands.
func (c *consoleRuns) stands() tui.Following {
	f := tui.Following{View: c.run.View(), Book: c.run.Runbook(), Receipts: c.run.Receipts()}
	if f.End == runs.Aborted {
		f.Undos = c.run.Undos()
	}
	return f
}

// errNotFollowed cannot happen as long as the console starts before it goes on.
var errNotFollowed = errors.New("no run is followed in this console")

// goOn does something with the run and says where it stands then.
func (c *consoleRuns) goOn(ctx context.Context, told func(string), do func(*runs.Run) error) (tui.Following, error) {
	leave, err := c.take(ctx, told)
	if err != nil {
		return tui.Following{}, err
	}
	defer leave()
	if c.run == nil {
		return tui.Following{}, errNotFollowed
	}
	err = do(c.run)
	return c.stands(), err
}

// Ask implements tui.Runs.
func (c *consoleRuns) Ask(ctx context.Context) (q *runs.Question, err error) {
	_, err = c.goOn(ctx, nil, func(r *runs.Run) error {
		var err error
		q, err = r.Question(ctx)
		return err
	})
	return q, err
}

// Next implements tui.Runs.
func (c *consoleRuns) Next(ctx context.Context, a runs.Answer, told func(string)) (tui.Following, error) {
	return c.goOn(ctx, told, func(r *runs.Run) error {
		_, err := r.Next(ctx, a)
		return err
	})
}

// Skip implements tui.Runs.
func (c *consoleRuns) Skip(ctx context.Context, reason string) (tui.Following, error) {
	return c.goOn(ctx, nil, func(r *runs.Run) error {
		_, err := r.Skip(ctx, reason)
		return err
	})
}

// Abort implements tui.Runs.
func (c *consoleRuns) Abort(ctx context.Context, reason string) (tui.Following, error) {
	return c.goOn(ctx, nil, func(r *runs.Run) error { return r.Abort(ctx, reason) })
}

// AskUndo implements tui.Runs.
func (c *consoleRuns) AskUndo(ctx context.Context, step string) (q *runs.Question, err error) {
	_, err = c.goOn(ctx, nil, func(r *runs.Run) error {
		var err error
		q, err = r.UndoQuestion(ctx, step)
		return err
	})
	return q, err
}

// Undo implements tui.Runs.
func (c *consoleRuns) Undo(ctx context.Context, step string, a runs.Answer, told func(string)) (tui.Following, error) {
	return c.goOn(ctx, told, func(r *runs.Run) error {
		_, err := r.Undo(ctx, step, a)
		return err
	})
}
