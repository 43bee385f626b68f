package follow

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// play follows the runbook of testdata, after a change, in the scenario of
// testdata.
func play(t *testing.T, as, old, new string) (*score.Record, error) {
	t.Helper()
	text, err := os.ReadFile("testdata/risk-short.scenario")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("risk-short.scenario", text, scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("testdata/risk-gone.md")
	if err != nil {
		t.Fatal(err)
	}
	rb, err := runbooks.Parse("risk-gone.md", bytes.Replace(raw, []byte(old), []byte(new), 1))
	if err != nil {
		t.Fatal(err)
	}
	return scenario.Play(t.Context(), s, scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Acts: Acts(rb, as)})
}

func TestARunbookActsProvesAndComesToItsEnd(t *testing.T) {
	r, err := play(t, "commander", "", "")
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, e := range r.Events {
		if e.Kind == score.Step {
			steps = append(steps, e.ID)
		}
	}
	if want := []string{"see", "choose", "open", "back", "close"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	s := score.Of(r, score.Options{})
	if s.Verdict != score.Passed || !r.Through || s.Axes.EffectMS == nil || s.Axes.CapCents == nil {
		t.Errorf("%s %q: %+v", s.Verdict, s.Why, s.Axes)
	}
	if !slices.ContainsFunc(s.Practised, func(p score.Practised) bool { return p.What == "runbook/risk-gone" }) {
		t.Errorf("the runbook was not practised: %+v", s.Practised)
	}
}

func TestARefusedStepEndsItAndFailsTheRehearsal(t *testing.T) {
	r, err := play(t, "fiona", "", "") // finance may not open anything alone
	if err != nil {
		t.Fatal(err)
	}
	s := score.Of(r, score.Options{})
	if r.Through || s.Verdict != score.Failed || s.Axes.Blocked == 0 || !strings.Contains(strings.Join(s.Why, "\n"), "not followed to its end") {
		t.Errorf("%s %q, %d blocked", s.Verdict, s.Why, s.Axes.Blocked)
	}
}

func TestTwoPeopleSignWhatWantsTwo(t *testing.T) {
	r, err := play(t, "", "right: risk-bypass-small-orders, scope: checkout, for: 15m", "right: risk-bypass-medium-orders, scope: checkout, for: 10m")
	if err != nil {
		t.Fatal(err)
	}
	cosigned := slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Who == "fiona" && e.What == "cosigns" })
	effective := slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Effective })
	if !cosigned || !effective {
		t.Errorf("cosigned %v, effective %v: %+v", cosigned, effective, r.Events)
	}
}

const (
	looked = "check: {signal: checkout-errors, is: abnormal}\ntimeout: 2m\non_timeout: stop"
	never  = "check: {tier: {scope: checkout, is: 3}}\ntimeout: 5s\non_timeout: "
)

func TestAStepThatDoesNotHoldIsLookedAtThreeTimesMoreAndLeft(t *testing.T) {
	r, err := play(t, "", looked, never+"ask")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Step && e.ID == "see" && e.What == "failed" }) || !r.Through {
		t.Errorf("through %v: %+v", r.Through, r.Events)
	}
}

func TestTheRunEndsWhereTheRunbookSaysStop(t *testing.T) {
	r, err := play(t, "", looked, never+"stop")
	if err != nil {
		t.Fatal(err)
	}
	ended := slices.ContainsFunc(r.Events, func(e score.Event) bool {
		return e.Kind == score.Denied && e.ID == "see" && strings.HasPrefix(e.What, "ends the runbook")
	})
	opened := slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Issued })
	if r.Through || !ended || opened {
		t.Errorf("through %v, ended %v, opened %v: %+v", r.Through, ended, opened, r.Events)
	}
}

// cutOff is a night in which half of the fleet hears nothing, and three machines stand
// still when their files are to be written.
const cutOff = `scenario  cut-off
title     Files do not arrive everywhere
source    a test
why       what became of the push cannot be said at once

fleet     shop 12
lasts     16m
people    ines commander reacts 10s acts 5s

at 0s     inject flags-partition
at 0s     load 300 %
at 10s    inject hosts-paused
at 9m     clear hosts-paused

baseline
  on cpu abnormal ines flag tier 1

with runbook files
  on cpu abnormal ines do shed tier 1 scope *
  then ines follow

expect    ic tier of edge = 1
`

const files = `---
v: 1
id: files
owner: platform
use_when: the flag service does not reach everybody
valid_until: 2027-03-01
max_duration: 45m
---
# Files

` + "```ic-step" + `
id: push
push: {backend: hostfile}
timeout: 1m
on_timeout: %s
probe: {reach: {at_least: 100}}
irreversible: a test
` + "```" + `

` + "```ic-step" + `
id: seen
note: {ask: 'What did you see?'}
` + "```" + `
`

