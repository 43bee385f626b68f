package decisions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// sale is an event of two hours that began an hour before day0.
func sale() policy.Event {
	return policy.Event{Tier: 2, Scope: []string{"*"}, From: day0.Add(-time.Hour), Until: day0.Add(time.Hour), Soak: model.Duration(30 * time.Minute), Why: "sale"}
}

// eventful is the shop with events of its own, and with services: the edge knows
// one tier only.
func eventful(t *testing.T, events map[string]policy.Event) *policy.Bundle {
	return changed(t, func(p *parts) {
		p.docs.Ladder.Schedule = events
		p.docs.Ladder.Services = map[string]policy.Service{"checkout": {Tiers: 4}, "edge": {Tiers: 1}}
		p.docs.Rights.Rights["auto-recover"] = policy.Right{Kind: model.End, Ends: model.Shed, Who: "ladder-controller", Scope: []string{"*", "checkout", "edge"}, Tiers: &policy.Range{From: 1, To: 2}}
		p.right("recover", func(r *policy.Right) { r.Scope = []string{"*", "checkout", "edge"} })
	})
}

func TestWhileAnEventRunsOnlyAPersonLeavesItsTier(t *testing.T) {
	for _, c := range []struct {
		name  string
		event func(*policy.Event)
		tier  int
		scope string
		deny  bool
	}{
		{"it runs", func(*policy.Event) {}, 2, "*", true},
		{"from the second it begins", func(e *policy.Event) { e.From = day0 }, 2, "*", true},
		{"it begins in a second", func(e *policy.Event) { e.From = day0.Add(time.Second) }, 2, "*", false},
		{"it is over", func(e *policy.Event) { e.Until = day0 }, 2, "*", false},
		{"a tier below the event's", func(*policy.Event) {}, 1, "*", false},
		{"a tier above it", func(e *policy.Event) { e.Tier = 1 }, 2, "*", true},
		{"an event of one service and a step of all", func(e *policy.Event) { e.Scope = []string{"checkout"} }, 2, "*", true},
		{"an event of all and a step of one", func(*policy.Event) {}, 2, "checkout", true},
		{"an event of another service", func(e *policy.Event) { e.Scope = []string{"edge"} }, 2, "checkout", false},
		{"a service at its last tier, of which the event wants more", func(e *policy.Event) { e.Scope = []string{"edge"} }, 1, "edge", true},
		{"a step of all that would take such a service along", func(e *policy.Event) { e.Scope = []string{"edge"} }, 1, "*", true},
		{"an event of nothing", func(e *policy.Event) { e.Scope = nil }, 2, "*", false},
	} {
		event := sale()
		c.event(&event)
		b, w := eventful(t, map[string]policy.Event{"sale": event}), calm()
		w.Incident.Lease.Holder = "ladder-controller"
		w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Shed, Tier: c.tier, Scope: c.scope, NotBefore: day0.Add(-time.Hour)}, FirstSeen: day0.Add(-time.Hour)}}
		r := draft(t, b, w, Ask{Right: "auto-recover", Scope: c.scope, Tier: NextTier, Actor: "ladder-controller"})
		v := Evaluate(b, w, &r)
		if !c.deny {
			expect(t, v, model.Permitted)
		} else {
			expect(t, v, model.Denied, Scheduled)
			if s := Sentence(v.Reasons[0]); !strings.HasPrefix(s, "sale runs until ") {
				t.Errorf("%s: %q", c.name, s)
			}
		}
		w.Incident.Lease.Holder = "ines"
		r = draft(t, b, w, Ask{Right: "recover", Scope: c.scope, Tier: NextTier})
		expect(t, Evaluate(b, w, &r), model.Permitted)
	}
}

// TestWhileAnEventRunsSignalsAreGoodForTheWholeSoak before a person leaves.
func TestWhileAnEventRunsSignalsAreGoodForTheWholeSoak(t *testing.T) {
	short, long := sale(), sale()
	short.Soak = model.Duration(10 * time.Minute)
	b, w := eventful(t, map[string]policy.Event{"sale": long, "a-sale": short}), calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	spiked := steady(0.001, day0)
	for i := range spiked.History {
		if spiked.History[i].At.Equal(day0.Add(-20 * time.Minute)) {
			spiked.History[i].Value = 0.2
		}
	}
	w.Readings["errors"] = spiked
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, SignalNotGood)
	if v.Reasons[0].Wait != long.Soak {
		t.Errorf("the window is %s, want the longest soak", v.Reasons[0].Wait)
	}
	if got := WindowOf(b, "errors"); got != long.Soak {
		t.Errorf("the signal is asked for %s back only", got)
	}
	for name, calmEnough := range map[string]*policy.Bundle{
		"a soak that is shorter than the window of the tier": eventful(t, map[string]policy.Event{"sale": func() policy.Event { e := sale(); e.Soak = model.Duration(time.Minute); return e }()}),
		"no event": shop(t, 0),
	} {
		if v := Evaluate(calmEnough, w, &r); v.Outcome != model.Permitted {
			t.Errorf("%s: %v", name, codes(v))
		}
		if got := WindowOf(calmEnough, "errors"); got != model.Duration(10*time.Minute) {
			t.Errorf("%s: the signal is asked for %s back", name, got)
		}
	}
}

