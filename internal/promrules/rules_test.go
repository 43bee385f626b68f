package promrules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/promrules"
)

func imported(text string) *promrules.Draft {
	return promrules.Import([]promrules.Source{{Name: "rules.yaml", Content: []byte(text)}})
}

const twoAlerts = `groups:
- name: shop
  rules:
  - {alert: CheckoutSlow, expr: 'histogram_quantile(0.99, sum by (le) (rate(checkout_seconds_bucket[5m]))) > 0.8', for: 2m}
  - {alert: CheckoutDown, expr: 'up{job="checkout"} == 0'}
`

func TestRulesAreFoundInEveryFormThatPeopleKeepThemIn(t *testing.T) {
	object := "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: shop}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(twoAlerts), "\n", "\n  ") + "\n"
	item := "  - " + strings.ReplaceAll(strings.TrimSpace(object), "\n", "\n    ") + "\n"
	for _, c := range []struct {
		what, text string
		alerts     int
	}{
		{"a rule file", twoAlerts, 2},
		{"an empty document before it", "---\n---\n# generated\n" + twoAlerts, 2},
		{"a document that holds nothing before it", "~\n---\n" + twoAlerts, 2},
		{"an empty document behind it", twoAlerts + "---\n", 2},
		{"two documents", twoAlerts + "---\n" + twoAlerts, 4},
		{"comments", "# ours\n" + strings.ReplaceAll(twoAlerts, "\n  rules:", " # shop\n  rules: # all"), 2},
		{"an object", object, 2},
		{"a list, as kubectl prints it", "apiVersion: v1\nkind: List\nitems:\n" + item + item, 4},
		{"a list of its own kind", "kind: PrometheusRuleList\nitems:\n" + item, 2},
		{"JSON", `{"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "up == 0", "for": "1m"}]}]}`, 1},
		{"fields that are not read", strings.Replace(twoAlerts, "  rules:", "  limit: 3\n  query_offset: 1m\n  partial_response_strategy: warn\n  rules:", 1), 2},
		{"an alias", "base: &slow {alert: A, expr: up == 0}\ngroups: [{name: g, rules: [*slow]}]", 1},
		{"a merge", "base: &slow {for: 5m, expr: up == 0}\ngroups: [{name: g, rules: [{<<: *slow, alert: A}]}]", 1},
		{"a number for an expression", "groups: [{name: g, rules: [{alert: A, expr: 1}]}]", 1},
		{"a group without rules", "groups: [{name: g}, {name: h, rules: []}]", 0},
		{"no groups", "groups: []", 0},
		{"labels and annotations that hold nothing", "groups: [{name: g, rules: [{alert: A, expr: up == 0, labels: , annotations: ~}]}]", 1},
	} {
		d := imported(c.text)
		if len(d.Bad) > 0 || len(d.Skipped) > 0 || len(d.Alerts) != c.alerts {
			t.Errorf("%s: %d alerts, want %d; %v", c.what, len(d.Alerts), c.alerts, d.Bad)
		}
	}
}

