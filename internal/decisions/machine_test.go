package decisions

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

const (
	robot  = "ladder-controller" // machine and role
	robotB = "ladder-b"          // a second one in the same role
	pump   = "pump"              // a machine that holds no role of the ladder
)

// automated is the shop with rights of the ladder and three machines.
func automated(t *testing.T) *policy.Bundle {
	return changed(t, func(p *parts) {
		for _, name := range []string{robotB, pump} {
			p.root.Machines[name] = policy.Machine{Keys: []string{publicKey(t, name)}}
		}
		p.root.Roles[robot] = policy.Role{Machines: []string{robot, robotB}, Tightens: true, MaxTier: 2}
		tiers := &policy.Range{From: 1, To: 2}
		p.docs.Rights.Rights["auto-shed"] = policy.Right{Kind: model.Shed, Who: robot, Scope: []string{"*"}, Tiers: tiers}
		p.docs.Rights.Rights["auto-recover"] = policy.Right{Kind: model.End, Ends: model.Shed, Who: robot, Scope: []string{"*"}, Tiers: tiers}
		p.docs.Rights.Rights["auto-unfreeze"] = policy.Right{Kind: model.End, Ends: model.Freeze, Who: robot, Scope: []string{"*"}}
	})
}

// signed says who has signed the directives of a world, in their order.
func signed(w *model.World, signers ...[]string) {
	for i := range signers {
		w.Issued[i].Signers = signers[i]
	}
}

func by(names ...string) []string { return names }

func TestAMachineLeavesWithoutCommandWhatMachinesOfItsRoleHaveEntered(t *testing.T) {
	for _, c := range []struct {
		name    string
		signers [][]string // of a shed to 1 and a shed to 2
		own     bool
	}{
		{"its own sheds", [][]string{by(robot), by(robot)}, true},
		{"those of its twin", [][]string{by(robotB), by(robot)}, true},
		{"a person's", [][]string{by("ines"), by("ines")}, false},
		{"a person's lower one", [][]string{by("ines"), by(robot)}, false},
		{"a person's higher one", [][]string{by(robot), by("ines")}, false},
		{"one that a person has signed too", [][]string{by(robot), by(robot, "ines")}, false},
		{"one of a machine in no role of the ladder", [][]string{by(robot), by(pump)}, false},
		{"one of which nobody knows who signed it", [][]string{by(robot), nil}, false},
	} {
		b, w := automated(t), calm()
		w.Incident.Lease = model.Lease{}
		shedAt(w, 1, 1, day0.Add(-time.Hour))
		shedAt(w, 2, 2, day0.Add(-time.Hour))
		signed(w, c.signers...)
		r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
		v := Evaluate(b, w, &r)
		if c.own {
			expect(t, v, model.Permitted)
		} else {
			expect(t, v, model.Denied, NotOwn)
		}
		if chain := ChainOf(w, "*"); Own(b, w, &chain, robot) != c.own {
			t.Errorf("%s: Own says %v", c.name, !c.own)
		}
		// Whose it is changes nothing for a person: he needs command.
		r = draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
		expect(t, Evaluate(b, w, &r), model.Needs, NoLease)
	}
}

