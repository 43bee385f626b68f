package policy_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func TestTheExamplePolicyIsActiveAsAWhole(t *testing.T) {
	f := shop(t)
	b, highest, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	for domain, state := range b.Domains {
		if !state.Active || state.Why != "" || len(state.Signers) == 0 || !state.Expires.Equal(policytest.Expires()) {
			t.Errorf("%s: %+v", domain, state)
		}
	}
	if b.Ref.Version != 1 || b.Ref.Digest != sum(f.read("manifest.yaml")) {
		t.Errorf("the reference is %+v, not the digest of the manifest", b.Ref)
	}
	if len(b.Features) != 11 || len(b.Tiers) != 4 || len(b.Inventory.Hosts) != 60 || len(b.Controls) != 1 || len(b.RightNames()) < 14 ||
		len(b.Backends) != 2 || len(b.Journeys) != 2 || len(b.Signals) != 4 || len(b.Services) != 4 || len(b.FlagService.Dependencies) != 2 {
		t.Errorf("the bundle lacks parts: %d features, %d rights", len(b.Features), len(b.RightNames()))
	}
	if _, domain, ok := b.Right("risk-bypass-small-orders"); !ok || domain != templates.PaymentsDomain {
		t.Errorf("the small bypass is granted by %q", domain)
	}
	if highest.Manifest.Version != 1 || len(highest.Domains) != len(b.Domains) || highest.Root.SHA256 != f.opts.RootSHA256 {
		t.Errorf("remembered: %+v", highest)
	}
}

// A signature in the wrong hand, place or form makes its document inactive and
// takes nothing else down.
func TestSignaturesThatDoNotCount(t *testing.T) {
	const file, ns = "payments.yaml", "ic-policy-v1@shop-demo"
	for _, c := range []struct {
		what string
		bend func(f *folder)
		why  string
	}{
		{"one of two signers is missing", func(f *folder) { f.strip(file, "ravi") }, "finance wants 2 of fiona, ravi; signed by fiona"},
		{"nobody signed", func(f *folder) { f.strip(file, "ravi"); f.strip(file, "fiona") }, "signed by nobody"},
		{"somebody outside the group signed", func(f *folder) { f.strip(file, "ravi"); f.sign(file, "ines", "dev", "priya") }, "signed by dev, fiona, ines, priya"},
		{"another person's key under a name of the group", func(f *folder) { f.signAs(file, "ravi", policytest.Key("ines"), ns) }, "signed by fiona"},
		{"a key of the group under another's name", func(f *folder) { f.signAs(file, "ravi", policytest.Key("fiona"), ns) }, "signed by fiona"},
		{"a key that the root does not know", func(f *folder) { f.signAs(file, "ravi", policytest.Key("stranger"), ns) }, "signed by fiona"},
		{"a machine", func(f *folder) { f.signAs(file, "ravi", policytest.Key(templates.LadderController), ns) }, "signed by fiona"},
		{"the namespace of a root", func(f *folder) { f.signAs(file, "ravi", policytest.Key("ravi"), "ic-root-v1@shop-demo") }, "signed by fiona"},
		{"the namespace of another fleet", func(f *folder) { f.signAs(file, "ravi", policytest.Key("ravi"), "ic-policy-v1@other") }, "signed by fiona"},
		{"the namespace of a drill", func(f *folder) { f.signAs(file, "ravi", policytest.Key("ravi"), "ic-drill-policy-v1@shop-demo") }, "signed by fiona"},
		{"a signature of another document", func(f *folder) { f.files[file+".sig/ravi.sig"] = f.files["roots/1.yaml.sig/ravi.sig"] }, "signed by fiona"},
		{"garbage behind the armor", func(f *folder) {
			f.write(file+".sig/ravi.sig", append(f.read(file+".sig/ravi.sig"), '\n'))
		}, "signed by fiona"},
		{"two signatures in one file", func(f *folder) {
			f.write(file+".sig/ravi.sig", append(f.read(file+".sig/fiona.sig"), f.read(file+".sig/ravi.sig")...))
		}, "signed by fiona"},
		{"no signature in the file", func(f *folder) { f.write(file+".sig/ravi.sig", nil) }, "signed by fiona"},
		{"a file that is too long", func(f *folder) { f.write(file+".sig/ravi.sig", make([]byte, 5000)) }, "signed by fiona"},
		{"a name that is not <person>.sig", func(f *folder) {
			f.write(file+".sig/ravi.asc", f.read(file+".sig/ravi.sig"))
			f.strip(file, "ravi")
		}, "signed by fiona"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			c.bend(f)
			f.inactive(templates.PaymentsDomain, c.why)
		})
	}
}

