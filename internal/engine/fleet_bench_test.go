package engine_test

import (
	"crypto/ed25519"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"golang.org/x/sys/unix"
)

// BenchmarkTenThousand gives one shed to 10,000 hosts in one process that keep what
// they know in memory, and waits until all obey it and have written it down. Each
// verifies for itself. "cpu-ms/fleet" is the time of all processors together, which a
// busy machine does not change; "x-verify" is it in that of as many bare Ed25519
// verifications in the same run.
func BenchmarkTenThousand(b *testing.B) {
	const fleetSize = 10_000
	model := newHost(b) // the policy of all
	hosts := make([]*host, fleetSize)
	for i := range hosts {
		hosts[i] = &host{t: b, name: fmt.Sprintf("host-%05d", i), clock: model.clock, shop: model.shop, folder: engine.NewMemory()}
		hosts[i].start()
	}
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		b.Fatal(err)
	}
	workers := runtime.GOMAXPROCS(0)
	var taking, took, verifying time.Duration
	for b.Loop() {
		id, token := model.make(shed(2))
		from := processorTime(b)
		taking += inParallel(func(i int) {
			if r := hosts[i].offer(token); !r.New || r.ID != id {
				b.Error(r)
			}
		}, fleetSize, workers)
		took += processorTime(b) - from
		message := []byte(token)
		signature := ed25519.Sign(private, message)
		from = processorTime(b)
		inParallel(func(int) {
			if !ed25519.Verify(public, message, signature) {
				b.Error("a signature does not verify")
			}
		}, fleetSize, workers)
		verifying += processorTime(b) - from
	}
	b.ReportMetric(float64(taking.Milliseconds())/float64(b.N), "ms/fleet")
	b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "cpu-ms/fleet")
	b.ReportMetric(float64(took)/float64(verifying), "x-verify")
	b.ReportMetric(0, "ns/op")
}

// processorTime is what this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
