package promrules_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/promrules"
)

// real reads one of the rule files of other teams.
func real(t *testing.T, name string) promrules.Source {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return promrules.Source{Name: filepath.Base(name), Content: content}
}

// ladder is the shop's ladder, as a folder for ReadDrafts.
func ladder(t *testing.T) *policy.LadderDoc {
	t.Helper()
	files, err := templates.Shop(policytest.Params())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ladder.yaml"), files["ladder.yaml"], 0o600); err != nil {
		t.Fatal(err)
	}
	docs, _, _, err := policy.ReadDrafts(os.DirFS(dir))
	if err != nil || docs.Ladder == nil {
		t.Fatalf("the shop's ladder cannot be read: %v", err)
	}
	return docs.Ladder
}

// checkDraft asserts what has to hold of every import: a policy takes it as it
// is, each query yields one series, and each signal is marked as a draft.
func checkDraft(t *testing.T, d *promrules.Draft, doc *policy.LadderDoc) {
	t.Helper()
	if err := d.Into(doc); err != nil {
		t.Fatal(err)
	}
	printed := policy.Canonical(doc)
	again, err := policy.Fmt("ladder.yaml", printed)
	if err != nil || string(again) != string(printed) {
		t.Fatalf("a policy does not take the draft: %v", err)
	}
	if !strings.Contains(string(printed), strings.TrimPrefix(string(d.Fragment()), "signals:\n")) && len(doc.Signals) == len(d.Signals) {
		t.Error("the fragment is not what stands in the ladder")
	}
	drafted := 0
	for _, a := range d.Alerts {
		for _, s := range a.Signals {
			drafted++
			signal, ok := d.Signals[s.Name]
			if !ok || signal.Query != s.Query || !directive.Name(s.Name) {
				t.Errorf("%s: the report has another signal than the draft", s.Name)
			}
			if err := promrules.OneSeries(signal.Query); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if !strings.Contains(signal.Why, policy.DecideMark) {
				t.Errorf("%s is not marked as a draft: %s", s.Name, signal.Why)
			}
			marked := make(map[string]bool)
			for _, decision := range s.Decisions {
				marked[decision.Code] = true
				if !slices.Contains(promrules.Codes(), decision.Code) || decision.Sentence == "" {
					t.Errorf("%s: %+v", s.Name, decision)
				}
				if !strings.Contains(signal.Why, decision.Sentence) && !strings.Contains(signal.Why, decision.Code) {
					t.Errorf("%s: the why does not name %s: %s", s.Name, decision.Code, signal.Why)
				}
			}
			for _, code := range []string{"unit", "age", "held", "fits"} {
				if !marked[code] {
					t.Errorf("%s: %s is not left to a person", s.Name, code)
				}
			}
			if filters := promrules.Filters(signal.Query) != nil; filters != marked["filter"] {
				t.Errorf("%s: filters is %v and marked %v: %s", s.Name, filters, marked["filter"], signal.Query)
			}
		}
	}
	if drafted != len(d.Signals) {
		t.Errorf("%d signals are reported and %d drafted", drafted, len(d.Signals))
	}
}

