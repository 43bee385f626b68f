package signals_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/signals"
	"github.com/degradedmode/ic/internal/untrusted"
)

func TestAGzipBombIsCutAtTheCap(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 16 {
		z.Write(zeros)
	}
	z.Close()
	p := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		w.Write(bomb.Bytes())
	})
	if bomb.Len() > 64<<10 {
		t.Fatalf("the bomb has %d bytes", bomb.Len())
	}
	got := read(t, source(t, p), signals.Spec{Query: "up"})
	if got.State != model.ReadingError || !strings.Contains(got.Detail, "more than 4194304 bytes") {
		t.Errorf("reading is %+v", got)
	}
}

func TestABodyThatDripsEndsAtTheDeadline(t *testing.T) {
	p := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for { // never silent for long, never done
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
		}
	})
	s := source(t, p, func(o *signals.Options) { o.Timeout = 200 * time.Millisecond })
	began := time.Now()
	got := read(t, s, signals.Spec{Query: "up"})
	if got.State != model.ReadingError || !strings.Contains(got.Detail, "no answer in time") {
		t.Errorf("reading is %+v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAnEndlessHeaderIsNotRead(t *testing.T) {
	p := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
		io.WriteString(w, vector("1"))
	})
	if got := read(t, source(t, p), signals.Spec{Query: "up+0"}); got.State != model.ReadingError || !strings.Contains(got.Detail, "header") {
		t.Errorf("reading is %+v", got)
	}
}

func TestOnlyDataIsTakenForData(t *testing.T) {
	for kind, want := range map[string]model.ReadingState{
		"application/json":                model.ReadingValue,
		"application/json; charset=utf-8": model.ReadingValue,
		"application/vnd.api+json":        model.ReadingValue,
		"text/plain":                      model.ReadingValue,
		"image/png":                       model.ReadingError,
		"application/x-protobuf":          model.ReadingError,
		"text/html":                       model.ReadingError,
		"multipart/form-data":             model.ReadingError,
	} {
		p := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, vector("1"))
		})
		if got := read(t, source(t, p), signals.Spec{Query: "up+0"}); got.State != want {
			t.Errorf("%s: %s, %q; want %s", kind, got.State, got.Detail, want)
		}
	}
}

func TestNoAnswerWithoutAStatusIsAnAnswer(t *testing.T) {
	for what, answer := range map[string]string{
		"an API that is another":        `{"login":"required"}`,
		"a status of another":           `{"status":"ok","data":{"resultType":"vector","result":[]}}`,
		"null":                          `null`,
		"JSON that only a client reads": strings.Replace(vector("1"), `"success"`, "\"suc\tcess\"", 1),
	} {
		got := read(t, source(t, serve(t, map[string]string{"up": answer})), signals.Spec{Query: "up"})
		if got.State != model.ReadingError || !strings.Contains(got.Detail, "not one of Prometheus") {
			t.Errorf("%s: %s %q", what, got.State, got.Detail)
		}
	}
}

func TestAMarkOfAPartialAnswerIsSeenHoweverItIsWritten(t *testing.T) {
	for mark, want := range map[string]model.ReadingState{
		`false`: model.ReadingValue, `null`: model.ReadingValue,
		`true`: model.ReadingPartial, `"true"`: model.ReadingPartial, `1`: model.ReadingPartial, `{}`: model.ReadingPartial,
	} {
		answer := strings.TrimSuffix(vector("1"), "}") + `,"isPartial":` + mark + "}"
		if got := read(t, source(t, serve(t, map[string]string{"up+0": answer})), signals.Spec{Query: "up+0"}); got.State != want {
			t.Errorf("isPartial %s: %s %q, want %s", mark, got.State, got.Detail, want)
		}
	}
}

