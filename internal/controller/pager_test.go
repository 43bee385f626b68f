package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/ladder"
)

// pocket is a pager that can be down.
type pocket struct {
	name string

	mu   sync.Mutex
	down bool
	got  []Page
	fail func() // called when it has taken a batch; nil: nothing
}

func (p *pocket) Name() string          { return p.name }
func (p *pocket) Repeat() time.Duration { return time.Minute }

func (p *pocket) Send(_ context.Context, pages []Page) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return errors.New("nobody answers")
	}
	p.got = append(p.got, pages...)
	if p.fail != nil {
		p.fail()
	}
	return nil
}

// titles are those of what it got, without what is named after a time.
func (p *pocket) titles() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range p.got {
		if strings.HasPrefix(page.Title, "incident ") {
			page.Title = "incident" + page.Title[strings.Index(page.Title, " is "):]
		}
		out = append(out, page.Title)
	}
	return out
}

// watch is the real time of a test.
type watch struct{ at time.Time }

func (w *watch) now() time.Time { return w.at }

func (r *rig) pager(w *watch, sinks ...Sink) *Pager {
	r.t.Helper()
	p, err := NewPager(PagerOptions{State: r.state, Second: filepath.Join(r.state, "second"), Sinks: sinks, Real: w.now, Rand: func() float64 { return 1 }})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

const (
	opened = "incident is open (ines)"
	shed1  = "ines: shed all services to tier 1"
	shed2  = "ines: shed all services to tier 2"
	shed3  = "ines: shed all services to tier 3"
)

func (r *rig) shed(tier int) { r.by("ines", decisions.Ask{Right: "shed", Tier: tier, Reason: "load"}) }

func TestPagesComeOnceAndInOrderWhileThePagerIsThere(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	r.shed(1)
	p.Round(t.Context())
	r.shed(2)
	p.Round(t.Context())
	p.Round(t.Context())
	if want := []string{opened, shed1, shed2}; !slices.Equal(out.titles(), want) {
		t.Fatalf("%q", out.titles())
	}
	if page := out.got[1]; page.Text != "load" || page.Urgent || page.Actor != "ines" || !page.At.Equal(r.clock.Now().Wall) {
		t.Errorf("%+v", page)
	}
}

func TestNothingIsLostWhileThePagerIsDownOrTheControllerIs(t *testing.T) {
	r, w, out, other := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}, &pocket{name: "b"}
	p := r.pager(w, out, other)
	out.down = true
	r.shed(1)
	p.Round(t.Context())
	if want := []string{opened, shed1}; !slices.Equal(other.titles(), want) {
		t.Errorf("one that is down holds up the other: %q", other.titles())
	}
	r.shed(2) // and now the controller dies, and somebody goes on
	r.shed(3)
	p = r.pager(w, out, other)
	p.Round(t.Context())
	out.down = false
	p.Round(t.Context())
	if len(out.got) > 0 {
		t.Errorf("it is asked again at once: %q", out.titles())
	}
	w.at = w.at.Add(firstRetry)
	p.Round(t.Context())
	want := []string{opened, shed1, shed2, shed3}
	if !slices.Equal(out.titles(), want) || !slices.Equal(other.titles(), want) {
		t.Errorf("got %q and %q", out.titles(), other.titles())
	}
	var metrics strings.Builder
	p.WriteMetrics(&metrics)
	for _, line := range []string{`ic_controller_pages_total{sink="a"} 4`, `ic_controller_page_failures_total{sink="a"} 1`, `ic_controller_pages_total{sink="b"} 2`} {
		if !strings.Contains(metrics.String(), line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, metrics.String())
		}
	}
}

// The sink has taken it and the cursor is not written: it is told again.
func TestWhatIsNotKnownToHaveArrivedIsToldAgain(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	file := filepath.Join(r.state, "controller", "a.json")
	p := r.pager(w, out)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r.shed(1)
	p.Round(t.Context())
	if err := os.WriteFile(file, before, 0o600); err != nil { // as if it had died in between
		t.Fatal(err)
	}
	r.pager(w, out).Round(t.Context())
	if want := []string{opened, shed1, opened, shed1}; !slices.Equal(out.titles(), want) {
		t.Errorf("%q", out.titles())
	}
}

