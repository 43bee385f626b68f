package promrules

import (
	"math"

	"github.com/prometheus/prometheus/promql/parser"
)

// Bounds says between which two numbers every value of a query lies, whatever the
// data; an infinity where nothing can be shown. A comparison beyond them never
// holds, and a person who waits for it waits in vain. Of a query that is not PromQL
// it knows nothing: OneSeries says what is wrong with it.
func Bounds(query string) (low, high float64) {
	expr, err := parse(query)
	if err != nil {
		return anywhere.low, anywhere.high
	}
	s := spanOf(expr)
	return s.low, s.high
}

// interval is between which numbers the values of an expression lie. NaN lies nowhere.
type interval struct{ low, high float64 }

var (
	anywhere = interval{math.Inf(-1), math.Inf(1)}
	atLeast0 = interval{0, math.Inf(1)}
	atLeast1 = interval{1, math.Inf(1)}
	always1  = interval{1, 1}
)

func spanOf(e parser.Expr) interval {
	switch x := e.(type) {
	case *parser.ParenExpr:
		return spanOf(x.Expr)
	case *parser.SubqueryExpr:
		return spanOf(x.Expr)
	case *parser.NumberLiteral:
		return fit(x.Val, x.Val)
	case *parser.UnaryExpr:
		s := spanOf(x.Expr)
		if x.Op == parser.SUB {
			return fit(-s.high, -s.low)
		}
		return s
	case *parser.AggregateExpr:
		return spanOfAggregate(x)
	case *parser.Call:
		return spanOfCall(x)
	case *parser.BinaryExpr:
		return spanOfBinary(x)
	}
	return anywhere
}

// fit is an interval of two numbers that were computed: where one of them is none,
// nothing is known.
func fit(low, high float64) interval {
	if math.IsNaN(low) || math.IsNaN(high) {
		return anywhere
	}
	return interval{low, high}
}

func spanOfAggregate(a *parser.AggregateExpr) interval {
	switch a.Op {
	case parser.COUNT, parser.COUNT_VALUES: // of no series they have no value, not 0
		return atLeast1
	case parser.GROUP:
		return always1
	case parser.STDDEV, parser.STDVAR:
		return atLeast0
	case parser.MIN, parser.MAX, parser.TOPK, parser.BOTTOMK, parser.LIMITK, parser.LIMIT_RATIO:
		return spanOf(a.Expr)
	case parser.SUM, parser.AVG:
		if spanOf(a.Expr).low >= 0 {
			return atLeast0
		}
	}
	return anywhere
}

func spanOfCall(c *parser.Call) interval {
	switch c.Func.Name {
	case "absent", "absent_over_time", "present_over_time":
		return always1
	case "count_over_time":
		return atLeast1
	case "abs", "sqrt", "exp", "changes", "resets":
		return atLeast0
	case "vector", "scalar", "min_over_time", "max_over_time", "last_over_time":
		return spanOf(c.Args[0])
	}
	return anywhere
}

func spanOfBinary(b *parser.BinaryExpr) interval {
	left, right := spanOf(b.LHS), spanOf(b.RHS)
	switch {
	case b.Op.IsComparisonOperator() && b.ReturnBool:
		return interval{0, 1}
	case b.Op == parser.LAND || b.Op == parser.LUNLESS:
		return left
	case b.Op == parser.LOR:
		return interval{min(left.low, right.low), max(left.high, right.high)}
	case b.Op == parser.ADD:
		return fit(left.low+right.low, left.high+right.high)
	case b.Op == parser.SUB:
		return fit(left.low-right.high, left.high-right.low)
	case b.Op == parser.MUL && left.low >= 0 && right.low >= 0:
		return fit(left.low*right.low, left.high*right.high)
	case b.Op == parser.DIV && right.low == right.high && right.low > 0:
		return fit(left.low/right.low, left.high/right.high)
	}
	return anywhere
}