func TestOtherKubernetesObjectsAreSkippedAndNamed(t *testing.T) {
	d := imported("kind: Service\nmetadata: {}\n---\n" + twoAlerts + "---\nkind: \"Config\\u001b[2JMap\"\n")
	if len(d.Alerts) != 2 || len(d.Skipped) != 2 || len(d.Bad) > 0 {
		t.Fatalf("%+v", d)
	}
	if got := d.Skipped[0].Error(); got != "rules.yaml:1:1: a Service holds no rules that are read here" {
		t.Error(got)
	}
	if got := d.Skipped[1].Error(); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeReadHasAPlaceAndASentence(t *testing.T) {
	rule := func(r string) string { return "groups:\n- name: g\n  rules:\n  - " + r + "\n" }
	for _, c := range []struct{ what, text, want string }{
		{"an empty file", "", "rules.yaml: there is no document in the file"},
		{"a file of empty documents", "---\n---\n", "rules.yaml: there is no document"},
		{"no YAML", "groups: [", "not YAML: "},
		{"a template", "groups:\n{{ range .Values.x }}\n", "not YAML: "},
		{"a word", "hello", "rules.yaml:1:1: a rule file has groups, and this is none"},
		{"another document", "a: 1", "rules.yaml:1:1: neither a rule file (groups:) nor a PrometheusRule"},
		{"an object without spec", "kind: PrometheusRule", `rules.yaml:1:1: "spec" is missing`},
		{"an object without groups", "kind: PrometheusRule\nspec: {}", `rules.yaml:2:7: "groups" is missing`},
		{"a list without items", "kind: List", `"items" is missing`},
		{"a list in a list", "kind: List\nitems: [{kind: List, items: []}]", "a list inside a list"},
		{"groups that are no list", "groups: {}", `rules.yaml:1:9: "groups" is not a list`},
		{"a group that is none", "groups: [shop]", "rules.yaml:1:10: a group has a name and rules, and this is none"},
		{"rules that are no list", "groups: [{name: g, rules: 3}]", `"rules" is not a list`},
		{"a rule that is none", rule("[]"), "rules.yaml:4:5: a rule has an expr and either alert or record, and this is none"},
		{"neither alert nor record", rule("expr: up"), "rules.yaml:4:5: a rule has either alert or record, and not both"},
		{"alert and record", rule("{alert: A, record: b, expr: up}"), "either alert or record, and not both"},
		{"no expression", rule("alert: A"), `rules.yaml:4:5: "expr" is missing`},
		{"an expression that is a list", rule("{alert: A, expr: [up]}"), `rules.yaml:4:22: "expr" is not one value`},
		{"a name that is a list", rule("{alert: [A], expr: up}"), `"alert" is not one value`},
		{"labels that are a list", rule("{alert: A, expr: up, labels: [a]}"), `"labels" is not a group of fields`},
		{"an expression twice", rule("{alert: A, expr: up, expr: down}"), `"expr" stands here twice; remove one`},
		{"merges of merges", "a: &a {for: 1m}\nb: &b {<<: *a}\nc: &c {<<: *b}\nd: &d {<<: *c}\ne: &e {<<: *d}\nf: &f {<<: *e}\n" + rule("{<<: *f, alert: A, expr: up}"), "merge keys (<<) are followed"},
		{"a merge of a list", "a: &a {expr: up}\n" + rule("{<<: [*a], alert: A}"), "merge keys (<<) are followed to one mapping"},
		{"bad PromQL on one line", rule("{alert: A, expr: sum(up) by}"), "rules.yaml:4:"},
		{"bad PromQL in quotes", rule(`{alert: A, expr: "sum(up) + fetch(up)"}`), `rules.yaml:4:33: not PromQL: unknown function with name "fetch"`},
		{"bad PromQL without quotes", rule(`{alert: A, expr: sum(up) + fetch(up)}`), `rules.yaml:4:32: not PromQL: unknown function`},
		{"bad PromQL in a block", rule("alert: A\n    expr: |\n      sum(up)\n        + fetch(up)"), "rules.yaml:7:11: not PromQL: unknown function"},
		{"bad PromQL in a folded block", rule("alert: A\n    expr: >\n      sum(up)\n      + fetch(up)"), "rules.yaml:5:11: not PromQL: unknown function"},
		{"bad PromQL in a recording rule", rule("{record: a, expr: sum(}"), "not PromQL: "},
		{"no PromQL", rule("{alert: A, expr: ''}"), "rules.yaml:4:23: there is no query"},
		{"a text", rule(`{alert: A, expr: '"x"'}`), "alert A: the query is a text"},
		{"a query that is too long for a policy", rule(`{alert: A, expr: 'sum(x{a="` + strings.Repeat("a", 1000) + `"}) > 1'}`), "its query has 1012 bytes, a signal's at most 1000"},
		{"characters that do not print", rule(`{alert: A, expr: "sum(x{a=\"\uFE0F\"}) > 1"}`), "its query holds characters that do not print"},
		{"an alert of too many numbers", rule("{alert: A, expr: '" + strings.Repeat("a > 1 or ", 16) + "a > 1'}"), "it looks at 17 numbers, at most 16"},
		{"too many fields", "groups: [{" + strings.Repeat("a: 1, ", 1001) + "}]", "more than 1000 fields"},
	} {
		d := imported(c.text)
		if len(d.Bad) == 0 || !strings.Contains(d.Bad[0].Error(), c.want) || len(d.Signals) > 0 {
			t.Errorf("%s\ngot  %v and %d signals\nwant %s", c.what, d.Bad, len(d.Signals), c.want)
		}
	}
}

func TestWhatCanBeReadIsDraftedBesideWhatCannot(t *testing.T) {
	d := promrules.Import([]promrules.Source{
		{Name: "a.yaml", Content: []byte(strings.Replace(twoAlerts, "== 0", "== ", 1))},
		{Name: "b.yaml", Content: []byte("groups: [")},
		{Name: "c\x1b[2J.yaml", Content: []byte("~")},
		{Name: "d.yaml", Content: []byte(twoAlerts)},
	})
	if len(d.Alerts) != 3 || len(d.Bad) != 3 {
		t.Fatalf("%d alerts, %v", len(d.Alerts), d.Bad)
	}
	if strings.Contains(d.Bad[2].Error(), "\x1b") {
		t.Errorf("%q", d.Bad[2])
	}
}

func TestASmallFileCannotBecomeALongImport(t *testing.T) {
	many := func(n int, one string) string { return "[" + strings.Repeat(one+", ", n) + one + "]" }
	for _, c := range []struct{ what, text, want string }{
		{"a file over the limit", strings.Repeat("#", promrules.MaxFile+1), "the file has 4194305 bytes, at most 4194304"},
		{"rules by aliases", "r: &r " + many(5000, "{record: a, expr: up}") + "\ngroups: " + many(3, "{name: g, rules: *r}"), "more than 10000 rules, groups and objects"},
		{"groups by aliases", "g: &g {name: g, rules: [] }\ngroups: " + many(10_000, "*g"), "more than 10000 rules, groups and objects"},
		{"bad rules by aliases", "r: &r " + many(5000, "[]") + "\ngroups: " + many(3, "{name: g, rules: *r}"), "a rule has an expr"},
		{"objects", "kind: List\nitems: " + many(10_000, "{kind: PrometheusRule, spec: {groups: []}}"), "more than 10000 rules, groups and objects"},
		{"signals", "groups: [{name: g, rules: " + many(2000, "{alert: A, expr: up == 0}") + "}]", "more than 2000 signals"},
		{"deep brackets", strings.Repeat("[", 1<<20), "not YAML"},
	} {
		d := imported(c.text)
		if len(d.Bad) == 0 || !strings.Contains(d.Bad[0].Error(), c.want) {
			t.Errorf("%s: %.300v", c.what, fmt.Sprint(d.Bad))
		}
		if len(d.Bad) > 50 || len(d.Signals) > promrules.MaxSignals {
			t.Errorf("%s: %d problems, %d signals", c.what, len(d.Bad), len(d.Signals))
		}
	}
}

func TestOnlyAScreenfulOfProblemsIsToldAndTheRestIsCounted(t *testing.T) {
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  rules:\n")
	for range 70 {
		text.WriteString("  - {alert: A, expr: 'sum('}\n")
	}
	if d := imported(text.String()); len(d.Bad) != 50 || d.Untold != 20 {
		t.Errorf("%d told, %d not", len(d.Bad), d.Untold)
	}
}
