package incident

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

const medium = "risk-bypass-medium-orders"

// rerooted is a policy with another root and everything else as it was.
func rerooted(t *testing.T, b *policy.Bundle, change func(*policy.Root)) *policy.Bundle {
	t.Helper()
	root := *b.Root
	root.People = maps.Clone(b.Root.People)
	change(&root)
	docs := policy.Documents{
		Features: &policy.FeaturesDoc{Features: b.Features}, Ladder: &policy.LadderDoc{Signals: b.Signals, Services: b.Services, Tiers: b.Tiers},
		Journeys: &policy.JourneysDoc{Journeys: b.Journeys}, Rights: &policy.RightsDoc{Rights: map[string]policy.Right{}},
		Backends: &policy.BackendsDoc{Backends: b.Backends, Inventory: b.Inventory},
		Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {Controls: b.Controls, Rights: map[string]policy.Right{}}},
	}
	for _, name := range b.RightNames() {
		right, domain, _ := b.Right(name)
		if domain == policy.Rights {
			docs.Rights.Rights[name] = right
		} else {
			docs.Controls["payments"].Rights[name] = right
		}
	}
	made, err := policy.NewBundle(&root, b.Ref, b.Domains, docs)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func revoking(t *testing.T, b *policy.Bundle, fingerprints ...string) *policy.Bundle {
	t.Helper()
	return rerooted(t, b, func(r *policy.Root) { r.Revoked = fingerprints })
}

