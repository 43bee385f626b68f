package incident

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/crypto/ssh"
)

// disk is the real one until something is wrong with it.
type disk struct {
	audit.OS
	mu   sync.Mutex
	make error         // what making a file or folder answers
	full error         // what writing answers
	hung chan struct{} // closed when it comes back; nil: it answers
}

func (d *disk) state() (hung chan struct{}, making, writing error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hung, d.make, d.full
}

func (d *disk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hung != nil {
		close(d.hung)
	}
	d.make, d.full, d.hung = nil, nil, nil
}

func (d *disk) Mkdir(folder string) (bool, error) {
	hung, making, _ := d.state()
	if hung != nil {
		<-hung
	}
	if making != nil {
		return false, &fs.PathError{Op: "mkdir", Path: folder, Err: making}
	}
	return d.OS.Mkdir(folder)
}

func (d *disk) Create(path string) (audit.File, error) {
	hung, making, _ := d.state()
	if hung != nil {
		<-hung
	}
	if making != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: making}
	}
	f, err := d.OS.Create(path)
	return &diskFile{f, d}, err
}

type diskFile struct {
	audit.File
	on *disk
}

func (f *diskFile) Write(p []byte) (int, error) {
	hung, _, writing := f.on.state()
	if hung != nil {
		<-hung
	}
	if writing != nil {
		return 0, writing
	}
	return f.File.Write(p)
}

// deaf does everything and answers nothing until its caller has lost patience.
type deaf struct{ name string }

func (c deaf) Name() string { return c.name }
func (c deaf) Put(ctx context.Context, _, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}
func (c deaf) Read(ctx context.Context) (map[string]string, string, error) {
	<-ctx.Done()
	return nil, "", ctx.Err()
}
func (c deaf) Proposals(ctx context.Context) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (c deaf) Lease(ctx context.Context) (Cell, error) {
	<-ctx.Done()
	return Cell{}, ctx.Err()
}
func (c deaf) SwapLease(ctx context.Context, _ int64, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}
func (c deaf) Proposal(ctx context.Context, _ string) (Cell, error) {
	<-ctx.Done()
	return Cell{}, ctx.Err()
}
func (c deaf) SwapProposal(ctx context.Context, _ string, _ int64, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func on(d *disk) func(*Options) { return func(o *Options) { o.FS = d } }

// kindsOf lists what the log of an incident has, late entries as late(kind).
func kindsOf(t *testing.T, s *shop, incident string) string {
	t.Helper()
	read, err := audit.Read(incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, session := range read {
		for _, e := range session.Entries {
			kind := string(e.Kind())
			if late, ok := e.Body.(audit.Late); ok {
				kind = "late(" + string(late.Receipt.Kind) + ")"
			}
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " ")
}

func (s *shop) verifies(incident string) {
	s.t.Helper()
	_, err := audit.Verify(audit.VerifyOptions{Realm: directive.Production, Fleet: policytest.Fleet,
		Trusted: func(fp string) (string, bool) { w, ok := s.bundle.SignerOf(fp); return w.Name, ok }}, audit.Folder(s.state, incident))
	if err != nil {
		s.t.Error(err)
	}
}

// TestNoDiskHoldsUpAShed: on a full, a read-only and a hung disk a shed reaches
// every host, its record is on screen, a second one goes as well, and all of it is
// in the log once the disk is back. A bypass is refused before anything is signed.
func TestNoDiskHoldsUpAShed(t *testing.T) {
	for name, broken := range map[string]*disk{
		"full": {full: syscall.ENOSPC}, "read-only": {make: syscall.EROFS}, "hung": {hung: make(chan struct{})},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			t.Cleanup(broken.heal)
			d := s.desk("ines", on(broken))
			_, err := s.act(d, decisions.Ask{Right: small, Reason: "x"})
			if !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), "nothing was signed") {
				t.Errorf("a bypass without a log: %v", err)
			}
			if n := len(s.flags.tokens); n != 0 || s.allowed(1) != 0 {
				t.Fatalf("%d tokens were carried", n)
			}
			first := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
			if !strings.Contains(first.Receipt, "signed by ines is not on disk yet") || len(d.Snapshot().Receipts) == 0 {
				t.Errorf("no receipt is shown: %q", first.Receipt)
			}
			second := s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "more load"})
			if first.Incident != second.Incident || second.Incident == "" {
				t.Errorf("one night, two incidents: %q and %q", first.Incident, second.Incident)
			}
			if got := d.Snapshot().World.Durable; got {
				t.Error("the screen says that the log is durable")
			}
			broken.heal()
			for range 50 { // a hung job has to come back first
				if d.Refresh(context.Background()); len(d.Snapshot().Receipts) == 0 {
					break
				}
			}
			kinds := kindsOf(t, s, first.Incident)
			for _, want := range []string{"late(incident-open)", "late(lease)", "late(intent)", "late(signed)", "late(outcome)"} {
				if !strings.Contains(kinds, want) {
					t.Errorf("%s is missing in %s", want, kinds)
				}
			}
			if n := strings.Count(kinds, "late(signed)"); n != 2 || len(d.Snapshot().Receipts) != 0 {
				t.Errorf("%d sheds are in the log, %d receipts are left", n, len(d.Snapshot().Receipts))
			}
			s.verifies(first.Incident)
			s.must(d, decisions.Ask{Right: small, Reason: "the disk is back"})
		})
	}
}

