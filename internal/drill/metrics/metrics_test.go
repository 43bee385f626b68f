package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

var begins = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

func at(s int) time.Time { return begins.Add(time.Duration(s) * time.Second) }

// filled holds 10 minutes of two hosts, a sample every 5 s: host a counts 2 a
// second, host b 6; and a histogram with 90 of 100 below 0.1 s.
func filled(t *testing.T) (*Store, *API) {
	t.Helper()
	s := NewStore(2 * time.Hour)
	add := func(sec int, name string, v float64, pairs ...string) {
		if err := s.Append(at(sec), name, v, pairs...); err != nil {
			t.Fatal(err)
		}
	}
	for sec := 0; sec <= 600; sec += 5 {
		n := float64(sec)
		add(sec, "shop_requests_total", 2*n, "service", "checkout", "host", "a")
		add(sec, "shop_requests_total", 6*n, "service", "checkout", "host", "b")
		add(sec, "shop_cpu_share", 0.25, "host", "a")
		for le, share := range map[string]float64{"0.1": 90, "1": 99, "+Inf": 100} {
			add(sec, "shop_request_duration_seconds_bucket", share*n, "le", le)
		}
	}
	return s, NewAPI(s, func() time.Time { return at(600) })
}

// client reads as ic does.
func client(t *testing.T, address string, rt http.RoundTripper) promv1.API {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: address, RoundTripper: rt})
	if err != nil {
		t.Fatal(err)
	}
	return promv1.NewAPI(c)
}

func readers(t *testing.T, a *API) map[string]promv1.API {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return map[string]promv1.API{
		"over a socket":  client(t, server.URL, nil),
		"in the process": client(t, "http://drill.invalid", a),
	}
}

func TestClientGolangReadsInstantValues(t *testing.T) {
	_, a := filled(t)
	for how, c := range readers(t, a) {
		for query, want := range map[string]string{
			`sum(rate(shop_requests_total{service="checkout"}[1m]))`:                                    "{} => 8 @[%d]",
			`shop_requests_total{host=~"b|c"}`:                                                          `shop_requests_total{host="b", service="checkout"} => 3600 @[%d]`,
			`histogram_quantile(0.95, sum by (le) (rate(shop_request_duration_seconds_bucket[1m])))`:    "{} => 0.6 @[%d]",
			`shop_cpu_share{host!="a"}`:                                                                 "",
			`scalar(sum(shop_cpu_share)) > bool 0.2`:                                                    "scalar: 1 @[%d]",
			`max_over_time(shop_cpu_share[5m]) * 4 + Inf`:                                               `{host="a"} => +Inf @[%d]`,
			`shop_cpu_share / 0 - shop_cpu_share / 0`:                                                   `{host="a"} => NaN @[%d]`,
			`count({__name__=~"shop_.+"})`:                                                              "{} => 6 @[%d]",
			`avg_over_time(sum(rate(shop_requests_total[30s]))[2m:10s])`:                                "{} => 8 @[%d]",
			`timestamp(shop_cpu_share) - 1`:                                                             fmt.Sprintf(`{host="a"} => %d @[%%d]`, at(600).Unix()-1),
			`shop_requests_total{host="a"} offset 5m`:                                                   `shop_requests_total{host="a", service="checkout"} => 600 @[%d]`,
			`sum(shop_requests_total @ ` + fmt.Sprint(at(300).Unix()) + `)`:                             "{} => 2400 @[%d]",
			`label_replace(shop_cpu_share, "x", "$1 \"é", "host", "(.*)")`:                              `shop_cpu_share{host="a", x="a \"é"} => 0.25 @[%d]`,
			`shop_requests_total{host="b"} - on(service) shop_requests_total{host="a"} > 2000 < 2500.5`: `{service="checkout"} => 2400 @[%d]`,
		} {
			if strings.Contains(want, "%d") {
				want = fmt.Sprintf(want, at(600).Unix())
			}
			v, _, _, err := c.Query(t.Context(), query, at(600))
			if err != nil {
				t.Errorf("%s, %s: %v", how, query, err)
				continue
			}
			if got := v.String(); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", how, query, got, want)
			}
		}
	}
}

