package ladder

import (
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func minutes(n int) model.Duration { return model.Duration(time.Duration(n) * time.Minute) }

func TestATierIsEnteredWhenItsConditionHeldForItsWholeWindow(t *testing.T) {
	f := newFleet(t, shop(t))
	f.run(5*time.Minute, calm())
	if out := f.run(110*time.Second, with(p99, 0.9)); out.Move != nil || len(f.moves) > 0 {
		t.Fatalf("after 110 s: %s", f.purposes())
	} else if want := f.now.Add(10 * time.Second); !out.Again.Equal(want) { // it may have begun right after the last good sample
		t.Errorf("it looks again at %s, want %s", out.Again, want)
	}
	f.now = f.now.Add(13 * time.Second)
	if out, want := Next(f.input()), f.now.Add(2*time.Second); out.Move != nil || !out.Again.Equal(want) {
		t.Errorf("in the last step it looks again at %s, want %s", out.Again, want)
	}
	f.now = f.now.Add(-13 * time.Second)
	out := f.run(20*time.Second, with(p99, 0.9))
	if f.purposes() != " enter 1" || out.Move.Ask.Right != "auto-shed" || out.Move.Request.Directive.Scope != "*" {
		t.Fatalf("%s: %v", f.purposes(), out.Why)
	}
	if want := "checkout-p99 0.9 s, above 0.8 s for 2m"; out.Move.Text != want || out.Move.Request.Directive.Reason != want || out.Move.Request.Evidence != want {
		t.Errorf("it says %q", out.Move.Text)
	}
	if c := out.Move.Cause; len(c) != 1 || c[0].Signal != p99 || c[0].Value != 0.9 || c[0].State != model.ReadingValue {
		t.Errorf("causes %+v", c)
	}
	f.run(time.Hour, with(p99, 0.7))
	if f.purposes() != " enter 1" {
		t.Errorf("between the two thresholds: %s", f.purposes())
	}
}

func TestTheHighestTierThatAMachineMayEnterIsEntered(t *testing.T) {
	for _, c := range []struct {
		name   string
		values map[string]any
		change func(*parts)
		want   string
		person bool // a person is told of a tier above
	}{
		{"two tiers at once on the way up", with(p99, 1.5), nil, " enter 2", false},
		{"the tier of people calls", with(p99, 3.0), nil, " enter 2", true},
		{"tier 2 is for people", with(p99, 1.5), func(p *parts) { p.ladder.Tiers[1].Auto = false }, " enter 1", true},
		{"the role reaches tier 1", with(p99, 1.5), func(p *parts) {
			r := p.root.Roles[robot]
			r.MaxTier = 1
			p.root.Roles[robot] = r
		}, " enter 1", true},
		{"the right reaches tier 1", with(p99, 1.5), func(p *parts) {
			p.right("auto-shed", func(r *policy.Right) { r.Tiers = &policy.Range{From: 1, To: 1} })
		}, " enter 1", true},
		{"the right wants two people", with(p99, 1.5), func(p *parts) {
			p.right("auto-shed", func(r *policy.Right) { r.Cosign = policy.Cosign{Count: 1, Of: "business"} })
		}, "", false},
		{"two of three have to hold, and one does", with(p99, 1.5), func(p *parts) { p.ladder.Tiers[0].EnterNeeds, p.ladder.Tiers[1].EnterNeeds = 2, 2 }, "", false},
		{"two of three have to hold, and two do", with(p99, 1.5, cpu, 95.0), func(p *parts) { p.ladder.Tiers[0].EnterNeeds, p.ladder.Tiers[1].EnterNeeds = 2, 2 }, " enter 2", false},
		{"no number of conditions is no condition", with(p99, 1.5), func(p *parts) { p.ladder.Tiers[0].EnterNeeds, p.ladder.Tiers[1].EnterNeeds = 0, -1 }, "", false},
	} {
		b := shop(t)
		if c.change != nil {
			b = shop(t, c.change)
		}
		f := newFleet(t, b)
		f.run(10*time.Minute, c.values)
		if got := f.purposes(); got != c.want {
			t.Errorf("%s: %q, want %q; %v", c.name, got, c.want, f.last.Why)
		}
		if (f.alarm(ForHuman) != nil) != c.person {
			t.Errorf("%s: alarms %+v", c.name, f.last.Alarms)
		}
	}
}

func TestATierIsLeftInStepsWhenEveryConditionHeldForItsWholeWindow(t *testing.T) {
	f := newFleet(t, shop(t))
	for len(f.moves) == 0 {
		f.tick(with(p99, 1.5))
	}
	f.run(3*time.Hour, calm())
	if want := " enter 2 leave 2>1@10 leave 2>1@50 leave 2>1@100 leave 1>0@10 leave 1>0@50 leave 1>0@100"; f.purposes() != want {
		t.Fatalf("got %s, want %s", f.purposes(), want)
	}
	var at []time.Time
	for _, m := range MovesOf(f.b, f.issued, f.now) {
		at = append(at, m.At)
	}
	for i := 1; i < len(at); i++ {
		least := f.b.Automatic.Every.Std()
		if i == 1 || i == 4 {
			least = f.b.Tiers[0].Dwell.Std()
		}
		if gap := at[i].Sub(at[i-1]); gap < least || gap > least+tick {
			t.Errorf("move %d comes %s after the one before, want %s", i+1, gap, least)
		}
	}
	if f.tier() != 0 || len(f.last.Why) != 0 || f.last.Move != nil {
		t.Errorf("in the end: tier %d, %v", f.tier(), f.last.Why)
	}
	last := f.moves[len(f.moves)-1]
	if !strings.Contains(last.Text, "checkout-p99 0.2 s, below 0.5 s for 10m; cpu 40 %, below 60 % for 10m") || len(last.Cause) != 3 {
		t.Errorf("it says %q", last.Text)
	}
}

func TestWhoseTierItIsDecidesWhoLeavesIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine string
		shed    func(f *fleet)
		leaves  bool
	}{
		{"its own", robot, func(f *fleet) { f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 2}) }, true},
		{"its twin's", "twin", func(f *fleet) { f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 2}) }, true},
		{"a commander's", robot, func(f *fleet) { f.by("ines", decisions.Ask{Right: "shed", Tier: 2}) }, false},
		{"a commander's over its own", robot, func(f *fleet) {
			f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 1})
			f.by("ines", decisions.Ask{Right: "shed", Tier: 2})
		}, false},
		{"a tier of people", robot, func(f *fleet) { f.by("ines", decisions.Ask{Right: "shed", Tier: 3}) }, false},
		{"nobody that the root knows", "stranger", func(f *fleet) { f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 2}) }, false},
	} {
		f := newFleet(t, shop(t))
		f.machine = c.machine
		f.run(11*time.Minute, calm())
		c.shed(f)
		f.run(11*time.Minute, calm())
		if (len(f.moves) > 0) != c.leaves {
			t.Errorf("%s: %q, %v", c.name, f.purposes(), f.last.Why)
		}
		if !c.leaves && len(f.last.Why) == 0 {
			t.Errorf("%s: it does not say why", c.name)
		}
	}
}

