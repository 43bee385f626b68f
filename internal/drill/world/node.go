package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// watchedFile is the file in a host's folder that the hostfile backend writes.
const watchedFile = "ic.directives"

// How a host looks at the world, in real time: reads of sources do not run on
// the demo's clock.
const (
	fullReadEvery = 2 * time.Second
	fileEvery     = time.Second
	advanceEvery  = 250 * time.Millisecond
)

// Sources of a host, as its report names them.
const (
	fromEtcd = "etcd"
	fromFile = "file"
	fromEnv  = "env"
)

// node is one host: an engine with a folder of its own, which watches the flag
// service through the proxy of its half, and a file.
type node struct {
	w    *World
	spec shop.Spec

	ahead atomic.Int64 // how far its wall clock is ahead, ns

	mu      sync.Mutex // of a start or a stop
	cancel  context.CancelFunc
	running sync.WaitGroup
	engine  atomic.Pointer[engine.Engine] // nil while it is down
}

var _ shop.Host = (*node)(nil)

func newNode(w *World, spec shop.Spec) *node { return &node{w: w, spec: spec} }

// Now is the host's own clock.
func (n *node) Now() model.Instant {
	now := n.w.clock.Now()
	now.Wall = now.Wall.Add(time.Duration(n.ahead.Load()))
	return now
}

func (n *node) setAhead(by time.Duration) { n.ahead.Store(int64(by)) }

// start reads the disk, then the environment, and only then the network.
func (n *node) start(env string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	dir := filepath.Join(n.w.o.State, hostsDir, n.spec.Name)
	folder, err := engine.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		return fmt.Errorf("start host %s: %w", n.spec.Name, err)
	}
	e, opened, err := engine.Open(engine.Config{
		Fleet: Fleet, Host: n.spec.Name, Services: []string{n.spec.Service}, Realm: directive.Drill, Bundle: n.w.bundle,
		Folder: folder, Rand: n.w.o.Rand, Software: "demo",
	}, n.Now())
	if err != nil {
		return err
	}
	for _, note := range opened.Notes {
		fmt.Fprintf(n.w.o.Log, "%s: %s\n", n.spec.Name, note)
	}
	if tokens := directive.SplitCarrier(env); len(tokens) > 0 {
		e.Seen(fromEnv, tokens, nil, n.Now())
	}
	ctx, cancel := context.WithCancel(context.Background())
	flags, err := etcd.New(ctx, etcd.Options{
		Endpoints: []string{"http://" + n.w.proxies[n.spec.Half].Addr()}, Fleet: Fleet, FullReadEvery: fullReadEvery,
		Now: func() time.Time { return n.Now().Wall }, After: time.After, Rand: rand.Float64,
	})
	if err != nil {
		cancel()
		return errors.Join(err, e.Close(n.Now()))
	}
	n.cancel = cancel
	n.running.Go(func() { n.watchFlags(ctx, e, flags) })
	n.running.Go(func() { n.watchFile(ctx, e, filepath.Join(dir, watchedFile)) })
	n.running.Go(func() { n.advance(ctx, e) })
	n.engine.Store(e)
	return nil
}

// watchFlags offers what the flag service brings. A source that fails says so in
// the report, and takes nothing back.
func (n *node) watchFlags(ctx context.Context, e *engine.Engine, flags *etcd.Carrier) {
	defer flags.Close()
	held := map[string]string{}
	var lastFull time.Time
	flags.Watch(ctx, func(id, token string) {
		held[id] = token
		e.Offer(fromEtcd, token, n.Now())
	}, func(s carriers.Status) {
		n.told(e, fromEtcd, held, s, &lastFull)
	})
}

func (n *node) told(e *engine.Engine, source string, held map[string]string, s carriers.Status, lastFull *time.Time) {
	switch {
	case !s.Connected:
		e.Seen(source, nil, errors.New(s.Err), n.Now())
	case s.LastFullRead.After(*lastFull):
		*lastFull = s.LastFullRead
		tokens := make([]string, 0, len(held))
		for _, token := range held {
			tokens = append(tokens, token)
		}
		e.Seen(source, tokens, nil, n.Now())
	}
}

func (n *node) watchFile(ctx context.Context, e *engine.Engine, path string) {
	tick := time.NewTicker(fileEvery)
	defer tick.Stop()
	f := carriers.File{Path: path, Ticks: tick.C, Now: func() time.Time { return n.Now().Wall }}
	f.Watch(ctx, func(tokens []string) { e.Seen(fromFile, tokens, nil, n.Now()) }, func(s carriers.Status) {
		switch {
		case !s.Connected:
			e.Seen(fromFile, nil, errors.New(s.Err), n.Now())
		default:
			e.Unchanged(fromFile, "", n.Now())
		}
	})
}

func (n *node) advance(ctx context.Context, e *engine.Engine) {
	tick := time.NewTicker(advanceEvery)
	defer tick.Stop()
	for {
		e.Advance(n.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stop ends the host and gives its folder free. Only the world's loop stops hosts,
// and whoever closes the world after it.
func (n *node) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.engine.Swap(nil)
	if e == nil {
		return
	}
	n.cancel()
	n.running.Wait()
	n.w.store.MarkStale(n.w.second.Add(time.Millisecond), "host", n.spec.Name) // between two samples
	if err := e.Close(n.Now()); err != nil {
		fmt.Fprintf(n.w.o.Log, "%s: %v\n", n.spec.Name, err)
	}
}

func (n *node) restart(env string) error {
	n.stop()
	return n.start(env)
}

func (n *node) report() (model.Report, bool) {
	e := n.engine.Load()
	if e == nil {
		return model.Report{}, false
	}
	return e.Report(n.Now()), true
}

// Name implements shop.Host.
func (n *node) Name() string { return n.spec.Name }

// Service implements shop.Host.
func (n *node) Service() string { return n.spec.Service }

// Up implements shop.Host.
func (n *node) Up() bool { return n.engine.Load() != nil }

// Tier implements shop.Host.
func (n *node) Tier() int {
	if e := n.engine.Load(); e != nil {
		return e.Tier(n.spec.Service, n.Now())
	}
	return 0
}

// Off implements shop.Host.
func (n *node) Off(feature string) bool {
	e := n.engine.Load()
	return e != nil && e.Off(feature, n.spec.Service, n.Now())
}

// Open implements shop.Host.
func (n *node) Open(control string) bool {
	e := n.engine.Load()
	return e != nil && e.IsOpen(control, n.spec.Service, n.Now())
}

// Allow implements shop.Host.
func (n *node) Allow(control string, amount model.Money) bool {
	e := n.engine.Load()
	if e == nil {
		return false
	}
	ok, _ := e.Allow(control, n.spec.Service, amount, n.Now())
	return ok
}
