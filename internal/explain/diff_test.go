package explain_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// drafts reads the unsigned documents of a shop.
func drafts(t testing.TB, bend func(files map[string][]byte)) explain.Source {
	t.Helper()
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	if bend != nil {
		bend(files)
	}
	return readDrafts(t, files)
}

func readDrafts(t tester, files map[string][]byte) explain.Source {
	t.Helper()
	folder := fstest.MapFS{}
	for name, content := range files {
		folder[name] = &fstest.MapFile{Data: content, Mode: fs.FileMode(0o644)}
	}
	docs, root, found, err := policy.ReadDrafts(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Fatal(f)
	}
	return explain.Source{Root: root, Docs: docs, Now: policytest.Now(), Unsigned: "it is a draft"}
}

func swapped(t testing.TB, file, old, new string) explain.Source {
	t.Helper()
	return drafts(t, func(files map[string][]byte) {
		if n := bytes.Count(files[file], []byte(old)); n != 1 {
			t.Fatalf("%q stands %d times in %s", old, n, file)
		}
		files[file] = bytes.Replace(files[file], []byte(old), []byte(new), 1)
	})
}

func TestEqualPoliciesDoNotDiffer(t *testing.T) {
	d := explain.Diff(drafts(t, nil), drafts(t, nil))
	if !d.Empty() {
		t.Fatalf("got %+v", d)
	}
}

// Each row is one edit of a signed file, and the sentence that whoever signs the
// next version has to read.
func TestAChangeIsSaidInWords(t *testing.T) {
	before := drafts(t, nil)
	for _, c := range []struct {
		file, old, new string
		text           string
		reach          explain.Reach
		path           string
	}{
		{"payments.yaml", "under: \"50.00 USD\"", "under: \"75.00 USD\"",
			"risk-bypass-small-orders: the cap per item rises from 50.00 USD to 75.00 USD", explain.Wider, "rights.risk-bypass-small-orders.bypass.under"},
		{"payments.yaml", "under: \"50.00 USD\"", "under: \"50.00 EUR\"",
			"risk-bypass-small-orders: the cap per item changes from 50.00 USD to 50.00 EUR", explain.Wider, "rights.risk-bypass-small-orders.bypass.under"},
		{"payments.yaml", "cosign:\n      count: 1", "cosign:\n      count: 0", "risk-bypass-medium-orders: a second signature is no longer wanted", explain.Wider, "rights.risk-bypass-medium-orders.cosign.count"},
		{"payments.yaml", "per_day: 4", "per_day: 3", "risk-bypass-small-orders: the number of grants in a day falls from 4 to 3", explain.Narrower, "rights.risk-bypass-small-orders.bypass.per_day"},
		{"payments.yaml", "fails: closed", "fails: open", "payment-risk: it fails open now: when what it asks is gone, everything is let through", explain.Wider, "controls.payment-risk.fails"},
		{"payments.yaml", "services: [checkout]", "services: [checkout, edge]", "payment-risk: where it is held, and a bypass reaches: edge is added", explain.Wider, "controls.payment-risk.services"},
		{"rights.yaml", "    lasts: 1h\n", "    lasts: 30m\n", "freeze: the longest window of a use falls from 1h to 30m", explain.Narrower, "rights.freeze.lasts"},
		{"rights.yaml", "    blind: true\n", "", "recover-blind: it needs known-good signals now", explain.Narrower, "rights.recover-blind.blind"},
		{"features.yaml", "  reviews:\n    class: sheddable", "  reviews:\n    class: degradable", "reviews: its class changes from sheddable to degradable: it gets simpler now", explain.Neither, "features.reviews.class"},
		{"features.yaml", "1: \"the newest three, up to a day old\"", "1: \"off\"", "reviews: at tier 1 changes from \"the newest three, up to a day old\" to \"off\"", explain.Neither, "features.reviews.tiers.1"},
		{"backends.yaml", "secrets: []\n    why: \"The deploy", "secrets: [token]\n    why: \"The deploy", "git: the secrets it may read: token is added", explain.Wider, "backends.git.secrets"},
		{"journeys.yaml", "[sign-in]", "[sign-in, place-order]", "buy: what breaks it: [sign-in, place-order] is added", explain.Neither, "journeys.buy.broken_by"},
		{"roots/1.yaml", "  finance:\n    any: 2", "  finance:\n    any: 1", "finance: the number of members who have to sign falls from 2 to 1", explain.Wider, "groups.finance.any"},
		{"roots/1.yaml", "of: [fiona, ravi]", "of: [fiona, ravi, dev]", "finance: the members: dev is added", explain.Wider, "groups.finance.of"},
		{"roots/1.yaml", "    max_tier: 2\n", "    max_tier: 3\n", "ladder-controller: the highest tier of the role rises from 2 to 3", explain.Wider, "roles.ladder-controller.max_tier"},
	} {
		d := explain.Diff(before, swapped(t, c.file, c.old, c.new))
		var got []string
		found := false
		for _, f := range d.Files {
			for _, change := range f.Changes {
				got = append(got, string(change.Reach)+": "+change.Path+": "+change.Text)
				found = found || change.Text == c.text && change.Reach == c.reach && change.Path == c.path && f.File == c.file
			}
		}
		if !found {
			t.Errorf("%s: %q to %q:\n got %q\nwant %s: %s: %s", c.file, c.old, c.new, got, c.reach, c.path, c.text)
		}
	}
}

