package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
)

func names() policy.Names {
	return policy.Names{Runbooks: []string{"payment-risk-down"}, Bundled: []string{"git", "hostfile"}, Now: policytest.Now()}
}

func lintFolder(t testing.TB, files fstest.MapFS) []policy.Finding {
	t.Helper()
	docs, root, found, err := policy.ReadDrafts(files)
	if err != nil {
		t.Fatal(err)
	}
	return append(found, policy.Lint(docs, root, names())...)
}

func TestTheExamplePolicyLintsClean(t *testing.T) {
	for name, pace := range map[string]templates.Pace{"real": templates.RealPace(), "test": templates.TestPace()} {
		p := policytest.Params()
		p.Pace = pace
		files, err := templates.Shop(p)
		if err != nil {
			t.Fatal(err)
		}
		folder := fstest.MapFS{}
		for file, content := range files {
			folder[file] = &fstest.MapFile{Data: content}
		}
		for _, f := range lintFolder(t, folder) {
			t.Errorf("%s pace: %s", name, f)
		}
	}
}

// bent is one change of the example policy and the one thing that lint has to say
// about it. Every code has at least one row.
type bent struct {
	code           string
	severity       policy.Severity
	file, old, new string
	at             string // the path that is named
	says           string
}

func bends() []bent {
	const e, w = policy.LintError, policy.LintWarning
	const features, ladder, rights, payments, backends, journeys = "features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "backends.yaml", "journeys.yaml"
	const small = "rights.risk-bypass-small-orders"
	return []bent{
		{"syntax", e, payments, "per_day: 4", "per_day: 04", small + ".bypass.per_day", "plain digits"},
		{"not-canonical", e, payments, "v: 1", "v:  1", "", "run `ic policy fmt`"},
		{"root", e, "roots/1.yaml", "publish: reliability", "publish: nobody", "", `group "nobody" is used and not defined`},
		{"header", e, payments, "fleet: shop-demo", "fleet: other", "fleet", `it is for fleet "other"`},
		{"header", e, payments, "v: 1", "v: 7", "v", "this software reads 1"},
		{"header", e, payments, "domain: payments", "domain: cash", "domain", "its file is payments.yaml"},
		{"header", e, payments, "version: 1", "version: 0", "version", "start at 1"},
		{"domain-without-owner", e, "roots/1.yaml", "  journeys:\n    group: product\n    grants: []\n", "", "domain", "it can never be active"},

		{"feature-owner", e, features, "owner: priya", "owner: bob", "features.browse-catalog.owner", `owner "bob"`},
		{"feature-owner", e, features, "owner: priya", `owner: ""`, "features.browse-catalog.owner", `owner ""`},
		{"review-overdue", w, features, "2026-08-30", "2025-08-30", "features.browse-catalog.reviewed", "last reviewed on 2025-08-30"},
		{"unknown-service", e, features, "service: catalog", "service: katalog", "features.browse-catalog.service", `no service "katalog"`},
		{"tier-behaviour-missing", e, features, "      4: \"off\"\n", "", "features.delivery-dates.tiers", `nothing is said about tier 4`},
		{"tier-behaviour-missing", e, features, `4: "off"`, `4: " "`, "features.delivery-dates.tiers", `nothing is said about tier 4`},
		{"tier-behaviour-unknown", e, features, `      4: "off"`, "      4: \"off\"\n      5: \"off\"", "features.delivery-dates.tiers.5", "no tier 5"},
		{"control-as-feature", e, features, "  personal-prices:", "  payment-risk:", "features.payment-risk", "never switched off as a feature"},
		{"control-in-behaviour", e, features, "one-page order form, card only", "one-page order form, payment-risk skipped", "features.place-order.tiers.3", "no tier weakens a control"},
		{"journey-unbreakable", e, journeys, "      - [place-order]\n      - [sign-in]", "      - []", "journeys.buy.broken_by", "no set is empty"},
		{"unknown-feature", e, journeys, "[place-order]", "[place-odrer]", "journeys.buy.broken_by[0][0]", `no feature "place-odrer"`},

		{"tier-numbers", e, ladder, "  - tier: 2", "  - tier: 3", "tiers[1].tier", "tier 3 stands where tier 2 belongs"},
		{"tier-without-text", e, ladder, "name: lean", `name: ""`, "tiers[0]", "what the user sees"},
		{"tier-owner", e, ladder, "owner: ines", "owner: bob", "tiers[0].owner", `owner "bob"`},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [10, 10, 100]", "tiers[0].ramp", "rises from at least 1 to 100"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [10, 50]", "tiers[0].ramp", "to 100"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: [0, 100]", "tiers[0].ramp", "at least 1"},
		{"ramp", e, ladder, "ramp: [10, 50, 100]", "ramp: []", "tiers[0].ramp", "rises"},
		{"dwell", e, ladder, "dwell: 10m", "dwell: 0s", "tiers[0]", "or the ladder flaps"},
		{"threshold-shape", e, ladder, "        above: 0.8\n", "", "tiers[0].enter[0]", "either above or below"},
		{"threshold-shape", e, ladder, "        above: 0.8\n", "        above: 0.8\n        below: 0.7\n", "tiers[0].enter[0]", "and not both"},
		{"threshold-shape", e, ladder, "    abnormal:\n      above: 1\n", "    abnormal: {}\n", "signals.checkout-errors.abnormal", "either above or below"},
		{"unknown-signal", e, ladder, "      - signal: cpu", "      - signal: cpus", "tiers[0].enter[1].signal", `no signal "cpus"`},
		{"condition-too-short", e, ladder, "        for: 2m", "        for: 10s", "tiers[0].enter[0].for", "shorter than two steps"},
		{"exit-missing", e, ladder, "      - signal: cpu\n        below: 60\n        for: 10m\n", "", "tiers[0].enter[1]", "left without looking at it"},
		{"exit-missing", e, ladder, "    leave:\n      - signal: checkout-p99\n        below: 0.5\n        for: 10m\n      - signal: cpu\n        below: 60\n        for: 10m\n      - signal: checkout-errors\n        below: 0.5\n        for: 10m\n", "    leave: []\n", "tiers[0].leave", "on no evidence"},
		{"exit-not-inside", e, ladder, "below: 0.5\n        for: 10m\n      - signal: cpu", "below: 0.8\n        for: 10m\n      - signal: cpu", "tiers[0].leave[0]", "strictly inside the entry"},
		{"exit-not-inside", e, ladder, "below: 60", "above: 60", "tiers[0].leave[1]", "strictly inside the entry"},
		{"exit-window", e, ladder, "        for: 10m", "        for: 5m", "tiers[0].leave[0].for", "out is at least 3 times in"},
		{"tier-nobody-may-enter", e, rights, "      from: 4", "      from: 5", "tiers[3]", "no right sheds to tier 4"},
		{"tier-nobody-may-enter", e, "roots/1.yaml", "machines: [ladder-controller]\n    tightens: true\n    max_tier: 2", "machines: [ladder-controller]\n    tightens: true\n    max_tier: 1", "tiers[1].auto", "no machine holds a right"},
		{"tier-nobody-may-leave", e, rights, "text: \"leave a tier, one step at a time\"\n    kind: end\n    ends: shed", "text: \"leave a tier, one step at a time\"\n    kind: end\n    ends: bypass", "tiers[3]", "no right recovers from tier 4"},
		{"signal-bounds", e, ladder, "max_age: 1m", "max_age: 0s", "signals.checkout-errors", "a max_age"},
		{"signal-bounds", e, ladder, "step: 10s", "step: 0s", "signals.checkout-errors", "a step above zero"},
		{"signal-bounds", e, ladder, "step: 10s", "step: 2m", "signals.checkout-errors", "at most the max_age"},
		{"unknown-right", e, ladder, "right: shed", "right: shedd", "signals.checkout-errors.right", `no document grants a right "shedd"`},
		{"unknown-runbook", e, ladder, `runbook: ""`, "runbook: latency", "signals.checkout-errors.runbook", `no runbook "latency"`},
		{"service-tiers", e, ladder, "tiers: 1\n    dependencies", "tiers: 5\n    dependencies", "services.payment-risk.tiers", "at most the 4 of the ladder"},

		{"right-nobody-holds", e, rights, "who: incident-commander", "who: incident-comander", "rights.end-bypass.who", `nobody holds the role "incident-comander"`},
		{"tiers-over-role", w, rights, "      to: 2", "      to: 3", "rights.auto-recover.tiers.to", "reaches tier 2 only"},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: 0\n      of: finanse", small + ".cosign.of", `no group "finanse"`},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: 3\n      of: finance", small + ".cosign.count", "never has so many"},
		{"cosign", e, payments, "count: 0\n      of: finance", "count: -1\n      of: finance", small + ".cosign.count", "not negative"},
		{"cosign", e, rights, "count: 1\n      of: reliability", "count: 2\n      of: reliability", "rights.recover-blind.cosign.count", "besides the one who asks"},
		{"scope", e, rights, `scope: ["*"]`, "scope: []", "rights.auto-recover.scope", "the scope is empty"},
		{"scope", e, payments, "scope: [checkout]", "scope: [chekout]", "rights.risk-bypass-medium-orders.scope", `no service "chekout"`},
		{"shed-without-tiers", e, rights, "    tiers:\n      from: 1\n      to: 2\n", "", "rights.auto-recover.tiers", "has tiers from 1"},
		{"shed-without-tiers", e, rights, "      from: 4", "      from: 5", "rights.shed-4.tiers", "has tiers from 1"},
		{"off-without-feature", e, rights, "    feature: \"*\"\n", "", "rights.feature-off", "names a feature"},
		{"off-without-feature", e, rights, "feature: \"*\"", "feature: revews", "rights.feature-off.feature", `no feature "revews"`},
		{"end-without-kind", e, rights, "    ends: bypass\n", "", "rights.end-bypass", "names the kind that it ends"},
		{"window-without-end", e, rights, "    lasts: 1h\n", "", "rights.freeze", "how long it lasts at most"},
		{"bypass-without-cap", e, payments, `under: "50.00 USD"`, `under: "0.00 USD"`, small + ".bypass.under", "under is not above zero"},
		{"bypass-without-cap", e, payments, "host_count: 100", "host_count: 0", small + ".bypass.host_count", "a bypass has every cap"},
		{"bypass-without-cap", e, payments, "max_replacements: 4", "max_replacements: -1", "rights.risk-bypass-medium-orders.bypass.max_replacements", "every cap"},
		{"bypass-without-cap", e, rights, "    kind: ping", "    kind: bypass", "rights.ping", "has no bounds at all"},
		{"foreign-bound", e, payments, "    lead: 3m", "    lasts: 10m\n    lead: 3m", "rights.risk-bypass-medium-orders.lasts", "lasts means nothing for a right of kind bypass"},
		{"foreign-bound", e, rights, "    kind: ping", "    kind: ping\n    ends: shed", "rights.ping.ends", "ends means nothing"},
		{"blind-alone", e, rights, "count: 1\n      of: reliability", "count: 0\n      of: reliability", "rights.recover-blind.cosign", "wants a second person"},
		{"unknown-runbook", e, payments, "    lead: 3m", "    lead: 3m\n    runbook: none", "rights.risk-bypass-medium-orders.runbook", `no runbook "none"`},
		{"over-grant", e, payments, `"200.00 USD"`, `"300.00 USD"`, "rights.risk-bypass-medium-orders", "the root allows 250.00 USD"},
		{"over-grant", e, rights, "    kind: ping", "    kind: dimmer", "rights.ping", "does not let this domain grant dimmer"},
		{"right-granted-twice", e, payments, "risk-bypass-small-orders", "shed", "rights.shed", "rights.yaml grants a right of this name already"},

		{"authorization-opens", e, payments, "protects: money\n    fails: closed", "protects: authorization\n    fails: open", "controls.payment-risk.fails", "authorization never opens"},
		{"over-grant", e, payments, "protects: money", "protects: authorization", small, "never opens, whoever signs"},
		{"control-owner", e, payments, "owner: fiona", "owner: bob", "controls.payment-risk.owner", `owner "bob"`},
		{"control-services", e, payments, "services: [checkout]", "services: []", "controls.payment-risk.services", "names the services"},
		{"control-services", e, payments, "services: [checkout]", "services: [chekout]", "controls.payment-risk.services", `no service "chekout"`},
		{"item-over-host", e, payments, `"50.00 USD"`, `"1600.00 USD"`, small + ".bypass.under", "more than a host may let through"},
		{"total-out-of-reach", w, payments, `total: "30000.00 USD"`, `total: "30000.01 USD"`, small + ".bypass.total", "all hosts together let through 30000.00 USD"},
		{"worst-case-over-total", w, payments, `host_total: "1500.00 USD"`, `host_total: "1500.01 USD"`, small + ".bypass.host_total", "together they let through 30000.20 USD"},

		{"backend-kind", e, backends, "    bundled: git\n", "", "backends.git", "either bundled or a program"},
		{"backend-kind", e, backends, "    bundled: git\n", "    bundled: git\n    path: \"/opt/git\"\n", "backends.git", "either bundled or a program"},
		{"unknown-backend", e, backends, "bundled: git", "bundled: argo", "backends.git.bundled", `no backend "argo"; it has git, hostfile`},
		{"foreign-unpinned", e, backends, "bundled: git", `path: "/opt/git"`, "backends.git", "pinned by one SHA-256"},
		{"foreign-unpinned", e, backends, "bundled: git", `path: "opt/../git"`, "backends.git.path", "not an absolute path"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    path: \"/opt/git\"\n    sha256:\n      linux: \"abc\"\n", "backends.git.sha256.linux", "not a system and an architecture"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    path: \"/opt/git\"\n    sha256:\n      \"linux/amd64\": \"abc\"\n", "backends.git.sha256.linux/amd64", "not a SHA-256"},
		{"foreign-unpinned", e, backends, "    bundled: git\n", "    bundled: git\n    sha256:\n      \"linux/amd64\": \"abc\"\n", "backends.git.sha256", "part of ic"},
		{"shared-fate", w, backends, "[git-host, deploy-pipeline]", "[git-host, etcd]", "backends.git.dependencies", "it needs etcd, and so does the flag service"},
		{"backend-targets", e, backends, `targets: ["*"]`, "targets: []", "backends.git.targets", "names the services that it reaches"},
		{"backend-targets", e, backends, `targets: ["*"]`, "targets: [chekout]", "backends.git.targets", `no service "chekout"`},
		{"inventory", e, backends, "host: edge-02", "host: edge-01", "inventory.hosts[1].host", `"edge-01" has no name or is listed twice`},
		{"inventory", e, backends, "services: [edge]", "services: [egde]", "inventory.hosts[0].services", `no service "egde"`},
		{"inventory", e, backends, "max_age: 24h", "max_age: 0s", "inventory.max_age", "max_age above zero"},
		{"inventory", e, backends, "inventory:\n  max_age: 24h\n", "inventory:\n  max_age: 24h\n  query: up\n", "inventory", "either a list of hosts or a query"},
	}
}