// What a step has ended, and what it lists and nobody has seen, is part of the
// chain: a host that missed the step still holds it.
func TestWhatAChainHasEndedCountsAsMuchAsWhatIsLive(t *testing.T) {
	b := automated(t)
	for _, c := range []struct {
		name  string
		first []string
		ids   []string
		own   bool
	}{
		{"all its own", by(robot), []string{id(1)}, true},
		{"ended by it, entered by a person", by("ines"), []string{id(1)}, false},
		{"one that was never seen", by(robot), []string{id(1), id(7)}, false},
	} {
		w := calm()
		w.Incident.Lease = model.Lease{}
		shedAt(w, 1, 2, day0.Add(-2*time.Hour))
		step(w, 2, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", IDs: c.ids, From: 2, To: 1, Ramp: id(1), Percent: 100}, day0.Add(-time.Hour))
		signed(w, c.first, by(robot))
		r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
		v := Evaluate(b, w, &r)
		if (v.Outcome == model.Permitted) != c.own {
			t.Errorf("%s: %s %v", c.name, v.Outcome, codes(v))
		}
	}
}

func TestAMachineGoesOnWithAStepOfACommanderAndBeginsNone(t *testing.T) {
	b := automated(t)
	for _, c := range []struct {
		name    string
		steps   [][]string // signers of 10 % and, if there are two, of 50 %
		permits bool
	}{
		{"a commander's step", [][]string{by("ines")}, true},
		{"a step that two people have signed", [][]string{by("ines", "dev")}, true},
		{"its own, after a commander's", [][]string{by("ines"), by(robot)}, true},
		{"one of a machine in no role of the ladder", [][]string{by(pump)}, false},
		{"a step of nobody", [][]string{nil}, false},
	} {
		w := calm()
		w.Incident.Lease = model.Lease{}
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		ids := []string{id(1)}
		for n, percent := range []int{10, 50}[:len(c.steps)] {
			d := model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", IDs: ids, From: 2, To: 1, Ramp: id(1), Percent: percent}
			step(w, 2+n, d, day0.Add(-time.Duration(20-10*n)*time.Minute))
			ids = append(ids, id(2+n))
		}
		signed(w, append([][]string{by("ines")}, c.steps...)...)
		r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
		v := Evaluate(b, w, &r)
		if !c.permits {
			expect(t, v, model.Denied, NotOwn)
			continue
		}
		expect(t, v, model.Permitted)
		// Only the very next step of the very ramp.
		for name, bend := range map[string]func(*model.Directive){
			"another ramp":       func(d *model.Directive) { d.Ramp = id(9) },
			"a step further":     func(d *model.Directive) { d.Percent = 100 - d.Percent%100 + 1 },
			"two tiers":          func(d *model.Directive) { d.To = 0 },
			"a shorter list":     func(d *model.Directive) { d.IDs = d.IDs[1:] },
			"from another tier":  func(d *model.Directive) { d.From, d.To = 1, 0 },
			"the same step over": func(d *model.Directive) { d.Percent = 10 },
		} {
			bent := r
			bent.Directive.IDs = append([]string{}, r.Directive.IDs...)
			bend(&bent.Directive)
			if v := Evaluate(b, w, &bent); v.Outcome == model.Permitted {
				t.Errorf("%s: %s passes", c.name, name)
			}
		}
	}
	// A shed of the commander at the same tier is a halt: the ramp is over.
	w := calm()
	w.Incident.Lease = model.Lease{}
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	step(w, 2, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", IDs: []string{id(1)}, From: 2, To: 1, Ramp: id(1), Percent: 10}, day0.Add(-50*time.Minute))
	shedAt(w, 3, 2, day0.Add(-40*time.Minute))
	signed(w, by("ines"), by("ines"), by("ines"))
	r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
	expect(t, Evaluate(b, w, &r), model.Denied, NotOwn)
}

// A person's shed at a lower tier makes a stranger's ramp nobody else's, and where
// nothing is shed nothing belongs to anybody.
func TestARampBelongsToWhoeverTookItsStep(t *testing.T) {
	b, w := automated(t), calm()
	w.Incident.Lease = model.Lease{}
	shedAt(w, 1, 1, day0.Add(-2*time.Hour))
	shedAt(w, 2, 2, day0.Add(-time.Hour))
	step(w, 3, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", IDs: []string{id(2)}, From: 2, To: 1, Ramp: id(2), Percent: 10}, day0.Add(-50*time.Minute))
	w.Issued[1].EndedBy = id(3)
	signed(w, by("ines"), by(pump), by(pump))
	if c := ChainOf(w, "*"); c.Ramp == nil || len(c.Live) != 2 || Underway(b, w, &c, robot) {
		t.Errorf("%+v", c)
	}
	// Nor does a person's ramp out of a lower tier.
	step(w, 4, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", IDs: []string{id(1)}, From: 1, To: 0, Ramp: id(1), Percent: 10}, day0.Add(-40*time.Minute))
	w.Issued[0].EndedBy = id(4)
	signed(w, by("ines"), by(pump), by(pump), by("ines"))
	if c := ChainOf(w, "*"); c.Ramp == nil || c.Ramp.From != 2 || len(c.Live) != 2 || Underway(b, w, &c, robot) {
		t.Errorf("%+v", c)
	}
	nothing := calm()
	nothing.Incident.Lease = model.Lease{}
	r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
	if v := Evaluate(b, nothing, &r); slices.Contains(codes(v), NotOwn) || v.Outcome != model.Denied {
		t.Errorf("nothing is shed: %v", codes(v))
	}
}

// The gates are the same for a machine as for a person.
func TestAMachineIsHeldByEveryGateOfARecovery(t *testing.T) {
	b := automated(t)
	for name, c := range map[string]struct {
		change func(*model.World)
		code   model.Code
	}{
		"no reading":    {func(w *model.World) { w.Readings = nil }, SignalUnknown},
		"a bad reading": {func(w *model.World) { w.Readings["errors"] = steady(0.5, day0) }, SignalNotGood},
		"dwell":         {func(w *model.World) { w.Issued[0].Directive.NotBefore = day0.Add(-9 * time.Minute) }, Dwell},
		"a freeze": {func(w *model.World) {
			w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(5), Kind: model.Freeze, Scope: "checkout", NotBefore: day0, NotAfter: day0.Add(time.Hour)}})
		}, Frozen},
	} {
		w := calm()
		w.Incident.Lease = model.Lease{}
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		signed(w, by(robot))
		c.change(w)
		r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: robot})
		v := Evaluate(b, w, &r)
		if v.Outcome != model.Needs || codes(v)[0] != c.code {
			t.Errorf("%s: %s %v", name, v.Outcome, codes(v))
		}
	}
}

