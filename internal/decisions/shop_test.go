package decisions

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

var (
	day0   = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	digest = strings.Repeat("a", 64)
)

func usd(cents int64) model.Money { return model.Money{Minor: cents, Currency: "USD"} }

func publicKey(t testing.TB, name string) string {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}

func below(v float64) policy.Threshold { return policy.Threshold{Below: &v} }
func above(v float64) policy.Threshold { return policy.Threshold{Above: &v} }

// parts are what a policy is joined from.
type parts struct {
	root   *policy.Root
	states map[policy.Domain]policy.DomainState
	docs   policy.Documents
}

func (p *parts) bundle(t testing.TB) *policy.Bundle {
	t.Helper()
	b, err := policy.NewBundle(p.root, model.PolicyRef{Version: 3, Digest: digest}, p.states, p.docs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// right changes one row of either document.
func (p *parts) right(name string, change func(*policy.Right)) {
	for _, rights := range []map[string]policy.Right{p.docs.Rights.Rights, p.docs.Controls["payments"].Rights} {
		if r, ok := rights[name]; ok {
			if r.Bypass != nil {
				bypass := *r.Bypass
				r.Bypass = &bypass
			}
			change(&r)
			rights[name] = r
		}
	}
}

// shop is a small policy: one commander and his deputy, two people in finance,
// four tiers, one control that may be bypassed and one that may never open.
func shop(t testing.TB, extra int) *policy.Bundle {
	t.Helper()
	return partsOf(t, extra).bundle(t)
}

// changed is the shop with something else in it.
func changed(t testing.TB, change func(*parts)) *policy.Bundle {
	t.Helper()
	p := partsOf(t, 0)
	change(p)
	return p.bundle(t)
}

func partsOf(t testing.TB, extra int) *parts {
	t.Helper()
	people := map[string]policy.Person{}
	for _, name := range []string{"ines", "dev", "fiona", "ravi", "otto"} {
		people[name] = policy.Person{Name: name, Reach: "pager", Keys: []string{publicKey(t, name)}}
	}
	root := &policy.Root{
		V: 1, Fleet: "shop", Version: 1, Expires: day0.AddDate(1, 0, 0), People: people,
		Machines: map[string]policy.Machine{"ladder-controller": {Keys: []string{publicKey(t, "machine")}}},
		Groups: map[string]policy.Group{
			"finance":    {Any: 1, Of: []string{"fiona", "ravi"}},
			"commanders": {Any: 1, Of: []string{"ines", "dev"}},
		},
		Root: "commanders", Publish: "commanders",
		Domains: map[policy.Domain]policy.DomainRule{policy.Rights: {Group: "commanders"}, "payments": {Group: "finance"}},
		Roles: map[string]policy.Role{
			"incident-commander": {Members: []string{"commanders"}, Tightens: true, MaxTier: 4},
			"ladder-controller":  {Machines: []string{"ladder-controller"}, Tightens: true, MaxTier: 2},
		},
	}
	rights := map[string]policy.Right{
		"shed":          {Kind: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 3}},
		"shed-4":        {Kind: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 4, To: 4}, Cosign: policy.Cosign{Count: 1, Of: "commanders"}},
		"recover":       {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}},
		"recover-blind": {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}, Blind: true, Cosign: policy.Cosign{Count: 1, Of: "commanders"}},
		"end-bypass":    {Kind: model.End, Ends: model.Bypass, Who: "incident-commander", Scope: []string{"*", "checkout"}},
		"freeze":        {Kind: model.Freeze, Who: "incident-commander", Scope: []string{"*"}, Lasts: model.Duration(time.Hour)},
		"unfreeze":      {Kind: model.End, Ends: model.Freeze, Who: "incident-commander", Scope: []string{"*"}},
		"feature-on":    {Kind: model.End, Ends: model.Off, Who: "incident-commander", Scope: []string{"*"}},
		"dim":           {Kind: model.Dimmer, Who: "incident-commander", Scope: []string{"*"}, Dimmer: &policy.Dimmer{TargetMS: policy.Range{From: 200, To: 800}, Floor: 5, Ceiling: 90}},
		"ping":          {Kind: model.Ping, Who: "incident-commander", Scope: []string{"*"}, Lasts: model.Duration(10 * time.Minute)},
		"feature-off":   {Kind: model.Off, Who: "incident-commander", Scope: []string{"*"}, Feature: "*"},
	}
	for i := range extra {
		rights[fmt.Sprintf("extra-%03d", i)] = rights["shed"]
	}
	bypass := policy.Bypass{
		Control: "payment-risk", Under: usd(5000), HostCount: 100, HostTotal: usd(200000), Total: usd(3000000),
		Lasts: model.Duration(15 * time.Minute), PerDay: 2, Live: 1, MaxReplacements: 2,
	}
	medium := bypass
	medium.Under = usd(20000)
	ramp, dwell := []int{10, 50, 100}, model.Duration(10*time.Minute)
	var tiers []policy.Tier
	for n := 1; n <= 4; n++ {
		tiers = append(tiers, policy.Tier{
			Tier: n, Ramp: ramp, RampStep: model.Duration(2 * time.Minute), Dwell: dwell,
			Leave: []policy.Condition{{Signal: "errors", Threshold: below(0.005), For: model.Duration(10 * time.Minute)}},
		})
	}
	limit := above(0.01)
	docs := policy.Documents{
		Features: &policy.FeaturesDoc{Features: map[string]policy.Feature{
			"recommendations": {Class: policy.Sheddable, Service: "edge"}, "pay": {Class: policy.Critical, Service: "checkout"},
		}},
		Ladder: &policy.LadderDoc{
			Signals: map[string]policy.Signal{"errors": {Unit: "ratio", Step: model.Duration(15 * time.Second), Abnormal: &limit, Right: "risk-bypass-small-orders"}},
			Tiers:   tiers,
		},
		Rights:   &policy.RightsDoc{Rights: rights},
		Backends: &policy.BackendsDoc{Inventory: policy.Inventory{Query: `up{job="checkout"}`}},
		Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {
			Controls: map[string]policy.Control{
				"payment-risk": {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{"checkout"}},
				"login":        {Protects: policy.ProtectsAuthorization, Fails: policy.FailsClosed, Services: []string{"checkout"}},
			},
			Rights: map[string]policy.Right{
				"risk-bypass-small-orders":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &bypass},
				"risk-bypass-medium-orders": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &medium, Cosign: policy.Cosign{Count: 1, Of: "finance"}},
				"login-bypass": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{
					Control: "login", Under: usd(5000), HostCount: 1, HostTotal: usd(100), Total: usd(1000000), Lasts: model.Duration(time.Minute), PerDay: 9, Live: 1}},
			},
		}},
	}
	states := map[policy.Domain]policy.DomainState{
		policy.Rights: {Active: true, Expires: day0.AddDate(0, 6, 0)}, "payments": {Active: true, Expires: day0.AddDate(0, 6, 0)},
	}
	return &parts{root: root, states: states, docs: docs}
}

