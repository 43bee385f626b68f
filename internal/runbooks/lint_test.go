package runbooks_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/docs/lint/runbook"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/runbooks"
)

// known is a small policy that base keeps to.
func known() runbooks.Known {
	usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
	above := 1.0
	return runbooks.Known{
		Now:    time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Owners: []string{"payments-oncall"},
		Rights: map[string]policy.Right{
			"shed":         {Kind: model.Shed, Who: "commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}},
			"recover":      {Kind: model.End, Ends: model.Shed, Who: "commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}},
			"risk-bypass":  {Kind: model.Bypass, Who: "commander", Scope: []string{"checkout"}, Cosign: policy.Cosign{Count: 1, Of: "finance"}, Bypass: &policy.Bypass{Control: "risk", Under: usd(5000), Lasts: model.Duration(30 * time.Minute)}},
			"end-bypass":   {Kind: model.End, Ends: model.Bypass, Who: "commander", Scope: []string{"*"}},
			"search-off":   {Kind: model.Off, Who: "deputy", Scope: []string{"*"}, Feature: "*"},
			"slow":         {Kind: model.Dimmer, Who: "commander", Scope: []string{"*"}, Dimmer: &policy.Dimmer{TargetMS: policy.Range{From: 100, To: 500}, Floor: 10, Ceiling: 90}},
			"one-off":      {Kind: model.Off, Who: "commander", Scope: []string{"*"}, Feature: "wishlist"},
			"catalog-shed": {Kind: model.Shed, Who: "deputy", Scope: []string{"catalog"}, Tiers: &policy.Range{From: 1, To: 2}},
		},
		Roles:   map[string]policy.Role{"commander": {MaxTier: 4}, "deputy": {MaxTier: 1}},
		Signals: map[string]policy.Signal{"risk-errors": {Query: "max(risk_errors)", Abnormal: &policy.Threshold{Above: &above}}, "plain": {Query: "max(up)"}, "empty": {}},
		Services: map[string]policy.Service{
			"checkout": {Tiers: 3}, "catalog": {Tiers: 4},
		},
		Tiers: []policy.Tier{{Tier: 1, Ramp: []int{10, 100}}, {Tier: 2, Ramp: []int{10, 50, 100}}, {Tier: 3, Ramp: []int{10, 100}}, {Tier: 4, Ramp: []int{100}}},
		Features: map[string]policy.Feature{
			"pay": {Service: "checkout", Tiers: map[int]string{1: "no change", 2: "small orders only"}}, "wishlist": {Service: "catalog", Tiers: map[int]string{1: "no change", 2: "no change"}},
		},
		Controls: map[string]policy.Control{"risk": {}},
		Backends: map[string]policy.Backend{"hostfile": {}, "pipeline": {}},
		Origins:  []string{"https://shop.example"},
		Query: func(query string) string {
			for _, look := range []func(string) error{promrules.OneSeries, promrules.Filters} {
				if err := look(query); err != nil {
					return err.Error()
				}
			}
			return ""
		},
		Bounds: promrules.Bounds,
	}
}

func lintOf(text string) []runbooks.Finding {
	return runbooks.LintSource("payment-risk-down.md", []byte(text), known())
}

func has(found []runbooks.Finding, code string) bool {
	return slices.ContainsFunc(found, func(f runbooks.Finding) bool { return f.Code == code })
}

func TestNothingIsWrongWithARunbookOfEveryKindOfStep(t *testing.T) {
	for _, f := range lintOf(base) {
		if f.Code != runbooks.CodeShownOnly || f.Line != 14 {
			t.Error(f)
		}
	}
}

func TestEveryRunbookCodeHasItsPageAndEveryPageItsCode(t *testing.T) {
	if pages, codes := runbook.Codes(), runbooks.Codes(); !slices.Equal(pages, codes) {
		t.Errorf("pages and codes differ:\n%v\n%v", pages, codes)
	}
	for code, severity := range runbooks.SeverityOf() {
		if line := "\n| [`" + code + "`](" + code + ".md) | " + string(severity) + " |"; !strings.Contains(runbook.Index(), line) {
			t.Errorf("the index has no line %q", line)
		}
		if page, _ := runbook.Page(code); !strings.HasPrefix(page, "# `"+code+"`\n\n"+string(severity)) {
			t.Errorf("the page of %s does not begin with its code and severity", code)
		}
	}
	if _, ok := runbook.Page("README"); ok {
		t.Error("the index is taken for the page of a code")
	}
}

var pageExample = regexp.MustCompile("(?s)\nWrong:\n\n````markdown\n(.*?)\n````\n\nRight:\n\n````markdown\n(.*?)\n````\n")

// The example of a page is checked on the base: the right lines stand in it, the
// wrong ones in their place give the code.
func TestTheExampleOfAPageGivesItsCode(t *testing.T) {
	without := []string{}
	for _, code := range runbooks.Codes() {
		page, _ := runbook.Page(code)
		shown := pageExample.FindStringSubmatch(page)
		if shown == nil {
			without = append(without, code)
			continue
		}
		if has(lintOf(base), code) {
			t.Errorf("%s: the base has it already", code)
		}
		found := lintOf(bent(t, shown[2], shown[1]))
		if !has(found, code) {
			t.Errorf("%s: the wrong example gives %v", code, found)
		}
		for _, f := range found {
			if f.Line < 1 || f.Col < 1 || f.Sentence == "" {
				t.Errorf("%s: a finding without place or sentence: %+v", code, f)
			}
		}
	}
	if want := []string{runbooks.CodePlain, runbooks.CodeShownOnly, runbooks.CodeTooLarge}; !slices.Equal(without, want) {
		t.Errorf("pages without an example: %v, want %v", without, want)
	}
}

func TestLintSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ name, old, new, code, place, sentence string }{
		{"a role without the right", "role: commander", "role: deputy", runbooks.CodeWrongRole, "46:13", `the role "deputy" does not hold the right "shed"; the role "commander" does`},
		{"a role that nobody has", "role: commander", "role: comander", runbooks.CodeUnknownName, "47:7", `the trust root has no role "comander"; did you mean "commander"?`},
		{"a service that the ladder lacks", "{right: shed, scope: checkout,", "{right: shed, scope: chekout,", runbooks.CodeUnknownName, "46:26", `no service "chekout"; did you mean "checkout"?`},
		{"a tier beyond the right", "scope: checkout, tier: 2", "scope: checkout, tier: 5", runbooks.CodeOutsideRight, "46:42", "covers tiers 1 to 4, not 5"},
		{"a tier beyond the service", "scope: checkout, tier: 2", "scope: checkout, tier: 4", runbooks.CodeNoEffect, "46:42", `"checkout" knows 3 tiers and stays at its last`},
		{"a tier that changes nothing", "scope: checkout, tier: 2", "scope: checkout, tier: 1", runbooks.CodeNoEffect, "46:42", `up to tier 1 no feature of "checkout" changes`},
		{"a tier that no service is ever at", "probe: {tier: {scope: checkout, is: 2}}", "probe: {tier: {scope: checkout, is: 4}}", runbooks.CodeNeverAnswers, "50:37", `"checkout" has 3 tiers and is never at 4`},
		{"a cap over the right's", `under: "50.00 USD"`, `under: "50.01 USD"`, runbooks.CodeOutsideRight, "58:82", "caps an item at 50.00 USD, not at 50.01 USD"},
		{"a cap in another currency", `under: "50.00 USD"`, `under: "10.00 EUR"`, runbooks.CodeOutsideRight, "58:82", "not at 10.00 EUR"},
		{"a tier for a bypass", "control: risk, for: 15m", "tier: 2, for: 15m", runbooks.CodeOutsideRight, "58:49", `"risk-bypass" has no use for "tier": it is of the kind bypass`},
		{"a right that recovers", "{right: end-bypass, scope: checkout,", "{right: recover, scope: checkout,", runbooks.CodeOutsideRight, "62:20", "tier by tier"},
		{"an off without a feature", "do: {right: shed, scope: checkout, tier: 2,", "do: {right: search-off,", runbooks.CodeOutsideRight, "46:5", "say which: feature"},
		{"a feature that the right does not cover", "do: {right: shed, scope: checkout, tier: 2,", "do: {right: one-off, feature: pay,", runbooks.CodeOutsideRight, "46:31", `switches off "wishlist", not "pay"`},
		{"a dimmer out of bounds", "do: {right: shed, scope: checkout, tier: 2,", "do: {right: slow, target_ms: 50,", runbooks.CodeOutsideRight, "46:30", "covers 100 to 500, not 50"},
		{"a role that does not go so far", "do: {right: shed, scope: checkout, tier: 2,", "do: {right: catalog-shed, scope: catalog, tier: 2,", runbooks.CodeOutsideRight, "46:49", `the role "deputy" goes to tier 1 at most`},
		{"a lead longer than the timeout", "timeout: 5m\non_timeout: seen", "timeout: 2m\non_timeout: seen", runbooks.CodeLead, "59:10", `wants 1 more of "finance" and starts 3m after the proposal`},
		{"a query that is not PromQL", "max(risk_up)", "max(risk_up", runbooks.CodeNeverAnswers, "24:17", "not PromQL"},
		{"a query that is empty while it is false", "max(risk_up)", "max(risk_up) < 1", runbooks.CodeNeverAnswers, "24:17", "no data although its series exist"},
		{"a time that never passes", "for: 1m, no_data", "for: 5m, no_data", runbooks.CodeNeverAnswers, "24:51", "has to hold for 5m and is asked for 3m"},
		{"a signal without a threshold", "until: {signal: risk-errors", "until: {signal: plain", runbooks.CodeNeverAnswers, "80:24", "no abnormal threshold"},
		{"a signal without a query", "until: {signal: risk-errors", "until: {signal: empty", runbooks.CodeNeverAnswers, "80:24", "has no query"},
		{"an origin by another port", "https://shop.example/healthz", "https://shop.example:8443/healthz", runbooks.CodeOrigin, "104:21", `"https://shop.example:8443" is not in origins.txt`},
		{"a recovery that skips a tier", "recover: {scope: checkout, to: 1, percent: 10}\ntimeout", "recover: {scope: checkout, to: 0, percent: 10}\ntimeout", runbooks.CodeRecoverOrder, "", ""},
		{"a backend that the policy lacks", "push: {backend: hostfile}", "push: {backend: hostfiles}", runbooks.CodeUnknownName, "69:17", `no backend "hostfiles"; did you mean "hostfile"?`},
		{"an owner that nobody knows", "owner: payments-oncall", "owner: payment-oncall", runbooks.CodeUnknownName, "4:8", `did you mean "payments-oncall"?`},
		{"a step that leads to itself", "then: end", "then: seen", runbooks.CodeCycle, "111:7", `"seen" is not below this step`},
		{"an end before the end", "wait: {for: 10m}", "wait: {for: 10m}\nthen: end", runbooks.CodeUnreachable, "93:5", `no way leads here`},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := lintOf(bent(t, c.old, c.new))
			at := slices.IndexFunc(found, func(f runbooks.Finding) bool { return f.Code == c.code && strings.Contains(f.Sentence, c.sentence) })
			if c.place == "" { // on several ways with different tiers nothing is known
				if at >= 0 {
					t.Fatalf("found %v", found[at])
				}
				return
			}
			if at < 0 {
				t.Fatalf("no %s %q; found %v", c.code, c.sentence, found)
			}
			if got := found[at].String(); !strings.HasPrefix(got, "payment-risk-down.md:"+c.place+": ") {
				t.Errorf("want %s: %s", c.place, got)
			}
		})
	}
}

