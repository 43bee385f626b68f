package signals_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/signals"
)

// dated answers an instant query evaluated at, with a Date and an Age.
func dated(t *testing.T, evaluated time.Duration, date, age string) *prometheus {
	return serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = []string{date}
		w.Header().Set("Age", age)
		w.Write([]byte(success("vector", []any{map[string]any{"metric": map[string]string{}, "value": point(evaluated.Seconds(), "1")}}, "")))
	})
}

func TestTheClockOfTheServerIsCompared(t *testing.T) {
	httpDate := func(after time.Duration) string { return t0.Add(after).Format(http.TimeFormat) }
	for _, c := range []struct {
		what      string
		evaluated time.Duration // after t0, which is our time
		date, age string
		ahead     time.Duration
		off       bool
	}{
		{"the same", 0, httpDate(0), "", 0, false},
		{"a second is the error of a Date", time.Second, httpDate(0), "", time.Second, false},
		{"ahead", 20 * time.Minute, httpDate(20 * time.Minute), "", 20 * time.Minute, true},
		{"behind", -11 * time.Second, httpDate(-11 * time.Second), "", -11 * time.Second, true},
		{"at the limit", 10 * time.Second, httpDate(0), "", 10 * time.Second, false},
		{"a proxy with a clock of its own is not asked", 0, httpDate(-time.Hour), "", 0, false},
		{"without a Date the evaluation tells", time.Hour, "", "", time.Hour, true},
		{"an answer kept by a cache, which says so by its Date only", -time.Hour, httpDate(0), "", 500 * time.Millisecond, false},
		{"the Date of a cache is no word about now", 0, httpDate(time.Hour), "30", 0, false},
	} {
		s := source(t, dated(t, c.evaluated, c.date, c.age), func(o *signals.Options) { o.Now = func() time.Time { return t0 } })
		if clock := s.Clock(); !clock.At.IsZero() || clock.Off() {
			t.Errorf("%s: known before any answer: %+v", c.what, clock)
		}
		read(t, s, signals.Spec{Query: "up+0"})
		if got := s.Clock(); got.Ahead != c.ahead || got.Off() != c.off || !got.At.Equal(t0) {
			t.Errorf("%s: %+v, off %v; want %s, %v", c.what, got, got.Off(), c.ahead, c.off)
		}
	}
}

func TestAnErrorStillTellsTheTime(t *testing.T) {
	now := t0
	p := serveFunc(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", t0.Add(time.Hour).Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s := source(t, p, func(o *signals.Options) { o.Now = func() time.Time { return now } })
	if got := read(t, s, signals.Spec{Query: "up+0"}); got.State != model.ReadingError {
		t.Fatalf("reading is %+v", got)
	}
	if c := s.Clock(); !c.Off() || (c.Ahead-time.Hour).Abs() > time.Second {
		t.Errorf("clock is %+v", c)
	}
}

func TestAClockThatIsFarOffMakesNoValue(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		s := source(t, dated(t, 0, "", ""), func(o *signals.Options) {
			o.Now = func() time.Time { return t0.Add(off) }
		})
		got := read(t, s, signals.Spec{Query: "up+0", MaxAge: minute})
		if got.State != model.ReadingStale || got.Value != 0 || !s.Clock().Off() || s.Clock().Ahead != -off {
			t.Errorf("our clock %s off: %+v, %+v", off, got, s.Clock())
		}
	}
}