func TestWarningsAreCountedAndRemarksShown(t *testing.T) {
	with := func(more string) model.Reading {
		answer := strings.TrimSuffix(vector("1"), "}") + more + "}"
		return read(t, source(t, serve(t, map[string]string{"up+0": answer})), signals.Spec{Query: "up+0"})
	}
	if got := with(`,"warnings":["a","b","c"]`); got.State != model.ReadingPartial || !strings.HasSuffix(got.Detail, "warning: a (and 2 more)") {
		t.Errorf("three warnings: %+v", got)
	}
	if got := with(`,"infos":["not a \u001b[31mcounter","b"]`); got.State != model.ReadingValue || got.Value != 1 || got.Detail != `the server remarks: not a \x1b[31mcounter (and 1 more)` {
		t.Errorf("two remarks: %+v", got)
	}
}

func TestTheRemarkOnAPlainSelectorIsNotLostToItsTime(t *testing.T) {
	answer := strings.TrimSuffix(vector("1"), "}") + `,"infos":["not a counter"]}`
	s := source(t, serve(t, map[string]string{"up": answer, "timestamp(up)": vector("1796007600")}))
	if got := read(t, s, signals.Spec{Query: "up"}); got.State != model.ReadingValue || got.Detail != "the server remarks: not a counter" {
		t.Errorf("reading is %+v", got)
	}
}

func TestASampleOfTheFutureIsNoValue(t *testing.T) {
	for ahead, want := range map[int64]model.ReadingState{1: model.ReadingValue, 5: model.ReadingValue, 6: model.ReadingError, 86400: model.ReadingError} {
		at, err := json.Marshal(t0.Unix() + ahead)
		if err != nil {
			t.Fatal(err)
		}
		p := serve(t, map[string]string{"up": vector("1"), "timestamp(up)": vector(string(at))})
		if got := read(t, source(t, p), signals.Spec{Query: "up"}); got.State != want || (got.Value != 0) != (want == model.ReadingValue) {
			t.Errorf("%d s ahead: %+v, want %s", ahead, got, want)
		}
	}
}

func TestAHistoryThatCouldHideABadSampleIsNone(t *testing.T) {
	type stream struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	own := map[string]string{"n": "0"}
	for what, streams := range map[string][]stream{
		"backwards":                 {{own, [][2]any{point(0, "1"), point(-15, "9")}}},
		"the same moment twice":     {{own, [][2]any{point(-15, "1"), point(-15, "9")}}},
		"the series twice":          {{own, [][2]any{point(-15, "1"), point(0, "1")}}, {own, [][2]any{point(-30, "9")}}},
		"far before the window":     {{own, [][2]any{point(-3600, "1"), point(0, "1")}}},
		"far after the question":    {{own, [][2]any{point(0, "1"), point(3600, "1")}}},
		"after it, out of the blue": {{own, [][2]any{point(16, "1")}}},
	} {
		p := serve(t, map[string]string{"up+0": vector("1"), "range up+0": success("matrix", streams, "")})
		got := read(t, source(t, p), signals.Spec{Query: "up+0", Step: model.Duration(15 * time.Second), Window: minute})
		if got.State != model.ReadingValue || len(got.History) != 0 || !strings.Contains(got.Detail, "no history: its samples are not in order") {
			t.Errorf("%s: %+v", what, got)
		}
	}
	// A server that aligns the window to its step is a step off, at most.
	aligned := []stream{{own, [][2]any{point(-70, "1"), point(-55, "2"), point(5, "3")}}}
	p := serve(t, map[string]string{"up+0": vector("1"), "range up+0": success("matrix", aligned, "")})
	got := read(t, source(t, p), signals.Spec{Query: "up+0", Step: model.Duration(15 * time.Second), Window: minute})
	if len(got.History) != 2 || got.History[1].Value != 2 {
		t.Errorf("aligned: %+v", got)
	}
}

func TestAStaleMarkerIsNoData(t *testing.T) {
	// Prometheus leaves a series out once its marker is the newest sample; a server
	// that hands the marker on hands on a NaN.
	got := read(t, source(t, serve(t, map[string]string{"up": vector()})), signals.Spec{Query: "up"})
	if got.State != model.ReadingNoData {
		t.Errorf("left out: %+v", got)
	}
	if got := read(t, source(t, serve(t, map[string]string{"up": vector("NaN")})), signals.Spec{Query: "up"}); got.State != model.ReadingError || got.Value != 0 {
		t.Errorf("handed on: %+v", got)
	}
}

