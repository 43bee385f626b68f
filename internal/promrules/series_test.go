package promrules_test

import (
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/promrules"
)

func TestQueriesThatYieldAtMostOneSeries(t *testing.T) {
	for _, q := range []string{
		"1", "-1", "1 + 2", "time()", "pi()", "scalar(up)", "vector(1)", "vector(time())", "hour()", "day_of_week() + 1", "time() - 3600",
		"absent(up)", `absent(up{job="api"})`, `absent_over_time(up{job="api"}[5m])`, "absent(rate(x[5m]))",
		"sum(x)", "avg(x)", "min(x)", "max(x)", "count(x)", "group(x)", "stddev(x)", "stdvar(x)", "quantile(0.9, x)", "sum by () (x)", "(sum(x))", "-sum(x)",
		"sum without (job) (sum by (job) (x))", "max without (a, b) (sum by (a) (x))", "sum by (job) (max(x))", "topk(1, sum(x))", "bottomk(3, max(x))",
		"limitk(2, sum(x))",
		"histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))", "histogram_fraction(0, 0.2, sum by (le) (rate(x_bucket[5m])))",
		"histogram_quantile(0.99, sum(rate(x[5m])))", "histogram_avg(sum(rate(x[5m])))",
		"abs(sum(x))", "clamp(sum(x), 0, 1)", "clamp_max(sum(x), scalar(y))", "round(sum(x), 0.1)", "timestamp(sum(x))", "sort_desc(sum(x))", "hour(sum(x))",
		"max_over_time(sum(x)[5m:1m])", "quantile_over_time(0.5, sum(x)[1h:])", "rate(sum(x)[5m:])", "sum(x @ end())",
		"sum(x) > 3", "sum(x) > bool 3", "3 < sum(x)", "sum(x) * 100", "100 * sum(x)", "sum(x) ^ 2", "sum(x) % 2",
		"sum(x) / sum(y)", "sum(x) / on () sum(y)", "sum(x) / ignoring (job) sum(y)", "1 - sum(x) / sum(y)", "sum(x) > sum(y)",
		"sum(x) - on () group_left () sum(y)", "sum(x) * on () group_right () sum(y)", "sum(x) * on () group_left (version) max(build)",
		"sum(x) and y", "sum(x) and on () y > 3", "sum(x) unless y", "sum(x) or sum(y)", "sum(x) or vector(0)", "count(up == 0) or vector(0)", "absent(up) or vector(0)",
		"max(absent(up{job=\"api\"})) or vector(0)", "sum(x / on (job) group_left () y)", "sum(rate(x[5m])) / sum(rate(y[5m]))",
		`label_replace(sum(x), "a", "$1", "b", "(.*)")`, `label_join(vector(1), "a", "-", "b")`, "sum(x offset 1d) / sum(x) # last day",
		"sum(topk(3, x))", "sum by (le) (sum without (job) (sum by (job) (x)))", "max_of(1, 2)", "sum(info(x))",
	} {
		if err := promrules.OneSeries(q); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}

func TestQueriesThatMayYieldSeveralSeriesSayWhichAndWhatToDo(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"up", "one for each label set of up; wrap it in max() or sum()"},
		{`up{job="api",instance="a"}`, `one for each label set of up{instance="a",job="api"}`},
		{"rate(x[5m])", "one for each label set of x"},
		{"sum by (job) (x)", "one for each job of sum by (job) (x)"},
		{"sum by (job, instance) (x)", "one for each job, instance of sum by (job, instance) (x)"},
		{"sum without (instance) (x)", "without keeps every other label: sum without (instance) (x)"},
		{"sum without (a) (sum by (a, b) (x))", "one for each a, b of sum by (a, b) (x)"},
		{"topk(1, x)", "topk keeps the labels of whichever series it picks, now these and then those: topk(1, x)"},
		{"bottomk by (job) (1, x)", "bottomk keeps the labels"},
		{"limitk(1, x)", "limitk keeps the labels"},
		{"limit_ratio(0.1, x)", "limit_ratio keeps the labels"},
		{`count_values("v", x)`, `one for each value, in count_values("v", x)`},
		{`count_values("v", sum(x))`, "one for each value"},
		{`count_values without (a) ("v", x)`, "without keeps every other label"},
		{"quantile by (job) (0.9, x)", "one for each job"},
		{"histogram_quantile(0.99, rate(x_bucket[5m]))", "one for each label set of x_bucket"},
		{"histogram_quantile(0.99, sum by (le, job) (rate(x_bucket[5m])))", "one for each le, job"},
		{`histogram_quantiles(sum by (le) (rate(x_bucket[5m])), "q", 0.5, 0.9)`, "what histogram_quantiles() yields is not known here"},
		{`label_replace(sum by (b) (x), ("a"), "$1", "b", "(.*)")`, "one for each b"},
		{"info(sum(x))", "what info() yields is not known here"},
		{`label_replace(sum by (b) (x), "a", "$1", "b", "(.*)")`, "one for each b"},
		{`label_replace(x, "a", "$1", "b", "(.*)")`, "one for each label set of x"},
		{`sum without (b) (label_replace(sum by (b) (x), "a", "$1", "b", "(.*)"))`, "one for each b"},
		{"x / sum(y)", "one for each label set of x"},
		{"sum(x) / y", "one for each label set of y"},
		{"x / on () y", "one for each label set of x"},
		{"sum by (a) (x) / on () sum(y)", "one for each a of sum by (a) (x)"},
		{"sum(x) / on () sum by (a) (y)", "one for each a of sum by (a) (y)"},
		{"sum by (a) (x) / ignoring (a) sum by (a) (y)", "one for each a of sum by (a) (x)"},
		{"sum by (a) (x) / sum by (a) (y)", "one for each a"},
		{"sum by (a) (x) * on () group_left () sum(y)", "one for each a"},
		{"sum(x) * on () group_left () y", "one for each label set of y"},
		{"sum(x) * on () group_left (b) sum by (b) (y)", "one for each b"},
		{"sum(x) * on () group_right () sum by (b) (y)", "one for each b"},
		{"x and sum(y)", "one for each label set of x"},
		{"x unless y", "one for each label set of x"},
		{"x or vector(0)", "one for each label set of x"},
		{"sum(x) or y", "one for each label set of y"},
		{"sum by (a) (x) or sum(y)", "one for each a"},
		{"sum(x) or sum by (b) (y)", "one for each b"},
		// The answer has the labels of the selector while it is absent, and none otherwise.
		{`absent(up{job="api"}) or vector(0)`, "the two sides of or have labels of their own"},
		{"x > 3", "one for each label set of x"},
		{"3 < x", "one for each label set of x"},
		{"x > bool 3", "one for each label set of x"},
		{"-x", "one for each label set of x"},
		{"max_over_time(topk(1, x)[5m:1m])", "topk keeps the labels"},
		{`"text"`, "the query is a text; a signal is a number"},
		{"x[5m]", "the query yields a range of samples; wrap it in a function such as rate() or max_over_time()"},
		{"sum(x)[5m:1m]", "a range of samples"},
		{"", "there is no query"},
		{" \n", "there is no query"},
		{"sum(", "not PromQL: "},
		{"sum(x) by", "not PromQL: "},
		{"fetch(x)", `not PromQL: unknown function with name "fetch"`},
		{"sum(x)\x1b[2J", `not PromQL: `},
		{strings.Repeat("x + ", 5000) + "x", "the query has 20001 bytes, at most 16384 are read"},
	} {
		err := promrules.OneSeries(c.query)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.query, err, c.want)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("%s: the sentence is not safe to print: %q", c.query, err)
		}
	}
}

