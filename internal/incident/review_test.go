package incident

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// smallest owes a review by finance.
const smallest = "risk-bypass-expired-policy"

func (s *shop) reviews(d *Desk) []Owed {
	s.t.Helper()
	owed, err := d.Reviews()
	if err != nil {
		s.t.Fatal(err)
	}
	return owed
}

func TestEveryUseOwesAReviewByAnotherOne(t *testing.T) {
	s := newShop(t)
	ines, fiona, dev := s.desk("ines"), s.desk("fiona"), s.desk("dev")
	s.must(ines, decisions.Ask{Right: small, Reason: "risk is down"}) // owes nothing
	r := s.must(ines, decisions.Ask{Right: smallest, Reason: "risk is down"})
	owed := ines.Snapshot().Owed
	if len(owed) != 1 || owed[0].ID != r.ID || owed[0].Group != "finance" || owed[0].Requester != "ines" {
		t.Fatalf("%+v", owed)
	}
	if text := owed[0].Text(); !strings.Contains(text, "by finance: ic incident review "+ShortID(r.ID)) {
		t.Errorf("%q", text)
	}
	ctx := context.Background()
	for _, c := range []struct {
		by        *Desk
		id, words string
		kind      error
		want      string
	}{
		{ines, r.ID, "fine", ErrDenied, "nobody reviews himself"},
		{dev, r.ID, "fine", ErrDenied, "dev is not in the group finance"},
		{fiona, r.ID, " ", ErrDenied, "the statement has 0 bytes"},
		{fiona, r.ID, strings.Repeat("x", audit.MaxStatement+1), ErrDenied, "the statement has 2001 bytes"},
		{fiona, "NOBODY", "fine", ErrNeeds, "0 reviews are owed"},
		{s.desk(""), r.ID, "fine", ErrReadOnly, "no key"},
	} {
		if _, err := c.by.Review(ctx, c.id, c.words); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s by %q: %v, want %q", c.id, c.by.o.Person, err, c.want)
		}
	}
	if n := len(s.reviews(ines)); n != 1 {
		t.Fatalf("%d owed after nobody could review", n)
	}
	if _, err := fiona.Review(ctx, ShortID(r.ID), "14 orders, none came back"); err != nil {
		t.Fatal(err)
	}
	if owed := s.reviews(ines); len(owed) != 0 {
		t.Errorf("still owed: %+v", owed)
	}
	ines.Refresh(ctx)
	if owed := ines.Snapshot().Owed; len(owed) != 0 {
		t.Errorf("still shown as owed: %+v", owed)
	}
}

