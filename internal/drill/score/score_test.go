package score

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/audit"
)

func wantMS(t *testing.T, name string, got *int64, want int64) {
	t.Helper()
	if got == nil || *got != want {
		t.Errorf("%s is %s, want %s", name, lasting(got), lasting(&want))
	}
}

func TestEachTimeBeginsWhereTheOneBeforeEnded(t *testing.T) {
	a := Of(outage(), Options{}).Axes
	wantMS(t, "detect", a.DetectMS, minute)
	wantMS(t, "decide", a.DecideMS, minute)
	wantMS(t, "effect", a.EffectMS, 5_000)
	wantMS(t, "stabilise", a.StabiliseMS, 3*minute)
	wantMS(t, "recover", a.RecoverMS, 11*minute)
}

func TestTheOtherAxesAreMeasured(t *testing.T) {
	a := Of(outage(), Options{}).Axes
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"blocked", int64(a.Blocked), 2},
		{"wrong role", int64(a.WrongRole), 1},
		{"too low: tier 2 wanted from 2:00 to 4:30", a.UnderTierMS, 2 * 150_000},
		{"too high: 1 until 20:00, 3 until 31:00", a.OverTierMS, 15*minute + 30_000 + 3*11*minute},
		{"flaps", int64(a.Flaps), 1},
		{"jumps", int64(a.Jumps), 1},
		{"impact: 20 % for 3 min", *a.ImpactMS, 36_000},
		{"unscored", *a.UnscoredCents, 120_000},
		{"lost", *a.LostCents, 24_000},
		{"steps", int64(a.Steps), 1},
		{"skipped", int64(a.Skipped), 1},
		{"bypass left", int64(*a.BypassLeft), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestWhatTheRecordDoesNotTellIsUnknownAndNotZero(t *testing.T) {
	r := outage()
	r.Events = slices.DeleteFunc(r.Events, func(e Event) bool { return e.Kind != Injected })
	r.Samples, r.Evidence = nil, nil
	s := Of(r, Options{})
	for _, row := range s.Rows() {
		switch row.Name {
		case "detect", "decide", "effect on 95 %", "stabilise", "recover", "unscored", "lost", "customer impact", "bypass at the end", "evidence":
			if row.Value != unknown || row.Mark != Unknown {
				t.Errorf("%s is %q", row.Name, row.Value)
			}
		}
	}
	if s.Verdict != Inconclusive {
		t.Errorf("a run without a sample is %s", s.Verdict)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(*Record)
		want Verdict
		why  string
	}{
		{"as it is", func(*Record) {}, Passed, ""},
		{"the fault never came", func(r *Record) {
			r.Events = slices.DeleteFunc(r.Events, func(e Event) bool { return e.Kind == Injected })
		}, NotInjected, "no fault was injected"},
		{"one of two faults did not take", func(r *Record) { r.Verdict = NotInjected }, NotInjected, ""},
		{"aborted", func(r *Record) { r.Aborted = "unscored > 50000.00 USD" }, Aborted, "unscored > 50000.00 USD"},
		{"a bypass is alive", func(r *Record) { r.Samples[len(r.Samples)-1].BypassOpen = 3 }, Failed, "alive at the end, on 3 hosts"},
		{"over the cap", func(r *Record) { r.CapCents = 119_999 }, Failed, "1200.00 USD went unscored, over the cap of 1199.99 USD"},
		{"an effect without outcome", func(r *Record) { r.Evidence.Missing = []string{"A has no outcome"} }, Failed, "A has no outcome"},
		{"a broken chain", func(r *Record) { r.Evidence.Whole = false }, Failed, "the chain does not verify"},
		{"an expectation failed", func(r *Record) { r.Verdict, r.Why = Failed, []string{"unscored is not < 1.00 USD"} }, Failed, "unscored is not"},
		{"a runbook that was left", func(r *Record) { r.Through = false }, Failed, "not followed to its end"},
		{"no verdict", func(r *Record) { r.Verdict = "" }, Inconclusive, "no verdict"},
	} {
		r := outage()
		c.bend(r)
		s := Of(r, Options{})
		if s.Verdict != c.want || !strings.Contains(strings.Join(s.Why, "\n"), c.why) {
			t.Errorf("%s: %s %q, want %s with %q", c.name, s.Verdict, s.Why, c.want, c.why)
		}
	}
	base := outage()
	base.Mode, base.Evidence = Baseline, &Evidence{}
	if s := Of(base, Options{}); s.Verdict != Passed {
		t.Errorf("a baseline has no log to be complete: %s %q", s.Verdict, s.Why)
	}
}

func TestAFaultThatCameAfterwardsIsNotRecoveredFrom(t *testing.T) {
	r := outage()
	r.Events = append(r.Events, Event{AtMS: 25 * minute, Kind: Injected, What: "flag-service-down"})
	if got := Of(r, Options{}).Axes.RecoverMS; got != nil {
		t.Errorf("recovered in %s, with the flag service still down", lasting(got))
	}
}

func TestRecoveryCountsFromTheFaultThatStoodInTheWay(t *testing.T) {
	r := outage()
	r.Events = append(r.Events, Event{AtMS: 35 * minute, Kind: Cleared, What: "flags-partition"})
	wantMS(t, "recover", Of(r, Options{}).Axes.RecoverMS, 11*minute)
	r.Samples[len(r.Samples)-1].Tier["checkout"] = 1
	if got := Of(r, Options{}).Axes.RecoverMS; got != nil {
		t.Errorf("recovered in %s, and not normal at the end", lasting(got))
	}
}

func TestCalmForAMomentIsNotStable(t *testing.T) {
	r := outage()
	for i := range r.Samples {
		if at := r.Samples[i].AtMS; at >= 6*minute && at < 8*minute {
			r.Samples[i].ErrorsPPM["edge"] = StableErrorsPPM
		}
	}
	wantMS(t, "stabilise", Of(r, Options{}).Axes.StabiliseMS, 6*minute)
}

func TestTheOrderOfARecordDoesNotMatter(t *testing.T) {
	r := outage()
	want, err := scoreOf(r).Encode()
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(r.Samples)
	slices.Reverse(r.Events)
	got, err := scoreOf(r).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("another score:\n%s%s", got, want)
	}
}

