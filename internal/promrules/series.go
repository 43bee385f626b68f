package promrules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	prom "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// OneSeries returns nil when a query can never yield more than one series, at no
// moment and over no window; otherwise it says what yields several and how to
// reduce them. It knows nothing of the data: what cannot be shown is several.
func OneSeries(query string) error {
	expr, err := parse(query)
	if err != nil {
		return err
	}
	if err := numeric(expr); err != nil {
		return err
	}
	s := shapeOf(expr)
	if s.one() {
		return nil
	}
	return fmt.Errorf("the query yields several series: %s; wrap it in max() or sum()", s.cause)
}

// numeric reports whether an expression yields numbers of one moment.
func numeric(e parser.Expr) error {
	switch e.Type() {
	case parser.ValueTypeString:
		return errors.New("the query is a text; a signal is a number")
	case parser.ValueTypeMatrix:
		return errors.New("the query yields a range of samples; wrap it in a function such as rate() or max_over_time()")
	}
	return nil
}

// shape says by which labels the series of an expression differ from each other,
// over all time.
type shape struct {
	known  bool     // false: by any labels
	labels []string // known: by these and no others, which are fixed
	bare   bool     // known: the others are not only fixed, they are absent
	cause  string   // what makes it several; "" for one
}

func (s shape) one() bool { return s.known && len(s.labels) == 0 }

func one(bare bool) shape { return shape{known: true, bare: bare} }

func several(format string, args ...any) shape { return shape{cause: fmt.Sprintf(format, args...)} }

// by is a shape of these labels; cause is kept while there are any.
func by(names []string, bare bool, cause string) shape {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) == 0 {
		cause = ""
	}
	return shape{known: true, labels: names, bare: bare, cause: cause}
}

func without(names, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(gone, n) })
}

func within(names, kept []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(kept, n) })
}

func shapeOf(e parser.Expr) shape {
	if e.Type() == parser.ValueTypeScalar {
		return one(true)
	}
	switch x := e.(type) {
	case *parser.ParenExpr:
		return shapeOf(x.Expr)
	case *parser.UnaryExpr:
		return shapeOf(x.Expr)
	case *parser.VectorSelector:
		return several("one for each label set of %s", quote(x))
	case *parser.MatrixSelector:
		return shapeOf(x.VectorSelector)
	case *parser.SubqueryExpr:
		return shapeOf(x.Expr)
	case *parser.AggregateExpr:
		return shapeOfAggregate(x)
	case *parser.Call:
		return shapeOfCall(x)
	case *parser.BinaryExpr:
		return shapeOfBinary(x)
	}
	return several("what %s yields is not known here", quote(e))
}

func shapeOfAggregate(a *parser.AggregateExpr) shape {
	inner := shapeOf(a.Expr)
	switch a.Op {
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		// They pick among the series and keep their labels.
		if !inner.known {
			return several("%s keeps the labels of whichever series it picks, now these and then those: %s", a.Op, quote(a))
		}
		return inner
	case parser.SUM, parser.AVG, parser.MIN, parser.MAX, parser.COUNT, parser.GROUP, parser.STDDEV, parser.STDVAR, parser.QUANTILE, parser.COUNT_VALUES:
	default:
		return several("what %s yields is not known here", quote(a))
	}
	out := grouped(a, inner)
	if a.Op != parser.COUNT_VALUES || !out.known {
		return out
	}
	if label, ok := bare(a.Param).(*parser.StringLiteral); ok {
		return by(append(out.labels, label.Val), out.bare, "one for each value, in "+quote(a))
	}
	return several("one for each value, in %s", quote(a))
}

func grouped(a *parser.AggregateExpr, inner shape) shape {
	if a.Without {
		if !inner.known {
			return several("without keeps every other label: %s", quote(a))
		}
		return by(without(inner.labels, a.Grouping), inner.bare, inner.cause)
	}
	names, bare := a.Grouping, true
	if inner.known {
		names = within(a.Grouping, inner.labels)
		bare = inner.bare || len(names) == len(a.Grouping)
	}
	return by(names, bare, fmt.Sprintf("one for each %s of %s", strings.Join(names, ", "), quote(a)))
}

func shapeOfCall(c *parser.Call) shape {
	switch c.Func.Name {
	case "vector":
		return one(true)
	case "absent", "absent_over_time":
		return one(!fixesLabels(c.Args[0]))
	case "histogram_quantile", "histogram_fraction":
		inner := shapeOf(c.Args[len(c.Args)-1])
		if !inner.known {
			return inner
		}
		return by(without(inner.labels, []string{labels.BucketLabel}), inner.bare, inner.cause)
	case "label_replace", "label_join":
		return relabelled(c)
	}
	if !keepsSeries(c.Func.Name) {
		return several("what %s() yields is not known here", c.Func.Name)
	}
	for _, arg := range c.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			return shapeOf(arg)
		}
	}
	return one(true) // hour() and its like: of the moment of the question
}

