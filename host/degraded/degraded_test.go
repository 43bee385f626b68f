package degraded_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host/degraded"
	"github.com/google/go-cmp/cmp"
)

var three = time.Date(2026, 11, 30, 3, 17, 0, 0, time.UTC)

func toJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAnAnswerThatIsWholeSaysNothing(t *testing.T) {
	var m degraded.Marker
	h := http.Header{degraded.Header: {"missing=(points)"}}
	if m.Set(h); len(h) != 0 {
		t.Errorf("header %v", h)
	}
	body := struct {
		Degraded *degraded.Degraded `json:"degraded,omitempty"`
	}{m.Degraded()}
	if got := toJSON(t, body); got != "{}" {
		t.Errorf("body %s", got)
	}
}

func TestTheMarkerNamesWhatIsOldAndWhatIsMissingAndTheOldestTime(t *testing.T) {
	for _, c := range []struct {
		what         string
		mark         func(*degraded.Marker)
		body, header string
	}{
		{"two old parts, one missing", func(m *degraded.Marker) {
			m.Stale("reviews", three)
			m.Missing("points")
			m.Stale("prices", three.Add(-time.Hour))
			m.Stale("reviews", three.Add(time.Minute))
		}, `{"stale":["prices","reviews"],"missing":["points"],"as_of":"2026-11-30T02:17:00Z"}`,
			`stale=(prices reviews), missing=(points), as_of=@1796005020`},
		{"nothing old", func(m *degraded.Marker) { m.Missing("points") },
			`{"stale":[],"missing":["points"],"as_of":null}`, `missing=(points)`},
		{"old first, then missing", func(m *degraded.Marker) { m.Stale("points", three); m.Missing("points") },
			`{"stale":[],"missing":["points"],"as_of":null}`, `missing=(points)`},
		{"local time, with a fraction", func(m *degraded.Marker) {
			m.Stale("a", three.Add(900*time.Millisecond).In(time.FixedZone("", 3600)))
		}, `{"stale":["a"],"missing":[],"as_of":"2026-11-30T03:17:00Z"}`, `stale=(a), as_of=@1796008620`},
	} {
		var m degraded.Marker
		c.mark(&m)
		w := httptest.NewRecorder()
		m.Set(w.Header())
		if got := toJSON(t, m.Degraded()); got != c.body {
			t.Errorf("%s: body %s, want %s", c.what, got, c.body)
		}
		if got := w.Header().Get("X-Degraded"); got != c.header {
			t.Errorf("%s: header %s, want %s", c.what, got, c.header)
		}
	}
}

func TestNoNameBreaksOutOfTheHeader(t *testing.T) {
	for name, want := range map[string]string{
		"loyaltyPoints":          "loyaltyPoints",
		"a\r\nSet-Cookie: x=1":   "a__Set-Cookie:_x_1",
		"a, missing=(b)":         "a__missing__b_",
		"":                       "x_",
		"9lives":                 "x_9lives",
		"prix à jour":            "prix___jour",
		strings.Repeat("x", 300): strings.Repeat("x", 48),
		strings.Repeat("9", 300): "x_" + strings.Repeat("9", 46),
	} {
		var m degraded.Marker
		m.Missing(name)
		d := m.Degraded()
		if d.Missing[0] != want {
			t.Errorf("%q is named %q, want %q", name, d.Missing[0], want)
		}
		if back, err := degraded.Parse(d.String()); err != nil || !cmp.Equal(back, d) {
			t.Errorf("%q is read back as %v, %v", name, back, err)
		}
	}
}

func TestAHeaderIsBoundedAndSaysThatThereIsMore(t *testing.T) {
	var m degraded.Marker
	for i := range 1000 {
		m.Stale(fmt.Sprintf("%s%03d", strings.Repeat("s", 60), i), three)
		m.Stale(fmt.Sprintf("s%03d", i), three)
		m.Missing(fmt.Sprintf("%03d%s", i, strings.Repeat("m", 60)))
	}
	d := m.Degraded()
	if len(d.Stale) != degraded.MaxParts || len(d.Missing) != degraded.MaxParts || len(d.String()) > 4096 {
		t.Errorf("%d stale, %d missing, %d bytes", len(d.Stale), len(d.Missing), len(d.String()))
	}
	if !slices.Contains(d.Stale, degraded.More) || !slices.Contains(d.Missing, degraded.More) {
		t.Error("nothing says that there is more")
	}
	if back, err := degraded.Parse(d.String()); err != nil || !cmp.Equal(back, d) {
		t.Errorf("read back as %v, %v", back, err)
	}
}

