package decisions

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"pgregory.net/rapid"
)

// What a hostile world is made of: values at and beyond every edge, mixed with
// the few that mean something, so that combinations get past the first check.
var (
	numbers = []int{math.MinInt, -1, 0, 1, 2, 3, 4, 5, 10, 50, 99, 100, 101, math.MaxInt}
	amounts = []int64{math.MinInt64, -1, 0, 1, 4999, 5000, math.MaxInt64}
	times   = []time.Time{{}, day0, day0.Add(-time.Hour), day0.Add(time.Minute), day0.AddDate(8000, 0, 0), time.Unix(math.MaxInt32, 999).AddDate(-9000, 0, 0)}
	spans   = []model.Duration{math.MinInt64, -1, 0, 1, model.Duration(time.Minute), math.MaxInt64}
	kinds   = []model.Kind{model.Shed, model.Off, model.Bypass, model.Freeze, model.Dimmer, model.Ping, model.End, "", "teleport"}
	words   = []string{"", "*", "checkout", "edge", "payment-risk", "login", "recommendations", "ines", "dev", "fiona", "ladder-controller", "\x1b[2J", "nobody"}
	floats  = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 0.001, 0.5}
)

func anyMoney(t *rapid.T) model.Money {
	return model.Money{Minor: rapid.SampledFrom(amounts).Draw(t, "minor"), Currency: rapid.SampledFrom([]string{"", "USD", "EUR"}).Draw(t, "currency")}
}

func anyWords(t *rapid.T, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, label)
}

func anyIDs(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return id(rapid.IntRange(0, 5).Draw(t, "id")) }), 0, 4).Draw(t, "ids")
}

func anyDirective(t *rapid.T, rights []string) model.Directive {
	number := func(label string) int { return rapid.SampledFrom(numbers).Draw(t, label) }
	at := func(label string) time.Time { return rapid.SampledFrom(times).Draw(t, label) }
	word := func(label string) string { return rapid.SampledFrom(words).Draw(t, label) }
	return model.Directive{
		ID: id(rapid.IntRange(0, 5).Draw(t, "own id")), Fleet: rapid.SampledFrom([]string{"shop", "", "bank"}).Draw(t, "fleet"), Scope: word("scope"),
		Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Ends: rapid.SampledFrom(kinds).Draw(t, "ends"), Reason: word("reason"),
		Tier: number("tier"), From: number("from"), To: number("to"), Percent: number("percent"), Ramp: id(rapid.IntRange(0, 5).Draw(t, "ramp")),
		Feature: word("feature"), Control: word("control"), IDs: anyIDs(t),
		Caps:     model.Caps{Under: anyMoney(t), HostCount: rapid.SampledFrom(amounts).Draw(t, "count"), HostTotal: anyMoney(t), Total: anyMoney(t)},
		IssuedAt: at("issued"), NotBefore: at("not before"), NotAfter: at("not after"),
		Right:  rapid.SampledFrom(append(rights, "", "no-such-right")).Draw(t, "right"),
		Policy: model.PolicyRef{Version: rapid.SampledFrom(amounts).Draw(t, "version"), Digest: rapid.SampledFrom([]string{"", digest}).Draw(t, "digest")},
	}
}

func anyWorld(t *rapid.T, rights []string) *model.World {
	w := calm()
	w.Now = rapid.SampledFrom(times).Draw(t, "now")
	w.Mode = rapid.SampledFrom([]model.Mode{model.Live, model.ReadOnly, ""}).Draw(t, "mode")
	w.Clock = rapid.SampledFrom([]model.ClockState{model.ClockOK, model.ClockBehind, "", "sundial"}).Draw(t, "clock")
	w.Durable = rapid.Bool().Draw(t, "durable")
	w.Incident.Lease = model.Lease{Holder: rapid.SampledFrom(words).Draw(t, "holder"), Until: rapid.SampledFrom(times).Draw(t, "until")}
	if rapid.Bool().Draw(t, "no readings") {
		w.Readings = nil
	} else {
		r := steady(rapid.SampledFrom(floats).Draw(t, "value"), w.Now)
		r.State = rapid.SampledFrom([]model.ReadingState{model.ReadingValue, model.ReadingStale, "", "odd"}).Draw(t, "state")
		r.Step = rapid.SampledFrom(spans).Draw(t, "step")
		w.Readings["errors"] = r
	}
	for range rapid.IntRange(0, 5).Draw(t, "issued") {
		w.Issued = append(w.Issued, model.Issued{Directive: anyDirective(t, rights), EndedBy: rapid.SampledFrom([]string{"", "x"}).Draw(t, "ended")})
	}
	w.Hosts = nil
	for range rapid.IntRange(0, 3).Draw(t, "hosts") {
		w.Hosts = append(w.Hosts, model.HostView{Host: rapid.SampledFrom(words).Draw(t, "host"), Services: anyWords(t, "services")})
	}
	return w
}

