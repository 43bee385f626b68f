package freshness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// counter is a source of names that never repeats.
type counter struct{ n byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = c.n
	}
	c.n++
	return len(p), nil
}

func run(at time.Time, scenario string, practised ...string) Run {
	s := score.Of(&score.Record{
		Scenario: scenario, Mode: score.WithIC, LastsMS: 60_000, Verdict: score.Passed,
		Events: []score.Event{{Kind: score.Injected, What: "fault"}}, Samples: []score.Sample{{}},
	}, score.Options{})
	for _, what := range practised {
		s.Practised = append(s.Practised, score.Practised{What: what, AtMS: 1_000})
	}
	return Run{At: at, By: "ines", Score: s}
}

func write(t *testing.T, state string, random *counter, r Run) {
	t.Helper()
	if path, err := Write(state, r, random); err != nil || !slices.Contains(files(t, state), path) {
		t.Fatalf("%s: %v", path, err)
	}
}

func files(t *testing.T, state string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(state, Folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRunsAreReadBackOldestFirst(t *testing.T) {
	state, random := t.TempDir(), &counter{}
	if runs, err := Read(state); err != nil || len(runs) > 0 {
		t.Fatalf("a folder without rehearsals: %v, %v", runs, err)
	}
	write(t, state, random, run(noon, "b"))
	write(t, state, random, run(noon.Add(-time.Hour), "a"))
	runs, err := Read(state)
	if err != nil || len(runs) != 2 || runs[0].Score.Scenario != "a" || runs[1].By != "ines" {
		t.Fatalf("%v, %+v", err, runs)
	}
	for _, f := range files(t, state) {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}

func TestOneDamagedFileHidesNoOther(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":           func(b []byte) []byte { return b[:len(b)/2] },
		"empty":         func([]byte) []byte { return nil },
		"an extra key":  func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1,`), []byte(`{"v":1,"x":2,`), 1) },
		"another order": func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1,`), []byte(`{ "v":1,`), 1) },
		"a version":     func(b []byte) []byte { return bytes.Replace(b, []byte(`{"v":1,`), []byte(`{"v":9,`), 1) },
		"a huge one":    func(b []byte) []byte { return append(b, bytes.Repeat([]byte(" "), maxFile)...) },
	} {
		state, random := t.TempDir(), &counter{}
		write(t, state, random, run(noon, "bad"))
		bad := files(t, state)[0]
		write(t, state, random, run(noon.Add(time.Second), "good"))
		raw, err := os.ReadFile(bad)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(bad, damage(raw), 0o600); err != nil {
			t.Fatal(err)
		}
		runs, err := Read(state)
		if err == nil || !strings.Contains(err.Error(), bad) || len(runs) != 1 || runs[0].Score.Scenario != "good" {
			t.Errorf("%s: %v, %d runs", name, err, len(runs))
		}
	}
}