func TestRulesOfRealTeamsBecomeSignalsWithEveryDecisionMarked(t *testing.T) {
	for _, c := range []struct {
		file                       string
		alerts, signals, recording int
		decisions                  map[string]int
	}{
		{"prometheus-rules/kubernetesControlPlane-prometheusRule.yaml", 63, 72, 71, map[string]int{
			"unit": 72, "age": 72, "held": 72, "fits": 72, "reducer": 67, "joined": 16, "zero": 16, "equality": 20, "filter": 28, "nan": 25, "recorded": 13, "unless": 8, "difference": 9, "presence": 5, "absent": 3, "same": 4}},
		{"prometheus-rules/prometheus-prometheusRule.yaml", 23, 23, 0, map[string]int{
			"unit": 23, "age": 23, "held": 23, "fits": 23, "reducer": 23, "zero": 15, "equality": 2, "difference": 2, "filter": 1, "nan": 4}},
		{"slo/getting-started.yml", 2, 8, 15, map[string]int{
			"unit": 8, "age": 8, "held": 8, "fits": 8, "reducer": 8, "joined": 8, "noise": 8, "recorded": 8, "nan": 8, "same": 1}},
		{"slo/kubernetes-apiserver.yml", 4, 16, 30, map[string]int{
			"unit": 16, "age": 16, "held": 16, "fits": 16, "reducer": 16, "joined": 16, "recorded": 16, "nan": 16, "same": 2, "noise": 8}},
		{"slo/openslo-getting-started.yml", 0, 0, 15, map[string]int{}}, // it opens with an empty document and has no alert
	} {
		t.Run(c.file, func(t *testing.T) {
			d := promrules.Import([]promrules.Source{real(t, c.file)})
			if len(d.Bad) > 0 || len(d.Skipped) > 0 {
				t.Fatalf("%v %v", d.Bad, d.Skipped)
			}
			if len(d.Alerts) != c.alerts || len(d.Signals) != c.signals || d.Recording != c.recording {
				t.Errorf("%d alerts, %d signals, %d recording rules", len(d.Alerts), len(d.Signals), d.Recording)
			}
			got := make(map[string]int)
			for _, a := range d.Alerts {
				for _, s := range a.Signals {
					for _, decision := range s.Decisions {
						got[decision.Code]++
					}
				}
			}
			if !maps.Equal(got, c.decisions) {
				t.Errorf("decisions: %v", got)
			}
			checkDraft(t, d, ladder(t))
		})
	}
}

func TestTheDraftOfAFileIsTheSameEveryTime(t *testing.T) {
	golden.RequireEqual(t, promrules.Import([]promrules.Source{real(t, "slo/getting-started.yml")}).Fragment())
}

func TestAllFilesTogetherFitIntoOneLadder(t *testing.T) {
	var all []promrules.Source
	for _, file := range []string{"prometheus-rules/kubernetesControlPlane-prometheusRule.yaml", "prometheus-rules/prometheus-prometheusRule.yaml", "slo/getting-started.yml", "slo/kubernetes-apiserver.yml"} {
		all = append(all, real(t, file))
	}
	d := promrules.Import(all)
	if len(d.Signals) != 72+23+8+16 {
		t.Errorf("%d signals", len(d.Signals))
	}
	checkDraft(t, d, ladder(t))
}

func TestASignalThatIsThereIsNeverOverwritten(t *testing.T) {
	doc := ladder(t)
	before := string(policy.Canonical(doc))
	err := imported(`groups: [{name: g, rules: [{alert: Cpu, expr: up == 0}, {alert: New, expr: up == 0}]}]`).Into(doc)
	if err == nil || err.Error() != "the ladder has signals of these names already: cpu" {
		t.Errorf("%v", err)
	}
	if string(policy.Canonical(doc)) != before {
		t.Error("the ladder was changed all the same")
	}
}

// signal imports one alert that makes one signal.
func signal(t *testing.T, expr, fields string) (policy.Signal, promrules.Drafted) {
	t.Helper()
	d := imported("groups: [{name: g, rules: [{alert: A, expr: '" + expr + "'" + fields + "}]}]")
	if len(d.Bad) > 0 || len(d.Signals) != 1 {
		t.Fatalf("%s: %v, %d signals", expr, d.Bad, len(d.Signals))
	}
	checkDraft(t, d, &policy.LadderDoc{Header: policy.Header{V: policy.FormatVersion}})
	return d.Signals["a"], d.Alerts[0].Signals[0]
}

func TestAThresholdIsTheNumberThatPeopleWrote(t *testing.T) {
	for _, c := range []struct {
		expr         string
		above, below float64
	}{
		{"sum(x) > 0.8", 0.8, 0},
		{"sum(x) > (14.4 * 0.001)", 0.0144, 0}, // as binary fractions 0.014400000000000001
		{"sum(x) > 14.4 * (1-0.99)", 0.144, 0}, // and 0.14400000000000013
		{"sum(x) > (14.40 * 0.01000)", 0.144, 0},
		{"sum(x) > ( 25 / 100 )", 0.25, 0},
		{"sum(x) > 0.1 + 0.2", 0.3, 0},
		{"sum(x) > 2 ^ 10", 1024, 0},
		{"sum(x) > 1e9", 1e9, 0},
		{"sum(x) > 0x10", 16, 0},
		{"sum(x) > 2h", 7200, 0},
		{"sum(x) < -5", 0, -5},
		{"sum(x) < -(2 + 3)", 0, -5},
		{"0.9 > sum(x)", 0, 0.9},
		{"sum(x) > 1d * 7", 604800, 0},
	} {
		s, _ := signal(t, c.expr, "")
		switch {
		case s.Abnormal == nil, c.above != 0 && (s.Abnormal.Above == nil || *s.Abnormal.Above != c.above), c.below != 0 && (s.Abnormal.Below == nil || *s.Abnormal.Below != c.below):
			t.Errorf("%s: %s", c.expr, policy.Canonical(&s))
		}
		if s.Query != "sum(x)" {
			t.Errorf("%s: the query is %s", c.expr, s.Query)
		}
	}
}