// TestAReviewKeepsNothingOpenAndIsPossibleAfterwards: the incident is closed over
// it, and the sign-off goes into its folder.
func TestAReviewKeepsNothingOpenAndIsPossibleAfterwards(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	r := s.must(ines, decisions.Ask{Right: smallest, Reason: "risk is down"})
	incident := r.Incident
	s.refused(ines, CloseIt, "", ErrNeeds, "skip payment-risk")
	s.pass(time.Hour) // it has ended by itself
	s.command(ines, CloseIt, "")
	ines.Refresh(context.Background())
	if owed := ines.Snapshot().Owed; len(owed) != 1 {
		t.Fatalf("owed after the close: %+v", owed)
	}
	s.must(ines, decisions.Ask{Right: "shed", Tier: 1, Reason: "another night"})
	fiona := s.desk("fiona")
	if n := len(fiona.Snapshot().Owed); n != 1 {
		t.Fatalf("a night later %d are owed", n)
	}
	done, err := fiona.Review(context.Background(), r.ID, "looked at")
	if err != nil || done.Incident != incident {
		t.Fatalf("%v %+v", err, done)
	}
	if n := len(fiona.Snapshot().Owed); n != 0 {
		t.Errorf("%d still owed", n)
	}
	sessions, err := audit.Read(incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	if state := audit.Fold(sessions); state.ClosedAt.IsZero() || len(state.Signoffs) != 1 {
		t.Errorf("closed at %v, %d sign-offs", state.ClosedAt, len(state.Signoffs))
	}
	opts := audit.VerifyOptions{Realm: directive.Production, Fleet: policytest.Fleet, Trusted: func(fp string) (string, bool) {
		who, ok := s.bundle.SignerOf(fp)
		return who.Name, ok
	}}
	if _, err := audit.Verify(opts, audit.Folder(s.state, incident)); err != nil {
		t.Error(err)
	}
	// And when nothing is open, the next console is asked about nothing.
	later := s.desk("ines")
	if n := len(later.Snapshot().Owed); n != 0 {
		t.Errorf("%d owed", n)
	}
}

func TestAReviewOfAClosedIncidentIsSeenByAnotherConsole(t *testing.T) {
	s := newShop(t)
	ines, fiona := s.desk("ines"), s.desk("fiona")
	r := s.must(ines, decisions.Ask{Right: smallest, Reason: "risk is down"})
	s.pass(time.Hour)
	s.command(ines, CloseIt, "")
	for range 2 {
		ines.Refresh(context.Background())
	}
	if _, err := fiona.Review(context.Background(), r.ID, "looked at"); err != nil {
		t.Fatal(err)
	}
	ines.Refresh(context.Background())
	if n := len(ines.Snapshot().Owed); n != 0 {
		t.Errorf("%d owed at the other console", n)
	}
}

// TestASignoffIsBelievedOfItsSignerOnly: whatever stands in a log, a review counts
// when somebody of the group has signed exactly this.
func TestASignoffIsBelievedOfItsSignerOnly(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.must(d, decisions.Ask{Right: smallest, Reason: "risk is down"})
	namespace := directive.Production.Namespace("signoff", policytest.Fleet)
	sign := func(who, namespace, fleet, incident, subject string) audit.Signoff {
		raw, err := audit.NewSignoff(fleet, incident, subject, "fine", s.clock.at)
		if err != nil {
			t.Fatal(err)
		}
		key := s.keys[who]
		if key == nil {
			key = policytest.Key(who)
		}
		sig, err := sshsig.Sign(key, policytest.Rand(), raw, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return audit.Signoff{Statement: string(raw), Signature: sig.Blob}
	}
	good := sign("fiona", namespace, policytest.Fleet, r.Incident, r.ID)
	forged := good
	forged.Statement = strings.Replace(good.Statement, "fine", "fin3", 1)
	_, state := d.history.now()
	count := func(x audit.Signoff) int {
		state.Signoffs = []audit.Signoff{x}
		return len(d.owedOf(r.Incident, &state))
	}
	for name, x := range map[string]audit.Signoff{
		"the requester":         sign("ines", namespace, policytest.Fleet, r.Incident, r.ID),
		"another group":         sign("dev", namespace, policytest.Fleet, r.Incident, r.ID),
		"a stranger":            sign("mallory", namespace, policytest.Fleet, r.Incident, r.ID),
		"a machine":             sign("ladder-controller", namespace, policytest.Fleet, r.Incident, r.ID),
		"another fleet":         sign("fiona", namespace, "bank", r.Incident, r.ID),
		"another incident":      sign("fiona", namespace, policytest.Fleet, "another", r.ID),
		"another use":           sign("fiona", namespace, policytest.Fleet, r.Incident, "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
		"a drill's":             sign("fiona", directive.Drill.Namespace("signoff", policytest.Fleet), policytest.Fleet, r.Incident, r.ID),
		"a directive's":         sign("fiona", directive.Production.Namespace("directive", policytest.Fleet), policytest.Fleet, r.Incident, r.ID),
		"changed words":         forged,
		"no signature":          {Statement: good.Statement},
		"not a statement":       {Statement: "fine", Signature: good.Signature},
		"a space more":          {Statement: good.Statement + " ", Signature: good.Signature},
		"a version not of ours": {Statement: strings.Replace(good.Statement, `"v":1`, `"v":2`, 1), Signature: good.Signature},
		"a time that is none":   {Statement: strings.Replace(good.Statement, "Z", "X", 1), Signature: good.Signature},
	} {
		if count(x) != 1 {
			t.Errorf("%s: the review counts as done", name)
		}
	}
	if count(good) != 0 {
		t.Error("a good one does not count")
	}
	s.bundle = revoking(t, s.bundle, sshFingerprint(t, s, "fiona"))
	if revoked := s.desk("ines"); len(revoked.owedOf(r.Incident, &state)) != 1 {
		t.Error("a revoked key has reviewed")
	}
}

func sshFingerprint(t *testing.T, s *shop, who string) string {
	t.Helper()
	fps := s.bundle.FingerprintsOf(who)
	if len(fps) != 1 {
		t.Fatalf("%s has %d keys", who, len(fps))
	}
	return fps[0]
}

func TestAnOwnerMayWaiveAHostAndNeverWhatIsInForce(t *testing.T) {
	s := newShop(t)
	ines, dev := s.desk("ines"), s.desk("dev")
	ctx := context.Background()
	if _, err := dev.Waive(ctx, []string{"edge-00"}, "gone"); !errors.Is(err, ErrNoIncident) {
		t.Errorf("%v", err)
	}
	s.must(ines, decisions.Ask{Right: small, Reason: "risk is down"})
	s.hosts[0].silent, s.hosts[1].silent = true, true
	s.refused(ines, CloseIt, "", ErrNeeds, "2 hosts cannot be reached")
	for _, c := range []struct {
		by   *Desk
		name string
		kind error
		want string
	}{
		{ines, "edge-00", ErrDenied, `that is the group "platform"`},
		{s.desk(""), "edge-00", ErrReadOnly, "no key"},
		{dev, "checkout-02", ErrDenied, "neither a host that cannot be reached nor an override"},
		{dev, ines.Snapshot().Live[0].Issued.Directive.ID, ErrDenied, "nothing else can be waived"},
	} {
		if _, err := c.by.Waive(ctx, []string{c.name}, "gone"); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s by %q: %v, want %q", c.name, c.by.o.Person, err, c.want)
		}
	}
	if _, err := dev.Waive(ctx, []string{"edge-00"}, "it was scrapped"); err != nil {
		t.Fatal(err)
	}
	s.refused(ines, CloseIt, "", ErrNeeds, "1 hosts cannot be reached (catalog-01)")
	if _, err := dev.Waive(ctx, []string{"catalog-01"}, "it was scrapped"); err != nil {
		t.Fatal(err)
	}
	s.refused(ines, CloseIt, "", ErrNeeds, "skip payment-risk") // a live bypass is never waived
	s.pass(time.Hour)
	incident := ines.Snapshot().World.Incident.ID
	s.command(ines, CloseIt, "")
	if closed := closeOf(t, s, incident); len(closed.Signoffs) != 2 {
		t.Errorf("the close relies on %d sign-offs", len(closed.Signoffs))
	}
}

func TestAnOwnerMayWaiveAnOverride(t *testing.T) {
	s := newShop(t)
	d := s.desk("dev")
	s.command(d, Open, "")
	w := d.world()
	log, err := d.session(context.Background(), &w)
	if err != nil {
		t.Fatal(err)
	}
	d.note(log, audit.PushIntent{Operation: "op-1", Backend: "git", IDs: []string{}})
	s.refused(d, CloseIt, "", ErrNeeds, "ic break undo op-1")
	if _, err := d.Waive(context.Background(), []string{"op-1"}, strings.Repeat("x", audit.MaxStatement+1)); !errors.Is(err, ErrDenied) {
		t.Errorf("a book: %v", err)
	}
	if _, err := d.Waive(context.Background(), []string{"op-1"}, "nobody reads that file any more"); err != nil {
		t.Fatal(err)
	}
	w = d.world()
	another := w
	another.Incident.ID = "another"
	if b := d.blockers(&another); len(b) != 1 {
		t.Errorf("a waiver of this night counts in another: %q", b)
	}
	s.command(d, CloseIt, "")
	if closed := closeOf(t, s, w.Incident.ID); len(closed.Signoffs) != 1 {
		t.Errorf("the close relies on %d sign-offs", len(closed.Signoffs))
	}
}

// TestAReviewIsWrittenOrNotDone: what no disk takes, and what no key signs, was
// not said.
func TestAReviewIsWrittenOrNotDone(t *testing.T) {
	s := newShop(t)
	ines := s.desk("ines")
	r := s.must(ines, decisions.Ask{Right: smallest, Reason: "risk is down"})
	full := &disk{full: syscall.ENOSPC}
	nokey := func(o *Options) {
		o.Signer = func(context.Context) (ssh.Signer, error) { return nil, errors.New("the agent is locked") }
	}
	for name, fiona := range map[string]*Desk{"disk": s.desk("fiona", on(full)), "key": s.desk("fiona", nokey)} {
		if _, err := fiona.Review(context.Background(), r.ID, "fine"); err == nil {
			t.Errorf("%s: it was reviewed", name)
		}
	}
	s.pass(time.Hour)
	s.command(ines, CloseIt, "")
	for name, fiona := range map[string]*Desk{"disk": s.desk("fiona", on(full)), "key": s.desk("fiona", nokey)} {
		if _, err := fiona.Review(context.Background(), r.ID, "fine"); err == nil {
			t.Errorf("%s: it was reviewed afterwards", name)
		}
	}
	if n := len(s.reviews(ines)); n != 1 {
		t.Errorf("%d owed", n)
	}
}

func closeOf(t *testing.T, s *shop, incident string) audit.IncidentClose {
	t.Helper()
	sessions, err := audit.Read(incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range sessions {
		for _, e := range session.Entries {
			if c, ok := e.Body.(audit.IncidentClose); ok {
				return c
			}
		}
	}
	t.Fatal("it was not closed")
	return audit.IncidentClose{}
}
