package tui

import (
	"context"
	"io"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Desk is the one road as the console sees it. Everything but Snapshot, Changed
// and Preview may take as long as its context allows.
type Desk interface {
	// Snapshot is the latest known state; it never blocks.
	Snapshot() incident.Snapshot
	// Changed says, coalesced, that Snapshot has something new.
	Changed() <-chan struct{}
	// Preview drafts and judges an ask. It is pure and quick.
	Preview(ask decisions.Ask) (incident.Preview, error)
	// Execute gives a confirmed order.
	Execute(ctx context.Context, act incident.Act) (incident.Result, error)
	// PlanBreak asks a backend what it would do.
	PlanBreak(ctx context.Context, backend string) (incident.BreakPlan, error)
	// Push does what a plan says. progress is the backend's word, never proof.
	Push(ctx context.Context, plan incident.BreakPlan, asked bool, progress func(incident.Progress)) (incident.Result, error)
	// UndoBreak removes what an operation has put on hosts.
	UndoBreak(ctx context.Context, operation string, asked bool, progress func(incident.Progress)) (incident.Result, error)
	// Command opens, takes, offers, accepts, relinquishes or closes.
	Command(ctx context.Context, action string, person string) (incident.Result, error)
	// Cosign adds a signature to a token that waits for one.
	Cosign(ctx context.Context, token string) (incident.Result, error)
	// Fault begins or clears a fault of a drill's world.
	Fault(ctx context.Context, name string, clear bool) error
}

// Actions of Desk.Command.
const (
	actionOpen       = "open"
	actionTake       = "take"
	actionOffer      = "offer"
	actionAccept     = "accept"
	actionRelinquish = "relinquish"
	actionClose      = "close"
)

// Deadlines of the calls behind a key. They are real time: a dead backend must
// not leave a person in front of a dialog that never answers.
const (
	planLimit    = 30 * time.Second
	executeLimit = 60 * time.Second
	commandLimit = 30 * time.Second
	faultLimit   = 20 * time.Second
	pushLimit    = 15 * time.Minute // restarts go in batches
)

// Options of Run. Now, Real and the environment are passed in, so that a frame
// depends on nothing else.
type Options struct {
	Now      func() time.Time // the clock of the fleet's world
	Real     func() time.Time // real time, for the quiet of a dialog
	Input    io.Reader
	Output   io.Writer
	Environ  []string         // TERM and friends, as os.Environ gives them
	NoColor  bool             // NO_COLOR is set, or --no-color
	Runbooks func() []Runbook // what RunbooksOf finds in the policy at hand; nil: none
	Runs     Runs             // the shelf and what is followed; nil: there is none here
	Drill    *Drill           // the world is a scenario that ends with this console; nil: it goes on without it
}

// Runbook is a name that the policy refers to, and by what.
type Runbook struct {
	Name    string
	Signals []string // signals it answers, when abnormal
	Rights  []string // rights that name it
}

// RunbooksOf collects the runbooks that a policy names, sorted by name.
func RunbooksOf(b *policy.Bundle) []Runbook {
	byName := map[string]*Runbook{}
	at := func(name string) *Runbook {
		if byName[name] == nil {
			byName[name] = &Runbook{Name: name}
		}
		return byName[name]
	}
	for _, name := range sortedKeys(b.Signals) {
		if r := b.Signals[name].Runbook; r != "" {
			at(r).Signals = append(at(r).Signals, name)
		}
	}
	for _, name := range b.RightNames() {
		if right, _, _ := b.Right(name); right.Runbook != "" {
			at(right.Runbook).Rights = append(at(right.Runbook).Rights, name)
		}
	}
	var out []Runbook
	for _, name := range sortedKeys(byName) {
		out = append(out, *byName[name])
	}
	return out
}

// readOnly says why nothing can be done in this console.
const readOnly = "this console is read-only: no key of yours is in the trust root (ic keys)"

// mayAct is empty if orders make sense at all, else the reason why not. It is
// courtesy: the desk judges again, whatever is drawn here.
func (sc *scene) mayAct() string {
	switch {
	case !sc.read:
		return "nothing has been read yet: wait for the first numbers"
	case sc.snap.Mode == model.ReadOnly:
		return readOnly
	default:
		return ""
	}
}
