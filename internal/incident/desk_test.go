package incident

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

func TestABypassIsOpenOnHostsAndEndsByItself(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.must(d, decisions.Ask{Right: small, Reason: "payment-risk answers nobody"})
	if r.Done != 4 || r.Total != 4 {
		t.Errorf("%d of %d checkout hosts", r.Done, r.Total)
	}
	if got := s.allowed(4999); got != 4 {
		t.Errorf("49.99 passes on %d hosts", got)
	}
	if got := s.allowed(5000); got != 0 {
		t.Errorf("50.00 passes on %d hosts", got)
	}
	right, _, _ := s.bundle.Right(small)
	s.pass(right.Bypass.Lasts.Std() - time.Second)
	if got := s.allowed(1); got != 4 {
		t.Errorf("a second before its end it is open on %d hosts", got)
	}
	s.flags.down = errors.New("dead") // nobody can tell anybody
	s.pass(time.Second)
	if got := s.allowed(1); got != 0 {
		t.Errorf("at its end it is open on %d hosts", got)
	}
}

func TestTheLogSaysWhatWasDoneAndVerifies(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: small, Reason: "payment-risk answers nobody"})
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	incident := d.Snapshot().World.Incident.ID
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := audit.Read(incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range read[0].Entries {
		kinds = append(kinds, string(e.Kind()))
	}
	want := "session incident-open lease intent signed outcome outcome intent signed outcome outcome session-end"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("the log has\n%s\nwant\n%s", got, want)
	}
	var heads []model.LogHead
	for _, h := range s.hosts {
		heads = append(heads, h.engine.Report(s.clock.Now()).Heads...)
	}
	if len(heads) == 0 {
		t.Error("hosts kept no heads")
	}
	_, err = audit.Verify(audit.VerifyOptions{Realm: directive.Production, Fleet: policytest.Fleet, Heads: heads,
		Trusted: func(fp string) (string, bool) { w, ok := s.bundle.SignerOf(fp); return w.Name, ok }}, audit.Folder(s.state, incident))
	if err != nil {
		t.Error(err)
	}
}

func TestAJumpIsDeniedAndRecoveryGoesStepByStep(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 3, Reason: "load"})
	_, err := s.act(d, decisions.Ask{Right: "recover", Tier: 0, Reason: "looks fine"})
	if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "one tier at a time") {
		t.Fatalf("a jump: %v", err)
	}
	if _, err = s.act(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "wait ") {
		t.Fatalf("too early: %v", err)
	}
	for tier := 3; tier > 0; tier-- {
		rung, _ := s.bundle.TierOf(tier)
		s.pass(rung.Dwell.Std())
		for i, percent := range rung.Ramp {
			if i > 0 {
				s.pass(rung.RampStep.Std())
			}
			s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier})
			at := 0
			for _, h := range s.hosts {
				if s.bundle.LastTier(h.service) >= tier && h.engine.Tier(h.service, s.clock.Now()) == tier {
					at++
				}
			}
			if percent == 100 && at > 0 {
				t.Errorf("at 100 %% %d hosts are still at tier %d", at, tier)
			}
		}
	}
	for _, h := range s.hosts {
		if got := h.engine.Tier(h.service, s.clock.Now()); got != 0 {
			t.Errorf("%s ends at tier %d", h.name, got)
		}
	}
}

