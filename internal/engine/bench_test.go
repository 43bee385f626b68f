package engine_test

import (
	"crypto/ed25519"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
)

// sheds signs n sheds that do not end one another.
func sheds(b *testing.B, h *host, n int) []string {
	b.Helper()
	out := make([]string, n)
	for i := range out {
		_, out[i] = h.make(shed(1 + i%4))
	}
	return out
}

// BenchmarkAccept takes a shed on a host in memory: verify, judge, obey. The
// metric "verifies" is its time in bare Ed25519 verifications on this machine.
func BenchmarkAccept(b *testing.B) {
	const each = 64 // statements of one host, as in an incident
	h := newHost(b)
	tokens := sheds(b, h, each)
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	message := []byte(tokens[0])
	signature := ed25519.Sign(private, message)
	var accepting, verifying []time.Duration // medians of both: the machine may be busy
	n := 0
	for b.Loop() {
		if n%each == 0 {
			h.folder = nil
			h.start()
		}
		from := time.Now()
		if r := h.offer(tokens[n%each]); !r.New {
			b.Fatal(r)
		}
		accepting = append(accepting, time.Since(from))
		from = time.Now()
		if !ed25519.Verify(public, message, signature) {
			b.Fatal("a signature does not verify")
		}
		verifying = append(verifying, time.Since(from))
		n++
	}
	slices.Sort(accepting)
	slices.Sort(verifying)
	b.ReportMetric(float64(accepting[n/2].Nanoseconds()), "ns/accept")
	b.ReportMetric(float64(accepting[n/2])/float64(verifying[n/2]), "verifies")
}

// BenchmarkOfferKnown is what a full read costs for each token that is held.
func BenchmarkOfferKnown(b *testing.B) {
	h := newHost(b)
	_, token := h.make(shed(2))
	h.offer(token)
	for b.Loop() {
		h.offer(token)
	}
}

func BenchmarkAllowClosed(b *testing.B) {
	h := newHost(b)
	now := h.clock.Now()
	for b.Loop() {
		if ok, _ := h.Allow("risk", "checkout", usd(100), now); ok {
			b.Fatal("it is open")
		}
	}
}

// BenchmarkAllowOpen spends a budget that does not end; a block is reserved on
// every 16th item.
func BenchmarkAllowOpen(b *testing.B) {
	h := newHost(b)
	h.shop.bypass.HostCount, h.shop.bypass.HostTotal = 1<<40, usd(1e12)
	h.shop.bypass.Total = usd(1e12)
	h.start()
	d := open(10*time.Minute, start)
	d.Caps.HostCount, d.Caps.HostTotal, d.Caps.Total = 1<<40, usd(1e12), usd(1e12)
	h.take(d)
	now := h.clock.Now()
	for b.Loop() {
		if ok, code := h.Allow("risk", "checkout", usd(0), now); !ok {
			b.Fatal(code)
		}
	}
}

func BenchmarkTier(b *testing.B) {
	h := newHost(b)
	for _, token := range sheds(b, h, 50) {
		h.offer(token)
	}
	now := h.clock.Now()
	for b.Loop() {
		if h.Tier("checkout", now) != 4 {
			b.Fatal("another tier")
		}
	}
}

// BenchmarkFleetPersists gives one shed to 1,000 hosts with folders on disk, 64
// at a time, and waits until all have it durably. "ns/replace" is a bare durable
// replacement of a file of that size (create, write, fsync, rename, fsync of the
// folder) under the same conditions.
func BenchmarkFleetPersists(b *testing.B) {
	const fleetSize, atATime = 1000, 64
	base := b.TempDir()
	hosts := make([]*host, fleetSize)
	for i := range hosts {
		h := &host{t: b, name: fmt.Sprintf("host-%04d", i), clock: newClock(), shop: newShop(), ids: &ids{n: i}}
		dir, err := engine.OpenDir(filepath.Join(base, h.name))
		if err != nil {
			b.Fatal(err)
		}
		h.folder = dir
		h.start()
		hosts[i] = h
	}
	gen := &ids{n: 1 << 20}
	var taking, replacing time.Duration
	for b.Loop() {
		token := sign(b, draft(gen.next(), shed(2), start), "ada")
		taking += inParallel(func(i int) {
			if r := hosts[i].offer(token); !r.New {
				b.Error(r)
			}
		}, fleetSize, atATime)
		replacing += inParallel(func(i int) {
			if err := replace(hosts[i].folder, []byte(token)); err != nil {
				b.Error(err)
			}
		}, fleetSize, atATime)
	}
	b.ReportMetric(float64(taking.Milliseconds())/float64(b.N), "ms/fleet")
	b.ReportMetric(float64(replacing.Milliseconds())/float64(b.N), "ms/replace")
	b.ReportMetric(0, "ns/op")
}

func inParallel(do func(i int), n, workers int) time.Duration {
	from := time.Now()
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < n; i += workers {
				do(i)
			}
		})
	}
	all.Wait()
	return time.Since(from)
}

func replace(folder engine.Folder, data []byte) error {
	f, err := folder.Create("bench.tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := folder.Rename("bench.tmp", "bench"); err != nil {
		return err
	}
	return folder.Sync()
}