func TestExtraSignaturesAreIgnored(t *testing.T) {
	f := shop(t)
	f.sign("payments.yaml", "ines")
	f.signAs("payments.yaml", "nobody", policytest.Key("nobody"), "ic-policy-v1@shop-demo")
	f.write("payments.yaml.sig/README", []byte("hello"))
	for domain, state := range f.active() {
		if !state.Active {
			t.Errorf("%s is not active: %s", domain, state.Why)
		}
	}
}

// Two keys of one person are one person, for documents as for directives.
func TestTwoKeysOfOnePersonCountOnce(t *testing.T) {
	f := shop(t)
	root := f.rootOf("roots/1.yaml")
	fiona := root.People["fiona"]
	second := policytest.Key("fiona-second")
	fiona.Keys = append(fiona.Keys, authorized(second))
	root.People["fiona"] = fiona
	f.replaceRoot(root)
	f.strip("payments.yaml", "ravi")
	f.signAs("payments.yaml", "ravi", second, "ic-policy-v1@shop-demo")
	f.inactive(templates.PaymentsDomain, "signed by fiona")

	f.signAs("payments.yaml", "fiona", second, "ic-policy-v1@shop-demo")
	f.sign("payments.yaml", "ravi")
	if state := f.active()[templates.PaymentsDomain]; !state.Active {
		t.Errorf("fiona's second key does not count: %s", state.Why)
	}
}

func TestARevokedKeyDoesNotCount(t *testing.T) {
	f := shop(t)
	root := f.rootOf("roots/1.yaml")
	root.Revoked = []string{fingerprint(policytest.Key("ravi"))}
	f.replaceRoot(root)
	f.inactive(templates.PaymentsDomain, "signed by fiona")
}

// Every byte of a document is covered by its signatures, also when whoever
// changed it can publish a manifest that names the changed file.
func TestAFlippedByteIsNeverActive(t *testing.T) {
	f := shop(t)
	judge, err := policy.JudgeForTest(f.files, f.opts)
	if err != nil {
		t.Fatal(err)
	}
	original := f.read("payments.yaml")
	for i := range original {
		changed := bytes.Clone(original)
		changed[i] ^= 1 << (i % 8)
		f.write("payments.yaml", changed)
		if state, err := judge(templates.PaymentsDomain); err != nil || state.Active || !strings.HasPrefix(state.Why, "signatures are missing: ") {
			t.Fatalf("byte %d changed: %v, %+v", i, err, state)
		}
	}
	f.write("payments.yaml", original)
	if state, err := judge(templates.PaymentsDomain); err != nil || !state.Active {
		t.Errorf("the untouched document: %v, %+v", err, state)
	}
}

func TestAFlippedByteInEachFile(t *testing.T) {
	for name := range shop(t).files {
		f := shop(t)
		content := f.read(name)
		content[len(content)/2] ^= 1
		f.write(name, content)
		b, _, err := f.load()
		fallen := 0
		if err == nil {
			for _, state := range b.Domains {
				if !state.Active {
					fallen++
				}
			}
		}
		switch {
		case name == "manifest.yaml", name == "roots/1.yaml":
			if err == nil {
				t.Errorf("%s changed and the policy loads", name)
			}
		case strings.Contains(name, "yaml.sig/"):
			// Where the group has somebody to spare, one broken signature changes nothing.
			if err != nil || fallen > 1 {
				t.Errorf("%s changed: error %v, %d domains fell", name, err, fallen)
			}
		case err != nil || fallen != 1:
			t.Errorf("%s changed: error %v, %d domains fell, want this one alone", name, err, fallen)
		}
	}
}

