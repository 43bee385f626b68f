package signals_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/signals"
)

var t0 = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

// prometheus answers each query with what a test has written for it; the key of
// a range query is "range " and the query.
type prometheus struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string
	handler http.HandlerFunc // instead of answers, if set
	asked   []*http.Request
}

func serve(t *testing.T, answers map[string]string) *prometheus {
	p := &prometheus{answers: answers}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func serveFunc(t *testing.T, h http.HandlerFunc) *prometheus {
	p := serve(t, nil)
	p.handler = h
	return p
}

func (p *prometheus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	if p.handler != nil {
		p.handler(w, r)
		return
	}
	key := r.FormValue("query")
	if strings.HasSuffix(r.URL.Path, "query_range") {
		key = "range " + key
	} else if r.Form.Has("lookback_delta") {
		key = "young " + key
	}
	answer, ok := p.answers[key]
	if !ok {
		answer = fmt.Sprintf(`{"status":"error","errorType":"bad_data","error":%q}`, "nothing written for "+key)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(answer))
}

func success(kind string, result any, more string) string {
	body, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}%s}`, kind, body, more)
}

// point is a value at seconds after t0, as the API writes it.
func point(after float64, v string) [2]any { return [2]any{float64(t0.Unix()) + after, v} }

// vector has one series a value, with the labels n=0, 1, …; all are at t0.
func vector(values ...string) string {
	type series struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	out := []series{}
	for i, v := range values {
		out = append(out, series{map[string]string{"n": strconv.Itoa(i)}, point(0, v)})
	}
	return success("vector", out, "")
}

func source(t *testing.T, p *prometheus, change ...func(*signals.Options)) *signals.Source {
	t.Helper()
	o := signals.Options{URL: p.URL, Now: func() time.Time { return t0.Add(time.Second) }}
	for _, c := range change {
		c(&o)
	}
	s, err := signals.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const minute = model.Duration(time.Minute)

func read(t *testing.T, s *signals.Source, spec signals.Spec) model.Reading {
	t.Helper()
	spec.Name = "errors"
	got := s.Read(t.Context(), []signals.Spec{spec})
	if len(got) != 1 || got["errors"].Signal != "errors" {
		t.Fatalf("Read = %+v", got)
	}
	return got["errors"]
}

func TestWhatIsNoSingleFreshNumberIsNoValue(t *testing.T) {
	histogram := `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1796007600,{"count":"2","sum":"3","buckets":[[0,"0.5","1","2"]]}]}]}}`
	for _, c := range []struct {
		what, answer string
		state        model.ReadingState
		detail       string
	}{
		{"no series", vector(), model.ReadingNoData, "no series"},
		{"data that is null", `{"status":"success","data":null}`, model.ReadingNoData, "holds no data"},
		{"no data at all", `{"status":"success"}`, model.ReadingNoData, "holds no data"},
		{"two series", vector("1", "2"), model.ReadingError, "2 series"},
		{"NaN", vector("NaN"), model.ReadingError, "NaN"},
		{"+Inf", vector("+Inf"), model.ReadingError, "+Inf"},
		{"-Inf", vector("-Inf"), model.ReadingError, "-Inf"},
		{"a histogram", histogram, model.ReadingError, "histogram"},
		{"a matrix", success("matrix", []any{}, ""), model.ReadingError, "a matrix"},
		{"a string", success("string", point(0, "fine"), ""), model.ReadingError, `value type "string"`},
		{"a scalar that is NaN", success("scalar", point(0, "NaN"), ""), model.ReadingError, "NaN"},
		{"a warning", strings.TrimSuffix(vector("1"), "}") + `,"warnings":["store a\u001b is down"]}`, model.ReadingPartial, `store a\x1b is down`},
		{"VictoriaMetrics' mark", strings.TrimSuffix(vector("1"), "}") + `,"isPartial":true}`, model.ReadingPartial, "partial"},
		{"a partial answer without series", strings.TrimSuffix(vector(), "}") + `,"isPartial":true}`, model.ReadingPartial, "partial"},
		{"an error with status 200", `{"status":"error","errorType":"execution","error":"too many samples"}`, model.ReadingError, "refuses the query: too many samples"},
		{"JSON of another API", `{"hello":[`, model.ReadingError, "not one of Prometheus"},
		{"a login page", "<!doctype html><title>Sign in</title>", model.ReadingError, "login page"},
		{"nothing", "", model.ReadingError, "not one of Prometheus"},
	} {
		p := serve(t, map[string]string{"up": c.answer})
		got := read(t, source(t, p), signals.Spec{Query: "up"})
		if got.State != c.state || got.Value != 0 || !strings.Contains(got.Detail, c.detail) || strings.Contains(got.Detail, "\x1b") {
			t.Errorf("%s: %s, %v, %q; want %s with %q", c.what, got.State, got.Value, got.Detail, c.state, c.detail)
		}
	}
}

func TestANumberIsReadWithItsTimeAndHistory(t *testing.T) {
	type stream struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	p := serve(t, map[string]string{
		"young sum(up)": success("vector", []any{map[string]any{"metric": map[string]string{}, "value": point(0, "0.25")}}, `,"infos":["a remark is no warning"]`),
		"range sum(up)": success("matrix", []stream{
			{map[string]string{"pod": "old"}, [][2]any{point(-60, "9")}},
			{map[string]string{}, [][2]any{point(-60, "0.5"), point(-30, "NaN"), point(-15, "+Inf"), point(0, "0.25")}},
		}, ""),
	})
	got := read(t, source(t, p), signals.Spec{Query: "sum(up)", Unit: "ratio", MaxAge: minute, Step: model.Duration(15 * time.Second), Window: minute})
	if got.State != model.ReadingValue || got.Value != 0.25 || got.Unit != "ratio" || got.Detail != "the server remarks: a remark is no warning" || !got.At.Equal(t0) || got.Step.Std() != 15*time.Second {
		t.Errorf("reading is %+v", got)
	}
	want := []model.Sample{{At: t0.Add(-time.Minute), Value: 0.5}, {At: t0, Value: 0.25}}
	if len(got.History) != 2 || got.History[0] != want[0] || got.History[1] != want[1] {
		t.Errorf("history is %v, want %v", got.History, want)
	}
	r := p.asked[1]
	for name, want := range map[string]string{
		"start": fmt.Sprint(t0.Unix() - 60), "end": fmt.Sprint(t0.Unix()), "step": "15", "lookback_delta": "1m0s",
	} {
		if r.FormValue(name) != want {
			t.Errorf("%s of the range is %q, want %q", name, r.FormValue(name), want)
		}
	}
}

func TestAScalarIsANumber(t *testing.T) {
	p := serve(t, map[string]string{"scalar(up)": success("scalar", point(0, "3"), "")})
	if got := read(t, source(t, p), signals.Spec{Query: "scalar(up)"}); got.State != model.ReadingValue || got.Value != 3 {
		t.Errorf("reading is %+v", got)
	}
}

func TestAHistoryThatCannotBeHadLeavesTheValue(t *testing.T) {
	for what, answer := range map[string]string{
		"an error":         `{"status":"error","errorType":"execution","error":"too many samples"}`,
		"a partial answer": `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"n":"0"},"values":[[1,"1"]]}]},"isPartial":true}`,
	} {
		p := serve(t, map[string]string{"sum(up)": vector("1"), "range sum(up)": answer})
		got := read(t, source(t, p), signals.Spec{Query: "sum(up)", Step: minute, Window: minute})
		if got.State != model.ReadingValue || got.Value != 1 || len(got.History) != 0 || !strings.HasPrefix(got.Detail, "no history: ") {
			t.Errorf("%s: reading is %+v", what, got)
		}
	}
}

func TestAnOldNumberIsStale(t *testing.T) {
	const plain, expression = `errors{code="5{}"}`, `sum(errors)`
	for _, c := range []struct {
		what, query string
		answers     map[string]string
		now         time.Duration // our clock, after t0
		state       model.ReadingState
		detail      string
		at          time.Time
	}{
		{"a sample of 20 seconds ago", plain, map[string]string{
			"young " + plain: vector("1"), "timestamp(" + plain + ")": vector(fmt.Sprint(t0.Unix() - 20)),
		}, 0, model.ReadingValue, "", t0.Add(-20 * time.Second)},
		{"a sample of two minutes ago, from a server that ignores the look-back", plain, map[string]string{
			"young " + plain: vector("1"), "timestamp(" + plain + ")": vector(fmt.Sprint(t0.Unix() - 120)),
		}, 0, model.ReadingStale, "2m0s old, at most 1m", t0.Add(-2 * time.Minute)},
		{"a sample of two minutes ago, left out by the server", plain, map[string]string{
			"young " + plain: vector(), plain: vector("1"), "timestamp(" + plain + ")": vector(fmt.Sprint(t0.Unix() - 120)),
		}, 0, model.ReadingStale, "2m0s old, at most 1m", t0.Add(-2 * time.Minute)},
		{"an expression over old samples", expression, map[string]string{
			"young " + expression: vector(), expression: vector("1"),
		}, 0, model.ReadingStale, "older than 1m", time.Time{}},
		{"nothing, young or old", expression, map[string]string{
			"young " + expression: vector(), expression: vector(),
		}, 0, model.ReadingNoData, "no series", time.Time{}},
		{"an answer for an hour ago", expression, map[string]string{
			"young " + expression: vector("1"),
		}, time.Hour, model.ReadingStale, "1h0m0s off by our clock", t0},
		{"an answer for the future", expression, map[string]string{
			"young " + expression: vector("1"),
		}, -time.Hour, model.ReadingStale, "1h0m0s off by our clock", t0},
		{"a sample whose time cannot be had", plain, map[string]string{"young " + plain: vector("1")}, 0, model.ReadingError, "nothing written", t0},
	} {
		s := source(t, serve(t, c.answers), func(o *signals.Options) { o.Now = func() time.Time { return t0.Add(c.now) } })
		got := read(t, s, signals.Spec{Query: c.query, MaxAge: minute})
		if got.State != c.state || !strings.Contains(got.Detail, c.detail) || !got.At.Equal(c.at) || (got.Value != 0) != (c.state == model.ReadingValue) {
			t.Errorf("%s: %+v; want %s with %q at %s", c.what, got, c.state, c.detail, c.at)
		}
	}
}

func TestAWindowOfTooManySamplesIsNotAsked(t *testing.T) {
	p := serve(t, nil)
	for _, spec := range []signals.Spec{
		{Query: "up", Window: minute},
		{Query: "up", Window: model.Duration(time.Hour), Step: model.Duration(time.Second)},
	} {
		if got := read(t, source(t, p), spec); got.State != model.ReadingError || !strings.Contains(got.Detail, "change the policy") || len(p.asked) != 0 {
			t.Errorf("reading is %+v, %d queries", got, len(p.asked))
		}
	}
}

func TestEverySignalGetsItsOwnReading(t *testing.T) {
	p := serve(t, map[string]string{"a+0": vector("1"), "b+0": vector("2", "3")})
	got := source(t, p).Read(t.Context(), []signals.Spec{{Name: "a", Query: "a+0"}, {Name: "b", Query: "b+0"}})
	if len(got) != 2 || got["a"].State != model.ReadingValue || got["a"].Value != 1 || got["b"].State != model.ReadingError {
		t.Errorf("Read = %+v", got)
	}
}
