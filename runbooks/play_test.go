package shipped_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/follow"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/testdata/scenarios"
)

// night is one scenario in which a runbook is followed with nobody at the console.
type night struct {
	runbook  string
	scenario string        // one that ships, or the text of one
	before   []act         // what others do before
	begins   time.Duration // when the runbook is taken, if not at the first alarm
}

// act is something that a person does at a time.
type act struct {
	at  time.Duration
	who string
	do  func(context.Context, *incident.Desk) error
}

// peak is a night of its own: a peak that is over after three minutes.
const peak = `scenario  peak
title     A short peak
source    a test
why       what is left of it is a tier that nobody has taken back

fleet     shop 12
lasts     %s
people    ines commander reacts 10s acts 10s
people    priya product reacts 10s

at 0s     load 300 %%
at 3m     load 100 %%

baseline
  on cpu abnormal ines flag tier 2

with ic
  on cpu abnormal ines do shed tier 2 scope *
`

// deaf is a night in which half of the hosts do not hear the flag service, and some
// machines of checkout stand still as soon as their files are written.
const deaf = `scenario  deaf
title     Files do not arrive either
source    a test
why       the second way is closed for a quarter of an hour

fleet     shop 12
lasts     50m
people    ines commander reacts 10s acts 10s

at 0s     inject flags-partition
at 0s     load 300 %
at 164s   inject hosts-paused
at 16m    clear hosts-paused

baseline
  on cpu abnormal ines flag tier 2

with ic
  on cpu abnormal ines do shed tier 2 scope *
`

// unscored is a night in which the risk check is gone for some time.
const unscored = `scenario  unscored
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

with ic
  on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout
`

// nights are such that each step of each runbook is done in one of them.
func nights() []night {
	tiers := func(lasts string, before ...act) night {
		return night{runbook: "recover-one-tier-at-a-time", scenario: fmt.Sprintf(peak, lasts), before: before, begins: 15 * time.Minute}
	}
	anyNight := func(runbook string) night { return night{runbook: runbook, scenario: fmt.Sprintf(peak, "12m")} }
	risk := func(runbook, back, lasts string, before ...act) night {
		return night{runbook: runbook, scenario: fmt.Sprintf(unscored, lasts, back), before: before}
	}
	return []night{
		anyNight("service-in-degraded-mode"),
		{runbook: "flag-service-down", scenario: "runbook-flag-service-down"},
		{runbook: "flag-service-down", scenario: deaf, before: []act{uses(time.Minute, "shed", "*", 1)}, begins: 2 * time.Minute},
		risk("payment-risk-down", "5m", "10m"),
		risk("payment-risk-down", "19m", "25m"),
		risk("payment-risk-down", "38m", "40m"),
		tiers("30m", uses(time.Minute, "shed-4", "*", 4), signs(2*time.Minute)),
		tiers("75m", uses(time.Minute, "shed", "*", 3)),
		tiers("55m", uses(time.Minute, "shed", "*", 2)),
		tiers("40m", uses(time.Minute, "shed", "*", 1)),
		tiers("20m", uses(time.Minute, "shed", templates.Checkout, 1)),
		{runbook: "flapping-ladder", scenario: "flapping-ladder", before: []act{looks(150 * time.Second)}, begins: 3 * time.Minute},
		anyNight("commander-handover"),
		risk("close-and-review-exposure", "5m", "30m", uses(time.Minute, "risk-bypass-small-orders", templates.Checkout, 0)),
		anyNight("policy-expired"),
		{runbook: "prometheus-blind", scenario: "runbook-prometheus-blind"},
		anyNight("break-glass-daily-check"),
	}
}

// uses is the commander who uses a right.
func uses(at time.Duration, right, scope string, tier int) act {
	return act{at, templates.Ines, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		shown, err := d.Preview(decisions.Ask{Right: right, Scope: scope, Tier: tier, Reason: "a peak"})
		if err != nil {
			return err
		}
		result, err := d.Execute(ctx, incident.Act{Request: shown.Request, Asked: true})
		if result.State == incident.Proposed {
			return nil
		}
		return err
	}}
}

// looks is the commander who looks at the console.
func looks(at time.Duration) act {
	return act{at, templates.Ines, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		return nil
	}}
}

// signs is somebody of the business who signs what waits.
func signs(at time.Duration) act {
	return act{at, templates.Priya, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		for _, waiting := range d.Snapshot().Proposals {
			approval, err := d.ReadProposal(ctx, waiting.Token)
			if err != nil {
				return err
			}
			if _, err := d.Cosign(ctx, approval, true); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (n *night) parse(t *testing.T) *scenario.Scenario {
	t.Helper()
	file, text := "night.scenario", []byte(n.scenario)
	if !strings.Contains(n.scenario, "\n") {
		var err error
		file = n.scenario + ".scenario"
		if text, err = fs.ReadFile(scenarios.Files, file); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenario.Parse(file, text, scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// play follows the runbook and returns what was recorded.
func (n *night) play(t *testing.T) *score.Record {
	t.Helper()
	rb, err := runbooks.Parse(n.runbook+".md", texts(t)[n.runbook+".md"])
	if err != nil {
		t.Fatal(err)
	}
	follows := follow.Acts(rb, templates.Ines)
	acts := func(ctx context.Context, r *scenario.Run) error {
		start := r.World().Kernel().Now()
		for _, a := range n.before {
			do := func(ctx context.Context, d *incident.Desk) error {
				err := a.do(ctx, d)
				if err != nil {
					t.Errorf("%s at %s: %v", a.who, a.at, err)
				}
				return err
			}
			if err := r.World().As(a.who, "acts before", start.Add(a.at), do); err != nil {
				return err
			}
		}
		r.World().Kernel().At(start.Add(n.begins), func() {
			if err := follows(ctx, r); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	r, err := scenario.Play(t.Context(), n.parse(t), scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Acts: acts})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A runbook that nobody has ever followed to its end is a text about one.
func TestEachStepOfEachRunbookIsDoneInSomeNight(t *testing.T) {
	var mu sync.Mutex
	done := map[string]bool{}
	t.Run("nights", func(t *testing.T) {
		for i, n := range nights() {
			if i%sparse != 0 {
				continue
			}
			name, _, _ := strings.Cut(n.scenario, "\n")
			t.Run(n.runbook+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := n.play(t)
				if !r.Through {
					t.Errorf("the runbook was not followed to its end: %s %v", r.Verdict, trail(r))
				}
				for _, e := range r.Events {
					if e.Kind == score.Denied || e.Kind == score.Skipped {
						t.Errorf("%s %s: %s", e.Kind, e.ID, e.Detail)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for _, e := range r.Events {
					done[n.runbook+"/"+e.ID] = done[n.runbook+"/"+e.ID] || e.Kind == score.Step && e.What == "done"
				}
			})
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
