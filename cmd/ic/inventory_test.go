package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

const hostQueryText = `ic_hosts`

// answering is a Prometheus that knows two hosts: one is asked directly, of the
// other it has no report.
func answering(t *testing.T, reportURL string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result := []any{}
		if r.FormValue("query") == hostQueryText {
			for _, labels := range []map[string]string{
				{"host": "checkout-01", "service": "checkout", "report_url": reportURL}, {"host": "edge-01", "service": "edge"},
			} {
				result = append(result, map[string]any{"metric": labels, "value": [2]any{policytest.Now().Unix(), "0"}})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": result}})
	}))
	t.Cleanup(s.Close)
	return s
}

func reporting(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(model.Report{V: 1, Fleet: policytest.Fleet, Host: "checkout-01", Services: []string{"checkout"}, Posture: directive.Posture(nil)})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTheInventoryIsAskedOfPrometheusAndRememberedWithoutIt(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	b.Inventory = policy.Inventory{Query: hostQueryText, MaxAge: model.Duration(time.Hour)}
	metrics := answering(t, reporting(t).URL+"/report")
	c := config{Fleet: policytest.Fleet, State: t.TempDir(), Prometheus: metrics.URL}
	at := policytest.Now()
	sitDown := func() *hostList {
		a, s := &app{getenv: func(string) string { return "" }}, &seat{clock: stopped(at)}
		source, err := a.prometheus(c, s)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.hostsOf(c, b, s, source)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := sitDown()
	if got := l.listing(); got.Inventory.Hosts != 0 || !got.Inventory.At.IsZero() {
		t.Errorf("before anybody was asked: %+v", got)
	}
	views := l.reader()(t.Context())
	if len(views) != 2 || views[0].Host != "checkout-01" || views[0].Report == nil || views[0].Via != fleet.ViaDirect {
		t.Fatalf("%+v", views)
	}
	if v := views[1]; v.Host != "edge-01" || v.Reachable || v.Via != fleet.ViaPrometheus || v.Detail == "" {
		t.Errorf("a host without an address: %+v", v)
	}
	if got := l.listing().Inventory; got.Hosts != 2 || !got.At.Equal(at) || got.Detail != "" || got.MaxAge != b.Inventory.MaxAge || got.Source != "the policy's query" {
		t.Errorf("%+v", got)
	}

	metrics.Close()
	at = at.Add(2 * time.Hour)
	l = sitDown() // another start
	views = l.reader()(t.Context())
	if len(views) != 2 || views[0].Report == nil {
		t.Errorf("without Prometheus: %+v", views)
	}
	inv := l.listing().Inventory
	if inv.Hosts != 2 || !strings.Contains(inv.Detail, "last list that is known: Prometheus cannot be asked: connection refused") || !tooOld(&inv, at) {
		t.Errorf("without Prometheus: %+v", inv)
	}
	if text := inventoryText(&inv, at); !strings.HasPrefix(text, "2 hosts by the policy's query, 2h0m0s old and at most 1h by the policy: ") {
		t.Errorf("it is told as %q", text)
	}
	if err := os.Remove(filepath.Join(c.State, rosterFile)); err != nil {
		t.Fatal(err)
	}
	c.Prometheus = ""
	l = sitDown()
	if views := l.reader()(context.Background()); len(views) != 0 {
		t.Errorf("hosts out of nothing: %+v", views)
	}
	if inv := l.listing().Inventory; inventoryText(&inv, at) != "by the policy's query: there is no list: no prometheus is configured" {
		t.Errorf("%+v", inv)
	}
}

func TestAFixedInventoryAsksNobody(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	a, s := &app{}, &seat{clock: stopped(policytest.Now())}
	l, err := a.hostsOf(config{Fleet: policytest.Fleet}, b, s, nil)
	if err != nil || l.listing().Inventory.Hosts != len(b.Inventory.Hosts) || len(b.Inventory.Hosts) == 0 || l.reader() == nil {
		t.Errorf("of the policy: %+v, %v", l, err)
	}
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	if err := os.WriteFile(file, []byte("max_age: 90s\nhosts:\n  - host: edge-09\n    services: [edge]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Inventory.Query = "up" // a file that was named counts more
	l, err = a.hostsOf(config{Fleet: policytest.Fleet, Inventory: file}, b, s, nil)
	if err != nil || l.listing().Inventory.Hosts != 1 || l.listing().Inventory.MaxAge != model.Duration(90*time.Second) {
		t.Errorf("of a file: %+v, %v", l.listing(), err)
	}
	b.Inventory = policy.Inventory{}
	if l, err = a.hostsOf(config{Fleet: policytest.Fleet}, b, s, nil); err != nil || l.reader() != nil {
		t.Error("where there are no hosts somebody is asked")
	}
}

func TestAQueryThatCannotBeReadIsFoundWhenThePolicyIsLoaded(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	if flaws := queryFlaws(b); len(flaws) != 0 {
		t.Fatalf("of the example policy: %v", flaws)
	}
	b.Inventory.Query = "sum("
	for name, signal := range b.Signals {
		signal.Query = "up"
		b.Signals[name] = signal
		break
	}
	var lines []string
	examineQueries(b, func(name string, ok bool, detail, remedy string) {
		if ok {
			t.Errorf("%s is fine", name)
		}
		lines = append(lines, name+": "+detail)
	})
	if said := strings.Join(lines, "\n"); len(lines) != 2 || !strings.Contains(said, "several series") || !strings.Contains(said, "query of the inventory: not PromQL") {
		t.Errorf("the doctor says %q", lines)
	}
}

// TestAListIsAsOldAsWhatItStandsIn: one in the signed policy holds while the policy
// does, one in a file is as old as the file.
func TestAListIsAsOldAsWhatItStandsIn(t *testing.T) {
	now := policytest.Now()
	clock := stopped(now)
	a, s := &app{}, &seat{clock: &clock}
	b := &policy.Bundle{Inventory: policy.Inventory{MaxAge: model.Duration(time.Hour), Hosts: []policy.InventoryHost{{Host: "a1", Services: []string{"checkout"}}}}}
	signed, err := a.hostsOf(config{Fleet: "acme"}, b, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hosts.yaml")
	text := "hosts:\n  - host: a1\n    services: [checkout]\n    report_url: http://a1.example/report\nmax_age: 1h\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, now, now.Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	written, err := a.hostsOf(config{Fleet: "acme", Inventory: file}, b, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	clock = stopped(now.Add(8 * time.Hour))
	if inv := signed.listing().Inventory; tooOld(&inv, clock.Now().Wall) || !inv.At.Equal(clock.Now().Wall) {
		t.Errorf("of the policy: %+v", inv)
	}
	if inv := written.listing().Inventory; !inv.At.Equal(now.Add(-2*time.Hour)) || !tooOld(&inv, clock.Now().Wall) || inv.MaxAge != model.Duration(time.Hour) {
		t.Errorf("of a file: %+v", inv)
	}

	// The file is written anew, and then it is nonsense.
	for _, c := range []struct {
		text  string
		hosts int
		said  string
	}{{strings.Replace(text, "host: a1", "host: a2", 1), 1, ""}, {"hosts: 7\n", 1, "hosts.yaml"}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		known := written.ask(t.Context())
		if inv := written.listing().Inventory; known.Hosts[0].Name != "a2" || inv.Hosts != c.hosts || !strings.Contains(inv.Detail, c.said) || (c.said == "") != (inv.Detail == "") {
			t.Errorf("after %q: %+v, %+v", c.text, known, inv)
		}
	}
}
