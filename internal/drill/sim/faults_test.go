package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// obey counts the hosts that obey a tier.
func obey(f Facts, tier int) (n int) {
	for _, s := range f.Services {
		n += s.Tiers[tier]
	}
	return n
}

func TestAPartitionKeepsHalfOfTheFleetFromAShed(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	var got incident.Result
	w.inject(t, 0, faults.FlagsPartition)
	w.use(t, time.Minute, templates.Ines, shed(1), &got)
	w.clear(t, 5*time.Minute, faults.FlagsPartition)
	w.Advance(w.at(4 * time.Minute))
	if f := w.Facts(); got.State != incident.Partial || got.Done != 30 || obey(f, 1) != 30 || f.Service(shop.Edge).Issued != 1 {
		t.Errorf("the desk says %s %d/%d, %d hosts obey", got.State, got.Done, got.Total, obey(w.Facts(), 1))
	}
	w.Advance(w.at(6 * time.Minute))
	if n := obey(w.Facts(), 1); n != 60 {
		t.Errorf("the partition is over and %d of 60 obey", n)
	}
}

func TestBreakGlassReachesTheFleetWhenTheFlagServiceIsDead(t *testing.T) {
	for backend, restarts := range map[string]bool{"git": true, "hostfile": false} {
		t.Run(backend, func(t *testing.T) {
			var log strings.Builder
			w := newWorld(t, Options{Seed: 1, Log: &log})
			w.inject(t, 0, faults.FlagsDown)
			w.use(t, time.Minute, templates.Ines, shed(2), nil)
			w.push(t, 2*time.Minute, templates.Ines, backend)
			w.Advance(w.at(4 * time.Minute))
			if n := obey(w.Facts(), 2) + w.Facts().Service(shop.PaymentRisk).Tiers[1]; n != 60 {
				t.Errorf("%d of 60 hosts obey", n)
			}
			if got := strings.Contains(log.String(), `"restart"`); got != restarts {
				t.Errorf("restarts: %v", got)
			}
			if !strings.Contains(log.String(), `"event":"ends","what":"push `+backend+`","outcome":"done"`) {
				t.Error("the push has not ended well")
			}
			w.undo(t, 5*time.Minute, templates.Ines)
			w.Advance(w.at(8 * time.Minute))
			for _, h := range w.hosts {
				if h.env != "" || h.file != "" {
					t.Fatalf("%s still has the override", h.spec.Name)
				}
			}
			if n := w.Facts().Service(shop.Edge).Tiers[2]; n != 10 {
				t.Errorf("without the override %d of 10 edge hosts remember the shed on their disk", n)
			}
		})
	}
}

func (w *World) undo(t testing.TB, d time.Duration, person string) {
	t.Helper()
	err := w.As(person, "undo", w.at(d), func(ctx context.Context, desk *incident.Desk) error {
		_, err := desk.UndoBreak(ctx, "", true, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPipelineCanBeStuckOrClosedOrTakenBack(t *testing.T) {
	for name, want := range map[string]struct {
		obey    int
		outcome string
	}{
		faults.PipelineStuck:  {0, `"done"`},                                      // a push that was taken is not a host
		faults.PipelineDenied: {0, "the token has expired"},                       // said at once
		faults.GitOpsReverts:  {10, `"event":"push","owner":"gitops-controller"`}, // hosts remember what they saw
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			w := newWorld(t, Options{Seed: 1, Log: &log})
			w.inject(t, 0, faults.FlagsDown)
			w.inject(t, 0, name)
			w.use(t, time.Minute, templates.Ines, shed(2), nil)
			w.push(t, 2*time.Minute+time.Second, templates.Ines, "git")
			w.Advance(w.at(6 * time.Minute))
			if n := w.Facts().Service(shop.Edge).Tiers[2]; n != want.obey {
				t.Errorf("%d of 10 edge hosts obey, want %d", n, want.obey)
			}
			if !strings.Contains(log.String(), want.outcome) {
				t.Errorf("the event log does not say %s", want.outcome)
			}
		})
	}
}

func TestAWrongClockMovesTheEndOfABypassOnItsOwnHostOnly(t *testing.T) {
	for name, want := range map[string]int{faults.ClockAhead: 24, faults.ClockBehind: 24} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Seed: 1})
			w.inject(t, time.Minute, faults.PaymentRiskDown)
			w.use(t, 90*time.Second, templates.Ines, shed(1), nil) // proves a time to every host
			if name == faults.ClockBehind {
				w.inject(t, 2*time.Minute, name)
			}
			w.use(t, 3*time.Minute, templates.Ines, bypass(), nil)
			if name == faults.ClockAhead {
				w.inject(t, 4*time.Minute, name)
			}
			w.Advance(w.at(5 * time.Minute))
			if f := w.Facts(); len(f.BypassOpen) != want {
				t.Errorf("open on %d hosts, want %d", len(f.BypassOpen), want)
			}
			w.Advance(w.at(25 * time.Minute))
			if f := w.Facts(); len(f.BypassOpen) != 0 {
				t.Errorf("still open on %v", f.BypassOpen)
			}
		})
	}
}