func TestAFlawFoundAtPolicyLoadStandsBesideWhatItHasLedTo(t *testing.T) {
	p := serve(t, map[string]string{"up": vector("1", "2"), "up+0": vector("1")})
	spec := signals.Spec{Query: "up", Flaw: "the policy's query can yield several series"}
	if got := read(t, source(t, p), spec); got.State != model.ReadingError || !strings.Contains(got.Detail, "gives 2 series") || !strings.HasSuffix(got.Detail, "; "+spec.Flaw) {
		t.Errorf("reading is %+v", got)
	}
	spec.Query = "up+0"
	if got := read(t, source(t, p), spec); got.State != model.ReadingValue || got.Detail != "" {
		t.Errorf("a value in spite of it: %+v", got)
	}
}

func TestSeriesAreTakenWholeOrNotAtAll(t *testing.T) {
	many := make([]string, signals.MaxSeries+1)
	for i := range many {
		many[i] = "1"
	}
	for _, c := range []struct{ what, answer, want string }{
		{"in part", strings.TrimSuffix(vector("1"), "}") + `,"isPartial":true}`, "partial"},
		{"with a warning", strings.TrimSuffix(vector("1"), "}") + `,"warnings":["a store\u0007 is down"]}`, `a store\x07 is down`},
		{"no vector", success("scalar", point(0, "1"), ""), "gives a scalar"},
		{"refused", `{"status":"error","errorType":"bad_data","error":"no"}`, "refuses the query: no"},
		{"too many", vector(many...), "20001 series"},
	} {
		s := source(t, serve(t, map[string]string{"up": c.answer}), func(o *signals.Options) { o.Timeout = time.Minute })
		if got, _, err := s.Series(t.Context(), "up"); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d series, %v", c.what, len(got), err)
		}
	}
	got, at, err := source(t, serve(t, map[string]string{"up": vector("1", "0")})).Series(t.Context(), "up")
	if err != nil || len(got) != 2 || !at.Equal(t0.Add(time.Second)) {
		t.Errorf("Series = %v, %s, %v", got, at, err)
	}
	if got, _, err := source(t, serve(t, map[string]string{"up": `{"status":"success"}`})).Series(t.Context(), "up"); err != nil || got != nil {
		t.Errorf("no data: %v, %v", got, err)
	}
}

// FuzzAnswer: whatever a server answers, a reading is in one of five states, has a
// number only in one of them, and nothing in it moves a cursor.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		vector("1"), vector("NaN"), vector("1", "2"), vector(), success("scalar", point(0, "3"), ""), `{"status":"success","data":null}`,
		success("matrix", []any{}, ""), "<html>", "", `{"status":"error","errorType":"bad_data","error":"\u001b[2J"}`,
		strings.TrimSuffix(vector("1"), "}") + `,"isPartial":true,"warnings":["x"]}`, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1e99,"1"]}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		s, err := signals.New(signals.Options{
			URL: "http://prometheus", Now: func() time.Time { return t0 },
			RoundTripper: roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(answer))}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{"up", "up+0"} {
			got := s.Read(t.Context(), []signals.Spec{{Name: "a", Query: query, MaxAge: minute, Step: minute, Window: minute}})["a"]
			switch got.State {
			case model.ReadingValue:
			case model.ReadingNoData, model.ReadingStale, model.ReadingPartial, model.ReadingError:
				if got.Value != 0 || got.Detail == "" || len(got.History) > 0 {
					t.Errorf("%+v", got)
				}
			default:
				t.Errorf("state is %q", got.State)
			}
			if math.IsNaN(got.Value) || math.IsInf(got.Value, 0) || got.Detail != untrusted.Text(got.Detail, len(got.Detail)) {
				t.Errorf("%+v", got)
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
