package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
)

// Limits of a run. Each is far beyond what a tired person needs.
const (
	maxSaid   = 1000 // bytes of what a person saw, or of a reason
	maxValue  = 300  // bytes of a value or a detail in the log
	maxReason = 200  // bytes of a directive's reason
	maxAdvice = 4000 // bytes of what a person has to do by hand: a line of the policy, and one for each feature of the tier

	lookEvery   = 2 * time.Second // between two looks at reality, on the fleet's clock
	askNextName = 2 * time.Minute // after which silence makes the next name of the matrix the one to call
)

// Desk is what a run needs of incident.Desk. Every effect goes through it.
type Desk interface {
	Snapshot() incident.Snapshot
	Scene() incident.Scene
	Refresh(ctx context.Context)
	Reconcile(ctx context.Context) error
	Rights() []incident.NamedRight
	Command(ctx context.Context, action incident.Action, person, note string) (incident.Result, error)
	Preview(ask decisions.Ask) (incident.Preview, error)
	Refuse(ctx context.Context, p incident.Preview) (incident.Result, error)
	Execute(ctx context.Context, act incident.Act) (incident.Result, error)
	Reissue(ctx context.Context, ids ...string) ([]incident.Reissued, error)
	PlanBreak(ctx context.Context, backend string) (incident.BreakPlan, error)
	Push(ctx context.Context, shown incident.BreakPlan, asked bool, progress func(incident.Progress)) (incident.Result, error)
	UndoBreak(ctx context.Context, operation string, asked bool, progress func(incident.Progress)) (incident.Result, error)
	Record(ctx context.Context, body audit.Body, tightens bool) (receipt string, err error)
	Logs() ([]audit.Session, error)
}

var _ Desk = (*incident.Desk)(nil)

// plain is the signature of a check list that nobody signs: it has no effect.
const plain = runbooks.SignState("plain")

// Options is what a run is made of. Desk, Clock and Rand are required.
type Options struct {
	Desk      Desk
	Runbook   *runbooks.Runbook  // Resume: the file as it is now; nil: only the kept copy is there
	Signature runbooks.Signature // Start: over these very bytes
	Clock     model.Clock
	Rand      io.Reader
	Run       string // Resume: the run, or the end of its name; "": the only one that goes on
	Again     bool   // Start: although a run of this runbook goes on
	Kept      bool   // Resume: follow the kept copy although the file has changed
	Over      bool   // Resume: also a run that is over, to take its effects back

	// Query answers one PromQL query; nil: there is nobody to ask.
	Query func(ctx context.Context, query string) model.Reading
	// Get answers with the status of a GET. It has to refuse an origin that the
	// fleet does not list, and to follow no redirect; nil: no origin is listed.
	Get func(ctx context.Context, url string) (status int, err error)
	// Wait lets about d of the fleet's time pass, or less when ctx ends.
	Wait func(ctx context.Context, d time.Duration) error
	// Progress is told what is being waited for; nil: nobody listens.
	Progress func(text string)
	// ReportAge is how old a host's report may be; 0: incident.DefaultReportAge.
	ReportAge model.Duration
}

// Errors that callers decide on. Those of package incident come through as they
// are.
var (
	ErrAnswer   = errors.New("an answer is needed")
	ErrUnsigned = fmt.Errorf("%w: the runbook is not signed", incident.ErrDenied)
	ErrRunning  = fmt.Errorf("%w: this runbook is being followed already", incident.ErrNeeds)
	ErrChanged  = fmt.Errorf("%w: the runbook has changed since the run began", incident.ErrNeeds)
	ErrTaken    = fmt.Errorf("%w: somebody else has taken the run up", incident.ErrNeeds)
	ErrNoRun    = errors.New("there is no such run")
	ErrOver     = errors.New("the run is over")
	ErrStopped  = fmt.Errorf("%w: the step did not hold", incident.ErrNeeds)
	ErrRole     = fmt.Errorf("%w: the step is for another role", incident.ErrDenied)
)

// Run is a runbook being followed by one person. It is not safe for concurrent
// use: a person takes one step at a time.
type Run struct {
	o     Options
	rb    *runbooks.Runbook
	state State
	takes int    // how often somebody had taken it up when we did
	shown *shown // what the person was shown last
	said  []string
}