// resigned is a proposal's payload with other signatures.
func resigned(t *testing.T, token string, keys ...ssh.Signer) string {
	t.Helper()
	signed, err := directive.Verify(token, directive.Production, policytest.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	var sigs []sshsig.Signature
	for _, key := range keys {
		sig, err := directive.Sign(key, policytest.Rand(), signed.Payload, directive.Production, policytest.Fleet)
		if err != nil {
			t.Fatal(err)
		}
		sigs = append(sigs, sig)
	}
	out, err := directive.Token(signed.Payload, sigs...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (s *shop) propose(d *Desk) Result {
	s.t.Helper()
	r, err := s.act(d, decisions.Ask{Right: medium, Reason: "small ones are not enough"})
	if !errors.Is(err, ErrNeeds) || r.State != Proposed {
		s.t.Fatalf("%v %+v", err, r)
	}
	return r
}

func (s *shop) read(d *Desk, text string) Approval {
	s.t.Helper()
	a, err := d.ReadProposal(context.Background(), text)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// elsewhere is a console on another machine: nothing of this one's log.
func (s *shop) elsewhere(o *Options) { o.State = s.t.TempDir() }

func TestWhoSignsFirstDoesNotMatter(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	r := s.propose(ines)
	a := s.read(ines, resigned(t, r.Token, s.keys["fiona"])) // the co-signer alone
	if a.Requester != "ines" || a.Mine || a.Verdict.Outcome != model.Permitted {
		t.Fatalf("%+v", a)
	}
	done, err := ines.Cosign(context.Background(), a, true)
	if err != nil || strings.Count(done.Token, ".") != 3 {
		t.Fatalf("%v %s", err, done.Token)
	}
	s.pass(policy.DefaultLead.Std())
	if got := s.allowed(14999); got != 4 {
		t.Errorf("open on %d hosts", got)
	}
	if n := len(ines.Snapshot().Proposals); n != 0 {
		t.Errorf("%d proposals still wait", n)
	}
}

func TestASecondKeyIsNotASecondPerson(t *testing.T) {
	s := newShop(t)
	s.bundle = rerooted(t, s.bundle, func(r *policy.Root) {
		ines := r.People["ines"]
		ines.Keys = append(slices.Clone(ines.Keys), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(policytest.Key("ines-2").PublicKey()))))
		r.People["ines"] = ines
	})
	ines := s.desk("ines")
	r := s.propose(ines)
	a := s.read(ines, resigned(t, r.Token, s.keys["ines"], policytest.Key("ines-2")))
	if a.Verdict.Outcome != model.Needs || a.Verdict.Reasons[0].Code != model.CodeQuorum {
		t.Errorf("two keys of one person: %+v", a.Verdict)
	}
	if _, err := ines.Cosign(context.Background(), a, true); !errors.Is(err, ErrNeeds) || len(s.flags.tokens) != 0 {
		t.Errorf("%v, %d tokens carried", err, len(s.flags.tokens))
	}
}

func TestARevokedOrUnknownSignatureSpoilsAProposal(t *testing.T) {
	s := newShop(t)
	r := s.propose(s.desk("ines"))
	s.bundle = revoking(t, s.bundle, ssh.FingerprintSHA256(s.keys["ravi"].PublicKey()))
	fiona := s.desk("fiona")
	for name, text := range map[string]string{
		"revoked": resigned(t, r.Token, s.keys["ines"], s.keys["ravi"]), "a stranger": resigned(t, r.Token, s.keys["ines"], policytest.Key("mallory")),
	} {
		if _, err := fiona.ReadProposal(context.Background(), text); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "not in the trust root or revoked") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := fiona.Cosign(context.Background(), Approval{}, true); !errors.Is(err, ErrDenied) {
		t.Errorf("nothing was signed: %v", err)
	}
}

func TestAWindowThatIsOverIsNotSigned(t *testing.T) {
	s := newShop(t)
	ines, fiona := s.desk("ines"), s.desk("fiona")
	r := s.propose(ines)
	early := s.read(fiona, r.Token)
	if early.Left <= 0 || early.Typed == "" {
		t.Errorf("left %s, typed %q", early.Left, early.Typed)
	}
	s.pass(early.Directive.NotAfter.Sub(s.clock.at))
	done, err := fiona.Cosign(context.Background(), early, true)
	if !errors.Is(err, ErrDenied) || done.Token != r.Token || len(s.flags.tokens) != 0 {
		t.Errorf("signed a window that is over: %v, %d tokens", err, len(s.flags.tokens))
	}
	ines.Refresh(context.Background())
	if n := len(ines.Snapshot().Proposals); n != 0 {
		t.Errorf("%d proposals of the past wait", n)
	}
}

// TestALateCosignatureShortensTheWindow and never moves it.
func TestALateCosignatureShortensTheWindow(t *testing.T) {
	s := newShop(t)
	ines, fiona := s.desk("ines"), s.desk("fiona")
	r := s.propose(ines)
	end := s.read(fiona, r.Token).Directive.NotAfter
	s.pass(policy.DefaultLead.Std() + 2*time.Minute)
	a := s.read(fiona, r.Token)
	if _, err := fiona.Cosign(context.Background(), a, true); err != nil {
		t.Fatal(err)
	}
	s.pass(end.Sub(s.clock.at) - time.Second)
	if got := s.allowed(1); got != 4 {
		t.Errorf("a second before the end it is open on %d hosts", got)
	}
	s.pass(time.Second)
	if got := s.allowed(1); got != 0 {
		t.Errorf("at the end it is open on %d hosts", got)
	}
}

// TestAnotherMachineAsksTheBoardWhoCommands, and gives the text back when nobody
// can tell it.
func TestAnotherMachineAsksTheBoardWhoCommands(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	r := s.propose(ines)

	alone := s.desk("ravi", s.elsewhere, func(o *Options) { o.Board = nil })
	back, err := alone.Cosign(context.Background(), s.read(alone, r.Token), true)
	if !errors.Is(err, ErrNeeds) || back.State != Proposed || !strings.Contains(back.Detail, "give the text back to ines") || strings.Contains(err.Error(), "ravi") {
		t.Fatalf("%v %+v", err, back)
	}
	if strings.Count(back.Token, ".") != 3 || len(s.flags.tokens) != 0 {
		t.Fatalf("the text %s, %d tokens carried", back.Token, len(s.flags.tokens))
	}
	if done, err := ines.Cosign(context.Background(), s.read(ines, back.Token), true); err != nil || done.Token != back.Token {
		t.Errorf("the requester could not carry it: %v", err)
	}

	right, _, _ := s.bundle.Right(medium)
	s.pass(right.LeadTime().Std() + right.Bypass.Lasts.Std()) // one at a time
	asks := s.desk("fiona", s.elsewhere)
	second := s.propose(ines)
	if done, err := asks.Cosign(context.Background(), s.read(asks, second.Token), true); err != nil || done.State == Proposed {
		t.Errorf("the board says that ines commands: %v %+v", err, done)
	}
}

func TestAProposalOfAnotherNightIsNotSigned(t *testing.T) {
	s := newShop(t)
	r := s.propose(s.desk("ines"))
	dev := s.desk("dev", s.elsewhere)
	s.must(dev, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // another incident
	if _, err := dev.ReadProposal(context.Background(), r.Token); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "belongs to incident "+r.Incident) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsDeniedIsNotSigned(t *testing.T) {
	s := newShop(t)
	ines, fiona := s.desk("ines"), s.desk("fiona")
	r := s.propose(ines)
	text := resigned(t, r.Token, s.keys["fiona"], s.keys["ravi"]) // nobody who holds the role
	a := s.read(fiona, text)
	done, err := fiona.Cosign(context.Background(), a, true)
	if !errors.Is(err, ErrDenied) || done.Token != text {
		t.Errorf("%v %+v", err, done)
	}
	reader := s.desk("")
	if _, err := reader.Cosign(context.Background(), s.read(reader, r.Token), true); !errors.Is(err, ErrReadOnly) && !errors.Is(err, ErrDenied) {
		t.Errorf("a reader signed: %v", err)
	}
	if len(s.flags.tokens) != 0 {
		t.Errorf("%d tokens carried", len(s.flags.tokens))
	}
}

// TestACosignatureIsJudgedByWhatIsTrueNow: a freeze came after the text was read.
func TestACosignatureIsJudgedByWhatIsTrueNow(t *testing.T) {
	s := newShop(t)
	ines, fiona := s.desk("ines"), s.desk("fiona")
	a := s.read(fiona, s.propose(ines).Token)
	s.must(ines, decisions.Ask{Right: "freeze", Reason: "wait"})
	if _, err := fiona.Cosign(context.Background(), a, true); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "a freeze") {
		t.Errorf("%v", err)
	}
	if got := s.allowed(1); got != 0 {
		t.Errorf("open on %d hosts", got)
	}
}

// TestTheWorldKnowsWhatWaits: who asked, when, who has signed, and nothing that is
// complete, over or made up.
func TestTheWorldKnowsWhatWaits(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	asked := s.clock.at
	r := s.propose(ines)
	s.pass(time.Second)
	shed, err := s.act(ines, decisions.Ask{Right: "shed-4", Reason: "it is on fire"})
	if !errors.Is(err, ErrNeeds) {
		t.Fatal(err)
	}
	s.pass(time.Minute)
	waits := ines.world().Proposals
	if len(waits) != 2 || waits[0].ID != r.ID || waits[0].Right != medium || waits[0].Scope != "checkout" || waits[0].Requester != "ines" ||
		!waits[0].At.Equal(asked) || !slices.Equal(waits[0].Signers, []string{"ines"}) {
		t.Fatalf("%+v", waits)
	}
	w := ines.world()
	log, err := ines.session(context.Background(), &w)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(shed.Token, "ic1.", "ic1.e", 1)
	ines.note(log, audit.Proposed{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Payload: "{}", Token: forged, Needs: []model.Reason{}})
	ines.Refresh(context.Background())
	if n := len(ines.world().Proposals); n != 2 {
		t.Errorf("with one that is made up %d wait", n)
	}
	right, _, _ := s.bundle.Right(medium)
	s.pass(right.LeadTime().Std() + right.Bypass.Lasts.Std())
	if waits := ines.world().Proposals; len(waits) != 1 || waits[0].ID != shed.ID {
		t.Errorf("when the window of one is over %+v wait", waits)
	}
	priya := s.desk("priya")
	if _, err := priya.Cosign(context.Background(), s.read(priya, shed.Token), true); err != nil {
		t.Fatal(err)
	}
	ines.Refresh(context.Background())
	if waits := ines.world().Proposals; len(waits) != 0 {
		t.Errorf("complete, and it waits: %+v", waits)
	}
}

// TestABlindRecoveryIsCompletedBySomebodyWhoReadsWhatWasSeen: the evidence is part
// of what both sign, so the second person is not asked for something that he
// cannot give.
func TestABlindRecoveryIsCompletedBySomebodyWhoReadsWhatWasSeen(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	for name := range s.readings {
		s.readings[name] = model.Reading{Signal: name, State: model.ReadingNoData, Detail: "prometheus does not answer"}
	}
	s.pass(time.Hour)
	ines.Refresh(context.Background())
	ask := decisions.Ask{Right: "recover-blind", Tier: decisions.NextTier, Reason: "prometheus is gone"}
	if p, err := ines.Preview(ask); err != nil || !strings.Contains(strings.Join(p.Reasons, " "), "typed evidence") {
		t.Fatalf("without evidence: %v %+v", err, p)
	}
	ask.Evidence = "the till sells, and the phone is quiet"
	r, err := s.act(ines, ask)
	if !errors.Is(err, ErrNeeds) || r.State != Proposed {
		t.Fatalf("%v %+v", err, r)
	}
	dev := s.desk("dev")
	a := s.read(dev, r.Token)
	if a.Verdict.Outcome != model.Permitted || a.Directive.Reason != "prometheus is gone; seen: the till sells, and the phone is quiet" {
		t.Fatalf("%q: %v %v", a.Directive.Reason, a.Verdict.Outcome, a.Reasons)
	}
	if done, err := dev.Cosign(context.Background(), a, true); err != nil || done.State == Proposed {
		t.Fatalf("%v %+v", err, done)
	}
}