func TestADocumentThatDoesNotFitIsInactive(t *testing.T) {
	for _, c := range []struct {
		what   string
		domain policy.Domain
		bend   func(f *folder)
		why    string
	}{
		{"it is missing", "ladder", func(f *folder) { delete(f.files, "ladder.yaml") }, "ladder.yaml is missing"},
		{"it is not in the manifest", "journeys", func(f *folder) {
			content := f.files["journeys.yaml"]
			delete(f.files, "journeys.yaml")
			f.manifest(1)
			f.files["journeys.yaml"] = content
		}, "not in the manifest"},
		{"the manifest names another content", "ladder", func(f *folder) {
			f.write("ladder.yaml", []byte(strings.Replace(string(f.read("ladder.yaml")), "seconds", "minutes", 1)))
			f.signAll("ladder.yaml")
		}, "not the file that the manifest names"},
		{"the root names nobody for it", "stock", func(f *folder) {
			f.write("stock.yaml", []byte(strings.Replace(string(f.read("journeys.yaml")), "domain: journeys", "domain: stock", 1)))
			f.sign("stock.yaml", templates.ShopPeople()...)
			f.manifest(1)
		}, "the root names no group that signs stock.yaml"},
		{"it is not canonical", "ladder", func(f *folder) { f.change("ladder.yaml", "v: 1\n", "v:  1\n") }, "not canonical"},
		{"a bound is missing", "payments", func(f *folder) { f.change("payments.yaml", "      host_count: 100\n", "") }, `:7: rights.risk-bypass-small-orders.bypass: "host_count" is missing`},
		{"another fleet", "ladder", func(f *folder) { f.change("ladder.yaml", "fleet: shop-demo", "fleet: other") }, `it is for fleet "other"`},
		{"another format", "ladder", func(f *folder) { f.change("ladder.yaml", "v: 1\n", "v: 2\n") }, "the file is of format 2"},
		{"another domain", "ladder", func(f *folder) { f.change("ladder.yaml", "domain: ladder", "domain: rights") }, `it says domain "rights"`},
		{"another version than the manifest's", "ladder", func(f *folder) {
			f.change("ladder.yaml", "version: 1", "version: 2")
			f.write("manifest.yaml", []byte(strings.Replace(string(f.read("manifest.yaml")), "ladder.yaml:\n    version: 2", "ladder.yaml:\n    version: 3", 1)))
			f.signAll("manifest.yaml")
		}, "it says version 2, the manifest 3"},
		{"a control named as a feature", "features", func(f *folder) { f.change("features.yaml", "  personal-prices:", "  payment-risk:") }, "payment-risk as a feature, which payments protects"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			c.bend(f)
			f.inactive(c.domain, c.why)
		})
	}
}

// Nobody signs more than the root gave to his domain.
func TestARightBeyondTheRootsGrantIsInactive(t *testing.T) {
	const payments, rights = "payments.yaml", "rights.yaml"
	for _, c := range []struct {
		what, file, old, new, why string
	}{
		{"a kind that is not granted", payments, "    kind: bypass", "    kind: shed", "does not let this domain grant shed"},
		{"a bypass in the matrix", rights, "    kind: ping", "    kind: bypass", "does not let this domain grant bypass"},
		{"items over the grant", payments, `"200.00 USD"`, `"250.01 USD"`, "it reaches items under 250.01 USD, the root allows 250.00 USD"},
		{"a total over the grant", payments, `"30000.00 USD"`, `"50000.01 USD"`, "its total is 50000.01 USD"},
		{"a host's budget over the total's grant", payments, `"1500.00 USD"`, `"50000.01 USD"`, "its host_total is 50000.01 USD"},
		{"a window over the grant", payments, "lasts: 15m", "lasts: 31m", "it lasts 31m, the root allows 30m"},
		{"a freeze over the grant", rights, "lasts: 1h", "lasts: 5h", "it lasts 5h, the root allows 4h"},
		{"another currency", payments, "USD", "EUR", "the root allows 250.00 USD"},
		{"two currencies", payments, `"1500.00 USD"`, `"1500.00 EUR"`, "one currency"},
		{"a cap of zero", payments, `under: "50.00 USD"`, `under: "0.00 USD"`, "above zero"},
		{"no activations", payments, "per_day: 4", "per_day: 0", "above zero"},
		{"fewer than no co-signers", payments, "count: 0", "count: -1", "negative"},
		{"authorization", payments, "protects: money", "protects: authorization", "never opens, whoever signs"},
		{"a control of another document", payments, "control: payment-risk", "control: stock-check", "only the document that defines a control may weaken it"},
		{"a grant without bounds in the root", "roots/1.yaml", "    under: \"250.00 USD\"\n", "", "an absent bound is not unbounded"},
	} {
		t.Run(c.what, func(t *testing.T) {
			domain := templates.PaymentsDomain
			if c.file == rights {
				domain = policy.Rights
			}
			shop(t).change(c.file, c.old, c.new).inactive(domain, "right ", c.why)
		})
	}
	t.Run("a bypass without bounds", func(t *testing.T) {
		f := shop(t)
		text := string(f.read(payments))
		from, to := strings.Index(text, "    bypass:\n"), strings.Index(text, "    lead: 3m")
		f.change(payments, text[from:to], "").inactive(templates.PaymentsDomain, "bounds of a bypass")
	})
}

