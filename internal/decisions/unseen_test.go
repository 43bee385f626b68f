package decisions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// What a step has done is UNKNOWN until a host reports it: a ramp does not go on from
// it, nor does the next tier begin. Two people who say what they have seen may.
func TestAStepThatNoHostReportsIsNotGoneOnFrom(t *testing.T) {
	for _, c := range []struct {
		name           string
		percent, tier  int
		seen, nameless bool
		by             string
		outcome        model.Outcome
		code           []model.Code
	}{
		{"10 % and no host has it", 10, 2, false, false, "recover", model.Needs, []model.Code{Unseen}},
		{"10 % and a host has it", 10, 2, true, false, "recover", model.Permitted, nil},
		{"the last of the tier and no host has it", 100, 2, false, false, "recover", model.Needs, []model.Code{Unseen}},
		{"two people have looked", 10, 2, false, false, "recover-blind", model.Permitted, nil},
		{"nothing here reports", 10, 2, false, true, "recover", model.Permitted, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, w := shop(t, 0), calm()
			if c.nameless {
				b = changed(t, func(p *parts) { p.docs.Backends = nil })
				w.Hosts = nil
			}
			shedAt(w, 1, c.tier, day0.Add(-time.Hour))
			step(w, 2, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", From: c.tier, To: c.tier - 1, Percent: c.percent, Ramp: id(2), IDs: []string{id(1)}}, day0.Add(-20*time.Minute))
			if !c.seen {
				w.Issued[1].FirstSeen = time.Time{}
			}
			r := draft(t, b, w, Ask{Right: c.by, Tier: NextTier, Evidence: "I see 10 % on the hosts"})
			if c.by == "recover-blind" {
				r.Cosigners = []string{"dev"}
			}
			v := Evaluate(b, w, &r)
			expect(t, v, c.outcome, c.code...)
			if len(v.Reasons) > 0 && !strings.Contains(Sentence(v.Reasons[0]), "UNKNOWN") {
				t.Error(Sentence(v.Reasons[0]))
			}
		})
	}
}

// A shed that is on its way, or of which nothing is known, has not begun to hold: its
// dwell has not begun. One that is known to be nowhere holds nobody.
func TestAShedThatNoHostReportsIsNotLeftUnlessItIsNowhere(t *testing.T) {
	for _, c := range []struct {
		name    string
		is      model.Issued
		push    []string
		blocked bool
	}{
		{"nothing is known of it", model.Issued{}, nil, true},
		{"a carrier has it", model.Issued{Outcome: "carried", Carried: []string{"flags"}}, nil, true},
		{"a backend carries it", model.Issued{Outcome: "failed"}, []string{id(1)}, true},
		{"a backend carries another one", model.Issued{Outcome: "failed"}, []string{id(2)}, false},
		{"no carrier took it", model.Issued{Outcome: "failed"}, nil, false},
		{"it was looked for", model.Issued{Outcome: "absent"}, nil, false},
	} {
		b, w := shop(t, 0), calm()
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		c.is.Directive = w.Issued[0].Directive
		w.Issued[0], w.Overrides = c.is, []model.Override{{Operation: "op", IDs: c.push}}
		r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
		if got := slices.Contains(codes(Evaluate(b, w, &r)), Unseen); got != c.blocked {
			t.Errorf("%s: blocked is %v", c.name, got)
		}
	}
}

// Two consoles that do not see each other's steps leave two that are live. The one that
// lets fewer hosts go holds the rest, whichever is younger. (Found by the swarm.)
func TestTheSlowerOfTwoRampsHolds(t *testing.T) {
	for _, first := range []int{10, 50} {
		b, w := shop(t, 0), calm()
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		rung := model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", From: 2, To: 1, Ramp: id(1), IDs: []string{id(1)}}
		for n, percent := range []int{first, 60 - first} {
			rung.Percent = percent
			step(w, 2+n, rung, day0.Add(time.Duration(n-5)*time.Minute))
		}
		w.Now = day0.Add(-3 * time.Minute)
		r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
		if d := r.Directive; d.Percent != 50 || !slices.Equal(d.IDs, []string{id(1), id(2), id(3)}) {
			t.Errorf("%d %% first: the next step goes to %d %% and ends %v", first, d.Percent, d.IDs)
		}
		expect(t, Evaluate(b, w, &r), model.Needs, RampStep)
	}
}

// A step that nobody has is not waited for by one that goes no farther than hosts are:
// another console has brought them there. (Found by the swarm.)
func TestAStepThatNoHostHasDoesNotHoldBackWhereHostsAre(t *testing.T) {
	for _, reached := range []int{10, 50} {
		b, w := shop(t, 0), calm()
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		rung := model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", From: 2, To: 1, Percent: 10, Ramp: id(1), IDs: []string{id(1)}}
		step(w, 2, rung, day0.Add(-40*time.Minute))
		w.Issued[1].FirstSeen = time.Time{}
		rung.Percent = reached
		step(w, 3, rung, day0.Add(-20*time.Minute))
		r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
		if d := r.Directive; d.Percent != 50 || !slices.Equal(d.IDs, []string{id(1), id(2), id(3)}) {
			t.Errorf("hosts are at %d %%: the next step goes to %d %% and ends %v", reached, d.Percent, d.IDs)
		}
		expect(t, Evaluate(b, w, &r), model.Permitted)
	}
}

// The time that a tier holds begins when a host has it: a second signature that came
// late, or a carrier that was down, is not part of it.
func TestATierHoldsFromWhenAHostHasIt(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 3, day0.Add(-12*time.Minute))
	w.Issued[0].FirstSeen = day0.Add(-3 * time.Minute)
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, Dwell)
	if v.Reasons[0].Wait != model.Duration(7*time.Minute) {
		t.Errorf("wait %s", v.Reasons[0].Wait)
	}
	step(w, 2, model.Directive{Kind: model.End, Ends: model.Shed, Scope: "*", From: 3, To: 2, Percent: 10, Ramp: id(2), IDs: []string{id(1)}}, day0.Add(-3*time.Minute))
	w.Issued[1].FirstSeen = day0.Add(-time.Minute)
	r = draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	v = Evaluate(b, w, &r)
	expect(t, v, model.Needs, RampStep)
	if v.Reasons[0].Wait != model.Duration(time.Minute) {
		t.Errorf("wait %s", v.Reasons[0].Wait)
	}
}
