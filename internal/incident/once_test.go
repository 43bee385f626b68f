package incident

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
)

// Two attempts at one act: their ids differ in time and share the random part.
const (
	firstTry  = "01JDYZ0000QQQQQQQQQQQQQQQQ"
	secondTry = "01JDYZ0999QQQQQQQQQQQQQQQQ"
	otherAct  = "01JDYZ0999RRRRRRRRRRRRRRRR"
)

func (s *shop) attempt(d *Desk, id string, ask decisions.Ask) (Result, error) {
	s.t.Helper()
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	return d.Execute(context.Background(), Act{Request: p.Request, Asked: true, ID: id})
}

func TestAnActWithAnIdOfItsOwnIsDoneOnce(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	ask := decisions.Ask{Right: "shed", Tier: 1, Scope: "checkout", Reason: "load"}
	r, err := s.attempt(d, firstTry, ask)
	if err != nil || r.ID != firstTry {
		t.Fatalf("%v %+v", err, r)
	}
	for _, id := range []string{firstTry, secondTry} {
		if _, err := s.attempt(d, id, ask); !errors.Is(err, ErrRepeated) {
			t.Errorf("%s again: %v", id, err)
		}
	}
	if len(s.flags.tokens) != 1 {
		t.Errorf("%d tokens went out", len(s.flags.tokens))
	}
	// Another machine has no log of it; the flag service and the hosts do.
	s.state = t.TempDir()
	elsewhere := s.desk("dev")
	if _, err := s.attempt(elsewhere, secondTry, ask); !errors.Is(err, ErrRepeated) {
		t.Errorf("on another machine: %v", err)
	}
	s.flags.tokens = map[string]string{}
	elsewhere.Refresh(context.Background())
	if _, err := s.attempt(elsewhere, secondTry, ask); !errors.Is(err, ErrRepeated) {
		t.Errorf("with the flag service emptied, hosts still report it: %v", err)
	}
	if _, err := s.attempt(elsewhere, otherAct, ask); err != nil {
		t.Errorf("another act: %v", err)
	}
	if _, err := s.attempt(elsewhere, "not-a-ulid", ask); err == nil {
		t.Error("an id that is none was taken")
	}
}

func TestOnlyTheTextThatIsMissingIsHandedOverAgain(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	one := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Scope: "checkout", Reason: "load"})
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Scope: "catalog", Reason: "load"})
	s.pass(3 * time.Second)
	s.flags.tokens = map[string]string{}
	done, err := d.Reissue(context.Background(), one.ID)
	if err != nil || len(done) != 1 || done[0].ID != one.ID || done[0].State != Sent || len(s.flags.tokens) != 1 {
		t.Errorf("%v %+v, %d tokens", err, done, len(s.flags.tokens))
	}
}

func TestARunIsWrittenIntoTheOpenIncidentOnly(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	if _, err := d.Record(context.Background(), audit.RunStart{Run: "r"}, true); !errors.Is(err, ErrNoIncident) {
		t.Errorf("without an incident: %v", err)
	}
	if _, err := d.Logs(); !errors.Is(err, ErrNoIncident) {
		t.Errorf("logs without an incident: %v", err)
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if receipt, err := d.Record(context.Background(), audit.RunStart{Run: "r", Signers: []string{}}, false); err != nil || receipt != "" {
		t.Fatal(err, receipt)
	}
	sessions, err := d.Logs()
	if err != nil {
		t.Fatal(err)
	}
	entries := audit.InOrder(sessions)
	if got := entries[len(entries)-1].Kind(); got != audit.KindRun {
		t.Errorf("the last entry is %s", got)
	}
}