func TestWhatIsNoConstantIsComparedInTheQuery(t *testing.T) {
	huge := strings.Repeat("9", 300) + " ^ 60"
	for _, c := range []struct{ expr, query string }{
		{"sum(x) > sum(y)", "sum(x) - sum(y)"},
		{"sum(x) > time() - 60", "sum(x) - (time() - 60)"},
		{"sum(x) > 1 / 0", "sum(x) - (1 / 0)"},
		{"sum(x) > Inf", "sum(x) - +Inf"},
		{"sum(x) > 2 ^ 0.5", "sum(x) - (2 ^ 0.5)"},
		{"sum(x) > 2 ^ -1", "sum(x) - (2 ^ -1)"},
		{"sum(x) > 2 ^ 65", "sum(x) - (2 ^ 65)"},
		{"sum(x) > " + huge, ""},
		{"sum(x) > 5 % 3", "sum(x) - (5 % 3)"},
	} {
		s, drafted := signal(t, c.expr, "")
		if c.query != "" && s.Query != c.query {
			t.Errorf("%s: %s", c.expr, s.Query)
		}
		if !slices.ContainsFunc(drafted.Decisions, func(d promrules.Decision) bool { return d.Code == "difference" }) {
			t.Errorf("%s: the difference is not marked", c.expr)
		}
	}
}