func TestTheOldestGoButNeverTheLastOfItsKind(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(n int, r Run) {
		r.V = version
		raw, err := encode(&r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%08d.json", r.At.Format(stamp), n)), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(0, run(noon.Add(-48*time.Hour), "rare"))
	for n := range MaxRuns {
		put(n+1, run(noon.Add(time.Duration(n-MaxRuns)*time.Second), "often"))
	}
	write(t, state, &counter{}, run(noon, "new"))
	runs, err := Read(state)
	if err != nil || len(runs) != MaxRuns {
		t.Fatalf("%v, %d runs, want %d", err, len(runs), MaxRuns)
	}
	if runs[0].Score.Scenario != "rare" || runs[len(runs)-1].Score.Scenario != "new" {
		t.Errorf("the first is %s, the last %s", runs[0].Score.Scenario, runs[len(runs)-1].Score.Scenario)
	}
	if want := noon.Add(time.Duration(2-MaxRuns) * time.Second); !runs[1].At.Equal(want) {
		t.Errorf("the oldest of the many is of %s, want %s: two had to go", runs[1].At, want)
	}
}

func TestLastIsOfTheSameScenarioModeRunbookScriptAndSeed(t *testing.T) {
	older, newer, other := run(noon, "a"), run(noon.Add(time.Hour), "a"), run(noon.Add(2*time.Hour), "a")
	other.Score.Seed = 2
	script := run(noon.Add(3*time.Hour), "a")
	script.Score.Script = "5feceb66"
	runs := []Run{newer, older, other, script}
	if got := Last(runs, &older.Score); got == nil || !got.At.Equal(newer.At) {
		t.Errorf("the last is %+v", got)
	}
	stranger := run(noon, "b")
	if got := Last(runs, &stranger.Score); got != nil {
		t.Errorf("b was never run, and was last %+v", got)
	}
}

// Who followed a runbook for an hour is not held against a machine that needs no
// breath, nor against somebody in another seat.
func TestLastIsOneThatWasPlayedTheSameWay(t *testing.T) {
	by := func(at time.Time, played *score.Played) Run {
		r := run(at, "a")
		r.Score.Played = played
		return r
	}
	ines := &score.Played{By: score.ByPerson, Who: "ines", Role: "commander", Speed: 1, Acts: 2}
	runs := []Run{
		by(noon, ines), by(noon.Add(time.Minute), nil), by(noon.Add(2*time.Minute), &score.Played{By: score.ByMachine}),
		by(noon.Add(3*time.Minute), &score.Played{By: score.ByPerson, Who: "dev"}),
	}
	faster := by(noon.Add(time.Hour), &score.Played{By: score.ByPerson, Who: "ines", Role: "commander", Speed: 20})
	if got := Last(runs, &faster.Score); got == nil || got.Score.Played != ines {
		t.Errorf("the last of ines is %+v", got)
	}
	idle := by(noon.Add(30*time.Minute), &score.Played{By: score.ByPerson, Who: "ines", Due: 2})
	if got := Last(append(runs, idle), &faster.Score); got == nil || got.Score.Played != ines {
		t.Errorf("ines was held against a run in which nobody did anything: %+v", got)
	}
	fiona := by(noon, &score.Played{By: score.ByPerson, Who: "fiona"})
	if got := Last(runs, &fiona.Score); got != nil {
		t.Errorf("fiona never sat there, and was last %+v", got)
	}
	if got := LastOther(append(runs, idle), &fiona.Score); got == nil || got.Score.Played.Who != "dev" {
		t.Errorf("the last of anybody is %+v", got)
	}
	scripted := by(noon, &score.Played{By: score.ByMachine, Who: "ines"})
	if got := Last(runs, &scripted.Score); got != nil {
		t.Errorf("a runbook with nobody at the console was held against %+v", got)
	}
}

func TestTheLatestPracticeCountsAndTheFutureDoesNot(t *testing.T) {
	never := run(noon, "a", "backend/git")
	never.Score.Verdict = score.NotInjected
	dates := Dates([]Run{
		run(noon.Add(-time.Hour), "a", "shed-checkout", "tier/checkout/3"),
		run(noon.Add(-time.Minute), "b", "shed-checkout"),
		run(noon.Add(24*time.Hour), "c", "shed-checkout", "feature/search"),
		never,
	}, noon)
	if len(dates) != 2 || dates["shed-checkout"].Scenario != "b" || dates["tier/checkout/3"].Scenario != "a" {
		t.Errorf("dates %+v", dates)
	}
}

func TestFollowNoticesANewRun(t *testing.T) {
	state, random := t.TempDir(), &counter{}
	dates := Follow(state, func() time.Time { return noon })
	if got := dates(); len(got) > 0 {
		t.Errorf("nothing was practised, and these have dates: %v", got)
	}
	write(t, state, random, run(noon, "a", "shed-checkout"))
	if got := dates(); !got["shed-checkout"].Equal(noon) {
		t.Errorf("dates %v", got)
	}
	// A folder's time has a granularity; two runs are never that close.
	past := noon.Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(state, Folder), past, past); err != nil {
		t.Fatal(err)
	}
	dates()
	write(t, state, random, run(noon.Add(time.Minute), "a", "shed-checkout"))
	if got := dates(); !got["shed-checkout"].Equal(noon.Add(time.Minute)) {
		t.Errorf("dates %v after another run", got)
	}
}
