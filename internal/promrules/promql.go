package promrules

import (
	"errors"
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/prometheus/prometheus/promql/parser"
)

// Limits of PromQL.
const (
	maxExpr   = 16 << 10 // bytes of one expression: the longest that people write has about 2,000
	maxQuoted = 80       // bytes of an expression that a sentence quotes
	maxDetail = 300      // bytes of what the parser says
)

// SyntaxError is PromQL that cannot be read.
type SyntaxError struct {
	Offset   int // in the query, in bytes
	Sentence string
}

func (e *SyntaxError) Error() string { return e.Sentence }

// parse reads one expression. Experimental functions are read too: whether the
// team's Prometheus has them switched on is not known here.
func parse(query string) (parser.Expr, error) {
	if len(query) > maxExpr {
		return nil, &SyntaxError{Sentence: fmt.Sprintf("the query has %d bytes, at most %d are read", len(query), maxExpr)}
	}
	if strings.TrimSpace(query) == "" {
		return nil, &SyntaxError{Sentence: "there is no query"}
	}
	expr, err := parser.NewParser(parser.Options{EnableExperimentalFunctions: true}).ParseExpr(query)
	if err == nil {
		return expr, nil
	}
	out := &SyntaxError{Sentence: "not PromQL: " + untrusted.Text(err.Error(), maxDetail)}
	var all parser.ParseErrors
	var one *parser.ParseErr
	if errors.As(err, &all) && len(all) > 0 {
		one = &all[0]
	}
	if one != nil || errors.As(err, &one) {
		out.Offset = min(max(int(one.PositionRange.Start), 0), len(query))
		out.Sentence = "not PromQL: " + untrusted.Text(one.Err.Error(), maxDetail)
	}
	return nil, out
}

func quote(e parser.Expr) string { return untrusted.Text(e.String(), maxQuoted) }

// bare takes the parentheses off.
func bare(e parser.Expr) parser.Expr {
	for {
		x, ok := e.(*parser.ParenExpr)
		if !ok {
			return e
		}
		e = x.Expr
	}
}

// filters reports whether an operator is a comparison that drops series.
func filters(b *parser.BinaryExpr) bool {
	return b.Op.IsComparisonOperator() && !b.ReturnBool && b.Type() != parser.ValueTypeScalar
}
