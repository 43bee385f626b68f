package policy_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

// smallBypass is exactly as wide as risk-bypass-small-orders allows.
func smallBypass(b *policy.Bundle) model.Directive {
	now := policytest.Now()
	return model.Directive{
		Fleet: policytest.Fleet, Scope: templates.Checkout, Kind: model.Bypass, Control: templates.PaymentRisk, Right: "risk-bypass-small-orders",
		Caps:     model.Caps{Under: usd(50_00), HostCount: 100, HostTotal: usd(1500_00), Total: usd(30_000_00)},
		IssuedAt: now, NotBefore: now, NotAfter: now.Add(15 * time.Minute), Policy: b.Ref,
	}
}

func mediumBypass(b *policy.Bundle) model.Directive {
	d := smallBypass(b)
	d.Right, d.NotAfter = "risk-bypass-medium-orders", d.NotBefore.Add(10*time.Minute)
	d.Caps = model.Caps{Under: usd(200_00), HostCount: 20, HostTotal: usd(1000_00), Total: usd(20_000_00)}
	return d
}

func shed(b *policy.Bundle, right string, tier int) model.Directive {
	now := policytest.Now()
	return model.Directive{Fleet: policytest.Fleet, Scope: "*", Kind: model.Shed, Tier: tier, Right: right, IssuedAt: now, NotBefore: now, Policy: b.Ref}
}

func ending(b *policy.Bundle, right string, ends model.Kind) model.Directive {
	d := shed(b, right, 0)
	d.Kind, d.Ends = model.End, ends
	if ends == model.Shed {
		d.From, d.To, d.Ramp, d.Percent = 3, 2, "r", 10
	}
	return d
}

func off(b *policy.Bundle, feature string) model.Directive {
	d := shed(b, "feature-off", 0)
	d.Kind, d.Feature = model.Off, feature
	return d
}

func window(b *policy.Bundle, kind model.Kind, length time.Duration) model.Directive {
	d := shed(b, string(kind), 0)
	d.Kind, d.NotAfter = kind, d.NotBefore.Add(length)
	return d
}

func fingerprints(names ...string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fingerprint(policytest.Key(name))
	}
	return out
}

