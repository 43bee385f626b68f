package score

import (
	"slices"
	"strings"
	"testing"
)

// announced is a peak that everybody knew of: somebody orders before there is an
// alarm, and acknowledges one hours later.
func announced(who string) *Record {
	r := outage()
	r.Events = []Event{
		{AtMS: 0, Kind: Injected, What: "load"},
		{AtMS: 4 * minute, Kind: Issued, What: "ping", ID: "P", Who: "ines", Right: "ping"},
		{AtMS: 5 * minute, Kind: Effective, What: "ping", ID: "P"},
		{AtMS: 9 * minute, Kind: Issued, What: "shed 1", ID: "A", Who: who, Right: "shed", Scope: "*"},
		{AtMS: 10 * minute, Kind: Effective, What: "shed 1", ID: "A"},
		{AtMS: 20 * minute, Kind: Acknowledged, Who: "ines"},
	}
	return r
}

func TestAnOrderOfAPersonBeforeAnyAlarmIsAnAcknowledgement(t *testing.T) {
	a := Of(announced("ines"), Options{}).Axes
	wantMS(t, "detect", a.DetectMS, 9*minute)
	wantMS(t, "decide", a.DecideMS, 0)
	wantMS(t, "effect", a.EffectMS, minute)
	for _, machine := range []string{Ladder, Controller, ""} {
		a := Of(announced(machine), Options{}).Axes
		wantMS(t, "detect, where "+machine+" has ordered", a.DetectMS, 20*minute)
		if a.DecideMS != nil {
			t.Errorf("the order of %q was decided by somebody after %s", machine, lasting(a.DecideMS))
		}
	}
}

// A ping changes nothing: nothing was decided by it. It was practised all the same.
func TestAPingIsPractisedAndDecidesNothing(t *testing.T) {
	r := announced("ines")
	r.Events = r.Events[:3]
	s := Of(r, Options{})
	if s.Axes.DetectMS != nil || s.Axes.DecideMS != nil || s.Axes.EffectMS != nil {
		t.Errorf("detected %s, decided %s, effective %s by a ping", lasting(s.Axes.DetectMS), lasting(s.Axes.DecideMS), lasting(s.Axes.EffectMS))
	}
	if !slices.ContainsFunc(s.Practised, func(p Practised) bool { return p.What == "ping" }) {
		t.Errorf("practised: %+v", s.Practised)
	}
}

func TestOneIsNoPlural(t *testing.T) {
	r := outage()
	r.Evidence.Effects = 1
	var card strings.Builder
	s := Of(r, Options{})
	if err := s.Write(&card); err != nil || !strings.Contains(card.String(), "complete: 1 effect ") && !strings.Contains(card.String(), "complete: 1 effect\n") {
		t.Errorf("%v:\n%s", err, card.String())
	}
}