func TestWhoIsCutOffIsCountedAndHealsLater(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	for i, h := range s.hosts {
		h.cutOff = i%2 == 0
	}
	r, err := s.actBriefly(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if err != nil || r.State != Partial || r.Done != 3 || r.Total != 7 {
		t.Fatalf("%v %+v", err, r)
	}
	if skew := d.Snapshot().Skew; skew.Lacking != 4 || skew.Effective != 3 {
		t.Errorf("skew %+v", skew)
	}
	s.pass(2 * fleet.Settle)
	d.Refresh(context.Background())
	if got, want := d.Snapshot().Headline.Text, "4 of 7 hosts lack what was issued"; !strings.Contains(got, want) {
		t.Errorf("the headline is %q, want %q", got, want)
	}
	for _, h := range s.hosts {
		h.cutOff = false
	}
	for _, token := range s.flags.tokens {
		s.deliver(token)
	}
	d.Refresh(context.Background())
	if skew := d.Snapshot().Skew; skew.Lacking != 0 {
		t.Errorf("after healing: %+v", skew)
	}
}

// TestWhoIsCutOffSpeaksUpFirst unless nothing that was issued answers what is
// abnormal, or glass is broken.
func TestWhoIsCutOffSpeaksUpFirst(t *testing.T) {
	alarm, none := SkewView{Lacking: 18, Hosts: 25, Alarm: true}, SkewView{Lacking: 1, Hosts: 25}
	const lack = "18 of 25 hosts lack what was issued: break glass carries it past the flag service (b, ic break)"
	for _, c := range []struct {
		name        string
		before      decisions.Headline
		skew        *SkewView
		broken      bool
		text, right string
	}{
		{"calm, cut off", decisions.Headline{Text: "calm", Calm: true}, &alarm, false, lack, ""},
		{"in force, cut off", decisions.Headline{Text: "watch", Handled: "bypass"}, &alarm, false, lack, ""},
		{"in force, more is abnormal, cut off", decisions.Headline{Text: "cpu", Right: "shed", Handled: "bypass"}, &alarm, false, lack + "; then cpu", "shed"},
		{"nothing in force answers", decisions.Headline{Text: "cpu", Right: "shed"}, &alarm, false, "cpu", "shed"},
		{"few", decisions.Headline{Text: "cpu", Right: "shed", Handled: "bypass"}, &none, false, "cpu", "shed"},
		{"glass is broken", decisions.Headline{Text: "cpu", Right: "shed", Handled: "bypass"}, &alarm, true, "cpu", "shed"},
	} {
		h := withSkew(c.before, c.skew, c.broken)
		if h.Text != c.text || h.Right != c.right || h.Calm || h.Handled != c.before.Handled {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
}

func TestTwoPeopleByPaste(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // opens the incident
	r, err := s.act(ines, decisions.Ask{Right: "risk-bypass-medium-orders", Reason: "small ones are not enough"})
	if !errors.Is(err, ErrNeeds) || r.State != Proposed || r.Token == "" {
		t.Fatalf("%v %+v", err, r)
	}
	if got := s.allowed(100); got != 0 {
		t.Errorf("a proposal opened %d hosts", got)
	}
	if p := ines.Snapshot().Proposals; len(p) != 1 {
		t.Errorf("%d proposals are shown", len(p))
	}

	again, err := ines.ReadProposal(context.Background(), r.Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ines.Cosign(context.Background(), again, true); !errors.Is(err, ErrNeeds) {
		t.Errorf("the requester co-signed his own proposal: %v", err)
	}

	fiona := s.desk("fiona")
	p, err := fiona.ReadProposal(context.Background(), r.Token)
	if err != nil {
		t.Fatal(err)
	}
	if p.Requester != "ines" || p.Exposure == nil || p.Verdict.Outcome != model.Permitted {
		t.Fatalf("the co-signer is shown %+v", p)
	}
	done, err := fiona.Cosign(context.Background(), p, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(strings.Split(done.Token, ".")) != 4 {
		t.Error("the token does not have two signatures")
	}
	s.pass(policy.DefaultLead.Std())
	if got := s.allowed(14999); got != 4 {
		t.Errorf("after the lead it is open on %d hosts", got)
	}
}

func TestAnApprovalIsForTheseBytesOnly(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	r, _ := s.act(ines, decisions.Ask{Right: "risk-bypass-medium-orders", Reason: "x"})
	fiona := s.desk("fiona")
	tampered := strings.Replace(r.Token, ".", ".A", 1)
	if _, err := fiona.ReadProposal(context.Background(), tampered); !errors.Is(err, ErrDenied) {
		t.Errorf("a changed proposal was read: %v", err)
	}
}

func TestASecondClaimantIsTold(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	if _, err := ines.Command(context.Background(), Open, "", "payment-risk"); err != nil {
		t.Fatal(err)
	}
	_, err := dev.Command(context.Background(), Take, "", "")
	if !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "ines holds command") {
		t.Fatalf("dev took command: %v", err)
	}
	if _, err := s.act(dev, decisions.Ask{Right: small, Reason: "x"}); !errors.Is(err, ErrNeeds) {
		t.Errorf("dev opened without command: %v", err)
	}
	s.must(dev, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // but he may shed
	if _, err := ines.Command(context.Background(), Offer, "dev", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Command(context.Background(), Accept, "", ""); err != nil {
		t.Fatal(err)
	}
	ines.Refresh(context.Background())
	if l := ines.Snapshot().World.Incident.Lease; l.Holder != "dev" || l.Deputy != "ines" || !l.Confirmed {
		t.Errorf("lease %+v", l)
	}
}

func TestAnIncidentDoesNotCloseOverWhatIsInForce(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: small, Reason: "x"})
	s.hosts[0].silent = true
	_, err := d.Command(context.Background(), CloseIt, "", "")
	if !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "skip payment-risk") || !strings.Contains(err.Error(), "cannot be reached") {
		t.Fatalf("%v", err)
	}
	s.hosts[0].silent = false
	right, _, _ := s.bundle.Right(small)
	s.pass(right.Bypass.Lasts.Std())
	if _, err := d.Command(context.Background(), CloseIt, "", "over"); err != nil {
		t.Fatal(err)
	}
	if i := s.desk("ines").Snapshot().World.Incident; !i.OpenedAt.IsZero() {
		t.Errorf("it is still open: %+v", i)
	}
}

func TestUsesCountPerDayAndNotPerIncident(t *testing.T) {
	s := newShop(t)
	right, _, _ := s.bundle.Right(small)
	for n := range right.Bypass.PerDay {
		d := s.desk("ines")
		s.must(d, decisions.Ask{Right: small, Reason: "x"})
		clear(s.flags.tokens) // only the log remembers
		s.pass(right.Bypass.Lasts.Std())
		if _, err := d.Command(context.Background(), CloseIt, "", "over"); err != nil {
			t.Fatalf("incident %d: %v", n, err)
		}
	}
	last := s.desk("ines")
	if _, err := s.act(last, decisions.Ask{Right: small, Reason: "x"}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "uses today are spent") {
		t.Errorf("one use more: %v", err)
	}
	if r := last.Snapshot().World.Rehearsals[small]; r.Live.IsZero() {
		t.Error("earlier uses are forgotten as rehearsals")
	}
}

func TestWhatACrashLeavesIsUnknownUntilRealityWasRead(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	// The crash: a directive is signed on disk and carried, and the console dies
	// before it writes an outcome.
	w := d.world()
	p, err := d.Preview(decisions.Ask{Right: "shed", Tier: 2, Reason: "more load"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := d.session(context.Background(), &w)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := d.fix(&p.Request.Directive, log)
	if err != nil {
		t.Fatal(err)
	}
	token, err := d.sign(context.Background(), payload, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(audit.Signed{ID: p.Request.Directive.ID, Token: token, Signers: []string{"ines"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.flags.Put(context.Background(), p.Request.Directive.ID, token); err != nil {
		t.Fatal(err)
	}

	after := s.desk("ines")
	if u := after.Snapshot().Unknown; len(u) != 1 || u[0].State != string(Unknown) {
		t.Fatalf("unknown acts: %+v", u)
	}
	if _, err := after.Command(context.Background(), CloseIt, "", ""); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "UNKNOWN") {
		t.Errorf("closing over an unknown act: %v", err)
	}
	if err := after.Reconcile(context.Background()); err != nil {
		t.Fatal(err)
	}
	after.Refresh(context.Background())
	snap := after.Snapshot()
	if len(snap.Unknown) != 0 {
		t.Errorf("after reading reality: %+v", snap.Unknown)
	}
	if i := slices.IndexFunc(snap.World.Issued, func(i model.Issued) bool { return i.Directive.ID == p.Request.Directive.ID }); i < 0 || snap.World.Issued[i].Outcome != audit.StateEffective {
		t.Errorf("issued %+v", snap.World.Issued)
	}
}

func TestACarrierCannotMakeAnythingTrue(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	mallory := policytest.Key("mallory")
	dir := model.Directive{
		ID: "01J00000000000000000000001", Fleet: policytest.Fleet, Incident: "x", Scope: "*", Kind: model.Shed, Tier: 3,
		IssuedAt: s.clock.at, NotBefore: s.clock.at, Right: "shed", Policy: s.bundle.Ref,
		Log: model.LogHead{Origin: "shop-demo/x/y", Root: strings.Repeat("0", 64)},
	}
	payload, err := directive.Encode(dir)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := directive.Sign(mallory, rand.Reader, payload, directive.Production, policytest.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	token, err := directive.Token(payload, sig)
	if err != nil {
		t.Fatal(err)
	}
	s.flags.tokens[dir.ID], s.flags.tokens["junk"] = token, "ic1.junk.junk"
	s.deliver(token)
	d.Refresh(context.Background())
	if n := len(d.Snapshot().World.Issued); n != 0 {
		t.Errorf("%d directives are believed", n)
	}
	if tier := s.hosts[0].engine.Tier("edge", s.clock.Now()); tier != 0 {
		t.Errorf("a host is at tier %d", tier)
	}
}

func TestAReaderWithoutAKeyChangesNothing(t *testing.T) {
	s := newShop(t)
	d := s.desk("")
	if m := d.Snapshot().Mode; m != model.ReadOnly {
		t.Errorf("mode %s", m)
	}
	p, err := d.Preview(decisions.Ask{Right: "shed", Tier: 1, Reason: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Execute(context.Background(), Act{Request: p.Request}); !errors.Is(err, ErrDenied) {
		t.Errorf("a reader shed: %v", err)
	}
	if _, err := d.Command(context.Background(), Open, "", ""); !errors.Is(err, ErrReadOnly) {
		t.Errorf("a reader opened an incident: %v", err)
	}
	if all, err := audit.List(s.state); err != nil || len(all) != 0 {
		t.Errorf("a reader wrote a log: %v %v", all, err)
	}
}
