package incident

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

func (s *shop) bench(state string) Bench {
	return Bench{Realm: directive.Production, Fleet: policytest.Fleet, State: state, Trusted: func(fp string) (string, bool) {
		who, ok := s.bundle.SignerOf(fp)
		return who.Name, ok
	}}
}

func (s *shop) pack(state, incident string) []byte {
	s.t.Helper()
	var out bytes.Buffer
	if _, err := s.bench(state).Pack(&out, incident, "ines", s.clock.at); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

func (s *shop) unpack(state string, pack []byte) Unpacked {
	s.t.Helper()
	got, err := s.bench(state).Unpack(bytes.NewReader(pack))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// tree is every file below a folder with its content.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(folder, path)
		out[rel] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// night is an incident with a shed, a bypass, a proposal and an offer of command,
// and still being written.
func night(t *testing.T) (s *shop, d *Desk, incident string) {
	s = newShop(t)
	d = s.desk("ines")
	s.must(d, decisions.Ask{Right: "shed", Tier: 1, Reason: "load"})
	s.must(d, decisions.Ask{Right: small, Reason: "risk is down"})
	s.propose(d)
	s.command(d, Offer, "dev")
	return s, d, d.Snapshot().World.Incident.ID
}

// TestAnIncidentGoesToAnotherMachine, is taken over there without any store in
// between, and comes back with what was done.
func TestAnIncidentGoesToAnotherMachine(t *testing.T) {
	s, ines, incident := night(t)
	there := t.TempDir()
	got := s.unpack(there, s.pack(s.state, incident))
	if !got.State.IsOpen() || len(got.State.Issued) != 2 || len(got.State.Proposals) != 1 || got.State.Incident.Lease.OfferedTo != "dev" {
		t.Fatalf("%+v", got)
	}
	dev := s.desk("dev", func(o *Options) { o.State, o.Board, o.Carriers, o.Hosts = there, nil, nil, nil })
	w := dev.Snapshot().World
	if w.Incident.ID != incident || len(w.Proposals) != 1 || w.Proposals[0].Requester != "ines" {
		t.Fatalf("%+v", w.Incident)
	}
	for _, is := range w.Issued {
		if !is.LiveAt(w.Now) {
			t.Errorf("%s is not in force there", is.Directive.ID)
		}
	}
	if l := w.Incident.Lease; l.Holder != "ines" || l.Confirmed {
		t.Errorf("the lease there: %+v", l)
	}
	s.command(dev, Accept, "")
	s.pass(time.Hour)
	if r, err := s.act(dev, decisions.Ask{Right: "recover", Tier: decisions.NextTier, Reason: "calm"}); err != nil || r.ID == "" {
		t.Fatalf("%v %+v", err, r)
	}

	// Back again: the first session has gone on meanwhile, and stays as it is.
	s.must(ines, decisions.Ask{Right: "shed", Tier: 2, Reason: "more of it"})
	back := s.unpack(s.state, s.pack(there, incident))
	states := slices.Sorted(maps.Values(back.Logs))
	if !slices.Equal(states, []string{LogAhead, LogNew}) {
		t.Errorf("%v", back.Logs)
	}
	ines.Refresh(context.Background())
	if l := lease(ines); l.Holder != "dev" {
		t.Errorf("%+v", l)
	}
	if again := s.unpack(there, s.pack(s.state, incident)); !slices.Equal(slices.Sorted(maps.Values(again.Logs)), []string{LogExtended, LogSame}) {
		t.Errorf("%v", again.Logs)
	}
}

func TestAPackHoldsTheLogAndNothingElse(t *testing.T) {
	s, _, incident := night(t)
	for _, other := range []string{"config.yaml", "key", "policy-highest.json", "incidents/" + incident + "/notes.txt"} {
		if err := os.WriteFile(filepath.Join(s.state, other), []byte("SECRET"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, s.state)
	pack := s.pack(s.state, incident)
	if !bytes.Equal(pack, s.pack(s.state, incident)) {
		t.Error("the same logs make another pack")
	}
	for _, f := range contents(t, pack) {
		if strings.Contains(string(f.data), "SECRET") || f.name != packManifest && !strings.HasSuffix(f.name, logExtension) {
			t.Errorf("%s is in the pack", f.name)
		}
	}
	if !maps.Equal(before, tree(t, s.state)) {
		t.Error("packing has left something behind")
	}
	there := t.TempDir()
	s.unpack(there, pack)
	for name := range tree(t, there) {
		if !strings.HasSuffix(name, logExtension) {
			t.Errorf("unpacking has left %s behind", name)
		}
	}
}

// TestATornEndIsNotHandedOver: it was never relied upon.
func TestATornEndIsNotHandedOver(t *testing.T) {
	s, d, incident := night(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	path := logFile(t, s.state, incident)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') // its checkpoint
	if err := os.WriteFile(path, whole[:last+20], 0o600); err != nil {
		t.Fatal(err)
	}
	// A crash before the first write was complete has left this.
	empty := filepath.Join(audit.Folder(s.state, incident), "crashed.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	there := t.TempDir()
	s.unpack(there, s.pack(s.state, incident))
	got, err := os.ReadFile(logFile(t, there, incident))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(whole, got) || len(got) >= last || got[len(got)-1] != '\n' {
		t.Errorf("%d bytes of %d arrived", len(got), len(whole))
	}
}

func logFile(t *testing.T, state, incident string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(audit.Folder(state, incident), "*.jsonl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	return found[0]
}

func TestWhatDoesNotVerifyIsNotHandedOver(t *testing.T) {
	s, d, incident := night(t)
	var out bytes.Buffer
	b := s.bench(s.state)
	if _, err := b.Pack(&out, "no-such-night", "ines", s.clock.at); !errors.Is(err, ErrNeeds) {
		t.Errorf("%v", err)
	}
	if _, err := b.Pack(&out, "../incidents/"+incident, "ines", s.clock.at); err == nil {
		t.Error("a path was packed")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	path := logFile(t, s.state, incident)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Pack(&out, incident, "ines", s.clock.at); !errors.Is(err, ErrIntegrity) {
		t.Errorf("%v", err)
	}
}

// TestAFolderThatCannotBeUsedIsSaid, and nothing is half done.
func TestAFolderThatCannotBeUsedIsSaid(t *testing.T) {
	s, d, incident := night(t)
	pack := s.pack(s.state, incident)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bench(file).Unpack(bytes.NewReader(pack)); err == nil {
		t.Error("unpacked into a file")
	}
	if err := (&stage{folder: t.TempDir()}).moveInto(filepath.Join(file, "incidents", incident), map[string]string{}); err == nil {
		t.Error("moved into a file")
	}
	// Somebody puts a log there between the look and the move.
	st, err := newStage(t.TempDir(), incident, map[string][]byte{"a.jsonl": []byte("new")})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "incidents", incident)
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "a.jsonl"), []byte("theirs"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := st.moveInto(folder, map[string]string{"a.jsonl": LogNew}); err == nil {
		t.Error("the place was taken")
	}
	if got := tree(t, folder)["a.jsonl"]; got != "theirs" {
		t.Errorf("it is %q now", got)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(logFile(t, s.state, incident), audit.MaxSegment+1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bench(s.state).Pack(io.Discard, incident, "ines", s.clock.at); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "which no session writes") {
		t.Errorf("%v", err)
	}
}
