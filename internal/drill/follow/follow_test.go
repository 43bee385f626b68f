package follow

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/runbooks"
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

func TestAStepThatDoesNotHoldIsPassedAfterThreeLooks(t *testing.T) {
	r, err := play(t, "", "check: {signal: checkout-errors, is: abnormal}\ntimeout: 2m", "check: {tier: {scope: checkout, is: 3}}\ntimeout: 5s")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Skipped && e.ID == "see" }) || !r.Through {
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