// What became of a push that some machines did not take is UNKNOWN; the hosts are read
// again, and it is not pushed a second time.
func TestAPushThatIsUnknownIsReadAgainAndNotRepeated(t *testing.T) {
	for onTimeout, through := range map[string]bool{runbooks.OnAsk: true, runbooks.OnContinue: true, runbooks.OnStop: false} {
		t.Run(onTimeout, func(t *testing.T) {
			rb, err := runbooks.Parse("files.md", fmt.Appendf(nil, files, onTimeout))
			if err != nil {
				t.Fatal(err)
			}
			s, err := scenario.Parse("cut-off.scenario", []byte(cutOff), scenario.Shop())
			if err != nil {
				t.Fatal(err)
			}
			r, err := scenario.Play(t.Context(), s, scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Follows: Follows(rb)})
			if err != nil {
				t.Fatal(err)
			}
			var states []string
			for _, e := range r.Events {
				if e.Kind == score.Step && e.ID == "push" {
					states = append(states, e.What)
				}
			}
			if len(states) == 0 || states[0] != run.Unknown || r.Through != through || through != (states[len(states)-1] == run.Failed) {
				t.Errorf("through %v, the push was %q: %+v", r.Through, states, r.Events)
			}
			if r.Runbook != "files" || r.Digest != rb.Digest {
				t.Errorf("the record names the runbook %q with %q", r.Runbook, r.Digest)
			}
			if !r.Evidence.Complete() || r.Evidence.Effects != 2 {
				t.Errorf("a shed and one push, and the log has %+v", r.Evidence)
			}
		})
	}
}

// What a runbook pushes is practised like what a person pushes: it was ordered, and
// the hosts have said that it is in force.
func TestAPushOfARunbookIsPractised(t *testing.T) {
	rb, err := runbooks.Parse("files.md", fmt.Appendf(nil, files, runbooks.OnAsk))
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.NewReplacer("at 10s    inject hosts-paused\n", "", "at 9m     clear hosts-paused\n", "").Replace(cutOff)
	s, err := scenario.Parse("cut-off.scenario", []byte(whole), scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Play(t.Context(), s, scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Follows: Follows(rb)})
	if err != nil {
		t.Fatal(err)
	}
	card := score.Of(r, score.Options{})
	at := slices.IndexFunc(card.Practised, func(p score.Practised) bool { return p.What == "backend/hostfile" })
	if at < 0 || card.Practised[at].EffectMS == nil {
		t.Errorf("practised: %+v, of %+v", card.Practised, r.Events)
	}
}

// earlyNight is a peak that is over, and a runbook that is taken before the policy's calm
// minutes are.
const earlyNight = `scenario  early
title     Too early to go back
source    a test
why       the policy asks for ten calm minutes

fleet     shop 12
lasts     25m
people    ines commander reacts 10s acts 5s

at 0s     load 300 %
at 3m     load 100 %

baseline
  on cpu abnormal ines flag tier 1

with runbook back
  on cpu abnormal ines do shed tier 1 scope *
  on 5m ines follow

expect    ic moves of edge >= 1
`

const backBook = `---
v: 1
id: back
owner: platform
use_when: the peak is over
valid_until: 2027-03-01
max_duration: 45m
---
# Back

` + "```ic-step" + `
id: first
recover: {scope: "*", to: 0, percent: 10}
timeout: 2m
on_timeout: ask
probe: {reach: {at_least: 95}}
irreversible: a test
` + "```" + `
`

func TestAStepThatIsTooEarlyIsWaitedFor(t *testing.T) {
	rb, err := runbooks.Parse("back.md", []byte(backBook))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("early.scenario", []byte(earlyNight), scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Play(t.Context(), s, scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Follows: Follows(rb)})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Step && e.ID == "first" && e.What == run.Done })
	early := slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Denied || e.Kind == score.Skipped })
	if at < 0 || r.Events[at].AtMS < 12*60_000 || early || !r.Through {
		t.Errorf("through %v: %+v", r.Through, r.Events)
	}
}

func TestNobodyOfThatNameIsSaid(t *testing.T) {
	if _, err := play(t, "pilot", "", ""); err == nil || !strings.Contains(err.Error(), `nobody in the scenario is "pilot"; there are ines (commander), fiona (finance)`) {
		t.Errorf("%v", err)
	}
}

func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	a, err := play(t, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	b, err := play(t, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	one, two := score.Of(a, score.Options{}), score.Of(b, score.Options{})
	x, _ := one.Encode() // both have the same form
	y, err := two.Encode()
	if err != nil || !bytes.Equal(x, y) {
		t.Errorf("%v:\n%s%s", err, x, y)
	}
}
