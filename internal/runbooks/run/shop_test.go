package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
	"golang.org/x/crypto/ssh"
)

// shop is a fleet of real engines, real keys and the example policy; its clock is
// moved by whoever waits.
type shop struct {
	t        testing.TB
	bundle   *policy.Bundle
	keys     map[string]ssh.Signer
	mu       sync.Mutex
	at       time.Time
	hosts    []*host
	readings map[string]model.Reading
	state    string
	desks    int

	tokens map[string]string // what the flag service holds
	down   bool
	puts   int
	onWait func()
}

type host struct {
	name, service string
	engine        *engine.Engine
	silent        bool
}

func newShop(t testing.TB) *shop {
	t.Helper()
	_, bundle, keys := policytest.Shop(t)
	return newShopOf(t, bundle, keys)
}

func newShopOf(t testing.TB, bundle *policy.Bundle, keys map[string]ssh.Signer) *shop {
	t.Helper()
	s := &shop{t: t, bundle: bundle, keys: keys, at: policytest.Now(), state: t.TempDir(), tokens: map[string]string{}}
	for i, service := range []string{"edge", "checkout", "checkout", "checkout"} {
		h := &host{name: fmt.Sprintf("%s-%02d", service, i), service: service}
		e, _, err := engine.Open(engine.Config{Fleet: policytest.Fleet, Host: h.name, Services: []string{service}, Realm: directive.Production,
			Bundle: bundle, Folder: engine.NewMemory(), Rand: crand.Reader, Software: "test"}, s.Now())
		if err != nil {
			t.Fatal(err)
		}
		h.engine = e
		s.hosts = append(s.hosts, h)
	}
	s.calm()
	return s
}

func (s *shop) Now() model.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return model.Instant{Wall: s.at, Boot: s.at.Sub(policytest.Now()) + time.Hour, BootID: "boot", State: model.ClockOK}
}

func (s *shop) pass(d time.Duration) {
	s.mu.Lock()
	s.at = s.at.Add(d)
	s.mu.Unlock()
	for _, h := range s.hosts {
		h.engine.Advance(s.Now())
	}
	s.calm()
}

// wait is how a run lets time go by.
func (s *shop) wait(ctx context.Context, d time.Duration) error {
	s.pass(d)
	if s.onWait != nil {
		s.onWait()
	}
	return ctx.Err()
}

// calm makes every signal good for the last hour.
func (s *shop) calm() {
	out := map[string]model.Reading{}
	now := s.Now().Wall
	for name, signal := range s.bundle.Signals {
		step := max(signal.Step.Std(), time.Second)
		r := model.Reading{Signal: name, State: model.ReadingValue, Value: s.good(name), At: now, Step: model.Duration(step)}
		for at := now.Add(-time.Hour); !at.After(now); at = at.Add(step) {
			r.History = append(r.History, model.Sample{At: at, Value: r.Value})
		}
		out[name] = r
	}
	s.mu.Lock()
	s.readings = out
	s.mu.Unlock()
}

// good is a value under every "below" and over every "above" of a signal.
func (s *shop) good(name string) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	take := func(l *policy.Threshold, flip bool) {
		if l == nil {
			return
		}
		above, below := l.Above, l.Below
		if flip {
			above, below = below, above
		}
		if above != nil {
			low = max(low, *above)
		}
		if below != nil {
			high = min(high, *below)
		}
	}
	for _, tier := range s.bundle.Tiers {
		for i := range tier.Leave {
			if tier.Leave[i].Signal == name {
				take(&policy.Threshold{Above: tier.Leave[i].Above, Below: tier.Leave[i].Below}, false)
			}
		}
	}
	take(s.bundle.Signals[name].Abnormal, true)
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return 0
	case math.IsInf(low, -1):
		return high / 2
	case math.IsInf(high, 1):
		return low + 1
	}
	return (low + high) / 2
}

// flags is the flag service as one process sees it. A process that has been killed
// reaches nothing any more.
type flags struct {
	shop *shop
	dead *atomic.Bool
}

func (f flags) Name() string { return "flags" }

var errDown = errors.New("nobody answers")

func (f flags) Put(_ context.Context, id, token string) error {
	s := f.shop
	s.mu.Lock()
	if s.down || f.dead.Load() {
		s.mu.Unlock()
		return errDown
	}
	s.tokens[id] = token
	s.puts++
	s.mu.Unlock()
	for _, h := range s.hosts {
		h.engine.Offer("flags", token, s.Now())
	}
	return nil
}

func (f flags) Read(context.Context) (map[string]string, string, error) {
	f.shop.mu.Lock()
	defer f.shop.mu.Unlock()
	if f.shop.down || f.dead.Load() {
		return nil, "", errDown
	}
	return maps.Clone(f.shop.tokens), "", nil
}

func (s *shop) views(context.Context) []model.HostView {
	var out []model.HostView
	for _, h := range s.hosts {
		v := model.HostView{Host: h.name, Services: []string{h.service}, Reachable: !h.silent, SeenAt: s.Now().Wall, Via: "test"}
		if !h.silent {
			r := h.engine.Report(s.Now())
			v.Report = &r
		}
		out = append(out, v)
	}
	return out
}

// seat is one process: a desk, and the switch that kills it.
type seat struct {
	*incident.Desk
	dead *atomic.Bool
}