// What two documents claim goes to the matrix, then to the first by name; it
// never takes the other down.
func TestTwoDocumentsNeverClaimOneName(t *testing.T) {
	second := func(f *folder, edit func(string) string) {
		root := f.rootOf("roots/1.yaml")
		root.Domains["stock"] = root.Domains["payments"]
		f.replaceRoot(root)
		f.write("stock.yaml", []byte(edit(strings.Replace(string(f.read("payments.yaml")), "domain: payments", "domain: stock", 1))))
		f.signAll("stock.yaml")
		f.manifest(1)
	}
	t.Run("a control", func(t *testing.T) {
		f := shop(t)
		second(f, func(s string) string { return strings.ReplaceAll(s, "risk-bypass-", "stock-bypass-") })
		f.inactive("stock", "control payment-risk is defined by payments already")
	})
	t.Run("a right", func(t *testing.T) {
		f := shop(t)
		second(f, func(s string) string { return strings.ReplaceAll(s, "payment-risk", "stock-check") })
		f.inactive("stock", " is granted by payments already")
	})
	t.Run("a right of the matrix", func(t *testing.T) {
		shop(t).change("payments.yaml", "risk-bypass-small-orders", "shed").inactive(templates.PaymentsDomain, "right shed is granted by rights already")
	})
}

func TestWithoutAValidManifestNothingLoads(t *testing.T) {
	for _, c := range []struct {
		what string
		bend func(f *folder)
		why  string
	}{
		{"it is missing", func(f *folder) { delete(f.files, "manifest.yaml") }, "file does not exist"},
		{"nobody signed it", func(f *folder) { f.strip("manifest.yaml", "ines"); f.strip("manifest.yaml", "dev") }, "reliability wants 1 of ines, dev; signed by nobody"},
		{"somebody else signed it", func(f *folder) {
			f.strip("manifest.yaml", "ines")
			f.strip("manifest.yaml", "dev")
			f.sign("manifest.yaml", "fiona")
		}, "signed by fiona"},
		{"a signature as for a document", func(f *folder) {
			f.strip("manifest.yaml", "dev")
			f.signAs("manifest.yaml", "ines", policytest.Key("ines"), "ic-policy-v1@shop-demo")
		}, "signed by nobody"},
		{"another fleet", func(f *folder) { f.rewriteManifest("fleet: shop-demo", "fleet: other") }, `fleet "other"`},
		{"another format", func(f *folder) { f.rewriteManifest("v: 1\n", "v: 2\n") }, "the file is of format 2"},
		{"version 0", func(f *folder) { f.rewriteManifest("version: 1\nfiles", "version: 0\nfiles") }, "version 0"},
		{"it is not canonical", func(f *folder) { f.rewriteManifest("v: 1\n", "v: 1 \n") }, "not canonical"},
		{"it names a file outside the folder", func(f *folder) { f.rewriteManifest("  backends.yaml", `  "../backends.yaml"`) }, "no file of a policy"},
		{"it names no root", func(f *folder) {
			text := string(f.read("manifest.yaml"))
			f.rewriteManifest(text[strings.Index(text, `  "roots/1.yaml"`):], "")
		}, "it names 0 roots"},
		{"it was made under a root that is not there", func(f *folder) {
			f.rewriteManifest("\"roots/1.yaml\":\n    version: 1", "\"roots/2.yaml\":\n    version: 2")
		}, "roots/2.yaml, which is not among the roots here"},
		{"it names a root of another content", func(f *folder) { f.rewriteManifest(f.opts.RootSHA256, sum(nil)) }, "not among the roots here"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := shop(t)
			c.bend(f)
			_, _, err := f.load()
			if !errors.Is(err, policy.ErrManifest) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want an error about the manifest that says %q", err, c.why)
			}
		})
	}
}

func TestAnExpiredPolicyStaysLoaded(t *testing.T) {
	f := shop(t).change("payments.yaml", "2027-11-30", "2020-01-01")
	if state := f.active()[templates.PaymentsDomain]; !state.Active || state.Expires.Year() != 2020 {
		t.Errorf("an expired document is %+v; Admit judges expiry, not Load", state)
	}
}

