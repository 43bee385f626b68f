package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/metrics"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// Fleet is the name of every simulated fleet.
const Fleet = "shop-sim"

// Defaults.
const (
	DefaultHosts      = 60
	DefaultPolicyLife = 90 * 24 * time.Hour
	MaxHosts          = 10_000

	// BypassUpTo is the largest fleet in whose policy the bypasses are in force: above,
	// a host's share of the smallest one would be less than a dollar, and the example's
	// payments domain is refused as a whole.
	BypassUpTo = 4_700
)

// DefaultStart is when a world begins unless it is told otherwise: a Tuesday in
// the middle of a night, and never the machine's own date.
func DefaultStart() time.Time { return time.Date(2026, time.March, 3, 2, 0, 0, 0, time.UTC) }

const (
	tickEvery   = time.Second      // one step of the shop
	scrapeEvery = 5 * time.Second  // two samples of one series
	warmUp      = 15 * time.Minute // of history before the world begins: windows have something to look at
	storeKept   = 2 * time.Hour    // of samples: the longest window of a policy many times over
	designLoad  = 1_000_000        // ppm

	// perHostUpTo is the largest fleet whose hosts have series of their own. Above,
	// only the sums by service are kept.
	perHostUpTo = 200
)

// Options of a world. State is required.
type Options struct {
	Seed       uint64
	Start      time.Time      // zero: DefaultStart
	Hosts      int            // 0: DefaultHosts
	Log        io.Writer      // the event log; nil: nobody reads it
	State      string         // folder of the desks' logs and of the signed policy
	Params     shop.Params    // zero: shop.Default()
	Pace       templates.Pace // zero: templates.RealPace()
	PolicyLife time.Duration  // from Start; 0: DefaultPolicyLife
	People     []string       // who has a seat; nil: everybody of the policy
	Apart      bool           // each seat has a folder of its own, as on machines of their own; else one shared
	Controller bool           // the machine's seat runs the ladder

	Look time.Duration // at least, between two looks of a desk at the hosts; 0: as the size of the fleet allows

	// Signed is the policy and the keys; nil: the example's, by keys from the seed.
	Signed *Signed
	// Readings are what desks see in place of Prometheus. The world then takes no
	// samples and has no past.
	Readings func(now time.Time) map[string]model.Reading

	// Paced: one goroutine advances the world at the pace of a person, and desks may
	// be used from others. Nothing is repeatable then but load and faults.
	Paced bool
}

// World is a simulated fleet. Its methods belong to one goroutine; what is given to
// As runs on it, too.
type World struct {
	o       Options
	turn    sync.Mutex // held by whoever advances or uses a paced world
	k       *kernel.Kernel
	signers map[string]ssh.Signer
	bundle  *policy.Bundle
	tokens  []string          // see Tokens
	ends    []model.Directive // see Facts.Ends

	hosts    []*host // by name
	byName   map[string]*host
	expected []model.HostView // as a desk lists them that has asked nobody
	oracle   *engine.Engine   // has seen every statement at once, under a clock that is right
	oracleC  *kernel.HostClock
	flags    *flagService
	deploy   *deploy
	files    *watchedFiles

	shop     *shop.Shop
	tick     *shop.Tick
	store    *metrics.Store
	prom     *metrics.API
	readings reader
	faults   *faults.Set

	seats     map[string]*seat
	processes []*process
	diskFull  atomic.Bool // of every console
	plain     *Plain
	err       error
}

// New builds the world and its past: quarter of an hour in which nothing is wrong.
func New(o Options) (*World, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	w := &World{o: o, k: kernel.New(o.Seed, o.Start, o.Log), byName: map[string]*host{}, seats: map[string]*seat{}}
	if err := w.build(); err != nil {
		return nil, fmt.Errorf("build the simulated fleet: %w", errors.Join(err, w.Close()))
	}
	return w, nil
}