// ramp is a runbook of one shed and recoveries.
func ramp(steps ...string) string {
	text := "---\nv: 1\nid: payment-risk-down\nowner: payments-oncall\nuse_when: always\nvalid_until: 2027-03-01\nmax_duration: 3h\n---\n# T\n"
	for i, body := range append([]string{"do: {right: shed, scope: checkout, tier: 3, reason: r}"}, steps...) {
		text += "\n```ic-step\nid: s" + string(rune('a'+i)) + "\n" + body + "\ntimeout: 5m\non_timeout: stop\nprobe: {reach: {at_least: 95}}\nirreversible: it is a test\n```\n"
	}
	return text
}

func TestARecoveryGoesTierByTierAndRampByRamp(t *testing.T) {
	step := func(to, percent string) string {
		return "recover: {scope: checkout, to: " + to + ", percent: " + percent + "}"
	}
	if found := lintOf(ramp(step("2", "10"), step("2", "100"), step("1", "10"), step("1", "50"), step("1", "100"), step("0", "10"))); len(found) > 0 {
		t.Errorf("the right order: %v", found)
	}
	for name, c := range map[string]struct {
		steps    []string
		sentence string
	}{
		"a tier is skipped":          {[]string{step("1", "10")}, `leave "checkout" at tier 3, and a recovery goes one tier down, to 2`},
		"a ramp is not finished":     {[]string{step("2", "10"), step("1", "10")}, "only 10 percent are at tier 2"},
		"a ramp falls":               {[]string{step("2", "100"), step("1", "50"), step("1", "10")}, "a ramp only rises"},
		"a percentage of no ramp":    {[]string{step("2", "25")}, "25 is no step of the ramp out of tier 3, which is 10, 100"},
		"from above the ladder's":    {[]string{step("3", "100")}, `"checkout" has 3 tiers, so there is no tier 4`},
		"it was at that tier before": {[]string{step("2", "100"), step("2", "100")}, "one tier down, to 1"},
	} {
		found := lintOf(ramp(c.steps...))
		if !slices.ContainsFunc(found, func(f runbooks.Finding) bool { return strings.Contains(f.Sentence, c.sentence) }) {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestWhatNobodyKnowsIsNotChecked(t *testing.T) {
	for _, f := range runbooks.Lint(parse(t, bent(t, "right: shed,", "right: nonsense,")), runbooks.Known{}) {
		if f.Severity == runbooks.LintError {
			t.Error(f)
		}
	}
}

func TestASkeletonHasNothingForLint(t *testing.T) {
	empty := runbooks.Known{}
	for name, k := range map[string]runbooks.Known{"with a policy": known(), "without": empty} {
		now := known().Now
		text := runbooks.Skeleton("search-is-slow", "payments-oncall", now, k)
		k.Now = now
		if found := runbooks.LintSource("search-is-slow.md", text, k); len(found) > 0 {
			t.Errorf("%s: %v\n%s", name, found, text)
		}
	}
	k := known()
	k.Roles = maps.Clone(k.Roles)
	k.Roles["commander"] = policy.Role{MaxTier: 4, Members: []string{"ines"}}
	if text := string(runbooks.Skeleton("search-is-slow", "payments-oncall", k.Now, k)); !strings.Contains(text, "do: {right: shed,") {
		t.Errorf("the skeleton does not use the right to shed:\n%s", text)
	}
}
