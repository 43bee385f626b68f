package ladder

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"pgregory.net/rapid"
)

// trace is a fleet under random signals and random people, and a record of its
// own of what was read: what the ladder has to have seen before it moves.
type trace struct {
	*fleet
	rt      *rapid.T
	read    []map[string]any // by tick
	seen    []time.Time
	persons []time.Time // when a person has signed
}

// Values that lie on every side of every threshold of the shop, and none at all.
var (
	watched = []string{p99, cpu, fails}
	levels  = map[string][]float64{p99: {0.2, 0.55, 0.9, 1.5, 2.5}, cpu: {30, 70, 85, 95}, fails: {0.1, 0.7, 1.5, 3, 30}}
	gaps    = []any{nil, unread(model.ReadingStale), unread(model.ReadingPartial), unread(model.ReadingError)}
)

func TestWhateverTheSignalsDo(t *testing.T) {
	impatient := func(p *parts) {
		p.ladder.Automatic.Every, p.ladder.Automatic.FlapWindow = minutes(1), minutes(20)
		for i := range p.ladder.Tiers {
			tier := &p.ladder.Tiers[i]
			tier.Dwell, tier.RampStep = minutes(1), model.Duration(30*time.Second)
			for j := range tier.Enter {
				tier.Enter[j].For = model.Duration(20 * time.Second)
			}
			for j := range tier.Leave {
				tier.Leave[j].For = minutes(1)
			}
		}
	}
	polite := func(p *parts) { p.ladder.Automatic.ShedAtOnce = false }
	sighted := func(p *parts) { p.ladder.Automatic.Blind = 0 }
	picky := func(p *parts) {
		for i := range p.ladder.Tiers {
			p.ladder.Tiers[i].EnterNeeds = min(2, len(p.ladder.Tiers[i].Enter))
		}
	}
	busy := func(p *parts) {
		p.ladder.Schedule = map[string]policy.Event{"sale": {Tier: 1, Scope: []string{"*"}, From: day0.Add(20 * time.Minute), Until: day0.Add(40 * time.Minute), Soak: minutes(10)}}
	}
	bundles := []*policy.Bundle{
		shop(t), shop(t, impatient), shop(t, impatient, polite), shop(t, impatient, sighted), shop(t, impatient, picky), shop(t, impatient, busy), shop(t, polite, picky, busy),
	}
	moved := map[Purpose]int{}
	rapid.Check(t, func(rt *rapid.T) {
		tr := &trace{fleet: newFleet(t, bundles[rapid.IntRange(0, len(bundles)-1).Draw(rt, "ladder")]), rt: rt}
		tr.kept = 70
		for range rapid.IntRange(3, 12).Draw(rt, "spells") {
			tr.spell()
		}
		for _, m := range tr.moves {
			moved[m.Purpose]++
		}
	})
	for _, purpose := range []Purpose{Enter, Blind, Event, Halt, Leave} {
		if moved[purpose] == 0 && !testing.Short() {
			t.Errorf("no trace has made a move of the kind %s: that shows nothing", purpose)
		}
	}
}

// spell is some minutes of the same weather: each signal at a level or missing,
// some with a flicker, and perhaps a person who does something.
func (tr *trace) spell() {
	rt := tr.rt
	weather := map[string]any{}
	quiet := rapid.IntRange(0, 2).Draw(rt, "quiet") > 0
	for _, name := range watched {
		of := levels[name]
		switch n := rapid.IntRange(0, 5).Draw(rt, name); {
		case quiet:
			weather[name] = of[0]
		case n == 0:
			weather[name] = rapid.SampledFrom(gaps).Draw(rt, "gap")
		default:
			weather[name] = rapid.SampledFrom(of).Draw(rt, "level")
		}
	}
	flicker := rapid.SampledFrom([]int{0, 0, 0, 1, 3, 9}).Draw(rt, "flicker")
	person := rapid.IntRange(0, 9).Draw(rt, "person")
	for n := range rapid.SampledFrom([]int{1, 3, 6, 12, 30, 90}).Draw(rt, "ticks") {
		values := with(p99, weather[p99], cpu, weather[cpu], fails, weather[fails])
		if flicker > 0 && n%flicker == 0 {
			name := rapid.SampledFrom(watched).Draw(rt, "who flickers")
			values[name] = rapid.SampledFrom(levels[name]).Draw(rt, "to")
		}
		if n == 1 {
			tr.person(person)
		}
		tr.step(values)
	}
}

func (tr *trace) person(what int) {
	var ask decisions.Ask
	switch {
	case what == 0:
		ask = decisions.Ask{Right: "shed", Tier: 1 + tr.serial%3}
	case what == 1 && tr.tier() > 0:
		ask = decisions.Ask{Right: "recover", Tier: decisions.NextTier}
	case what == 2:
		ask = decisions.Ask{Right: "freeze", Lasts: minutes(1 + tr.serial%7)}
	default:
		return
	}
	tr.by("ines", ask)
	tr.persons = append(tr.persons, tr.now)
}

