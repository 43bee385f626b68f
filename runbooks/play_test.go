package shipped_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/follow"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
	"github.com/degradedmode/ic/testdata/scenarios"
)

// A night is a scenario that follows a runbook with nobody at the console. Those
// named runbook-NAME ship; the others are here, so that each step of each runbook is
// done in some night.

// peak is a peak that is over after three minutes, and what is left of it is a tier.
const peak = `scenario  %s
title     A short peak
source    a test
why       what is left of it is a tier that nobody has taken back

fleet     shop 12
lasts     %s
people    ines commander reacts 10s acts 10s

at 0s     load 300 %%
at 3m     load 100 %%

baseline
  on cpu abnormal ines flag tier 2

with runbook recover-one-tier-at-a-time
  on cpu abnormal ines do shed tier %d scope %s
  on 15m ines follow

expect    ic denied = 0
`

// deaf is a night in which half of the hosts do not hear the flag service, and some
// machines of checkout stand still when their files are to be written.
const deaf = `scenario  deaf
title     Files do not arrive either
source    a test
why       the second way is closed for a quarter of an hour

fleet     shop 12
lasts     50m
people    ines commander reacts 10s acts 10s

at 0s     inject flags-partition
at 0s     load 300 %
at 1m     inject hosts-paused
at 16m    clear hosts-paused

baseline
  on cpu abnormal ines flag tier 2

with runbook flag-service-down
  on cpu abnormal ines do shed tier 1 scope *
  on 2m ines follow

expect    ic denied = 0
`

// unscored is a night in which the risk check is gone for some time.
const unscored = `scenario  %s
title     Nobody scores orders
source    a test
why       the longer it is gone, the more has to be decided

fleet     shop 12
lasts     %s
people    ines commander reacts 10s acts 10s

at 10s    inject payment-risk-down
at %s    clear payment-risk-down

baseline
  on checkout-errors abnormal ines flag bypass-risk on

with runbook payment-risk-down
  on checkout-errors abnormal ines follow

expect    ic bypass-open = 0
`

// red is a night whose peak goes on when Prometheus is back: what is seen again is bad.
const red = `scenario  still-red
title     There are numbers again, and they are bad
source    a test
why       whoever waits for good ones before he looks waits for hours

fleet     shop 12
lasts     45m
people    ines commander reacts 4m acts 30s

at 0s     load 600 %
at 2m     inject prometheus-blind
at 25m    clear prometheus-blind

baseline
  at 25m ines decides to wait for numbers

with runbook prometheus-blind
  on cpu abnormal ines follow

expect    ic effective < 10m
`

// nights are all of them, by name.
func nights(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{
		"deaf":       deaf,
		"still-red":  red,
		"no-score-2": fmt.Sprintf(unscored, "no-score-2", "25m", "19m"),
		"no-score-3": fmt.Sprintf(unscored, "no-score-3", "40m", "38m"),
		"tier-3":     fmt.Sprintf(peak, "tier-3", "75m", 3, "*"),
		"tier-1":     fmt.Sprintf(peak, "tier-1", "40m", 1, "*"),
		"one-tier":   fmt.Sprintf(peak, "one-tier", "20m", 1, templates.Checkout),
	}
	files, err := fs.Glob(scenarios.Files, "runbook-*.scenario")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(scenarios.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(file, ".scenario")] = string(text)
	}
	return out
}

// play plays a night to its end and returns what was recorded.
func play(t *testing.T, name, text string, seed uint64) *score.Record {
	t.Helper()
	s, err := scenario.Parse(name, []byte(text), scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	file := s.Runbook + ".md"
	rb, err := runbooks.Parse(file, texts(t)[file])
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Play(t.Context(), s, scenario.Options{Seed: seed, Mode: score.WithIC, State: t.TempDir(), Follows: follow.Follows(rb)})
	if err != nil {
		t.Fatal(err)
	}
	if r.Runbook != s.Runbook || r.Digest != rb.Digest {
		t.Errorf("the record names %q with the digest %q", r.Runbook, r.Digest)
	}
	return r
}

func TestEachRunbookThatShipsHasAScenarioThatShips(t *testing.T) {
	all := nights(t)
	for _, id := range ten {
		name := "runbook-" + id
		if s, err := scenario.Parse(name, []byte(all[name]), scenario.Shop()); err != nil || s.Name != name || s.Runbook != id {
			t.Errorf("no scenario %s follows the runbook: %v", name, err)
		}
	}
}

// seeds is how many nights of each kind are lived through: one, or as many as
// IC_SEEDS says.
func seeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("IC_SEEDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("IC_SEEDS is %q, not a number of seeds", text)
	}
	return n
}

// A runbook that nobody has ever followed to its end is a text about one.
func TestEachStepOfEachRunbookIsDoneInSomeNight(t *testing.T) {
	var mu sync.Mutex
	done := map[string]bool{}
	n := seeds(t)
	t.Run("nights", func(t *testing.T) {
		all := nights(t)
		for i, name := range slices.Sorted(maps.Keys(all)) {
			if i%sparse != 0 {
				continue
			}
			for seed := 1; seed <= n; seed++ {
				t.Run(fmt.Sprintf("%s/seed %d", name, seed), func(t *testing.T) {
					t.Parallel()
					r := play(t, name, all[name], uint64(seed))
					followed(t, r, all[name])
					mu.Lock()
					defer mu.Unlock()
					for _, e := range r.Events {
						id := r.Runbook + "/" + e.ID
						done[id] = done[id] || e.Kind == score.Step && e.What == run.Done
					}
				})
			}
		}
	})
	if sparse > 1 {
		return
	}
	for file, raw := range texts(t) {
		rb, err := runbooks.Parse(file, raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rb.Steps {
			if id := rb.ID + "/" + rb.Steps[i].ID; !done[id] {
				t.Errorf("%s is done in no night", id)
			}
		}
	}
}

// followed says what is wrong with a night whose runbook has to come to its end
// without anything that was left out, or refused and not expected to be.
func followed(t *testing.T, r *score.Record, text string) {
	t.Helper()
	if s := score.Of(r, score.Options{}); !r.Through || s.Verdict != score.Passed {
		t.Errorf("followed to its end %v, %s: %s %v", r.Through, s.Verdict, strings.Join(s.Why, "; "), trail(r))
	}
	for _, e := range r.Events {
		expected := e.Kind == score.Denied && strings.Contains(text, "ic denied of "+e.Code+" ")
		if (e.Kind == score.Denied || e.Kind == score.Skipped) && !expected {
			t.Errorf("%s %s: %s", e.Kind, e.ID, e.Detail)
		}
	}
}

// trail is what the runbook did, for a person who wants to know why it stopped.
func trail(r *score.Record) []string {
	var out []string
	for _, e := range r.Events {
		if slices.Contains([]score.EventKind{score.Step, score.Skipped, score.Denied}, e.Kind) {
			out = append(out, fmt.Sprintf("\n%s %s %s %s %s", time.Duration(e.AtMS)*time.Millisecond, e.Kind, e.ID, e.What, e.Detail))
		}
	}
	return out
}