func TestWhatWidensStandsFirstAndSaysWhoSigns(t *testing.T) {
	after := drafts(t, func(files map[string][]byte) {
		s := string(files["payments.yaml"])
		s = strings.Replace(s, "per_day: 4", "per_day: 1", 1)
		s = strings.Replace(s, "while risk scoring is down", "while scoring is down", 1)
		s = strings.Replace(s, "host_total: \"1500.00 USD\"", "host_total: \"2000.00 USD\"", 1)
		files["payments.yaml"] = []byte(s)
		files["journeys.yaml"] = bytes.Replace(files["journeys.yaml"], []byte("find a product"), []byte("find a thing"), 1)
	})
	d := explain.Diff(drafts(t, nil), after)
	if len(d.Files) != 2 || d.Files[0].File != "payments.yaml" || d.Files[1].File != "journeys.yaml" || d.Files[0].Signers != "finance: 2 of fiona, ravi" {
		t.Fatalf("got %+v", d.Files)
	}
	var reaches []explain.Reach
	for _, c := range d.Files[0].Changes {
		reaches = append(reaches, c.Reach)
	}
	if !slices.Equal(reaches, []explain.Reach{explain.Wider, explain.Neither, explain.Narrower}) {
		t.Errorf("in the order %v", reaches)
	}
	// 20 hosts x 2,000 instead of x 1,500.
	want := "risk-bypass-small-orders: the worst case in one UTC day rises from 30000.00 USD to 40000.00 USD"
	if len(d.Consequences) != 1 || d.Consequences[0].Text != want || d.Consequences[0].Reach != explain.Wider {
		t.Errorf("in money: %+v", d.Consequences)
	}
}

// More hosts make a bypass cost more, although its own document stays as it is.
func TestMoreHostsAreSaidInMoney(t *testing.T) {
	after := drafts(t, nil)
	hosts := after.Docs.Backends.Inventory.Hosts
	after.Docs.Backends.Inventory.Hosts = append(hosts, policy.InventoryHost{Host: "checkout-17", Services: []string{"checkout"}})
	d := explain.Diff(drafts(t, nil), after)
	want := "risk-bypass-small-orders: the worst case in one UTC day rises from 30000.00 USD to 31500.00 USD"
	if !slices.ContainsFunc(d.Consequences, func(c explain.Change) bool { return c.Text == want && c.Reach == explain.Wider }) {
		t.Errorf("got %+v", d.Consequences)
	}
	if len(d.Files) != 1 || d.Files[0].Changes[0].Path != "inventory.hosts[60]" {
		t.Errorf("got %+v", d.Files)
	}
}