func TestLint(t *testing.T) {
	clean := shop(t)
	for _, c := range bends() {
		t.Run(c.code+"/"+c.at, func(t *testing.T) {
			text := string(clean.read(c.file))
			if !strings.Contains(text, c.old) {
				t.Fatalf("%s does not hold %q", c.file, c.old)
			}
			files := fstest.MapFS{}
			for name, file := range clean.files {
				files[name] = file
			}
			files[c.file] = &fstest.MapFile{Data: []byte(strings.Replace(text, c.old, c.new, 1))}
			found := lintFolder(t, files)
			if !slices.ContainsFunc(found, func(f policy.Finding) bool {
				return f.Code == c.code && f.Severity == c.severity && f.Path == c.at && strings.Contains(f.Sentence, c.says) && f.Line > 0 && f.Col > 0
			}) {
				t.Errorf("want %s at %s that says %q, got %v", c.code, c.at, c.says, found)
			}
		})
	}
}

func TestLintOfALadderOfOneTier(t *testing.T) {
	f := shop(t)
	text := string(f.read("ladder.yaml"))
	f.write("ladder.yaml", []byte(text[:strings.Index(text, "  - tier: 2")]))
	if found := lintFolder(t, f.files); !slices.ContainsFunc(found, func(f policy.Finding) bool {
		return f.Code == "tier-numbers" && strings.Contains(f.Sentence, "the ladder has 1 tiers; it has 2 to 6")
	}) {
		t.Errorf("got %v", found)
	}
}

