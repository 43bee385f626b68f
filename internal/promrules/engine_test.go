package promrules_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/metrics"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"pgregory.net/rapid"
)

// oracle is the real query engine over a few series of whole numbers.
type oracle struct {
	engine *promql.Engine
	store  *metrics.Store
}

var begins = time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)

const minutes = 8 // of samples, one each

func newOracle() *oracle {
	return &oracle{
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 90 * time.Second, EnableAtModifier: true, EnableNegativeOffset: true,
			Parser: parser.NewParser(parser.Options{EnableExperimentalFunctions: true}),
		}),
		store: metrics.NewStore(time.Hour),
	}
}

// fill makes series of whole numbers from least on, with gaps; draw gives a number
// from 0 to below n.
func (o *oracle) fill(t testing.TB, draw func(n int) int, least int, series []string) {
	for _, one := range series {
		name, rest, _ := strings.Cut(one, " ")
		if draw(4) == 0 {
			continue
		}
		for m := range minutes {
			if draw(6) == 0 {
				continue
			}
			if err := o.store.Append(begins.Add(time.Duration(m)*time.Minute), name, float64(least+draw(5)), strings.Fields(rest)...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (o *oracle) ask(query string, at time.Time) (promql.Vector, error) {
	q, err := o.engine.NewInstantQuery(context.Background(), o.store, nil, query, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(context.Background())
	if r.Err != nil {
		return nil, r.Err
	}
	switch v := r.Value.(type) {
	case promql.Vector:
		return append(promql.Vector(nil), v...), nil
	case promql.Scalar:
		return promql.Vector{{F: v.V}}, nil
	}
	return nil, fmt.Errorf("%s", r.Value.Type())
}

// A query that OneSeries lets through never has two series: not at a moment and,
// since a signal is read over windows too, not at two moments.
func TestTheRealEngineNeverFindsTwoSeriesWhereOneWasPromised(tb *testing.T) {
	series := []string{"x a 1 b 1", "x a 1 b 2", "x a 2", "x", "y a 1 b 1", "y a 2 b 2", "y b 2", "y", "z le 1 a 1", "z le +Inf a 1", "z le 1 a 2", "z le +Inf a 2"}
	promised, several := 0, 0
	rapid.Check(tb, func(t *rapid.T) {
		query := vector(t, 4)
		if err := promrules.OneSeries(query); err != nil {
			if strings.Contains(err.Error(), "not PromQL") {
				t.Fatalf("%s: %v", query, err)
			}
			several++
			return
		}
		o := newOracle()
		o.fill(tb, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }, -1, series)
		seen := make(map[string]bool)
		for m := range minutes {
			found, err := o.ask(query, begins.Add(time.Duration(m)*time.Minute))
			if err != nil {
				continue // a match below an aggregation that finds two partners: no answer at all
			}
			for _, s := range found {
				seen[s.Metric.String()] = true
			}
		}
		if len(seen) > 1 {
			t.Fatalf("%s yields %v", query, seen)
		}
		if len(seen) == 1 {
			promised++
		}
	})
	if promised == 0 || several == 0 {
		tb.Errorf("%d queries yielded one series and %d were refused: the test proves nothing", promised, several)
	}
}

// vector draws an expression that yields an instant vector.
func vector(t *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{"x", "y", `x{a="1"}`, "sum(x)", "max(y)", "vector(1)", "sum by (le) (z)", `absent(x{a="1"})`}).Draw(t, "leaf")
	}
	v := func() string { return vector(t, depth-1) }
	names := func() string {
		return rapid.SampledFrom([]string{"", "a", "b", "a, b", "le"}).Draw(t, "labels")
	}
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0, 1, 2:
		op := rapid.SampledFrom([]string{"sum", "max", "min", "count", "avg", "group"}).Draw(t, "op")
		how := rapid.SampledFrom([]string{"by (%s)", "without (%s)", ""}).Draw(t, "how")
		if how != "" {
			how = fmt.Sprintf(how, names())
		}
		return fmt.Sprintf("%s %s (%s)", op, how, v())
	case 3:
		return fmt.Sprintf("%s(1, %s)", rapid.SampledFrom([]string{"topk", "bottomk", "limitk"}).Draw(t, "op"), v())
	case 4:
		return fmt.Sprintf("max_over_time((%s)[2m:1m])", v())
	case 5:
		return fmt.Sprintf("%s(%s)", rapid.SampledFrom([]string{"abs", "-", "round", "timestamp", "absent", "sort"}).Draw(t, "f"), v())
	case 6:
		return fmt.Sprintf("histogram_quantile(0.9, %s)", v())
	case 7:
		return fmt.Sprintf(`label_replace(%s, "b", "$1", "a", "(.*)")`, v())
	case 8:
		return fmt.Sprintf("(%s) %s (%s)", v(), rapid.SampledFrom([]string{"or", "and", "unless", "or on ()", "and on (a)", "or on (a)"}).Draw(t, "set"), v())
	default:
		op := rapid.SampledFrom([]string{"+", "/", ">", "== bool", "!="}).Draw(t, "op")
		match := rapid.SampledFrom([]string{"", "on (%s)", "ignoring (%s)", "on (%s) group_left ()", "ignoring (%s) group_right ()"}).Draw(t, "match")
		if match != "" {
			match = fmt.Sprintf(match, names())
		}
		return fmt.Sprintf("(%s) %s %s (%s)", v(), op, match, v())
	}
}

// What the draft of an alert says is abnormal is what the alert fires on, for
// whole numbers: at every moment, on the real engine.
func TestADraftIsAbnormalExactlyWhenItsAlertFires(t *testing.T) {
	series := []string{"x a 1", "x a 2", "y a 1", "y a 2", "z a 1", "z"}
	drafts, fromZero := make(map[string]*promrules.Draft), make(map[string]bool)
	for _, expr := range []string{
		"x > 2", "x >= 2", "x < 1", "x <= 1", "x == 0", "x - y == 0", "-x == 0", "x == 2", "x != 0", "x != 2", "2 < x", "3 >= x", "1 <= x", "2 == x", "-x > 0", "x * 2 > 3 + 1",
		"x > y", "x >= y", "x < y", "x == y", "x != y", "x > on (a) y", "x - y > 1", "x > scalar(z{a=\"1\"})", "x > on (a) group_left () max by (a) (y)",
		"x > 1 < 4", "(x > 0) > 1", "0 < x < 3", "x > y > 1", "(x > y) < 3",
		"max(x > 2)", "max by (a) (x > 2)", "min(x < 1) without (a)", "max(x < 2)", "min(x > 2)", "sum(x > 2)", "count(x > 2) > 1", "max((x > 1) < 4)", "max(x > y)",
		"(x > 2) and y > 1", "x > 2 and y", "x > 1 unless y > 2", "x > 1 and y > 1 unless z", "x unless y", "x and y > 2", "x == 0 and on (a) y == 0",
		"x > 2 or y > 2", "(x > 2 or y < 0) and z > 1", "(x > 2 or y) unless z", "x or y > 2", "(x > y) * 2", "(x > 1) * on (a) (y > 1)",
		"absent(x)", "absent(x) or y > 2", "absent(x > 2)", "vector(1)", "x", "count by (a) (x) unless on (a) count by (a) (y == 1)", "x > bool 2",
		"(x > bool 2) == 1", "time() - x > 0", "x + on (a) y > 3", "topk(1, x) > 2", "sum(x) > 4 or sum(y) > 4",
	} {
		draft := promrules.Import([]promrules.Source{{Name: "rules.yaml", Content: []byte("groups: [{name: g, rules: [{alert: A, expr: '" + expr + "'}]}]")}})
		if len(draft.Bad) > 0 || len(draft.Signals) == 0 {
			t.Fatalf("%s: %v", expr, draft.Bad)
		}
		drafts[expr], fromZero[expr] = draft, strings.Contains(string(draft.Fragment()), "whole numbers from 0 on")
	}
	fired, quiet := make(map[string]int), make(map[string]int)
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		o, least := newOracle(), random.IntN(2)-1
		o.fill(t, random.IntN, least, series)
		for range 3 {
			at := begins.Add(time.Duration(random.IntN(minutes)) * time.Minute)
			for expr, draft := range drafts {
				if least < 0 && fromZero[expr] {
					continue // the draft says that it is not for these
				}
				found, err := o.ask(expr, at)
				if err != nil {
					t.Fatalf("%s: %v", expr, err)
				}
				if fires := len(found) > 0; fires != o.abnormal(t, draft, at) {
					t.Fatalf("%s fires: %v; the draft says otherwise:\n%s", expr, fires, draft.Fragment())
				}
				if len(found) > 0 {
					fired[expr]++
				} else {
					quiet[expr]++
				}
			}
		}
	}
	for expr := range drafts {
		if always := expr == "vector(1)"; fired[expr] == 0 || quiet[expr] == 0 && !always {
			t.Errorf("%s fired %d times and was quiet %d times: the test proves nothing", expr, fired[expr], quiet[expr])
		}
	}
}

// abnormal reports whether any signal of a draft is beyond its threshold; the
// alerts of this test join theirs by "or".
func (o *oracle) abnormal(t *testing.T, draft *promrules.Draft, at time.Time) bool {
	for name, s := range draft.Signals {
		found, err := o.ask(s.Query, at)
		if err != nil || len(found) > 1 {
			t.Fatalf("%s: %s: %v, %v", name, s.Query, found, err)
		}
		if len(found) == 1 && beyond(s.Abnormal, found[0].F) {
			return true
		}
	}
	return false
}

func beyond(threshold *policy.Threshold, v float64) bool {
	if threshold.Above != nil {
		return v > *threshold.Above
	}
	return v < *threshold.Below
}