func scoreOf(r *Record) *Score { s := Of(r, Options{}); return &s }

func TestPractisedIsWhatCameIntoForceWithItsEffect(t *testing.T) {
	r := outage()
	r.Events = append(r.Events, Event{AtMS: 9 * minute, Kind: Issued, What: "off search", Scope: "edge", ID: "B", Right: "search-off"})
	var names []string
	for _, p := range Of(r, Options{}).Practised {
		names = append(names, p.What)
		if p.What != "tier/checkout/3" {
			continue
		}
		wantMS(t, "effect", p.EffectMS, 5_000)
		wantMS(t, "errors before", p.ErrorsBeforePPM, 350_000)
		wantMS(t, "errors after", p.ErrorsAfterPPM, 1_000)
	}
	if want := []string{"runbook/payment-risk-down", "shed-checkout", "tier/checkout/3"}; !slices.Equal(names, want) {
		t.Errorf("practised %q, want %q: search was never off on 95 %%", names, want)
	}
	r.Mode = Baseline
	if p := Of(r, Options{}).Practised; len(p) > 0 {
		t.Errorf("a run without ic has practised %v", p)
	}
}

func TestRegressionsAreSaidAxisByAxis(t *testing.T) {
	last := Of(outage(), Options{})
	if same := last.Regressions(&last); len(same) > 0 {
		t.Errorf("the same run is worse than itself: %q", same)
	}
	r := outage()
	r.Samples[len(r.Samples)-1].UnscoredCents += 5_000_00
	r.Events[2].AtMS += 10_000 // acknowledged: detect 10 s later, decide 10 s earlier
	r.Events = append(r.Events, Event{AtMS: 32 * minute, Kind: Moved, Scope: "checkout", Done: 0, Total: 1})
	got := scoreOf(r).Regressions(&last)
	for _, want := range []string{"detect is 1m10s, and was 1m0s", "flaps is 2, and was 1", "unscored is 6200.00 USD, and was 1200.00 USD"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	r.Verdict, r.Events = Failed, r.Events[:2]
	got = scoreOf(r).Regressions(&last)
	if !slices.Contains(got, "failed, and passed the last time") || !slices.Contains(got, "detect is UNKNOWN, and was 1m0s") {
		t.Errorf("a lost value and a failed run are regressions: %q", got)
	}
}

func TestEvidenceWantsAnIntentAndAnOutcomeOfEveryEffect(t *testing.T) {
	whole := &audit.Result{Entries: 4}
	if e := EvidenceOf(whole, nil, effects("p1", "p2")); !e.Complete() || e.Effects != 2 {
		t.Errorf("complete evidence: %+v", e)
	}
	torn := effects("p1")
	torn[0].Entries = append(torn[0].Entries, audit.Entry{Body: audit.PushIntent{Operation: "p2"}}, audit.Entry{Body: audit.Signed{ID: "A"}})
	e := EvidenceOf(whole, nil, torn)
	for _, want := range []string{"push p2 has no outcome: what became of it is UNKNOWN", "A has no intent", "A has no outcome: what became of it is UNKNOWN"} {
		if !slices.Contains(e.Missing, want) {
			t.Errorf("%q is missing in %q", want, e.Missing)
		}
	}
	late := torn
	late[0].Entries = append(late[0].Entries,
		audit.Entry{Body: audit.PushOutcome{Operation: "p2"}}, audit.Entry{Body: audit.Proposed{ID: "A"}},
		audit.Entry{Body: audit.Late{Receipt: audit.Receipt{Kind: audit.KindOutcome, Body: []byte(`{"id":"A","carrier":"etcd","state":"carried"}`)}}})
	if e := EvidenceOf(whole, nil, late); !e.Complete() {
		t.Errorf("a late outcome is one: %q", e.Missing)
	}
	if e := EvidenceOf(whole, errors.New("byte 7 changed"), effects("p1")); e.Complete() || !strings.Contains(e.Missing[0], "byte 7 changed") {
		t.Errorf("a chain that does not hold: %+v", e)
	}
	if e := EvidenceOf(&audit.Result{}, nil, nil); e.Complete() {
		t.Error("no log proves nothing")
	}
}

func TestAScoreIsReadBackByteForByteAndInNoOtherForm(t *testing.T) {
	base := outage()
	base.Mode = Baseline
	s := Of(outage(), Options{Baseline: base})
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(raw); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"a space more":   strings.Replace(string(raw), `,"seed"`, `, "seed"`, 1),
		"an unknown key": strings.Replace(string(raw), `{"v":1,`, `{"v":1,"x":1,`, 1),
		"a version":      strings.Replace(string(raw), `{"v":1,`, `{"v":2,`, 1),
		"a fraction":     strings.Replace(string(raw), `"seed":7`, `"seed":7.5`, 1),
		"a second one":   string(raw) + string(raw),
		"nothing":        "",
		"too much":       strings.Repeat(" ", MaxScore) + string(raw),
	} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestEveryLineOfTheCardSaysRehearsalAndWhatIsAbnormalHasAGlyphAndAWord(t *testing.T) {
	r := outage()
	r.Title = "two\nlines \x1b[31m"
	r.Samples[len(r.Samples)-1].BypassOpen = 2
	base := outage()
	base.Mode = Baseline
	last := Of(outage(), Options{})
	s := Of(r, Options{Baseline: base, Last: &last})
	var out strings.Builder
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "REHEARSAL  ") || strings.ContainsRune(line, '\x1b') {
			t.Errorf("a line %q", line)
		}
	}
	for _, want := range []string{"X FAILED", "X bypass at the end  on 2 hosts", "LEFT OPEN", "! wrong role", "without the role", "baseline", "last"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
