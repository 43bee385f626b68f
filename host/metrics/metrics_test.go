package metrics_test

import (
	"math"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/degradedmode/ic/host/metrics"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

type fixed []metrics.Family

func (f fixed) Metrics() []metrics.Family { return f }

func gauge(name string, value float64, labels ...string) metrics.Family {
	return metrics.Family{Name: name, Help: "a\nb \\ c", Type: metrics.Gauge, Samples: []metrics.Sample{{Labels: labels, Value: value}}}
}

func TestPrometheusReadsWhatIsPrinted(t *testing.T) {
	hostile := "a\"b\\c\nd\xff"
	w := httptest.NewRecorder()
	metrics.Handler(fixed{gauge("ic_b", 1.5, "name", hostile, "other", "x")}, fixed{gauge("ic_a", math.Inf(1)), gauge("ic_b", -2)}).
		ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if got := w.Header().Get("Content-Type"); got != metrics.ContentType {
		t.Errorf("content type %q", got)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, w.Body)
	}
	b := families["ic_b"]
	if len(families) != 2 || len(b.Metric) != 2 {
		t.Fatalf("%d families:\n%s", len(families), w.Body)
	}
	if got := b.Metric[0].Label[0].GetValue(); got != "a\"b\\c\nd\ufffd" {
		t.Errorf("the label is read as %q", got)
	}
	if b.GetHelp() != "a\nb \\ c" || b.Metric[1].Gauge.GetValue() != -2 || !math.IsInf(families["ic_a"].Metric[0].Gauge.GetValue(), 1) {
		t.Errorf("read back:\n%v", families)
	}
}

func ExampleWrite() {
	share := fixed{{
		Name: "ic_dimmer_share", Help: "Share of requests with optional work.", Type: metrics.Gauge,
		Samples: []metrics.Sample{{Labels: []string{"dimmer", "recommendations"}, Value: 0.35}},
	}}
	_ = metrics.Write(os.Stdout, share)
	// Output:
	// # HELP ic_dimmer_share Share of requests with optional work.
	// # TYPE ic_dimmer_share gauge
	// ic_dimmer_share{dimmer="recommendations"} 0.35
}
