package sim

import (
	"context"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/metrics"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// lever is a fault whose way in and way out are one function of a truth.
func (w *World) lever(name string, set func(on bool) error) faults.Lever {
	do := func(on bool, what string) func(context.Context) error {
		return func(context.Context) error {
			w.k.Log("faults", what, kernel.Word("name", name))
			return set(on)
		}
	}
	return faults.Lever{Inject: do(true, "injected"), Clear: do(false, "cleared")}
}

// simple is a lever that cannot fail.
func simple(set func(on bool)) func(bool) error {
	return func(on bool) error {
		set(on)
		return nil
	}
}

// levers are how this world does each fault.
func (w *World) levers() map[string]faults.Lever {
	sets := map[string]func(bool) error{
		faults.PaymentRiskDown:   simple(func(on bool) { w.shop.SetRiskDown(on) }),
		faults.CatalogSlow:       simple(func(on bool) { w.shop.SetCatalogSlow(on) }),
		faults.LoadSurge:         simple(w.surge),
		faults.FlagsPartition:    simple(func(on bool) { w.flags.partitioned = on }),
		faults.FlagsDown:         simple(func(on bool) { w.flags.down = on }),
		faults.FlagsSlow:         simple(func(on bool) { w.flags.slow = on }),
		faults.PrometheusBlind:   simple(w.sight(metrics.Blind)),
		faults.PrometheusHollow:  simple(w.sight(metrics.Hollow)),
		faults.PrometheusPartial: simple(w.sight(metrics.Partial)),
		faults.ClockAhead:        simple(func(on bool) { w.skew(on, faults.AheadBy) }),
		faults.ClockBehind:       simple(func(on bool) { w.skew(on, -faults.AheadBy) }),
		faults.HostsPaused:       simple(w.pauseHosts),
		faults.PipelineStuck:     simple(func(on bool) { w.deploy.stuck = on }),
		faults.PipelineDenied:    simple(func(on bool) { w.deploy.denied = on }),
		faults.GitOpsReverts:     simple(func(on bool) { w.deploy.reverting = on }),
		faults.ConsoleDiskFull:   simple(func(on bool) { w.diskFull.Store(on) }),
		faults.CommanderAbsent:   func(on bool) error { return w.setAbsent(on, templates.Ines) },
		faults.ApproverAbsent: func(on bool) error {
			return w.setAbsent(on, templates.Fiona, templates.Priya, templates.Ravi)
		},
	}
	out := make(map[string]faults.Lever, len(sets)+1)
	for name, set := range sets {
		out[name] = w.lever(name, set)
	}
	heal := w.lever(faults.AutoHeal, simple(func(bool) { w.heal() }))
	out[faults.AutoHeal] = faults.Lever{Inject: heal.Inject}
	return out
}

func (w *World) surge(on bool) {
	if on {
		w.shop.SetDemand(w.shop.Surge())
		return
	}
	w.shop.SetDemand(designLoad)
}

func (w *World) sight(s metrics.Sight) func(bool) {
	return func(on bool) {
		if !on {
			s := metrics.Seeing
			w.prom.SetSight(s)
			return
		}
		w.prom.SetSight(s)
	}
}

// skew sets the wall clock of the host whose clock goes wrong: one that a bypass
// concerns.
func (w *World) skew(on bool, by time.Duration) {
	h := w.firstOf(shop.Checkout)
	if !on {
		by = 0
	}
	h.clock.SetSkew(by)
	h.settle()
}

func (w *World) firstOf(service string) *host {
	for _, h := range w.hosts {
		if h.spec.Service == service {
			return h
		}
	}
	return w.hosts[0]
}

// pauseHosts stops the first machines of checkout.
func (w *World) pauseHosts(on bool) {
	left := faults.PausedHosts
	for _, h := range w.hosts {
		if h.spec.Service != shop.Checkout || left == 0 {
			continue
		}
		left--
		if on {
			h.pause()
		} else {
			h.resume()
		}
	}
}

// heal restarts hosts as a platform does that takes them for unhealthy: those of
// checkout, which fail, and of both halves.
func (w *World) heal() {
	stream := w.k.Stream("heal")
	var pool []*host
	for _, h := range w.hosts {
		if h.spec.Service == shop.Checkout {
			pool = append(pool, h)
		}
	}
	for range min(faults.HealedHosts, len(pool)) {
		at := stream.Below(int64(len(pool)))
		pool[at].restart()
		pool = append(pool[:at], pool[at+1:]...)
	}
}

func (w *World) faultViews() []incident.FaultView {
	var out []incident.FaultView
	for _, s := range w.faults.List() {
		out = append(out, incident.FaultView{Name: s.Name, Text: s.Description, Active: s.Active})
	}
	return out
}

func (w *World) setFault(ctx context.Context, name string, clear bool) error {
	defer w.enter(ctx)()
	if clear {
		return w.faults.Clear(ctx, name)
	}
	return w.faults.Inject(ctx, name)
}
