package hostrun_test

import (
	"encoding/json"
	"io"
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
	if len(state.Services) != 1 || state.Services["checkout"].Tier != 2 || len(state.Off) != 1 || state.Off[0] != "recommendations" {
		t.Errorf("state: %s", body)
	}
	if len(state.Bypasses) != 1 || state.Bypasses[0].Control != "payment-risk" || !state.Bypasses[0].Until.Equal(s.clock.Now().Wall.Add(15*time.Minute)) {
		t.Errorf("bypasses: %s", body)
	}
	for _, c := range []struct{ ask, want string }{
		{`{"control":"payment-risk","service":"checkout","amount":"49.99 USD"}`, `{"allowed":true}`},
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
	for name, c := range map[string]struct {
		method, path, body string
		change             func(*http.Request)
		code               int
	}{
		"not JSON":           {"POST", "/v1/allow", "amount=1", nil, http.StatusBadRequest},
		"an unknown field":   {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":"1.00 USD","force":true}`, nil, http.StatusBadRequest},
		"no amount":          {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout"}`, nil, http.StatusBadRequest},
		"a number as amount": {"POST", "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":1}`, nil, http.StatusBadRequest},
		"too long":           {"POST", "/v1/allow", `{"control":"` + strings.Repeat("x", 5000) + `"}`, nil, http.StatusBadRequest},
		"a form":             {"POST", "/v1/allow", good, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"from elsewhere":     {"POST", "/v1/allow", good, func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, http.StatusForbidden},
		"by another name":    {"POST", "/v1/allow", good, func(r *http.Request) { r.Host = "rebound.example:7070" }, http.StatusForbidden},
		"state elsewhere":    {"GET", "/v1/state", "", func(r *http.Request) { r.RemoteAddr = "192.0.2.7:1" }, http.StatusForbidden},
		"by GET":             {"GET", "/v1/allow", "", nil, http.StatusMethodNotAllowed},
		"nowhere":            {"GET", "/v1/push", "", nil, http.StatusNotFound},
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