// Start begins a run. Without an open incident it opens one, with the runbook's
// title; it looks before, because a controller or somebody else may have opened one.
func Start(ctx context.Context, o Options) (*Run, error) {
	o.defaults()
	rb := o.Runbook
	if rb == nil || len(rb.Steps) == 0 {
		return nil, errors.New("there is no step to follow")
	}
	s := o.Desk.Snapshot()
	if s.Person == "" {
		return nil, fmt.Errorf("%w: no key of yours is in the trust root (ic keys list)", incident.ErrReadOnly)
	}
	if rb.Manual {
		o.Signature = runbooks.Signature{State: plain}
	}
	if err := mayFollow(o.Signature, s.Rehearsal); err != nil {
		return nil, fmt.Errorf("%s: %w", rb.ID, err)
	}
	if s.World.Incident.OpenedAt.IsZero() {
		o.Desk.Refresh(ctx)
		s = o.Desk.Snapshot()
	}
	if s.World.Incident.OpenedAt.IsZero() {
		if _, err := o.Desk.Command(ctx, incident.Open, "", clean(rb.Title, maxReason)); err != nil {
			return nil, fmt.Errorf("open an incident for the run: %w", err)
		}
	}
	sessions, err := o.Desk.Logs()
	if err != nil && len(sessions) == 0 {
		return nil, fmt.Errorf("read what runs: %w", err)
	}
	all := Fold(sessions)
	for i := range all {
		if all[i].Runbook == rb.ID && all[i].End == "" && !o.Again {
			return nil, fmt.Errorf("%w: run %s by %s since %s", ErrRunning, all[i].Run, all[i].By, clockTime(all[i].At))
		}
	}
	r := &Run{o: o, rb: rb, takes: 1}
	start := audit.RunStart{Runbook: rb.ID, Title: clean(rb.Title, maxValue), Digest: rb.Digest, Bytes: int64(len(rb.Source)),
		Signature: string(o.Signature.State), Signers: o.Signature.By, Steps: len(rb.Steps)}
	if start.Run, err = newRunID(o.now(), o.Rand, all); err != nil {
		return nil, err
	}
	if !hasSource(sessions, rb.Digest, len(rb.Source)) {
		for _, part := range sourceEntries(rb) {
			if err := r.record(ctx, part, true); err != nil {
				return nil, err
			}
		}
	}
	if err := r.record(ctx, start, true); err != nil {
		return nil, err
	}
	return r, nil
}

// mayFollow: what nobody has signed, or what has changed since, is for rehearsals.
func mayFollow(sig runbooks.Signature, rehearsal bool) error {
	if rehearsal || sig.State == runbooks.Signed || sig.State == plain {
		return nil
	}
	why := sig.Why
	if why == "" {
		why = "it is " + string(sig.State)
	}
	return fmt.Errorf("%w: %s; outside a rehearsal only a signed one is followed (ic runbook sign)", ErrUnsigned, why)
}

func (o *Options) defaults() {
	if o.ReportAge == 0 {
		o.ReportAge = incident.DefaultReportAge
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

func (o *Options) now() time.Time { return o.Clock.Now().Wall.UTC() }

// record writes an entry and folds it in: the state is never ahead of the log, but
// for what a full disk could not take and a tightening did not wait for.
func (r *Run) record(ctx context.Context, body audit.Body, tightens bool) error {
	body = r.state.numbered(body)
	receipt, err := r.o.Desk.Record(ctx, body, tightens)
	if err != nil {
		return fmt.Errorf("write the run down: %w", err)
	}
	if receipt != "" {
		r.said = append(r.said, receipt)
	}
	s := r.o.Desk.Snapshot()
	r.state.take(audit.Entry{At: r.o.now(), Actor: s.Person, Session: s.Session, Body: body})
	return nil
}

// Name is the run's.
func (r *Run) Name() string { return r.state.Run }

// Runbook is the text that is being followed.
func (r *Run) Runbook() *runbooks.Runbook { return r.rb }

// Receipts are entries that no disk has taken yet: a person keeps their text.
func (r *Run) Receipts() []string { return r.said }

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func oneLine(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "; ")
}
