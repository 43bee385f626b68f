package hostrun_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/oklog/ulid/v2"
)

const patience = time.Minute // a machine that is busy with other tests is slow

// clock is a host's clock, half past two and moved by hand.
type clock struct {
	mu  sync.Mutex
	now model.Instant
}

func newClock() *clock {
	return &clock{now: model.Instant{Wall: policytest.Now(), Boot: time.Hour, BootID: "boot", State: model.ClockOK}}
}

func (c *clock) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Wall, c.now.Boot = c.now.Wall.Add(d), c.now.Boot+d
}

// shop is a signed policy in a folder and a host that may run by it.
type shop struct {
	t      *testing.T
	dir    string
	pin    string
	bundle *policy.Bundle
	state  string
	clock  *clock
	told   chan string
}

func newShop(t *testing.T) *shop {
	dir := t.TempDir()
	opts := policytest.Write(t, dir, policytest.Params())
	bundle, _, err := policy.LoadDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, dir: dir, pin: opts.RootSHA256, bundle: bundle, state: filepath.Join(t.TempDir(), "state"), clock: newClock(), told: make(chan string, 64)}
}

func (s *shop) config() hostrun.Config {
	s.t.Helper()
	folder, err := engine.OpenDir(s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	return hostrun.Config{
		Engine: engine.Config{
			Fleet: policytest.Fleet, Host: "checkout-01", Services: []string{"checkout"}, Realm: directive.Production,
			Folder: folder, Rand: rand.Reader, Software: "test",
		},
		Policy: &hostrun.Policy{
			Dir: s.dir, Fleet: policytest.Fleet, RootSHA256: s.pin, Realm: directive.Production,
			Remember: filepath.Join(s.state, "policy.json"),
		},
		Clock: s.clock, FileEvery: 2 * time.Millisecond, PolicyEvery: 2 * time.Millisecond,
		Tell: func(line string) { s.told <- line },
	}
}

func (s *shop) start(cfg hostrun.Config) *hostrun.Runner {
	s.t.Helper()
	r, err := hostrun.Start(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = r.Stop() })
	return r
}

// wait is until ok, looked at whenever the host may have changed.
func (s *shop) wait(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

// hears waits for a line that was told.
func (s *shop) hears(part string) {
	s.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line := <-s.told:
			if strings.Contains(line, part) {
				return
			}
		case <-limit:
			s.t.Fatalf("nobody was told of %q in %s", part, patience)
		}
	}
}

func (s *shop) sign(d model.Directive, names ...string) (id, token string) {
	s.t.Helper()
	d.ID, d.Fleet, d.Incident = ulid.Make().String(), policytest.Fleet, "inc-1"
	d.IssuedAt = s.clock.Now().Wall
	d.NotBefore = d.IssuedAt
	d.Policy = s.bundle.Ref
	d.Log = model.LogHead{Origin: policytest.Fleet + "/inc-1/s1", Root: strings.Repeat("0", 64)}
	payload, err := directive.Encode(d)
	if err != nil {
		s.t.Fatal(err)
	}
	var sigs []sshsig.Signature
	for _, name := range names {
		sig, err := directive.Sign(policytest.Key(name), rand.Reader, payload, directive.Production, policytest.Fleet)
		if err != nil {
			s.t.Fatal(err)
		}
		sigs = append(sigs, sig)
	}
	if token, err = directive.Token(payload, sigs...); err != nil {
		s.t.Fatal(err)
	}
	return d.ID, token
}

func (s *shop) shed(tier int) (id, token string) {
	return s.sign(model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: tier, Right: "shed"}, templates.Ines)
}

func (s *shop) bypass() (id, token string) {
	s.t.Helper()
	right, _, ok := s.bundle.Right("risk-bypass-small-orders")
	if !ok {
		s.t.Fatal("the right is not in force")
	}
	b := right.Bypass
	return s.sign(model.Directive{
		Kind: model.Bypass, Scope: "checkout", Control: b.Control, Right: "risk-bypass-small-orders",
		Caps:     model.Caps{Under: b.Under, HostCount: b.HostCount, HostTotal: b.HostTotal, Total: b.Total},
		NotAfter: s.clock.Now().Wall.Add(b.Lasts.Std()),
	}, templates.Ines)
}

func tier(r *hostrun.Runner) int { return r.Engine().Tier("checkout", r.Now()) }

func present(r *hostrun.Runner, source string) []string {
	for _, s := range r.Report().Sources {
		if s.Name == source {
			return s.PresentIDs
		}
	}
	return nil
}

// deadEndpoint is an address at which nobody answers.
func deadEndpoint(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return "http://" + l.Addr().String()
}

