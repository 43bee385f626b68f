package hostrun_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
)

// flag is one evaluation, as a client reads it.
type flag struct {
	Key, Reason, Variant string
	Value                json.RawMessage
	Metadata             map[string]any
}

const flagsPath = "/ofrep/v1/evaluate/flags"

// allFlags asks for all of them at once.
func allFlags(t *testing.T, h http.Handler, tag string) (status int, etag string, flags map[string]flag, metadata map[string]any) {
	t.Helper()
	req := httptest.NewRequest("POST", "http://127.0.0.1:7420"+flagsPath, strings.NewReader(`{"context":{"targetingKey":"order-1"}}`))
	req.RemoteAddr = "127.0.0.1:40000"
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	var body struct {
		Flags    []flag
		Metadata map[string]any
	}
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%v in %s", err, w.Body)
		}
	} else if w.Body.Len() > 0 {
		t.Fatalf("%d with a body: %s", w.Code, w.Body)
	}
	flags = map[string]flag{}
	for _, f := range body.Flags {
		flags[f.Key] = f
	}
	return w.Code, w.Header().Get("ETag"), flags, body.Metadata
}

func oneFlag(t *testing.T, h http.Handler, key string) (f flag) {
	t.Helper()
	status, body := call(h, "POST", flagsPath+"/"+key, `{}`)
	if err := json.Unmarshal([]byte(body), &f); err != nil || status != http.StatusOK {
		t.Fatalf("%s: %d %v in %s", key, status, err, body)
	}
	return f
}

func TestAllThatIsInForceIsAFlag(t *testing.T) {
	_, _, h := served(t) // tier 2, recommendations off, payment-risk open under 50.00 USD
	_, _, flags, metadata := allFlags(t, h, "")
	for _, c := range []struct{ key, value, variant, reason string }{
		{"tier.checkout", "2", "tier-2", "TARGETING_MATCH"},
		{"recommendations", "false", "off", "TARGETING_MATCH"},   // by a directive
		{"recently-viewed", "false", "off", "TARGETING_MATCH"},   // by the tier
		{"delivery-dates", "true", "simpler", "TARGETING_MATCH"}, // by the tier
		{"place-order", "true", "on", "STATIC"},                  // not touched
		{"bypass.payment-risk", `{"open":true,"under":"50.00 USD","expiresAt":"2026-11-30T02:45:00Z"}`, "open", "TARGETING_MATCH"},
	} {
		for where, f := range map[string]flag{"among all": flags[c.key], "alone": oneFlag(t, h, c.key)} {
			if string(f.Value) != c.value || f.Variant != c.variant || f.Reason != c.reason {
				t.Errorf("%s %s: %s %s %s, want %s %s %s", c.key, where, f.Value, f.Variant, f.Reason, c.value, c.variant, c.reason)
			}
		}
	}
	if how := oneFlag(t, h, "delivery-dates").Metadata["how"]; how != "a range of days per region" {
		t.Errorf("the simpler form is %v", how)
	}
	for where, m := range map[string]map[string]any{"of all": metadata, "of one": oneFlag(t, h, "place-order").Metadata} {
		if m["ageSeconds"] != 0.0 || m["stale"] != false || m["asOf"] != "2026-11-30T02:30:00Z" || m["host"] != "checkout-01" {
			t.Errorf("metadata %s: %v", where, m)
		}
	}
	if _, ok := flags["tier.edge"]; ok {
		t.Error("a host speaks for the tier of a service that does not run on it")
	}
}

func TestABypassCarriesItsEndAndIsOverWithoutATimer(t *testing.T) {
	s, _, h := served(t)
	_, before, flags, _ := allFlags(t, h, "")
	var value hostrun.BypassValue
	if err := json.Unmarshal(flags["bypass.payment-risk"].Value, &value); err != nil || value.ExpiresAt == nil {
		t.Fatalf("%v in %s", err, flags["bypass.payment-risk"].Value)
	}
	s.clock.pass(value.ExpiresAt.Sub(s.clock.Now().Wall) - time.Millisecond)
	if f := oneFlag(t, h, "bypass.payment-risk"); f.Variant != "open" {
		t.Errorf("before its end: %+v", f)
	}
	s.clock.pass(time.Millisecond)
	if f := oneFlag(t, h, "bypass.payment-risk"); string(f.Value) != `{"open":false}` || f.Variant != "closed" {
		t.Errorf("at its end: %s %s", f.Value, f.Variant)
	}
	if status, after, _, _ := allFlags(t, h, before); status != http.StatusOK || after == before {
		t.Errorf("a client that has the open bypass is told %d, tag %s", status, after)
	}
}

