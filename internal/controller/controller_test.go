package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/ladder"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func TestTheLadderIsEnteredAndLeftByItself(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	if got := moves(r.loop(c, 5*time.Minute)); len(got) > 0 {
		t.Fatalf("on a calm night it moves: %v", got)
	}
	r.now(with(templates.CheckoutP99, 1.5))
	began := r.clock.Now().Boot
	var lines []Line
	for r.tier() == 0 {
		lines = append(lines, r.loop(c, time.Second)...)
	}
	if late := r.clock.Now().Boot - began - 2*time.Minute; late > 12*time.Second {
		t.Errorf("two minutes and %s after the first bad sample hosts shed", late)
	}
	r.now(calm())
	lines = append(lines, r.loop(c, time.Hour)...)
	all := "all services from tier "
	want := []string{"enter shed all services to tier 2",
		"leave recover " + all + "2 to 1 on 10 % of hosts", "leave recover " + all + "2 to 1 on 50 % of hosts", "leave recover " + all + "2 to 1 on 100 % of hosts",
		"leave recover " + all + "1 to 0 on 10 % of hosts", "leave recover " + all + "1 to 0 on 50 % of hosts", "leave recover " + all + "1 to 0 on 100 % of hosts"}
	if got := moves(lines); !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.tier() != 0 {
		t.Errorf("hosts end at tier %d", r.tier())
	}
	r.logNamesSignals("checkout-p99 1.5 s, above 1.2 s for 2m", "checkout-p99 0.2 s, below 0.6 s for 10m; cpu 40 %, below 60 % for 10m; checkout-errors 0.1 %, below 0.5 % for 10m")
}

// logNamesSignals wants these sentences in the log, as evidence of an act.
func (r *rig) logNamesSignals(want ...string) {
	r.t.Helper()
	all, err := audit.List(r.state)
	if err != nil || len(all) != 1 {
		r.t.Fatal(err, len(all))
	}
	sessions, err := audit.Read(all[0].ID, r.state)
	if err != nil {
		r.t.Fatal(err)
	}
	var said []string
	for _, s := range sessions {
		for _, e := range s.Entries {
			if i, ok := e.Body.(audit.Intent); ok {
				said = append(said, i.Request.Evidence)
			}
		}
	}
	for _, text := range want {
		if !slices.Contains(said, text) {
			r.t.Errorf("the log does not say %q; it says %q", text, said)
		}
	}
}

// Ten minutes of SIGSTOP between two looks: what was noted before is forgotten,
// and the first look after it reads before anything else.
func TestWhoeverWasPausedForgetsWhatHeHadNoted(t *testing.T) {
	for _, c := range []struct {
		name  string
		sleep func(*rig)
		gap   string
	}{
		{"stopped for ten minutes", func(r *rig) { r.pass(10 * time.Minute) }, "nobody has looked for 10m"},
		{"the wall clock is put an hour ahead", func(r *rig) { r.clock.setWall(time.Hour); r.pass(10 * time.Second) }, "the wall clock was set by 1h0m0s"},
		{"and an hour back", func(r *rig) { r.clock.setWall(-time.Hour); r.pass(10 * time.Second) }, "the wall clock was set by -1h0m0s"},
		{"the machine was started again", func(r *rig) { r.clock.id = "other"; r.pass(10 * time.Second) }, "started again"},
		{"nothing happened", func(r *rig) { r.pass(10 * time.Second) }, ""},
	} {
		r := newRig(t)
		loop := r.controller()
		r.now(nil)
		if got := moves(r.loop(loop, 40*time.Second)); len(got) > 0 {
			t.Fatalf("%s: blind for 40 s it moves: %v", c.name, got)
		}
		c.sleep(r)
		reads := r.reads
		line := loop.Look(context.Background())
		if r.reads == reads {
			t.Errorf("%s: it has read nothing", c.name)
		}
		if !strings.Contains(line.Gap, c.gap) || (line.Gap == "") != (c.gap == "") || line.Move != nil {
			t.Errorf("%s: %q, %+v", c.name, line.Gap, line.Move)
		}
		r.pass(10 * time.Second)
		later := r.loop(loop, 70*time.Second)
		if c.gap != "" && len(moves(later[:4])) > 0 || len(moves(later)) != 1 {
			t.Errorf("%s: then %v", c.name, moves(later))
		}
	}
}

// pausing is a clock that is stopped for ten minutes at one of its readings.
type pausing struct {
	*clock
	at, reads int
}

func (p *pausing) Now() model.Instant {
	if p.reads++; p.reads == p.at {
		p.pass(10 * time.Minute)
	}
	return p.clock.Now()
}