func TestATierPutInBetweenLeavesTheOthersAlone(t *testing.T) {
	after := drafts(t, nil)
	tiers := after.Docs.Ladder.Tiers
	enter := tiers[0].Enter
	tiers[0].Enter = []policy.Condition{enter[1], enter[2]}
	d := explain.Diff(drafts(t, nil), after)
	if len(d.Files) != 1 || len(d.Files[0].Changes) != 1 || d.Files[0].Changes[0].How != "removed" || d.Files[0].Changes[0].Path != "tiers[0].enter[0]" {
		t.Errorf("one condition less: %+v", d.Files)
	}
}

func TestANewRightIsSaidAsExplainSaysIt(t *testing.T) {
	after := drafts(t, nil)
	rights := after.Docs.Controls[templates.PaymentsDomain].Rights
	rights["third"] = rights["risk-bypass-small-orders"]
	d := explain.Diff(drafts(t, nil), after)
	text := d.Files[0].Changes[0].Text
	for _, want := range []string{"the right third is new. ", "dev or ines may", "WORST CASE in one UTC day: (16 hosts + 4 hosts that may join) x 1500.00 USD each = 30000.00 USD"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said in %q", want, text)
		}
	}
	delete(rights, "third")
	delete(rights, "risk-bypass-small-orders")
	d = explain.Diff(drafts(t, nil), after)
	if c := d.Files[0].Changes[0]; c.Reach != explain.Narrower || !strings.HasPrefix(c.Text, "the right risk-bypass-small-orders is gone") {
		t.Errorf("got %+v", c)
	}
}

func TestADocumentThatIsNewOrGone(t *testing.T) {
	after := drafts(t, func(files map[string][]byte) { delete(files, "payments.yaml") })
	gone := explain.Diff(drafts(t, nil), after)
	if len(gone.Files) != 1 || !slices.ContainsFunc(gone.Files[0].Changes, func(c explain.Change) bool {
		return c.Text == "payments.yaml is gone: nothing of it is in force any more"
	}) {
		t.Errorf("got %+v", gone)
	}
	if c := gone.Files[0].Changes[0]; c.Reach != explain.Wider || !strings.HasPrefix(c.Text, "the control payment-risk is gone") {
		t.Errorf("a control that is protected no more comes first: %+v", c)
	}
	added := explain.Diff(after, drafts(t, nil))
	if len(added.Files) != 1 || added.Files[0].Changes[0].Reach != explain.Wider {
		t.Errorf("got %+v", added)
	}
}

func TestEveryFieldHasARuleOfItsOwn(t *testing.T) {
	for _, doc := range []struct {
		name  string
		value any
	}{
		{"features", policy.FeaturesDoc{}}, {"ladder", policy.LadderDoc{}}, {"rights", policy.RightsDoc{}}, {"payments", policy.ControlsDoc{}},
		{"backends", policy.BackendsDoc{}}, {"journeys", policy.JourneysDoc{}}, {"root", policy.Root{}},
	} {
		known := explain.PatternsForTest(doc.name)
		leaves := make(map[string]bool)
		leavesOf(reflect.TypeOf(doc.value), "", leaves)
		for leaf := range leaves {
			if !slices.Contains(known, leaf) {
				t.Errorf("%s: a change of %s has no words of its own", doc.name, leaf)
			}
		}
		for _, pattern := range known {
			if !leaves[pattern] && !slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(p, pattern+".") }) && !strings.HasSuffix(pattern, "[]") {
				t.Errorf("%s: there is no field %s", doc.name, pattern)
			}
		}
	}
}

// leavesOf lists the patterns at which single values of a type stand.
func leavesOf(t reflect.Type, path string, into map[string]bool) {
	switch {
	case t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[model.Money]():
		into[path] = true
	case t.Kind() == reflect.Pointer:
		leavesOf(t.Elem(), path, into)
	case t.Kind() == reflect.Map:
		leavesOf(t.Elem(), path+".*", into)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		leavesOf(t.Elem(), path+"[]", into)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			next := path
			if options != "inline" {
				next = strings.TrimPrefix(path+"."+key, ".")
			}
			leavesOf(f.Type, next, into)
		}
	default:
		into[path] = true
	}
}