func TestAClientThatHasTheFlagsIsToldSoUntilOneChanges(t *testing.T) {
	s := newShop(t)
	r := s.start(s.config())
	h := r.Handler(time.Minute)
	_, tag, _, _ := allFlags(t, h, "")
	s.clock.pass(3 * time.Second) // an age that grows is no change
	for _, asked := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
		if status, same, _, _ := allFlags(t, h, asked); status != http.StatusNotModified || same != tag {
			t.Errorf("asked with %s: %d, tag %s", asked, status, same)
		}
	}
	_, token := s.shed(1)
	r.Engine().Offer("test", token, r.Now())
	if status, next, flags, _ := allFlags(t, h, tag); status != http.StatusOK || next == tag || string(flags["tier.checkout"].Value) != "1" {
		t.Errorf("after a shed: %d, tag %s, %s", status, next, flags["tier.checkout"].Value)
	}
}

func TestReasonsSayHowFarAValueCanBeTrusted(t *testing.T) {
	s := newShop(t)
	cfg := s.config()
	cfg.File = filepath.Join(t.TempDir(), "ic.directives")
	r := s.start(cfg)
	s.wait("the file", func() bool { return r.State().AgeS == 0 })
	h := r.Handler(5 * time.Minute)
	if f := oneFlag(t, h, "tier.checkout"); f.Reason != "STATIC" || string(f.Value) != "0" {
		t.Errorf("in normal operation: %+v", f)
	}
	if err := r.Stop(); err != nil { // nothing is read any more
		t.Fatal(err)
	}
	s.clock.pass(5*time.Minute + time.Second)
	f := oneFlag(t, h, "tier.checkout")
	if f.Reason != "STALE" || string(f.Value) != "0" || f.Metadata["stale"] != true || f.Metadata["ageSeconds"].(float64) < 300 {
		t.Errorf("with old data: %+v", f)
	}

	cfg = s.config()
	cfg.Engine.Host = "checkout-02" // the folder is another host's
	h = s.start(cfg).Handler(time.Minute)
	if f := oneFlag(t, h, "tier.checkout"); f.Reason != "DEFAULT" || f.Metadata["state"] != "foreign" {
		t.Errorf("with nothing known: %+v", f)
	}
	s.state = filepath.Join(t.TempDir(), "state")
	cfg = s.config()
	cfg.Etcd = []string{deadEndpoint(t)}
	h = s.start(cfg).Handler(time.Minute)
	if f := oneFlag(t, h, "tier.checkout"); f.Reason != "STALE" || f.Metadata["ageSeconds"] != -1.0 || f.Metadata["asOf"] != nil {
		t.Errorf("before any source was read: %+v", f)
	}
}

func TestAFeatureThatOnlyADirectiveNamesIsOff(t *testing.T) {
	s := newShop(t)
	_, off := s.sign(model.Directive{Kind: model.Off, Scope: "checkout", Feature: "gift-wrap", Right: "off-of-a-newer-policy"}, "ines")
	_, reserved := s.sign(model.Directive{Kind: model.Off, Scope: "checkout", Feature: "tier.checkout", Right: "off-of-a-newer-policy"}, "ines")
	cfg := s.config()
	cfg.Env = off + " " + reserved
	r := s.start(cfg)
	if f := oneFlag(t, r.Handler(time.Minute), "gift-wrap"); string(f.Value) != "false" || f.Reason != "TARGETING_MATCH" {
		t.Errorf("%+v; refused %+v", f, r.Report().Refused)
	}
	if f := oneFlag(t, r.Handler(time.Minute), "tier.checkout"); string(f.Value) != "0" {
		t.Errorf("a feature with the name of a tier has taken its place: %s", f.Value)
	}
	if got, ok := r.State().Features["tier.checkout"]; !ok || got.On {
		t.Errorf("it is not off either: %+v", r.State().Features)
	}
}
