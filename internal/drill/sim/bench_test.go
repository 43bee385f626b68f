package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// hour is a bad one: a dead dependency, a partition, restarts, sheds, bypasses and
// a push, with the ladder's machine at work.
func hour(b *testing.B, hosts int) {
	for b.Loop() {
		w := newWorld(b, Options{Seed: 1, Hosts: hosts, Controller: true})
		w.inject(b, 5*time.Minute, faults.PaymentRiskDown)
		w.inject(b, 6*time.Minute, faults.FlagsPartition)
		w.take(b, 6*time.Minute+30*time.Second, templates.Ines)
		w.use(b, 7*time.Minute, templates.Ines, shed(2), nil)
		w.use(b, 8*time.Minute, templates.Ines, bypass(), nil)
		w.inject(b, 9*time.Minute, faults.AutoHeal)
		w.push(b, 10*time.Minute, templates.Ines, "git")
		w.clear(b, 15*time.Minute, faults.FlagsPartition)
		w.use(b, 25*time.Minute, templates.Ines, bypass(), nil)
		w.clear(b, 35*time.Minute, faults.PaymentRiskDown)
		w.use(b, 50*time.Minute, templates.Ines, decisions.Ask{Right: "recover", Scope: shop.Edge, Tier: decisions.NextTier, Reason: "calm again"}, nil)
		w.Advance(w.at(time.Hour))
		f := w.Facts()
		if len(f.Live) == 0 || f.UnscoredCents() == 0 && hosts <= BypassUpTo {
			b.Fatalf("nothing has happened: %d live, %d cents", len(f.Live), f.UnscoredCents())
		}
	}
	b.ReportMetric(peakMiB(b), "peak-MiB")
}

func BenchmarkHour60(b *testing.B)    { hour(b, 60) }
func BenchmarkHour200(b *testing.B)   { hour(b, 200) }
func BenchmarkHour10000(b *testing.B) { hour(b, 10_000) }

// peakMiB is the highest resident size of this process so far.
func peakMiB(b *testing.B) float64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	return 0
}
