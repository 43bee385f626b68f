package incident

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

func (s *shop) command(d *Desk, action Action, person string) Result {
	s.t.Helper()
	r, err := d.Command(context.Background(), action, person, "")
	if err != nil {
		s.t.Fatalf("%s: %v", action, err)
	}
	return r
}

func (s *shop) refused(d *Desk, action Action, person string, kind error, want string) {
	s.t.Helper()
	if _, err := d.Command(context.Background(), action, person, ""); !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
		s.t.Errorf("%s by %s: %v, want %v with %q", action, d.o.Person, err, kind, want)
	}
}

func lease(d *Desk) model.Lease {
	d.Refresh(context.Background())
	return d.Snapshot().World.Incident.Lease
}

func TestCommandGoesFromHandToHand(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	s.refused(ines, Offer, "dev", ErrNoIncident, "ic incident open")
	s.command(ines, Open, "")
	s.refused(ines, Open, "", ErrNeeds, "is open already")
	s.refused(dev, Offer, "ines", ErrDenied, "only who holds command")
	s.refused(dev, Accept, "", ErrNeeds, "not offered to dev")
	s.refused(dev, Relinquish, "", ErrDenied, "does not hold command")
	s.refused(ines, Offer, "ines", ErrDenied, "nobody else")
	s.refused(ines, Offer, "mallory", ErrDenied, "nobody else")
	s.refused(ines, Offer, "fiona", ErrDenied, "nobody else with a role")
	if _, err := ines.Command(context.Background(), "dance", "", ""); err == nil {
		t.Error("ines danced")
	}

	s.command(ines, Offer, "dev")
	if l := lease(dev); l.Holder != "ines" || l.OfferedTo != "dev" || !l.Confirmed {
		t.Fatalf("offered: %+v", l)
	}
	s.command(dev, Accept, "")
	if l := lease(ines); l.Holder != "dev" || l.Deputy != "ines" || l.OfferedTo != "" {
		t.Fatalf("accepted: %+v", l)
	}
	s.refused(ines, Take, "", ErrNeeds, "dev holds command until")
	s.command(dev, Relinquish, "")
	s.command(ines, Take, "")
	if l := lease(dev); l.Holder != "ines" || !l.Until.Equal(l.From.Add(LeaseLasts)) {
		t.Errorf("taken: %+v", l)
	}
}

func TestAfterALapseTheNextTakesOver(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	s.command(ines, Open, "")
	s.pass(LeaseLasts - time.Second)
	s.refused(dev, Take, "", ErrNeeds, "ines holds command")
	s.pass(time.Second)
	if _, err := s.act(ines, decisions.Ask{Right: small, Reason: "x"}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "nobody holds command") {
		t.Errorf("a lapsed lease opened: %v", err)
	}
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"}) // but it sheds
	s.command(dev, Take, "")
	s.refused(ines, Accept, "", ErrNeeds, "")
	if l := lease(ines); l.Holder != "dev" {
		t.Errorf("%+v", l)
	}
}

func TestWhoHoldsNoRoleDoesNotCommand(t *testing.T) {
	s := newShop(t)
	fiona, ines := s.desk("fiona"), s.desk("ines")
	s.refused(fiona, Open, "", ErrDenied, "fiona holds no role")
	s.command(ines, Open, "")
	s.pass(LeaseLasts)
	s.refused(fiona, Take, "", ErrDenied, "fiona holds no role")
}

// TestALeaseOfAClockThatIsAheadCanBeFollowed: the next holder's clock is right,
// and his lease must not look older than the one that was given back.
func TestALeaseOfAClockThatIsAheadCanBeFollowed(t *testing.T) {
	s := newShop(t)
	ahead := &clock{at: s.clock.at.Add(20 * time.Minute)}
	ines := s.desk("ines", func(o *Options) { o.Clock = ahead })
	s.command(ines, Open, "")
	s.command(ines, Relinquish, "")
	dev := s.desk("dev")
	s.pass(0)
	if l := lease(dev); l.Holder != "ines" {
		t.Fatalf("%+v", l)
	}
	s.command(dev, Take, "")
	if l := lease(dev); !l.Held("dev", s.clock.at) {
		t.Errorf("%+v", l)
	}
}

func TestWithoutABoardCommandIsLocalAndSaidToBe(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines", func(o *Options) { o.Board = nil })
	s.command(d, Open, "")
	if r := s.command(d, Take, ""); !strings.Contains(r.Detail, "unconfirmed: no board") {
		t.Errorf("detail %q", r.Detail)
	}
	if l := lease(d); l.Holder != "ines" || l.Confirmed {
		t.Errorf("%+v", l)
	}
	s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
}

// racing lets somebody else write between a look at the board and the swap.
type racing struct {
	*board
	meanwhile func()
}

func (r *racing) SwapLease(ctx context.Context, previous int64, value string) error {
	if r.meanwhile != nil {
		act := r.meanwhile
		r.meanwhile = nil
		act()
	}
	return r.board.SwapLease(ctx, previous, value)
}

