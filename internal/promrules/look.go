package promrules

import (
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/prometheus/prometheus/promql/parser"
)

// conditions marks what a query looks at besides its number.
func (s *sketch) conditions() {
	calls, operators := used(s.query)
	if calls["absent"] || calls["absent_over_time"] {
		s.decide(codeAbsent, "it looks for series that are missing: a scrape that fails looks the same")
	}
	if operators[parser.LUNLESS] {
		s.decide(codeUnless, "unless leaves series out: is what silences the alert also no reason to shed?")
	}
	if why := gap(s.query); why != "" {
		s.decide(codeFilter, "no data %s: no data never counts as healthy", why)
	}
	if mayBeNaN(s.query) {
		s.decide(codeNaN, "without traffic this is 0/0, NaN, which is no value")
	}
}

// used lists the functions and the operators of a query.
func used(e parser.Expr) (calls map[string]bool, operators map[parser.ItemType]bool) {
	calls, operators = make(map[string]bool), make(map[parser.ItemType]bool)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch x := n.(type) {
		case *parser.Call:
			calls[x.Func.Name] = true
		case *parser.BinaryExpr:
			operators[x.Op] = true
		}
		return nil
	})
	return calls, operators
}

// mayBeNegative reports whether a query computes something that has numbers below
// 0 out of metrics that have none. Of a metric itself that is not known.
func mayBeNegative(e parser.Expr) bool {
	found := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch x := n.(type) {
		case *parser.UnaryExpr:
			found = found || x.Op == parser.SUB
		case *parser.BinaryExpr:
			found = found || x.Op == parser.SUB
		case *parser.NumberLiteral:
			found = found || x.Val < 0
		case *parser.Call:
			switch x.Func.Name {
			case "delta", "deriv", "idelta", "predict_linear", "double_exponential_smoothing", "ln", "log2", "log10", "sin", "cos", "tan", "sgn":
				found = true
			}
		}
		return nil
	})
	return found
}

// mayBeNaN reports whether a query divides by a number that may be zero together
// with what it divides, or asks a histogram that may be empty.
func mayBeNaN(e parser.Expr) bool {
	found := false
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch x := n.(type) {
		case *parser.Call:
			found = found || x.Func.Name == "histogram_quantile" || x.Func.Name == "histogram_fraction" || x.Func.Name == "histogram_avg"
		case *parser.BinaryExpr:
			found = found || (x.Op == parser.DIV || x.Op == parser.MOD) && constant(x.RHS) == nil
		}
		return nil
	})
	return found
}

// selectors lists the metrics that a query asks for, sorted.
func selectors(e parser.Expr) []string {
	var out []string
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok && s.Name != "" {
			out = append(out, s.Name)
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// recordings marks the numbers that recording rules make: what they mean stands
// there, and not in the signal.
func (s *sketch) recordings(recorded map[string]parser.Expr) {
	nan := mayBeNaN(s.query)
	for _, name := range selectors(s.query) {
		expr, here := recorded[name]
		switch {
		case here:
			s.decide(codeRecorded, "%s is recorded: %s", untrusted.Text(name, maxName), quote(expr))
			if !nan && mayBeNaN(expr) {
				nan = true
				s.decide(codeNaN, "without traffic %s is 0/0, NaN, which is no value", untrusted.Text(name, maxName))
			}
		case strings.Contains(name, ":"):
			s.decide(codeRecorded, "%s is recorded by a rule that is not in these files", untrusted.Text(name, maxName))
		}
	}
}

// Units that are guessed.
const (
	unknownUnit = "unknown"
	unitRatio   = "ratio"
	unitPercent = "percent"
	unitRate    = "per second"
	unitSeconds = "seconds"
	unitBytes   = "bytes"
)

// unitOf guesses the unit of a number from functions and names; every guess is
// marked for decision.
func unitOf(e parser.Expr) string {
	switch x := bare(e).(type) {
	case *parser.BinaryExpr:
		return unitOfBinary(x)
	case *parser.AggregateExpr:
		if x.Op == parser.COUNT || x.Op == parser.COUNT_VALUES {
			return "series"
		}
		return unitOf(x.Expr)
	case *parser.Call:
		return unitOfCall(x)
	case *parser.MatrixSelector:
		return unitOf(x.VectorSelector)
	case *parser.SubqueryExpr:
		return unitOf(x.Expr)
	case *parser.VectorSelector:
		return unitOfName(x.Name)
	}
	return unknownUnit
}

func unitOfBinary(b *parser.BinaryExpr) string {
	left, right := unitOf(b.LHS), unitOf(b.RHS)
	switch b.Op {
	case parser.DIV:
		if constant(b.RHS) == nil && constant(b.LHS) == nil && left == right {
			return unitRatio
		}
	case parser.MUL:
		if hundred(b.RHS) && left == unitRatio || hundred(b.LHS) && right == unitRatio {
			return unitPercent
		}
	case parser.ADD, parser.SUB:
		switch {
		case constant(b.RHS) != nil || left == right:
			return left
		case constant(b.LHS) != nil:
			return right
		}
	case parser.LAND, parser.LUNLESS, parser.LOR, parser.GTR, parser.GTE, parser.LSS, parser.LTE, parser.EQLC, parser.NEQ:
		return left
	}
	return unknownUnit
}

func hundred(e parser.Expr) bool {
	c := constant(e)
	return c != nil && float(c) == 100
}

func unitOfCall(c *parser.Call) string {
	switch c.Func.Name {
	case "time":
		return unitSeconds
	case "rate", "irate":
		return unitRate
	case "count_over_time", "changes", "resets", "increase", "absent", "absent_over_time":
		return unknownUnit
	}
	if len(c.Args) == 0 || !keepsSeries(c.Func.Name) && c.Func.Name != "histogram_quantile" {
		return unknownUnit
	}
	if c.Func.Name == "histogram_quantile" {
		// A quantile of buckets has the unit of what was observed.
		for _, name := range selectors(c) {
			return unitOfName(strings.TrimSuffix(name, "_bucket"))
		}
	}
	for _, arg := range c.Args {
		if t := arg.Type(); t == parser.ValueTypeVector || t == parser.ValueTypeMatrix {
			return unitOf(arg)
		}
	}
	return unknownUnit
}

func unitOfName(name string) string {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return unitSeconds
	case strings.HasSuffix(name, "_bytes"):
		return unitBytes
	case strings.HasSuffix(name, "_percent"):
		return unitPercent
	case strings.HasSuffix(name, "_ratio"), strings.Contains(name, ":ratio"), strings.Contains(name, ":burnrate"):
		return unitRatio
	}
	return unknownUnit
}
