package score

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// idleSeat is a person who did nothing although there was something to do.
func idleSeat() *Played {
	return &Played{By: ByPerson, Who: "ines", Role: "commander", Speed: 20, Due: 6}
}

func TestAPersonWhoDidNothingHasPassedNothing(t *testing.T) {
	acted := func(p Played) *Played { p.Acts = 1; return &p }
	withBook := func(p Played) *Played { p.Acts, p.Runbook = 3, "payment-risk-down"; return &p }
	const nobody = "ines did nothing at the console, and 6 acts of the scenario were left to that seat: nothing was rehearsed by anybody"
	for _, c := range []struct {
		name   string
		played *Played
		bend   func(*Record)
		want   Verdict
		why    string
	}{
		{"nothing done", idleSeat(), func(*Record) {}, Inconclusive, nobody},
		{"one act", acted(*idleSeat()), func(*Record) {}, Passed, ""},
		{"nothing to do", &Played{By: ByPerson, Who: "ines"}, func(*Record) {}, Passed, ""},
		{"nobody was there", &Played{By: ByMachine, Due: 6, Acts: 1}, func(*Record) {}, Passed, ""},
		{"a record from before", nil, func(*Record) {}, Passed, ""},
		{"a runbook that was never begun", withBook(*idleSeat()), func(r *Record) { r.Runbook = "" }, Inconclusive,
			"the runbook payment-risk-down was never begun: nobody has rehearsed it"},
		{"the fault never came", idleSeat(), func(r *Record) {
			r.Events = slices.DeleteFunc(r.Events, func(e Event) bool { return e.Kind == Injected })
		}, NotInjected, "no fault was injected"},
		{"a fault that did not take", idleSeat(), func(r *Record) { r.Verdict = NotInjected }, NotInjected, ""},
		{"left early", idleSeat(), func(r *Record) { r.Aborted = "ines left at 1m0s of 45m0s" }, Aborted, nobody},
		{"an expectation failed", idleSeat(), func(r *Record) { r.Verdict = Failed }, Failed, nobody},
		{"a bypass is alive", idleSeat(), func(r *Record) { r.Samples[len(r.Samples)-1].BypassOpen = 3 }, Failed, nobody},
	} {
		r := outage()
		r.Played = c.played
		c.bend(r)
		s := Of(r, Options{})
		if s.Verdict != c.want || !strings.Contains(strings.Join(s.Why, "\n"), c.why) {
			t.Errorf("%s: %s %q, want %s with %q", c.name, s.Verdict, s.Why, c.want, c.why)
		}
		if said := strings.Contains(strings.Join(s.Why, "\n"), nobody); said && (c.why != nobody) {
			t.Errorf("%s: %q", c.name, s.Why)
		}
	}
}

func TestOneActThatWasLeftIsOneAct(t *testing.T) {
	r := outage()
	r.Played = &Played{By: ByPerson, Who: "ines", Due: 1}
	if s := Of(r, Options{}); !strings.Contains(strings.Join(s.Why, "\n"), "and an act of the scenario was left to that seat") {
		t.Errorf("%q", s.Why)
	}
}

// Who played stands in every form of the card.
func TestTheCardSaysWhoPlayedAndHowFast(t *testing.T) {
	for want, played := range map[string]*Played{
		"40m0s of virtual time, a person at the console as ines (commander) at 20 x real time, runbook":    {By: ByPerson, Who: "ines", Role: "commander", Speed: 20, Acts: 1},
		"40m0s of virtual time, a person at the console as ines at real time, runbook":                     {By: ByPerson, Who: "ines", Speed: 1, Acts: 1},
		"40m0s of virtual time, unattended, runbook":                                                       {By: ByMachine},
		"40m0s of virtual time, unattended, dev (platform) follows the runbook, runbook payment-risk-down": {By: ByMachine, Who: "dev", Role: "platform"},
		"40m0s of virtual time, runbook":                                                                   nil,
	} {
		r := outage()
		r.Played = played
		s := Of(r, Options{})
		var table bytes.Buffer
		if err := s.Write(&table); err != nil {
			t.Fatal(err)
		}
		page, err := Page(&s, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{"table": table.String(), "page": string(page)} {
			if !strings.Contains(text, want) {
				t.Errorf("the %s lacks %q:\n%.600s", form, want, text)
			}
		}
		raw, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(raw)
		if err != nil || (again.Played == nil) != (played == nil) || played != nil && *again.Played != *played {
			t.Errorf("read back %+v, want %+v: %v", again, played, err)
		}
	}
}

// A score from before it was written down who played is still read.
func TestAScoreThatNamesNoPlayerIsRead(t *testing.T) {
	raw, err := scoreOf(outage()).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("played")) {
		t.Fatalf("it names one: %s", raw)
	}
	if s, err := Parse(raw); err != nil || s.Played.Seat() != "" {
		t.Errorf("%+v: %v", s, err)
	}
	if _, err := Parse(bytes.Replace(raw, []byte(`"lasts_ms"`), []byte(`"played":null,"lasts_ms"`), 1)); err == nil {
		t.Error("a null in the place of a player was read")
	}
}

// The last run of the same seat may have been slower: its column says so.
func TestALastRunAtAnotherSpeedSaysSo(t *testing.T) {
	r, before := outage(), outage()
	r.Played, before.Played = &Played{By: ByPerson, Who: "ines", Speed: 20, Acts: 1}, &Played{By: ByPerson, Who: "ines", Speed: 1, Acts: 1}
	last := Of(before, Options{})
	s := Of(r, Options{Baseline: outage(), Last: &last})
	if got := s.Columns(); !slices.Equal(got, []string{"baseline", "last, real time"}) {
		t.Errorf("columns %q", got)
	}
	r.Played.Speed = 1
	s = Of(r, Options{Last: &last})
	if got := s.Columns(); !slices.Equal(got, []string{"last"}) {
		t.Errorf("columns %q at the same speed", got)
	}
}

func TestActsOfWhichNoneWasDoneHaveRehearsedNothing(t *testing.T) {
	for name, c := range map[string]struct {
		by      Player
		planned int
		done    []Event
		want    Verdict
		why     string
	}{
		"a script":              {ByScript, 2, nil, Inconclusive, "none of the 2 acts of the script was done: nothing was rehearsed"},
		"a scenario of one act": {ByMachine, 1, nil, Inconclusive, "the one act of the scenario was not done: nothing was rehearsed"},
		"one who only waits":    {ByMachine, 2, []Event{{AtMS: 1, Kind: Step, Who: "ines", What: Waits + "dwell"}}, Inconclusive, "none of the 2 acts"},
		"one act of two":        {ByMachine, 2, []Event{{AtMS: 1, Kind: Step, Who: "ines", What: "push git"}}, Passed, ""},
		"the ladder alone":      {ByMachine, 0, nil, Passed, ""},
	} {
		r := outage()
		r.Events = append(slices.DeleteFunc(r.Events, func(e Event) bool { return e.Kind == Step }), c.done...)
		r.Played = &Played{By: c.by}
		r.Played.Planned(c.planned, r)
		s := Of(r, Options{})
		if s.Verdict != c.want || !strings.Contains(strings.Join(s.Why, "\n"), c.why) {
			t.Errorf("%s: %s %q, want %s with %q", name, s.Verdict, s.Why, c.want, c.why)
		}
	}
}