// step is one tick and everything that has to hold about it.
func (tr *trace) step(values map[string]any) {
	beforeIssued := tr.issued
	tr.read, tr.seen = append(tr.read, values), append(tr.seen, tr.now.Add(tick))
	w := tr.world()
	w.Now = tr.now.Add(tick)
	before := decisions.ChainOf(w, model.AnyScope)
	out := tr.tick(values)
	tr.blinder(beforeIssued, &out)
	if out.Move == nil {
		return
	}
	d := &out.Move.Request.Directive
	if tr.frozen() {
		tr.rt.Fatalf("%s under a freeze", out.Move.Purpose)
	}
	if d.IsRecovery() {
		tr.checkLeave(d, &before)
	} else {
		tr.checkShed(out.Move, &before)
	}
	tr.checkPace(d)
}

func (tr *trace) frozen() bool {
	return slices.ContainsFunc(tr.issued, func(is model.Issued) bool { return is.Directive.Kind == model.Freeze && is.LiveAt(tr.now) })
}

// checkLeave: one tier, the next step, and every signal that matters was read as a
// value, on the right side, at every tick of the window.
func (tr *trace) checkLeave(d *model.Directive, before *decisions.Chain) {
	tier, _ := tr.b.TierOf(before.Tier)
	if d.From != before.Tier || d.From-d.To != 1 || !tier.Auto || d.From > 2 {
		tr.rt.Fatalf("it leaves %d for %d, from %d", d.From, d.To, before.Tier)
	}
	if before.Ramp != nil && (d.Ramp != before.Ramp.ID || d.Percent <= before.Ramp.Percent) {
		tr.rt.Fatalf("after %+v comes %d %% of %s", before.Ramp, d.Percent, d.Ramp)
	}
	if before.Ramp == nil && d.Percent != 10 {
		tr.rt.Fatalf("a ramp begins at %d %%", d.Percent)
	}
	for _, c := range tier.Leave {
		missing := 0
		for i := len(tr.read) - 1; i >= 0 && tr.now.Sub(tr.seen[i]) < c.For.Std(); i-- {
			v, isValue := tr.read[i][c.Signal].(float64)
			if missing++; isValue {
				missing = 0
			}
			if isValue && v >= *c.Below || missing > 0 && i == len(tr.read)-1 || missing > 3 {
				tr.rt.Fatalf("it leaves tier %d although %s was %v %s ago", d.From, c.Signal, tr.read[i][c.Signal], tr.now.Sub(tr.seen[i]))
			}
		}
	}
	for _, higher := range tr.b.Tiers[d.From-1:] {
		for _, c := range higher.Enter {
			for i := len(tr.read) - 1; i >= 0 && tr.now.Sub(tr.seen[i]) < tier.Leave[0].For.Std(); i-- {
				if v, isValue := tr.read[i][c.Signal].(float64); isValue && v > *c.Above {
					tr.rt.Fatalf("it leaves tier %d although %s called for tier %d", d.From, c.Signal, higher.Tier)
				}
			}
		}
	}
}

// checkShed: within its tiers, and for a reason that was read.
func (tr *trace) checkShed(m *Proposal, before *decisions.Chain) {
	d := &m.Request.Directive
	if d.Tier > 2 || d.Tier < 1 || d.Tier < before.Tier || d.Tier == before.Tier && before.Ramp == nil {
		tr.rt.Fatalf("%s at tier %d, from %d with %+v", m.Purpose, d.Tier, before.Tier, before.Ramp)
	}
	tier := &tr.b.Tiers[d.Tier-1]
	beyond, missing := 0, 0
	for _, c := range tier.Enter {
		v, isValue := tr.read[len(tr.read)-1][c.Signal].(float64)
		switch {
		case !isValue:
			missing++
		case v > *c.Above:
			beyond++
		}
	}
	switch m.Purpose {
	case Enter:
		if beyond < tier.EnterNeeds {
			tr.rt.Fatalf("it enters tier %d on %d of %d", d.Tier, beyond, tier.EnterNeeds)
		}
	case Blind:
		if d.Tier > tr.b.Automatic.Blind || beyond+missing < tier.EnterNeeds || missing == 0 {
			tr.rt.Fatalf("blindness enters tier %d: %d missing", d.Tier, missing)
		}
	case Event:
		if d.Tier != 1 || tr.now.Before(tr.b.Schedule["sale"].From) || !tr.now.Before(tr.b.Schedule["sale"].Until) {
			tr.rt.Fatalf("the event enters tier %d at %s", d.Tier, tr.now)
		}
	case Halt:
		if before.Ramp == nil || d.Tier != before.Tier {
			tr.rt.Fatalf("a halt at %d of %+v", d.Tier, before)
		}
	}
}

