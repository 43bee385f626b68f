package worldclock

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

var (
	machine = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	begins  = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
)

// wrist is a machine's clock set by hand.
type wrist struct{ at time.Time }

func (w *wrist) now() time.Time { return w.at }

func TestVirtualTimeRunsAtItsSpeed(t *testing.T) {
	w := &wrist{machine}
	c, err := New(begins, 60, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.at = machine.Add(10 * time.Second)
	now := c.Now()
	if want := begins.Add(10 * time.Minute); !now.Wall.Equal(want) || now.Boot != 10*time.Minute || now.State != model.ClockOK {
		t.Errorf("10 s at speed 60: %+v, want %v and 10 min since boot", now, want)
	}
	if got := c.Real(time.Minute); got != time.Second {
		t.Errorf("a virtual minute takes %v of real time, want 1s", got)
	}
}

func TestASpeedThatStopsOrOverrunsTheDemoIsRefused(t *testing.T) {
	for _, speed := range []int{-1, 0, MaxSpeed + 1} {
		if _, err := New(begins, speed, time.Now); err == nil {
			t.Errorf("speed %d was taken", speed)
		}
	}
}

// slowly answers as a world does, and lets time pass on both ways.
type slowly struct {
	w    *wrist
	way  time.Duration
	next http.RoundTripper
}

func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	s.w.at = s.w.at.Add(s.way)
	resp, err := s.next.RoundTrip(r)
	s.w.at = s.w.at.Add(s.way)
	return resp, err
}

func TestACopyAgreesWithTheWorldAndGoesOnByItself(t *testing.T) {
	w := &wrist{machine}
	world, err := New(begins, 20, w.now)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(Path, world)
	server := httptest.NewServer(mux)
	w.at = machine.Add(30 * time.Second)
	client := &http.Client{Transport: slowly{w, 40 * time.Millisecond, http.DefaultTransport}}
	mine, err := Fetch(t.Context(), client, server.URL, w.now)
	if err != nil {
		t.Fatal(err)
	}
	server.Close() // the world dies; the copy does not need it
	for _, later := range []time.Duration{0, time.Second, time.Hour} {
		w.at = w.at.Add(later)
		if a, b := world.At(), mine.At(); !a.Equal(b) {
			t.Errorf("%v later the world reads %v and the copy %v", later, a, b)
		}
	}
	if world.Now() != mine.Now() || mine.Speed() != 20 {
		t.Errorf("the copy reads %+v at speed %d, the world %+v", mine.Now(), mine.Speed(), world.Now())
	}
}

func TestWhatIsNotAClockIsNotTaken(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a login page":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in</html>") },
		"an error":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusBadGateway) },
		"empty JSON":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"a stopped one":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, clockBody("2026-11-30T03:00:00Z", 0)) },
		"from before":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, clockBody("2026-11-30T02:00:00Z", 1)) },
		"without an end": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat(" ", 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handler)
			defer server.Close()
			if _, err := Fetch(t.Context(), server.Client(), server.URL, time.Now); err == nil {
				t.Error("it was taken as a clock")
			}
		})
	}
}

func clockBody(at string, speed int) string {
	return fmt.Sprintf(`{"at":%q,"began":"2026-11-30T03:00:00Z","speed":%d}`, at, speed)
}

func TestAFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Fetch(ctx, http.DefaultClient, "http://127.0.0.1:9", time.Now); err == nil {
		t.Error("a cancelled fetch gave a clock")
	}
}

func TestTheClockCannotBeSetOverHTTP(t *testing.T) {
	c, err := New(begins, 1, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	c.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(`{"speed":600}`)))
	if rec.Code != http.StatusMethodNotAllowed || c.Speed() != 1 {
		t.Errorf("POST answered %d, speed is %d", rec.Code, c.Speed())
	}
}
