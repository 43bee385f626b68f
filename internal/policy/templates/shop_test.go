package templates_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func TestTheShopHasSixtyHosts(t *testing.T) {
	hosts := templates.ShopHosts(func(host string) string { return "http://127.0.0.1/" + host })
	counts := map[string]int{}
	for _, h := range hosts {
		counts[h.Services[0]]++
		if h.ReportURL != "http://127.0.0.1/"+h.Host {
			t.Errorf("%s reports at %s", h.Host, h.ReportURL)
		}
	}
	if len(hosts) != 60 || counts[templates.Edge] != 12 || counts[templates.Catalog] != 20 || counts[templates.Checkout] != 16 || counts[templates.PaymentRisk] != 12 {
		t.Errorf("%d hosts: %v", len(hosts), counts)
	}
	if hosts[0].Host != "edge-01" || hosts[59].Host != "payment-risk-12" {
		t.Errorf("from %s to %s", hosts[0].Host, hosts[59].Host)
	}
}

func TestTheTestPaceHasNoBoundOverAMinute(t *testing.T) {
	p := templates.TestPace()
	for name, d := range map[string]model.Duration{
		"enter": p.Enter, "enter errors": p.EnterErrors, "leave": p.Leave, "dwell": p.Dwell, "ramp step": p.RampStep, "max age": p.MaxAge, "step": p.Step,
		"small orders": p.SmallOrders, "medium orders": p.MedOrders, "freeze": p.Freeze, "ping": p.Ping, "lead": p.Lead,
	} {
		if d <= 0 || d.Std() > time.Minute {
			t.Errorf("%s is %s", name, d)
		}
	}
}

func TestTheShopNeedsItsPeople(t *testing.T) {
	for _, c := range []struct {
		what string
		bend func(*templates.ShopParams)
		why  string
	}{
		{"a person without a key", func(p *templates.ShopParams) { delete(p.People, templates.Ravi) }, "a public key of ravi"},
		{"no controller", func(p *templates.ShopParams) { p.Machines = nil }, "machine ladder-controller"},
		{"no expiry", func(p *templates.ShopParams) { p.Expires = time.Time{} }, "an expiry"},
		{"no fleet", func(p *templates.ShopParams) { p.Fleet = "" }, "fleet a name"},
		{"one key for two people", func(p *templates.ShopParams) { p.People[templates.Ravi] = p.People[templates.Fiona] }, "one key is listed for"},
	} {
		p := policytest.Params()
		c.bend(&p)
		if _, err := templates.Shop(p); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: got %v, want %q", c.what, err, c.why)
		}
	}
}

func TestTheShopTakesWhatItsWorldSays(t *testing.T) {
	p := policytest.Params()
	p.Version = 7
	p.Hosts = []policy.InventoryHost{{Host: "a", Services: []string{templates.Checkout}, ReportURL: "http://a/report"}}
	p.Git = map[string]string{"repo": "/srv/deploy.git"}
	p.Queries = map[string]string{templates.CPU: "100 * avg(cpu)"}
	_, b, _ := policytest.ShopWith(t, p)
	if b.Domains[policy.Ladder].Version != 7 || len(b.Inventory.Hosts) != 1 || b.Inventory.Hosts[0].ReportURL != "http://a/report" {
		t.Errorf("version %d, hosts %v", b.Domains[policy.Ladder].Version, b.Inventory.Hosts)
	}
	if git := b.Backends["git"].Config; git["repo"] != "/srv/deploy.git" || git["branch"] != "main" {
		t.Errorf("git is configured as %v", git)
	}
	if b.Signals[templates.CPU].Query != "100 * avg(cpu)" || b.Signals[templates.CheckoutP99].Query == "" {
		t.Error("the queries are not the world's")
	}
	// Fewer hosts have larger budgets: the worst case stays the total.
	for name, want := range map[string]int64{"risk-bypass-small-orders": 6000_00, "risk-bypass-medium-orders": 4000_00} {
		if right, _, _ := b.Right(name); right.Bypass.HostTotal.Minor != want {
			t.Errorf("%s: a host lets %s through", name, right.Bypass.HostTotal)
		}
	}
}

func TestSigningStopsAtTheFirstError(t *testing.T) {
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	signing := templates.Signing{Signers: policytest.People(), Rand: policytest.Rand(), Fleet: "other", Version: 1}
	if _, err := templates.Sign(t.TempDir(), files, signing); err == nil || !strings.Contains(err.Error(), `it is for fleet "shop-demo"`) {
		t.Errorf("signed for another fleet: %v", err)
	}
	files["ladder.yaml"] = []byte("v: 1\n")
	if _, err := templates.Sign(t.TempDir(), files, signing); err == nil || !strings.Contains(err.Error(), "ladder.yaml") {
		t.Errorf("a broken document was signed: %v", err)
	}
	delete(files, "roots/1.yaml")
	if _, err := templates.Sign(t.TempDir(), files, signing); err == nil {
		t.Error("a policy without a root was signed")
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := templates.Sign(blocked, files, signing); err == nil {
		t.Error("a file was taken for a folder")
	}
}