func TestOnlyWhatAMarkerPrintsIsRead(t *testing.T) {
	for _, value := range []string{
		"true", "stale", "stale=", "stale=reviews", "stale=()", "stale=(reviews)", "as_of=@1", "stale=(b a), as_of=@1",
		"stale=(a a), as_of=@1", "missing=(a),missing=(b)", "missing=(a), missing=(b)", "missing=(a), stale=(b), as_of=@1",
		"stale=(a), as_of=1", "stale=(a), as_of=@1.5", "stale=(a), as_of=@01", "stale=(a), as_of=@99999999999999",
		"missing=(a\x00)", "missing=(" + strings.Repeat("a ", 3000) + ")", "missing=(a);q=1",
	} {
		if d, err := degraded.Parse(value); err == nil {
			t.Errorf("%.64q is read as %v", value, d)
		}
	}
	if d, err := degraded.Parse(""); d != nil || err != nil {
		t.Errorf("no header is read as %v, %v", d, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("stale=(prices reviews), missing=(points), as_of=@1796005020")
	f.Add("missing=(a)")
	f.Fuzz(func(t *testing.T, value string) {
		d, err := degraded.Parse(value)
		if err != nil || d == nil {
			return
		}
		if d.String() != value {
			t.Errorf("%q is printed as %q", value, d)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Errorf("%q has no JSON: %v", value, err)
		}
	})
}

func TestMarksOfAnAnswerInsideAreHandedOn(t *testing.T) {
	inside, err := degraded.Parse("stale=(prices), missing=(points), as_of=@1796005020")
	if err != nil {
		t.Fatal(err)
	}
	var m degraded.Marker
	m.Stale("reviews", three)
	m.Add("account", inside)
	m.Add("basket", nil)
	if got, want := m.Degraded().String(), "stale=(account.prices reviews), missing=(account.points), as_of=@1796005020"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAPanelHasAValueOrAReasonAndNeverAZeroInstead(t *testing.T) {
	for _, c := range []struct {
		panel      degraded.Panel[int]
		json, mark string
	}{
		{degraded.Now(0), `{"availability":"AVAILABLE","value":0}`, "null"},
		{degraded.Old(81, three, "timeout"), `{"availability":"STALE","value":81,"as_of":"2026-11-30T03:17:00Z","reason":"timeout"}`,
			`{"stale":["risk"],"missing":[],"as_of":"2026-11-30T03:17:00Z"}`},
		{degraded.None[int]("circuit_open"), `{"availability":"UNAVAILABLE","value":null,"reason":"circuit_open"}`, `{"stale":[],"missing":["risk"],"as_of":null}`},
		{degraded.Panel[int]{}, `{"availability":"UNAVAILABLE","value":null}`, `{"stale":[],"missing":["risk"],"as_of":null}`},
	} {
		var m degraded.Marker
		if got := toJSON(t, c.panel.Mark(&m, "risk")); got != c.json {
			t.Errorf("%s, want %s", got, c.json)
		}
		if got := toJSON(t, m.Degraded()); got != c.mark {
			t.Errorf("marked %s, want %s", got, c.mark)
		}
		var back degraded.Panel[int]
		if err := json.Unmarshal([]byte(c.json), &back); err != nil || toJSON(t, back) != c.json {
			t.Errorf("%s is read back as %s, %v", c.json, toJSON(t, back), err)
		}
		if v, ok := back.Value(); ok != (c.panel.Availability() != degraded.Unavailable) || !ok && v != 0 {
			t.Errorf("%s has the value %d, %v", c.json, v, ok)
		}
		if !back.AsOf().Equal(c.panel.AsOf()) || back.Reason() != c.panel.Reason() {
			t.Errorf("%s is of %s, %q", c.json, back.AsOf(), back.Reason())
		}
	}
}

func TestAPanelThatDoesNotFitIsNotRead(t *testing.T) {
	for _, in := range []string{
		`{}`, `{"availability":"OK","value":1}`, `{"availability":"AVAILABLE"}`, `{"availability":"UNAVAILABLE","value":0}`,
		`{"availability":"STALE","value":1}`, `{"availability":"STALE","as_of":"2026-11-30T03:17:00Z"}`, `{"availability":"AVAILABLE","value":"x"}`, `[]`,
	} {
		var p degraded.Panel[int]
		if err := json.Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%s is read as %s", in, toJSON(t, p))
		}
	}
}

func TestANumberThatIsNotKnownIsNull(t *testing.T) {
	type account struct {
		Balance degraded.Number[int64]   `json:"balance"`
		Rate    degraded.Number[float64] `json:"rate"`
	}
	for _, c := range []struct {
		in   account
		json string
	}{
		{account{}, `{"balance":null,"rate":null}`},
		{account{degraded.Known[int64](0), degraded.Known(0.0)}, `{"balance":0,"rate":0}`},
		{account{degraded.Known[int64](math.MaxInt64), degraded.Known(-1.5)}, `{"balance":9223372036854775807,"rate":-1.5}`},
		{account{Rate: degraded.Known(math.NaN())}, `{"balance":null,"rate":null}`},
		{account{Rate: degraded.Known(math.Inf(1))}, `{"balance":null,"rate":null}`},
	} {
		if got := toJSON(t, c.in); got != c.json {
			t.Errorf("%s, want %s", got, c.json)
		}
		back := account{Balance: degraded.Known[int64](7)}
		if err := json.Unmarshal([]byte(c.json), &back); err != nil || back != c.in {
			t.Errorf("%s is read back as %+v, %v", c.json, back, err)
		}
		if v, ok := back.Balance.Value(); !ok && v != 0 {
			t.Errorf("an unknown balance is %d", v)
		}
	}
}

func TestAMarkerIsFilledFromManyGoroutines(t *testing.T) {
	var m degraded.Marker
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			part := fmt.Sprintf("part-%02d", i)
			degraded.Old(i, three.Add(time.Duration(i)*time.Second), "timeout").Mark(&m, part)
			m.Missing("no-" + part)
			m.Degraded()
			m.Set(http.Header{})
		})
	}
	wait.Wait()
	if d := m.Degraded(); len(d.Stale) != 20 || len(d.Missing) != 20 || !d.AsOf.Equal(three) {
		t.Errorf("%s", d)
	}
}