func (o *Options) complete() error {
	if o.Start.IsZero() {
		o.Start = DefaultStart()
	}
	o.Start = o.Start.UTC().Truncate(time.Second)
	if o.Hosts == 0 {
		o.Hosts = DefaultHosts
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Params.EdgeRate == 0 {
		o.Params = shop.Default()
	}
	if o.PolicyLife == 0 {
		o.PolicyLife = DefaultPolicyLife
	}
	if o.People == nil {
		o.People = templates.ShopPeople()
	}
	switch {
	case o.State == "":
		return errors.New("a simulated fleet needs a folder for the logs of its desks")
	case o.Hosts < shop.MinFleet || o.Hosts > MaxHosts:
		return fmt.Errorf("a simulated fleet has %d to %d hosts, not %d", shop.MinFleet, MaxHosts, o.Hosts)
	}
	return nil
}

func (w *World) build() error {
	specs := shop.Fleet(w.o.Hosts)
	if err := w.sign(specs); err != nil {
		return err
	}
	w.flags = newFlagService(w)
	w.deploy = newDeploy(w)
	w.files = &watchedFiles{w: w, operations: map[string]*filePush{}}
	w.store = metrics.NewStore(storeKept)
	w.prom = metrics.NewAPI(w.store, w.k.Now)
	if err := w.startHosts(specs); err != nil {
		return err
	}
	if err := w.startReadings(); err != nil {
		return err
	}
	var err error
	if w.faults, err = faults.New(w.levers()); err != nil {
		return err
	}
	if err := w.warm(); err != nil {
		return err
	}
	w.k.Every(w.k.Now().Add(tickEvery), tickEvery, w.second)
	if w.o.Readings == nil {
		w.k.Every(w.k.Now().Add(scrapeEvery), scrapeEvery, w.scrape)
	}
	w.k.Every(w.k.Now().Add(fullReadEvery), fullReadEvery, w.flags.fullReads)
	w.k.Every(w.k.Now().Add(reconcileEvery), reconcileEvery, w.deploy.reconcile)
	if w.o.Controller {
		return w.startController()
	}
	return nil
}

func (w *World) startHosts(specs []shop.Spec) error {
	w.oracleC = w.k.HostClock("oracle")
	var err error
	if w.oracle, err = w.openEngine("oracle", services(), engine.NewMemory(), w.oracleC); err != nil {
		return err
	}
	asked := make([]shop.Host, len(specs))
	for i, spec := range specs {
		h := newHost(w, spec)
		if err := h.boot(); err != nil {
			return err
		}
		w.hosts, asked[i] = append(w.hosts, h), h
		w.byName[spec.Name] = h
		w.expected = append(w.expected, model.HostView{Host: spec.Name, Services: []string{spec.Service}, Detail: "not asked yet"})
	}
	w.shop, err = shop.New(w.o.Params, w.o.Seed, asked)
	return err
}

func services() []string {
	return []string{shop.Catalog, shop.Checkout, shop.Edge, shop.PaymentRisk}
}

// warm computes the minutes before the world begins.
func (w *World) warm() error {
	if w.o.Readings != nil {
		w.tick = w.shop.Tick()
		return nil
	}
	for at := w.o.Start.Add(-warmUp).Add(tickEvery); !at.After(w.o.Start); at = at.Add(tickEvery) {
		w.tick = w.shop.Tick()
		if at.Unix()%int64(scrapeEvery/time.Second) == 0 {
			if err := w.collect(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// second lets one second happen in the shop.
func (w *World) second() {
	w.tick = w.shop.Tick()
	for i := range w.tick.Orders {
		if o := &w.tick.Orders[i]; o.Outcome != shop.Scored {
			w.k.Log("shop", "order", kernel.Word("host", o.Host), kernel.Int("cents", o.Cents), kernel.Word("outcome", o.Outcome))
		}
	}
}

// scrape takes the samples, as Prometheus does, and writes down what it saw.
func (w *World) scrape() {
	if err := w.collect(w.k.Now()); err != nil {
		w.fail(err)
	}
	for i := range w.tick.Services {
		v := &w.tick.Services[i]
		w.k.Log("shop", "vitals", kernel.Word("service", v.Service), kernel.Int("up", int64(v.Up)), kernel.Int("rate", v.Rate),
			kernel.Int("p99_us", v.P99), kernel.Int("cpu_ppm", v.CPU), kernel.Int("errors_ppm", v.Errors), kernel.Int("breakers", int64(v.Breakers)))
	}
}

// recorded is the prefix of the series that are sums by service, as a recording
// rule would name them. The policy's queries read these.
const recorded = "service:"

func (w *World) collect(at time.Time) error {
	sink := func(prefix string) shop.Sink {
		return func(name string, value float64, pairs ...string) error {
			return w.store.Append(at, prefix+name, value, pairs...)
		}
	}
	if err := w.shop.CollectServices(sink(recorded)); err != nil {
		return err
	}
	if w.perHost() {
		return w.shop.Collect(sink(""))
	}
	return w.shop.CollectServices(sink(""))
}

func (w *World) perHost() bool { return len(w.hosts) <= perHostUpTo }

// fail keeps the first error of the world's own machinery; Err has it.
func (w *World) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Err is the first error of the world itself or of its event log: what came of the
// run is then not to be trusted.
func (w *World) Err() error { return errors.Join(w.err, w.k.Err()) }

// Kernel is the world's time.
func (w *World) Kernel() *kernel.Kernel { return w.k }

// Faults are what can go wrong in this world.
func (w *World) Faults() *faults.Set { return w.faults }

// Store is what Prometheus holds.
func (w *World) Store() *metrics.Store { return w.store }

// Prometheus answers as the world's Prometheus does: an http.RoundTripper.
func (w *World) Prometheus() *metrics.API { return w.prom }

// Bundle is the signed policy of the fleet.
func (w *World) Bundle() *policy.Bundle { return w.bundle }

// SetDemand sets the load in parts per million of the design load.
func (w *World) SetDemand(ppm int64) {
	w.k.Log("shop", "demand", kernel.Int("ppm", ppm))
	w.shop.SetDemand(ppm)
}

// Advance lets time pass up to until.
func (w *World) Advance(until time.Time) {
	if w.o.Paced {
		w.turn.Lock()
		defer w.turn.Unlock()
	}
	w.k.Run(until)
}

// enter keeps a paced world to a desk that is used from outside of it. Inside of a
// process the world stands still already.
func (w *World) enter(ctx context.Context) (leave func()) {
	if !w.o.Paced || processOf(ctx) != nil {
		return func() {}
	}
	w.turn.Lock()
	return w.turn.Unlock
}

// Close ends what people are doing and the sessions of all desks.
func (w *World) Close() error {
	for len(w.processes) > 0 {
		w.end(w.processes[0])
	}
	var failed []error
	for _, name := range sortedKeys(w.seats) {
		s := w.seats[name]
		if s.desk == nil {
			continue
		}
		err := s.desk.Close()
		if s.disk.dead.Load() {
			s.disk.kill() // its console died at a write, and nobody has noticed yet
			continue
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (w *World) policyDir() string { return filepath.Join(w.o.State, "policy") }

// stateOf is the folder of a seat's log.
func (w *World) stateOf(person string) string {
	if w.o.Apart {
		return filepath.Join(w.o.State, "desks", person)
	}
	return filepath.Join(w.o.State, "desks")
}

// Sleep lets virtual time pass inside of an act.
func (w *World) Sleep(ctx context.Context, d time.Duration) error { return w.wait(ctx, d) }
