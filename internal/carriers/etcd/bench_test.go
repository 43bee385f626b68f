package etcd_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"github.com/degradedmode/ic/internal/carriers/etcd"
)

// BenchmarkPutUntilSeen is one write on the way to one watcher: what delivery
// costs before any host has verified or stored a thing.
func BenchmarkPutUntilSeen(b *testing.B) {
	c := open(b, options(shared.addr, "bench"))
	w := watch(b, c)
	w.until(b, "connected", func() bool { return w.status.Connected })
	for b.Loop() {
		id := newID()
		put(b, c, id)
		w.until(b, "the token", w.has(id))
	}
}

// BenchmarkPut is the write alone, with a token as long as a shed's.
func BenchmarkPut(b *testing.B) {
	c := open(b, options(shared.addr, "bench-put"))
	token := strings.Repeat("x", 1000)
	var took []time.Duration
	for b.Loop() {
		before := time.Now()
		if err := c.Put(b.Context(), newID(), token); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(before))
	}
	report(b, "put", took)
}

// watchers is the fleet of the claim.
const watchers = 1000

// BenchmarkThousandWatches is the time from the begin of a put to its arrival at
// each of 1,000 watches, over all of them: -benchtime 20x is 20,000 arrivals. The
// claim, p99 within 20 ms, is about what etcd's gRPC proxies make of a fleet: few
// connections. With one for each, the clients of this one process are most of it.
func BenchmarkThousandWatches(b *testing.B) {
	for _, connections := range []int{20, watchers} {
		b.Run(fmt.Sprintf("connections-%d", connections), func(b *testing.B) {
			s := newSpread(b, connections)
			s.round(b) // every watch is established
			var took []time.Duration
			for b.Loop() {
				took = append(took, s.round(b)...)
			}
			report(b, "seen", took)
		})
	}
}

type arrival struct {
	id string
	at time.Time
}

// spread is 1,000 watches and whoever puts.
type spread struct {
	writer   *etcd.Carrier
	arrivals chan arrival
}

func newSpread(b *testing.B, connections int) *spread {
	o := options(shared.addr, fmt.Sprintf("bench-watches-%d", connections))
	o.FullReadEvery = time.Hour
	s := &spread{writer: open(b, o), arrivals: make(chan arrival, watchers)}
	shares := make([]*etcd.Carrier, connections)
	for i := range shares {
		shares[i] = open(b, o)
	}
	var connected atomic.Int32
	ready := make(chan struct{})
	for i := range watchers {
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			shares[i%connections].Watch(ctx, func(arrived []etcd.Arrival) {
				for _, a := range arrived {
					s.arrivals <- arrival{a.ID, time.Now()}
				}
			}, func(status carriers.Status) {
				if status.Connected && connected.Add(1) == watchers {
					close(ready)
				}
			})
		}()
		b.Cleanup(func() { cancel(); <-done })
	}
	select {
	case <-ready:
	case <-time.After(time.Minute):
		b.Fatalf("%d of %d watches are connected", connected.Load(), watchers)
	}
	return s
}

// round puts one directive and waits until every watch has it.
func (s *spread) round(b *testing.B) (took []time.Duration) {
	id, before := newID(), time.Now()
	if err := s.writer.Put(b.Context(), id, "ic1.x.x"); err != nil {
		b.Fatal(err)
	}
	for range watchers {
		select {
		case a := <-s.arrivals:
			if a.id != id {
				b.Fatalf("%s arrived late", a.id)
			}
			took = append(took, a.at.Sub(before))
		case <-time.After(etcd.ReadLimit):
			b.Fatalf("%d of %d have it", len(took), watchers)
		}
	}
	return took
}

// report gives the median and the 99th percentile in milliseconds.
func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share int) float64 { return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000 }
	b.ReportMetric(at(50), what+"-p50-ms")
	b.ReportMetric(at(99), what+"-p99-ms")
}