func TestClientGolangReadsRanges(t *testing.T) {
	_, a := filled(t)
	for how, c := range readers(t, a) {
		v, _, _, err := c.QueryRange(t.Context(), `sum by (service) (shop_requests_total)`,
			promv1.Range{Start: at(0), End: at(600), Step: 5 * time.Minute})
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		m := v.(model.Matrix)
		if len(m) != 1 || m[0].Metric["service"] != "checkout" || len(m[0].Values) != 3 {
			t.Fatalf("%s: %v", how, v)
		}
		for i, want := range []float64{0, 2400, 4800} {
			got := m[0].Values[i]
			if float64(got.Value) != want || !got.Timestamp.Time().Equal(at(300*i)) {
				t.Errorf("%s: point %d is %v, want %v at %v", how, i, got, want, at(300*i))
			}
		}
		empty, _, _, err := c.QueryRange(t.Context(), `nothing_here`, promv1.Range{Start: at(0), End: at(60), Step: time.Second})
		if err != nil || len(empty.(model.Matrix)) != 0 {
			t.Errorf("%s: an empty range is %v, %v", how, empty, err)
		}
	}
}

func TestClientGolangReadsLabelsAndSeries(t *testing.T) {
	_, a := filled(t)
	for how, c := range readers(t, a) {
		names, _, _, err := c.LabelNames(t.Context(), []string{"shop_requests_total"}, at(0), at(600))
		if got := fmt.Sprint(names); err != nil || got != "__name__, host, service" {
			t.Errorf("%s: label names %s, %v", how, got, err)
		}
		values, _, _, err := c.LabelValues(t.Context(), "host", nil, at(0), at(600))
		if got := fmt.Sprint(values); err != nil || got != "[a b]" {
			t.Errorf("%s: hosts %s, %v", how, got, err)
		}
		series, _, _, err := c.Series(t.Context(), []string{`{host="a"}`, `shop_cpu_share`}, at(0), at(600))
		if err != nil || len(series) != 2 {
			t.Errorf("%s: series %v, %v; want 2 without doubles", how, series, err)
		}
		info, err := c.Buildinfo(t.Context())
		if err != nil || info.Version != "ic-drill" {
			t.Errorf("%s: build info %+v, %v: a drill must not pass for a Prometheus release", how, info, err)
		}
	}
}

// get is what curl does.
func get(t *testing.T, a *API, method, target string, form url.Values) (int, map[string]any) {
	t.Helper()
	server := httptest.NewServer(a)
	defer server.Close()
	var resp *http.Response
	var err error
	if method == http.MethodPost {
		resp, err = http.PostForm(server.URL+target, form)
	} else {
		resp, err = http.Get(server.URL + target + "?" + form.Encode())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return resp.StatusCode, map[string]any{"text": string(text)}
	}
	return resp.StatusCode, out
}

func TestAPlainRequestAsksAtTheWorldsNow(t *testing.T) {
	_, a := filled(t)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		code, out := get(t, a, method, "/api/v1/query", url.Values{"query": {`shop_cpu_share`}})
		text, _ := json.Marshal(out)
		want := fmt.Sprintf(`{"data":{"result":[{"metric":{"__name__":"shop_cpu_share","host":"a"},"value":[%d,"0.25"]}],"resultType":"vector"},"status":"success"}`, at(600).Unix())
		if code != http.StatusOK || string(text) != want {
			t.Errorf("%s answered %d %s\nwant %s", method, code, text, want)
		}
	}
	if code, out := get(t, a, http.MethodGet, "/-/healthy", nil); code != http.StatusOK || out["text"] == "" {
		t.Errorf("the health check answered %d %v", code, out)
	}
}