func TestADifferenceIsWrittenForPeople(t *testing.T) {
	d := explain.Diff(drafts(t, nil), swapped(t, "payments.yaml", "under: \"50.00 USD\"", "under: \"75.00 USD\""))
	var b strings.Builder
	d.Text(&b)
	for _, want := range []string{
		`(?m)^payments.yaml$`, `(?m)^  to be signed by finance: 2 of fiona, ravi$`,
		`(?m)^  wider +risk-bypass-small-orders: the cap per item rises from 50.00 USD to 75.00 USD$`, `(?m)^1 wider, 0 narrower, 0 neither$`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("%s is not in:\n%s", want, b.String())
		}
	}
	b.Reset()
	none := explain.Diff(drafts(t, nil), drafts(t, nil))
	none.Text(&b)
	if b.String() != "nothing changes\n" {
		t.Errorf("got %q", b.String())
	}
}

// A draft may say anything: a group that holds itself ends no program.
func TestAGroupThatHoldsItselfIsRefused(t *testing.T) {
	bent := drafts(t, nil)
	bent.Root.Groups["finance"] = policy.Group{Any: 1, Of: []string{"finance", "business"}}
	if _, err := explain.Explain(bent, "finance"); !errors.Is(err, policy.ErrRoot) {
		t.Errorf("explained: %v", err)
	}
	if _, err := explain.Plan(bent, big.NewRat(1, 1)); !errors.Is(err, policy.ErrRoot) {
		t.Errorf("planned: %v", err)
	}
	bent.Docs.Controls[templates.PaymentsDomain].Rights["third"] = policy.Right{Kind: model.Ping}
	d := explain.Diff(drafts(t, nil), bent)
	if len(d.Files) != 2 || d.Files[1].Signers != "finance: 1 of finance, business" && d.Files[0].Signers != "finance: 1 of finance, business" {
		t.Errorf("got %+v", d.Files)
	}
}

