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
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"golang.org/x/crypto/ssh"
)

// becomes replaces what the flag service holds; hosts keep what they have.
func (f *flags) becomes(tokens map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = tokens
}

// lacks are the ids that the console says the flag service lacks.
func (s *shop) lacks(d *Desk) (ids []string) {
	s.t.Helper()
	d.Refresh(context.Background())
	for _, m := range d.Snapshot().Carriers[0].Lacks {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestAStoreThatCameBackEmptyIsToldAndGetsTheSameTextsAgain(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	low := s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	shed := s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "more load"})
	off := s.must(d, decisions.Ask{Right: "feature-off", Feature: "recommendations", Scope: "checkout", Reason: "slow"})
	bypass := s.must(d, decisions.Ask{Right: small, Reason: "payment-risk answers nobody"})
	on := s.must(d, decisions.Ask{Right: "feature-on", Scope: "checkout", Feature: "recommendations", IDs: []string{off.ID}, Reason: "fine again"})
	s.pass(2 * time.Second)
	if got := s.lacks(d); len(got) > 0 {
		t.Fatalf("of a store that holds everything it says that %v are missing", got)
	}
	held := maps.Clone(s.flags.tokens)
	posture := s.views(t.Context())[3].Report.Posture

	s.flags.becomes(map[string]string{off.ID: held[off.ID]}) // an old copy was put back, with a part of it
	want := []string{low.ID, shed.ID, bypass.ID, on.ID}
	slices.Sort(want)
	if got := s.lacks(d); !slices.Equal(got, want) {
		t.Errorf("it lacks %v, said to lack %v", want, got)
	}
	view := d.Snapshot().Carriers[0]
	if !view.Connected || !strings.Contains(view.Detail, "it once held them and was emptied or put back") || !strings.Contains(view.Detail, "ic reissue") {
		t.Errorf("the console says %+v", view)
	}
	done, err := d.Reissue(t.Context())
	if err != nil || len(done) != len(want) {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, r := range done {
		if r.State != Sent || r.Carrier != "flags" {
			t.Errorf("%+v", r)
		}
	}
	if !maps.Equal(s.flags.tokens, held) {
		t.Error("what was handed over are not the texts that were there")
	}
	if got := s.lacks(d); len(got) > 0 {
		t.Errorf("still missing: %v", got)
	}
	if got := s.views(t.Context())[3].Report.Posture; got != posture {
		t.Error("a host's posture has changed")
	}
	read, err := audit.Read(shed.Incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	notes := 0
	for _, line := range audit.Fold(read).Lines {
		if line.Kind == audit.KindNote && strings.Contains(line.Text, "handed to flags again: ") {
			notes++
		}
	}
	if notes != len(want) {
		t.Errorf("%d lines of it in the log, want %d", notes, len(want))
	}
}

func TestOnlyWhatAHostHasToKnowIsMissed(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	off := s.must(d, decisions.Ask{Right: "feature-off", Feature: "recommendations", Scope: "checkout", Reason: "slow"})
	on := s.must(d, decisions.Ask{Right: "feature-on", Scope: "checkout", Feature: "recommendations", IDs: []string{off.ID}, Reason: "fine again"})
	bypass := s.must(d, decisions.Ask{Right: small, Reason: "payment-risk answers nobody"})
	right, _, _ := s.bundle.Right(small)
	s.pass(right.Bypass.Lasts.Std() + time.Second)
	s.flags.becomes(map[string]string{})
	if got := s.lacks(d); !slices.Equal(got, []string{on.ID}) {
		t.Errorf("missed are %v; %s has ended, %s has run out, and only the ending %s counts", got, off.ID, bypass.ID, on.ID)
	}
}

func TestWhatWasIssuedWhileTheStoreWasDownIsOfferedWhenItIsBack(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.flags.down = errors.New("dead")
	r, err := s.act(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.lacks(d); len(got) > 0 {
		t.Errorf("of a store that does not answer it says that %v are missing", got)
	}
	s.flags.down = nil
	s.pass(2 * time.Second)
	if got := s.lacks(d); !slices.Equal(got, []string{r.ID}) {
		t.Fatalf("missed are %v, want %s", got, r.ID)
	}
	if c := d.Snapshot().Carriers[0]; c.Lacks[0].Lost || strings.Contains(c.Detail, "emptied") {
		t.Errorf("it never had it: %+v", c)
	}
	if _, err := d.Reissue(t.Context()); err != nil || s.flags.tokens[r.ID] == "" {
		t.Errorf("not handed over: %v", err)
	}
}

func TestAnotherTextUnderAnIDIsNotTheDirective(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r := s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	s.pass(2 * time.Second)
	s.flags.becomes(map[string]string{r.ID: "ic1.forged.forged"})
	if got := s.lacks(d); !slices.Equal(got, []string{r.ID}) {
		t.Errorf("missed are %v, want %s", got, r.ID)
	}
}

func TestARevokedKeysDirectiveIsNotHandedOverAgain(t *testing.T) {
	s := newShop(t)
	s.must(s.desk("ines"), decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	s.pass(2 * time.Second)
	s.flags.becomes(map[string]string{})
	s.bundle = revoking(t, s.bundle, ssh.FingerprintSHA256(s.keys["ines"].PublicKey()))
	d := s.desk("ines")
	done, err := d.Reissue(t.Context())
	if err != nil || len(done) != 1 || !strings.Contains(done[0].Barred, "revoked-key") || done[0].State != Unconfirmed || len(s.flags.tokens) != 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestAReaderHandsNothingOver(t *testing.T) {
	s := newShop(t)
	s.must(s.desk("ines"), decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	s.pass(2 * time.Second)
	s.flags.becomes(map[string]string{})
	reader := s.desk("")
	if got := s.lacks(reader); len(got) != 1 {
		t.Errorf("a reader sees %v", got)
	}
	if _, err := reader.Reissue(t.Context()); !errors.Is(err, ErrReadOnly) || len(s.flags.tokens) != 0 {
		t.Errorf("a reader writes: %v", err)
	}
}

func TestAStoreThatTakesNothingIsSaid(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 2, Reason: "load"})
	s.pass(2 * time.Second)
	full := &full{flags: s.flags}
	s.flags.becomes(map[string]string{})
	s.flags.note = "it is full and read-only"
	d = s.desk("ines", func(o *Options) { o.Carriers = []Carrier{full} })
	if c := d.Snapshot().Carriers[0]; !c.Connected || !strings.HasPrefix(c.Detail, "it is full and read-only; it lacks ") {
		t.Errorf("the console says %+v", c)
	}
	done, err := d.Reissue(t.Context())
	if err != nil || len(done) != 1 || done[0].State != Unconfirmed || done[0].Detail != "no space" {
		t.Errorf("%+v, %v", done, err)
	}
}

// full is a flag service that can be read only.
type full struct{ *flags }

func (*full) Put(context.Context, string, string) error { return errors.New("no space") }

// An incident is over and its flag service was restored from a backup of before the
// end: what was ended is seen as ended, and its ending is handed over again.
func TestAnOldCopyOfTheStoreBringsNothingBack(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	off := s.must(d, decisions.Ask{Right: "feature-off", Feature: "recommendations", Scope: "checkout", Reason: "slow"})
	old := maps.Clone(s.flags.tokens)
	on := s.must(d, decisions.Ask{Right: "feature-on", Scope: "checkout", Feature: "recommendations", IDs: []string{off.ID}, Reason: "fine again"})
	s.pass(time.Minute)
	if _, err := d.Command(t.Context(), CloseIt, "", "over"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	s.flags.becomes(old)
	s.pass(time.Hour)
	d = s.desk("ines")
	snap := d.Snapshot()
	if len(snap.Live) > 0 || snap.World.Incident.ID != "" || snap.Skew.Lacking > 0 {
		t.Errorf("in force %+v, incident %q, skew %+v", snap.Live, snap.World.Incident.ID, snap.Skew)
	}
	if got := s.lacks(d); !slices.Equal(got, []string{on.ID}) {
		t.Fatalf("missed are %v, want the ending %s", got, on.ID)
	}
	if _, err := d.Reissue(t.Context()); err != nil || s.flags.tokens[on.ID] == "" {
		t.Fatalf("not handed over: %v", err)
	}
	d.Refresh(t.Context())
	if open := d.Snapshot().World.Incident.ID; open != "" {
		t.Errorf("incident %s is open because of it", open)
	}
	read, err := audit.Read(off.Incident, s.state)
	if err != nil {
		t.Fatal(err)
	}
	if lines := audit.Fold(read).Lines; !slices.ContainsFunc(lines, func(l audit.Line) bool { return strings.Contains(l.Text, "handed to flags again") }) {
		t.Error("it is not in the log of its incident")
	}
}

func TestAProposalThatOnlyTheBoardKnowsIsShown(t *testing.T) {
	s := newShop(t)
	asker := s.desk("ines")
	r, err := s.act(asker, decisions.Ask{Right: medium, Reason: "payment-risk answers nobody"})
	if !errors.Is(err, ErrNeeds) || r.State != Proposed {
		t.Fatalf("%+v, %v", r, err)
	}
	elsewhere := func(o *Options) { o.State = t.TempDir() } // another machine, with no log of it
	second := s.desk("fiona", elsewhere)
	snap := second.Snapshot()
	if len(snap.Proposals) != 1 || snap.Proposals[0].Directive.ID != r.ID || snap.Proposals[0].Token != r.Token || !strings.Contains(snap.Proposals[0].Needs, "signature") {
		t.Fatalf("the second person sees %+v", snap.Proposals)
	}
	if w := snap.World.Proposals; len(w) != 1 || w[0].Requester != "ines" || !slices.Equal(w[0].Signers, []string{"ines"}) {
		t.Errorf("in the world: %+v", w)
	}
	a, err := second.ReadProposal(t.Context(), snap.Proposals[0].Token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Cosign(t.Context(), a, true); err != nil {
		t.Fatal(err)
	}
	asker.Refresh(t.Context())
	if left := asker.Snapshot().Proposals; len(left) != 0 {
		t.Errorf("signed by both and carried, and still waiting: %+v", left)
	}
}

func TestABoardIsNotBelieved(t *testing.T) {
	s := newShop(t)
	r, err := s.act(s.desk("ines"), decisions.Ask{Right: medium, Reason: "payment-risk answers nobody"})
	if !errors.Is(err, ErrNeeds) {
		t.Fatal(err)
	}
	good := s.board.proposals[r.ID].Value
	seen := func(proposals map[string]Cell, change ...func(*Options)) int {
		s.board.proposals = proposals
		return len(s.desk("fiona", append(change, func(o *Options) { o.State = t.TempDir() })...).Snapshot().Proposals)
	}
	if n := seen(map[string]Cell{r.ID: {good, 1}}); n != 1 {
		t.Fatalf("the real one is shown %d times", n)
	}
	for what, proposals := range map[string]map[string]Cell{
		"no token":                    {r.ID: {"hello\x1b[2J", 1}},
		"under another id":            {"01JDZ8K3V5Q2M7N9P400000000": {good, 1}},
		"signed by nobody known":      {r.ID: {resigned(t, good, policytest.Key("stranger")), 1}},
		"signed by both, one unknown": {r.ID: {resigned(t, good, s.keys["ines"], policytest.Key("stranger")), 1}},
	} {
		if n := seen(proposals); n != 0 {
			t.Errorf("%s: shown", what)
		}
	}
	revoked := func(o *Options) { o.Bundle = revoking(t, s.bundle, ssh.FingerprintSHA256(s.keys["ines"].PublicKey())) }
	if n := seen(map[string]Cell{r.ID: {good, 1}}, revoked); n != 0 {
		t.Error("signed by a revoked key: shown")
	}
	s.pass(48 * time.Hour)
	if n := seen(map[string]Cell{r.ID: {good, 1}}); n != 0 {
		t.Error("of the day before yesterday: shown")
	}
}

func TestTheBoardsTextIsTakenWhenMoreHaveSignedIt(t *testing.T) {
	s := newShop(t)
	d := s.desk("ines")
	r, err := s.act(d, decisions.Ask{Right: medium, Reason: "payment-risk answers nobody"})
	if !errors.Is(err, ErrNeeds) {
		t.Fatal(err)
	}
	both := resigned(t, r.Token, s.keys["ines"], s.keys["fiona"])
	s.board.proposals[r.ID] = Cell{both, 2}
	d.Refresh(t.Context())
	p := d.Snapshot().Proposals
	if len(p) != 1 || p[0].Token != both || !strings.Contains(p[0].Needs, "ic cosign") {
		t.Errorf("shown: %+v", p)
	}
	s.board.proposals[r.ID] = Cell{resigned(t, r.Token, policytest.Key("stranger"), s.keys["fiona"]), 3}
	d.Refresh(t.Context())
	if p := d.Snapshot().Proposals; len(p) != 1 || p[0].Token != r.Token {
		t.Errorf("a stranger's text has replaced ours: %+v", p)
	}
}

func TestTheListOfHostsIsTheOneOfTheMoment(t *testing.T) {
	s := newShop(t)
	now := Listing{}
	d := s.desk("ines", func(o *Options) {
		o.Hosts = nil
		o.Inventory = func() Listing { return now }
	})
	if snap := d.Snapshot(); len(snap.World.Hosts) != 0 || snap.World.Inventory.Source != "" {
		t.Errorf("%+v", snap.World.Inventory)
	}
	now = Listing{
		Inventory: model.Inventory{Source: "a query", At: s.clock.Now().Wall, Hosts: 1},
		Hosts:     []model.HostView{{Host: "edge-00", Services: []string{"edge"}, Detail: "not asked yet"}},
	}
	d.Refresh(t.Context())
	if snap := d.Snapshot(); len(snap.World.Hosts) != 1 || snap.Skew.Hosts != 1 || snap.World.Inventory.Source != "a query" || !snap.Skew.InventoryAt.Equal(now.Inventory.At) {
		t.Errorf("%+v, %+v", snap.World.Inventory, snap.Skew)
	}
}

func TestTheClockOfTheSignalsIsShown(t *testing.T) {
	s := newShop(t)
	if c := s.desk("ines").Snapshot().SignalsClock; c != (ClockView{}) {
		t.Errorf("where nothing is compared: %+v", c)
	}
	want := ClockView{State: ClocksDiffer, AheadS: -90, At: s.clock.Now().Wall}
	d := s.desk("ines", func(o *Options) { o.SignalsClock = func() ClockView { return want } })
	if c := d.Snapshot().SignalsClock; c != want {
		t.Errorf("%+v", c)
	}
	for text, c := range map[string]ClockView{
		"is 1m30s behind this machine":   want,
		"is 1m30s ahead of this machine": {State: ClocksDiffer, AheadS: 90},
		"agree within 1s":                {State: ClocksAgree},
		"agree within 3s":                {State: ClocksAgree, AheadS: -3},
		"not known yet":                  {State: ClocksUnknown},
	} {
		if !strings.Contains(c.Text(), text) {
			t.Errorf("%+v says %q, want %q", c, c.Text(), text)
		}
	}
}
