package promrules_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
)

// burn is a multi-window alert as teams write it: each window against the same
// threshold.
const burn = `groups:
- name: slo
  rules:
  - alert: ErrorBudgetBurn
    expr: |
      (job:errors:ratio_rate1h > (14.4 * 0.001) and job:errors:ratio_rate5m > (14.4 * 0.001))
      or
      (job:errors:ratio_rate3d > 0.001 and job:errors:ratio_rate6h > 0.001)
  - alert: ErrorBudgetBurn
    expr: sum(rate(bad[1w])) / sum(rate(all[1w])) > 0.01 and sum(rate(bad[2d])) / sum(rate(all[2d])) > 0.01
`

func TestTheWindowsOfABurnAlertStayApartAndSayHowTheyWereJoined(t *testing.T) {
	d := imported(burn)
	if len(d.Bad) > 0 {
		t.Fatal(d.Bad)
	}
	want := map[string]string{
		"error-budget-burn-1h": "max(job:errors:ratio_rate1h)", "error-budget-burn-5m": "max(job:errors:ratio_rate5m)",
		"error-budget-burn-3d": "max(job:errors:ratio_rate3d)", "error-budget-burn-6h": "max(job:errors:ratio_rate6h)",
		"error-budget-burn-1w": "sum(rate(bad[1w])) / sum(rate(all[1w]))", "error-budget-burn-2d": "sum(rate(bad[2d])) / sum(rate(all[2d]))",
	}
	got := make(map[string]string)
	for name, s := range d.Signals {
		got[name] = s.Query
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	joined := "(error-budget-burn-1h and error-budget-burn-5m) or (error-budget-burn-3d and error-budget-burn-6h)"
	if d.Alerts[0].Joined != joined || d.Alerts[1].Joined != "error-budget-burn-1w and error-budget-burn-2d" {
		t.Errorf("%q, %q", d.Alerts[0].Joined, d.Alerts[1].Joined)
	}
	if why := d.Signals["error-budget-burn-1h"].Why; !strings.Contains(why, "the alert fires on "+joined) {
		t.Error(why)
	}
	if a := d.Signals["error-budget-burn-5m"].Abnormal; a == nil || *a.Above != 0.0144 {
		t.Errorf("%+v", a)
	}
	checkDraft(t, d, &policy.LadderDoc{Header: policy.Header{V: policy.FormatVersion}})
}

func TestASecondConditionThatIsNoWindowStaysInTheQuery(t *testing.T) {
	for _, c := range []struct{ expr, query string }{
		{"sum(x) > 1 and on () sum(y) > 100", "sum(x) and on () sum(y) > 100"},
		{"a / b < 0.03 and u > 0 unless on (pvc) m == 1", "min(((a / b) and u > 0) unless on (pvc) m == 1)"},
		{"x > 1 and x < 5", "max(x and x < 5)"},
		{"x > 0.9 < 1", "max(x < 1)"},
		{"max by (w) (x > 3)", "max(x)"},
		{"min(x < 3) without (w)", "min(x)"},
		{"max by (b) (max by (a, b) (x)) > 1", "max(x)"},
	} {
		if s, _ := signal(t, c.expr, ""); s.Query != c.query {
			t.Errorf("%s: %s", c.expr, s.Query)
		}
	}
}

func TestNamesAreAsPoliciesWriteThemAndStayWhenRulesAreAdded(t *testing.T) {
	alerts := []string{
		"KubeAPIErrorBudgetBurn", "K8sApiserverLatency", "CPUThrottlingHigh", "P99Latency", "already-fine", "snake_case_name", "With Spaces: and signs!",
		"Größe", "日本語", "日本", "KubeAPIErrorBudgetBurn", "KubeAPIErrorBudgetBurn", "KubeApiErrorBudgetBurn2", "---", "A", strings.Repeat("Long", 50), strings.Repeat("Long", 51),
		"\x1b[2Jx",
	}
	want := []string{
		"kube-api-error-budget-burn", "k8s-apiserver-latency", "cpu-throttling-high", "p99-latency", "already-fine", "snake-case-name", "with-spaces-and-signs",
		"gr-e", "signal", "signal-2", "kube-api-error-budget-burn-2", "kube-api-error-budget-burn-3", "kube-api-error-budget-burn2", "signal-3", "a",
		"long-long-long-long-long-long-long-long-long-lon", "long-long-long-long-long-long-long-long-long-lon-2", "2-jx",
	}
	var text strings.Builder
	text.WriteString("groups:\n- name: g\n  rules:\n")
	for n, alert := range alerts {
		text.WriteString("  - {alert: " + strconv.QuoteToASCII(alert) + ", expr: sum(x) > 1}\n")
		d := imported(text.String())
		if len(d.Bad) > 0 {
			t.Fatal(d.Bad)
		}
		for i, a := range d.Alerts {
			if a.Signals[0].Name != want[i] {
				t.Errorf("with %d alerts %q is %q, want %q", n+1, alerts[i], a.Signals[0].Name, want[i])
			}
		}
	}
}

func TestANameThatIsTakenIsNeverTakenTwice(t *testing.T) {
	d := imported("groups: [{name: g, rules: [{alert: a-2, expr: sum(x) > 1}, {alert: A, expr: sum(x) > 2}, {alert: A, expr: sum(x) > 3}, {alert: A, expr: sum(x) > 4}]}]")
	if got := slices.Sorted(maps.Keys(d.Signals)); !slices.Equal(got, []string{"a", "a-2", "a-3", "a-4"}) {
		t.Errorf("%v", got)
	}
}

func TestTheSameQueryWithAnotherThresholdIsSaid(t *testing.T) {
	d := imported("groups: [{name: g, rules: [{alert: Soon, expr: ttl_seconds < 604800}, {alert: Now, expr: ttl_seconds < 86400}]}]")
	if why := d.Signals["now"].Why; !strings.Contains(why, "the same query as soon: keep one, and use both thresholds in tiers") {
		t.Error(why)
	}
	if why := d.Signals["soon"].Why; strings.Contains(why, "the same query") {
		t.Error(why)
	}
}

func TestARecordedNumberIsExplainedByItsRule(t *testing.T) {
	d := imported(`groups:
- name: g
  rules:
  - {alert: A, expr: max(job:errors:ratio) > 0.1}
  - {record: 'job:errors:ratio', expr: 'sum by (job) (rate(bad[5m])) / sum by (job) (rate(all[5m]))'}
`)
	why := d.Signals["a"].Why
	for _, want := range []string{"job:errors:ratio is recorded: sum by (job) (rate(bad[5m])) / sum by (job) (rate(all[5m]))", "without traffic job:errors:ratio is 0/0"} {
		if !strings.Contains(why, want) {
			t.Errorf("no %q in %s", want, why)
		}
	}
	if d.Recording != 1 || len(d.Signals) != 1 {
		t.Errorf("%d recording rules, %d signals", d.Recording, len(d.Signals))
	}
}

// A why has 1,000 bytes; when the sentences do not fit, the codes do.
func TestAWhyThatIsFullNamesTheCodesOfTheRest(t *testing.T) {
	long := strings.Repeat("a", 300)
	s, drafted := signal(t, "max("+long+":b / "+long+":c) > 0", ", annotations: {runbook_url: 'https://"+long+"'}, labels: {severity: "+long+"}, keep_firing_for: "+long)
	if len(s.Why) > 1000 || !strings.HasSuffix(s.Why, "; and held, fits") {
		t.Errorf("%d bytes: %s", len(s.Why), s.Why)
	}
	if len(drafted.Decisions) < 8 {
		t.Errorf("the report is not whole: %v", drafted.Decisions)
	}
}

func TestTextFromOutsideIsMadeSafe(t *testing.T) {
	evil := `\x1b[2J\u202e\r\n`
	d := promrules.Import([]promrules.Source{{Name: "r.yaml", Content: []byte(`groups: [{name: "` + evil + `", rules: [{alert: "` + evil + `", expr: "x{a=\"\\x1b\"} > 1 and on () y", keep_firing_for: "` + evil + `", labels: {severity: "` + evil + `"}, annotations: {runbook_url: "` + evil + `"}}]}]`)}})
	if len(d.Bad) > 0 {
		t.Fatal(d.Bad)
	}
	checkDraft(t, d, &policy.LadderDoc{Header: policy.Header{V: policy.FormatVersion}}) // a policy refuses what does not print
	for _, a := range d.Alerts {
		all := a.Alert + a.Group + a.Joined
		for _, s := range a.Signals {
			for _, decision := range s.Decisions {
				all += decision.Sentence
			}
		}
		if strings.ContainsAny(all, "\x1b\u202e\r\n") {
			t.Errorf("%q", all)
		}
	}
}

func TestEveryDecisionIsExplainedInTheHowTo(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/import-prometheus-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range promrules.Codes() {
		if !strings.Contains(string(page), "`"+code+"`") {
			t.Errorf("the page does not explain %s", code)
		}
	}
}
