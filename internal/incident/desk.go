package incident

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// Deadlines, in real time. Each is the longest a person waits before he is told
// UNKNOWN instead of nothing.
const (
	signLimit    = 60 * time.Second // a key that wants to be touched
	carryLimit   = 2 * time.Second
	readLimit    = 3 * time.Second // readings, reports, carriers
	observeLimit = 6 * time.Second // host reports after an act
	observeEvery = 150 * time.Millisecond
	refreshEvery = 2 * time.Second
)

// DefaultReportAge is how old a host's report may be and still count: hosts are
// asked every second, so an older one was not answered several times.
const DefaultReportAge = model.Duration(30 * time.Second)

// Carrier is a flag service: it carries tokens, it cannot mint them.
type Carrier interface {
	Name() string
	// Put stores one token under its id; the same again is not an error.
	Put(ctx context.Context, id, token string) error
	// Read gives every token it holds, by id, and says in one clean sentence what
	// is wrong with it although it can be read; "" when nothing is.
	Read(ctx context.Context) (tokens map[string]string, note string, err error)
}

// Cell is a value in a store that can compare and swap; Revision 0 means absent.
type Cell struct {
	Value    string
	Revision int64
}

// Board is where the lease and proposals stand when a store with
// compare-and-swap can be reached.
type Board interface {
	Lease(ctx context.Context) (Cell, error)
	SwapLease(ctx context.Context, previous int64, value string) error
	Proposal(ctx context.Context, id string) (Cell, error)
	SwapProposal(ctx context.Context, id string, previous int64, value string) error
	// Proposals gives the newest proposals, by id. Anybody who may write to the
	// store may have written them.
	Proposals(ctx context.Context) (map[string]string, error)
}

// Listing is the inventory at one moment, and its hosts as far as nobody has asked
// them yet.
type Listing struct {
	Inventory model.Inventory
	Hosts     []model.HostView
}

// Options is what a desk is made of. Everything that touches the world outside
// is passed in here.
type Options struct {
	Realm     directive.Realm
	Fleet     string
	Person    string // name in the trust root; "" reads only
	State     string // state folder
	Second    string // second folder for the log; "" none
	Session   string // name of this session, new for every start
	Bundle    *policy.Bundle
	Clock     model.Clock
	Rand      io.Reader // nil: crypto/rand
	FS        audit.FS  // where the log is written; nil: the operating system's
	Signer    func(context.Context) (ssh.Signer, error)
	Carriers  []Carrier
	Board     Board // nil: none
	Readings  func(context.Context) map[string]model.Reading
	Hosts     func(context.Context) []model.HostView
	Inventory func() Listing // never waits; nil: nothing is known of any host
	// SignalsClock compares the clock of whoever answers for the signals with ours;
	// nil: they are the same clock.
	SignalsClock func() ClockView
	ReportAge    model.Duration // how old a host's report may be; 0: DefaultReportAge
	// Simulated says when each thing was last practised in simulation, by the names
	// of World.Rehearsals; it never waits for long, and its answer is not changed.
	// nil: nothing is known of that.
	Simulated func() map[string]time.Time
	Backends  []Backend
	// Wait lets at least d pass between two looks at the hosts; nil: real time passes.
	// A drill inside one process lets its own time pass, and nothing else waits there.
	Wait   func(ctx context.Context, d time.Duration) error
	Faults func() []FaultView                                       // drills only
	Fault  func(ctx context.Context, name string, clear bool) error // drills only
}

// Desk is one seat at one incident: what it sees, and the road by which it acts.
// It is safe for concurrent use.
type Desk struct {
	o       Options
	seen    observed
	history *history

	leaseRead atomic.Pointer[leaseRead]
	described sync.Map // backend -> sdk.Description, once it was asked

	// acts lets one act at a time recover, open or push: its verdict must still be
	// true when it is carried. What tightens never waits for it.
	acts sync.Mutex

	sessions sync.Mutex // held while our log is opened or changed
	begun    int        // logs opened by this process
	log      atomic.Pointer[openLog]
	inFlight sync.Map // ids that this process is carrying out

	notDurable atomic.Pointer[string] // why the log cannot take a durable entry; nil: it can

	receiptMu sync.Mutex
	receipts  []string

	publishing sync.Mutex // an older view must not replace a newer one
	snapshot   atomic.Pointer[Snapshot]
	changed    chan struct{}
}

// openLog is the log that we write now. It belongs to one incident.
type openLog struct {
	*audit.Writer
	incident, session string
}

