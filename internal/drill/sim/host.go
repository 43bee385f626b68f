package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
)

// How a host restarts and connects. A process is back within seconds, and asks the
// flag service when it has read its disk and its environment.
const (
	bootLeast    = 2 * time.Second
	bootMost     = 5 * time.Second
	connectMost  = time.Second
	advanceLeast = 10 * time.Millisecond // keeps a change that is due at once from spinning
)

var errNotRead = errors.New("not read yet")

// host is one host of the fleet: a real engine with a folder in memory that
// outlives a restart, and the naive flags of a world without ic, which do not.
type host struct {
	w      *World
	spec   shop.Spec
	clock  *kernel.HostClock
	folder *engine.Memory
	engine *engine.Engine // nil: the process is down
	boots  int64          // a start that was overtaken by another one does nothing
	paused bool
	timer  *kernel.Timer

	env, file string // values that this host was given
	version   int64  // statements of the flag service at the last full read

	// What the engine says, kept until it changes or a deadline passes: the shop
	// asks every second.
	tier int
	off  []string // features
	open bool     // the shop's control

	plain plainHost
}

var _ shop.Host = (*host)(nil)

func newHost(w *World, spec shop.Spec) *host {
	return &host{w: w, spec: spec, clock: w.k.HostClock(spec.Name), folder: engine.NewMemory()}
}

func (w *World) openEngine(name string, services []string, folder engine.Folder, clock model.Clock) (*engine.Engine, error) {
	e, _, err := engine.Open(engine.Config{
		Fleet: Fleet, Host: name, Services: services, Realm: directive.Drill, Bundle: w.bundle,
		Folder: folder, Rand: w.k.Stream("folders"), Software: "sim",
	}, clock.Now())
	return e, err
}

// boot reads the disk, then the environment and the watched file, and only then
// the network.
func (h *host) boot() error {
	e, err := h.w.openEngine(h.spec.Name, []string{h.spec.Service}, h.folder, h.clock)
	if err != nil {
		return fmt.Errorf("start host %s: %w", h.spec.Name, err)
	}
	h.engine, h.version, h.plain = e, 0, plainHost{env: h.plain.env}
	now := h.clock.Now()
	if tokens := directive.SplitCarrier(h.env); len(tokens) > 0 {
		e.Seen(hostrun.FromEnv, tokens, nil, now)
	}
	e.Seen(hostrun.FromFile, directive.SplitCarrier(h.file), nil, now)
	e.Seen(hostrun.FromEtcd, nil, errNotRead, now)
	h.settle()
	boot := h.boots
	h.w.k.After(h.w.jitter("hosts", 0, connectMost), func() {
		if boot == h.boots && h.awake() {
			h.fullRead()
		}
	})
	return nil
}

// restart ends the process, which forgets what it held in memory, and starts it
// again after a while.
func (h *host) restart() {
	h.boots++
	boot := h.boots
	h.stop()
	h.w.k.Log(h.spec.Name, "restart")
	h.w.k.After(h.w.jitter("hosts", bootLeast, bootMost), func() {
		if boot != h.boots || h.paused {
			return
		}
		if err := h.boot(); err != nil {
			h.w.fail(err)
			return
		}
		h.w.k.Log(h.spec.Name, "up", kernel.Int("tier", int64(h.Tier())))
	})
}

func (h *host) stop() {
	if h.engine == nil {
		return
	}
	if err := h.engine.Close(h.clock.Now()); err != nil {
		h.w.fail(err)
	}
	h.engine = nil
	h.stopTimer()
	h.markStale()
}

// markStale ends the host's series between two samples: one of this very instant
// may still come.
func (h *host) markStale() {
	if h.w.perHost() {
		h.w.k.After(time.Millisecond, func() { h.w.store.MarkStale(h.w.k.Now(), "host", h.spec.Name) })
	}
}

// pause stops the machine as a hypervisor does; resume lets it run on, with a wall
// clock that is behind.
func (h *host) pause() {
	h.paused = true
	h.clock.Pause()
	h.markStale()
}