// checkPace: moves lie apart, and no more of them turn than are allowed.
func (tr *trace) checkPace(d *model.Directive) {
	a := &tr.b.Automatic
	moves := MovesOf(tr.b, tr.issued, tr.now)
	last, turns := time.Time{}, 0
	latest := moves[len(moves)-1]
	since := tr.now.Add(-a.FlapWindow.Std())
	if n := len(tr.persons); n > 0 && tr.persons[n-1].After(since) {
		since = tr.persons[n-1] // he may have released it
	}
	for _, m := range moves[:len(moves)-1] {
		if !m.Automatic {
			continue
		}
		last = m.At
		if m.Turn && m.At.After(since) {
			turns++
		}
	}
	if (d.IsRecovery() || !a.ShedAtOnce) && !last.IsZero() && tr.now.Sub(last) < a.Every.Std() {
		tr.rt.Fatalf("two automatic moves within %s", tr.now.Sub(last))
	}
	if turns > a.Flaps || latest.Turn && d.IsRecovery() && turns >= a.Flaps {
		tr.rt.Fatalf("turn %d within %s", turns+1, a.FlapWindow)
	}
}

// blinder: with any more signals missing, and for any time, nothing is given back
// that was not given back before, and nothing above the tier of blindness is
// entered that was not.
func (tr *trace) blinder(issued []model.Issued, seeing *Outcome) {
	if rapid.IntRange(0, 3).Draw(tr.rt, "look") > 0 {
		return
	}
	after := tr.issued
	tr.issued = issued
	in := tr.input()
	tr.issued = after
	in.Blind = map[string]time.Time{}
	for name, since := range tr.blind {
		in.Blind[name] = since
	}
	readings := map[string]model.Reading{}
	for _, name := range watched {
		r := in.World.Readings[name]
		if r.State == model.ReadingValue && rapid.Bool().Draw(tr.rt, "blind "+name) {
			r.State = model.ReadingError
			in.Blind[name] = tr.now.Add(-rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(tr.rt, "for"))
		}
		readings[name] = r
	}
	in.World.Readings = readings
	out := Next(in)
	if out.Target > seeing.Target {
		tr.rt.Fatalf("blinder, it calls for tier %d instead of %d", out.Target, seeing.Target)
	}
	if out.Move == nil {
		return
	}
	d := &out.Move.Request.Directive
	switch {
	case d.IsRecovery():
		if seeing.Move == nil || !seeing.Move.Request.Directive.IsRecovery() {
			tr.rt.Fatalf("blinder, it leaves tier %d; seeing, it does not: %v", d.From, seeing.Why)
		}
	case out.Move.Purpose == Enter:
		if seeing.Move == nil || seeing.Move.Request.Directive.Tier < d.Tier {
			tr.rt.Fatalf("blinder, it enters tier %d; seeing, it does not: %v", d.Tier, seeing.Why)
		}
	case out.Move.Purpose == Blind && d.Tier > tr.b.Automatic.Blind:
		tr.rt.Fatalf("blindness enters tier %d", d.Tier)
	}
}

// Whatever a world holds, Next comes back.
func TestNextNeverPanics(t *testing.T) {
	b := shop(t)
	rapid.Check(t, func(rt *rapid.T) {
		f := newFleet(t, b)
		for range rapid.IntRange(0, 12).Draw(rt, "directives") {
			f.give(model.Directive{
				Kind:  rapid.SampledFrom([]model.Kind{model.Shed, model.End, model.Freeze, model.Off, "melt"}).Draw(rt, "kind"),
				Ends:  rapid.SampledFrom([]model.Kind{model.Shed, model.Shed, model.Freeze, ""}).Draw(rt, "ends"),
				Scope: rapid.SampledFrom([]string{"*", "edge", "nowhere", ""}).Draw(rt, "scope"),
				Tier:  rapid.IntRange(-1, 9).Draw(rt, "tier"), From: rapid.IntRange(-1, 9).Draw(rt, "from"), To: rapid.IntRange(-1, 9).Draw(rt, "to"),
				Percent: rapid.IntRange(-1, 120).Draw(rt, "percent"), Ramp: rapid.SampledFrom([]string{"", "r"}).Draw(rt, "ramp"),
				IDs:       []string{rapid.SampledFrom([]string{"", "01J00000000000000000000001", "01J00000000000000000000009"}).Draw(rt, "id")},
				NotBefore: day0.Add(time.Duration(rapid.IntRange(-9000, 9000).Draw(rt, "at")) * time.Second),
				NotAfter:  rapid.SampledFrom([]time.Time{{}, day0.Add(time.Hour)}).Draw(rt, "end"),
			}, rapid.SampledFrom([]string{robot, "ines", "stranger", ""}).Draw(rt, "by"))
		}
		f.run(time.Duration(rapid.IntRange(0, 5).Draw(rt, "ticks"))*tick, with(p99, 1.5))
	})
}
