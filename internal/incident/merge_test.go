package incident

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/crypto/ssh"
)

// TestWhatAnotherMachineHasIssuedIsSeen: its log is not ours; the flag service is
// what both have.
func TestWhatAnotherMachineHasIssuedIsSeen(t *testing.T) {
	s := newShop(t)
	dev, ines := s.desk("dev", s.elsewhere), s.desk("ines")
	shed := s.must(dev, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	open := s.must(dev, decisions.Ask{Right: small, Reason: "risk is down"})
	ines.Refresh(context.Background())
	snap := ines.Snapshot()
	if len(snap.Live) != 2 || snap.Services[0].Issued == 0 || snap.Services[0].By != "dev" {
		t.Fatalf("live %+v, services %+v", snap.Live, snap.Services)
	}
	for _, l := range snap.Live {
		if l.State != string(Effective) || !slices.Equal(l.Issued.Signers, []string{"dev"}) || !slices.Equal(l.Issued.Carried, []string{"flags"}) {
			t.Errorf("%+v", l)
		}
	}
	end := s.must(ines, decisions.Ask{Right: "end-bypass", Reason: "risk is back"})
	if end.Done == 0 || s.allowed(1) != 0 {
		t.Errorf("ended on %d hosts, open on %d", end.Done, s.allowed(1))
	}
	dev.Refresh(context.Background()) // and the ending comes back the same way
	for _, l := range dev.Snapshot().Live {
		if l.Issued.Directive.ID == open.ID {
			t.Error("dev still sees the bypass in force")
		}
	}
	if live := dev.Snapshot().Live; len(live) != 1 || live[0].Issued.Directive.ID != shed.ID {
		t.Errorf("dev sees %+v", live)
	}
}

// TestOfTwoWhoRecoverAtOnceTheSecondIsTold: what he was shown is no longer all
// there is, and what he has not seen he cannot end.
func TestOfTwoWhoRecoverAtOnceTheSecondIsTold(t *testing.T) {
	s := newShop(t)
	one, two := s.desk("ines"), s.desk("ines")
	s.must(one, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	tier, _ := s.bundle.TierOf(2)
	s.pass(tier.Dwell.Std())
	shown := func(d *Desk) Preview {
		d.Refresh(context.Background())
		p, err := d.Preview(decisions.Ask{Right: "recover", Tier: decisions.NextTier})
		if err != nil || p.Verdict.Outcome != model.Permitted {
			t.Fatalf("%v %v", err, p.Reasons)
		}
		return p
	}
	first, second := shown(one), shown(two)
	if _, err := one.Execute(context.Background(), Act{Request: first.Request}); err != nil {
		t.Fatal(err)
	}
	r, err := two.Execute(context.Background(), Act{Request: second.Request})
	if !errors.Is(err, ErrDenied) || !slices.ContainsFunc(r.Verdict.Reasons, func(r model.Reason) bool { return r.Code == decisions.IncompleteChain }) {
		t.Errorf("%v %v", err, r.Reasons)
	}
}

// TestAStaleRecoveryNeverUndoesANewerShed, by whatever road the shed came.
func TestAStaleRecoveryNeverUndoesANewerShed(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev", s.elsewhere)
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	tier, _ := s.bundle.TierOf(1)
	s.pass(tier.Dwell.Std())
	ines.Refresh(context.Background())
	p, err := ines.Preview(decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	if err != nil {
		t.Fatal(err)
	}
	s.must(dev, decisions.Ask{Right: "shed", Tier: 1, Reason: "again"})
	if _, err := ines.Execute(context.Background(), Act{Request: p.Request}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "not in the list") {
		t.Errorf("%v", err)
	}
	if got := s.hosts[0].engine.Tier("edge", s.clock.Now()); got != 1 {
		t.Errorf("edge is at tier %d", got)
	}
}

func TestOneScopeIsLeftAndTheOtherStays(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	s.must(d, decisions.Ask{Right: "shed", Tier: 3, Scope: "checkout", Reason: "checkout drowns"})
	at := func() map[string]int {
		d.Refresh(context.Background())
		out := map[string]int{}
		for _, svc := range d.Snapshot().Services {
			out[svc.Service] = svc.Issued
			if svc.Unknown > 0 || svc.At[svc.Issued] != svc.Hosts {
				t.Errorf("%s: issued %d, hosts report %v", svc.Service, svc.Issued, svc.At)
			}
		}
		return out
	}
	if got := at(); got["checkout"] != 3 || got["edge"] != 1 {
		t.Fatalf("tiers %v", got)
	}
	tier, _ := s.bundle.TierOf(1)
	s.pass(tier.Dwell.Std())
	for i := range tier.Ramp {
		if i > 0 {
			s.pass(tier.RampStep.Std())
		}
		s.must(d, decisions.Ask{Right: "recover", Tier: decisions.NextTier, Scope: "*"})
	}
	if got := at(); got["checkout"] != 3 || got["edge"] != 0 {
		t.Errorf("after recovering *: %v", got)
	}
}

// TestASheddingOfARevokedKeyIsSeenWhereItIsInForce: hosts keep it, so whoever
// recovers has to know it. What no host holds stays a forgery.
func TestASheddingOfARevokedKeyIsSeenWhereItIsInForce(t *testing.T) {
	s := newShop(t)
	dev := s.desk("dev", s.elsewhere)
	held := s.must(dev, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	open := s.must(dev, decisions.Ask{Right: small, Reason: "risk is down"})
	for _, h := range s.hosts {
		h.cutOff = true
	}
	r, err := s.actBriefly(dev, decisions.Ask{Right: "shed", Tier: 2, Reason: "more"})
	if err != nil {
		t.Fatal(err)
	}
	s.bundle = revoking(t, s.bundle, ssh.FingerprintSHA256(s.keys["dev"].PublicKey()))
	var seen []string
	for _, is := range s.desk("ines").Snapshot().World.Issued {
		seen = append(seen, is.Directive.ID)
	}
	if !slices.Equal(seen, []string{held.ID}) {
		t.Errorf("seen %v; held %s, open %s, on no host %s", seen, held.ID, open.ID, r.ID)
	}
}

// TestAFileThatSaysSoIsNoDirective: a log is only a file until signatures hold.
func TestAFileThatSaysSoIsNoDirective(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	w := d.world()
	logged := slices.Clone(w.Issued)
	logged[0].Token = logged[0].Token[:len(logged[0].Token)-2] + "AA"
	h := d.seen.copy()
	h.carriers[0].tokens = nil
	if got := d.issuedOf(logged, nil, &h, w.Now); len(got) != 0 {
		t.Errorf("%s is believed with a broken signature: %+v", r.ID, got)
	}
}

// TestASnapshotIsAValue: nobody changes it after it was handed out, while the
// world moves, acts are done and others read. The race detector reads along.
func TestASnapshotIsAValue(t *testing.T) {
	s := newShop(t)
	// Two carriers and the hosts: a list of three in the fold, with room for a
	// fourth in place.
	more := func(o *Options) { o.Carriers = append(o.Carriers, named{s.flags, "b"}) }
	d := s.desk("ines", more)
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	d.Refresh(context.Background())
	kept := d.Snapshot()
	before, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { d.Run(ctx) })
	for range 4 {
		all.Go(func() {
			for range 20 {
				snap := d.Snapshot()
				if _, err := json.Marshal(snap); err != nil {
					t.Error(err)
				}
				if _, err := d.Preview(decisions.Ask{Right: "shed", Tier: 2}); err != nil {
					t.Error(err)
				}
				d.Refresh(ctx)
			}
		})
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "more"})
	if err := d.Reconcile(ctx); err != nil {
		t.Error(err)
	}
	cancel()
	all.Wait()
	select {
	case <-d.Changed():
	default:
		t.Error("nobody was told that something has changed")
	}
	if after, err := json.Marshal(kept); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a snapshot has changed: %v\n%s\n%s", err, before, after)
	}
}

type named struct {
	*flags
	name string
}

func (n named) Name() string { return n.name }

// TestNothingMoreIsSignedThanWasShown: the confirmation was on screen for a
// while, another incident has begun and hosts have joined.
func TestNothingMoreIsSignedThanWasShown(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	p, err := d.Preview(decisions.Ask{Right: small, Reason: "risk is down"})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Opens || p.Typed != "skip payment-risk" || p.Exposure == nil || p.Cosign != "nobody else" {
		t.Errorf("preview %+v", p)
	}
	s.pass(4 * time.Minute)
	s.must(s.desk("dev"), decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // opens the incident, and dev commands it
	if _, err := d.Execute(context.Background(), Act{Request: p.Request}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "dev holds command") {
		t.Fatalf("in somebody else's incident: %v", err)
	}
	s.command(s.desk("dev"), Offer, "ines")
	s.command(d, Accept, "")
	r, err := d.Execute(context.Background(), Act{Request: p.Request})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := directive.Verify(r.Token, directive.Production, policytest.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	got, shown := signed.Directive, p.Request.Directive
	if got.Caps != shown.Caps || !got.NotAfter.Equal(shown.NotAfter) || !got.NotBefore.Equal(shown.NotBefore) || got.Scope != shown.Scope || got.Control != shown.Control {
		t.Errorf("signed %+v\nshown  %+v", got, shown)
	}
	if got.Incident != d.Snapshot().World.Incident.ID || got.Incident == shown.Incident {
		t.Errorf("it stands in incident %s", got.Incident)
	}
	if r.Verdict.Outcome != model.Permitted || !got.IssuedAt.Equal(s.clock.at.Truncate(time.Second)) {
		t.Errorf("issued at %s", got.IssuedAt)
	}
}

// TestMoreThanTheRuleIsNotSignedWhateverWasShown: a request is judged again.
func TestMoreThanTheRuleIsNotSignedWhateverWasShown(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	p, err := d.Preview(decisions.Ask{Right: small, Reason: "x"})
	if err != nil {
		t.Fatal(err)
	}
	p.Request.Directive.Caps.Under.Minor++
	p.Request.Cosigners = []string{"fiona"} // nobody's word counts but a signature
	if _, err := d.Execute(context.Background(), Act{Request: p.Request}); !errors.Is(err, ErrDenied) {
		t.Errorf("%v", err)
	}
	wide, err := d.Preview(decisions.Ask{Right: medium, Reason: "x"})
	if err != nil {
		t.Fatal(err)
	}
	wide.Request.Cosigners = []string{"fiona"}
	if r, err := d.Execute(context.Background(), Act{Request: wide.Request}); !errors.Is(err, ErrNeeds) || r.State != Proposed || len(s.flags.tokens) != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

func TestARefusalIsWrittenDownAndActsNot(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	first := s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	p, err := d.Preview(decisions.Ask{Right: "recover", Tier: 0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Refuse(context.Background(), p); !errors.Is(err, ErrDenied) {
		t.Errorf("%v", err)
	}
	soon, err := d.Preview(decisions.Ask{Right: "recover", Tier: decisions.NextTier})
	if err != nil {
		t.Fatal(err)
	}
	s.pass(time.Hour) // it would be possible now; it was not when it was shown
	if _, err := d.Refuse(context.Background(), soon); !errors.Is(err, ErrNeeds) {
		t.Errorf("%v", err)
	}
	if kinds := kindsOf(t, s, first.Incident); strings.Count(kinds, "denied") != 2 || strings.Count(kinds, "signed") != 1 {
		t.Errorf("the log has %s", kinds)
	}
}

// TestFollowingASecondIncidentLeavesTheFirstLogAlone: another console closes one
// night and opens the next.
func TestFollowingASecondIncidentLeavesTheFirstLogAlone(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	s.command(ines, Open, "")
	first := ines.Snapshot().World.Incident.ID
	s.pass(time.Minute)
	s.command(dev, CloseIt, "")
	s.pass(time.Minute)
	s.command(dev, Open, "")
	r := s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	if r.Incident == first || !strings.Contains(kindsOf(t, s, r.Incident), "signed") || strings.Contains(kindsOf(t, s, first), "signed") {
		t.Errorf("incident %s, after %s: %s | %s", r.Incident, first, kindsOf(t, s, first), kindsOf(t, s, r.Incident))
	}
}

func TestWhoHoldsATierIsNamed(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	s.must(ines, decisions.Ask{Right: "shed", Tier: 3, Reason: "load"})
	s.pass(time.Minute)
	s.must(dev, decisions.Ask{Right: "shed", Tier: 1, Reason: "no idea"})
	for _, svc := range dev.Snapshot().Services {
		if svc.By != "ines" || !svc.Since.Equal(policytest.Now()) {
			t.Errorf("%s at %d since %s by %s", svc.Service, svc.Issued, svc.Since, svc.By)
		}
	}
}

// TestWhatHostsLetThroughIsAddedUp by currency; hosts that say nothing are
// unknown, not zero.
func TestWhatHostsLetThroughIsAddedUp(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	if got := s.allowed(1000); got != 4 {
		t.Fatalf("open on %d hosts", got)
	}
	for _, h := range s.hosts {
		if h.service == "checkout" {
			h.silent = true // the last of them
		}
	}
	for _, h := range s.hosts[2:5] {
		h.silent = false
	}
	d.Refresh(context.Background())
	live := d.Snapshot().Live
	if len(live) != 1 || live[0].Exposure == nil {
		t.Fatalf("%+v", live)
	}
	if used := live[0].Used["USD"]; used.Count < 3 || used.Unknown != 1 || used.Total.Minor < 3000 {
		t.Errorf("used %+v", live[0].Used)
	}
}

func TestMyRightsAreThoseOfMyRole(t *testing.T) {
	s := newShop(t)
	if mine := s.desk("fiona").Rights(); len(mine) != 0 {
		t.Errorf("fiona: %+v", mine)
	}
	names := map[string]bool{}
	for _, r := range s.desk("ines").Rights() {
		names[r.Name] = r.Domain != "" && r.Who == "incident-commander"
	}
	if !names["shed"] || !names[small] || names["auto-shed"] {
		t.Errorf("ines: %v", names)
	}
}

func TestTitlesSayWhatIsDone(t *testing.T) {
	at := policytest.Now()
	for want, d := range map[string]model.Directive{
		"shed all services to tier 3":                                   {Kind: model.Shed, Scope: "*", Tier: 3},
		"switch search off for edge":                                    {Kind: model.Off, Scope: "edge", Feature: "search"},
		"skip payment-risk under 50.00 USD at checkout until 02:30:00Z": {Kind: model.Bypass, Scope: "checkout", Control: "payment-risk", Caps: model.Caps{Under: usd(5000)}, NotAfter: at},
		"freeze recovery and opening for all services until 02:30:00Z":  {Kind: model.Freeze, Scope: "*", NotAfter: at},
		"dim optional work of edge between 10 and 90 %":                 {Kind: model.Dimmer, Scope: "edge", Floor: 10, Ceiling: 90},
		"ping edge": {Kind: model.Ping, Scope: "edge"},
		"recover edge from tier 2 to 1 on 50 % of hosts": {Kind: model.End, Ends: model.Shed, Scope: "edge", From: 2, To: 1, Percent: 50},
		"end bypass of edge (short, BCDEFG)":             {Kind: model.End, Ends: model.Bypass, Scope: "edge", IDs: []string{"short", "ABCDEFG"}},
		"teleport (not known to this version)":           {Kind: "teleport", Scope: "edge"},
	} {
		if got := TitleOf(&d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := typedFor(&model.Directive{Kind: model.End, Ends: model.Off}, model.Recover); got != "end off" {
		t.Error(got)
	}
}

func TestADeskNeedsAPolicyAClockAndAFolder(t *testing.T) {
	if _, err := New(Options{Rand: rand.Reader}); err == nil {
		t.Error("a desk of nothing")
	}
}

func TestAFaultIsForDrills(t *testing.T) {
	s := newShop(t)
	if err := s.desk("ines").Fault(context.Background(), "flags-down", false); !errors.Is(err, ErrDenied) {
		t.Errorf("a real fleet was broken: %v", err)
	}
	active := false
	drill := s.desk("ines", func(o *Options) {
		o.Faults = func() []FaultView { return []FaultView{{Name: "flags-down", Active: active}} }
		o.Fault = func(_ context.Context, name string, clear bool) error {
			if name != "flags-down" {
				return errors.New("no such fault")
			}
			active = !clear
			return nil
		}
	})
	if err := drill.Fault(context.Background(), "flags-down", false); err != nil || !drill.Snapshot().Faults[0].Active {
		t.Errorf("%v %+v", err, drill.Snapshot().Faults)
	}
	if err := drill.Fault(context.Background(), "rain", false); err == nil {
		t.Error("an unknown fault")
	}
}

func TestWhatWasNeverCarriedIsAbsentOnceAllHaveAnswered(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	p, err := d.Preview(decisions.Ask{Right: "shed", Tier: 2, Reason: "more"})
	if err != nil {
		t.Fatal(err)
	}
	w := d.world()
	log, _, token, err := d.signAct(context.Background(), &w, &Act{Request: p.Request}, &Result{Verdict: p.Verdict})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := directive.Verify(token, directive.Production, policytest.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	id := signed.Directive.ID
	if err := log.Append(audit.Signed{ID: id, Token: token, Signers: []string{"ines"}}); err != nil {
		t.Fatal(err)
	}
	outcome := func(d *Desk) string {
		if err := d.Reconcile(context.Background()); err != nil {
			t.Fatal(err)
		}
		d.Refresh(context.Background())
		for _, is := range d.Snapshot().World.Issued {
			if is.Directive.ID == id {
				return is.Outcome
			}
		}
		return "nowhere"
	}
	s.hosts[0].silent = true
	if got := outcome(s.desk("ines")); got != "" {
		t.Errorf("with a silent host it is %q", got)
	}
	s.hosts[0].silent = false
	if got := outcome(s.desk("ines")); got != audit.StateAbsent {
		t.Errorf("it is %q", got)
	}
}
