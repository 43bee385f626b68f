package fleet_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
	promclient "github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	prom "github.com/prometheus/common/model"
)

// scrape reads what WriteMetrics prints with Prometheus's own parser.
func scrape(t *testing.T, reports ...model.Report) map[string]*dto.MetricFamily {
	t.Helper()
	all := map[string]*dto.MetricFamily{}
	for _, r := range reports {
		var text bytes.Buffer
		if err := fleet.WriteMetrics(&text, r); err != nil {
			t.Fatal(err)
		}
		parser := expfmt.NewTextParser(prom.UTF8Validation)
		families, err := parser.TextToMetricFamilies(&text)
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range families {
			if all[name] == nil {
				all[name] = f
			} else {
				all[name].Metric = append(all[name].Metric, f.Metric...)
			}
		}
	}
	return all
}

func TestMetricsAreReadBackByPrometheussOwnParser(t *testing.T) {
	r := report("checkout-01", shedID, bypassID)
	r.State = "a \"quoted\" \\ state\nof two lines \xff"
	got := scrape(t, r)
	count := map[string]int{}
	for name, f := range got {
		count[name] = len(f.Metric)
		if f.GetType() != dto.MetricType_GAUGE {
			t.Errorf("%s is a %s", name, f.GetType())
		}
	}
	want := map[string]int{fleet.MetricPosture: 1, fleet.MetricLive: 2, fleet.MetricReport: 1, fleet.MetricState: 1, fleet.MetricSourceAge: 2}
	if !cmp.Equal(count, want) {
		t.Errorf("series are %v, want %v", count, want)
	}
	labels := map[string]string{}
	for _, l := range got[fleet.MetricState].Metric[0].Label {
		labels[l.GetName()] = l.GetValue()
	}
	if !cmp.Equal(labels, map[string]string{"fleet": "shop", "host": "checkout-01", "state": "a \"quoted\" \\ state\nof two lines \ufffd"}) {
		t.Errorf("labels are %q", labels)
	}
	if at := got[fleet.MetricReport].Metric[0].GetGauge().GetValue(); at != float64(t0.Unix()) {
		t.Errorf("made at %v", at)
	}
}

// prometheus answers instant queries for one metric of one fleet, and for
// timestamp() of it, from scraped samples: evaluated at its own time, scraped
// twenty seconds before.
type prometheus struct {
	families map[string]*dto.MetricFamily
	now      time.Time
	warning  string
	status   int
	asked    []string
}

var selector = regexp.MustCompile(`^(timestamp\()?(\w+)\{fleet="shop"\}\)?$`)

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked = append(p.asked, r.FormValue("query")+" at "+r.FormValue("time"))
	m := selector.FindStringSubmatch(r.FormValue("query"))
	if m == nil || p.status != 0 {
		w.WriteHeader(max(p.status, http.StatusNotImplemented))
		return
	}
	result := []map[string]any{}
	for _, s := range p.families[m[2]].GetMetric() {
		labels := map[string]string{"instance": "127.0.0.1:1", "job": "ic"}
		for _, l := range s.Label {
			labels[l.GetName()] = l.GetValue()
		}
		value := s.GetGauge().GetValue()
		if m[1] != "" {
			value = float64(p.now.Add(-20 * time.Second).Unix())
		} else {
			labels["__name__"] = m[2]
		}
		result = append(result, map[string]any{"metric": labels, "value": []any{p.now.Unix(), strconv.FormatFloat(value, 'f', -1, 64)}})
	}
	answer := map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}}
	if p.warning != "" {
		answer["warnings"] = []string{p.warning}
	}
	json.NewEncoder(w).Encode(answer)
}

func (p *prometheus) api(t *testing.T) promapi.API {
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	client, err := promclient.NewClient(promclient.Config{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return promapi.NewAPI(client)
}

func TestSkewSeenThroughPrometheusIsTheSkewSeenDirectly(t *testing.T) {
	a, b := report("a", shedID), report("b")
	lying := report("c", shedID)
	lying.Posture = report("c").Posture
	foreign := report("z", bypassID) // not in the inventory
	p := &prometheus{families: scrape(t, a, b, lying, foreign), now: t0.Add(time.Hour)}
	inv := fleet.Inventory{}
	for _, h := range []string{"a", "b", "c", "d"} {
		inv.Hosts = append(inv.Hosts, fleet.Host{Name: h, Services: []string{"checkout"}})
	}
	views, err := fleet.FromPrometheus(t.Context(), p.api(t), inv, options())
	if err != nil {
		t.Fatal(err)
	}
	if got := views[0].Report; got == nil || !cmp.Equal(got.Live, a.Live) || got.Posture != a.Posture || got.State != "ok" ||
		!got.At.Equal(a.At) || !cmp.Equal(got.Sources, a.Sources) || got.Host != "a" || got.Fleet != "shop" || got.V != 1 {
		t.Errorf("the report of a is %+v, want as much as the metrics say of %+v", got, a)
	}
	// Prometheus is an hour ahead of us; its scrape is twenty seconds old.
	if want := t0.Add(-20 * time.Second); !views[0].SeenAt.Equal(want) || views[0].Via != fleet.ViaPrometheus {
		t.Errorf("a was seen at %s via %s, want %s", views[0].SeenAt, views[0].Via, want)
	}
	got := fleet.Skew([]model.Issued{shed("*")}, views, 0, t0)
	states := []fleet.HostState{got.Hosts[0].State, got.Hosts[1].State, got.Hosts[2].State, got.Hosts[3].State}
	if want := []fleet.HostState{fleet.HostEffective, fleet.HostLacking, fleet.HostUnknown, fleet.HostUnreachable}; !cmp.Equal(states, want) {
		t.Errorf("states are %v, want %v: %+v", states, want, got)
	}
	for _, q := range p.asked[1:] {
		if !strings.HasSuffix(q, strconv.FormatInt(p.now.Unix(), 10)) {
			t.Errorf("%s: not evaluated at the time of the first query", q)
		}
	}
}

func TestAPartialAnswerIsSaidAndKeepsWhatItHas(t *testing.T) {
	p := &prometheus{families: scrape(t, report("a")), now: t0, warning: "a store is\x1b down"}
	inv := fleet.Inventory{Hosts: []fleet.Host{{Name: "a"}, {Name: "b"}}}
	views, err := fleet.FromPrometheus(t.Context(), p.api(t), inv, options())
	if err == nil || !strings.Contains(err.Error(), `a store is\x1b down`) {
		t.Errorf("error is %v", err)
	}
	if views[0].Report == nil || views[1].Reachable || !strings.Contains(views[1].Detail, "in part") {
		t.Errorf("views are %+v", views)
	}
}

func TestAPrometheusThatFailsMakesNoHostReachable(t *testing.T) {
	p := &prometheus{families: scrape(t, report("a")), now: t0, status: http.StatusInternalServerError}
	views, err := fleet.FromPrometheus(t.Context(), p.api(t), fleet.Inventory{Hosts: []fleet.Host{{Name: "a"}}}, options())
	if err == nil || views[0].Reachable || views[0].Detail == "" || strings.Contains(views[0].Detail, "no fresh sample") {
		t.Errorf("views are %+v, %v", views, err)
	}
}
