package controller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/ladder"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

const robot = templates.LadderController

// clock is set by hand: nothing in these tests waits. Its wall can be set on its
// own, as people and time servers do.
type clock struct {
	mu   sync.Mutex
	boot time.Duration
	set  time.Duration
	id   string
}

func (c *clock) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return model.Instant{Wall: policytest.Now().Add(c.boot + c.set), Boot: c.boot, BootID: c.id, State: model.ClockOK}
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot += d
}

func (c *clock) setWall(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += by
}

// flags is a flag service in memory that hosts see at once.
type flags struct {
	mu     sync.Mutex
	tokens map[string]string
	down   bool
	sink   func(token string)
}

func (f *flags) Name() string { return "etcd" }

func (f *flags) Put(_ context.Context, id, token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return errors.New("connection refused")
	}
	f.tokens[id] = token
	f.sink(token)
	return nil
}

func (f *flags) Read(context.Context) (map[string]string, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return nil, "", errors.New("connection refused")
	}
	return maps.Clone(f.tokens), "", nil
}

// rig is a fleet of real engines under the example policy, signals that are
// whatever a test says, and the seats before it.
type rig struct {
	t       *testing.T
	clock   *clock
	bundle  *policy.Bundle
	keys    map[string]ssh.Signer
	flags   *flags
	engines []*engine.Engine
	state   string
	seats   int

	mu      sync.Mutex
	past    map[string][]model.Sample // of every signal, one every step
	values  map[string]float64        // absent: not to be had
	filled  time.Time
	reads   int
	reading func() // called in the middle of a read; nil: nothing
}

func newRig(t *testing.T) *rig {
	t.Helper()
	_, bundle, keys := policytest.Shop(t)
	r := &rig{t: t, clock: &clock{boot: time.Hour, id: "boot"}, bundle: bundle, keys: keys, state: t.TempDir(), past: map[string][]model.Sample{}, values: calm()}
	r.flags = &flags{tokens: map[string]string{}, sink: r.deliver}
	for i, service := range []string{"edge", "catalog", "checkout", "checkout", "payment-risk"} {
		e, _, err := engine.Open(engine.Config{
			Fleet: policytest.Fleet, Host: fmt.Sprintf("%s-%02d", service, i), Services: []string{service}, Realm: directive.Production, Bundle: bundle,
			Folder: engine.NewMemory(), Rand: rand.Reader, Software: "test",
		}, r.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.engines = append(r.engines, e)
	}
	r.filled = r.clock.Now().Wall
	r.pass(30 * time.Minute)
	return r
}

func calm() map[string]float64 {
	return map[string]float64{templates.CheckoutP99: 0.2, templates.CPU: 40, templates.CheckoutErrors: 0.1, templates.PaymentRiskUp: 1}
}

// now says what is measured from here on; nil: nothing is to be had.
func (r *rig) now(values map[string]float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = values
}

func with(name string, v float64) map[string]float64 {
	out := calm()
	out[name] = v
	return out
}

// pass lets time go by everywhere, and metrics be collected.
func (r *rig) pass(d time.Duration) {
	r.clock.pass(d)
	for _, e := range r.engines {
		e.Advance(r.clock.Now())
	}
	r.collect()
}

func (r *rig) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := r.clock.Now().Wall; !r.filled.After(now); r.filled = r.filled.Add(10 * time.Second) {
		for name, v := range r.values {
			r.past[name] = append(r.past[name], model.Sample{At: r.filled, Value: v})
		}
	}
}

func (r *rig) read(context.Context) map[string]model.Reading {
	now := r.clock.Now().Wall
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	out := map[string]model.Reading{}
	for name, signal := range r.bundle.Signals {
		v, known := r.values[name]
		if !known {
			out[name] = model.Reading{Signal: name, State: model.ReadingError, Detail: "Prometheus cannot be asked", Step: signal.Step}
			continue
		}
		past := r.past[name]
		out[name] = model.Reading{Signal: name, State: model.ReadingValue, Value: v, At: now, Step: signal.Step, History: slices.Clone(past[max(0, len(past)-100):])}
	}
	if r.reading != nil {
		r.reading()
	}
	return out
}

func (r *rig) deliver(token string) {
	for _, e := range r.engines {
		e.Offer("etcd", token, r.clock.Now())
	}
}

func (r *rig) views(context.Context) []model.HostView {
	now := r.clock.Now()
	out := make([]model.HostView, len(r.engines))
	for i, e := range r.engines {
		report := e.Report(now)
		out[i] = model.HostView{Host: report.Host, Services: report.Services, Reachable: true, SeenAt: now.Wall, Via: "test", Report: &report}
	}
	return out
}

// tier is what the first host of checkout obeys.
func (r *rig) tier() int { return r.engines[2].Tier("checkout", r.clock.Now()) }

func (r *rig) desk(person string) *incident.Desk {
	r.t.Helper()
	r.seats++
	d, err := incident.New(incident.Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: person, State: r.state, Session: fmt.Sprintf("%s-%d", person, r.seats),
		Bundle: r.bundle, Clock: r.clock, Signer: func(context.Context) (ssh.Signer, error) { return r.keys[person], nil },
		Carriers: []incident.Carrier{r.flags}, Readings: r.read, Hosts: r.views,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { d.Close() })
	return d
}

// controller is one with a desk of its own; to sleep is to let time pass.
func (r *rig) controller(changes ...func(*Options)) *Controller {
	r.t.Helper()
	o := Options{Desk: r.desk(robot), Bundle: r.bundle, Machine: robot, Clock: r.clock, Sleep: func(_ context.Context, d time.Duration) error {
		r.pass(d)
		return nil
	}}
	for _, change := range changes {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// loop runs a controller for a time, without leaving out a pause of its own.
func (r *rig) loop(c *Controller, d time.Duration) (lines []Line) {
	r.t.Helper()
	for end := r.clock.Now().Boot + d; r.clock.Now().Boot < end; {
		line := c.Look(context.Background())
		lines = append(lines, line)
		r.pass(c.pause(&line))
	}
	return lines
}

// moves are what lines have done, in short.
func moves(lines []Line) (out []string) {
	for _, l := range lines {
		if l.Move != nil && l.Move.Error == "" {
			out = append(out, string(l.Move.Purpose)+" "+l.Move.Title)
		}
	}
	return out
}

// by has a person use a right.
func (r *rig) by(person string, ask decisions.Ask) {
	r.t.Helper()
	d := r.desk(person)
	d.Refresh(context.Background())
	p, err := d.Preview(ask)
	if err != nil {
		r.t.Fatal(err)
	}
	if result, err := d.Execute(context.Background(), incident.Act{Request: p.Request, Asked: true}); err != nil {
		r.t.Fatal(err, result.Reasons)
	}
}

func kinds(alarms []ladder.Alarm) (out []string) {
	for _, a := range alarms {
		out = append(out, string(a.Kind))
	}
	return out
}