// Each row is one directive, who signed it, and the stable code; "" is admitted.
func TestAdmit(t *testing.T) {
	b, _, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	now := policytest.Now()
	with := func(d model.Directive, bend func(*model.Directive)) model.Directive { bend(&d); return d }
	small, medium := smallBypass(b), mediumBypass(b)
	by := func(names ...string) []string { return names }
	for _, c := range []struct {
		what string
		d    model.Directive
		by   []string
		want model.Code
	}{
		{"a bypass exactly at its bounds", small, by("ines"), ""},
		{"the same by the deputy", small, by("dev"), ""},
		{"narrower than its bounds", with(small, func(d *model.Directive) { d.Caps.Under = usd(1) }), by("ines"), ""},
		{"one cent over the cap per item", with(small, func(d *model.Directive) { d.Caps.Under = usd(50_01) }), by("ines"), model.CodeOverCap},
		{"another currency", with(small, func(d *model.Directive) { d.Caps.Under.Currency = "EUR" }), by("ines"), model.CodeOverCap},
		{"one item over the host's count", with(small, func(d *model.Directive) { d.Caps.HostCount = 101 }), by("ines"), model.CodeOverCap},
		{"one cent over the host's total", with(small, func(d *model.Directive) { d.Caps.HostTotal = usd(1500_01) }), by("ines"), model.CodeOverCap},
		{"one cent over the total", with(small, func(d *model.Directive) { d.Caps.Total = usd(30_000_01) }), by("ines"), model.CodeOverCap},
		{"a second over its length", with(small, func(d *model.Directive) { d.NotAfter = d.NotAfter.Add(time.Second) }), by("ines"), model.CodeOverDuration},
		{"no end", with(small, func(d *model.Directive) { d.NotAfter = time.Time{} }), by("ines"), model.CodeNoEnd},
		{"the whole fleet", with(small, func(d *model.Directive) { d.Scope = "*" }), by("ines"), model.CodeOutOfScope},
		{"another service", with(small, func(d *model.Directive) { d.Scope = templates.Edge }), by("ines"), model.CodeOutOfScope},
		{"a control that the right does not name", with(small, func(d *model.Directive) { d.Control = "stock-check" }), by("ines"), model.CodeUnknownControl},
		{"a right that does not exist", with(small, func(d *model.Directive) { d.Right = "risk-bypass-all" }), by("ines"), model.CodeUnknownRight},
		{"a right of another kind", with(small, func(d *model.Directive) { d.Right = "shed" }), by("ines"), model.CodeWrongKind},
		{"the finance lead alone", small, by("fiona"), model.CodeWrongRole},
		{"the controller", small, by(templates.LadderController), model.CodeWrongRole},
		{"an unknown key", small, by("stranger"), model.CodeUnknownKey},
		{"an unknown key beside a good one", small, by("ines", "stranger"), model.CodeUnknownKey},
		{"nobody", small, by(), model.CodeUnknownKey},
		{"another fleet", with(small, func(d *model.Directive) { d.Fleet = "other" }), by("ines"), model.CodeForeignFleet},
		{"issued more than a day ahead", with(small, func(d *model.Directive) { d.IssuedAt = now.Add(24*time.Hour + time.Second) }), by("ines"), model.CodeFuture},
		{"judged by a newer policy", with(small, func(d *model.Directive) { d.Policy.Version++ }), by("ines"), model.CodePolicyBehind},
		{"judged by another policy of the same version", with(small, func(d *model.Directive) { d.Policy.Digest = sum(nil) }), by("ines"), model.CodePolicyMismatch},
		{"judged by an older policy, within today's bounds", with(small, func(d *model.Directive) { d.Policy = model.PolicyRef{Version: 0} }), by("ines"), ""},

		{"two people where two are wanted", medium, by("ines", "fiona"), ""},
		{"the same the other way round", medium, by("fiona", "ines"), ""},
		{"the other one of finance", medium, by("dev", "ravi"), ""},
		{"one where two are wanted", medium, by("ines"), model.CodeQuorum},
		{"two commanders where finance is wanted", medium, by("ines", "dev"), model.CodeQuorum},
		{"product where finance is wanted", medium, by("ines", "priya"), model.CodeQuorum},
		{"one person twice", medium, by("ines", "ines"), model.CodeQuorum},
		{"a machine as the second person", medium, by("ines", templates.LadderController), model.CodeQuorum},
		{"finance without a commander", medium, by("fiona", "ravi"), model.CodeWrongRole},

		{"a shed", shed(b, "shed", 3), by("ines"), ""},
		{"a shed over the row's tiers", shed(b, "shed", 4), by("ines"), model.CodeOverTier},
		{"a shed by finance", shed(b, "shed", 1), by("fiona"), model.CodeWrongRole},
		{"tier 4 alone", shed(b, "shed-4", 4), by("ines"), model.CodeQuorum},
		{"tier 4 with product", shed(b, "shed-4", 4), by("ines", "priya"), ""},
		{"the controller sheds", shed(b, "auto-shed", 2), by(templates.LadderController), ""},
		{"the controller beyond its tiers", shed(b, "auto-shed", 3), by(templates.LadderController), model.CodeOverTier},
		{"the controller by a commander's row", shed(b, "shed", 1), by(templates.LadderController), model.CodeWrongRole},
		{"a shed judged by a newer policy", with(shed(b, "shed", 3), func(d *model.Directive) { d.Policy.Version++ }), by("ines"), ""},
		{"a shed under a row that a newer policy brought", with(shed(b, "shed-new", 3), func(d *model.Directive) { d.Policy.Version++ }), by("ines"), ""},
		{"the same by finance", with(shed(b, "shed-new", 3), func(d *model.Directive) { d.Policy.Version++ }), by("fiona"), model.CodeUnknownRight},
		{"the same by the controller, beyond its tiers", shed(b, "shed-new", 3), by(templates.LadderController), model.CodeUnknownRight},

		{"a feature off", off(b, "reviews"), by("ines"), ""},
		{"a feature that nobody named", off(b, "wishlist"), by("ines"), model.CodeUnknownFeature},
		{"a control switched off as a feature", off(b, templates.PaymentRisk), by("ines"), model.CodeWrongKind},
		{"the same under a row that does not exist", with(off(b, templates.PaymentRisk), func(d *model.Directive) { d.Right = "x" }), by("ines"), model.CodeUnknownRight},

		{"a freeze", window(b, model.Freeze, time.Hour), by("ines"), ""},
		{"a freeze over its length", window(b, model.Freeze, time.Hour+time.Second), by("ines"), model.CodeOverDuration},
		{"a freeze without an end", with(window(b, model.Freeze, 0), func(d *model.Directive) { d.NotAfter = time.Time{} }), by("ines"), model.CodeNoEnd},
		{"a ping", window(b, model.Ping, 10*time.Minute), by("ines"), ""},
		{"a ping over its length", window(b, model.Ping, 11*time.Minute), by("ines"), model.CodeOverDuration},
		{"a dimmer that no row grants", with(shed(b, "dim", 0), func(d *model.Directive) { d.Kind = model.Dimmer }), by("fiona"), model.CodeUnknownRight},
		{"a kind of the future", with(shed(b, "shed", 1), func(d *model.Directive) { d.Kind = "teleport" }), by("ines"), model.CodeUnsupported},

		{"a recovery", ending(b, "recover", model.Shed), by("ines"), ""},
		{"a recovery by finance", ending(b, "recover", model.Shed), by("fiona"), model.CodeWrongRole},
		{"a recovery by the row of another ending", ending(b, "unfreeze", model.Shed), by("ines"), model.CodeWrongKind},
		{"the controller recovers beyond its tiers", ending(b, "auto-recover", model.Shed), by(templates.LadderController), model.CodeOverTier},
		{"a blind recovery alone", ending(b, "recover-blind", model.Shed), by("ines"), model.CodeQuorum},
		{"a blind recovery by two", ending(b, "recover-blind", model.Shed), by("ines", "dev"), ""},
		{"a recovery under a row that a newer policy brought", with(ending(b, "recover-new", model.Shed), func(d *model.Directive) { d.Policy.Version++ }), by("ines"), ""},
		{"the same judged by this policy", ending(b, "recover-new", model.Shed), by("ines"), model.CodeUnknownRight},
		{"the same by finance", with(ending(b, "recover-new", model.Shed), func(d *model.Directive) { d.Policy.Version++ }), by("fiona"), model.CodeUnknownRight},
		{"a feature on", ending(b, "feature-on", model.Off), by("ines"), ""},
		{"the end of a bypass", ending(b, "end-bypass", model.Bypass), by("ines"), ""},
		{"the end of a bypass under a row that does not exist", ending(b, "x", model.Bypass), by("ines"), ""},
		{"the end of a freeze", ending(b, "unfreeze", model.Freeze), by("ines"), ""},
	} {
		if got := b.Admit(&c.d, fingerprints(c.by...), now); got != c.want {
			t.Errorf("%s, signed by %v: %q, want %q", c.what, c.by, got, c.want)
		}
		// The console, which knows names and no signatures yet, says the same.
		if len(c.by) > 0 && !slices.Contains(c.by, "stranger") {
			if got := b.AdmitNamed(&c.d, c.by[0], c.by[1:], now); got != c.want {
				t.Errorf("%s, named %v: %q, want %q", c.what, c.by, got, c.want)
			}
		}
	}
	if got := b.AdmitNamed(&small, "stranger", nil, now); got != model.CodeUnknownKey {
		t.Errorf("somebody the root does not know: %q", got)
	}
}