// SIGSTOP in the worst moments: while everything is read, and when it was read and
// nothing is signed yet.
func TestAViewThatGrewOldIsReadAgainBeforeAnythingIsSigned(t *testing.T) {
	for name, stop := range map[string]func(*rig, *pausing){
		"while it is read": func(r *rig, _ *pausing) { r.reading = func() { r.clock.pass(10 * time.Minute) } },
		"before it signs":  func(_ *rig, p *pausing) { p.at = p.reads + 2 },
	} {
		r := newRig(t)
		p := &pausing{clock: r.clock}
		c := r.controller(func(o *Options) { o.Clock = p })
		r.now(with(templates.CheckoutP99, 1.5))
		r.pass(3 * time.Minute)
		stop(r, p)
		line := c.Look(context.Background())
		if len(r.flags.tokens) > 0 || name == "before it signs" && (!line.Stale || !strings.Contains(line.Move.Error, "is 10m0s old: everything is read again first") || c.pause(&line) > time.Second) {
			t.Fatalf("%s: %+v, %d tokens", name, line.Move, len(r.flags.tokens))
		}
		r.reading = nil
		r.now(calm()) // the load is long gone
		r.pass(time.Second)
		if line := c.Look(context.Background()); line.Move != nil || r.tier() != 0 {
			t.Errorf("%s: what it acts on is ten minutes old: %+v", name, line.Move)
		}
	}
}

func TestEtcdMayDieAndComeBack(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	r.loop(c, time.Minute)
	r.flags.down = true
	r.now(with(templates.CheckoutP99, 0.9))
	lines := r.loop(c, 150*time.Second)
	if got := moves(lines); len(got) != 1 {
		t.Fatalf("without etcd it decides %v", got)
	}
	r.now(calm())
	if lines := r.loop(c, time.Minute); len(moves(lines)) > 0 || r.tier() != 0 || lines[0].Tiers["*"] != 1 {
		t.Errorf("it decides again, or hosts know: %v, tier %d", moves(lines), r.tier())
	}
	r.flags.down = false
	lines = r.loop(c, 20*time.Second)
	n := 0
	for _, l := range lines {
		n += l.Redelivered
	}
	if n != 1 || r.tier() != 1 {
		t.Errorf("%d handed over after the outage, hosts are at tier %d", n, r.tier())
	}
}

func TestPrometheusMayDieAndNothingIsLeftOnThat(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	r.now(with(templates.CheckoutP99, 1.5))
	r.loop(c, 3*time.Minute)
	r.now(nil)
	lines := r.loop(c, time.Hour)
	last := lines[len(lines)-1]
	if got := moves(lines); len(got) > 0 || r.tier() != 2 || !slices.Contains(kinds(last.Alarms), string(ladder.Unseen)) {
		t.Errorf("%v, tier %d, alarms %v", got, r.tier(), kinds(last.Alarms))
	}
	r.now(calm())
	if got := moves(r.loop(c, 9*time.Minute)); len(got) > 0 {
		t.Errorf("nine minutes after it came back: %v", got)
	}
	if got := moves(r.loop(c, 3*time.Minute)); len(got) != 1 {
		t.Errorf("twelve minutes after it came back: %v", got)
	}
}

func TestTwoControllersComeToTheSame(t *testing.T) {
	r := newRig(t)
	one, two := r.controller(), r.controller()
	both := func(d time.Duration) (lines []Line) {
		for end := r.clock.Now().Boot + d; r.clock.Now().Boot < end; r.pass(10 * time.Second) {
			done := make(chan Line)
			go func() { done <- two.Look(context.Background()) }()
			lines = append(lines, one.Look(context.Background()), <-done)
		}
		return lines
	}
	r.now(with(templates.CheckoutP99, 1.5))
	both(3 * time.Minute)
	if r.tier() != 2 {
		t.Fatalf("tier %d", r.tier())
	}
	r.now(calm())
	lines := both(time.Hour)
	if r.tier() != 0 {
		t.Errorf("they do not get out: tier %d, %v", r.tier(), lines[len(lines)-1].Why)
	}
	for _, got := range moves(lines) {
		if strings.Contains(got, "shed") {
			t.Errorf("they work against one another: %v", moves(lines))
		}
	}
}

func TestOnlyWhoLeadsActs(t *testing.T) {
	r := newRig(t)
	leads, failed, rests := false, error(nil), 0
	c := r.controller(func(o *Options) {
		o.Leads = func(context.Context) (bool, error) { return leads, failed }
		o.Rest = func() { rests++ }
	})
	r.now(with(templates.CheckoutP99, 1.5))
	reads := r.reads
	lines := r.loop(c, 5*time.Minute)
	if got := moves(lines); len(got) > 0 || r.reads != reads || lines[0].Leads || rests != len(lines) {
		t.Errorf("it does not lead and does %v, %d reads", got, r.reads-reads)
	}
	failed = errors.New("nobody can say who leads")
	lines = r.loop(c, 20*time.Second)
	if got := moves(lines); len(got) != 1 || !lines[0].Leads || len(lines[0].Problems) != 1 {
		t.Errorf("nobody can say who leads: %v, %+v", got, lines[0])
	}
}

