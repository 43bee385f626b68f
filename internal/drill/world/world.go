package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/drill/metrics"
	"github.com/degradedmode/ic/internal/drill/pipeline"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/policy"
)

const (
	stepEvery    = 100 * time.Millisecond // real time between two looks at the clock
	metricsKept  = time.Hour              // virtual time that Prometheus remembers
	warmUp       = 15 * time.Minute       // of history before the world begins: rates and windows have something to look at
	clockKept    = 50                     // steps between two writes of the clock: 5 s
	maxCatchUp   = 120                    // virtual seconds that one step may compute
	shutdownTime = 2 * time.Second
)

// World is a running demo world.
type World struct {
	o     Options
	clock *worldclock.Clock

	etcd       *flagservice.Service
	proxies    [2]*proxy.Proxy // one for each half of the fleet
	pipeline   *pipeline.Pipeline
	store      *metrics.Store
	prometheus *metrics.API
	shop       *shop.Shop
	faults     *faults.Set
	nodes      []*node
	byName     map[string]*node
	bundle     *policy.Bundle
	info       Info

	servers []*http.Server
	touched atomic.Int64 // real time of the last request, ns
	jobs    chan job
	ended   chan struct{}
	once    sync.Once
	second  time.Time // virtual second computed last
}

// job is something that has to be done by the loop that owns the shop.
type job struct {
	do   func()
	done chan struct{}
}

// Start sets a world up and runs its hosts. Run then keeps it going.
func Start(ctx context.Context, o Options) (*World, error) {
	if o.Idle == 0 {
		o.Idle = DefaultIdle
	}
	clock, err := worldclock.New(startTime(o.State, o.Real().UTC()), o.Speed, o.Real)
	if err != nil {
		return nil, err
	}
	w := &World{o: o, clock: clock, byName: map[string]*node{}, jobs: make(chan job), ended: make(chan struct{})}
	w.touched.Store(o.Real().UnixNano())
	if err := w.build(ctx); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// build brings the parts up in the order in which they need each other; ready is
// written last.
func (w *World) build(ctx context.Context) error {
	specs := shop.Fleet(fleetSize)
	var err error
	if w.etcd, err = flagservice.Start(ctx, filepath.Join(w.o.State, etcdDir)); err != nil {
		return err
	}
	for i := range w.proxies {
		if w.proxies[i], err = proxy.Listen(w.etcd.Addr()); err != nil {
			return err
		}
	}
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = s.Name
	}
	w.pipeline, err = pipeline.Create(ctx, pipeline.Options{
		Dir: filepath.Join(w.o.State, deployDir), Hosts: names, Pause: pipelinePause, Restart: w.restart, Getenv: w.o.Getenv, Now: w.clock.At(),
	})
	if err != nil {
		return err
	}
	w.store = metrics.NewStore(metricsKept)
	w.prometheus = metrics.NewAPI(w.store, w.clock.At)
	at, err := w.open()
	if err != nil {
		return err
	}
	made, err := prepare(&w.o, at, w.clock.At(), specs)
	if err != nil {
		return err
	}
	if w.bundle, _, err = policy.LoadDir(made.dir, policy.LoadOptions{Fleet: Fleet, RootSHA256: made.rootSHA, Realm: directive.Drill, Now: w.clock.At()}); err != nil {
		return fmt.Errorf("load the demo's policy: %w", err)
	}
	if err := w.startHosts(specs); err != nil {
		return err
	}
	if w.faults, err = faults.New(w.levers()); err != nil {
		return err
	}
	if err := writeConfig(&w.o, at, made.rootSHA); err != nil {
		return err
	}
	w.info = Info{
		V: 1, Realm: directive.Drill, PID: os.Getpid(), Control: at.control, Prometheus: at.prometheus, Etcd: at.etcd,
		Speed: w.o.Speed, Seed: w.o.Seed,
	}
	return w.announce()
}

// pipelinePause is the virtual time between two batches of a rollout.
const pipelinePause = 3 * time.Second

// open starts the servers. They answer once everything behind them is there: no
// client knows them before the world is announced.
func (w *World) open() (place, error) {
	at := place{etcd: w.etcd.Endpoint(), repo: w.pipeline.Repo()}
	control, url, err := listen()
	if err != nil {
		return at, err
	}
	at.control = url
	w.servers = append(w.servers, serve(control, w.routes()))
	prom, url, err := listen()
	if err != nil {
		return at, err
	}
	at.prometheus = url
	w.servers = append(w.servers, serve(prom, dated(w.prometheus, w.clock.At)))
	return at, nil
}

