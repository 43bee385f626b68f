package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
	runs "github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/internal/signals"
	"github.com/spf13/cobra"
)

// runFlags are the words of a command that follows a runbook.
type runFlags struct {
	answers     string
	reason      string
	again, kept bool
	look, undo  bool
}

func (f *runFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.answers, "answers", "", `file with a line "STEP: ANSWER" for each question, instead of a person; - is standard input`)
}

func (a *app) runbookRunCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run RUNBOOK",
		Short: "Follow a runbook: each step is shown, asked, done and proved",
		Long: `Every act goes the same road as ic do: it is judged, shown, asked, written down, signed,
carried and counted on the hosts. What a step is about to do is in the log before it is
done, so that ic runbook resume goes on after a crash, on this machine or on another one,
and repeats nothing. Without an open incident one is opened. A manual step wants to know
what was seen; "done" is no answer.

At every question /skip REASON, /abort REASON and /leave are understood. Without a
terminal the answers come from --answers, and the first question without one ends the
command with exit code 6.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRuns(cmd, &f, func(ctx context.Context, w *walk) error {
				one, err := w.find(args[0])
				if err != nil {
					return err
				}
				w.o.Runbook, w.o.Again = one.Runbook, f.again
				if one.Signature != nil {
					w.o.Signature = *one.Signature
				}
				r, err := runs.Start(ctx, w.o)
				if err != nil {
					return hinted(err)
				}
				a.note("run %s of %s, incident %s", r.Name(), one.Runbook.ID, w.desk.Snapshot().World.Incident.ID)
				return w.follow(ctx, r)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.again, "again", false, "although a run of this runbook goes on")
	return cmd
}

func (a *app) runbookResumeCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Take a run up: after a crash, or from somebody else",
		Long: `Read what the log says of a run and what reality says of every step that was begun and
never concluded, show it, and go on. RUN is its name, the end of it or the runbook;
without one it is the only run that goes on. A run is followed under the text that it
began with, which is in the log; if the file has changed since, --kept says so.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRuns(cmd, &f, func(ctx context.Context, w *walk) error {
				if f.look {
					return w.look(args)
				}
				r, err := w.resume(ctx, args, &f)
				if err != nil {
					return err
				}
				if !a.json {
					printRun(a.err, w.state(ctx, r, nil))
				}
				return w.follow(ctx, r)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.kept, "kept", false, "the file has changed: follow the text that the run began with")
	cmd.Flags().BoolVar(&f.look, "look", false, "only show where the run stands by the log; whoever follows it goes on")
	return cmd
}

func (a *app) runbookSkipCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "skip [RUN]",
		Short:   "Go on without the current step of a run; the reason is in the log",
		Example: `  ic runbook skip --reason "the queue is empty, seen on the broker at 03:12"`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRuns(cmd, &f, func(ctx context.Context, w *walk) error {
				r, err := w.resume(ctx, args, &f)
				if err != nil {
					return err
				}
				if _, err := r.Skip(ctx, f.reason); err != nil {
					return hinted(err)
				}
				return w.print(ctx, r, nil)
			})
		},
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is part of the log")
	cmd.Flags().BoolVar(&f.kept, "kept", false, "the file has changed: go by the text that the run began with")
	return cmd
}