func TestAlarmsStandInTheLogFromTheirBeginToTheirEnd(t *testing.T) {
	r := newRig(t)
	var told [][]string
	c := r.controller(func(o *Options) { o.Alarm = func(a []ladder.Alarm) { told = append(told, kinds(a)) } })
	r.now(with(templates.CheckoutP99, 3))
	r.loop(c, 5*time.Minute)
	if !slices.Equal(told[len(told)-1], []string{"for-human"}) {
		t.Fatalf("told %v", told)
	}
	r.by("ines", decisions.Ask{Right: "shed", Tier: 3, Reason: "it is for people"})
	r.loop(c, time.Minute)
	d := r.desk("")
	d.Refresh(context.Background())
	var notes []string
	for _, l := range d.Snapshot().Log {
		if l.Actor == robot && strings.HasPrefix(l.Text, alarmMark) {
			notes = append(notes, l.Text)
		}
	}
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "alarm for-human tier-3 *: signals call for tier 3 (essentials) of all services, which only people enter: checkout-p99 3 s") || notes[1] != "alarm for-human tier-3 * is over" {
		t.Errorf("%q", notes)
	}
}

func TestAPersonsFreezeHoldsTheLoop(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	r.by("ines", decisions.Ask{Right: "freeze", Reason: "hands off"})
	r.now(with(templates.CheckoutP99, 1.5))
	lines := r.loop(c, 10*time.Minute)
	if got := moves(lines); len(got) > 0 || r.tier() != 0 || !strings.Contains(lines[len(lines)-1].Text(), "a freeze (") {
		t.Errorf("%v: %s", got, lines[len(lines)-1].Text())
	}
}

func TestTheLoopWakesWhenAWindowIsAboutToBeWhole(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	c.Look(context.Background())
	r.pass(10 * time.Second)
	r.now(with(templates.CheckoutP99, 1.5))
	r.pass(126 * time.Second)
	line := c.Look(context.Background())
	wait := c.pause(&line)
	if line.Move != nil || wait != 2*time.Second {
		t.Fatalf("%+v, again in %s", line.Move, wait)
	}
	for range 3 {
		r.pass(wait)
		if line = c.Look(context.Background()); line.Move != nil {
			return
		}
		wait = c.pause(&line)
	}
	t.Errorf("six seconds later: %v, again in %s", line.Why, wait)
}

func TestMetricsAndHealthSayWhatTheLoopDoes(t *testing.T) {
	r := newRig(t)
	c := r.controller()
	get := func(path string) (int, string) {
		rec := httptest.NewRecorder()
		c.Handler(nil).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		return rec.Code, rec.Body.String()
	}
	if code, _ := get("/healthz"); code != http.StatusServiceUnavailable {
		t.Errorf("before the first look: %d", code)
	}
	r.now(with(templates.CheckoutP99, 1.5))
	r.loop(c, 3*time.Minute)
	values := with(templates.CheckoutP99, 1.5)
	delete(values, templates.CPU)
	r.now(values)
	r.loop(c, 10*time.Second)
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("while it looks: %d", code)
	}
	_, text := get("/metrics")
	for _, want := range []string{
		`ic_controller_tier{scope="*"} 2`, "ic_controller_target_tier 2", `ic_controller_signal{signal="checkout-p99"} 1.5`,
		`ic_controller_signal_state{signal="cpu",state="error"} 1`, `ic_controller_moves_total{purpose="enter",result="done"} 1`, "ic_controller_latched 0",
		"# TYPE ic_controller_moves_total counter", "ic_controller_turns 1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, `ic_controller_signal{signal="cpu"}`) {
		t.Error("a signal that is no value has a number")
	}
	r.pass(5 * time.Minute)
	if code, _ := get("/healthz"); code != http.StatusServiceUnavailable {
		t.Errorf("five minutes without a look: %d", code)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	c := r.controller(func(o *Options) {
		o.Sleep = func(ctx context.Context, d time.Duration) error {
			if looks++; looks == 3 {
				cancel()
			}
			r.pass(d)
			return ctx.Err()
		}
	})
	if err := c.Run(ctx); !errors.Is(err, context.Canceled) || looks != 3 {
		t.Errorf("%v after %d looks", err, looks)
	}
}

// ended is a clock that ends a loop at one of its readings.
type ended struct {
	*clock
	end   func()
	reads int
}

func (e *ended) Now() model.Instant {
	if e.reads++; e.reads == 2 { // everything is read, nothing is signed
		e.end()
	}
	return e.clock.Now()
}

func TestAMoveThatHasBegunIsFinishedAndTold(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	var told []Line
	c := r.controller(func(o *Options) {
		o.Clock = &ended{clock: r.clock, end: cancel}
		o.Emit = func(l Line) { told = append(told, l) }
	})
	r.now(with(templates.CheckoutP99, 1.5))
	r.pass(3 * time.Minute)
	c.Look(ctx)
	if len(told) != 1 || told[0].Move == nil || told[0].Move.State != incident.Effective || r.tier() != 2 {
		t.Errorf("told %+v, tier %d", told, r.tier())
	}
}

func TestTheLadderMovesByTheKeyOfAMachine(t *testing.T) {
	r := newRig(t)
	o := Options{Desk: r.desk("ines"), Bundle: r.bundle, Machine: "ines", Clock: r.clock, Sleep: func(context.Context, time.Duration) error { return nil }}
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "ines is no machine of the trust root") {
		t.Errorf("%v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a controller of nothing")
	}
}
