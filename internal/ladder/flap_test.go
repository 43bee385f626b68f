package ladder

import (
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// The flapping incident: a signal that swings every 90 seconds made 20 changes in
// 15 minutes with one threshold and no dwell. Here it makes two moves at most,
// however the 90 seconds are shared, whatever the tier does to the signal.
func TestASignalThatSwingsEvery90SecondsMakesTwoMovesAtMost(t *testing.T) {
	const period, lasts = 90 * time.Second, 15 * time.Minute
	swings := map[string]func(f *fleet, at time.Duration) float64{
		"as in the incident: the tier brings it down, leaving brings it back": func(f *fleet, _ time.Duration) float64 {
			if f.tier() > 0 {
				return 65
			}
			return 95
		},
		"the same, and deep enough to be left": func(f *fleet, _ time.Duration) float64 {
			if f.tier() > 0 {
				return 40
			}
			return 95
		},
	}
	for _, share := range []time.Duration{10, 30, 45, 60, 80} {
		swings["high for "+(share*time.Second).String()+" of it, come what may"] = func(_ *fleet, at time.Duration) float64 {
			if at%period < share*time.Second {
				return 95
			}
			return 40
		}
	}
	short := func(p *parts) { // a policy as eager as lint lets it be: two samples on the way in, six on the way out
		for i := range p.ladder.Tiers {
			tier := &p.ladder.Tiers[i]
			for j := range tier.Enter {
				tier.Enter[j].For = model.Duration(2 * tick)
			}
			for j := range tier.Leave {
				tier.Leave[j].For = model.Duration(6 * tick)
			}
		}
	}
	for name, value := range swings {
		for policy, b := range map[string]*fleet{"the shop's ladder": newFleet(t, shop(t)), "an eager one": newFleet(t, shop(t, short))} {
			f := b
			f.run(20*time.Minute, calm())
			for at := time.Duration(0); at < lasts; at += tick {
				f.tick(with(cpu, value(f, at)))
			}
			if len(f.moves) > 2 {
				t.Errorf("%s, %s: %d moves:%s", policy, name, len(f.moves), f.purposes())
			}
		}
	}
}

// wild is a ladder without any patience, so that only the guard holds it.
func wild(p *parts) {
	p.ladder.Automatic.Every, p.ladder.Automatic.Flaps, p.ladder.Automatic.FlapWindow = model.Duration(tick), 3, minutes(30)
	for i := range p.ladder.Tiers {
		tier := &p.ladder.Tiers[i]
		tier.Dwell, tier.RampStep, tier.Ramp = model.Duration(tick), model.Duration(tick), []int{100}
		for j := range tier.Enter {
			tier.Enter[j].For = model.Duration(2 * tick)
		}
		for j := range tier.Leave {
			tier.Leave[j].For = model.Duration(2 * tick)
		}
	}
}

func TestALadderThatFlapsIsLatchedAtTheHigherTierUntilAPersonHasSigned(t *testing.T) {
	flap := func(f *fleet) {
		for range 10 {
			f.run(time.Minute, with(cpu, 85.0))
			f.run(time.Minute, calm())
		}
	}
	for name, release := range map[string]func(f *fleet){
		"a shed":     func(f *fleet) { f.by("ines", decisions.Ask{Right: "shed", Tier: 1}) },
		"a recovery": func(f *fleet) { f.by("ines", decisions.Ask{Right: "recover", Tier: decisions.NextTier}) },
		"a freeze of a minute": func(f *fleet) {
			f.by("ines", decisions.Ask{Right: "freeze", Lasts: model.Duration(time.Minute)})
		},
	} {
		f := newFleet(t, shop(t, wild))
		f.run(5*time.Minute, calm())
		flap(f)
		if want := " enter 1 leave 1>0@100 enter 1"; f.purposes() != want || f.last.Turns != 3 || !strings.Contains(strings.Join(f.last.Why, "; "), "one turn more than the flap guard allows") {
			t.Fatalf("a recovery was the turn that latches: %s, %d turns, %v", f.purposes(), f.last.Turns, f.last.Why)
		}
		f.run(3*time.Minute, with(cpu, 95.0))
		if want := " enter 1 leave 1>0@100 enter 1 enter 2"; f.purposes() != want || f.last.Latch.IsZero() {
			t.Fatalf("%s, latched %s", f.purposes(), f.last.Latch)
		}
		if a := f.alarm(Latched); a == nil || !a.Since.Equal(f.last.Latch) || a.Key() != "latched/*" {
			t.Errorf("alarms %+v", f.last.Alarms)
		}
		f.run(5*time.Hour, calm()) // no time releases it
		f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 2})
		f.tick(calm()) // and no machine
		if len(f.moves) != 4 || f.last.Latch.IsZero() || f.tier() != 2 {
			t.Fatalf("it moved:%s, latched %s", f.purposes(), f.last.Latch)
		}
		release(f)
		f.run(10*time.Minute, with(cpu, 95.0))
		if !f.last.Latch.IsZero() || f.alarm(Latched) != nil {
			t.Errorf("%s does not release it", name)
		}
		if name == "a freeze of a minute" {
			if f.run(10*time.Minute, calm()); len(f.moves) == 4 {
				t.Errorf("after %s it does not go on: %v", name, f.last.Why)
			}
		}
	}
}

// A person who acts while the ladder flaps releases nothing: there is nothing to
// release yet, and what machines have done stays counted.
func TestAPersonWhoActsBeforeTheLatchStopsNoCount(t *testing.T) {
	f := newFleet(t, shop(t, wild))
	f.run(5*time.Minute, calm())
	for range 3 {
		f.run(time.Minute, with(cpu, 85.0))
		f.run(time.Minute, calm())
	}
	f.by("ines", decisions.Ask{Right: "freeze", Lasts: model.Duration(time.Second)})
	f.run(3*time.Minute, with(cpu, 95.0))
	if want := " enter 1 leave 1>0@100 enter 1 enter 2"; f.purposes() != want || f.last.Latch.IsZero() {
		t.Errorf("%s, latched %s", f.purposes(), f.last.Latch)
	}
}