func TestBadRequestsGetPrometheusErrors(t *testing.T) {
	_, a := filled(t)
	rangeOf := func(start, end, step string) url.Values {
		return url.Values{"query": {"up"}, "start": {start}, "end": {end}, "step": {step}}
	}
	for name, c := range map[string]struct {
		path string
		form url.Values
		code int
		kind string
	}{
		"a query that does not parse": {"/api/v1/query", url.Values{"query": {`sum(`}}, 400, "bad_data"},
		"no query":                    {"/api/v1/query", nil, 400, "bad_data"},
		"a time that is none":         {"/api/v1/query", url.Values{"query": {"up"}, "time": {"noon"}}, 400, "bad_data"},
		"a time beyond all time":      {"/api/v1/query", url.Values{"query": {"up"}, "time": {"1e300"}}, 400, "bad_data"},
		"a NaN time":                  {"/api/v1/query", url.Values{"query": {"up"}, "time": {"NaN"}}, 400, "bad_data"},
		"a many-to-many match":        {"/api/v1/query", url.Values{"query": {`shop_requests_total * on(service) shop_requests_total`}}, 422, "execution"},
		"a range without a start":     {"/api/v1/query_range", rangeOf("", "60", "1"), 400, "bad_data"},
		"a range that runs backwards": {"/api/v1/query_range", rangeOf("60", "0", "1"), 400, "bad_data"},
		"a step of zero":              {"/api/v1/query_range", rangeOf("0", "60", "0"), 400, "bad_data"},
		"a step of nothing":           {"/api/v1/query_range", rangeOf("0", "60", ""), 400, "bad_data"},
		"a NaN step":                  {"/api/v1/query_range", rangeOf("0", "60", "NaN"), 400, "bad_data"},
		"too many points":             {"/api/v1/query_range", rangeOf("0", "11001", "1"), 400, "bad_data"},
		"a negative timeout":          {"/api/v1/query", url.Values{"query": {"up"}, "timeout": {"-1s"}}, 400, "bad_data"},
		"series without match":        {"/api/v1/series", nil, 400, "bad_data"},
		"a matcher that is none":      {"/api/v1/labels", url.Values{"match[]": {"{"}}, 400, "bad_data"},
		"a path we do not serve":      {"/api/v1/admin/tsdb/snapshot", nil, 404, "not_found"},
	} {
		code, out := get(t, a, http.MethodGet, c.path, c.form)
		if code != c.code || out["errorType"] != c.kind || out["status"] != "error" || out["error"] == "" {
			t.Errorf("%s: %d %v, want %d %s", name, code, out, c.code, c.kind)
		}
	}
	long := url.Values{"query": {strings.Repeat("x", maxForm)}}
	if code, out := get(t, a, http.MethodPost, "/api/v1/query", long); code != 400 {
		t.Errorf("a form over the limit: %d %v", code, out)
	}
}

func TestABlindPrometheusIsAnErrorAndAHollowOneHasNoData(t *testing.T) {
	_, a := filled(t)
	for how, c := range readers(t, a) {
		a.SetSight(Blind)
		if v, _, _, err := c.Query(t.Context(), "shop_cpu_share", at(600)); err == nil {
			t.Errorf("%s: blind answered %v", how, v)
		}
		a.SetSight(Hollow)
		v, _, _, err := c.Query(t.Context(), "shop_cpu_share", at(600))
		if err != nil || len(v.(model.Vector)) != 0 {
			t.Errorf("%s: hollow answered %v, %v; want success without a series", how, v, err)
		}
		a.SetSight(Seeing)
		if v, _, _, err := c.Query(t.Context(), "shop_cpu_share", at(600)); err != nil || len(v.(model.Vector)) != 1 {
			t.Errorf("%s: after the fault: %v, %v", how, v, err)
		}
	}
}

func TestARoundTripEndsWithItsContext(t *testing.T) {
	_, a := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, _, err := client(t, "http://drill.invalid", a).Query(ctx, "shop_cpu_share", at(600))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled query gave %v", err)
	}
}

func TestSamplesOutOfOrderAreRefused(t *testing.T) {
	s, a := filled(t)
	for _, sec := range []int{600, 599} {
		if err := s.Append(at(sec), "shop_cpu_share", 1, "host", "a"); !errors.Is(err, ErrOutOfOrder) {
			t.Errorf("a sample at %d after one at 600: %v", sec, err)
		}
	}
	if err := s.Append(at(605), "shop_cpu_share", 1, "host"); err == nil {
		t.Error("a label without a value was taken")
	}
	if err := s.Append(at(605), "shop_cpu_share", 1, "host", "a", "host", "b"); err == nil {
		t.Error("a label given twice was taken")
	}
	v, _, _, err := client(t, "http://drill.invalid", a).Query(t.Context(), `shop_cpu_share`, at(610))
	if err != nil || v.String() != fmt.Sprintf(`shop_cpu_share{host="a"} => 0.25 @[%d]`, at(610).Unix()) {
		t.Errorf("a refused sample changed the store: %v %v", v, err)
	}
}