func BenchmarkMarkAndSet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var m degraded.Marker
		m.Stale("reviews", three)
		m.Missing("points")
		m.Set(http.Header{})
	}
}

func ExampleMarker() {
	type page struct {
		Title    string                   `json:"title"`
		Reviews  degraded.Panel[[]string] `json:"reviews"`
		Points   degraded.Number[int]     `json:"points"`
		Degraded *degraded.Degraded       `json:"degraded,omitempty"`
	}
	var marker degraded.Marker
	answer := page{Title: "A lamp"}
	yesterday := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	answer.Reviews = degraded.Old([]string{"bright"}, yesterday, "timeout").Mark(&marker, "reviews")
	marker.Missing("points") // the service that knows is down; answer.Points stays null

	w := httptest.NewRecorder()
	marker.Set(w.Header()) // before the body
	answer.Degraded = marker.Degraded()
	fmt.Println(w.Header().Get(degraded.Header))
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	_ = out.Encode(answer)
	// Output:
	// stale=(reviews), missing=(points), as_of=@1795921200
	// {
	//   "title": "A lamp",
	//   "reviews": {
	//     "availability": "STALE",
	//     "value": [
	//       "bright"
	//     ],
	//     "as_of": "2026-11-29T03:00:00Z",
	//     "reason": "timeout"
	//   },
	//   "points": null,
	//   "degraded": {
	//     "stale": [
	//       "reviews"
	//     ],
	//     "missing": [
	//       "points"
	//     ],
	//     "as_of": "2026-11-29T03:00:00Z"
	//   }
	// }
}
