package promrules_test

import (
	"testing"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
)

// Whatever the bytes are: no panic, and what is drafted a policy takes.
func FuzzImport(f *testing.F) {
	// Small ones: the fuzzer would spend its time on making real files shorter.
	for _, text := range []string{
		twoAlerts, burn, "---\n---\nkind: List\nitems: [{kind: PrometheusRule, spec: {groups: []}}]",
		"a: &a [*a]\ngroups: *a", "groups: [{name: g, rules: [{alert: A, expr: 'x > 1 < 2 == 3'}]}]",
		"groups: [{rules: [{alert: A, expr: 'absent(x) or (y unless z) > bool 2 ^ 64'}]}]",
		"groups: [{rules: [{alert: A, expr: 'max(x > 1e308 * 1e308) by (a) and {\"ü\"} == -0'}]}]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		d := promrules.Import([]promrules.Source{{Name: "rules.yaml", Content: content}})
		for _, p := range d.Bad {
			if p.Sentence == "" {
				t.Error("a problem without a sentence")
			}
		}
		checkDraft(t, d, &policy.LadderDoc{Header: policy.Header{V: policy.FormatVersion}})
	})
}

// Whatever the query is: no panic, and parentheses around it change no answer.
func FuzzOneSeries(f *testing.F) {
	for _, q := range []string{"sum(x)", "x", "sum by (a) (x) / ignoring (a) group_left (b) y", "absent(x) or vector(0)", "topk(1, x)[5m:1m]", `label_replace(x, "a", "b", "c", "d")`} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		plain, bracketed := promrules.OneSeries(query), promrules.OneSeries("("+query+"\n)")
		if plain == nil && bracketed != nil && len(query) < 16_000 {
			t.Errorf("%q: nil, and %v in parentheses", query, bracketed)
		}
		_ = promrules.Filters(query)
	})
}