func (s *shop) desk(person string, changes ...func(*incident.Options)) seat {
	s.t.Helper()
	s.desks++
	dead := new(atomic.Bool)
	o := incident.Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: person, State: s.state, Session: fmt.Sprintf("%s-%d", person, s.desks),
		Bundle: s.bundle, Clock: s, Carriers: []incident.Carrier{flags{s, dead}}, Hosts: s.views, Wait: s.wait,
		Signer: func(context.Context) (ssh.Signer, error) { return s.keys[person], nil },
		Readings: func(context.Context) map[string]model.Reading {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.readings
		},
		Inventory: func() incident.Listing {
			return incident.Listing{Inventory: model.Inventory{Source: "policy", At: s.Now().Wall, MaxAge: model.Duration(time.Minute), Hosts: len(s.hosts)}}
		},
	}
	for _, change := range changes {
		change(&o)
	}
	d, err := incident.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
	d.Refresh(context.Background())
	return seat{d, dead}
}

// issued counts the directives of a kind that the fleet has ever been given.
func (s *shop) issued(kind model.Kind) int {
	n := 0
	for _, token := range s.tokens {
		signed, err := directive.Verify(token, directive.Production, policytest.Fleet)
		if err != nil {
			s.t.Fatal(err)
		}
		if signed.Directive.Kind == kind {
			n++
		}
	}
	return n
}

// book is a runbook of front matter and steps; each step is the YAML of its fence.
func book(t testing.TB, id string, steps ...string) *runbooks.Runbook {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "---\nv: 1\nid: %s\nowner: ines\nuse_when: The payment risk service answers nobody.\nvalid_until: 2027-03-01\nmax_duration: 2h\n---\n# Payment risk is down\n", id)
	for i, step := range steps {
		fmt.Fprintf(&b, "\n## %d. A step\n\nWhat it means.\n\n```ic-step\n%s\n```\n", i+1, strings.TrimSpace(step))
	}
	rb, err := runbooks.Parse(id+".md", b.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return rb
}

// Steps of the tests.
const (
	lookStep   = "id: look\ncheck: {skew: {at_least: 95}}"
	decideStep = `
id: what
decide:
  ask: What does the queue do?
  options:
    - {choose: grows, means: orders pile up, goto: shed}
    - {choose: stable, means: it stays, goto: seen}`
	shedStep = `
id: shed
do: {right: shed, scope: checkout, tier: 2, reason: payment risk is down}
timeout: 5m
on_timeout: stop
probe: {reach: {at_least: 95}}
undo: {recover: {scope: checkout, to: 1, percent: 10}}`
	openStep = `
id: open
do: {right: risk-bypass-small-orders, scope: checkout, control: payment-risk, reason: payment risk is down}
timeout: 5m
on_timeout: stop
probe: {bypass: {control: payment-risk, is: open}}
undo: {do: {right: end-bypass, scope: checkout, reason: the check is back}}`
	waitStep = "id: settle\nwait: {for: 3m}"
	seenStep = "id: seen\nnote: {ask: 'Which graph did you look at and what did it show?'}"
)

func (s *shop) options(d seat, rb *runbooks.Runbook) run.Options {
	return run.Options{Desk: d, Runbook: rb, Signature: runbooks.Signature{State: runbooks.Signed, By: []string{"ines", "priya"}},
		Clock: s, Rand: crand.Reader, Wait: s.wait}
}

func (s *shop) start(d seat, rb *runbooks.Runbook) *run.Run {
	s.t.Helper()
	r, err := run.Start(context.Background(), s.options(d, rb))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// say answers whatever a step asks, as a person would who goes the usual way.
func say(q *run.Question) run.Answer {
	if q == nil {
		return run.Answer{}
	}
	switch q.Kind {
	case run.AskConfirm:
		return run.Answer{Confirm: true, Asked: true}
	case run.AskChoose:
		return run.Answer{Choose: q.Options[0].Choose, Asked: true}
	case run.AskReality:
		return run.Answer{Choose: run.ChooseAgain, Asked: true}
	}
	return run.Answer{Seen: "p99 of checkout at 0.4 s since 02:31", Asked: true}
}

// follow takes a run to its end.
func (s *shop) follow(r *run.Run) run.View {
	s.t.Helper()
	for !r.View().Finished {
		step(s.t, r)
	}
	return r.View()
}

func step(t testing.TB, r *run.Run) run.StepView {
	t.Helper()
	q, err := r.Question(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Next(context.Background(), say(q))
	if err != nil {
		t.Fatalf("step %s: %v", v.ID, err)
	}
	return v
}

func states(v run.View) string {
	var out []string
	for _, s := range v.Steps {
		out = append(out, s.ID+"="+s.State)
	}
	return strings.Join(out, " ")
}

// logged is what the log of the open incident holds, by kind.
func logged(t testing.TB, d seat) []audit.Entry {
	t.Helper()
	sessions, err := d.Logs()
	if err != nil {
		t.Fatal(err)
	}
	return audit.InOrder(sessions)
}

// verified holds the whole log against the trust root and the heads on the hosts.
func verified(s *shop, d seat) error {
	_, err := audit.Verify(audit.VerifyOptions{Realm: directive.Production, Fleet: policytest.Fleet,
		Trusted: func(fp string) (string, bool) { w, ok := s.bundle.SignerOf(fp); return w.Name, ok }},
		audit.Folder(s.state, d.Snapshot().World.Incident.ID))
	return err
}
