package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// What bent others when a directive is admitted, each a test by its name. Hosts
// ask Admit and nothing else, so what is refused here has no effect anywhere.

// pieces are what the shop's bundle is joined from, to be bent.
type pieces struct {
	root   policy.Root
	states map[policy.Domain]policy.DomainState
	rights map[string]policy.Right // of both documents
	docs   policy.Documents
}

func bentShop(t *testing.T, bend func(*pieces)) (*policy.Bundle, error) {
	t.Helper()
	_, b, _ := policytest.Shop(t)
	p := pieces{root: *b.Root, states: maps.Clone(b.Domains), rights: map[string]policy.Right{}}
	p.root.People, p.root.Groups, p.root.Roles = maps.Clone(b.Root.People), maps.Clone(b.Root.Groups), maps.Clone(b.Root.Roles)
	p.docs = policy.Documents{
		Features: &policy.FeaturesDoc{Features: b.Features}, Ladder: &policy.LadderDoc{Tiers: b.Tiers, Services: b.Services},
		Rights:   &policy.RightsDoc{Rights: map[string]policy.Right{}},
		Controls: map[policy.Domain]*policy.ControlsDoc{templates.PaymentsDomain: {Controls: b.Controls, Rights: map[string]policy.Right{}}},
	}
	domains := map[string]policy.Domain{}
	for _, name := range b.RightNames() {
		p.rights[name], domains[name], _ = b.Right(name)
	}
	bend(&p)
	for name, right := range p.rights {
		switch {
		case domains[name] == templates.PaymentsDomain && p.docs.Controls[templates.PaymentsDomain] != nil:
			p.docs.Controls[templates.PaymentsDomain].Rights[name] = right
		case domains[name] != templates.PaymentsDomain && p.docs.Rights != nil:
			p.docs.Rights.Rights[name] = right
		}
	}
	return policy.NewBundle(&p.root, b.Ref, p.states, p.docs)
}

func (p *pieces) right(name string, change func(*policy.Right)) {
	r := p.rights[name]
	change(&r)
	p.rights[name] = r
}

func joined(t *testing.T, bend func(*pieces)) *policy.Bundle {
	t.Helper()
	b, err := bentShop(t, bend)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keyOf(name string) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(policytest.Key(name).PublicKey())))
}

const mediumOrders = "risk-bypass-medium-orders"

func TestBentASecondKeyIsNoSecondPerson(t *testing.T) {
	b := joined(t, func(p *pieces) {
		fiona := p.root.People["fiona"]
		fiona.Keys = append(slices.Clone(fiona.Keys), keyOf("fiona-2"))
		p.root.People["fiona"] = fiona
		p.right(mediumOrders, func(r *policy.Right) { r.Cosign.Count = 2 })
	})
	d := mediumBypass(b)
	if got := b.Admit(&d, fingerprints("ines", "fiona", "fiona-2"), policytest.Now()); got != model.CodeQuorum {
		t.Errorf("two keys of one person: %q", got)
	}
	if got := b.Admit(&d, fingerprints("ines", "fiona", "ravi"), policytest.Now()); got != "" {
		t.Errorf("two people: %q", got)
	}
}

func TestBentOneKeyUnderTwoNamesIsNoRoot(t *testing.T) {
	_, err := bentShop(t, func(p *pieces) {
		p.root.People["fiona-again"] = policy.Person{Name: "fiona", Keys: []string{keyOf("fiona")}}
	})
	if err == nil || !strings.Contains(err.Error(), "one key is listed for") {
		t.Errorf("got %v", err)
	}
}

func TestBentAQuorumOfNobody(t *testing.T) {
	for name, bend := range map[string]func(*pieces){
		"a group that does not exist":   func(p *pieces) { p.right(mediumOrders, func(r *policy.Right) { r.Cosign.Of = "risk" }) },
		"no group":                      func(p *pieces) { p.right(mediumOrders, func(r *policy.Right) { r.Cosign.Of = "" }) },
		"a group without members":       func(p *pieces) { p.root.Groups["finance"] = policy.Group{} },
		"a group with a threshold of 0": func(p *pieces) { p.root.Groups["finance"] = policy.Group{Any: 0, Of: nil} },
		"no groups at all": func(p *pieces) {
			p.root.Groups = nil
			p.root.Roles["incident-commander"] = policy.Role{Members: []string{"ines"}, MaxTier: 4}
		},
		"a negative count":    func(p *pieces) { p.right(mediumOrders, func(r *policy.Right) { r.Cosign.Count = -1 }) },
		"more than everybody": func(p *pieces) { p.right(mediumOrders, func(r *policy.Right) { r.Cosign.Count = 1 << 60 }) },
	} {
		b := joined(t, bend)
		d := mediumBypass(b)
		for _, by := range [][]string{{"ines"}, {"ines", "ines"}, {"ines", "fiona", "ravi"}} {
			if got := b.Admit(&d, fingerprints(by...), policytest.Now()); got != model.CodeQuorum {
				t.Errorf("%s, signed by %v: %q", name, by, got)
			}
		}
	}
}