func TestASignalIsAValueAndNotACondition(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"sum(x)", ""},
		{"sum(rate(x[5m])) / sum(rate(y[5m]))", ""},
		{"histogram_quantile(0.99, sum by (le) (rate(x_bucket[5m])))", ""},
		{"sum(x > bool 3)", ""},
		{"count(up == 0) or vector(0)", ""},
		{"absent(up) or vector(0)", ""},
		{"scalar(sum(x) > 3)", ""},
		{"vector(1)", ""},
		{"1 > bool 2", ""},
		{"sum(x) or (y > 3)", ""},
		{"sum(x > 3) or sum(y)", ""},
		{"time() - max(x)", ""},
		{"not promql (", ""}, // OneSeries says so
		{"sum(x) > 3", "no data although its series exist: while sum(x) > 3 is false for all of them"},
		{"3 < sum(x)", "while 3 < sum(x) is false"},
		{"(sum(x) > 3)", "while sum(x) > 3 is false"},
		{"-(sum(x) > 3)", "while sum(x) > 3 is false"},
		{"sum(x) > sum(y)", "while sum(x) > sum(y) is false"},
		{"count(up == 0)", "while up == 0 is false"},
		{"abs(x != 1)", "while x != 1 is false"},
		{"1 - sum(x > 3)", "while x > 3 is false"},
		{"max_over_time((sum(x) > 3)[5m:1m])", "while sum(x) > 3 is false"},
		{"absent(up)", "while the series are there in absent(up)"},
		{"sum(x) and on () y", "while nothing matches behind and in sum(x) and on () y"},
		{"sum(x) unless on () y", "while everything matches behind unless"},
		{"sum(x > 3) or sum(y > 3)", "while x > 3 is false"},
	} {
		err := promrules.Filters(c.query)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.query, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s\ngot  %v\nwant %s", c.query, err, c.want)
		}
	}
}