// TestNothingDeafHoldsUpAShed: a shed ends within its own deadlines while flag
// service, board, Prometheus and hosts take every call and answer none.
func TestNothingDeafHoldsUpAShed(t *testing.T) {
	s := newShop(t)
	silent := func(ctx context.Context) []model.HostView {
		<-ctx.Done()
		return nil
	}
	began := time.Now()
	s.sessions++
	d, err := New(Options{
		Realm: directive.Production, Fleet: policytest.Fleet, Person: "ines", State: s.state, Session: "ines-deaf", Bundle: s.bundle, Clock: s.clock,
		Signer:   func(context.Context) (ssh.Signer, error) { return s.keys["ines"], nil },
		Carriers: []Carrier{deaf{"deaf"}, s.flags}, Board: deaf{"board"}, Hosts: silent,
		Readings: func(ctx context.Context) map[string]model.Reading { silent(ctx); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("the first snapshot took %s", took)
	}
	p, err := d.Preview(decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	if err != nil || p.Verdict.Outcome != model.Permitted {
		t.Fatalf("%v %+v", err, p.Verdict)
	}
	began = time.Now()
	r, err := d.Execute(context.Background(), Act{Request: p.Request})
	if took := time.Since(began); took > 2*carryLimit+observeLimit+time.Second {
		t.Errorf("it took %s", took)
	}
	if err != nil || r.State != Unconfirmed || !strings.Contains(strings.Join(r.Carriers, "; "), "flags: carried") {
		t.Fatalf("%v %s %v", err, r.State, r.Carriers)
	}
	if tier := s.hosts[0].engine.Tier("edge", s.clock.Now()); tier != 2 {
		t.Errorf("the carrier that is alive has brought tier %d", tier)
	}
}

// TestAShedWaitsForNoOtherAct: an opening waits for somebody to touch a key, and
// the shed of the same console goes past it.
func TestAShedWaitsForNoOtherAct(t *testing.T) {
	s := newShop(t)
	touched, asked := make(chan struct{}), make(chan struct{}, 1)
	var slow sync.Map
	d := s.desk("ines", func(o *Options) {
		o.Signer = func(ctx context.Context) (ssh.Signer, error) {
			if _, ok := slow.LoadAndDelete("next"); ok {
				asked <- struct{}{}
				select {
				case <-touched:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return s.keys["ines"], nil
		}
	})
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	p, err := d.Preview(decisions.Ask{Right: small, Reason: "risk is down"})
	if err != nil {
		t.Fatal(err)
	}
	slow.Store("next", true)
	done := make(chan error, 1)
	go func() {
		_, err := d.Execute(context.Background(), Act{Request: p.Request})
		done <- err
	}()
	<-asked
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "more load"})
	close(touched)
	if err := <-done; err != nil {
		t.Errorf("the opening: %v", err)
	}
	if got := s.allowed(1); got != 4 {
		t.Errorf("it is open on %d hosts", got)
	}
}

// TestTwoActsAtOnceOpenOneIncident: what is done first by two hands at once is
// one night.
func TestTwoActsAtOnceOpenOneIncident(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	results := make([]Result, 4)
	var all sync.WaitGroup
	for i := range results {
		p, err := d.Preview(decisions.Ask{Right: "shed", Tier: 1 + i%3, Reason: "load"})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			r, err := d.Execute(context.Background(), Act{Request: p.Request})
			if err != nil {
				t.Errorf("%v", err)
			}
			results[i] = r
		})
	}
	all.Wait()
	for _, r := range results {
		signed, err := directive.Verify(r.Token, directive.Production, policytest.Fleet)
		if err != nil || r.Incident != results[0].Incident || signed.Directive.Incident != r.Incident {
			t.Errorf("%v: incident %s, and %s", err, r.Incident, results[0].Incident)
		}
	}
	if found, err := audit.List(s.state); err != nil || len(found) != 1 {
		t.Errorf("%d incidents: %v", len(found), err)
	}
}

// TestALongNightNeedsASecondSession: the certificate of a session is good for
// twelve hours; the commander is not sent home with it.
func TestALongNightNeedsASecondSession(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	s.pass(audit.MaxSession + time.Minute)
	if again := s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "still"}); again.Receipt != "" {
		t.Errorf("after a long night a shed leaves only a receipt: %s", again.Receipt)
	}
	if _, err := d.Command(context.Background(), Take, "", ""); err != nil {
		t.Fatal(err)
	}
	s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	s.verifies(r.Incident)
}

// TestAStalePolicyStillSheds and opens nothing.
func TestAStalePolicyStillSheds(t *testing.T) {
	s := newShop(t)
	s.pass(policytest.Expires().Sub(policytest.Now()) + time.Hour)
	d := s.desk("ines")
	if _, err := s.act(d, decisions.Ask{Right: small, Reason: "x"}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "policy has expired") {
		t.Errorf("a bypass under an expired policy: %v", err)
	}
	s.must(d, decisions.Ask{Right: "shed", Tier: 3, Reason: "load"})
}

// TestAProposalToTightenNeedsNoDisk: two people are enough to wait for.
func TestAProposalToTightenNeedsNoDisk(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines", on(&disk{full: syscall.ENOSPC}))
	r, err := s.act(d, decisions.Ask{Right: "shed-4", Tier: 4, Reason: "nothing works"})
	if !errors.Is(err, ErrNeeds) || r.State != Proposed || r.Token == "" || r.Receipt == "" {
		t.Errorf("%v %+v", err, r)
	}
}