func TestEveryDecisionIsLeftToAPerson(t *testing.T) {
	for _, c := range []struct{ expr, fields, code, sentence string }{
		{"sum(x) > 1", "", "unit", "the unit is not known"},
		{"sum(rate(x[5m])) > 1", "", "unit", "the unit per second is a guess from the names"},
		{"max(a_seconds) > 1", "", "unit", "the unit seconds is a guess"},
		{"max(a_bytes) > 1", "", "unit", "the unit bytes is a guess"},
		{"max(a_percent) > 1", "", "unit", "the unit percent is a guess"},
		{"max(a_bytes / b_bytes) > 0.1", "", "unit", "the unit ratio is a guess"},
		{"max(a_bytes / b_bytes) * 100 > 10", "", "unit", "the unit percent is a guess"},
		{"max(1 - a_bytes / b_bytes) > 0.1", "", "unit", "the unit ratio is a guess"},
		{"max(a_seconds / b_bytes) > 1", "", "unit", "the unit is not known"},
		{"time() - max(a_seconds) > 60", "", "unit", "the unit seconds is a guess"},
		{"histogram_quantile(0.99, sum by (le) (rate(a_seconds_bucket[5m]))) > 1", "", "unit", "the unit seconds is a guess"},
		{"sum(increase(a_seconds[5m])) > 1", "", "unit", "the unit is not known"},
		{"max_over_time(sum(a_seconds)[5m:1m]) > 1", "", "unit", "the unit seconds is a guess"},
		{"max(avg_over_time(a_seconds[5m])) > 1", "", "unit", "the unit seconds is a guess"},
		{"max(job:errors:ratio_rate5m) > 1", "", "unit", "the unit ratio is a guess"},
		{"count(x) > 1", "", "unit", "the unit series is a guess"},
		{"absent(x)", "", "unit", "the unit is a number of series, made up here"},
		{"sum(x) >= 1", "", "equality", ">= 1 became 0.5, half a step off: right for whole numbers only"},
		{"sum(x) <= 0", "", "equality", "<= 0 became 0.5, half a step off: right for whole numbers only"},
		{"sum(x) >= 0.9", "", "equality", ">= 0.9 became a strict threshold: exactly 0.9 does not count"},
		{"max(up) == 0", "", "equality", "== 0 became below 0.5, half a step: right for whole numbers from 0 on only"},
		{"sum(delta(x[5m])) == 0", "", "equality", "== 0 became a distance below 0.5"},
		{"max(up) != 1", "", "equality", "!= 1 became a distance above 0.5, half a step"},
		{"0.9 > sum(x)", "", "mirrored", "its threshold on the left"},
		{"sum(x) > 14.4 * 0.0009999999999999432", "", "noise", "the threshold 0.014399999999999183 looks like 0.0144 with a rounding error"},
		{"sum(x) > 0", "", "zero", "above 0 leaves no number for the way out"},
		{"sum(x) > 1e13", "", "too-large", "the threshold 1e+13 is beyond what a policy holds"},
		{"sum(x) > sum(y)", "", "difference", "the draft is their difference"},
		{"sum(x)", "", "presence", "the alert has no threshold"},
		{"absent(x)", "", "absent", "a scrape that fails looks the same"},
		{"sum(x) > 1 unless on () y", "", "unless", "unless leaves series out"},
		{"x > 1", "", "reducer", "max() over all labels is proposed"},
		{"x < 1", "", "reducer", "min() over all labels is proposed"},
		{"sum by (job, instance) (x) > 1", "", "reducer", "max() over instance, job is proposed"},
		{"sum(x) > 1 and on () y > 2", "", "filter", "no data while nothing matches behind and in sum(x) and on () y > 2"},
		{"sum(x) / sum(y) > 1", "", "nan", "0/0, NaN"},
		{"max(job:x:rate5m) > 1", "", "recorded", "job:x:rate5m is recorded by a rule that is not in these files"},
		{"sum(x) > 1", "", "age", "step 30s and max_age 2m are defaults: the group has no interval"},
		{"sum(x) > 1", ", for: 15m", "held", "the alert waits 15m"},
		{"sum(x) > 1", ", for: 1d", "held", "the alert waits 1d"},
		{"sum(x) > 1", ", for: 0s", "held", "the alert fires at once: a tier waits for at least two steps"},
		{"sum(x) > 1", ", for: soon", "held", "the alert fires at once"},
		{"sum(x) > 1", ", for: 1m, keep_firing_for: 10m", "held", "it keeps firing for 10m"},
		{"sum(x) > 1", "", "fits", "which right and which runbook fit?"},
		{"sum(x) > 1", ", annotations: {runbook_url: 'https://r/a'}", "fits", "(the alert's: https://r/a)"},
		{"sum(x) > 1", ", annotations: {runbook: 'https://r/b'}", "fits", "(the alert's: https://r/b)"},
	} {
		s, drafted := signal(t, c.expr, c.fields)
		found := slices.ContainsFunc(drafted.Decisions, func(d promrules.Decision) bool {
			return d.Code == c.code && strings.Contains(d.Sentence, c.sentence)
		})
		if !found || !strings.Contains(s.Why, c.sentence) {
			t.Errorf("%s%s: no decision %s: %q in %v", c.expr, c.fields, c.code, c.sentence, drafted.Decisions)
		}
	}
}

func TestWhatNeedsNoDecisionIsNotMarked(t *testing.T) {
	_, drafted := signal(t, "sum(rate(a_total[5m])) > 100", "")
	for _, d := range drafted.Decisions {
		if !slices.Contains([]string{"unit", "age", "held", "fits"}, d.Code) {
			t.Errorf("%+v", d)
		}
	}
}

func TestTheIntervalOfAGroupIsTheStep(t *testing.T) {
	for _, c := range []struct{ interval, step, maxAge string }{
		{"", "30s", "2m"}, {"15s", "15s", "1m"}, {"1m", "1m", "4m"}, {"90s", "90s", "6m"}, {"1d", "24h", "96h"}, {"500ms", "1s", "4s"}, {"1w", "24h", "96h"}, {"soon", "30s", "2m"}, {"0s", "30s", "2m"},
	} {
		d := imported("groups: [{name: g, interval: '" + c.interval + "', rules: [{alert: A, expr: sum(x) > 1}]}]")
		if s := d.Signals["a"]; s.Step.String() != c.step || s.MaxAge.String() != c.maxAge {
			t.Errorf("%q: step %s, max_age %s; %v", c.interval, s.Step, s.MaxAge, d.Bad)
		}
	}
}