// odd is a policy that no lint would let pass: rows without their bounds, empty
// ramps, tiers without conditions, numbers at both ends.
func odd(t testing.TB) *policy.Bundle {
	t.Helper()
	b := shop(t, 0)
	one := 1.0
	rights := map[string]policy.Right{
		"no-bounds":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"*"}},
		"no-tiers":   {Kind: model.Shed, Who: "incident-commander"},
		"no-role":    {Kind: model.Shed, Tiers: &policy.Range{From: 0, To: 99}, Scope: []string{"*"}},
		"many":       {Kind: model.Shed, Who: "incident-commander", Cosign: policy.Cosign{Count: math.MaxInt, Of: "no-group"}, Scope: []string{"*"}, Tiers: &policy.Range{From: 5, To: -5}},
		"back":       {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*", "checkout"}, Tiers: &policy.Range{From: -99, To: 99}},
		"blind":      {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 99}, Blind: true},
		"end-ends":   {Kind: model.End, Ends: model.End, Who: "incident-commander", Scope: []string{"*"}},
		"dim":        {Kind: model.Dimmer, Who: "incident-commander", Scope: []string{"*"}},
		"what":       {Kind: "teleport", Who: "incident-commander", Scope: []string{"*"}},
		"huge-risk":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(math.MaxInt64), HostCount: math.MaxInt64, HostTotal: usd(math.MaxInt64), Total: usd(math.MaxInt64), Lasts: math.MaxInt64, PerDay: math.MaxInt, MaxReplacements: math.MaxInt64}},
		"minus-risk": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(-1), HostCount: -1, HostTotal: usd(-1), Total: usd(-1), Lasts: -1, PerDay: -1, MaxReplacements: -1}},
		"lead":       {Kind: model.Freeze, Who: "incident-commander", Scope: []string{"*"}, Lasts: math.MaxInt64, Lead: math.MaxInt64, Cosign: policy.Cosign{Count: 1, Of: "finance"}},
	}
	made, err := policy.NewBundle(b.Root, b.Ref, b.Domains, policy.Documents{
		Rights: &policy.RightsDoc{Rights: rights},
		Ladder: &policy.LadderDoc{
			Signals: map[string]policy.Signal{"errors": {Abnormal: &policy.Threshold{}}, "both": {Abnormal: &policy.Threshold{Above: &one, Below: &one}, Right: "what"}, "none": {}},
			Tiers: []policy.Tier{{Tier: 99}, {Tier: 0, Ramp: []int{}}, {Tier: 2, Ramp: []int{100, 10, -1}, RampStep: -1, Dwell: math.MaxInt64,
				Leave: []policy.Condition{{Signal: "errors", Threshold: above(1), For: math.MinInt64}, {Signal: "absent"}}}},
		},
		Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {Controls: b.Controls}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// bare is a policy of which nothing but the root is in force.
func bare(t testing.TB) *policy.Bundle {
	t.Helper()
	b, err := policy.NewBundle(shop(t, 0).Root, model.PolicyRef{}, nil, policy.Documents{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNothingHostileMakesItPanicOrOpen: whatever a world and a request are made
// of, there is a verdict, the same one in any order, and it opens or recovers
// nothing without a row of the matrix, command, and caps above zero.
func TestNothingHostileMakesItPanicOrOpen(t *testing.T) {
	bundles := []*policy.Bundle{shop(t, 0), odd(t), bare(t)}
	rapid.Check(t, func(t *rapid.T) {
		b := bundles[rapid.IntRange(0, len(bundles)-1).Draw(t, "policy")]
		w := anyWorld(t, b.RightNames())
		r := model.Request{Directive: anyDirective(t, b.RightNames()), Actor: rapid.SampledFrom(words).Draw(t, "actor"), Cosigners: anyWords(t, "cosigners"), Evidence: rapid.SampledFrom(words).Draw(t, "evidence")}
		v := Evaluate(b, w, &r)
		checkVerdict(t, b, w, &r, &v)
		turned := *w
		turned.Issued = slices.Clone(w.Issued)
		slices.Reverse(turned.Issued)
		if again := Evaluate(b, &turned, &r); again.Outcome != v.Outcome || !slices.Equal(again.Reasons, v.Reasons) && uniqueIDs(w) {
			t.Fatalf("in another order: %+v and %+v", v, again)
		}
		if worst := WorstCase(b, w, &r.Directive); worst.WorstCase.Minor < 0 || worst.PerHost.Minor < 0 {
			t.Fatalf("a worst case below zero: %+v", worst)
		}
		ask := Ask{Right: r.Directive.Right, Scope: r.Directive.Scope, Tier: r.Directive.Tier, Feature: r.Directive.Feature, IDs: r.Directive.IDs,
			Lasts: rapid.SampledFrom(spans).Draw(t, "lasts"), Under: r.Directive.Caps.Under, Actor: r.Actor}
		if drafted, err := Draft(b, w, ask); err == nil {
			v := Evaluate(b, w, &drafted)
			checkVerdict(t, b, w, &drafted, &v)
		}
		Enumerate(b, w, r.Actor)
		if h := HeadlineOf(b, w); h.Text == "" || h.Calm && w.Readings == nil {
			t.Fatalf("headline %+v", h)
		}
	})
}

func uniqueIDs(w *model.World) bool {
	seen := map[string]bool{}
	for i := range w.Issued {
		if seen[w.Issued[i].Directive.ID] {
			return false
		}
		seen[w.Issued[i].Directive.ID] = true
	}
	return true
}

func checkVerdict(t *rapid.T, b *policy.Bundle, w *model.World, r *model.Request, v *model.Verdict) {
	for _, reason := range v.Reasons {
		if Sentence(reason) == "" {
			t.Fatalf("%s has no sentence", reason.Code)
		}
	}
	if (v.Outcome == model.Permitted) != (len(v.Reasons) == 0) {
		t.Fatalf("%s with %v", v.Outcome, v.Reasons)
	}
	if v.Outcome != model.Permitted {
		return
	}
	d, lease := &r.Directive, w.Incident.Lease
	_, _, known := b.Right(d.Right)
	switch {
	case v.Direction != b.Direction(d) || w.Mode == model.ReadOnly:
		t.Fatalf("permitted as %s in mode %s", v.Direction, w.Mode)
	case v.Direction == model.Tighten:
		if !known && !tightens(b, r) {
			t.Fatalf("an unknown right %q was permitted to %s", d.Right, r.Actor)
		}
		return
	case !known:
		t.Fatalf("an unknown right %q was permitted as %s", d.Right, v.Direction)
	case !lease.Held(r.Actor, w.Now):
		t.Fatalf("%s without command", v.Direction)
	case v.Direction == model.Loosen && (d.Kind != model.Bypass || !w.Durable || w.Clock == model.ClockBehind || !w.Now.Before(d.NotAfter) || d.Caps.HostCount < 1 || d.Caps.Total.Minor < 1):
		t.Fatalf("opened: %+v", d)
	case d.IsRecovery() && (d.To != d.From-1 || d.From < 1):
		t.Fatalf("a jump from %d to %d", d.From, d.To)
	}
}

// tightens reports whether any signer has a role that may tighten at all.
func tightens(b *policy.Bundle, r *model.Request) bool {
	return slices.ContainsFunc(append(slices.Clone(r.Cosigners), r.Actor), func(name string) bool {
		_, machine := b.Root.Machines[name]
		for role, rule := range b.Root.Roles {
			if rule.Tightens && b.Root.HasRole(role, policy.Signer{Name: name, Machine: machine}) {
				return true
			}
		}
		return false
	})
}
