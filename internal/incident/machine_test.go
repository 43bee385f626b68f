package incident

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

const robot = "ladder-controller"

func TestAMachineOpensAnIncidentAndCommandsNothing(t *testing.T) {
	s := newShop(t)
	d := s.desk(robot)
	s.must(d, decisions.Ask{Right: "auto-shed", Tier: 2, Reason: "checkout-p99 3 s"})
	w := d.Snapshot().World
	if w.Incident.OpenedAt.IsZero() || w.Incident.Lease.Holder != "" {
		t.Fatalf("incident %+v", w.Incident)
	}
	if is := w.Issued[0]; !slices.Equal(is.Signers, []string{robot}) {
		t.Errorf("signed by %v", is.Signers)
	}
	if _, err := d.Command(context.Background(), Take, "", ""); !errors.Is(err, ErrDenied) {
		t.Errorf("a machine took command: %v", err)
	}
	if _, err := s.desk("ines").Command(context.Background(), Take, "", ""); err != nil {
		t.Errorf("a person cannot take what nobody holds: %v", err)
	}
}

func TestAMachineLeavesItsOwnTierStepByStepAndNoPersons(t *testing.T) {
	s := newShop(t)
	d := s.desk(robot)
	s.must(d, decisions.Ask{Right: "auto-shed", Tier: 1, Reason: "load"})
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	for range rung.Ramp {
		s.must(d, decisions.Ask{Right: "auto-recover", Tier: decisions.NextTier})
		s.pass(rung.RampStep.Std())
	}
	for _, h := range s.hosts {
		if got := h.engine.Tier(h.service, s.clock.Now()); got != 0 {
			t.Errorf("%s is at tier %d", h.name, got)
		}
	}
	s.must(s.desk("ines"), decisions.Ask{Right: "shed", Tier: 1, Reason: "I want it"})
	s.pass(rung.Dwell.Std())
	if _, err := s.act(d, decisions.Ask{Right: "auto-recover", Tier: decisions.NextTier}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "a person has a part") {
		t.Errorf("it left a person's tier: %v", err)
	}
}

// Nothing is open and something of a person stands in etcd: whoever opens an
// incident takes command with it, and a machine does not.
func TestAMachineWithoutAnIncidentEndsNothingOfAPerson(t *testing.T) {
	s := newShop(t)
	s.must(s.desk("ines"), decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	elsewhere := s.desk(robot, func(o *Options) { o.State = t.TempDir() })
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	if _, err := s.act(elsewhere, decisions.Ask{Right: "auto-recover", Tier: decisions.NextTier}); !errors.Is(err, ErrDenied) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsKnownSpansIncidents(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	first := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	for range rung.Ramp {
		s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
		s.pass(rung.RampStep.Std())
	}
	if _, err := d.Command(context.Background(), CloseIt, "", ""); err != nil {
		t.Fatal(err)
	}
	s.flags.becomes(map[string]string{}) // what is left is on disk
	machine := s.desk(robot)
	known := machine.Known()
	if len(known) != 1+len(rung.Ramp) || !slices.ContainsFunc(known, func(is model.Issued) bool { return is.Directive.ID == first.ID }) {
		t.Errorf("%d directives are known", len(known))
	}
	second := s.must(machine, decisions.Ask{Right: "auto-shed", Tier: 1, Reason: "again"})
	count := 0
	for _, is := range machine.Known() {
		if is.Directive.ID == second.ID {
			count++
		}
	}
	if count != 1 {
		t.Errorf("what log and carrier both hold is known %d times", count)
	}
}

func TestWhatAnOutageKeptBackIsHandedOverAfterIt(t *testing.T) {
	s := newShop(t)
	d := s.desk(robot)
	s.flags.down = errors.New("dead")
	r, err := s.actBriefly(d, decisions.Ask{Right: "auto-shed", Tier: 1, Reason: "load"})
	if err != nil {
		t.Fatal(err)
	}
	s.clock.pass(2 * time.Second)
	if n, err := d.Redeliver(context.Background()); n != 0 || err != nil {
		t.Errorf("to a carrier that is down: %d, %v", n, err)
	}
	s.flags.down = nil
	d.Refresh(context.Background())
	if n, err := d.Redeliver(context.Background()); n != 1 || err != nil || s.flags.tokens[r.ID] != r.Token {
		t.Fatalf("%d, %v: %v", n, err, s.flags.tokens)
	}
	d.Refresh(context.Background())
	if n, err := d.Redeliver(context.Background()); n != 0 || err != nil {
		t.Errorf("and once more: %d, %v", n, err)
	}
	read, err := audit.Read(r.Incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	last := read[0].Entries[len(read[0].Entries)-1]
	if note, ok := last.Body.(audit.Note); !ok || !strings.HasPrefix(note.Text, "handed to flags again: shed all services to tier 1") {
		t.Errorf("the log ends with %+v", last.Body)
	}
}

func TestAPersonsActsAreHisToHandOver(t *testing.T) {
	s := newShop(t)
	s.must(s.desk("ines"), decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	s.flags.becomes(map[string]string{})
	d := s.desk(robot)
	s.clock.pass(2 * time.Second)
	d.Refresh(context.Background())
	if lacks := d.Snapshot().Carriers[0].Lacks; len(lacks) != 1 {
		t.Fatalf("the carrier lacks %v", lacks)
	}
	if n, err := d.Redeliver(context.Background()); n != 0 || err != nil || len(s.flags.tokens) != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

func TestANoteBelongsToAnIncident(t *testing.T) {
	s := newShop(t)
	d := s.desk(robot)
	if err := d.Note(context.Background(), "the ladder is blind"); !errors.Is(err, ErrNoIncident) {
		t.Errorf("without one: %v", err)
	}
	s.must(d, decisions.Ask{Right: "auto-shed", Tier: 1, Reason: "load"})
	if err := d.Note(context.Background(), "the ladder is blind"); err != nil {
		t.Fatal(err)
	}
	d.Refresh(context.Background())
	log := d.Snapshot().Log
	if last := log[len(log)-1]; last.Actor != robot || last.Text != "the ladder is blind" {
		t.Errorf("%+v", last)
	}
}

func TestAFreezeStopsAMachineOnTheRoad(t *testing.T) {
	s := newShop(t)
	s.must(s.desk("ines"), decisions.Ask{Right: "freeze", Reason: "hands off"})
	if _, err := s.act(s.desk(robot), decisions.Ask{Right: "auto-shed", Tier: 1, Reason: "load"}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "a freeze") {
		t.Errorf("%v", err)
	}
}
