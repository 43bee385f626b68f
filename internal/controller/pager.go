package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/ladder"
	"github.com/google/renameio/v2"
)

// Limits of paging, in real time.
const (
	sendLimit   = 5 * time.Second // one batch to one sink
	firstRetry  = 5 * time.Second
	lastRetry   = 5 * time.Minute // a sink that comes back is told within that
	pollEvery   = 5 * time.Second // a look at the logs when nobody has said that there is something
	maxBatch    = 20              // pages in one message: a screen of a telephone
	maxReplayed = 24 * time.Hour  // how far back a cursor that cannot be read begins: too much rather than too little
)

// Page is one thing that people are told.
type Page struct {
	Key    string // the same for the same thing
	Kind   string // kind of the entry or of the alarm
	About  string // incident, scope, tier or event
	Actor  string
	At     time.Time // of the fleet's clock
	Urgent bool      // somebody has to come; else it is news
	Over   bool      // an alarm that has ended
	Title  string
	Text   string
}

// Sink takes pages to where people are.
type Sink interface {
	Name() string // of its cursor; it never changes
	// Repeat is how often an alarm is told again as long as it lasts.
	Repeat() time.Duration
	Send(ctx context.Context, pages []Page) error
}

// PagerOptions say whose logs are told to whom.
type PagerOptions struct {
	State  string // state folder: logs, and the cursors
	Second string // second folder for the log; "" none
	Sinks  []Sink
	Real   func() time.Time // the machine's clock: waits and retries
	Rand   func() float64   // jitter, in [0, 1)
	Report func(error)      // what went wrong; nil: nobody listens
}

// Pager tells every sink what stands in the log and which alarms last.
type Pager struct {
	o      PagerOptions
	follow follower
	outs   []*outlet
	wake   chan struct{}

	mu     sync.Mutex
	alarms []ladder.Alarm
	rested bool              // alarms are another one's to tell, and to call over
	told   map[string]*tally // by sink
}

// tally is what became of the pages to one sink.
type tally struct{ sent, failed int64 }

// outlet is one sink and how far it has been told. Its cursor on disk is never
// ahead of what the sink has taken.
type outlet struct {
	Sink
	file     string
	cursor   position
	raised   map[string]told // alarms that it knows of
	said     map[string]bool // how the notes about them begin
	failures int
	next     time.Time // real time before which it is left alone
}

type told struct {
	alarm ladder.Alarm
	at    time.Time
}

// NewPager reads the cursors. A sink that has none yet is told nothing of what was
// there before.
func NewPager(o PagerOptions) (*Pager, error) {
	if o.State == "" || o.Real == nil || o.Rand == nil {
		return nil, errors.New("a pager needs a state folder, a clock and jitter")
	}
	p := &Pager{o: o, wake: make(chan struct{}, 1), told: map[string]*tally{}, follow: newFollower(o.State, o.Second)}
	if err := p.follow.poll(); err != nil {
		p.report(err)
	}
	dir := filepath.Join(o.State, "controller")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the cursors: %w", err)
	}
	for _, sink := range o.Sinks {
		out := &outlet{Sink: sink, file: filepath.Join(dir, sink.Name()+".json"), raised: map[string]told{}, said: map[string]bool{}}
		p.told[sink.Name()] = &tally{}
		p.outs = append(p.outs, out)
		switch cursor, err := readCursor(out.file); {
		case errors.Is(err, fs.ErrNotExist):
			out.cursor = p.follow.end()
			if err := out.save(); err != nil {
				return nil, err
			}
		case err != nil:
			p.report(fmt.Errorf("%w: %s is told the last %s again", err, sink.Name(), maxReplayed))
			out.cursor = p.follow.since(o.Real().Add(-maxReplayed))
		default:
			out.cursor = cursor
		}
	}
	return p, nil
}

// cursorFile is the form of a cursor on disk.
type cursorFile struct {
	V    int      `json:"v"`
	Told position `json:"told"`
}

func readCursor(path string) (position, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the pager's cursor: %w", err)
	}
	var c cursorFile
	if err := json.Unmarshal(raw, &c); err != nil || c.V != 1 || c.Told == nil {
		return nil, fmt.Errorf("read the pager's cursor: %s is not one", path)
	}
	return c.Told, nil
}

func (o *outlet) save() error {
	raw, err := json.Marshal(cursorFile{V: 1, Told: o.cursor})
	if err != nil {
		return fmt.Errorf("write the pager's cursor: %w", err)
	}
	if err := renameio.WriteFile(o.file, raw, 0o600); err != nil {
		return fmt.Errorf("write the pager's cursor: %w", err)
	}
	return nil
}

func (p *Pager) report(err error) {
	if p.o.Report != nil {
		p.o.Report(err)
	}
}

// Alarms says what lasts now. It never waits.
func (p *Pager) Alarms(now []ladder.Alarm) {
	p.mu.Lock()
	p.alarms = slices.Clone(now)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Rest says that another controller tells of alarms from here on: this one calls
// none of them over.
func (p *Pager) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alarms, p.rested = nil, true
}