func TestAPausedMachineComesBackLateAndEndsItsBypass(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	w.inject(t, time.Minute, faults.PaymentRiskDown)
	w.use(t, 2*time.Minute, templates.Ines, bypass(), nil)
	w.inject(t, 3*time.Minute, faults.HostsPaused)
	w.clear(t, 10*time.Minute, faults.HostsPaused)
	w.Advance(w.at(4 * time.Minute))
	if f := w.Facts(); f.Up != 60-faults.PausedHosts || len(f.BypassOpen) != 25-faults.PausedHosts {
		t.Errorf("%d up, open on %d", f.Up, len(f.BypassOpen))
	}
	w.Advance(w.at(11 * time.Minute))
	if f := w.Facts(); f.Up != 60 {
		t.Errorf("%d up", f.Up)
	}
	// Its elapsed time lacks the pause and its wall clock is behind: the promise is
	// "late by at most the clock's error".
	w.Advance(w.at(17*time.Minute + 8*time.Minute))
	if f := w.Facts(); len(f.BypassOpen) != 0 {
		t.Errorf("still open on %v", f.BypassOpen)
	}
}

func TestWhatPrometheusCannotTellIsNotAValue(t *testing.T) {
	for name, want := range map[string]model.ReadingState{
		faults.PrometheusBlind: model.ReadingError, faults.PrometheusHollow: model.ReadingNoData, faults.PrometheusPartial: model.ReadingPartial,
	} {
		w := newWorld(t, Options{Seed: 1})
		d, err := w.Desk(templates.Ines)
		if err != nil {
			t.Fatal(err)
		}
		read := func() map[string]model.Reading {
			d.Refresh(context.Background())
			s := d.Scene()
			return s.World.Readings
		}
		for signal, r := range read() {
			if r.State != model.ReadingValue || signal != templates.PaymentRiskUp && len(r.History) < 50 {
				t.Fatalf("%s: %s (%s), %d samples of history", signal, r.State, r.Detail, len(r.History))
			}
		}
		if err := w.Faults().Inject(context.Background(), name); err != nil {
			t.Fatal(err)
		}
		for signal, r := range read() {
			if r.State != want {
				t.Errorf("%s: %s is %s, want %s", name, signal, r.State, want)
			}
		}
	}
}

func TestAFullDiskStopsNoShedAndOpensNothing(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	var tightened, loosened incident.Result
	w.inject(t, 0, faults.ConsoleDiskFull)
	w.inject(t, 0, faults.PaymentRiskDown)
	w.use(t, time.Minute, templates.Ines, shed(1), &tightened)
	w.use(t, 2*time.Minute, templates.Ines, bypass(), &loosened)
	w.Advance(w.at(3 * time.Minute))
	f := w.Facts()
	if tightened.State != incident.Effective || tightened.Receipt == "" || len(f.BypassOpen) != 0 || loosened.Token != "" {
		t.Errorf("shed %s with receipt %q; open on %d", tightened.State, tightened.Receipt, len(f.BypassOpen))
	}
	w.clear(t, 4*time.Minute, faults.ConsoleDiskFull)
	w.Advance(w.at(5 * time.Minute))
}

func TestSomebodyWhoIsAbsentActsWhenHeIsBack(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	w.inject(t, 0, faults.CommanderAbsent)
	w.use(t, time.Minute, templates.Ines, shed(1), nil)
	w.clear(t, 3*time.Minute, faults.CommanderAbsent)
	w.Advance(w.at(2 * time.Minute))
	if n := obey(w.Facts(), 1); n != 0 {
		t.Errorf("nobody was there, and %d hosts obey", n)
	}
	w.Advance(w.at(4 * time.Minute))
	if n := obey(w.Facts(), 1); n != 60 {
		t.Errorf("he is back, and %d of 60 hosts obey", n)
	}
}

func TestASlowFlagServiceDeliversLate(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	w.inject(t, 0, faults.FlagsSlow)
	w.use(t, time.Minute, templates.Ines, shed(1), nil)
	w.Advance(w.at(4 * time.Minute))
	if n := obey(w.Facts(), 1); n != 0 {
		t.Errorf("%d hosts obey already", n)
	}
	w.Advance(w.at(6 * time.Minute))
	if n := obey(w.Facts(), 1); n != 60 {
		t.Errorf("%d of 60 hosts obey", n)
	}
}

func TestNoStatementOfASimulationIsBelievedOutsideOfOne(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	w.use(t, time.Minute, templates.Ines, shed(1), nil)
	w.Advance(w.at(2 * time.Minute))
	if len(w.flags.tokens) == 0 {
		t.Fatal("nothing was signed")
	}
	for _, token := range w.flags.tokens {
		if _, err := directive.Verify(token, directive.Drill, Fleet); err != nil {
			t.Error(err)
		}
		if _, err := directive.Verify(token, directive.Production, Fleet); err == nil {
			t.Error("a statement of a drill verifies in production")
		}
	}
}

func TestEveryFaultOfTheListCanBeginAndEnd(t *testing.T) {
	w := newWorld(t, Options{Seed: 1})
	for _, s := range w.Faults().List() {
		err := errors.Join(w.Faults().Inject(context.Background(), s.Name), w.Faults().Clear(context.Background(), s.Name))
		if err != nil {
			t.Error(err)
		}
		w.Advance(w.Kernel().Now().Add(10 * time.Second))
	}
	if f := w.Facts(); f.Up != 60 {
		t.Errorf("%d of 60 hosts are up when all is over", f.Up)
	}
}