func TestALongTierAndAMonthOfThemRaiseAlarms(t *testing.T) {
	f := newFleet(t, shop(t, func(p *parts) { p.ladder.Automatic.Every = minutes(1) }))
	f.run(3*time.Minute, with(p99, 1.5))
	f.run(2*time.Hour-5*time.Minute, with(p99, 0.7))
	if len(f.last.Alarms) > 0 {
		t.Fatalf("too early: %+v", f.last.Alarms)
	}
	f.run(10*time.Minute, with(p99, 0.7))
	if a := f.alarm(Budget); a == nil || a.About != "2026-11" || f.last.Spent < 7200 {
		t.Errorf("after two hours at tier 2: %+v, %d s", f.last.Alarms, f.last.Spent)
	}
	// A step that was halted does not make the tier any younger.
	f.by(robot, decisions.Ask{Right: "auto-recover", Tier: decisions.NextTier})
	f.run(2*time.Hour, with(p99, 0.7))
	a := f.alarm(Stuck)
	if a == nil || a.About != "*" || !a.Since.Equal(f.moves[0].Request.Directive.NotBefore) || !strings.Contains(a.Text, "all services stands at tier 2 or above since 2026-11-30T03:01:40Z, longer than 4h") {
		t.Errorf("after four hours: %+v, %s", f.last.Alarms, f.purposes())
	}
	// Another month has another budget, the tier stays as old as it is.
	f.now = time.Date(2026, 12, 1, 0, 30, 0, 0, time.UTC)
	f.tick(with(p99, 0.7))
	if f.alarm(Budget) != nil || f.last.Spent != 30*60+10 || f.alarm(Stuck) == nil {
		t.Errorf("half an hour into December: %d s, %+v", f.last.Spent, f.last.Alarms)
	}
}

// Everything about the past comes from what was signed: the order in which it is
// given does not matter, nor that log and carrier give it twice.
func TestThePastIsTheSameInAnyOrder(t *testing.T) {
	f := newFleet(t, shop(t))
	f.run(3*time.Minute, with(p99, 0.9))
	f.run(3*time.Minute, with(p99, 1.5))
	f.by("ines", decisions.Ask{Right: "freeze", Lasts: model.Duration(time.Minute)})
	f.run(2*time.Hour, calm())
	future := model.Directive{Kind: model.Shed, Tier: 4, Scope: "*", NotBefore: f.now.Add(time.Minute)}
	f.give(future, "ines", "fiona")
	want := MovesOf(f.b, f.issued, f.now)
	backwards := make([]model.Issued, 0, 2*len(f.issued))
	for i := range f.issued {
		backwards = append(backwards, f.issued[len(f.issued)-1-i], f.issued[i])
	}
	got := MovesOf(f.b, backwards, f.now)
	if len(got) != len(want) || len(want) != len(f.moves)+1 {
		t.Fatalf("%d moves, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].ID != want[i].ID || got[i].From != want[i].From || got[i].To != want[i].To || got[i].Turn != want[i].Turn || got[i].Automatic != want[i].Automatic {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	for i, m := range want {
		freeze := m.Kind == model.Freeze
		if m.Automatic == freeze || m.Turn && freeze || freeze != (i == 2) {
			t.Errorf("%+v", m)
		}
	}
	if m := want[1]; m.From != 1 || m.To != 2 || !m.Turn {
		t.Errorf("%+v", m)
	}
	// An ending that is known before what it ends holds nothing either.
	late := MovesOf(f.b, []model.Issued{
		{Directive: model.Directive{ID: "1", Kind: model.End, Ends: model.Shed, Scope: "*", IDs: []string{"2"}, From: 1, To: 0, Ramp: "2", Percent: 100, NotBefore: day0}},
		{Directive: model.Directive{ID: "2", Kind: model.Shed, Scope: "*", Tier: 1, NotBefore: day0.Add(time.Second)}},
	}, f.now)
	if late[1].To != 0 || late[1].Turn {
		t.Errorf("%+v", late)
	}
}

// Two controllers see the same and do the same: what they do twice counts once
// for the guard, and moves nothing.
func TestTwoControllersAreHarmless(t *testing.T) {
	f := newFleet(t, shop(t))
	both := func(values map[string]any) {
		f.now = f.now.Add(tick)
		f.read(values)
		a := Next(f.input())
		twin := f.input()
		twin.Machine = "twin"
		b := Next(twin)
		if (a.Move == nil) != (b.Move == nil) {
			t.Fatalf("one moves and one does not: %v, %v", a.Why, b.Why)
		}
		if a.Move != nil {
			f.moves = append(f.moves, *a.Move)
			f.give(a.Move.Request.Directive, robot)
			f.give(b.Move.Request.Directive, "twin")
		}
		f.last = a
	}
	for range 20 {
		both(with(p99, 1.5))
	}
	for range 3 * 360 {
		both(calm())
		if f.last.Turns > 2 {
			t.Fatalf("%d turns", f.last.Turns)
		}
	}
	if want := " enter 2 leave 2>1@10 leave 2>1@50 leave 2>1@100 leave 1>0@10 leave 1>0@50 leave 1>0@100"; f.purposes() != want || f.tier() != 0 {
		t.Errorf("%s, tier %d: %v", f.purposes(), f.tier(), f.last.Why)
	}
}