func (a *app) runbookAbortCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "abort [RUN]",
		Short: "End a run where it stands, and list what can be undone",
		Long: `What was done stays done. The undos of the steps are listed, the last one first; with
--undo each is shown, asked and carried out on the same road as everything else.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRuns(cmd, &f, func(ctx context.Context, w *walk) error {
				w.o.Over = f.undo
				r, err := w.resume(ctx, args, &f)
				if err != nil {
					return err
				}
				if r.View().End == "" {
					if err := r.Abort(ctx, f.reason); err != nil {
						return hinted(err)
					}
				}
				if f.undo {
					if err := w.undoAll(ctx, r); err != nil {
						return err
					}
				}
				return w.print(ctx, r, nil)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is part of the log")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "undo the steps, one by one; also of a run that is over")
	cmd.Flags().BoolVar(&f.kept, "kept", false, "the file has changed: go by the text that the run began with")
	return cmd
}

// walk is one command that follows a run: the desk, the shelf, and whoever answers.
type walk struct {
	a       *app
	desk    *incident.Desk
	shelf   *shelf // its root is nil where there is no folder of runbooks
	o       runs.Options
	answers answers // nil: a person at the terminal, if there is one
	told    time.Time
	stays   bool // the person has said to stop here
}

// withRuns wires what a run is made of.
func (a *app) withRuns(cmd *cobra.Command, f *runFlags, do func(context.Context, *walk) error) error {
	s, err := a.shelf(cmd)
	if s == nil || s.stand == nil {
		return err
	}
	if s.root != nil {
		defer s.root.Close() // read only: nothing can be lost
	}
	w := &walk{a: a, shelf: s}
	if f.answers != "" {
		if w.answers, err = a.readAnswers(f.answers); err != nil {
			return err
		}
	}
	return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		if err := d.Reconcile(ctx); err != nil {
			a.note("%v", err)
		}
		w.desk = d
		if err := w.wire(d); err != nil {
			return err
		}
		return do(ctx, w)
	})
}

func (w *walk) wire(d *incident.Desk) error {
	a, s := w.a, w.shelf
	stand, err := a.world(s.c)
	if err != nil {
		return err
	}
	metrics, err := a.prometheus(s.c, stand)
	if err != nil {
		return err
	}
	w.o = runs.Options{Desk: d, Clock: stand.clock, Rand: randReader, Progress: w.progress,
		ReportAge: incident.DefaultReportAge * model.Duration(stand.speed()),
		Wait:      func(ctx context.Context, d time.Duration) error { return pause(ctx, d/time.Duration(stand.speed())) }}
	if metrics != nil {
		w.o.Query = func(ctx context.Context, query string) model.Reading {
			return metrics.Read(ctx, []signals.Spec{{Name: "runbook", Query: query}})["runbook"]
		}
	}
	if s.root == nil {
		return nil
	}
	origins, signed, err := s.origins()
	if err != nil {
		return fail(exitFailed, "%w", err)
	}
	if len(origins) > 0 && !signed && stand.realm() == directive.Production {
		a.note("%s is not signed: no HTTP check asks anybody (ic runbook sign %s)", runbooks.OriginsFile, runbooks.OriginsFile)
		origins = nil
	}
	if len(origins) > 0 {
		w.o.Get = func(ctx context.Context, url string) (int, error) { return get(ctx, url, origins) }
	}
	return nil
}

// pause waits in real time.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// getLimit is how long a health page may take: one that needs longer is not
// healthy.
const getLimit = 5 * time.Second

// get asks an origin of the list for a page and reads nothing but its status. A
// redirect is an answer: what it leads to is on nobody's list.
func get(ctx context.Context, url string, origins []string) (int, error) {
	if !slices.Contains(origins, runbooks.Origin(url)) {
		return 0, fmt.Errorf("it is not in %s, so it is not asked", runbooks.OriginsFile)
	}
	limited, cancel := context.WithTimeout(ctx, getLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// find reads a runbook that is to be followed.
func (w *walk) find(word string) (shelved, error) {
	if w.shelf.root == nil {
		_, err := openRunbooks(w.shelf.dir)
		return shelved{}, err
	}
	fsys, _, name, err := w.shelf.file(word)
	if err != nil {
		return shelved{}, err
	}
	one := w.shelf.read(fsys, name)
	if one.Runbook == nil {
		return one, fail(exitFailed, "%s", one.Error).hinting("ic runbook lint explains each; docs/runbook-format.md is the format")
	}
	return one, nil
}

// resume takes a run up, held against the file as it is now if there is one.
func (w *walk) resume(ctx context.Context, args []string, f *runFlags) (*runs.Run, error) {
	if len(args) == 1 {
		w.o.Run = args[0]
	}
	w.o.Kept = f.kept
	all, err := runs.Runs(w.desk)
	if err != nil {
		return nil, hinted(err)
	}
	if state, err := runs.Find(all, w.o.Run); err == nil && w.shelf.root != nil {
		if one, err := w.find(state.Runbook); err == nil {
			w.o.Runbook = one.Runbook
		}
	}
	r, err := runs.Resume(ctx, w.o)
	if err != nil {
		return nil, hinted(err)
	}
	return r, nil
}

// look shows where a run stands by the log, and writes nothing.
func (w *walk) look(args []string) error {
	if len(args) == 1 {
		w.o.Run = args[0]
	}
	v, err := runs.Look(w.o)
	if err != nil {
		return hinted(err)
	}
	out := walked{View: v, Incident: w.desk.Snapshot().World.Incident.ID}
	return w.a.print(out, func(to io.Writer) { printRun(to, out) })
}

// hinted says what to do about an error of a run.
func hinted(err error) error {
	switch {
	case errors.Is(err, runs.ErrRunning):
		return fail(exitNeeds, "%w", err).hinting("ic runbook resume takes it up; --again begins another one beside it")
	case errors.Is(err, runs.ErrChanged):
		return fail(exitNeeds, "%w", err).hinting("--kept follows the text that the run began with; ic runbook abort ends the run")
	case errors.Is(err, runs.ErrUnsigned):
		return fail(exitDenied, "%w", err).hinting("ic runbook sign; ic rehearse follows it in a drill as it is")
	case errors.Is(err, runs.ErrNoRun), errors.Is(err, runs.ErrOver):
		return fail(exitFailed, "%w", err).hinting("ic audit show has what ran; ic runbook run begins one")
	case errors.Is(err, runs.ErrAnswer):
		return fail(exitNeeds, "%w", err).hinting("--answers FILE with a line \"STEP: ANSWER\", or a terminal; ic runbook resume goes on from here")
	}
	return err
}

// readAnswers reads a script of answers.
func (a *app) readAnswers(name string) (answers, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fail(exitUsage, "read the answers: %w", err)
		}
		defer f.Close() // read only: nothing can be lost
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxAnswers+1))
	if err != nil {
		return nil, fail(exitUsage, "read the answers: %w", err)
	}
	if len(raw) > maxAnswers {
		return nil, fail(exitUsage, "the answers have more than %d bytes", maxAnswers)
	}
	return parseAnswers(name, string(raw))
}