// A rule that no row of the table ever breaks could be one that finds nothing.
func TestEveryCodeOfLintIsTested(t *testing.T) {
	tested := map[string]bool{"control-defined-twice": true} // below
	for _, c := range bends() {
		tested[c.code] = true
	}
	for _, code := range policy.LintCodes() {
		if !tested[code] {
			t.Errorf("nothing breaks the rule %s", code)
		}
	}
}

func TestEveryCodeOfLintIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range policy.LintCodes() {
		if !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("docs/policy.md does not speak of %s", code)
		}
	}
}

func TestLintOfTwoDocumentsWithOneControl(t *testing.T) {
	f := shop(t)
	f.write("stock.yaml", []byte(strings.ReplaceAll(strings.Replace(string(f.read("payments.yaml")), "domain: payments", "domain: stock", 1), "risk-bypass", "stock-bypass")))
	found := lintFolder(t, f.files)
	if !slices.ContainsFunc(found, func(f policy.Finding) bool {
		return f.Code == "control-defined-twice" && f.File == "stock.yaml" && strings.Contains(f.Sentence, "payments.yaml defines")
	}) {
		t.Errorf("got %v", found)
	}
}

func TestLintPointsAtTheLine(t *testing.T) {
	f := shop(t)
	text := strings.Replace(string(f.read("payments.yaml")), "per_day: 4", "per_day: 0", 1)
	f.write("payments.yaml", []byte(text))
	line := 1 + strings.Count(text[:strings.Index(text, "per_day: 0")], "\n")
	found := lintFolder(t, f.files)
	want := policy.Finding{Code: "bypass-without-cap", Severity: policy.LintError, File: "payments.yaml", Path: "rights.risk-bypass-small-orders.bypass.per_day",
		Line: line, Col: 16, Sentence: "per_day is not above zero; a bypass has every cap"}
	if !slices.Contains(found, want) {
		t.Errorf("want %+v, got %+v", want, found)
	}
	if got := want.String(); got != "payments.yaml:50:16: rights.risk-bypass-small-orders.bypass.per_day: per_day is not above zero; a bypass has every cap (error, bypass-without-cap)" {
		t.Errorf("printed as %s", got)
	}
}

