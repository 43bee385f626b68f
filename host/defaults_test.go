package host_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/host"
	"github.com/degradedmode/ic/host/fallback"
	"github.com/degradedmode/ic/internal/drill/flagservice"
)

const patience = 20 * time.Second

var declared = &host.Defaults{Tiers: map[string]int{"checkout": 2}, Off: []string{"delivery-dates"}}

// wantDefaults compares with what is declared, or with normal operation.
func wantDefaults(t *testing.T, h *host.Host, condition string, count bool) {
	t.Helper()
	on, _ := h.Feature("delivery-dates")
	if h.Condition() != condition || (h.Tier("checkout") == 2) != count || on == count || h.State().Defaults != count {
		t.Errorf("condition %s, tier %d, delivery dates on %v, defaults %v; want %s, %v", h.Condition(), h.Tier("checkout"), on, h.State().Defaults, condition, count)
	}
	if h.Tier("edge") != 0 {
		t.Errorf("a service without a default is at tier %d", h.Tier("edge"))
	}
	if other, how := h.Feature("place-order"); !other || how != "" {
		t.Errorf("a feature without a default is not as it is today: %v %q", other, how)
	}
}

// dead is a flag service that is down.
func dead(t *testing.T) *flagservice.Service {
	t.Helper()
	flags, err := flagservice.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(flags.Kill)
	flags.Kill()
	return flags
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not in %s", what, patience)
		}
	}
}

func TestDeclaredDefaultsCountUntilSomethingCouldBeRead(t *testing.T) {
	t.Parallel() // hosts come back to a flag service spread over seconds
	s := newShop(t)
	flags := dead(t)
	s.cfg.Defaults, s.cfg.Etcd = declared, []string{flags.Endpoint()}
	h := s.open() // with a new folder, and nobody to ask
	wantDefaults(t, h, host.Unread, true)
	if err := flags.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, "the end of the defaults", func() bool { return !h.State().Defaults })
	wantDefaults(t, h, "ok", false)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	flags.Kill()
	wantDefaults(t, s.open(), "ok", false) // what its folder says, though it is nothing
}

func TestWithoutAFlagServiceTheFileEndsTheDefaults(t *testing.T) {
	s := newShop(t)
	s.cfg.Defaults, s.cfg.State = declared, ""
	s.cfg.File = filepath.Join(t.TempDir(), "absent", "directives")
	h := s.open()
	wantDefaults(t, h, host.Unread, true)
	if err := os.Mkdir(filepath.Dir(s.cfg.File), 0o700); err != nil {
		t.Fatal(err)
	}
	wait(t, "the end of the defaults", func() bool { return !h.State().Defaults })
	wantDefaults(t, h, "volatile", false)
}

