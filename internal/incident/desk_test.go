package incident

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/crypto/ssh"
)

// clock is set by hand: nothing in these tests waits.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return model.Instant{Wall: c.at, Boot: c.at.Sub(policytest.Now()) + time.Hour, BootID: "boot", State: model.ClockOK}
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// flags is a flag service in memory, which hosts that are not cut off see at
// once.
type flags struct {
	mu     sync.Mutex
	tokens map[string]string
	down   error
	note   string
	sink   func(token string)
}

func (f *flags) Name() string { return "flags" }

func (f *flags) Put(_ context.Context, id, token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return f.down
	}
	f.tokens[id] = token
	f.sink(token)
	return nil
}

func (f *flags) Read(context.Context) (map[string]string, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.tokens), f.note, f.down
}

// board is a store with compare-and-swap in memory.
type board struct {
	mu        sync.Mutex
	lease     Cell
	proposals map[string]Cell
}

func (b *board) Lease(context.Context) (Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lease, nil
}

func (b *board) SwapLease(_ context.Context, previous int64, value string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lease.Revision != previous {
		return errors.New("somebody was faster")
	}
	b.lease = Cell{Value: value, Revision: previous + 1}
	return nil
}

func (b *board) Proposal(_ context.Context, id string) (Cell, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.proposals[id], nil
}

func (b *board) SwapProposal(_ context.Context, id string, previous int64, value string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.proposals[id] = Cell{Value: value, Revision: previous + 1}
	return nil
}

func (b *board) Proposals(context.Context) (map[string]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]string{}
	for id, cell := range b.proposals {
		out[id] = cell.Value
	}
	return out, nil
}

// shop is a fleet of real engines on memory folders, with real keys and the
// example policy.
type shop struct {
	t        *testing.T
	clock    *clock
	bundle   *policy.Bundle
	keys     map[string]ssh.Signer
	flags    *flags
	board    *board
	hosts    []*host
	readings map[string]model.Reading
	state    string
	sessions int
}

type host struct {
	name, service string
	engine        *engine.Engine
	cutOff        bool
	silent        bool
}

// newShop makes a shop of the test's own. Most of what its tests do is to wait, for a
// disk and for hosts that will not come, so they wait together.
func newShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	return anotherShop(t)
}

// anotherShop is for a test that has one already.
func anotherShop(t *testing.T) *shop {
	t.Helper()
	_, bundle, keys := policytest.Shop(t)
	s := &shop{t: t, clock: &clock{at: policytest.Now()}, bundle: bundle, keys: keys, state: t.TempDir(),
		board: &board{proposals: map[string]Cell{}}}
	s.flags = &flags{tokens: map[string]string{}, sink: s.deliver}
	for i, service := range []string{"edge", "catalog", "checkout", "checkout", "checkout", "checkout", "payment-risk"} {
		h := &host{name: fmt.Sprintf("%s-%02d", service, i), service: service}
		e, _, err := engine.Open(engine.Config{
			Fleet: policytest.Fleet, Host: h.name, Services: []string{service}, Realm: directive.Production, Bundle: bundle,
			Folder: engine.NewMemory(), Rand: rand.Reader, Software: "test",
		}, s.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		h.engine = e
		s.hosts = append(s.hosts, h)
	}
	s.calm()
	return s
}

// calm makes every signal good for the last hour, with room on both sides of no
// threshold: a value below every "above" and every "below" of the policy.
func (s *shop) calm() {
	s.readings = map[string]model.Reading{}
	for name, signal := range s.bundle.Signals {
		s.readings[name] = steady(name, s.good(name), s.clock.Now().Wall, signal.Step.Std())
	}
}

// good is a value that satisfies every leave condition of a signal.
func (s *shop) good(name string) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	for _, tier := range s.bundle.Tiers {
		for _, c := range tier.Leave {
			if c.Signal == name && c.Below != nil {
				high = min(high, *c.Below)
			}
			if c.Signal == name && c.Above != nil {
				low = max(low, *c.Above)
			}
		}
	}
	if a := s.bundle.Signals[name].Abnormal; a != nil {
		if a.Above != nil {
			high = min(high, *a.Above)
		}
		if a.Below != nil {
			low = max(low, *a.Below)
		}
	}
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		return 0
	case math.IsInf(low, -1):
		return high / 2
	case math.IsInf(high, 1):
		return low + 1
	}
	return (low + high) / 2
}