func (h *host) resume() {
	h.paused = false
	h.clock.Resume()
	if h.engine == nil {
		h.restart() // it was about to start
		return
	}
	h.settle()
}

func (h *host) stopTimer() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

// settle does what the passing of time asks for, keeps what the engine says, and
// comes back when that may change by itself. It is called after everything that the
// engine is told and after every change of the clock.
func (h *host) settle() {
	h.stopTimer()
	if !h.awake() {
		return
	}
	now := h.clock.Now()
	wait := h.engine.Advance(now)
	h.look(now)
	if wait != engine.Never {
		t := h.w.k.After(max(wait, advanceLeast), h.settle)
		h.timer = &t
	}
}

// look asks the engine what is in force.
func (h *host) look(now model.Instant) {
	h.tier = h.engine.Tier(h.spec.Service, now)
	h.open = h.engine.IsOpen(h.w.o.Params.Control, h.spec.Service, now)
	h.off = h.off[:0]
	for i := range h.w.o.Params.Features {
		if name := h.w.o.Params.Features[i].Name; h.engine.Off(name, h.spec.Service, now) {
			h.off = append(h.off, name)
		}
	}
}

// awake: the process runs and the machine is not stopped.
func (h *host) awake() bool { return h.engine != nil && !h.paused }

// offer hands over what a watch has brought.
func (h *host) offer(token string) {
	if h.awake() {
		h.engine.Offer(hostrun.FromEtcd, token, h.clock.Now())
		h.settle()
	}
}

// fullRead is everything that the flag service holds, or why it could not be read.
func (h *host) fullRead() {
	now := h.clock.Now()
	if !h.w.flags.reaches(h) {
		h.engine.Seen(hostrun.FromEtcd, nil, errUnreachable, now)
		return
	}
	h.plain.take(h.w.plain)
	tokens := h.w.flags.visible()
	if n := int64(len(tokens)); n == h.version && n > 0 || h.engine.SourceRead(hostrun.FromEtcd) && n == h.version {
		h.engine.Unchanged(hostrun.FromEtcd, "", now)
		return
	}
	h.version = int64(len(tokens))
	h.engine.Seen(hostrun.FromEtcd, tokens, nil, now)
	h.settle()
}

// readFile is the watched file after somebody has written it.
func (h *host) readFile() {
	if h.awake() {
		h.engine.Seen(hostrun.FromFile, directive.SplitCarrier(h.file), nil, h.clock.Now())
		h.settle()
	}
}

// Name implements shop.Host.
func (h *host) Name() string { return h.spec.Name }

// Service implements shop.Host.
func (h *host) Service() string { return h.spec.Service }

// Up implements shop.Host.
func (h *host) Up() bool { return h.awake() }

// Tier implements shop.Host.
func (h *host) Tier() int {
	if h.w.plain != nil {
		return h.plain.tier()
	}
	return h.tier
}

// Off implements shop.Host.
func (h *host) Off(feature string) bool {
	if h.w.plain != nil {
		return h.plain.off(feature)
	}
	for _, name := range h.off {
		if name == feature {
			return true
		}
	}
	return false
}

// Open implements shop.Host.
func (h *host) Open(control string) bool {
	switch {
	case h.w.plain != nil:
		return h.spec.Service == shop.Checkout && h.plain.bypass(control) != ""
	case control == h.w.o.Params.Control:
		return h.open
	}
	return h.engine.IsOpen(control, h.spec.Service, h.clock.Now())
}

// Allow implements shop.Host.
func (h *host) Allow(control string, amount model.Money) bool {
	if h.w.plain != nil {
		return h.plain.allows(control, amount)
	}
	ok, _ := h.engine.Allow(control, h.spec.Service, amount, h.clock.Now())
	return ok
}

// jitter draws a duration from a stream, in whole milliseconds.
func (w *World) jitter(stream string, least, most time.Duration) time.Duration {
	ms := w.k.Stream(stream).Between(least.Milliseconds(), most.Milliseconds())
	return time.Duration(ms) * time.Millisecond
}
