package fallback_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host/fallback"
	"github.com/degradedmode/ic/host/metrics"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func counters(t testing.TB, dependencies ...string) *fallback.Counters {
	t.Helper()
	c, err := fallback.New(fallback.Config{Dependencies: dependencies})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(t testing.TB, c *fallback.Counters) string {
	t.Helper()
	var out bytes.Buffer
	if err := metrics.Write(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// says looks for a line.
func says(text, line string) bool { return strings.Contains(text, "\n"+line+"\n") }

func TestEachFallbackIsCountedByDependencyAndReason(t *testing.T) {
	c := counters(t, "reviews")
	c.Count("reviews", fallback.Timeout)
	c.Stale("reviews", fallback.Timeout, 2*time.Second)
	c.Count("stock", fallback.CircuitOpen)
	c.Count("stock", "a reason of somebody's own")
	got := text(t, c)
	for _, line := range []string{
		`ic_fallback_total{dependency="reviews",reason="timeout"} 2`,
		`ic_fallback_total{dependency="reviews",reason="error"} 0`,
		`ic_fallback_total{dependency="reviews",reason="bulkhead"} 0`,
		`ic_fallback_total{dependency="stock",reason="circuit_open"} 1`,
		`ic_fallback_total{dependency="stock",reason="other"} 1`,
	} {
		if !says(got, line) {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
	if strings.Contains(got, `reviews",reason="other"`) || strings.Contains(got, `dependency="other"`) {
		t.Errorf("other is shown although nothing is other:\n%s", got)
	}
}

func TestAgesAreAHistogramThatPrometheusReads(t *testing.T) {
	c := counters(t)
	for _, age := range []time.Duration{-time.Second, time.Second, 5001 * time.Millisecond, 5 * time.Hour} {
		c.Stale("reviews", fallback.Error, age)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	h := families[fallback.MetricStaleAge].Metric[0].Histogram
	if h.GetSampleCount() != 4 || h.GetSampleSum() != 18006.001 {
		t.Errorf("count %d, sum %g", h.GetSampleCount(), h.GetSampleSum())
	}
	want := map[float64]uint64{1: 2, 5: 2, 30: 3, 14400: 3}
	for _, b := range h.Bucket {
		if n, ok := want[b.GetUpperBound()]; ok && n != b.GetCumulativeCount() {
			t.Errorf("%d within %g s, want %d", b.GetCumulativeCount(), b.GetUpperBound(), n)
		}
	}
}

func TestLabelsAreBoundedWhateverItIsCalledWith(t *testing.T) {
	c := counters(t)
	const calls = 10 * fallback.MaxDependencies
	for i := range calls {
		c.Count(fmt.Sprintf("user-%d", i), fallback.Reason(fmt.Sprintf("reason-%d", i)))
	}
	for _, name := range []string{"", "a b", "a\nb", strings.Repeat("x", 65), "other", "\xff"} {
		c.Stale(name, fallback.Error, time.Second)
	}
	got := text(t, c)
	// Per dependency: four reasons and other. Of the other one: other and error, and
	// the one histogram that has ages.
	const ages = 9 + 2
	if lines := strings.Count("\n"+got, "\nic_"); lines != 5*fallback.MaxDependencies+2+ages {
		t.Errorf("%d lines", lines)
	}
	if rest := fmt.Sprintf(`ic_fallback_total{dependency="other",reason="other"} %d`, calls-fallback.MaxDependencies); !says(got, rest) {
		t.Errorf("%s is missing", rest)
	}
	if !says(got, `ic_fallback_total{dependency="other",reason="error"} 6`) {
		t.Error("names that cannot be labels are not counted as other")
	}
}

func TestWhatCannotBeALabelIsNotDeclared(t *testing.T) {
	tooMany := make([]string, fallback.MaxDependencies+1)
	for i := range tooMany {
		tooMany[i] = fmt.Sprint(i)
	}
	for _, names := range [][]string{{""}, {"a b"}, {fallback.Other}, tooMany} {
		if _, err := fallback.New(fallback.Config{Dependencies: names}); err == nil {
			t.Errorf("%d names, the first %q, are taken", len(names), names[0])
		}
	}
}

func TestAnErrorSaysWhichReasonItIs(t *testing.T) {
	late := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for err, want := range map[error]fallback.Reason{
		fmt.Errorf("call reviews: %w", context.DeadlineExceeded): fallback.Timeout,
		fmt.Errorf("call reviews: %w", late):                     fallback.Timeout,
		fmt.Errorf("call reviews: %w", fallback.ErrCircuitOpen):  fallback.CircuitOpen,
		fmt.Errorf("call reviews: %w", fallback.ErrBulkhead):     fallback.Bulkhead,
		errors.New("500"): fallback.Error,
		errors.Join(fallback.ErrBulkhead, context.DeadlineExceeded):       fallback.Bulkhead,
		fmt.Errorf("the caller has gone: %w", context.Canceled):           fallback.Error,
		&net.DNSError{Err: "no answer", Name: "reviews", IsTimeout: true}: fallback.Timeout,
	} {
		if got := fallback.ReasonOf(err); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
}

func TestCountingAtTheSameTimeLosesNothing(t *testing.T) {
	c := counters(t, "reviews")
	const each, writers = 500, 8
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range each {
				c.Stale("reviews", fallback.Error, time.Second)
				c.Count(fmt.Sprintf("d-%d", (w*each+i)%100), fallback.Timeout)
				if i%50 == 0 {
					c.Metrics()
				}
			}
		})
	}
	wait.Wait()
	got := text(t, c)
	total := fmt.Sprint(each * writers)
	if !says(got, `ic_fallback_total{dependency="reviews",reason="error"} `+total) ||
		!says(got, `ic_fallback_stale_age_seconds_count{dependency="reviews"} `+total) {
		t.Errorf("something is lost:\n%s", got)
	}
	if n := strings.Count(got, `reason="timeout"`); n > fallback.MaxDependencies+1 {
		t.Errorf("%d dependencies are told apart", n-1)
	}
	counted := 0
	for line := range strings.Lines(got) {
		if n := 0; strings.Contains(line, `reason="timeout"`) {
			if _, err := fmt.Sscan(line[strings.Index(line, "} ")+2:], &n); err != nil {
				t.Fatal(err)
			}
			counted += n
		}
	}
	if counted != each*writers {
		t.Errorf("%d timeouts of %d", counted, each*writers)
	}
}

func BenchmarkCount(b *testing.B) {
	c := counters(b, "reviews")
	b.ReportAllocs()
	for b.Loop() {
		c.Count("reviews", fallback.Timeout)
	}
}

func BenchmarkStale(b *testing.B) {
	c := counters(b, "reviews")
	b.ReportAllocs()
	for b.Loop() {
		c.Stale("reviews", fallback.Timeout, time.Minute)
	}
}

func ExampleCounters() {
	counters, err := fallback.New(fallback.Config{Dependencies: []string{"recommendations"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	failed := fmt.Errorf("call recommendations: %w", context.DeadlineExceeded)
	counters.Count("recommendations", fallback.ReasonOf(failed))
	_ = metrics.Write(os.Stdout, counters) // or metrics.Handler(counters) on /metrics
	// Output:
	// # HELP ic_fallback_stale_age_seconds Age of what was served instead of an answer, in seconds.
	// # TYPE ic_fallback_stale_age_seconds histogram
	// # HELP ic_fallback_total Fallbacks served instead of an answer, by dependency and reason.
	// # TYPE ic_fallback_total counter
	// ic_fallback_total{dependency="recommendations",reason="timeout"} 1
	// ic_fallback_total{dependency="recommendations",reason="error"} 0
	// ic_fallback_total{dependency="recommendations",reason="circuit_open"} 0
	// ic_fallback_total{dependency="recommendations",reason="bulkhead"} 0
}
