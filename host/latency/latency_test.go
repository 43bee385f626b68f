package latency_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host/latency"
)

func TestAQuantileIsNeverTooLowAndAtMostThreePercentTooHigh(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		var h latency.Histogram
		all := make([]time.Duration, 1+random.IntN(2000))
		for i := range all {
			all[i] = time.Duration(random.Int64N(int64(time.Millisecond) << random.IntN(16)))
			h.Observe(all[i])
		}
		slices.Sort(all)
		s := h.Take()
		for _, q := range []float64{0, 0.5, 0.95, 0.99, 1} {
			exact := all[max(0, int(float64(len(all))*q+0.9999999)-1)]
			got, ok := s.Quantile(q)
			if most := exact + exact*32/1000 + time.Microsecond; !ok || got < exact || got > most {
				t.Fatalf("round %d: quantile %g of %d is %s, exactly %s", round, q, len(all), got, exact)
			}
		}
	}
}

func TestExtremesHaveAPlace(t *testing.T) {
	for _, c := range []struct{ in, want time.Duration }{
		{-time.Second, 0}, {0, 0}, {1, time.Microsecond}, {31 * time.Microsecond, 31 * time.Microsecond},
		{32 * time.Microsecond, 32 * time.Microsecond}, {latency.Longest, latency.Longest}, {time.Hour, latency.Longest},
	} {
		var h latency.Histogram
		h.Observe(c.in)
		s := h.Take()
		got, ok := s.Quantile(0.95)
		if slack := c.want / 32; !ok || got < c.want || got > c.want+slack {
			t.Errorf("%s is read as %s (%v), want %s", c.in, got, ok, c.want)
		}
	}
}

func TestNothingCountedIsNoNumber(t *testing.T) {
	var h latency.Histogram
	s := h.Take()
	if d, ok := s.Quantile(0.95); ok {
		t.Errorf("the 95th percentile of nothing is %s", d)
	}
	h.Observe(time.Second)
	s = h.Take()
	for _, q := range []float64{-0.1, 1.1} {
		if d, ok := s.Quantile(q); ok {
			t.Errorf("quantile %g is %s", q, d)
		}
	}
	if h.Count() != 0 {
		t.Error("what was taken is still there")
	}
}

func TestEveryObservationCountsOnceWhileOthersTake(t *testing.T) {
	const each, writers = 2000, 4
	var h latency.Histogram
	var observing sync.WaitGroup
	for range writers {
		observing.Go(func() {
			for i := range each {
				h.Observe(time.Duration(i) * time.Millisecond)
			}
		})
	}
	done := make(chan struct{})
	go func() { observing.Wait(); close(done) }()
	var seen uint64
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		s := h.Take()
		seen += s.Count
	}
	if seen != each*writers || h.Count() != 0 {
		t.Errorf("%d of %d were seen, %d are left", seen, each*writers, h.Count())
	}
}

func BenchmarkObserve(b *testing.B) {
	var h latency.Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Observe(137 * time.Millisecond)
	}
}

func ExampleHistogram() {
	var h latency.Histogram
	for i := range 100 {
		h.Observe(time.Duration(i) * time.Millisecond)
	}
	s := h.Take() // and the next window begins
	p95, ok := s.Quantile(0.95)
	fmt.Println(s.Count, p95.Round(time.Millisecond), ok)
	// Output: 100 94ms true
}