func steady(name string, v float64, now time.Time, step time.Duration) model.Reading {
	step = max(step, time.Second)
	r := model.Reading{Signal: name, State: model.ReadingValue, Value: v, At: now, Step: model.Duration(step)}
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(step) {
		r.History = append(r.History, model.Sample{At: at, Value: v})
	}
	return r
}

func (s *shop) deliver(token string) {
	for _, h := range s.hosts {
		if !h.cutOff {
			h.engine.Offer("flags", token, s.clock.Now())
		}
	}
}

// pass lets time go by everywhere.
func (s *shop) pass(d time.Duration) {
	s.clock.pass(d)
	for _, h := range s.hosts {
		h.engine.Advance(s.clock.Now())
	}
	s.calm()
}

func (s *shop) views(context.Context) []model.HostView {
	now := s.clock.Now()
	var out []model.HostView
	for _, h := range s.hosts {
		v := model.HostView{Host: h.name, Services: []string{h.service}, Reachable: !h.silent, SeenAt: now.Wall, Via: "test"}
		if !h.silent {
			r := h.engine.Report(now)
			v.Report = &r
		}
		out = append(out, v)
	}
	return out
}

// desk seats a person. Two desks with one state folder are two consoles on one
// machine.
func (s *shop) desk(person string, changes ...func(*Options)) *Desk {
	s.t.Helper()
	s.sessions++
	o := Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: person, State: s.state,
		Session: fmt.Sprintf("%s-%d", person, s.sessions), Bundle: s.bundle, Clock: s.clock,
		Signer:   func(context.Context) (ssh.Signer, error) { return s.keys[person], nil },
		Carriers: []Carrier{s.flags}, Board: s.board,
		Readings: func(context.Context) map[string]model.Reading { return s.readings },
		Hosts:    s.views, Inventory: s.listing,
	}
	for _, change := range changes {
		change(&o)
	}
	d, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
	d.Refresh(context.Background())
	return d
}

func (s *shop) listing() Listing {
	return Listing{Inventory: model.Inventory{Source: "policy", At: s.clock.Now().Wall, MaxAge: model.Duration(time.Minute), Hosts: len(s.hosts)}}
}

func (s *shop) act(d *Desk, ask decisions.Ask) (Result, error) {
	s.t.Helper()
	d.Refresh(context.Background())
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	return d.Execute(context.Background(), Act{Request: p.Request, Asked: true})
}

func (s *shop) must(d *Desk, ask decisions.Ask) Result {
	s.t.Helper()
	r, err := s.act(d, ask)
	if err != nil {
		s.t.Fatalf("%+v: %v %v", ask, err, r.Reasons)
	}
	if r.State != Effective {
		s.t.Fatalf("%+v: %s, %s %v", ask, r.State, r.Detail, r.Carriers)
	}
	return r
}

func usd(cents int64) model.Money { return model.Money{Minor: cents, Currency: "USD"} }

func (s *shop) allowed(cents int64) (open int) {
	for _, h := range s.hosts {
		if ok, _ := h.engine.Allow("payment-risk", "checkout", usd(cents), s.clock.Now()); ok && h.service == "checkout" {
			open++
		}
	}
	return open
}

const small = "risk-bypass-small-orders"

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
	skew := d.Snapshot().Skew
	if skew.Lacking != 4 || skew.Effective != 3 {
		t.Errorf("skew %+v", skew)
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

// actBriefly does not wait for hosts that will not come.
func (s *shop) actBriefly(d *Desk, ask decisions.Ask) (Result, error) {
	p, err := d.Preview(ask)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return d.Execute(ctx, Act{Request: p.Request, Asked: true})
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