// TestBentAThresholdOfZeroIsNoThreshold: nothing in a root is satisfied by nobody.
func TestBentAThresholdOfZeroIsNoThreshold(t *testing.T) {
	root := policy.Root{Groups: map[string]policy.Group{"zero": {Any: 0, Of: []string{"ines"}}, "below": {Any: -1}, "empty": {Any: 1}, "nested": {Any: 1, Of: []string{"zero"}}}}
	for _, group := range []string{"zero", "below", "empty", "nested", "missing", ""} {
		for _, people := range []map[string]bool{nil, {}, {"ines": false}} {
			if root.Satisfied(group, people) {
				t.Errorf("the group %q is satisfied by %v", group, people)
			}
		}
	}
}

func TestBentSelfApprovalByKey(t *testing.T) {
	b := joined(t, func(p *pieces) {
		ines := p.root.People["ines"]
		ines.Keys = append(slices.Clone(ines.Keys), keyOf("ines-2"))
		p.root.People["ines"] = ines
	})
	blind := ending(b, "recover-blind", model.Shed) // either commander may approve the other's
	for _, by := range [][]string{{"ines"}, {"ines", "ines-2"}, {"ines-2", "ines"}, {"ines", templates.LadderController}} {
		if got := b.Admit(&blind, fingerprints(by...), policytest.Now()); got != model.CodeQuorum {
			t.Errorf("signed by %v: %q", by, got)
		}
	}
	if got := b.Admit(&blind, fingerprints("ines-2", "dev"), policytest.Now()); got != "" {
		t.Errorf("two people: %q", got)
	}
}

// TestBentAMissingPartNeverWidens: a bundle whose parts are gone admits nothing
// that opens.
func TestBentAMissingPartNeverWidens(t *testing.T) {
	for name, bend := range map[string]func(*pieces){
		"no states of domains": func(p *pieces) { p.states = nil },
		"no controls":          func(p *pieces) { p.docs.Controls = nil },
		"a control without services": func(p *pieces) {
			c := p.docs.Controls[templates.PaymentsDomain].Controls[templates.PaymentRisk]
			c.Services = nil
			p.docs.Controls[templates.PaymentsDomain].Controls = map[string]policy.Control{templates.PaymentRisk: c}
		},
		"no roles":  func(p *pieces) { p.root.Roles = nil },
		"no scope":  func(p *pieces) { p.right("risk-bypass-small-orders", func(r *policy.Right) { r.Scope = nil }) },
		"no bounds": func(p *pieces) { p.right("risk-bypass-small-orders", func(r *policy.Right) { r.Bypass = nil }) },
		"empty bounds": func(p *pieces) {
			p.right("risk-bypass-small-orders", func(r *policy.Right) { r.Bypass = &policy.Bypass{Control: templates.PaymentRisk} })
		},
		"no right":  func(p *pieces) { delete(p.rights, "risk-bypass-small-orders") },
		"no expiry": func(p *pieces) { p.root.Expires = time.Time{} },
	} {
		b := joined(t, bend)
		d := smallBypass(b)
		if got := b.Admit(&d, fingerprints("ines", "fiona", "ravi"), policytest.Now()); got == "" {
			t.Errorf("%s: admitted", name)
		}
	}
}

// TestBentStrippedSignaturesOfOneDomain: whichever document is not in force, who
// may tighten by the root still sheds.
func TestBentStrippedSignaturesOfOneDomain(t *testing.T) {
	for name, bend := range map[string]func(*pieces){
		"features": func(p *pieces) { p.docs.Features = nil; p.states[policy.Features] = policy.DomainState{} },
		"ladder":   func(p *pieces) { p.docs.Ladder = nil; p.states[policy.Ladder] = policy.DomainState{} },
		"rights":   func(p *pieces) { p.docs.Rights = nil; p.states[policy.Rights] = policy.DomainState{} },
		"payments": func(p *pieces) { p.docs.Controls = nil; p.states[templates.PaymentsDomain] = policy.DomainState{} },
		"all":      func(p *pieces) { p.docs, p.states = policy.Documents{}, nil },
	} {
		b := joined(t, bend)
		for _, d := range []model.Directive{shed(b, "shed", 3), off(b, "reviews"), ending(b, "end-bypass", model.Bypass)} {
			if got := b.Admit(&d, fingerprints("ines"), policytest.Now()); got != "" {
				t.Errorf("without %s: %s is refused: %s", name, d.Kind, got)
			}
		}
	}
}

