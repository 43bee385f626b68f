package incident

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// A confirmation that was on screen for as long as a ramp pauses must not let the
// next step follow at once: the pause begins with the step. (Found by the swarm.)
func TestTimeOnScreenIsNoPauseOfARamp(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	d.Refresh(context.Background())
	shown, err := d.Preview(decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	if err != nil {
		t.Fatal(err)
	}
	s.pass(rung.RampStep.Std())
	if _, err := d.Execute(context.Background(), Act{Request: shown.Request, Asked: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.act(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "wait ") {
		t.Errorf("the second step at once: %v", err)
	}
	s.pass(rung.RampStep.Std())
	s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
}

// A console that dies between its signature and the carriers leaves a step that no
// host has. Once reality was read the ramp begins where hosts are, not where the log
// meant to be. (Found by the swarm.)
func TestAStepThatNeverLeftItsConsoleIsNoStep(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	d.Refresh(context.Background())
	s.dies(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	next := s.desk("ines")
	next.Refresh(context.Background())
	if err := next.Reconcile(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.pass(rung.RampStep.Std())
	next.Refresh(context.Background())
	again, err := next.Preview(decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	if err != nil {
		t.Fatal(err)
	}
	if got := again.Request.Directive.Percent; got != rung.Ramp[0] {
		t.Errorf("the next step goes to %d %%, hosts are at 0", got)
	}
}

// A step whose carriers hold it and which no host has taken is UNKNOWN: the next one
// waits until a host reports it. (Found by the swarm.)
func TestARampWaitsForAHostToReportItsStep(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	rung, _ := s.bundle.TierOf(1)
	s.pass(rung.Dwell.Std())
	for _, h := range s.hosts {
		h.cutOff = true
	}
	step, err := s.actBriefly(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	if err != nil {
		t.Fatal(err)
	}
	s.pass(rung.RampStep.Std())
	if _, err := s.act(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "no host that reports has ") {
		t.Fatalf("the second step: %v", err)
	}
	for _, h := range s.hosts {
		h.cutOff = false
	}
	s.deliver(step.Token)
	if _, err := s.act(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "wait ") {
		t.Fatalf("the second step as soon as the first has arrived: %v", err)
	}
	s.pass(rung.RampStep.Std())
	s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
}

// A host that was stopped and runs on with its old clock says that it has had a shed
// since its signed start, and the dwell of the others is not over by that. (Found by
// the swarm.)
func TestAHostWithAnOldClockMakesNoTierOlder(t *testing.T) {
	start := policytest.Now()
	seen, had := start.Add(160*time.Second), start.Add(130*time.Second)
	says := func(at, since time.Time) model.HostView {
		return model.HostView{SeenAt: seen, Report: &model.Report{At: at, Live: []model.ReportLive{{ID: "shed", Since: since}}}}
	}
	w := model.World{
		Issued: []model.Issued{{Directive: model.Directive{ID: "shed", NotBefore: start}}},
		Hosts:  []model.HostView{says(seen.Add(-172*time.Second), start), says(seen, had)},
	}
	if firstSeen(&w); !w.Issued[0].FirstSeen.Equal(had) {
		t.Errorf("first seen %s, want %s", w.Issued[0].FirstSeen, had)
	}
}

// dies signs what is asked for, writes that down, and gets no further.
func (s *shop) dies(d *Desk, ask decisions.Ask) {
	s.t.Helper()
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	w := d.world()
	log, _, token, err := d.signAct(context.Background(), &w, &Act{Request: p.Request}, &Result{Verdict: p.Verdict})
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := directive.Verify(token, directive.Production, policytest.Fleet)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := log.Append(audit.Signed{ID: signed.Directive.ID, Token: token, Signers: []string{"ines"}}); err != nil {
		s.t.Fatal(err)
	}
}

// A console that dies with an ending in its hand has ended nothing: the grant is shown
// as open, and there is no second one beside it. (Found by the swarm.)
func TestAnEndingThatNeverLeftItsConsoleEndsNothing(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	grant := s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	s.dies(d, decisions.Ask{Right: "end-bypass", Reason: "risk is back"})
	next := s.desk("ines")
	if is := issuedWith(next, grant.ID); is.EndedBy != "" {
		t.Errorf("it is ended by %s", is.EndedBy)
	}
	if _, err := s.act(next, decisions.Ask{Right: small, Reason: "once more"}); err == nil || !strings.Contains(err.Error(), "allowed at a time") {
		t.Errorf("a second grant: %v", err)
	}
}

// Nor has one that no carrier takes, until it is there by another way.
func TestAnEndingThatNoCarrierTakesEndsNothing(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	grant := s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	s.flags.down = errors.New("dead")
	if _, err := s.actBriefly(d, decisions.Ask{Right: "end-bypass", Reason: "risk is back"}); err != nil {
		t.Fatal(err)
	}
	if is := issuedWith(d, grant.ID); is.EndedBy != "" {
		t.Errorf("it is ended by %s, which is nowhere", is.EndedBy)
	}
	s.flags.down = nil
	s.pass(2 * time.Second)
	d.Refresh(t.Context())
	if _, err := d.Reissue(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Refresh(t.Context())
	if is := issuedWith(d, grant.ID); is.EndedBy == "" {
		t.Error("the store has it now, and the grant is shown as open")
	}
}

func issuedWith(d *Desk, id string) model.Issued {
	for _, is := range d.Snapshot().World.Issued {
		if is.Directive.ID == id {
			return is
		}
	}
	return model.Issued{}
}