// New makes a desk. It reads the log and nothing else: the first snapshot is
// there before any service has answered.
func New(o Options) (*Desk, error) {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	o.Rand = &oneByOne{from: o.Rand}
	if o.ReportAge == 0 {
		o.ReportAge = DefaultReportAge
	}
	if o.Bundle == nil || o.Clock == nil || o.State == "" {
		return nil, fmt.Errorf("a desk needs a policy, a clock and a state folder")
	}
	d := &Desk{o: o, changed: make(chan struct{}, 1)}
	d.seen.carriers = make([]carrierState, len(o.Carriers))
	d.history = newHistory(o.State, o.Second)
	if o.Wait != nil {
		d.history.limit = drillHistoryLimit
	}
	d.publish()
	return d, nil
}

// Close ends the session in the log.
func (d *Desk) Close() error {
	d.sessions.Lock()
	defer d.sessions.Unlock()
	log := d.log.Load()
	if log == nil {
		return nil
	}
	return log.Close("the console was closed")
}

// oneByOne lets several goroutines take entropy from one source.
type oneByOne struct {
	mu   sync.Mutex
	from io.Reader
}

func (r *oneByOne) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(p)
}

// Changed says that a new snapshot is there; several changes may be one signal.
func (d *Desk) Changed() <-chan struct{} { return d.changed }

// Snapshot is the latest one. It never blocks.
func (d *Desk) Snapshot() Snapshot { return *d.snapshot.Load() }

// Run keeps the desk up to date until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		d.Refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refresh asks every source once, at the same time, and publishes a snapshot
// after each answer. It returns when all have answered or their deadlines are
// over.
func (d *Desk) Refresh(ctx context.Context) {
	answered := d.publish
	if d.o.Wait != nil {
		answered = func() {} // a drill's sources answer at once: the snapshot below has them all
	}
	d.seen.refresh(ctx, &d.o, answered)
	d.checkLog()
	d.publish()
}

// publish builds a snapshot from what is known now.
func (d *Desk) publish() {
	readErr := d.history.read()
	d.publishing.Lock()
	defer d.publishing.Unlock()
	s := d.view()
	if readErr != nil {
		s.Log = append(s.Log, LogLine{At: s.At, Actor: "ic", Kind: "damage", Text: readErr.Error()})
	}
	d.snapshot.Store(&s)
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// Preview judges a wish and says what a confirmation has to show. It asks
// nobody.
func (d *Desk) Preview(ask decisions.Ask) (Preview, error) {
	s := d.Scene()
	return s.Preview(ask)
}

// Judge says of a request what a confirmation has to show.
func (s *Scene) Judge(request model.Request) Preview {
	b, w := s.Bundle, &s.World
	right, _, _ := b.Right(request.Directive.Right)
	verdict := decisions.Evaluate(b, w, &request)
	p := Preview{
		Request: request, Title: TitleOf(&request.Directive), Verdict: verdict, Reasons: sentences(&verdict),
		Who: right.Who, Cosign: cosignText(right.Cosign), Rehearsed: w.Rehearsals[request.Directive.Right], Review: right.Review,
		Typed: typedFor(&request.Directive, verdict.Direction), Opens: w.Incident.OpenedAt.IsZero(),
	}
	if !p.Opens {
		p.Command = CommandText(&w.Incident.Lease, w.Now)
	}
	if request.Directive.Kind == model.Bypass {
		worst := decisions.WorstCase(b, w, &request.Directive)
		p.Exposure = &worst
	}
	if request.Directive.Kind == model.Shed {
		tier, _ := b.TierOf(request.Directive.Tier)
		p.UserText = tier.Text
	}
	p.Journeys = brokenJourneys(b, w, &request.Directive)
	p.Practised = practised(w, &request.Directive)
	return p
}

// practised is nil for what is about neither a tier nor a feature.
func practised(w *model.World, d *model.Directive) *Practised {
	name := audit.PractisedBy(d)
	if name == "" {
		return nil
	}
	one, all := w.Rehearsals[name], w.Rehearsals[audit.OfEveryService(name)]
	return &Practised{name, model.Rehearsal{Simulated: latest(one.Simulated, all.Simulated), Live: latest(one.Live, all.Live)}}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func cosignText(c policy.Cosign) string {
	if c.Count == 0 {
		return "nobody else"
	}
	return fmt.Sprintf("%d of %s", c.Count, c.Of)
}

// brokenJourneys names what users can no longer do, and what they cannot already.
func brokenJourneys(b *policy.Bundle, w *model.World, d *model.Directive) []string {
	if d.Kind != model.Shed && d.Kind != model.Off {
		return nil
	}
	var out []string
	for _, broken := range decisions.BrokenJourneys(b, w, d) {
		name := broken.Name
		if broken.Already {
			name += " (already)"
		}
		out = append(out, name)
	}
	return out
}

// Fault begins or clears a fault of a drill's world. A real fleet has none.
func (d *Desk) Fault(ctx context.Context, name string, clear bool) error {
	if d.o.Fault == nil {
		return fmt.Errorf("%w: faults are for drills", ErrDenied)
	}
	if err := d.o.Fault(ctx, name, clear); err != nil {
		return err
	}
	d.publish()
	return nil
}
