package hostrun_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// served is a host that answers over HTTP.
func served(t *testing.T) (*shop, *hostrun.Runner, http.Handler) {
	s := newShop(t)
	_, shedding := s.shed(2)
	_, opening := s.bypass()
	_, off := s.sign(model.Directive{Kind: model.Off, Scope: "checkout", Feature: "recommendations", Right: "feature-off"}, "ines")
	_, elsewhere := s.sign(model.Directive{Kind: model.Off, Scope: "catalog", Feature: "reviews", Right: "feature-off"}, "ines")
	cfg := s.config()
	cfg.Env = strings.Join([]string{shedding, opening, off, elsewhere}, " ")
	cfg.File = filepath.Join(t.TempDir(), "ic.directives")
	r := s.start(cfg)
	s.wait("the file", func() bool { return r.Report().Sources[1].AgeS == 0 })
	if n := len(r.Report().Refused); n != 0 {
		t.Fatalf("refused: %+v", r.Report().Refused)
	}
	return s, r, r.Handler(5 * time.Minute)
}

// call asks as a service on this machine does.
func call(h http.Handler, method, path, body string, change ...func(*http.Request)) (int, string) {
	req := httptest.NewRequest(method, "http://127.0.0.1:7070"+path, strings.NewReader(body))
	req.RemoteAddr = "127.0.0.1:40000"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	text, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(text)
}

func TestTheReportIsWhatTheConsoleReads(t *testing.T) {
	_, r, h := served(t)
	code, body := call(h, "GET", "/report", "")
	report, err := fleet.ParseReport([]byte(body), policytest.Fleet, "checkout-01")
	if code != http.StatusOK || err != nil {
		t.Fatalf("%d: %v", code, err)
	}
	if report.Posture != r.Report().Posture || len(report.Live) != 4 || report.Versions.IC != "test" {
		t.Errorf("report: %+v", report)
	}
	code, body = call(h, "GET", "/metrics", "")
	if code != http.StatusOK || !strings.Contains(body, `posture="`+report.Posture+`"`) {
		t.Errorf("%d: %s", code, body)
	}
}