// Half a policy is what people have when they start.
func TestLintOfAnUnfinishedFolder(t *testing.T) {
	for _, keep := range []string{"features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "backends.yaml", "journeys.yaml", "roots/1.yaml"} {
		files := fstest.MapFS{keep: shop(t).files[keep]}
		for _, f := range lintFolder(t, files) {
			if f.Code != "syntax" || f.File != "roots/1.yaml" {
				t.Errorf("%s alone: %s", keep, f)
			}
		}
	}
	found := lintFolder(t, fstest.MapFS{})
	if len(found) != 1 || found[0].File != "roots/1.yaml" {
		t.Errorf("an empty folder: %v", found)
	}
}

// Nobody is asked about names that he does not know.
func TestLintWithoutNames(t *testing.T) {
	f := shop(t)
	f.write("ladder.yaml", []byte(strings.Replace(string(f.read("ladder.yaml")), `runbook: ""`, "runbook: latency", 1)))
	f.write("backends.yaml", []byte(strings.Replace(string(f.read("backends.yaml")), "bundled: git", "bundled: argo", 1)))
	docs, root, _, err := policy.ReadDrafts(f.files)
	if err != nil {
		t.Fatal(err)
	}
	if found := policy.Lint(docs, root, policy.Names{}); len(found) > 0 {
		t.Errorf("got %v", found)
	}
}