// TestWhoIsSecondInARaceIsTold: both consoles saw command lapse; the board says
// yes to one of them.
func TestWhoIsSecondInARaceIsTold(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	s.command(ines, Open, "")
	s.pass(LeaseLasts)
	race := &racing{board: s.board}
	dev := s.desk("dev", func(o *Options) { o.Board = race })
	race.meanwhile = func() { s.command(ines, Take, "") }
	s.refused(dev, Take, "", ErrNeeds, "ines has just taken command")
	if l := lease(dev); l.Holder != "ines" || !l.Confirmed {
		t.Errorf("%+v", l)
	}
	if _, err := s.act(dev, decisions.Ask{Right: small, Reason: "x"}); !errors.Is(err, ErrNeeds) {
		t.Errorf("the loser of a race opened: %v", err)
	}
}

// TestWhoOpensAnIncidentAndLosesItsCommandOpensNothingElse: the verdict was for
// who takes command with the first act, and somebody else was faster.
func TestWhoOpensAnIncidentAndLosesItsCommandOpensNothingElse(t *testing.T) {
	s := newShop(t)
	race := &racing{board: s.board}
	ines, dev := s.desk("ines", func(o *Options) { o.Board = race }), s.desk("dev")
	race.meanwhile = func() {
		dev.Refresh(context.Background())
		s.command(dev, Take, "")
	}
	if _, err := s.act(ines, decisions.Ask{Right: small, Reason: "risk is down"}); !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "command of incident") {
		t.Errorf("%v", err)
	}
	if len(s.flags.tokens) != 0 || s.allowed(1) != 0 {
		t.Errorf("%d tokens carried", len(s.flags.tokens))
	}
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
}

// TestAnOldLeaseInTheWayIsSwappedOut: what stands there may be of another night.
func TestAnOldLeaseInTheWayIsSwappedOut(t *testing.T) {
	s := newShop(t)
	race := &racing{board: s.board}
	d := s.desk("ines", func(o *Options) { o.Board = race })
	race.meanwhile = func() { s.board.lease = Cell{Value: "anything", Revision: 7} }
	s.command(d, Open, "")
	if l := lease(d); l.Holder != "ines" || !l.Confirmed {
		t.Errorf("%+v", l)
	}
}

// TestALeaseIsBelievedOfItsHolderOnly: whatever stands on the board, a lease of
// another fleet, another incident, a longer time, a key that is revoked or not
// the holder's changes nothing.
func TestALeaseIsBelievedOfItsHolderOnly(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.command(d, Open, "")
	incident, now := d.Snapshot().World.Incident.ID, s.clock.at
	good := signedLease{V: 1, Fleet: policytest.Fleet, Incident: incident, Holder: "dev",
		From: now.Format(time.RFC3339), Until: now.Add(LeaseLasts).Format(time.RFC3339)}
	sign := func(l any, key ssh.Signer, namespace string) string {
		payload, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := sshsig.Sign(key, policytest.Rand(), payload, namespace)
		if err != nil {
			t.Fatal(err)
		}
		b64 := base64.RawURLEncoding.EncodeToString
		return leaseVersion + "." + b64(payload) + "." + b64(sig.Blob)
	}
	namespace := directive.Production.Namespace("lease", policytest.Fleet)
	with := func(change func(*signedLease)) signedLease {
		l := good
		change(&l)
		return l
	}
	for name, text := range map[string]string{
		"another fleet":    sign(with(func(l *signedLease) { l.Fleet = "bank" }), s.keys["dev"], namespace),
		"another incident": sign(with(func(l *signedLease) { l.Incident = "another" }), s.keys["dev"], namespace),
		"too long":         sign(with(func(l *signedLease) { l.Until = now.Add(LeaseLasts + time.Second).Format(time.RFC3339) }), s.keys["dev"], namespace),
		"no time":          sign(with(func(l *signedLease) { l.Until = "soon" }), s.keys["dev"], namespace),
		"a later version":  sign(with(func(l *signedLease) { l.V = 2 }), s.keys["dev"], namespace),
		"more fields":      sign(map[string]any{"v": 1, "fleet": policytest.Fleet, "king": true}, s.keys["dev"], namespace),
		"not the holder":   sign(good, s.keys["ines"], namespace),
		"a stranger's key": sign(good, policytest.Key("mallory"), namespace),
		"no role":          sign(with(func(l *signedLease) { l.Holder = "fiona" }), s.keys["fiona"], namespace),
		"a machine":        sign(with(func(l *signedLease) { l.Holder = "ladder-controller" }), s.keys["ladder-controller"], namespace),
		"a drill's":        sign(good, s.keys["dev"], directive.Drill.Namespace("lease", policytest.Fleet)),
		"a directive's":    sign(good, s.keys["dev"], directive.Production.Namespace("directive", policytest.Fleet)),
		"not a lease":      "icl1.x", "not base64": "icl1.!.!", "no signature": "icl1.e30.e30", "too much": strings.Repeat("x", maxLease+1),
	} {
		s.board.lease = Cell{Value: text, Revision: 99}
		if l := lease(d); l.Holder != "ines" {
			t.Errorf("%s: %+v", name, l)
		}
	}
	s.board.lease = Cell{Value: sign(good, s.keys["dev"], namespace), Revision: 99}
	if l := lease(d); l.Holder != "dev" || !l.Confirmed {
		t.Errorf("a good one: %+v", l)
	}
	fp := ssh.FingerprintSHA256(s.keys["dev"].PublicKey())
	s.bundle = revoking(t, s.bundle, fp)
	if l := lease(s.desk("ines")); l.Holder == "dev" {
		t.Errorf("of a key that was revoked: %+v", l)
	}
}
