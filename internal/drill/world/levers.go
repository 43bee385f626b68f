package world

import (
	"context"
	"math/rand/v2"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/metrics"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/drill/shop"
)

// levers are how this world does each fault. What belongs to the load model is
// done on the loop that owns it.
func (w *World) levers() map[string]faults.Lever {
	onLoop := func(do func()) func(context.Context) error {
		return func(ctx context.Context) error { return w.onLoop(ctx, do) }
	}
	return map[string]faults.Lever{
		faults.PaymentRiskDown: {
			Inject: onLoop(func() { w.shop.SetRiskDown(true) }),
			Clear:  onLoop(func() { w.shop.SetRiskDown(false) }),
		},
		faults.CatalogSlow: {
			Inject: onLoop(func() { w.shop.SetCatalogSlow(true) }),
			Clear:  onLoop(func() { w.shop.SetCatalogSlow(false) }),
		},
		faults.LoadSurge: {
			Inject: onLoop(func() { w.shop.SetDemand(w.shop.Surge()) }),
			Clear:  onLoop(func() { w.shop.SetDemand(designLoad) }),
		},
		faults.FlagsPartition: {
			Inject: func(context.Context) error { return w.proxies[1].Cut(proxy.Blackhole) },
			Clear:  func(context.Context) error { return w.proxies[1].Heal() },
		},
		faults.FlagsDown: {
			Inject: func(context.Context) error { w.etcd.Kill(); return nil },
			Clear:  w.etcd.Restart,
		},
		faults.AutoHeal: {Inject: onLoop(w.heal)},
		faults.PrometheusBlind: {
			Inject: func(context.Context) error { w.prometheus.SetSight(metrics.Blind); return nil },
			Clear:  func(context.Context) error { w.prometheus.SetSight(metrics.Seeing); return nil },
		},
		faults.ClockAhead: {
			Inject: func(context.Context) error { w.ahead().setAhead(faults.AheadBy); return nil },
			Clear:  func(context.Context) error { w.ahead().setAhead(0); return nil },
		},
		faults.PipelineStuck: {
			Inject: func(context.Context) error { w.pipeline.SetStuck(true); return nil },
			Clear:  func(context.Context) error { w.pipeline.SetStuck(false); return nil },
		},
	}
}

// designLoad is the demand that the shop was built for, in parts per million.
const designLoad = 1_000_000

// heal restarts hosts as a platform does that takes them for unhealthy: those of
// checkout, which fail, and of both halves.
func (w *World) heal() {
	picked := rand.New(rand.NewPCG(w.o.Seed, uint64(w.clock.At().Unix()))).Perm(len(w.nodes))
	left := faults.HealedHosts
	for _, unhealthyFirst := range []bool{true, false} {
		for _, i := range picked {
			n := w.nodes[i]
			if left == 0 {
				return
			}
			if (n.spec.Service == shop.Checkout) == unhealthyFirst {
				w.restart(n.spec.Name, w.pipeline.EnvOf(n.spec.Name))
				left--
			}
		}
	}
}

// ahead is the host whose clock goes wrong: one that a bypass concerns.
func (w *World) ahead() *node {
	for _, n := range w.nodes {
		if n.spec.Service == shop.Checkout {
			return n
		}
	}
	return w.nodes[0]
}