func TestWhatIsOnDiskIsInForceBeforeAnyNetworkIsAsked(t *testing.T) {
	s := newShop(t)
	_, shedding := s.shed(2)
	_, opening := s.bypass()
	cfg := s.config()
	cfg.Env = shedding + " " + opening
	r := s.start(cfg)
	if tier(r) != 2 {
		t.Fatal("the environment was not taken")
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}

	cfg = s.config()
	cfg.Etcd = []string{deadEndpoint(t)}
	r = s.start(cfg)
	if tier(r) != 2 || !r.Engine().IsOpen("payment-risk", "checkout", r.Now()) {
		t.Error("a host without its flag service has forgotten what it knew")
	}
	s.wait("the dead flag service in the report", func() bool {
		sources := r.Report().Sources
		return len(sources) == 1 && sources[0].Name == hostrun.FromEtcd && sources[0].AgeS == -1 && sources[0].Error != "" && sources[0].Error != "not read yet"
	})
	s.clock.pass(time.Hour)
	if r.Engine().IsOpen("payment-risk", "checkout", r.Now()) {
		t.Error("a bypass outlives its end")
	}
}

func TestAFileIsReadAndTakesNothingBack(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	cfg.File = filepath.Join(t.TempDir(), "ic.directives")
	r := s.start(cfg)
	s.wait("the first read of an empty place", func() bool { return len(r.Report().Sources) == 1 && r.Report().Sources[0].AgeS == 0 })
	id, token := s.shed(3)
	if err := os.WriteFile(cfg.File, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.wait("the shed", func() bool { return tier(r) == 3 })
	if ids := present(r, hostrun.FromFile); !slices.Equal(ids, []string{id}) {
		t.Errorf("the file carries %v", ids)
	}
	if err := os.Remove(cfg.File); err != nil {
		t.Fatal(err)
	}
	s.wait("the file's removal", func() bool { return len(present(r, hostrun.FromFile)) == 0 })
	if tier(r) != 3 {
		t.Error("a removed file has lifted a shed")
	}
	if err := os.Mkdir(cfg.File, 0o700); err != nil {
		t.Fatal(err)
	}
	s.wait("the failed read", func() bool { return r.Report().Sources[0].Error != "" })
}

func TestANewPolicyIsTakenWhenItVerifies(t *testing.T) {
	s := newShop(t)
	r := s.start(s.config())
	manifest := filepath.Join(s.dir, policy.ManifestFileName)
	good, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, append(slices.Clone(good), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	s.hears("stays in force")
	if v := r.Report().Policy.Version; v != 1 {
		t.Errorf("policy version %d is in force", v)
	}
	second := s.publish(2)
	s.hears("policy version 2 is in force")
	s.wait("version 2 in the report", func() bool { return r.Report().Policy.Version == 2 })
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}

	// The old one, signed as well as ever, is not taken again, not after a start either.
	s.publish(1)
	if _, err := hostrun.Start(s.config()); err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("a rolled-back policy: %v", err)
	}
	s.publish(2)
	if got, err := os.ReadFile(manifest); err != nil || string(got) != string(second) {
		t.Fatal("publishing twice does not give the same bytes")
	}
	s.start(s.config()) // and the folder was given free by the start that failed
}

// publish signs the policy under another version of the manifest.
func (s *shop) publish(version int64) []byte {
	s.t.Helper()
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := templates.Sign(s.dir, files, templates.Signing{
		Signers: policytest.People(), Rand: policytest.Rand(), Realm: directive.Production, Fleet: policytest.Fleet, Version: version,
	}); err != nil {
		s.t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, policy.ManifestFileName))
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

func TestADamagedMemoryOfVersionsDoesNotKeepAHostFromStarting(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	if err := os.WriteFile(cfg.Policy.Remember, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(cfg)
	s.hears("memory of policy versions is not used")
}

func TestAWrongConfigurationDoesNotStartAndGivesTheFolderFree(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*hostrun.Config){
		"another pin":     func(c *hostrun.Config) { c.Policy.RootSHA256 = strings.Repeat("0", 64) },
		"another fleet":   func(c *hostrun.Config) { c.Engine.Fleet = "other" },
		"no host":         func(c *hostrun.Config) { c.Engine.Host = "" },
		"no etcd address": func(c *hostrun.Config) { c.Etcd = []string{"nowhere"} },
	} {
		cfg := s.config()
		change(&cfg)
		if r, err := hostrun.Start(cfg); err == nil {
			t.Errorf("%s: it starts", name)
			_ = r.Stop()
		}
	}
	s.start(s.config())
}

func TestADiskThatFailsAndWorksAgainIsTold(t *testing.T) {
	s := newShop(t)
	disk := engine.NewMemory()
	cfg := s.config()
	if err := cfg.Engine.Folder.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.Engine.Folder, cfg.Policy.Remember = disk, ""
	r := s.start(cfg)
	disk.Fail(fmt.Errorf("no space left"))
	_, token := s.shed(1)
	r.Engine().Offer("test", token, r.Now())
	s.hears("no space left")
	disk.Fail(nil)
	s.clock.pass(time.Minute)
	s.hears("state folder: works again")
	if state := r.Report().State; state != string(engine.StateOK) {
		t.Errorf("state is %s", state)
	}
}
