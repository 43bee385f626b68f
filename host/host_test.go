package host_test

import (
	"crypto/rand"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/oklog/ulid/v2"
)

// shop is a policy that is in force today, and what a host by it needs.
type shop struct {
	t      *testing.T
	bundle *policy.Bundle
	cfg    host.Config
}

func newShop(t *testing.T) *shop {
	p := policytest.Params()
	p.Expires = time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour)
	dir := t.TempDir()
	opts := policytest.Write(t, dir, p)
	bundle, _, err := policy.LoadDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t: t, bundle: bundle, cfg: host.Config{
		Fleet: policytest.Fleet, Name: "checkout-01", Services: []string{"checkout"},
		Policy: dir, RootSHA256: opts.RootSHA256, State: filepath.Join(t.TempDir(), "state"),
	}}
}

func (s *shop) open() *host.Host {
	s.t.Helper()
	h, err := host.Open(s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = h.Close() })
	return h
}

func (s *shop) token(realm directive.Realm, d model.Directive) string {
	s.t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	d.ID, d.Fleet, d.Incident, d.IssuedAt, d.NotBefore = ulid.Make().String(), policytest.Fleet, "inc-1", now, now
	d.Policy, d.Log = s.bundle.Ref, model.LogHead{Origin: policytest.Fleet + "/inc-1/s1", Root: strings.Repeat("0", 64)}
	if d.Kind == model.Bypass {
		right, _, _ := s.bundle.Right(d.Right)
		b := right.Bypass
		d.Control, d.NotAfter = b.Control, now.Add(b.Lasts.Std())
		d.Caps = model.Caps{Under: b.Under, HostCount: 2, HostTotal: b.HostTotal, Total: b.Total}
	}
	payload, err := directive.Encode(d)
	if err != nil {
		s.t.Fatal(err)
	}
	sig, err := directive.Sign(policytest.Key(templates.Ines), rand.Reader, payload, realm, policytest.Fleet)
	if err != nil {
		s.t.Fatal(err)
	}
	token, err := directive.Token(payload, sig)
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

func (s *shop) shed(tier int) string {
	return s.token(directive.Production, model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: tier, Right: "shed"})
}

func (s *shop) bypass() string {
	return s.token(directive.Production, model.Directive{Kind: model.Bypass, Scope: "checkout", Right: "risk-bypass-small-orders"})
}

func TestAServiceAsksForItsTierItsFeaturesAndItsItems(t *testing.T) {
	s := newShop(t)
	off := s.token(directive.Production, model.Directive{Kind: model.Off, Scope: "catalog", Feature: "recommendations", Right: "feature-off"})
	s.cfg.Directives = strings.Join([]string{s.shed(2), s.bypass(), off}, " ")
	h := s.open()
	if got := h.Tier("checkout"); got != 2 {
		t.Errorf("tier %d", got)
	}
	if !h.Off("recommendations") { // of catalog, by the policy
		t.Error("recommendations are still on")
	}
	if h.Off("reviews") {
		t.Error("a feature is off that nobody has switched off")
	}
	for _, c := range []struct {
		control  string
		minor    int64
		currency string
		ok       bool
		reason   string
	}{
		{"payment-risk", 4999, "USD", true, ""},
		{"payment-risk", 5000, "USD", false, host.OverAmount},
		{"payment-risk", 4999, "EUR", false, host.OverAmount},
		{"fraud", 1, "USD", false, host.Closed},
		{"payment-risk", 1, "USD", true, ""},
		{"payment-risk", 1, "USD", false, host.BudgetSpent},
	} {
		if ok, reason := h.Allow(c.control, c.minor, c.currency); ok != c.ok || reason != c.reason {
			t.Errorf("%d %s under %s: %v %q, want %v %q", c.minor, c.currency, c.control, ok, reason, c.ok, c.reason)
		}
	}
}

func TestAHostRemembersOverARestartWithoutAnySource(t *testing.T) {
	s := newShop(t)
	s.cfg.Directives = s.shed(3) + " " + s.bypass()
	h := s.open()
	if _, err := host.Open(s.cfg); err == nil {
		t.Error("two hosts share a state folder")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Directives = ""
	h = s.open()
	if h.Tier("checkout") != 3 || h.Condition() != "ok" {
		t.Errorf("tier %d, condition %s", h.Tier("checkout"), h.Condition())
	}
	if ok, reason := h.Allow("payment-risk", 100, "USD"); !ok {
		t.Errorf("the bypass is forgotten: %s", reason)
	}
}

func TestAHostWithoutAFolderOpensNothing(t *testing.T) {
	s := newShop(t)
	s.cfg.State = ""
	s.cfg.Directives = s.shed(1) + " " + s.bypass()
	h := s.open()
	if h.Tier("checkout") != 1 || h.Condition() != "volatile" {
		t.Errorf("tier %d, condition %s", h.Tier("checkout"), h.Condition())
	}
	if ok, reason := h.Allow("payment-risk", 100, "USD"); ok || reason != host.Closed {
		t.Errorf("allow says %v %s", ok, reason)
	}
}

func TestADamagedFolderStartsAndSaysSo(t *testing.T) {
	s := newShop(t)
	s.cfg.Directives = s.shed(3)
	if err := s.open().Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(s.cfg.State, "state.*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte("noise"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.cfg.Directives = ""
	var mu sync.Mutex
	var told []string
	s.cfg.Log = func(line string) { mu.Lock(); told = append(told, line); mu.Unlock() }
	h := s.open()
	mu.Lock()
	defer mu.Unlock()
	if h.Condition() != "safe-defaults" || len(told) == 0 || h.Tier("checkout") != 0 {
		t.Errorf("condition %s, tier %d, told %q", h.Condition(), h.Tier("checkout"), told)
	}
}

func TestADrillHostBelievesDrillsOnly(t *testing.T) {
	s := newShop(t)
	s.cfg.Directives = s.token(directive.Drill, model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: 2, Right: "shed"})
	if got := s.open().Tier("checkout"); got != 0 {
		t.Errorf("a drill's signature sheds production to tier %d", got)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	s := newShop(t)
	for name, change := range map[string]func(*host.Config){
		"no service":      func(c *host.Config) { c.Services = nil },
		"no policy there": func(c *host.Config) { c.Policy = filepath.Join(c.Policy, "absent") },
		"another pin":     func(c *host.Config) { c.RootSHA256 = strings.Repeat("1", 64) },
		"no name":         func(c *host.Config) { c.Name = "" },
	} {
		cfg := s.cfg
		change(&cfg)
		if h, err := host.Open(cfg); err == nil {
			t.Errorf("%s: it opens", name)
			_ = h.Close()
		}
	}
}

func TestTheReportIsServed(t *testing.T) {
	s := newShop(t)
	h := s.open()
	w := httptest.NewRecorder()
	h.Handler(host.DefaultMaxAge).ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"host":"checkout-01"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