// TestOnlyTiersThatAnEventWantsSoak: a soak counts for the event's own tier and for
// those above it.
func TestOnlyTiersThatAnEventWantsSoak(t *testing.T) {
	leave := func(tier int, signal string) policy.Tier {
		return policy.Tier{Tier: tier, Leave: []policy.Condition{{Signal: signal, For: model.Duration(10 * time.Minute)}}}
	}
	b := &policy.Bundle{
		Tiers:    []policy.Tier{leave(1, "below"), leave(2, "at"), leave(3, "above")},
		Schedule: map[string]policy.Event{"sale": sale()},
	}
	for signal, want := range map[string]model.Duration{"below": model.Duration(10 * time.Minute), "at": sale().Soak, "above": sale().Soak} {
		if got := WindowOf(b, signal); got != want {
			t.Errorf("%s its tier: %s back, want %s", signal, got, want)
		}
	}
}

func TestTheEventThatRunsLongestIsNamed(t *testing.T) {
	long := sale()
	long.Until = long.Until.Add(time.Hour)
	b, w := eventful(t, map[string]policy.Event{"a": sale(), "b": long, "c": sale()}), calm()
	w.Incident.Lease.Holder = "ladder-controller"
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	for range 20 { // maps have no order
		r := draft(t, b, w, Ask{Right: "auto-recover", Tier: NextTier, Actor: "ladder-controller"})
		v := Evaluate(b, w, &r)
		expect(t, v, model.Denied, Scheduled)
		if got := v.Reasons[0]; got.Name != "b" || !got.At.Equal(long.Until) {
			t.Fatalf("named %s until %s", got.Name, got.At)
		}
	}
}

func TestAnEventIsDueHalfAnHourAhead(t *testing.T) {
	names := func(b *policy.Bundle, w *model.World) (out []string) {
		for _, e := range EventsNow(b, w) {
			out = append(out, e.Name)
		}
		return out
	}
	later := sale()
	later.From = day0.Add(20 * time.Minute)
	b, w := eventful(t, map[string]policy.Event{"sale": sale(), "later": later, "also-later": later}), calm()
	if got := names(b, w); !slices.Equal(got, []string{"sale", "also-later", "later"}) {
		t.Errorf("due are %v", got)
	}
	for at, want := range map[time.Duration]int{-90 * time.Minute: 1, -90*time.Minute - time.Second: 0, time.Hour - time.Second: 3, time.Hour: 0} {
		w.Now = day0.Add(at)
		if got := names(b, w); len(got) != want {
			t.Errorf("at %s: due are %v, want %d", at, got, want)
		}
	}
}

func TestAnEventSaysWhatHasStillToEnterItsTier(t *testing.T) {
	at := func(scope string, tier int) model.Issued {
		return model.Issued{Directive: model.Directive{ID: id(tier), Kind: model.Shed, Tier: tier, Scope: scope, NotBefore: day0.Add(-time.Hour)}, FirstSeen: day0.Add(-time.Hour)}
	}
	for _, c := range []struct {
		name   string
		scope  []string
		issued []model.Issued
		lacks  []string
	}{
		{"nothing is shed", []string{"*"}, nil, []string{"*"}},
		{"all at a lower tier", []string{"*"}, []model.Issued{at("*", 1)}, []string{"*"}},
		{"all at its tier", []string{"*"}, []model.Issued{at("*", 2)}, nil},
		{"all beyond it", []string{"*"}, []model.Issued{at("*", 3)}, nil},
		{"every service at its tier or at its last", []string{"*"}, []model.Issued{at("checkout", 2), at("edge", 1)}, nil},
		{"one service is missing", []string{"*"}, []model.Issued{at("checkout", 2)}, []string{"*"}},
		{"a list, and one of it is missing", []string{"checkout", "edge"}, []model.Issued{at("checkout", 2)}, []string{"edge"}},
		{"a list, covered by a shed of all", []string{"checkout", "edge"}, []model.Issued{at("*", 2)}, nil},
	} {
		event := sale()
		event.Scope = c.scope
		b, w := eventful(t, map[string]policy.Event{"sale": event}), calm()
		w.Issued = c.issued
		got := EventsNow(b, w)
		if len(got) != 1 || !slices.Equal(got[0].Lacks, c.lacks) || !got[0].Running || (got[0].Right == "shed") != (len(c.lacks) > 0) {
			t.Errorf("%s: %+v, want lacking %v", c.name, got, c.lacks)
		}
	}
}