func TestAServiceReadsItsTierAndAsksForItsItems(t *testing.T) {
	s, _, h := served(t)
	code, body := call(h, "GET", "/v1/state", "")
	var state hostrun.State
	if err := json.Unmarshal([]byte(body), &state); err != nil || code != http.StatusOK {
		t.Fatalf("%d: %v in %s", code, err, body)
	}
	if len(state.Services) != 1 || state.Services["checkout"].Tier != 2 || state.Features["recommendations"] != (hostrun.FeatureState{By: hostrun.ByDirective}) {
		t.Errorf("state: %s", body)
	}
	if len(state.Bypasses) != 1 || state.Bypasses[0].Control != "payment-risk" || !state.Bypasses[0].Until.Equal(s.clock.Now().Wall.Add(15*time.Minute)) {
		t.Errorf("bypasses: %s", body)
	}
	const open = `{"allowed":true,"expires_at":"2026-11-30T02:45:00Z"}`
	for _, c := range []struct{ ask, want string }{
		{`{"control":"payment-risk","service":"checkout","amount":"49.99 USD"}`, open},
		{`{"control":"payment-risk","service":"checkout","amount":{"minor":4999,"currency":"USD"}}`, open},
		{`{"control":"payment-risk","amount":{"minor":4999,"currency":"USD"}}`, open},
		{`{"control":"payment-risk","amount":{"minor":5000,"currency":"USD"}}`, `{"allowed":false,"reason":"over-amount"}`},
		{`{"control":"payment-risk","amount":{"minor":-1,"currency":"USD"}}`, `{"allowed":false,"reason":"over-amount"}`},
		{`{"control":"payment-risk","service":"checkout","amount":"50.00 USD"}`, `{"allowed":false,"reason":"over-amount"}`},
		{`{"control":"payment-risk","service":"edge","amount":"1.00 USD"}`, `{"allowed":false,"reason":"closed"}`},
	} {
		if code, body := call(h, "POST", "/v1/allow", c.ask); code != http.StatusOK || strings.TrimSpace(body) != c.want {
			t.Errorf("%s: %d %s", c.ask, code, body)
		}
	}
	s.clock.pass(15 * time.Minute)
	if _, body := call(h, "POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":"1.00 USD"}`); strings.TrimSpace(body) != `{"allowed":false,"reason":"closed"}` {
		t.Errorf("after its end: %s", body)
	}
}

func TestWhatIsNoQuestionIsRefusedAndCountsNothing(t *testing.T) {
	_, r, h := served(t)
	const good = `{"control":"payment-risk","service":"checkout","amount":"1.00 USD"}`
	const flags = "/ofrep/v1/evaluate/flags"
	for name, c := range map[string]struct {
		method, path, body string
		change             func(*http.Request)
		code               int
	}{
		"two questions":       {"POST", "/v1/allow", good + good, nil, http.StatusBadRequest},
		"half a cent":         {"POST", "/v1/allow", `{"control":"payment-risk","amount":{"minor":0.5,"currency":"USD"}}`, nil, http.StatusBadRequest},
		"no minor units":      {"POST", "/v1/allow", `{"control":"payment-risk","amount":{"currency":"USD"}}`, nil, http.StatusBadRequest},
		"no currency":         {"POST", "/v1/allow", `{"control":"payment-risk","amount":{"minor":1}}`, nil, http.StatusBadRequest},
		"more than an amount": {"POST", "/v1/allow", `{"control":"payment-risk","amount":{"minor":1,"currency":"USD","major":1}}`, nil, http.StatusBadRequest},
		"all flags elsewhere": {"POST", flags, "{}", func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, http.StatusForbidden},
		"a flag elsewhere":    {"POST", flags + "/reviews", "{}", func(r *http.Request) { r.Host = "rebound.example" }, http.StatusForbidden},
		"flags by GET":        {"GET", flags, "", nil, http.StatusMethodNotAllowed},
		"not JSON":            {"POST", "/v1/allow", "amount=1", nil, http.StatusBadRequest},
		"an unknown field":    {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":"1.00 USD","force":true}`, nil, http.StatusBadRequest},
		"no amount":           {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout"}`, nil, http.StatusBadRequest},
		"a number as amount":  {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":1}`, nil, http.StatusBadRequest},
		"too long":            {"POST", "/v1/allow", `{"control":"` + strings.Repeat("x", 5000) + `"}`, nil, http.StatusBadRequest},
		"a form":              {"POST", "/v1/allow", good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"from elsewhere":      {"POST", "/v1/allow", good, func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, http.StatusForbidden},
		"by another name":     {"POST", "/v1/allow", good, func(r *http.Request) { r.Host = "rebound.example:7070" }, http.StatusForbidden},
		"state elsewhere":     {"GET", "/v1/state", "", func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, http.StatusForbidden},
		"by GET":              {"GET", "/v1/allow", "", nil, http.StatusMethodNotAllowed},
		"nowhere":             {"GET", "/v1/push", "", nil, http.StatusNotFound},
	} {
		var change []func(*http.Request)
		if c.change != nil {
			change = append(change, c.change)
		}
		if code, body := call(h, c.method, c.path, c.body, change...); code != c.code {
			t.Errorf("%s: %d %s, want %d", name, code, body, c.code)
		}
	}
	if budgets := r.Report().Budgets; len(budgets) != 0 {
		t.Errorf("budgets: %+v", budgets)
	}
	if code, _ := call(h, "GET", "/report", "", func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1"; r.Host = "checkout-01:7070" }); code != http.StatusOK {
		t.Errorf("the report is refused to the console: %d", code)
	}
}

func TestFreshnessIsAboutDataAndHealthAboutTheProcess(t *testing.T) {
	s, r, h := served(t)
	if code, body := call(h, "GET", "/freshz", ""); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
	if err := r.Stop(); err != nil { // nothing is read any more
		t.Fatal(err)
	}
	s.clock.pass(6 * time.Minute)
	if code, body := call(h, "GET", "/freshz", ""); code != http.StatusServiceUnavailable || !strings.Contains(body, "file") {
		t.Errorf("%d: %s", code, body)
	}
	if code, _ := call(h, "GET", "/healthz", ""); code != http.StatusOK {
		t.Errorf("a host with old data is called dead: %d", code)
	}
}

func TestWhoComesByASocketInTheFileSystemIsOnThisMachine(t *testing.T) {
	_, _, h := served(t)
	bySocket := func(r *http.Request) {
		r.RemoteAddr, r.Host = "@", "whatever"
		*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix", Name: "/run/ic/agent.sock"}))
	}
	if code, body := call(h, "GET", "/v1/state", "", bySocket); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	if code, body := call(h, "GET", "/v1/state", "", func(r *http.Request) { r.RemoteAddr = "@" }); code != http.StatusForbidden {
		t.Errorf("by TCP: %d %s", code, body)
	}
}

func TestNothingIsOpenForTheServiceOfAnotherHost(t *testing.T) {
	s := newShop(t)
	right, _, _ := s.bundle.Right("risk-bypass-small-orders")
	b := right.Bypass
	_, opening := s.sign(model.Directive{
		Kind: model.Bypass, Scope: "checkout", Control: b.Control, Right: "risk-bypass-small-orders",
		Caps:     model.Caps{Under: b.Under, HostCount: b.HostCount, HostTotal: b.HostTotal, Total: b.Total},
		NotAfter: s.clock.Now().Wall.Add(b.Lasts.Std()),
	}, "ines")
	cfg := s.config()
	cfg.Engine.Host, cfg.Engine.Services, cfg.Env = "edge-01", []string{"edge"}, opening
	r := s.start(cfg)
	if len(r.Report().Live) != 1 {
		t.Fatalf("the bypass is not held: %+v", r.Report())
	}
	_, body := call(r.Handler(time.Minute), "POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":"1.00 USD"}`)
	if strings.TrimSpace(body) != `{"allowed":false,"reason":"closed"}` || len(r.Report().Budgets) != 0 {
		t.Errorf("an edge host answers for checkout: %s, budgets %+v", body, r.Report().Budgets)
	}
}