// TestBentARightThatOutlivesItsDocument does so until its own day or the root's,
// whichever comes first, and takes nothing else with it.
func TestBentARightThatOutlivesItsDocument(t *testing.T) {
	expires := policytest.Expires()
	for _, c := range []struct {
		right, root time.Time
		at          time.Time
		want        model.Code
	}{
		{time.Time{}, expires.AddDate(9, 0, 0), expires.Add(-time.Second), ""},
		{time.Time{}, expires.AddDate(9, 0, 0), expires, model.CodePolicyExpired},
		{expires.AddDate(0, 1, 0), expires.AddDate(9, 0, 0), expires, ""},
		{expires.AddDate(0, 1, 0), expires.AddDate(9, 0, 0), expires.AddDate(0, 1, 0).Add(-time.Second), ""},
		{expires.AddDate(0, 1, 0), expires.AddDate(9, 0, 0), expires.AddDate(0, 1, 0), model.CodePolicyExpired},
		{expires.AddDate(0, 1, 0), expires, expires, model.CodePolicyExpired},
		{expires.AddDate(0, -1, 0), expires.AddDate(9, 0, 0), expires.Add(-time.Second), ""}, // it only outlives
	} {
		b := joined(t, func(p *pieces) {
			p.root.Expires = c.root
			p.right("risk-bypass-small-orders", func(r *policy.Right) { r.Expires = c.right })
		})
		d := smallBypass(b)
		what := fmt.Sprintf("right until %s, root until %s, at %s", c.right, c.root, c.at)
		if got := b.Admit(&d, fingerprints("ines"), c.at); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		other := mediumBypass(b)
		if got := b.Admit(&other, fingerprints("ines", "fiona"), c.at); (got == "") != c.at.Before(expires) {
			t.Errorf("%s: another right of the document: %q", what, got)
		}
		for _, d := range []model.Directive{shed(b, "shed", 3), ending(b, "recover", model.Shed), ending(b, "end-bypass", model.Bypass)} {
			if got := b.Admit(&d, fingerprints("ines"), c.at); got != "" {
				t.Errorf("%s: %s is refused: %s", what, d.Kind, got)
			}
		}
	}
}

func TestARightToSwitchOneFeatureOffIsForThatOne(t *testing.T) {
	b := joined(t, func(p *pieces) {
		p.right("feature-off", func(r *policy.Right) { r.Feature = "reviews" })
	})
	for feature, want := range map[string]model.Code{"reviews": "", "recommendations": model.CodeOutOfScope} {
		d := off(b, feature)
		if got := b.Admit(&d, fingerprints("ines"), policytest.Now()); got != want {
			t.Errorf("%s: %q, want %q", feature, got, want)
		}
	}
}