func TestLabelsInAnotherOrderAreTheSameSeries(t *testing.T) {
	s, _ := filled(t)
	if err := s.Append(at(605), "shop_requests_total", 5000, "host", "b", "service", "checkout"); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(at(605), "shop_requests_total", 5000, "service", "checkout", "host", "b"); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("the same sample with its labels in another order: %v, want a refusal as a double", err)
	}
}

func TestAGoneTargetHasNoPresentValue(t *testing.T) {
	s, a := filled(t)
	s.MarkStale(at(605), "host", "a")
	s.MarkStale(at(606), "host", "a") // once is enough
	c := client(t, "http://drill.invalid", a)
	v, _, _, err := c.Query(t.Context(), `shop_requests_total`, at(610))
	if err != nil || len(v.(model.Vector)) != 1 || v.(model.Vector)[0].Metric["host"] != "b" {
		t.Errorf("10 s after host a went: %v, %v", v, err)
	}
	if err := s.Append(at(620), "shop_cpu_share", 0.5, "host", "a"); err != nil {
		t.Fatal(err)
	}
	v, _, _, err = c.Query(t.Context(), `shop_cpu_share`, at(620))
	if err != nil || len(v.(model.Vector)) != 1 || v.(model.Vector)[0].Value != 0.5 {
		t.Errorf("after host a came back: %v, %v", v, err)
	}
}

func TestTheStoreKeepsItsWindowAndNoMore(t *testing.T) {
	s := NewStore(10 * time.Minute)
	for sec := range 3 * 3600 {
		if err := s.Append(at(sec), "x", float64(sec)); err != nil {
			t.Fatal(err)
		}
	}
	last := 3*3600 - 1
	held := s.all[0].samples
	if first := held[0].v; first > float64(last-600) || len(held) > 600+2*trimEvery {
		t.Errorf("the store holds %d samples from second %v; want the 600 from second %d, and few more", len(held), first, last-600)
	}
	if cap(held) > 2*len(held)+trimEvery {
		t.Errorf("%d samples occupy room for %d", len(held), cap(held))
	}
}

func TestTheStoreRefusesMoreSeriesThanItsLimit(t *testing.T) {
	s := NewStore(time.Minute)
	for i := range MaxSeries {
		if err := s.Append(at(0), "x", 1, "i", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(at(0), "x", 1, "i", "one more"); err == nil {
		t.Error("a series over the limit was taken")
	}
}

func TestQueriesRunWhileSamplesArrive(t *testing.T) {
	s := NewStore(time.Minute)
	a := NewAPI(s, func() time.Time { return at(3000) })
	if err := s.Append(at(0), "x", 0); err != nil {
		t.Fatal(err)
	}
	c := client(t, "http://drill.invalid", a)
	var work sync.WaitGroup
	work.Go(func() {
		for sec := 1; sec <= 3000; sec++ {
			if err := s.Append(at(sec), "x", float64(sec)); err != nil {
				t.Error(err)
			}
		}
	})
	// One selector: two of them in one query may be a sample apart, as anywhere.
	for range 50 {
		v, _, _, err := c.Query(t.Context(), `x[1h]`, at(3000))
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		for _, one := range v.(model.Matrix)[0].Values {
			sec := int(one.Timestamp.Time().Sub(begins) / time.Second)
			if sec <= last || float64(one.Value) != float64(sec) {
				t.Fatalf("a query saw a torn sample: %v after second %d", one, last)
			}
			last = sec
		}
	}
	work.Wait()
}

func BenchmarkQuery(b *testing.B) {
	s := NewStore(2 * time.Hour)
	for sec := 0; sec < 7200; sec += 5 {
		for h := range 60 {
			for _, outcome := range []string{"primary_success", "degraded_success", "failed_dependency", "rejected_safety"} {
				if err := s.Append(at(sec), "shop_requests_total", float64(sec*h), "host", fmt.Sprint(h), "outcome", outcome); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	a := NewAPI(s, func() time.Time { return at(7195) })
	req := httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+url.QueryEscape(`sum by (outcome) (rate(shop_requests_total[1m]))`), nil)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := a.RoundTrip(req)
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(resp, err)
		}
	}
}
