package promrules

import (
	"fmt"

	"github.com/prometheus/prometheus/promql/parser"
)

// Filters returns nil when a query yields a value whenever its series exist;
// otherwise it says what can leave it empty. A signal is a value and not the
// condition of an alert: while a comparison is false it would be without data,
// which reads as blindness and never as health. A query that is not PromQL is
// none of its business: OneSeries says what is wrong with it.
func Filters(query string) error {
	expr, err := parse(query)
	if err != nil {
		return nil
	}
	if why := gap(expr); why != "" {
		return fmt.Errorf("the query yields no data although its series exist: %s", why)
	}
	return nil
}

// gap says what can leave an expression empty although its series exist; "" if
// nothing can.
func gap(e parser.Expr) string {
	switch x := e.(type) {
	case *parser.ParenExpr:
		return gap(x.Expr)
	case *parser.UnaryExpr:
		return gap(x.Expr)
	case *parser.SubqueryExpr:
		return gap(x.Expr)
	case *parser.AggregateExpr:
		return gap(x.Expr)
	case *parser.Call:
		return gapOfCall(x)
	case *parser.BinaryExpr:
		return gapOfBinary(x)
	}
	return ""
}

func gapOfCall(c *parser.Call) string {
	switch {
	case c.Func.Name == "absent", c.Func.Name == "absent_over_time":
		return fmt.Sprintf("while the series are there in %s", quote(c))
	case c.Func.ReturnType == parser.ValueTypeScalar, c.Func.Name == "vector":
		return "" // a scalar is always there, as NaN if need be
	}
	for _, arg := range c.Args {
		if why := gap(arg); why != "" {
			return why
		}
	}
	return ""
}

func gapOfBinary(b *parser.BinaryExpr) string {
	left, right := gap(b.LHS), gap(b.RHS)
	switch {
	case filters(b):
		return fmt.Sprintf("while %s is false for all of them", quote(b))
	case b.Op == parser.LAND:
		return fmt.Sprintf("while nothing matches behind and in %s", quote(b))
	case b.Op == parser.LUNLESS:
		return fmt.Sprintf("while everything matches behind unless in %s", quote(b))
	case b.Op == parser.LOR:
		if left == "" || right == "" {
			return ""
		}
	}
	if left == "" {
		return right
	}
	return left
}
