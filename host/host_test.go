package host_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/internal/directive"
)

func TestAServiceAsksForItsTierItsFeaturesAndItsItems(t *testing.T) {
	s := newShop(t)
	s.cfg.Directives = strings.Join([]string{s.shed(1), s.bypass(), s.off("product-images")}, " ")
	h := s.open()
	if got := h.Tier("checkout"); got != 1 {
		t.Errorf("tier %d", got)
	}
	for _, c := range []struct {
		feature string
		on      bool
		how     string
	}{
		{"product-images", false, ""},  // by a directive for catalog, to which the policy says that it belongs
		{"recommendations", false, ""}, // by the tier
		{"reviews", true, "the newest three, up to a day old"},
		{"delivery-dates", true, ""},    // no change at this tier
		{"nobody-knows-this", true, ""}, // the default of a feature is today's behaviour
	} {
		if on, how := h.Feature(c.feature); on != c.on || how != c.how {
			t.Errorf("%s is on: %v %q, want %v %q", c.feature, on, how, c.on, c.how)
		}
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
	s.cfg.Directives = s.token(directive.Drill, shed(2))
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

func TestAServiceInAnotherLanguageReadsTheDimmer(t *testing.T) {
	s := newShop(t)
	ask := func(method, path string) string {
		s.t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "http://127.0.0.1:7420"+path, nil)
		r.RemoteAddr = "127.0.0.1:40000"
		h := s.open()
		h.Handler(host.DefaultMaxAge).ServeHTTP(w, r)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		return w.Body.String()
	}
	const flag = "/ofrep/v1/evaluate/flags/dimmer.checkout"
	if got := ask("POST", flag); !strings.HasPrefix(got, `{"key":"dimmer.checkout","value":{"active":false},"reason":"STATIC","variant":"full",`) {
		t.Errorf("without one: %s", got)
	}
	s.cfg.Directives = s.dim(200, 10, 50)
	if got := ask("POST", flag); !strings.HasPrefix(got, `{"key":"dimmer.checkout","value":{"active":true,"targetMs":200,"floor":10,"ceiling":50},"reason":"TARGETING_MATCH","variant":"dimmed",`) {
		t.Errorf("with one: %s", got)
	}
	if got := ask("GET", "/v1/state"); !strings.Contains(got, `"checkout":{"tier":0,"dimmer":{"target_ms":200,"floor":10,"ceiling":50}}`) {
		t.Errorf("the state says %s", got)
	}
}