// Command is for people: what else a machine would give back waits for one.
func TestAMachineEndsNoFreezeWithoutCommand(t *testing.T) {
	b, w := automated(t), calm()
	w.Issued = append(w.Issued, model.Issued{Signers: by(robot), Directive: model.Directive{ID: id(1), Kind: model.Freeze, Scope: "*", NotBefore: day0, NotAfter: day0.Add(time.Hour)}})
	r := draft(t, b, w, Ask{Right: "auto-unfreeze", Actor: robot})
	expect(t, Evaluate(b, w, &r), model.Needs, NoLease)
}

func TestAFreezeStopsAutomaticShedsInItsScopeAndNoPersons(t *testing.T) {
	for _, c := range []struct {
		frozen string
		stops  bool
	}{{"*", true}, {"checkout", true}, {"", false}} {
		b, w := automated(t), calm()
		if c.frozen != "" {
			w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(1), Kind: model.Freeze, Scope: c.frozen, NotBefore: day0, NotAfter: day0.Add(time.Hour)}})
		}
		r := draft(t, b, w, Ask{Right: "auto-shed", Tier: 1, Actor: robot})
		v := Evaluate(b, w, &r)
		if c.stops {
			expect(t, v, model.Needs, Frozen)
		} else {
			expect(t, v, model.Permitted)
		}
		r = draft(t, b, w, Ask{Right: "shed", Tier: 1})
		expect(t, Evaluate(b, w, &r), model.Permitted)
	}
}

func TestASignalIsKnownAsFarBackAsAnyTierIsEnteredByIt(t *testing.T) {
	b := changed(t, func(p *parts) {
		p.docs.Ladder.Tiers[0].Enter = []policy.Condition{{Signal: "cpu", Threshold: above(80), For: model.Duration(2 * time.Minute)}}
	})
	if got := WindowOf(b, "cpu"); got != model.Duration(2*time.Minute) {
		t.Errorf("cpu is asked for %s back", got)
	}
}

func TestAConditionIsHeldByValuesOnly(t *testing.T) {
	c := policy.Condition{Signal: "errors", Threshold: above(0.01), For: model.Duration(10 * time.Minute)}
	bad := steady(0.5, day0)
	if !Held(&bad, &c, day0) || !Beyond(c.Threshold, 0.5) || Beyond(c.Threshold, 0.01) {
		t.Error("half of all requests fail, and it is not held")
	}
	for _, state := range []model.ReadingState{model.ReadingNoData, model.ReadingStale, model.ReadingPartial, model.ReadingError} {
		r := bad
		r.State = state
		if Held(&r, &c, day0) {
			t.Errorf("%s holds", state)
		}
	}
}

// TestAWindowIsUnbrokenWithGapsOfAFewSteps and no more, from its first sample on.
func TestAWindowIsUnbrokenWithGapsOfAFewSteps(t *testing.T) {
	const step, window = 15 * time.Second, 10 * time.Minute
	start, gap := day0.Add(-window), gapSteps*step
	c := policy.Condition{Signal: "errors", Threshold: above(0.01), For: model.Duration(window)}
	reading := func(at ...time.Time) *model.Reading {
		r := &model.Reading{State: model.ReadingValue, Value: 0.5, At: day0, Step: model.Duration(step)}
		for _, t := range at {
			r.History = append(r.History, model.Sample{At: t, Value: 0.5})
		}
		return r
	}
	every := func(first time.Time, by time.Duration) (out []time.Time) {
		for at := first; !at.After(day0); at = at.Add(by) {
			out = append(out, at)
		}
		return out
	}
	firstIsGood := reading(every(start, step)...)
	firstIsGood.History[0].Value = 0
	for name, c2 := range map[string]struct {
		r    *model.Reading
		held bool
	}{
		"every step":                            {reading(every(start, step)...), true},
		"the first sample of the window is not": {firstIsGood, false},
		"gaps as long as they may be":           {reading(every(start, gap)...), true},
		"gaps a little longer":                  {reading(every(start, gap+time.Second)...), false},
		"it begins as late as it may":           {reading(every(start.Add(gap), step)...), true},
		"it begins later":                       {reading(every(start.Add(gap+time.Second), step)...), false},
	} {
		if Held(c2.r, &c, day0) != c2.held {
			t.Errorf("%s: it does not say %v", name, c2.held)
		}
	}
}

// TestATierWithoutAWayOutIsLeftByNobodyWhoSeesWell: lint refuses such a ladder, and
// a console that has one does not take it for "no condition, so all are met".
func TestATierWithoutAWayOutIsLeftByNobodyWhoSeesWell(t *testing.T) {
	b := changed(t, func(p *parts) { p.docs.Ladder.Tiers[0].Leave = nil })
	w := calm()
	shedAt(w, 1, 1, day0.Add(-time.Hour))
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	v := Evaluate(b, w, &r)
	if v.Outcome == model.Permitted || !slices.Contains(codes(v), NoExit) {
		t.Errorf("%v %v", v.Outcome, codes(v))
	}
}