// Two documents that claim one right cannot be in force together, and are still
// compared.
func TestDocumentsThatContradictEachOtherAreStillCompared(t *testing.T) {
	bent := drafts(t, nil)
	bent.Docs.Rights.Rights[small] = policy.Right{Kind: model.Ping}
	if _, err := explain.Explain(bent, ""); err == nil || !strings.Contains(err.Error(), "cannot be in force together") {
		t.Errorf("got %v", err)
	}
	d := explain.Diff(drafts(t, nil), bent)
	if len(d.Files) != 1 || d.Files[0].Changes[0].Path != "rights."+small || len(d.Consequences) != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestTwoConditionsOfOneSignalAreComparedByTheirPlace(t *testing.T) {
	before, after := drafts(t, nil), drafts(t, nil)
	for _, src := range []explain.Source{before, after} {
		tier := &src.Docs.Ladder.Tiers[0]
		tier.Enter = []policy.Condition{tier.Enter[0], tier.Enter[0]}
	}
	after.Docs.Ladder.Tiers[0].Enter[1].For = model.Duration(time.Hour)
	d := explain.Diff(before, after)
	if len(d.Files) != 1 || len(d.Files[0].Changes) != 1 || d.Files[0].Changes[0].Text != "tier 1, number 2: how long it holds before the tier is entered rises from 2m to 1h" {
		t.Errorf("got %+v", d.Files)
	}
}

// Each row bends a draft where no text of a file would do.
func TestWhatFollowsFromABentDraft(t *testing.T) {
	before := drafts(t, nil)
	payments := func(src *explain.Source) *policy.ControlsDoc { return src.Docs.Controls[templates.PaymentsDomain] }
	for what, c := range map[string]struct {
		bend  func(src *explain.Source)
		text  string
		reach explain.Reach
	}{
		"a tier left sooner": {func(src *explain.Source) { src.Docs.Ladder.Tiers[1].Dwell = 0 }, "tier 2: the least time in it falls from 10m to 0s", explain.Wider},
		"a threshold to leave": {func(src *explain.Source) { *src.Docs.Ladder.Tiers[0].Leave[1].Below = 70 },
			"tier 1, cpu: the threshold to leave below rises from 60 to 70", explain.Wider},
		"a ramp":     {func(src *explain.Source) { src.Docs.Ladder.Tiers[0].Ramp = []int{100} }, "tier 1: its ramp changes from [10, 50, 100] to [100]", explain.Wider},
		"automation": {func(src *explain.Source) { src.Docs.Ladder.Tiers[3].Auto = true }, "tier 4: the controller may enter and leave it by itself now", explain.Wider},
		"expiry":     {func(src *explain.Source) { payments(src).Expires = policytest.Now() }, "the expiry of the document moves from 2027-11-30 00:00:00 UTC to 2026-11-30 02:30:00 UTC", explain.Narrower},
		"three people": {func(src *explain.Source) {
			r := payments(src).Rights[small]
			r.Cosign.Count = 3
			payments(src).Rights[small] = r
		}, small + ": the number of people who sign besides rises from 0 to 3", explain.Narrower},
		"a rehearsal": {func(src *explain.Source) {
			r := payments(src).Rights[small]
			r.RehearsedWithin = model.Duration(time.Hour)
			payments(src).Rights[small] = r
		}, small + ": how long ago a rehearsal may be is new: 1h", explain.Narrower},
		"a fallback gone": {func(src *explain.Source) {
			deps := src.Docs.Features.Features["personal-prices"].Endpoints["browse"].Dependencies
			dep := deps["price-service"]
			dep.Fallback = nil
			deps["price-service"] = dep
		}, "personal-prices, browse, price-service: the fallback is gone; it was ", explain.Neither},
		"a setting": {func(src *explain.Source) { src.Docs.Backends.Backends["git"].Config["branch"] = "next" }, `git: the setting branch changes from "main" to "next"`, explain.Wider},
		"an order":  {func(src *explain.Source) { slices.Reverse(src.Root.Groups["finance"].Of) }, "finance: the members: the same in another order", explain.Neither},
		"a new key": {func(src *explain.Source) {
			p := src.Root.People["fiona"]
			p.Keys = append(p.Keys, "ssh-ed25519 AAAA")
			src.Root.People["fiona"] = p
		}, `fiona: the keys: ssh-ed25519 AAAA is added`, explain.Wider},
		"a revocation": {func(src *explain.Source) { src.Root.Revoked = []string{"SHA256:x"} }, "the revoked keys: SHA256:x is added", explain.Narrower},
	} {
		after := drafts(t, nil)
		c.bend(&after)
		d := explain.Diff(before, after)
		if len(d.Files) != 1 || len(d.Files[0].Changes) != 1 {
			t.Errorf("%s: %+v", what, d.Files)
			continue
		}
		if got := d.Files[0].Changes[0]; !strings.HasPrefix(got.Text, c.text) || got.Reach != c.reach {
			t.Errorf("%s: got %s: %q, want %s: %q", what, got.Reach, got.Text, c.reach, c.text)
		}
	}
}

func TestWithoutARootNobodyIsNamed(t *testing.T) {
	before, after := drafts(t, nil), drafts(t, nil)
	before.Root, after.Root = nil, nil
	bypassOf(after, small).Total = usd(1)
	if d := explain.Diff(before, after); len(d.Files) != 1 || d.Files[0].Signers != "" || len(d.Consequences) != 0 {
		t.Errorf("got %+v", d)
	}
	after = drafts(t, nil)
	delete(after.Root.Domains, policy.Journeys)
	after.Docs.Journeys.Why = "another"
	d := explain.Diff(drafts(t, nil), after)
	if !slices.ContainsFunc(d.Files, func(f explain.FileDiff) bool {
		return f.File == "journeys.yaml" && strings.HasPrefix(f.Signers, "nobody: ")
	}) {
		t.Errorf("got %+v", d.Files)
	}
}