// calm is a world in which everything that opening asks for is there.
func calm() *model.World {
	w := &model.World{
		V: 1, Now: day0, Clock: model.ClockOK, Fleet: "shop", Mode: model.Live, Durable: true,
		Policy:   model.PolicyRef{Version: 3, Digest: digest},
		Incident: model.Incident{ID: "inc-1", OpenedAt: day0, Lease: model.Lease{Holder: "ines", From: day0, Until: day0.Add(3 * time.Hour)}},
		Readings: map[string]model.Reading{"errors": steady(0.001, day0)},
	}
	for i := range 10 {
		w.Hosts = append(w.Hosts, model.HostView{Host: fmt.Sprintf("checkout-%02d", i), Services: []string{"checkout"}, Reachable: true})
	}
	return w
}

// steady is a signal with one value over the last hour.
func steady(v float64, now time.Time) model.Reading {
	r := model.Reading{Signal: "errors", State: model.ReadingValue, Value: v, At: now, Step: model.Duration(15 * time.Second)}
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(15 * time.Second) {
		r.History = append(r.History, model.Sample{At: at, Value: v})
	}
	return r
}

func id(n int) string { return fmt.Sprintf("01J0000000000000000000%04d", n) }

// shedAt puts a live shed into the world.
func shedAt(w *model.World, n, tier int, at time.Time) {
	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{
		ID: id(n), Fleet: "shop", Scope: "*", Kind: model.Shed, Tier: tier, Right: "shed", IssuedAt: at, NotBefore: at}, FirstSeen: at})
}

// step puts a recovery step into the world and ends what it lists.
func step(w *model.World, n int, d model.Directive, at time.Time) {
	d.ID, d.NotBefore, d.IssuedAt = id(n), at, at
	for i := range w.Issued {
		if slices.Contains(d.IDs, w.Issued[i].Directive.ID) {
			w.Issued[i].EndedBy = d.ID
		}
	}
	w.Issued = append(w.Issued, model.Issued{Directive: d, FirstSeen: at})
}

func draft(t *testing.T, b *policy.Bundle, w *model.World, ask Ask) model.Request {
	t.Helper()
	if ask.Actor == "" {
		ask.Actor = "ines"
	}
	r, err := Draft(b, w, ask)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codes(v model.Verdict) []model.Code {
	out := []model.Code{}
	for _, r := range v.Reasons {
		out = append(out, r.Code)
	}
	return out
}

func expect(t *testing.T, v model.Verdict, outcome model.Outcome, want ...model.Code) {
	t.Helper()
	if v.Outcome != outcome || !slices.Equal(codes(v), want) && len(want)+len(v.Reasons) > 0 {
		t.Fatalf("got %s %v, want %s %v", v.Outcome, codes(v), outcome, want)
	}
	for _, r := range v.Reasons {
		if s := Sentence(r); s == "" || strings.HasPrefix(s, "refused: ") {
			t.Errorf("code %s has no sentence of its own", r.Code)
		}
	}
}