func TestTheRightForAnEventIsAPersonsAndAsksFewest(t *testing.T) {
	tiers := func(from, to int) *policy.Range { return &policy.Range{From: from, To: to} }
	person := func(r policy.Right) policy.Right { r.Kind, r.Who = model.Shed, "incident-commander"; return r }
	event := sale()
	b := changed(t, func(p *parts) {
		p.docs.Ladder.Schedule = map[string]policy.Event{"sale": event}
		p.docs.Rights.Rights = map[string]policy.Right{
			"a-machine":     {Kind: model.Shed, Who: "ladder-controller", Scope: []string{"*"}, Tiers: tiers(2, 2)},
			"a-lower":       person(policy.Right{Scope: []string{"*"}, Tiers: tiers(1, 1)}),
			"a-higher":      person(policy.Right{Scope: []string{"*"}, Tiers: tiers(3, 4)}),
			"a-boundless":   person(policy.Right{Scope: []string{"*"}}),
			"a-other-scope": person(policy.Right{Scope: []string{"edge"}, Tiers: tiers(2, 2)}),
			"by-two":        person(policy.Right{Scope: []string{"*"}, Tiers: tiers(2, 2), Cosign: policy.Cosign{Count: 1, Of: "finance"}}),
			"c-wide":        person(policy.Right{Scope: []string{"*"}, Tiers: tiers(1, 4)}),
			"d-narrow":      person(policy.Right{Scope: []string{"*"}, Tiers: tiers(1, 3)}),
			"e-narrow":      person(policy.Right{Scope: []string{"*"}, Tiers: tiers(2, 4)}),
		}
	})
	if got := EventsNow(b, calm()); len(got) != 1 || got[0].Right != "d-narrow" {
		t.Errorf("%+v", got)
	}
}

func TestTheHeadlineNamesAnEventWhoseTierIsNotEntered(t *testing.T) {
	ahead := sale()
	ahead.From = day0.Add(15 * time.Minute)
	b, w := eventful(t, map[string]policy.Event{"sale": ahead}), calm()
	if h := HeadlineOf(b, w); h.Calm || h.Right != "shed" || h.Text != "sale begins at 03:15:00Z: tier 2 is not entered for all services" {
		t.Errorf("before it begins: %+v", h)
	}
	w.Now = ahead.From
	if h := HeadlineOf(b, w); !strings.HasPrefix(h.Text, "sale runs since 03:15:00Z") {
		t.Errorf("when it has begun: %+v", h)
	}
	w.Readings["errors"] = steady(0.35, w.Now)
	if h := HeadlineOf(b, w); h.Right != small {
		t.Errorf("an abnormal signal with a right comes first: %+v", h)
	}
	w.Readings["errors"] = model.Reading{State: model.ReadingStale}
	if h := HeadlineOf(b, w); h.Right != "shed" {
		t.Errorf("an event comes before a signal that is not known: %+v", h)
	}
	shedAt(w, 1, 2, w.Now)
	w.Readings["errors"] = steady(0.001, w.Now)
	if h := HeadlineOf(b, w); !h.Calm {
		t.Errorf("its tier is entered: %+v", h)
	}
}

// TestTheRightOfAnEventReachesToItsEnds: the first and the last tier of a right
// belong to it.
func TestTheRightOfAnEventReachesToItsEnds(t *testing.T) {
	b := changed(t, func(p *parts) {
		for name, r := range p.docs.Rights.Rights {
			if r.Kind == model.Shed {
				delete(p.docs.Rights.Rights, name)
			}
		}
		p.docs.Rights.Rights["middle"] = policy.Right{Kind: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 2, To: 3}}
	})
	for tier, want := range map[int]string{1: "", 2: "middle", 3: "middle", 4: ""} {
		if got := shedRight(b, tier, "*"); got != want {
			t.Errorf("tier %d: %q, want %q", tier, got, want)
		}
	}
}
