package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/incident"
)

func shipped(t testing.TB, name string) *Scenario {
	t.Helper()
	file := filepath.Join("..", "..", "..", "testdata", "scenarios", name+".scenario")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(file, raw, Shop())
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != name {
		t.Errorf("%s calls itself %s", file, s.Name)
	}
	if printed := Format(s); !bytes.Equal(printed, raw) {
		t.Errorf("%s is not in canonical form; it is\n%s", file, printed)
	}
	return s
}

// short is a small night of twelve minutes; change swaps parts of its text.
func short(t testing.TB, change ...string) *Scenario {
	t.Helper()
	const text = `scenario  short
title     A short night
source    ours
why       To try the player.
fleet     shop 12
lasts     12m
people    ines commander reacts 1m acts 20s
shop      orders-per-minute 600
at 1m     inject payment-risk-down
at 8m     clear payment-risk-down
baseline
  on checkout-errors abnormal ines flag bypass-risk on
  on payment-risk-up normal ines flag bypass-risk off
with ic
  on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout for 5m
  then ines note seen
expect    ic decided < 3m
`
	s, err := Parse("short", []byte(strings.NewReplacer(change...).Replace(text)), Shop())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t testing.TB, s *Scenario, mode score.Mode, seed uint64) *score.Record {
	t.Helper()
	r, err := Play(context.Background(), s, Options{Seed: seed, Mode: mode, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encoded(t testing.TB, r *score.Record) []byte {
	t.Helper()
	out, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func first(r *score.Record, kind score.EventKind) (e score.Event, ok bool) {
	i := slices.IndexFunc(r.Events, func(e score.Event) bool { return e.Kind == kind })
	if i < 0 {
		return e, false
	}
	return r.Events[i], true
}

func TestTheFaultsOfAScenarioAreThoseOfTheWorld(t *testing.T) {
	w, err := sim.New(sim.Options{Hosts: 12, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	known := Shop()
	for _, f := range w.Faults().List() {
		in := known.Faults
		if f.Momentary {
			in = known.Shocks
		}
		if !slices.Contains(in, f.Name) {
			t.Errorf("no scenario may use %s (momentary: %v)", f.Name, f.Momentary)
		}
	}
	if n := len(w.Faults().List()); n != len(known.Faults)+len(known.Shocks) {
		t.Errorf("the world has %d faults, scenarios know %d", n, len(known.Faults)+len(known.Shocks))
	}
}

// Every scenario that ships is canonical, and passes in every mode that it speaks
// of: the baseline makes the disaster, ic does what the file says. Seed 1 stands for
// all of them; with IC_SEEDS=8 the first eight are played.
func TestEveryShippedScenarioPasses(t *testing.T) {
	n := seedsOr(t, 1)
	for i, name := range shippedNames(t) {
		s := shipped(t, name)
		for _, mode := range []score.Mode{score.Baseline, score.WithIC, score.NoSecondBypass} {
			speaks := slices.ContainsFunc(s.Expect, func(e Expectation) bool { return e.Mode == mode })
			if mode == score.NoSecondBypass && !speaks || mode != score.Baseline && s.Runbook != "" || i%sparse != 0 {
				continue
			}
			for seed := 1; seed <= n; seed++ {
				t.Run(fmt.Sprintf("%s/%s/seed %d", name, mode, seed), func(t *testing.T) {
					t.Parallel()
					passes(t, play(t, s, mode, uint64(seed)))
				})
			}
		}
	}
}

func passes(t *testing.T, r *score.Record) {
	t.Helper()
	if r.Verdict != score.Passed {
		t.Errorf("%s: %s", r.Verdict, strings.Join(r.Why, "; "))
	}
	if r.Mode != score.Baseline && !r.Evidence.Complete() {
		t.Errorf("the evidence is not complete: %+v", r.Evidence)
	}
}

func TestTheSameSeedGivesTheSameRecordAndTheSameLog(t *testing.T) {
	t.Parallel()
	for _, mode := range []score.Mode{score.Baseline, score.WithIC} {
		run := func(seed uint64) (record, log []byte) {
			var out bytes.Buffer
			r, err := Play(context.Background(), short(t), Options{Seed: seed, Mode: mode, State: t.TempDir(), Log: &out})
			if err != nil {
				t.Fatal(err)
			}
			return encoded(t, r), out.Bytes()
		}
		record, log := run(3)
		again, logAgain := run(3)
		if !bytes.Equal(record, again) || !bytes.Equal(log, logAgain) {
			t.Errorf("%s: two runs of seed 3 differ", mode)
		}
		if other, _ := run(4); bytes.Equal(record, other) {
			t.Errorf("%s: seeds 3 and 4 give the same record", mode)
		}
	}
}

func TestStepByStepIsTheSameAsAtOnce(t *testing.T) {
	t.Parallel()
	r, err := Open(context.Background(), short(t), Options{Seed: 3, Mode: score.WithIC, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for until := 700 * time.Millisecond; r.Advance(until); until += 700 * time.Millisecond {
	}
	got, err := r.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if want := play(t, short(t), score.WithIC, 3); !bytes.Equal(encoded(t, got), encoded(t, want)) {
		t.Error("a run in small steps is another run")
	}
}

func TestPeopleAreAsQuickWithICAsWithout(t *testing.T) {
	t.Parallel()
	without, with := play(t, short(t), score.Baseline, 5), play(t, short(t), score.WithIC, 5)
	for _, r := range []*score.Record{without, with} {
		alarm, _ := first(r, score.Alarm)
		seen, ok := first(r, score.Acknowledged)
		if took := seen.AtMS - alarm.AtMS; !ok || seen.Who != "ines" || took < 48_000 || took > 72_000 {
			t.Errorf("%s: %s acknowledged after %d ms; she reacts in a minute", r.Mode, seen.Who, took)
		}
	}
	a, _ := first(without, score.Acknowledged)
	b, _ := first(with, score.Acknowledged)
	if a.AtMS != b.AtMS {
		t.Errorf("the same seed reacts at %d ms without ic and at %d with it", a.AtMS, b.AtMS)
	}
}

func TestAReactionIsWithinAFifthOfWhatTheScenarioSays(t *testing.T) {
	var all []int64
	for seed := uint64(1); seed <= 400; seed++ {
		m := newCast(short(t), seed)["ines"]
		all = append(all, m.react().Milliseconds())
	}
	got := spreadOf(all)
	if got.least < 48_000 || got.most > 72_000 || got.median < 58_000 || got.median > 62_000 || got.least == got.most {
		t.Errorf("of 400 reactions in a minute: %+v ms", got)
	}
}

func TestWhatARunIsWorth(t *testing.T) {
	for _, c := range []struct {
		what   string
		change []string
		mode   score.Mode
		want   score.Verdict
		why    string
	}{
		{"as expected", nil, score.WithIC, score.Passed, ""},
		{"too late", []string{"decided < 3m", "decided < 10s"}, score.WithIC, score.Failed, "line 17 expects decided < 10s, and it was"},
		{"what the run does not tell", []string{"do risk-bypass-small-orders scope checkout for 5m", "note nothing", "decided < 3m", "effective < 3m"},
			score.WithIC, score.Inconclusive, "the run does not tell"},
		{"a bypass that is alive at the end", []string{"for 5m", "for 15m"}, score.WithIC, score.Failed, "a bypass is alive at the end, on 5 hosts"},
		{"a fault that changes nothing", []string{"orders-per-minute 600", "surge 100 %", "payment-risk-down", "load-surge"}, score.Baseline, score.NotInjected, "load-surge had no effect"},
		{"a bound that is passed", []string{"baseline\n", "abort_if  unscored > 500.00 USD\nbaseline\n"}, score.Baseline, score.Aborted, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r := play(t, short(t, c.change...), c.mode, 2)
			if r.Verdict != c.want || !strings.Contains(strings.Join(r.Why, "; "), c.why) {
				t.Errorf("%s: %v, want %s: %s", r.Verdict, r.Why, c.want, c.why)
			}
			last := r.Samples[len(r.Samples)-1]
			if aborted := r.Aborted != ""; aborted != (c.want == score.Aborted) || aborted != (last.AtMS < r.LastsMS) {
				t.Errorf("aborted %q, and the last sample is at %d of %d ms", r.Aborted, last.AtMS, r.LastsMS)
			}
		})
	}
}

func TestNobodyGrantsASecondBypass(t *testing.T) {
	t.Parallel()
	twice := []string{"for 5m\n", "for 2m\n  on payment-risk-up abnormal ines do risk-bypass-small-orders scope checkout for 2m\n"}
	bypasses := func(mode score.Mode) (issued, skipped int) {
		r := play(t, short(t, twice...), mode, 2)
		for _, e := range r.Events {
			if e.Kind == score.Issued && strings.HasPrefix(e.What, "bypass") {
				issued++
			}
			if e.Kind == score.Skipped {
				skipped++
			}
		}
		return issued, skipped
	}
	if issued, skipped := bypasses(score.NoSecondBypass); issued != 1 || skipped != 2 {
		t.Errorf("%d bypasses and %d acts left out; the second bypass and what follows from it are", issued, skipped)
	}
	if _, skipped := bypasses(score.WithIC); skipped != 0 {
		t.Errorf("in the other run %d acts are left out", skipped)
	}
}

// A recovery takes as long as the console wants to see calm. Who is in the middle of
// one, and has something newer to do, is as quick at it as without ic, and does not go
// back to the recovery.
func TestARecoveryIsLeftForWhatComesUp(t *testing.T) {
	t.Parallel()
	peaks := short(t, "at 1m     inject payment-risk-down\nat 8m     clear payment-risk-down\n", "at 0s     load 300 %\nat 2m     load 100 %\n",
		"on checkout-errors abnormal ines flag bypass-risk on\n  on payment-risk-up normal ines flag bypass-risk off", "on cpu abnormal ines flag tier 2",
		"on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout for 5m\n  then ines note seen",
		"on cpu abnormal ines do shed tier 2 scope *\n  on 3m ines recover * to 1\n  on 6m ines do shed tier 1 scope *\n  then ines note seen")
	r := play(t, peaks, score.WithIC, 2)
	at := map[string]int64{}
	for _, e := range r.Events {
		if e.Kind == score.Step && e.Who == "ines" {
			at[e.What+e.Detail] = e.AtMS
		}
	}
	left := at["recover * to 1left for: do shed tier 1 scope *"]
	if left < 6*60_000+48_000 || left > 6*60_000+73_000 {
		t.Errorf("the recovery was left at %d ms; she reacts within 48 to 72 s of the sixth minute: %v", left, at)
	}
	if seen := at["note seen"]; seen < left+16_000 || seen > left+30_000 {
		t.Errorf("what follows from it was done at %d ms, and it was begun at %d", seen, left)
	}
}

func TestAPolicyWhoseDateIsOverOpensNothing(t *testing.T) {
	t.Parallel()
	over := []string{"at 1m     inject", "policy    expires 30s\nat 1m     inject", "decided < 3m", "denied of policy-expired = 1"}
	r := play(t, short(t, over...), score.WithIC, 1)
	if r.Verdict != score.Passed || r.CapCents != 0 {
		t.Errorf("%s %q, and bypasses of %d cents", r.Verdict, r.Why, r.CapCents)
	}
}

func TestRecordedSignalsArePlayedIn(t *testing.T) {
	t.Parallel()
	recorded := []string{
		"at 1m     inject payment-risk-down\nat 8m     clear payment-risk-down\n", "series every 5s service:shop_cpu_share{service=\"recorded\"} 0.1x59 0.95+0x30\n",
		"on checkout-errors abnormal ines flag bypass-risk on\n  on payment-risk-up normal ines flag bypass-risk off", "on cpu abnormal ines flag tier 1",
	}
	r := play(t, short(t, recorded...), score.Baseline, 1)
	alarm, ok := first(r, score.Alarm)
	if !ok || alarm.What != "cpu" || alarm.AtMS < 300_000 || alarm.AtMS > 310_000 {
		t.Errorf("the recorded signal turns abnormal after 5 min, the alarm is %+v", alarm)
	}
	if tier, _ := Value(r, Figure{Name: "tier", Of: "edge"}); tier != 1 {
		t.Errorf("nobody acted on it: tier %d", tier)
	}
}

// withRunbook is the short night with a runbook in the place of its acts.
func withRunbook(t *testing.T, acts string) *Scenario {
	t.Helper()
	return short(t, "people    ines commander reacts 1m acts 20s\n", "people    ines commander reacts 1m acts 20s\npeople    dev operator reacts 20s\n",
		"with ic\n", "with runbook payment-risk-down\n",
		"  on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout for 5m\n  then ines note seen\n", acts)
}

func TestARunbookNeedsSomebodyWhoRunsIt(t *testing.T) {
	s := withRunbook(t, "  on 2m ines follow\n")
	_, err := Play(context.Background(), s, Options{Mode: score.WithIC, State: t.TempDir()})
	if !errors.Is(err, ErrRunbook) || !strings.Contains(err.Error(), "payment-risk-down") {
		t.Errorf("got %v", err)
	}
}

func TestOthersActBesideARunbook(t *testing.T) {
	t.Parallel()
	const acts = "  on checkout-errors abnormal ines note looked\n  then ines follow\n  on 4m dev note beside\n  then dev note twice\n  on 9m ines note after\n"
	notes := func(o Options) (out []string) {
		o.Mode, o.State = score.WithIC, t.TempDir()
		r, err := Play(context.Background(), withRunbook(t, acts), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Events {
			if e.Kind == score.Step || e.Kind == score.Denied { // without an incident there is no log for a note
				out = append(out, e.Who+" "+e.What)
			}
		}
		return out
	}
	began := time.Duration(0)
	got := notes(Options{Follows: func(ctx context.Context, r *Run, d *incident.Desk, who string) error {
		began = r.Now()
		if who != "ines" || d.Snapshot().Person != who {
			t.Errorf("%s follows it, at the desk of %s", who, d.Snapshot().Person)
		}
		return r.World().Sleep(ctx, 6*time.Minute)
	}})
	if want := []string{"ines note looked", "dev note beside", "dev note twice", "ines note after"}; !slices.Equal(got, want) || began == 0 {
		t.Errorf("got %q, want %q; the runbook began after %s", got, want, began)
	}
	// Somebody at a console does what his seat would do, and what follows from it.
	nobody := func(context.Context, *Run) error { return nil }
	if got, want := notes(Options{Acts: nobody, Seat: "ines"}), []string{"dev note beside", "dev note twice"}; !slices.Equal(got, want) {
		t.Errorf("beside the console of ines: %q, want %q", got, want)
	}
	if got, want := notes(Options{Acts: nobody, Seat: "dev"}), []string{"ines note looked", "ines note after"}; !slices.Equal(got, want) {
		t.Errorf("beside the console of dev: %q, want %q", got, want)
	}
}

func TestInsteadOfItsOwnActsSomebodyElseActs(t *testing.T) {
	acted := false
	r, err := Play(context.Background(), short(t), Options{Mode: score.WithIC, State: t.TempDir(), Acts: func(_ context.Context, r *Run) error {
		who, ok := r.Person("ines")
		acted = ok && who.Reacts == time.Minute && r.World() != nil
		return nil
	}})
	if err != nil || !acted {
		t.Fatalf("%v, acted %v", err, acted)
	}
	if e, ok := first(r, score.Step); ok {
		t.Errorf("the scenario acts as well: %+v", e)
	}
}

func TestARunCanBeGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Play(ctx, short(t), Options{Mode: score.Baseline, State: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Play(context.Background(), short(t), Options{Mode: "hope", State: t.TempDir()}); err == nil || !strings.Contains(err.Error(), `no mode "hope"`) {
		t.Errorf("got %v", err)
	}
}