func (w *World) startHosts(specs []shop.Spec) error {
	hosts := make([]shop.Host, len(specs))
	for i, spec := range specs {
		n := newNode(w, spec)
		w.nodes = append(w.nodes, n)
		w.byName[spec.Name] = n
		hosts[i] = n
	}
	var err error
	if w.shop, err = shop.New(shop.Default(), w.o.Seed, hosts); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if err := n.start(w.pipeline.EnvOf(n.spec.Name)[hostrun.EnvName]); err != nil {
			return err
		}
	}
	return w.warm()
}

// warm computes the minutes before the demo begins, so that every window of the
// policy has a past. Nothing is wrong in it.
func (w *World) warm() error {
	now := w.clock.At().Truncate(time.Second)
	w.second = now.Add(-warmUp)
	return w.catchUp(now, int(warmUp/time.Second))
}

func (w *World) announce() error {
	raw, err := json.MarshalIndent(w.info, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(w.o.State, InfoFile), append(raw, '\n'))
}

// Run goes on until ctx ends, a client says stop, or no client was seen for
// Idle.
func (w *World) Run(ctx context.Context) error {
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	defer w.stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return w.close()
		case <-w.ended:
			return w.close()
		case j := <-w.jobs:
			j.do()
			close(j.done)
			continue
		case <-tick.C:
		}
		if w.o.Real().UnixNano()-w.touched.Load() > int64(w.o.Idle) {
			fmt.Fprintf(w.o.Log, "no client for %s: the world ends\n", w.o.Idle)
			return w.close()
		}
		if err := w.step(n); err != nil {
			fmt.Fprintf(w.o.Log, "%s step: %v\n", w.clock.At().Format(time.RFC3339), err)
		}
	}
}

// step lets the virtual seconds that have passed happen.
func (w *World) step(n int) error {
	now := w.clock.At()
	err := errors.Join(w.catchUp(now, maxCatchUp), w.pipeline.Advance(now))
	if n%clockKept == 0 {
		err = errors.Join(err, w.keepClock())
	}
	return err
}

// catchUp computes up to most seconds. A machine that was asleep leaves a gap in
// the metrics, as it would in life.
func (w *World) catchUp(now time.Time, most int) error {
	if behind := int(now.Sub(w.second) / time.Second); behind > most {
		w.second = now.Truncate(time.Second).Add(-time.Duration(most) * time.Second)
	}
	for next := w.second.Add(time.Second); !next.After(now); next = next.Add(time.Second) {
		w.second = next
		w.shop.Tick()
		if next.Unix()%w.o.scrape() != 0 {
			continue
		}
		err := w.shop.Collect(func(name string, value float64, pairs ...string) error {
			return w.store.Append(next, name, value, pairs...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *World) keepClock() error {
	return writeFile(filepath.Join(w.o.State, clockFile), []byte(w.clock.At().UTC().Format(time.RFC3339)+"\n"))
}

// onLoop has something done by the loop that owns the shop.
func (w *World) onLoop(ctx context.Context, do func()) error {
	j := job{do: do, done: make(chan struct{})}
	select {
	case w.jobs <- j:
	case <-w.ended:
		return errors.New("the world has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
	<-j.done
	return nil
}

// restart restarts one host with an environment: it loses what it held in memory
// and reads its disk before anything else.
func (w *World) restart(host string, env map[string]string) {
	n, ok := w.byName[host]
	if !ok {
		return
	}
	if err := n.restart(env[hostrun.EnvName]); err != nil {
		fmt.Fprintf(w.o.Log, "%s restart of %s: %v\n", w.clock.At().Format(time.RFC3339), host, err)
	}
}

// stop asks the loop to end.
func (w *World) stop() { w.once.Do(func() { close(w.ended) }) }

// close ends everything and takes the announcement back, last: who waits for that
// may start another world on the same folder, or remove it.
func (w *World) close() error {
	w.stop()
	err := w.keepClock()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	for _, s := range w.servers {
		if s.Shutdown(ctx) != nil {
			err = errors.Join(err, s.Close())
		}
	}
	var wait sync.WaitGroup
	for _, n := range w.nodes {
		wait.Go(n.stop)
	}
	wait.Wait()
	for _, p := range w.proxies {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if w.etcd != nil {
		w.etcd.Kill()
	}
	return errors.Join(err, w.withdraw())
}

// withdraw takes our announcement back. A world that never came up has none, and
// must not touch that of one that runs.
func (w *World) withdraw() error {
	if w.info.V == 0 {
		return nil
	}
	if err := os.Remove(filepath.Join(w.o.State, InfoFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