func TestARampOfACommanderIsContinuedToItsEndAndNoFurther(t *testing.T) {
	f := newFleet(t, shop(t))
	f.run(11*time.Minute, calm())
	f.by("ines", decisions.Ask{Right: "shed", Tier: 2})
	f.run(11*time.Minute, calm())
	f.by("ines", decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	f.run(2*time.Hour, calm())
	if want := " leave 2>1@50 leave 2>1@100"; f.purposes() != want {
		t.Fatalf("got %q, want %q: %v", f.purposes(), want, f.last.Why)
	}
	if f.tier() != 1 || !strings.Contains(strings.Join(f.last.Why, "; "), "a person has a part") {
		t.Errorf("tier %d: %v", f.tier(), f.last.Why)
	}
}

func TestAGateThatFailsInTheMiddleOfARampHaltsIt(t *testing.T) {
	ramping := func(t *testing.T) *fleet {
		f := newFleet(t, shop(t))
		f.run(3*time.Minute, with(p99, 0.9))
		for len(f.moves) < 2 {
			f.tick(calm())
		}
		if f.purposes() != " enter 1 leave 1>0@10" {
			t.Fatal(f.purposes())
		}
		return f
	}
	t.Run("by values on the wrong side", func(t *testing.T) {
		f := ramping(t)
		f.run(30*time.Second, with(p99, 0.6))
		if f.purposes() != " enter 1 leave 1>0@10 halt 1" || f.moves[2].Text != "a gate of the ramp failed: checkout-p99 0.6 s, not below 0.5 s" {
			t.Fatalf("%s: %q", f.purposes(), f.moves[len(f.moves)-1].Text)
		}
		// From here it is a tier like any other: dwell, window, ramp.
		f.run(10*time.Minute-tick, calm())
		if len(f.moves) > 3 {
			t.Errorf("it went on before the dwell was over: %s", f.purposes())
		}
		f.run(time.Hour, calm())
		if want := " enter 1 leave 1>0@10 halt 1 leave 1>0@10 leave 1>0@50 leave 1>0@100"; f.purposes() != want {
			t.Errorf("%s", f.purposes())
		}
	})
	t.Run("one sample out of line only delays it", func(t *testing.T) {
		f := ramping(t)
		f.tick(with(p99, 0.6))
		f.run(9*time.Minute, calm())
		if len(f.moves) != 2 {
			t.Errorf("%s", f.purposes())
		}
		f.run(90*time.Second, calm())
		if f.purposes() != " enter 1 leave 1>0@10 leave 1>0@50" {
			t.Errorf("%s: %v", f.purposes(), f.last.Why)
		}
	})
	t.Run("one sample after a gap says too little", func(t *testing.T) {
		f := ramping(t)
		f.run(30*time.Second, with(p99, nil))
		f.tick(with(p99, 0.6))
		if len(f.moves) != 2 {
			t.Errorf("%s", f.purposes())
		}
		f.tick(with(p99, 0.6))
		if f.purposes() != " enter 1 leave 1>0@10 halt 1" {
			t.Errorf("%s", f.purposes())
		}
	})
	t.Run("the condition of the tier holds again", func(t *testing.T) {
		f := ramping(t)
		f.b = shop(t, func(p *parts) { // errors are no gate here, and enter all the same
			p.ladder.Tiers[0].Leave = p.ladder.Tiers[0].Leave[:2]
		})
		f.run(70*time.Second, with(fails, 1.5))
		if f.purposes() != " enter 1 leave 1>0@10 halt 1" {
			t.Errorf("%s: %v", f.purposes(), f.last.Why)
		}
	})
	t.Run("what is not known stops it where it is", func(t *testing.T) {
		f := ramping(t)
		f.b = shop(t, func(p *parts) { p.ladder.Automatic.Blind = 0 })
		f.run(time.Hour, with(p99, nil))
		if len(f.moves) != 2 {
			t.Errorf("%s", f.purposes())
		}
	})
	t.Run("a higher tier is called for", func(t *testing.T) {
		f := ramping(t)
		f.run(3*time.Minute, with(fails, 3.0))
		if f.purposes() != " enter 1 leave 1>0@10 halt 1 enter 2" {
			t.Errorf("%s", f.purposes())
		}
	})
	t.Run("a commander's ramp beyond its tiers is for him to halt", func(t *testing.T) {
		f := newFleet(t, shop(t))
		f.run(11*time.Minute, calm())
		f.by("ines", decisions.Ask{Right: "shed", Tier: 3})
		f.run(11*time.Minute, calm())
		f.by("ines", decisions.Ask{Right: "recover", Tier: decisions.NextTier})
		f.run(time.Minute, with(cpu, 70.0))
		if a := f.alarm(Broken); len(f.moves) > 0 || a == nil || !strings.Contains(a.Text, "a commander halts it (ic shed 3)") {
			t.Errorf("%s: %+v", f.purposes(), f.last.Alarms)
		}
	})
}

func TestTwoAutomaticMovesLieApart(t *testing.T) {
	late := func(p *parts) { p.ladder.Automatic.ShedAtOnce = false }
	for _, c := range []struct {
		name   string
		change func(*parts)
		want   string
	}{
		{"a shed need not wait", func(*parts) {}, " enter 1 enter 2"},
		{"a shed has to wait", late, " enter 1"},
	} {
		f := newFleet(t, shop(t, c.change))
		f.run(130*time.Second, with(p99, 0.9))
		f.run(130*time.Second, with(p99, 1.5))
		if f.purposes() != c.want {
			t.Errorf("%s: %s", c.name, f.purposes())
		}
		if c.want == " enter 1" && !strings.Contains(strings.Join(f.last.Why, "; "), "a shed to tier 2 waits until 03:06:40Z: 5m between two automatic moves") {
			t.Errorf("why: %v", f.last.Why)
		}
		f.run(5*time.Minute, with(p99, 1.5))
		if f.purposes() != " enter 1 enter 2" {
			t.Errorf("%s, after five minutes: %s", c.name, f.purposes())
		}
	}
}

func TestWhatCalledForATierWithinTheWindowKeepsIt(t *testing.T) {
	// The way out looks at less than the way in: a tier above is called for by errors.
	b := shop(t, func(p *parts) {
		p.ladder.Tiers[0].Leave = p.ladder.Tiers[0].Leave[:1]
		p.ladder.Tiers[0].Enter = p.ladder.Tiers[0].Enter[:1]
	})
	leaves := func(values map[string]any) bool {
		f := newFleet(t, b)
		f.run(3*time.Minute, with(p99, 0.9))
		f.run(8*time.Minute, calm())
		f.tick(values)
		f.run(3*time.Minute, calm())
		return len(f.moves) > 1
	}
	if !leaves(calm()) || !leaves(with(fails, 1.9)) {
		t.Error("it does not leave on a good night")
	}
	if leaves(with(fails, 2.1)) {
		t.Error("one sample of the window has called for tier 2, and it leaves tier 1")
	}
	f := newFleet(t, b)
	f.run(3*time.Minute, with(p99, 0.9))
	f.run(time.Hour, with(fails, nil))
	if f.purposes() != " enter 1" || !strings.Contains(strings.Join(f.last.Why, "; "), "checkout-errors has called for tier 2 within 10m, or is not known") {
		t.Errorf("what a tier above looks at is not known: %s %v", f.purposes(), f.last.Why)
	}
}

func TestMissingSignalsEnterTierOneAtMost(t *testing.T) {
	all := map[string]any{p99: unread("error"), cpu: unread("partial"), fails: unread("stale")}
	for _, c := range []struct {
		name   string
		blind  int
		needs  int
		values map[string]any
		want   string
	}{
		{"nothing is seen", 1, 1, all, " blind 1"},
		{"nothing is seen, and the policy lets nothing be entered on that", 0, 1, all, ""},
		{"a policy that lint would refuse", 4, 1, all, " blind 1"},
		{"one of three is missing, and any of them would do", 1, 1, with(cpu, nil), " blind 1"},
		{"one of three is missing, and two have to hold", 1, 2, with(cpu, nil), ""},
		{"one is missing, one holds, and two have to", 1, 2, with(cpu, nil, p99, 0.9), " blind 1"},
		{"one is missing and the other calls by value", 1, 1, with(cpu, nil, p99, 1.5), " enter 2"},
	} {
		f := newFleet(t, shop(t, func(p *parts) {
			p.ladder.Automatic.Blind = c.blind
			for i := range p.ladder.Tiers {
				p.ladder.Tiers[i].EnterNeeds = c.needs
			}
		}))
		f.run(50*time.Second, c.values)
		if len(f.moves) > 0 {
			t.Errorf("%s: after 50 s %s", c.name, f.purposes())
		}
		f.run(time.Hour, c.values)
		if f.purposes() != c.want {
			t.Errorf("%s: %q, want %q; %v", c.name, f.purposes(), c.want, f.last.Why)
		}
		if f.alarm(Unseen) == nil {
			t.Errorf("%s: nobody is told", c.name)
		}
	}
	f := newFleet(t, shop(t))
	f.run(3*time.Minute, all)
	if text := f.moves[0].Text; !strings.Contains(text, "checkout-p99 is error for 2m; cpu is partial for 2m; checkout-errors is stale for 1m") {
		// The first to have been missing for its whole window is named first.
		if text != "checkout-errors is stale for 1m" {
			t.Errorf("it says %q", text)
		}
	}
}

func TestNobodyIsTakenForBlindWhoHasNotLooked(t *testing.T) {
	f := newFleet(t, shop(t))
	f.run(10*time.Minute, calm())
	in := f.input()
	in.World.Readings = nil // the first look after a start: nothing has answered yet
	if out := Next(in); out.Move != nil || len(out.Alarms) > 0 {
		t.Errorf("%+v", out)
	}
}

func TestAFreezeStopsEveryAutomaticMove(t *testing.T) {
	freeze := model.Directive{Kind: model.Freeze, Scope: "checkout", NotAfter: day0.Add(2 * time.Hour)}
	f := newFleet(t, shop(t))
	f.give(freeze, "ines")
	f.run(10*time.Minute, with(p99, 1.5))
	if len(f.moves) > 0 || !f.last.Frozen || !f.last.Again.Equal(freeze.NotAfter) {
		t.Errorf("%s, %+v", f.purposes(), f.last)
	}
	f.by("ines", decisions.Ask{Right: "shed", Tier: 2})
	if f.tier() != 2 {
		t.Errorf("a person was stopped: tier %d", f.tier())
	}
}

func TestTheScheduleEntersItsTierAndOnlyAPersonLeavesItWhileItRuns(t *testing.T) {
	sale := policy.Event{Tier: 2, Scope: []string{"*"}, From: day0.Add(time.Hour), Until: day0.Add(4 * time.Hour), Soak: minutes(10), Why: "sale"}
	eventful := func(t *testing.T, e policy.Event) *fleet {
		return newFleet(t, shop(t, func(p *parts) { p.ladder.Schedule = map[string]policy.Event{"sale": e} }))
	}
	t.Run("entered on time and held", func(t *testing.T) {
		f := eventful(t, sale)
		f.run(time.Hour-tick, calm())
		if len(f.moves) > 0 || !f.last.Again.Equal(sale.From) {
			t.Fatalf("%s, again at %s", f.purposes(), f.last.Again)
		}
		f.run(3*time.Hour, calm())
		if f.purposes() != " event 2" || f.moves[0].Text != "sale runs since 04:00:00Z" {
			t.Fatalf("%s: %+v", f.purposes(), f.moves)
		}
		f.run(20*time.Minute, calm())
		if !strings.HasPrefix(f.purposes(), " event 2 leave 2>1@10") {
			t.Errorf("after it: %s", f.purposes())
		}
	})
	t.Run("a person has left it, and it is not entered again", func(t *testing.T) {
		f := eventful(t, sale)
		f.run(80*time.Minute, calm())
		for range 6 {
			f.by("ines", decisions.Ask{Right: "recover", Tier: decisions.NextTier})
		}
		f.run(time.Hour, calm())
		if f.purposes() != " event 2" || f.tier() != 0 || f.alarm(ForHuman) != nil {
			t.Errorf("%s, tier %d, %+v", f.purposes(), f.tier(), f.last.Alarms)
		}
	})
	t.Run("it begins in the middle of a ramp", func(t *testing.T) {
		f := eventful(t, sale)
		f.run(30*time.Minute, calm())
		f.by(robot, decisions.Ask{Right: "auto-shed", Tier: 2})
		f.run(25*time.Minute, calm())
		f.by(robot, decisions.Ask{Right: "auto-recover", Tier: decisions.NextTier})
		f.moves = nil
		f.run(10*time.Minute, calm())
		if !strings.Contains(f.purposes(), " event 2") || decisions.ChainOf(f.world(), "*").Ramp != nil {
			t.Errorf("%s", f.purposes())
		}
	})
	t.Run("a tier of people", func(t *testing.T) {
		e := sale
		e.Tier = 3
		f := eventful(t, e)
		f.run(time.Hour, calm())
		if a := f.alarm(ForHuman); len(f.moves) > 0 || a == nil || !strings.Contains(a.Text, "sale wants tier 3 for all services from 04:00:00Z") {
			t.Errorf("%s: %+v", f.purposes(), f.last.Alarms)
		}
	})
	t.Run("one service", func(t *testing.T) {
		e := sale
		e.Scope = []string{"payment-risk"} // which knows one tier
		f := eventful(t, e)
		f.run(90*time.Minute, calm())
		if len(f.moves) != 1 || f.moves[0].Request.Directive.Scope != "payment-risk" || f.moves[0].Request.Directive.Tier != 1 {
			t.Errorf("%+v", f.moves)
		}
	})
}

func TestARightOfServicesShedsThemOneByOne(t *testing.T) {
	f := newFleet(t, shop(t, func(p *parts) {
		p.right("auto-shed", func(r *policy.Right) { r.Scope = []string{"edge", "payment-risk"} })
		p.right("auto-recover", func(r *policy.Right) { r.Scope = []string{"edge"} })
	}))
	f.run(10*time.Minute, with(p99, 1.5))
	var got []string
	for _, m := range f.moves {
		got = append(got, m.Request.Directive.Scope+" "+number(m.Request.Directive.Tier))
	}
	if strings.Join(got, ", ") != "edge 2, payment-risk 1" {
		t.Fatalf("%v: %v", got, f.last.Why)
	}
	f.run(time.Hour, calm())
	if d := f.moves[2].Request.Directive; d.Scope != "edge" || !d.IsRecovery() {
		t.Errorf("%+v", d)
	}
	if !strings.Contains(strings.Join(f.last.Why, "; "), "leaving tier 1 of payment-risk is for people") {
		t.Errorf("%v", f.last.Why)
	}
}

func TestNextIsTotal(t *testing.T) {
	f := newFleet(t, shop(t))
	f.run(time.Minute, calm())
	for name, in := range map[string]Input{
		"nothing":   {},
		"no world":  {Bundle: f.b},
		"no root":   {Bundle: &policy.Bundle{}, World: f.world()},
		"no ladder": {Bundle: &policy.Bundle{Root: f.b.Root}, World: f.world(), Machine: robot},
	} {
		if out := Next(in); out.Move != nil || len(out.Why) == 0 {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if MovesOf(nil, f.issued, f.now) != nil {
		t.Error("moves without a policy")
	}
}

func TestAReasonFitsIntoADirective(t *testing.T) {
	for _, text := range []string{"", strings.Repeat("x", model.MaxReason), strings.Repeat("µ", model.MaxReason)} {
		got := shortened(text)
		if len(got) > model.MaxReason || len(text) <= model.MaxReason && got != text || strings.ContainsRune(got, '\ufffd') {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}