func TestADamagedFolderFallsBackToTheDefaultsAndToNothingWorse(t *testing.T) {
	s := newShop(t)
	s.cfg.Directives = s.shed(1) + " " + s.bypass()
	if err := s.open().Close(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Directives = ""
	names, err := filepath.Glob(filepath.Join(s.cfg.State, "state.*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if err := os.WriteFile(name, []byte("noise"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.cfg.Defaults, s.cfg.Etcd = declared, []string{dead(t).Endpoint()}
	h := s.open()
	wantDefaults(t, h, "safe-defaults", true)
	if ok, why := h.Allow("payment-risk", 1, "USD"); ok || why != host.Closed {
		t.Errorf("the control is open: %v %s", ok, why)
	}
}

func TestDefaultsNeverLiftWhatIsInForce(t *testing.T) {
	s := newShop(t)
	s.cfg.Defaults = &host.Defaults{}
	s.cfg.Etcd = []string{dead(t).Endpoint()}
	s.cfg.Directives = s.shed(3) + " " + s.off("product-images")
	h := s.open()
	if on, _ := h.Feature("product-images"); h.Tier("checkout") != 3 || on || h.Condition() != host.Unread {
		t.Errorf("tier %d, images on %v, condition %s", h.Tier("checkout"), on, h.Condition())
	}
}

func TestWithDefaultsAHostStartsWithoutAPolicyAndTakesItWhenItComes(t *testing.T) {
	s := newShop(t)
	manifest := filepath.Join(s.cfg.Policy, "manifest.yaml")
	good, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, []byte("v: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 16)
	s.cfg.Defaults, s.cfg.Log = declared, func(line string) { told <- line }
	s.cfg.Directives = s.shed(3) + " " + s.bypass()
	s.cfg.RetryEvery(5 * time.Millisecond)
	h := s.open()
	if line := <-told; !strings.Contains(line, "declared defaults count") {
		t.Errorf("told %q", line)
	}
	wantDefaults(t, h, host.NoPolicy, true)
	if ok, why := h.Allow("payment-risk", 1, "USD"); ok || why != host.Closed || h.PolicyVersion() != "" {
		t.Errorf("without a policy the control is open: %v %s by %s", ok, why, h.PolicyVersion())
	}
	if _, ok := h.Dimmer("checkout"); ok {
		t.Error("without a policy there is a dimmer")
	}
	changes := h.Watch(t.Context())
	if first := <-changes; !first.New.Defaults || first.New.Tiers["checkout"] != 2 {
		t.Errorf("the first change is %+v", first)
	}
	handler := h.Handler(host.DefaultMaxAge)
	for path, want := range map[string]int{"/healthz": 200, "/report": 503, "/freshz": 503, "/metrics": 200} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s says %d, want %d", path, w.Code, want)
		}
	}
	if err := os.WriteFile(manifest, good, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case c := <-changes:
		if c.Old.Tiers["checkout"] != 2 || c.New.Tiers["checkout"] != 3 || c.New.Defaults || c.New.Policy == "" {
			t.Errorf("the policy brings %+v", c)
		}
	case <-time.After(patience):
		t.Fatal("the policy is not taken")
	}
	if ok, why := h.Allow("payment-risk", 1, "USD"); !ok || h.Condition() != "ok" {
		t.Errorf("with the policy the bypass is not open: %s, %s", why, h.Condition())
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/report", nil))
	if w.Code != 200 {
		t.Errorf("/report says %d", w.Code)
	}
}

func TestDefaultsExcuseNothingButTheLackOfAPolicy(t *testing.T) {
	s := newShop(t)
	s.cfg.Defaults = declared
	s.open()
	if h, err := host.Open(s.cfg); err == nil {
		t.Error("two hosts share a state folder")
		_ = h.Close()
	}
	s.cfg.State, s.cfg.Name = "", ""
	if h, err := host.Open(s.cfg); err == nil {
		t.Error("a host without a name opens")
		_ = h.Close()
	}
}

func TestAHostWithoutAPolicyCloses(t *testing.T) {
	s := newShop(t)
	good := s.cfg.Policy
	s.cfg.Defaults, s.cfg.Policy = declared, filepath.Join(t.TempDir(), "absent")
	s.cfg.RetryEvery(time.Millisecond)
	if err := s.open().Close(); err != nil {
		t.Error(err)
	}
	s.cfg.Policy = good
	wantDefaults(t, s.open(), "ok", false) // the state folder is free
}

func TestWhatIsCountedIsServedBesideTheReport(t *testing.T) {
	s := newShop(t)
	counters, err := fallback.New(fallback.Config{})
	if err != nil {
		t.Fatal(err)
	}
	counters.Count("reviews", fallback.Timeout)
	w := httptest.NewRecorder()
	s.open().Handler(host.DefaultMaxAge, counters).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{`ic_fallback_total{dependency="reviews",reason="timeout"} 1`, `ic_host_posture_info{fleet="shop-demo"`} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("%s is missing in\n%s", line, w.Body)
		}
	}
}
