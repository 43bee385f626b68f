package world

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
)

// watchedFile is the file in a host's folder that the hostfile backend writes.
const watchedFile = "ic.directives"

// fullReadEvery is how often a host reads everything from the flag service, in
// real time: the age that it shows is never higher while it is connected.
const fullReadEvery = 2 * time.Second

// node is one host: an engine with a folder of its own, which watches the flag
// service through the proxy of its half, and a file.
type node struct {
	w    *World
	spec shop.Spec

	ahead atomic.Int64 // how far its wall clock is ahead, ns

	host atomic.Pointer[hostrun.Runner] // nil while it is down
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
	dir := filepath.Join(n.w.o.State, hostsDir, n.spec.Name)
	folder, err := engine.OpenDir(filepath.Join(dir, "state"))
	if err != nil {
		return fmt.Errorf("start host %s: %w", n.spec.Name, err)
	}
	host, err := hostrun.Start(hostrun.Config{
		Engine: engine.Config{
			Fleet: Fleet, Host: n.spec.Name, Services: []string{n.spec.Service}, Realm: directive.Drill, Bundle: n.w.bundle,
			Folder: folder, Rand: n.w.o.Rand, Software: "demo",
		},
		Clock: n, Env: env, File: filepath.Join(dir, watchedFile),
		Etcd: []string{"http://" + n.w.proxies[n.spec.Half].Addr()}, FullReadEvery: fullReadEvery,
	})
	if err != nil {
		return err
	}
	for _, note := range host.Opened().Notes {
		fmt.Fprintf(n.w.o.Log, "%s: %s\n", n.spec.Name, note)
	}
	n.host.Store(host)
	return nil
}

// stop ends the host and gives its folder free. Only the world's loop stops hosts,
// and whoever closes the world after it.
func (n *node) stop() {
	host := n.host.Swap(nil)
	if host == nil {
		return
	}
	n.w.store.MarkStale(n.w.second.Add(time.Millisecond), "host", n.spec.Name) // between two samples
	if err := host.Stop(); err != nil {
		fmt.Fprintf(n.w.o.Log, "%s: %v\n", n.spec.Name, err)
	}
}

func (n *node) restart(env string) error {
	n.stop()
	return n.start(env)
}

func (n *node) report() (model.Report, bool) {
	host := n.host.Load()
	if host == nil {
		return model.Report{}, false
	}
	return host.Report(), true
}

// Name implements shop.Host.
func (n *node) Name() string { return n.spec.Name }

// Service implements shop.Host.
func (n *node) Service() string { return n.spec.Service }

// Up implements shop.Host.
func (n *node) Up() bool { return n.host.Load() != nil }

// Tier implements shop.Host.
func (n *node) Tier() int {
	if host := n.host.Load(); host != nil {
		return host.Engine().Tier(n.spec.Service, host.Now())
	}
	return 0
}

// Off implements shop.Host.
func (n *node) Off(feature string) bool {
	host := n.host.Load()
	return host != nil && host.Engine().Off(feature, n.spec.Service, host.Now())
}

// Open implements shop.Host.
func (n *node) Open(control string) bool {
	host := n.host.Load()
	return host != nil && host.Engine().IsOpen(control, n.spec.Service, host.Now())
}

// Allow implements shop.Host.
func (n *node) Allow(control string, amount model.Money) bool {
	host := n.host.Load()
	if host == nil {
		return false
	}
	ok, _ := host.Engine().Allow(control, n.spec.Service, amount, host.Now())
	return ok
}