// fixesLabels reports whether absent() takes labels over from its argument.
func fixesLabels(arg parser.Expr) bool {
	found := false
	parser.Inspect(arg, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				found = found || m.Type == labels.MatchEqual && m.Name != prom.MetricNameLabel
			}
		}
		return nil
	})
	return found
}

// relabelled is the shape after a label was made out of others: a fixed one as
// long as those are.
func relabelled(c *parser.Call) shape {
	inner := shapeOf(c.Args[0])
	if !inner.known {
		return inner
	}
	label, ok := bare(c.Args[1]).(*parser.StringLiteral)
	switch {
	case !ok:
		return several("what %s yields is not known here", quote(c))
	case len(inner.labels) == 0:
		return one(false)
	}
	return by(append(slices.Clone(inner.labels), label.Val), inner.bare, inner.cause)
}

// keepsSeries reports whether a function gives one series for each that it is
// given, with the same labels but the name.
func keepsSeries(name string) bool {
	switch name {
	case "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max", "clamp_min", "cos", "cosh", "deg", "exp",
		"floor", "ln", "log10", "log2", "rad", "round", "sgn", "sin", "sinh", "sqrt", "tan", "tanh",
		"sort", "sort_desc", "sort_by_label", "sort_by_label_desc", "timestamp",
		"day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month", "year",
		"changes", "delta", "deriv", "idelta", "increase", "irate", "predict_linear", "rate", "resets", "double_exponential_smoothing",
		"avg_over_time", "count_over_time", "first_over_time", "last_over_time", "mad_over_time", "max_over_time", "min_over_time",
		"present_over_time", "quantile_over_time", "stddev_over_time", "stdvar_over_time", "sum_over_time",
		"ts_of_first_over_time", "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
		"histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum":
		return true
	}
	return false
}

func shapeOfBinary(b *parser.BinaryExpr) shape {
	left, right := shapeOf(b.LHS), shapeOf(b.RHS)
	switch {
	case b.LHS.Type() == parser.ValueTypeScalar:
		return right
	case b.RHS.Type() == parser.ValueTypeScalar:
		return left
	case b.Op == parser.LAND, b.Op == parser.LUNLESS:
		return left
	case b.Op == parser.LOR:
		return either(b, left, right)
	}
	for _, side := range []shape{left, right} {
		if !side.known {
			return side
		}
	}
	switch b.VectorMatching.Card {
	case parser.CardManyToOne:
		return joined(b.VectorMatching, left, right)
	case parser.CardOneToMany:
		return joined(b.VectorMatching, right, left)
	}
	return matched(b.VectorMatching, left, right)
}

// either is the shape of "or": of two series without fixed labels only one is
// ever in the answer.
func either(b *parser.BinaryExpr, left, right shape) shape {
	for _, side := range []shape{left, right} {
		if !side.known {
			return side
		}
	}
	if !left.bare || !right.bare {
		return several("the two sides of or have labels of their own: %s", quote(b))
	}
	cause := left.cause
	if cause == "" {
		cause = right.cause
	}
	return by(slices.Concat(left.labels, right.labels), true, cause)
}

// stray are the labels by which a side of a match differs although the match does
// not look at them: Prometheus refuses the query as soon as two of its series
// match.
func stray(m *parser.VectorMatching, side shape) []string {
	if m.On {
		return without(side.labels, m.MatchingLabels)
	}
	return within(side.labels, m.MatchingLabels)
}

// matched is the shape of a one-to-one match.
func matched(m *parser.VectorMatching, left, right shape) shape {
	common := without(within(left.labels, right.labels), stray(m, left))
	names := slices.Concat(common, stray(m, left), stray(m, right))
	cause := left.cause
	if len(left.labels) == 0 || len(stray(m, left)) == 0 && len(stray(m, right)) > 0 {
		cause = right.cause
	}
	return by(names, left.bare && right.bare || m.On && len(m.MatchingLabels) == 0, cause)
}

// joined is the shape of group_left and group_right.
func joined(m *parser.VectorMatching, many, single shape) shape {
	cause := many.cause
	if cause == "" {
		cause = single.cause
	}
	names := slices.Concat(many.labels, within(m.Include, single.labels), stray(m, single))
	return by(names, many.bare && single.bare, cause)
}
