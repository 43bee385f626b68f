package tui

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// Runs is runbooks as the console sees them: the shelf, and the one run that this
// console follows. Each call may take as long as its context allows, and one that
// acts returns where the run stands also when it fails.
type Runs interface {
	// Shelf reads which runbooks there are, and what is being followed.
	Shelf(ctx context.Context) (Shelf, error)
	// Start begins a run of a runbook and follows it.
	Start(ctx context.Context, id string) (Following, error)
	// Resume takes a run up and follows it. kept goes by the text that it began
	// with although the file has changed.
	Resume(ctx context.Context, name string, kept bool) (Following, error)
	// Ask says what the current step has to be told; nil: nothing.
	Ask(ctx context.Context) (*run.Question, error)
	// Next takes the current step. progress is told what is being waited for.
	Next(ctx context.Context, a run.Answer, progress func(string)) (Following, error)
	// Skip goes on without the current step.
	Skip(ctx context.Context, reason string) (Following, error)
	// Abort ends the run where it stands.
	Abort(ctx context.Context, reason string) (Following, error)
	// AskUndo says what the undo of a step would do.
	AskUndo(ctx context.Context, step string) (*run.Question, error)
	// Undo takes the effect of a step back.
	Undo(ctx context.Context, step string, a run.Answer, progress func(string)) (Following, error)
}

// Shelf is what lies beside the policy.
type Shelf struct {
	Where string // the folder, for people
	Books []Book
	Going []Going
}

// Book is one runbook as it lies there.
type Book struct {
	ID        string
	Runbook   *runbooks.Runbook   // nil: it cannot be read
	Signature *runbooks.Signature // nil: no policy says who signs
	Error     string
}

// Going is a run that is not over.
type Going struct {
	Run, Runbook, TakenBy string
	TakenAt               time.Time
}

// Following is the run that this console follows.
type Following struct {
	run.View
	Book     *runbooks.Runbook // the text that it is followed under
	Undos    []run.Undoable    // of a run that is over: what stands and can be taken back
	Receipts []string          // entries that no disk has taken
}

// Deadlines of the calls about runbooks. Next and Undo have none of their own: a
// step ends by the deadline that it names on the fleet's clock, and at once with
// the console.
const (
	shelfLimit = 20 * time.Second // a folder, and the logs of an incident
	startLimit = 60 * time.Second // resuming reads reality first
	leaveLimit = 30 * time.Second // skip and abort: two entries of the log
)