func TestAnExpiredPolicyOnlyTightensAndRecovers(t *testing.T) {
	b, _, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	late := policytest.Expires()
	for _, c := range []struct {
		what string
		d    model.Directive
		want model.Code
	}{
		{"a bypass", smallBypass(b), model.CodePolicyExpired},
		{"a shed", shed(b, "shed", 3), ""},
		{"a recovery", ending(b, "recover", model.Shed), ""},
		{"the end of a bypass", ending(b, "end-bypass", model.Bypass), ""},
	} {
		if got := b.Admit(&c.d, fingerprints("ines"), late); got != c.want {
			t.Errorf("%s at the second of expiry: %q, want %q", c.what, got, c.want)
		}
		if got := b.Admit(&c.d, fingerprints("ines"), late.Add(-time.Second)); got != "" {
			t.Errorf("%s a second before expiry: %q", c.what, got)
		}
	}
}

// Whoever can strip signatures from files must not be able to stop a fleet from
// shedding, and must gain nothing that loosens.
func TestStrippedSignaturesNeverStopShedding(t *testing.T) {
	strip := func(files ...string) *policy.Bundle {
		f := shop(t)
		for _, file := range files {
			for _, person := range templates.ShopPeople() {
				f.strip(file, person)
			}
		}
		b, _, err := f.load()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	now := policytest.Now()
	for _, c := range []struct {
		what  string
		files []string
		d     func(b *policy.Bundle) model.Directive
		by    string
		want  model.Code
	}{
		{"the matrix: shed", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return shed(b, "shed", 4) }, "ines", ""},
		{"the matrix: shed by the controller", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return shed(b, "auto-shed", 2) }, templates.LadderController, ""},
		{"the matrix: shed by the controller beyond its role", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return shed(b, "auto-shed", 3) }, templates.LadderController, model.CodeInactiveDomain},
		{"the matrix: shed by finance", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return shed(b, "shed", 1) }, "fiona", model.CodeInactiveDomain},
		{"the matrix: a feature off", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, "reviews") }, "ines", ""},
		{"the matrix: end a bypass", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return ending(b, "end-bypass", model.Bypass) }, "ines", ""},
		{"the matrix: recover", []string{"rights.yaml"}, func(b *policy.Bundle) model.Directive { return ending(b, "recover", model.Shed) }, "ines", model.CodeInactiveDomain},
		{"the features: a feature off", []string{"features.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, "reviews") }, "ines", ""},
		{"payments: shed", []string{"payments.yaml"}, func(b *policy.Bundle) model.Directive { return shed(b, "shed", 3) }, "ines", ""},
		{"payments: bypass", []string{"payments.yaml"}, smallBypass, "ines", model.CodeUnknownRight},
		{"payments: its control switched off as a feature", []string{"payments.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, templates.PaymentRisk) }, "ines", model.CodeWrongKind},
		{"payments and the features: the same", []string{"payments.yaml", "features.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, templates.PaymentRisk) }, "ines", model.CodeWrongKind},
		{"payments and the matrix: the same", []string{"payments.yaml", "rights.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, templates.PaymentRisk) }, "ines", model.CodeInactiveDomain},
		{"payments and the matrix: a feature off", []string{"payments.yaml", "rights.yaml"}, func(b *policy.Bundle) model.Directive { return off(b, "reviews") }, "ines", ""},
		{"everything: shed", []string{"rights.yaml", "payments.yaml", "features.yaml", "ladder.yaml", "backends.yaml"},
			func(b *policy.Bundle) model.Directive { return shed(b, "shed", 3) }, "ines", ""},
		{"everything: bypass", []string{"rights.yaml", "payments.yaml", "features.yaml", "ladder.yaml", "backends.yaml"}, smallBypass, "ines", model.CodeInactiveDomain},
	} {
		b := strip(c.files...)
		d := c.d(b)
		if got := b.Admit(&d, fingerprints(c.by), now); got != c.want {
			t.Errorf("stripped %s by %s: %q, want %q", c.what, c.by, got, c.want)
		}
	}
}

func TestARevokedKeyActsNoMore(t *testing.T) {
	f := shop(t)
	root := f.rootOf("roots/1.yaml")
	root.Revoked = []string{fingerprint(policytest.Key("ines"))}
	f.replaceRoot(root)
	b, _, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	d := shed(b, "shed", 1)
	if got := b.Admit(&d, fingerprints("ines"), policytest.Now()); got != model.CodeRevokedKey {
		t.Errorf("got %q", got)
	}
	if got := b.Admit(&d, fingerprints("dev"), policytest.Now()); got != "" {
		t.Errorf("dev's key is not revoked: %q", got)
	}
}

// Authorization never opens, whoever signs and however the documents came in.
func TestAuthorizationNeverOpens(t *testing.T) {
	_, shopBundle, _ := policytest.Shop(t)
	right, _, _ := shopBundle.Right("risk-bypass-small-orders")
	docs := policy.Documents{Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {
		Controls: map[string]policy.Control{templates.PaymentRisk: {Protects: policy.ProtectsAuthorization, Services: []string{templates.Checkout}}},
		Rights:   map[string]policy.Right{"risk-bypass-small-orders": right},
	}}}
	b, err := policy.NewBundle(shopBundle.Root, shopBundle.Ref, shopBundle.Domains, docs)
	if err != nil {
		t.Fatal(err)
	}
	d := smallBypass(b)
	if got := b.Admit(&d, fingerprints("ines", "fiona", "ravi"), policytest.Now()); got != model.CodeNeverOpens {
		t.Errorf("got %q", got)
	}
}

func TestNewBundleRefusesTwoClaimsOfOneName(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	doc := func(control, right string) *policy.ControlsDoc {
		return &policy.ControlsDoc{Controls: map[string]policy.Control{control: {}}, Rights: map[string]policy.Right{right: {}}}
	}
	for _, c := range []struct {
		what string
		docs policy.Documents
	}{
		{"a control", policy.Documents{Controls: map[policy.Domain]*policy.ControlsDoc{"a": doc("c", "x"), "b": doc("c", "y")}}},
		{"a right", policy.Documents{Controls: map[policy.Domain]*policy.ControlsDoc{"a": doc("c", "x"), "b": doc("d", "x")}}},
	} {
		if _, err := policy.NewBundle(b.Root, b.Ref, b.Domains, c.docs); err == nil {
			t.Errorf("%s of two documents was accepted", c.what)
		}
	}
}

func TestWhatABundleKnows(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	if got := b.FingerprintsOf("ines"); !slices.Equal(got, fingerprints("ines")) {
		t.Errorf("the keys of ines are %v", got)
	}
	if s, ok := b.SignerOf(fingerprint(policytest.Key(templates.LadderController))); !ok || !s.Machine || s.Name != templates.LadderController {
		t.Errorf("the controller's key belongs to %+v", s)
	}
	if tier, ok := b.TierOf(4); !ok || tier.Name != "static" {
		t.Errorf("tier 4 is %+v", tier)
	}
	if _, ok := b.TierOf(5); ok {
		t.Error("there is a tier 5")
	}
	for service, want := range map[string]int{templates.Checkout: 4, templates.PaymentRisk: 1, "unheard-of": 4} {
		if got := b.LastTier(service); got != want {
			t.Errorf("the last tier of %s is %d, want %d", service, got, want)
		}
	}
	sooner, _, err := shop(t).change("ladder.yaml", "2027-11-30", "2027-01-01").load()
	if err != nil || sooner.Expires().Month() != time.January || !b.Expires().Equal(policytest.Expires()) {
		t.Errorf("the policies expire at %s and %s (%v)", sooner.Expires(), b.Expires(), err)
	}
	if got := b.Root.RolesOf(policy.Signer{Name: "dev"}); !slices.Equal(got, []string{"incident-commander"}) {
		t.Errorf("dev is %v", got)
	}
}

// TestARightOpensItsOwnControlOnly, also where the other one is known, stands before
// the same service and protects less.
func TestARightOpensItsOwnControlOnly(t *testing.T) {
	b, _, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	d := smallBypass(b)
	two := *b
	two.Controls = maps.Clone(b.Controls)
	two.Controls["rate-limit"] = b.Controls[d.Control]
	for control, want := range map[string]model.Code{d.Control: "", "rate-limit": model.CodeUnknownControl, "nothing": model.CodeUnknownControl} {
		asked := d
		asked.Control = control
		if got := two.Admit(&asked, fingerprints("ines"), policytest.Now()); got != want {
			t.Errorf("%s: %q, want %q", control, got, want)
		}
	}
}

// TestARoleShedsAndRecoversWithinItsOwnTiers, also where its right says more.
func TestARoleShedsAndRecoversWithinItsOwnTiers(t *testing.T) {
	b, _, err := shop(t).load()
	if err != nil {
		t.Fatal(err)
	}
	low, root := *b, *b.Root
	root.Roles = maps.Clone(b.Root.Roles)
	role := root.Roles[templates.Commander]
	role.MaxTier = 2
	root.Roles[templates.Commander] = role
	low.Root = &root
	step := func(from int) model.Directive {
		d := ending(b, "recover", model.Shed)
		d.From, d.To = from, from-1
		return d
	}
	for _, c := range []struct {
		d    model.Directive
		want model.Code
	}{
		{shed(b, "shed", 2), ""}, {shed(b, "shed", 3), model.CodeWrongRole},
		{step(2), ""}, {step(3), model.CodeWrongRole},
	} {
		if got := b.Admit(&c.d, fingerprints("ines"), policytest.Now()); got != "" {
			t.Errorf("%s of tier %d from %d, by a role without that bound: %q", c.d.Kind, c.d.Tier, c.d.From, got)
		}
		if got := low.Admit(&c.d, fingerprints("ines"), policytest.Now()); got != c.want {
			t.Errorf("%s of tier %d from %d: %q, want %q", c.d.Kind, c.d.Tier, c.d.From, got, c.want)
		}
	}
}