func TestADimmerStaysWithinItsRow(t *testing.T) {
	rule := policy.Dimmer{TargetMS: policy.Range{From: 200, To: 800}, Floor: 5, Ceiling: 90}
	b := joined(t, func(p *pieces) {
		dim := policy.Right{Kind: model.Dimmer, Who: "incident-commander", Cosign: policy.Cosign{Of: "business"}, Scope: []string{"*"}}
		p.rights["dim-boundless"] = dim
		dim.Dimmer = &rule
		p.rights["dim"] = dim
	})
	for _, c := range []struct {
		what                   string
		right                  string
		target, floor, ceiling int
		want                   model.Code
	}{
		{"exactly its bounds, fast", "dim", 200, 5, 90, ""},
		{"exactly its bounds, slow", "dim", 800, 5, 90, ""},
		{"well within", "dim", 400, 40, 40, ""},
		{"faster than allowed", "dim", 199, 5, 90, model.CodeOverCap},
		{"slower than allowed", "dim", 801, 5, 90, model.CodeOverCap},
		{"below the floor", "dim", 400, 4, 90, model.CodeOverCap},
		{"above the ceiling", "dim", 400, 5, 91, model.CodeOverCap},
		{"the wrong way round", "dim", 400, 41, 40, model.CodeOverCap},
		{"a row without bounds", "dim-boundless", 400, 5, 90, model.CodeOverCap},
	} {
		d := shed(b, c.right, 0)
		d.Kind, d.TargetMS, d.Floor, d.Ceiling = model.Dimmer, c.target, c.floor, c.ceiling
		if got := b.Admit(&d, fingerprints("ines"), policytest.Now()); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := b.RightsOf(model.Dimmer); !slices.Equal(got, []string{"dim", "dim-boundless"}) {
		t.Errorf("the rights to dim are %v", got)
	}
}

// Under a right that is not in force whoever may tighten may make a fleet do less,
// and nothing else: a freeze of a year would keep everybody from recovering, and
// no row bounds it.
func TestBentWithoutItsRowNothingIsUnbounded(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	now := policytest.Now()
	for _, kind := range []model.Kind{model.Freeze, model.Ping, model.Dimmer} {
		d := model.Directive{Fleet: policytest.Fleet, Kind: kind, Scope: model.AnyScope, Right: "unheard-of", Policy: b.Ref,
			IssuedAt: now, NotBefore: now, NotAfter: now.AddDate(1, 0, 0), TargetMS: 1, Floor: 1, Ceiling: 1}
		for _, who := range []string{templates.Ines, templates.LadderController} {
			if code := b.AdmitNamed(&d, who, nil, now); code != model.CodeUnknownRight {
				t.Errorf("%s by %s under no right: %q", kind, who, code)
			}
		}
	}
	ping := model.Directive{Fleet: policytest.Fleet, Kind: model.End, Ends: model.Ping, IDs: []string{"x"}, Scope: model.AnyScope, Right: "unheard-of", Policy: b.Ref, IssuedAt: now, NotBefore: now}
	if code := b.AdmitNamed(&ping, templates.Ines, nil, now); code != model.CodeUnknownRight {
		t.Errorf("the end of a ping under no right: %q", code)
	}
	shed := model.Directive{Fleet: policytest.Fleet, Kind: model.Shed, Tier: 2, Scope: model.AnyScope, Right: "unheard-of", Policy: b.Ref, IssuedAt: now, NotBefore: now}
	if code := b.AdmitNamed(&shed, templates.Ines, nil, now); code != "" {
		t.Errorf("a shed under no right: %q", code)
	}
}

// A recovery that a newer policy has judged goes through here for a role that may
// recover here, up to the tier that it reaches, and for no other.
func TestARecoveryUnderANewerPolicy(t *testing.T) {
	now := policytest.Now()
	for _, c := range []struct {
		what string
		from int
		by   string
		bend func(*pieces)
		want model.Code
	}{
		{"from the highest tier of the role", 4, templates.Ines, func(*pieces) {}, ""},
		{"from beyond it", 5, templates.Ines, func(*pieces) {}, model.CodeUnknownRight},
		{"by nobody who recovers", 1, templates.Fiona, func(*pieces) {}, model.CodeUnknownRight},
		{"where no right recovers", 1, templates.Ines, func(p *pieces) {
			maps.DeleteFunc(p.rights, func(_ string, r policy.Right) bool { return r.Ends == model.Shed })
		}, model.CodeUnknownRight},
	} {
		b := joined(t, c.bend)
		d := model.Directive{Fleet: policytest.Fleet, Kind: model.End, Ends: model.Shed, IDs: []string{"x"}, From: c.from, To: c.from - 1, Percent: 10,
			Scope: model.AnyScope, Right: "unheard-of", Policy: model.PolicyRef{Version: b.Ref.Version + 1, Digest: b.Ref.Digest}, IssuedAt: now, NotBefore: now}
		if code := b.AdmitNamed(&d, c.by, nil, now); code != c.want {
			t.Errorf("%s: %q, want %q", c.what, code, c.want)
		}
	}
}

// A range of tiers has two ends: the right for the last tier is not one for those
// below it, which want fewer people.
func TestBentARangeOfTiersHasTwoEnds(t *testing.T) {
	_, b, _ := policytest.Shop(t)
	now := policytest.Now()
	for tier, want := range map[int]model.Code{3: model.CodeOverTier, 4: "", 5: model.CodeOverTier} {
		d := model.Directive{Fleet: policytest.Fleet, Kind: model.Shed, Tier: tier, Scope: model.AnyScope, Right: "shed-4", Policy: b.Ref, IssuedAt: now, NotBefore: now}
		if code := b.AdmitNamed(&d, templates.Ines, []string{templates.Fiona}, now); code != want {
			t.Errorf("tier %d under the right for tier 4: %q, want %q", tier, code, want)
		}
	}
}