// Run tells until ctx ends.
func (p *Pager) Run(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		p.Round(ctx)
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-tick.C:
		}
	}
}

// Round tells every sink what it does not know yet. One that fails is left alone
// for a while and holds up no other.
func (p *Pager) Round(ctx context.Context) {
	if err := p.follow.poll(); err != nil {
		p.report(err)
	}
	p.mu.Lock()
	alarms, rested := slices.Clone(p.alarms), p.rested
	p.rested = false
	p.mu.Unlock()
	var wait sync.WaitGroup
	for _, out := range p.outs {
		if rested {
			clear(out.raised)
		}
		if p.o.Real().Before(out.next) {
			continue
		}
		wait.Go(func() { p.tell(ctx, out, alarms) })
	}
	wait.Wait()
}

// tell sends alarms first, then the log in order, until the sink knows everything
// or fails.
func (p *Pager) tell(ctx context.Context, out *outlet, alarms []ladder.Alarm) {
	now := p.o.Real()
	pages, raised := out.due(alarms, now)
	if len(pages) > 0 {
		if !p.send(ctx, out, pages) {
			return
		}
		out.know(raised)
	}
	for ctx.Err() == nil {
		batch, end := p.follow.pages(out.cursor, maxBatch)
		if batch = slices.DeleteFunc(batch, out.knows); len(batch) > 0 && !p.send(ctx, out, batch) {
			return
		}
		if maps.Equal(out.cursor, end) {
			return
		}
		out.cursor = end
		if err := out.save(); err != nil {
			p.report(err) // it is told again after a restart
		}
	}
}

// send hands one batch over, and puts a sink off that does not take it.
func (p *Pager) send(ctx context.Context, out *outlet, pages []Page) bool {
	limited, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	err := out.Send(limited, pages)
	p.mu.Lock()
	count := p.told[out.Name()]
	if err == nil {
		count.sent += int64(len(pages))
	} else {
		count.failed++
	}
	p.mu.Unlock()
	if err == nil {
		out.failures, out.next = 0, time.Time{}
		return true
	}
	wait := min(lastRetry, firstRetry<<min(out.failures, 10))
	wait = wait/2 + time.Duration(p.o.Rand()*float64(wait)/2)
	out.failures++
	out.next = p.o.Real().Add(wait)
	p.report(fmt.Errorf("page by %s: %w; again in %s, nothing is lost", out.Name(), err, wait.Round(time.Second)))
	return false
}

// due are the alarms that a sink has to be told now: new ones, those that are to be
// repeated, and those that are over.
func (o *outlet) due(alarms []ladder.Alarm, now time.Time) (pages []Page, raised map[string]told) {
	raised = map[string]told{}
	for _, a := range alarms {
		known, was := o.raised[a.Key()]
		if was && now.Sub(known.at) < o.Repeat() {
			raised[a.Key()] = known
			continue
		}
		raised[a.Key()] = told{alarm: a, at: now}
		pages = append(pages, alarmPage(&a, false))
	}
	for key, known := range o.raised {
		if _, lasts := raised[key]; !lasts {
			pages = append(pages, alarmPage(&known.alarm, true))
		}
	}
	slices.SortFunc(pages, func(x, y Page) int {
		return cmp.Or(cmp.Compare(order(x.Over), order(y.Over)), cmp.Compare(x.Key, y.Key))
	})
	return pages, raised
}

// know remembers what a sink was told of alarms.
func (o *outlet) know(raised map[string]told) {
	for key, t := range raised {
		o.said[alarmNote(&t.alarm)] = true
		delete(o.raised, key)
	}
	for _, t := range o.raised { // what is left is over
		o.said[overNote(&t.alarm)] = true
	}
	o.raised = raised
}

// knows reports whether a page from the log is the note about an alarm that the
// sink was told of itself.
func (o *outlet) knows(p Page) bool {
	for note := range o.said {
		if p.Kind == string(audit.KindNote) && strings.HasPrefix(p.Text, note) {
			return true
		}
	}
	return false
}

// order puts what lasts before what is over.
func order(over bool) int {
	if over {
		return 1
	}
	return 0
}

func alarmPage(a *ladder.Alarm, over bool) Page {
	p := Page{Key: a.Key(), Kind: string(a.Kind), About: a.About, At: a.Since, Urgent: !over, Over: over, Title: "the ladder: " + string(a.Kind), Text: a.Text}
	if over {
		p.Title += " is over"
	}
	return p
}

// WriteMetrics prints what became of the pages.
func (p *Pager) WriteMetrics(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range []struct {
		name, help string
		of         func(*tally) int64
	}{
		{"ic_controller_pages_total", "Pages that a sink has taken.", func(t *tally) int64 { return t.sent }},
		{"ic_controller_page_failures_total", "Batches that a sink has not taken; each is tried again.", func(t *tally) int64 { return t.failed }},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s counter\n", m.name, m.help, m.name)
		for _, out := range p.outs {
			fmt.Fprintf(w, "%s%s %d\n", m.name, label("sink", out.Name()), m.of(p.told[out.Name()]))
		}
	}
}