// Rolled back, mixed and forged: versions only rise, and one version has one
// content.
func TestRollback(t *testing.T) {
	newer := func(f *folder) policy.Highest { // version 2 of payments and of the manifest was in force
		f.change("payments.yaml", "version: 1", "version: 2")
		f.manifest(2)
		_, highest, err := f.load()
		if err != nil {
			f.t.Fatal(err)
		}
		return highest
	}
	for _, c := range []struct {
		what string
		bend func(f *folder, old *folder)
		why  string
	}{
		{"all old files", func(f, old *folder) { f.files = old.files }, "manifest.yaml: rolled back: it is version 1, version 2 was in force"},
		{"an old document under a new manifest", func(f, old *folder) {
			f.files["payments.yaml"] = old.files["payments.yaml"]
			f.signAll("payments.yaml")
			f.manifest(3)
		}, "payments.yaml: rolled back: it is version 1, version 2 was in force"},
		{"the same version of the manifest, other content", func(f, _ *folder) { f.change("ladder.yaml", "seconds", "minutes"); f.manifest(2) }, "manifest.yaml: rolled back: version 2 was in force here with other content"},
		{"the same version of a document, other content", func(f, _ *folder) { f.change("ladder.yaml", "seconds", "minutes"); f.manifest(3) }, "ladder.yaml: rolled back: version 1 was in force here with other content"},
	} {
		t.Run(c.what, func(t *testing.T) {
			f, old := shop(t), shop(t)
			highest := newer(f)
			c.bend(f, old)
			f.opts.State = &highest
			if _, _, err := f.load(); !errors.Is(err, policy.ErrRolledBack) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
	t.Run("the same files again", func(t *testing.T) {
		f := shop(t)
		highest := newer(f)
		f.opts.State = &highest
		if _, again, err := f.load(); err != nil || again.Manifest != highest.Manifest || len(again.Domains) != len(highest.Domains) {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("another fleet's memory", func(t *testing.T) {
		f := shop(t)
		f.opts.State = &policy.Highest{V: 1, Fleet: "other"}
		if _, _, err := f.load(); err == nil {
			t.Error("the memory of another fleet was accepted")
		}
	})
}

// Files of two signed states, mixed: the document is not the one the manifest
// names, whichever of the two is old.
func TestMixAndMatchIsInactive(t *testing.T) {
	f, newer := shop(t), shop(t)
	newer.change("payments.yaml", "version: 1", "version: 2")
	for name, file := range newer.files {
		if strings.HasPrefix(name, "payments.yaml") {
			f.files[name] = file
		}
	}
	f.inactive(templates.PaymentsDomain, "not the file that the manifest names")
}

// A document that falls short leaves no mark: it never was in force.
func TestAnInactiveDocumentIsNotRemembered(t *testing.T) {
	f := shop(t)
	f.change("payments.yaml", "version: 1", "version: 9")
	f.strip("payments.yaml", "ravi")
	_, highest, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	if mark, ok := highest.Domains[templates.PaymentsDomain]; ok {
		t.Errorf("payments is remembered as %+v", mark)
	}
	f = shop(t)
	f.opts.State = &highest
	highest.Manifest = policy.Mark{}
	if state := f.active()[templates.PaymentsDomain]; !state.Active {
		t.Errorf("version 1 is refused after an unsigned version 9: %s", state.Why)
	}
}

func TestTheDrillRealmIsAnotherWorld(t *testing.T) {
	f := shop(t)
	f.opts.Realm = directive.Drill
	if _, _, err := f.load(); !errors.Is(err, policy.ErrRoot) {
		t.Errorf("a production policy loaded in a drill: %v", err)
	}
}

func TestAnEmptyFolder(t *testing.T) {
	_, _, err := policy.Load(fstest.MapFS{}, policy.LoadOptions{Fleet: "shop-demo", Realm: directive.Production})
	if !errors.Is(err, policy.ErrRoot) {
		t.Errorf("got %v", err)
	}
}

func TestTooManySignatureFiles(t *testing.T) {
	f := shop(t)
	for i := range 100 {
		f.write(fmt.Sprintf("payments.yaml.sig/a%02d.sig", i), []byte("x"))
	}
	f.inactive(templates.PaymentsDomain, "signatures are missing")
}