func TestACursorThatCannotBeReadBeginsADayBack(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "cut": `{"v":1,"told":{"0/`, "of another version": `{"v":2,"told":{}}`, "of nothing": `{"v":1}`} {
		r, out := newRig(t), &pocket{name: "a"}
		w := &watch{at: r.clock.Now().Wall}
		r.shed(1)
		r.pager(w, out).Round(t.Context())
		if len(out.got) > 0 {
			t.Fatalf("%s: a new pager is told of what was before: %q", name, out.titles())
		}
		if err := os.WriteFile(filepath.Join(r.state, "controller", "a.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var said []error
		p, err := NewPager(PagerOptions{State: r.state, Sinks: []Sink{out}, Real: w.now, Rand: func() float64 { return 0 }, Report: func(err error) { said = append(said, err) }})
		if err != nil {
			t.Fatal(err)
		}
		p.Round(t.Context())
		if want := []string{opened, shed1}; !slices.Equal(out.titles(), want) || len(said) != 1 || !strings.Contains(said[0].Error(), "is told the last 24h0m0s again") {
			t.Errorf("%s: %q, said %v", name, out.titles(), said)
		}
		w.at = w.at.Add(25 * time.Hour)
		if err := os.WriteFile(filepath.Join(r.state, "controller", "a.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out.got = nil
		r.pager(w, out).Round(t.Context())
		if len(out.got) > 0 {
			t.Errorf("%s: what is older than a day is told: %q", name, out.titles())
		}
	}
}

func TestABatchFitsOnAScreen(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	batches := 0
	out.fail = func() { batches++ }
	for range maxBatch + 2 {
		r.shed(1)
	}
	p.Round(t.Context())
	if len(out.got) != maxBatch+3 || batches != 2 {
		t.Errorf("%d pages in %d batches", len(out.got), batches)
	}
}

func TestAnAlarmIsToldAsLongAsItLastsAndWhenItIsOver(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	a := ladder.Alarm{Kind: ladder.Latched, About: "*", Text: "it flaps", Since: r.clock.Now().Wall}
	step := func(after time.Duration, alarms []ladder.Alarm, want ...string) {
		t.Helper()
		out.got = nil
		w.at = w.at.Add(after)
		p.Alarms(alarms)
		p.Round(t.Context())
		if !slices.Equal(out.titles(), want) {
			t.Errorf("told %q, want %q", out.titles(), want)
		}
	}
	on, off := "the ladder: latched", "the ladder: latched is over"
	step(0, []ladder.Alarm{a}, on)
	if page := out.got[0]; !page.Urgent || page.Over || page.Text != "it flaps" || page.About != "*" {
		t.Errorf("%+v", page)
	}
	step(time.Second, []ladder.Alarm{a})
	step(time.Minute, []ladder.Alarm{a}, on)
	out.down = true
	step(time.Second, nil)
	out.down = false
	step(time.Hour, nil, off)
	step(time.Hour, nil)
	other := ladder.Alarm{Kind: ladder.Stuck, About: "edge", Text: "four hours"}
	step(0, []ladder.Alarm{a, other}, on, "the ladder: stuck")
	step(time.Second, []ladder.Alarm{other}, off)
}

// Whoever no longer leads calls nothing over: the one that leads still tells it.
func TestWhoeverRestsCallsNoAlarmOver(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	a := ladder.Alarm{Kind: ladder.Latched, About: "*", Text: "it flaps"}
	p.Alarms([]ladder.Alarm{a})
	p.Round(t.Context())
	p.Rest()
	p.Round(t.Context())
	p.Alarms([]ladder.Alarm{a})
	p.Round(t.Context())
	if want := []string{"the ladder: latched", "the ladder: latched"}; !slices.Equal(out.titles(), want) {
		t.Errorf("%q", out.titles())
	}
}

// An alarm that came and went while the pager was down is left in the log, and
// one of which it was told is not told a second time from there.
func TestAnAlarmThatCameAndWentIsToldFromTheLog(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	r.shed(1)
	d := r.desk(robot)
	d.Refresh(t.Context())
	note := func(text string) {
		t.Helper()
		if err := d.Note(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	missed, seen := ladder.Alarm{Kind: ladder.Broken, About: "*", Text: "a ramp"}, ladder.Alarm{Kind: ladder.Stuck, About: "*", Text: "4h1m"}
	note(alarmNote(&missed) + missed.Text)
	note(overNote(&missed))
	note(alarmNote(&seen) + "4h")
	note("lunch")
	p.Alarms([]ladder.Alarm{seen})
	p.Round(t.Context())
	want := []string{"the ladder: stuck", opened, shed1, robot, robot}
	if !slices.Equal(out.titles(), want) || out.got[3].Text != "alarm broken *: a ramp" || out.got[4].Text != "alarm broken * is over" {
		t.Errorf("%q: %+v", out.titles(), out.got)
	}
	note(overNote(&seen))
	p.Alarms(nil)
	out.got = nil
	p.Round(t.Context())
	if want := []string{"the ladder: stuck is over"}; !slices.Equal(out.titles(), want) {
		t.Errorf("%q", out.titles())
	}
}

func TestAClosedIncidentIsTold(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a"}
	p := r.pager(w, out)
	d := r.desk("ines")
	if _, err := d.Command(t.Context(), incident.Open, "", "payment-risk is down"); err != nil {
		t.Fatal(err)
	}
	d.Refresh(t.Context())
	if _, err := d.Command(t.Context(), incident.CloseIt, "", "it is back"); err != nil {
		t.Fatal(err)
	}
	p.Round(t.Context())
	if want := []string{opened, "incident is closed (ines)"}; !slices.Equal(out.titles(), want) || out.got[0].Text != "payment-risk is down" || out.got[1].Text != "it is back" {
		t.Errorf("%+v", out.got)
	}
}

// A retry waits longer each time, and never longer than people can wait.
func TestASinkThatIsDownIsAskedLessAndLess(t *testing.T) {
	r, w, out := newRig(t), &watch{at: time.Unix(1, 0)}, &pocket{name: "a", down: true}
	p := r.pager(w, out)
	r.shed(1)
	var waits []time.Duration
	for range 9 {
		p.Round(t.Context())
		waits = append(waits, p.outs[0].next.Sub(w.at))
		w.at = p.outs[0].next
	}
	if want := "[5s 10s 20s 40s 1m20s 2m40s 5m0s 5m0s 5m0s]"; fmt.Sprint(waits) != want {
		t.Errorf("waits %v, want %s", waits, want)
	}
}

// server answers like a pager's and keeps what it was sent.
type server struct {
	*httptest.Server
	bodies []string
	auth   []string
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.bodies, s.auth = append(s.bodies, r.URL.Path+" "+string(body)), append(s.auth, r.Header.Get("Authorization"))
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func pages() []Page {
	at := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	return []Page{
		{Key: "latched/*", Kind: "latched", About: "*", At: at, Urgent: true, Title: "the ladder: latched", Text: "it flaps"},
		{Key: "0/inc/a.jsonl/4", Kind: "signed", About: "inc", Actor: "ines", At: at.Add(time.Hour), Title: "ines: shed all services to tier 1", Text: "<!channel> & co"},
		{Key: "stuck/*", Kind: "stuck", About: "*", Over: true, Title: "the ladder: stuck is over", Text: "4h"},
	}
}

func TestTheAlertmanagerGetsAlertsOfVersionTwo(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	s := newServer(t, ok)
	now := time.Date(2026, 11, 30, 3, 30, 0, 0, time.UTC)
	a := NewAlertmanager(Address{URL: s.URL + "/am/", Token: func() (string, error) { return "s3cr3t", nil }}, "shop", true, func() time.Time { return now })
	if err := a.Send(t.Context(), pages()); err != nil {
		t.Fatal(err)
	}
	path, body, _ := strings.Cut(s.bodies[0], " ")
	var got []alert
	if err := json.Unmarshal([]byte(body), &got); err != nil || path != "/am/api/v2/alerts" || s.auth[0] != "Bearer s3cr3t" || len(got) != 3 {
		t.Fatalf("%v: %s %s", err, path, body)
	}
	for i, want := range []string{
		"map[about:* alertname:ic_latched fleet:shop realm:drill severity:page] 2026-11-30T03:00:00Z 0001-01-01T00:00:00Z REHEARSAL the ladder: latched",
		"map[about:inc actor:ines alertname:ic_signed entry:0/inc/a.jsonl/4 fleet:shop realm:drill severity:notice] 2026-11-30T03:30:00Z 2026-11-30T03:40:00Z REHEARSAL ines: shed all services to tier 1",
		"map[about:* alertname:ic_stuck fleet:shop realm:drill severity:page] 2026-11-30T03:30:00Z 2026-11-30T03:30:00Z REHEARSAL the ladder: stuck is over",
	} {
		line := fmt.Sprint(got[i].Labels, " ", got[i].StartsAt.Format(time.RFC3339), " ", got[i].EndsAt.Format(time.RFC3339), " ", got[i].Annotations["summary"])
		if line != want {
			t.Errorf("got  %s\nwant %s", line, want)
		}
	}
}

func TestAWebhookGetsOneTextThatCallsNobody(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	h := NewWebhook(Address{URL: s.URL + "/services/T0/B0/x"}, "shop", false)
	if err := h.Send(t.Context(), pages()); err != nil {
		t.Fatal(err)
	}
	want := `/services/T0/B0/x {"text":"shop: PAGE the ladder: latched: it flaps (2026-11-30 03:00:00Z)\nshop: ines: shed all services to tier 1: \u0026lt;!channel\u0026gt; \u0026amp; co (2026-11-30 04:00:00Z)\nshop: the ladder: stuck is over: 4h"}`
	if s.bodies[0] != want {
		t.Errorf("got  %s\nwant %s", s.bodies[0], want)
	}
}

func TestAnAnswerThatIsNoYesIsAFailureAndNamesNoAddress(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"a login page": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "it answers 302 and sends us elsewhere"},
		"a refusal":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\x1b[31m", http.StatusForbidden) }, `it answers 403: no\x1b[31m`},
		"a failure":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "it answers 502"},
	} {
		s := newServer(t, c.answer)
		err := NewWebhook(Address{URL: s.URL + "/s3cr3t"}, "shop", false).Send(t.Context(), pages())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cr3t") || len(s.bodies) != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, len(s.bodies))
		}
		s.Close()
		if err := NewWebhook(Address{URL: s.URL + "/s3cr3t"}, "shop", false).Send(t.Context(), pages()); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("nobody listens: %v", err)
		}
	}
	broken := Address{URL: "http://127.0.0.1:1", Token: func() (string, error) { return "", errors.New("the keyring is locked") }}
	if err := NewWebhook(broken, "shop", false).Send(t.Context(), pages()); err == nil || !strings.Contains(err.Error(), "the keyring is locked") {
		t.Errorf("%v", err)
	}
}

// A pager that takes a connection and never answers holds up neither the others
// nor whoever called.
func TestAPagerThatHangsIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	s := newServer(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := NewWebhook(Address{URL: s.URL}, "shop", false).Send(ctx, pages()); err == nil || !strings.Contains(err.Error(), "no answer in time") {
		t.Errorf("%v", err)
	}
}

func TestAddressesThatCannotWorkAreRefusedAndNotRepeated(t *testing.T) {
	for _, text := range []string{"", "pager:9093", "file:///etc/s3cr3t", "https://ana:s3cr3t@pager.example/"} {
		if err := CheckAddress(text); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := CheckAddress("https://hooks.example/services/x"); err != nil {
		t.Error(err)
	}
	if _, err := NewPager(PagerOptions{}); err == nil {
		t.Error("a pager of nothing")
	}
}

func TestRunTellsUntilItIsEnded(t *testing.T) {
	r, out := newRig(t), &pocket{name: "a"}
	p := r.pager(&watch{at: time.Unix(1, 0)}, out)
	ctx, cancel := context.WithCancel(t.Context())
	taken := make(chan struct{}, 1)
	out.fail = func() {
		select {
		case taken <- struct{}{}:
		default:
		}
	}
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	p.Alarms([]ladder.Alarm{{Kind: ladder.Stuck, About: "*", Text: "4h"}})
	<-taken
	cancel()
	<-done
}
