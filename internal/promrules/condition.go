package promrules

import (
	"math/big"
	"regexp"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// part is one number that an alert looks at. The alert fires when some series of
// value compares to bound by op; with op 0 it has no threshold, and fires while
// value has any series.
type part struct {
	value    parser.Expr
	op       parser.ItemType // GTR, GTE, LSS, LTE, EQLC, NEQ; 0
	bound    *big.Rat
	mirrored bool   // the threshold stands on the left
	apart    bool   // value is the difference of two numbers that the alert compares
	window   string // what tells it from its siblings, such as 1h
}

// joint says how the parts of an alert belong together: a leaf, or two joints
// under an operator.
type joint struct {
	op          string
	left, right *joint
	leaf        int
}

// split takes the expression of an alert apart. The parts of an "or" are apart by
// themselves; those of an "and" only when they are the same number over several
// windows, since otherwise one of them says for which series the other counts.
func split(e parser.Expr) ([]part, *joint) {
	switch x := bare(e).(type) {
	case *parser.BinaryExpr:
		switch {
		case filters(x):
			return []part{compare(x)}, &joint{}
		case x.Op == parser.LOR:
			left, how := split(x.LHS)
			right, also := split(x.RHS)
			return join("or", left, how, right, also)
		case x.Op == parser.LAND:
			left, how := split(x.LHS)
			right, also := split(x.RHS)
			if all, joined := join("and", left, how, right, also); sameOverWindows(all) {
				return all, joined
			}
			return qualified(x, left), how
		case x.Op == parser.LUNLESS:
			left, how := split(x.LHS)
			return qualified(x, left), how
		}
	case *parser.AggregateExpr:
		if p, ok := hoisted(x); ok {
			return []part{p}, &joint{}
		}
	}
	return []part{{value: e}}, &joint{}
}

func join(op string, left []part, how *joint, right []part, also *joint) ([]part, *joint) {
	also.shift(len(left))
	return slices.Concat(left, right), &joint{op: op, left: how, right: also}
}

func (j *joint) shift(by int) {
	if j.op == "" {
		j.leaf += by
		return
	}
	j.left.shift(by)
	j.right.shift(by)
}

// qualified moves a threshold out of an "and" or an "unless":
// (v > c) and r holds for the series for which (v and r) > c does.
func qualified(b *parser.BinaryExpr, parts []part) []part {
	for i := range parts {
		parts[i].value = &parser.BinaryExpr{Op: b.Op, LHS: operand(parts[i].value), RHS: b.RHS, VectorMatching: b.VectorMatching}
	}
	return parts
}

// operand puts an expression in parentheses where it could bind otherwise.
func operand(e parser.Expr) parser.Expr {
	switch bare(e).(type) {
	case *parser.BinaryExpr, *parser.UnaryExpr:
		return &parser.ParenExpr{Expr: bare(e)}
	}
	return bare(e)
}

// compare takes a comparison apart. Of several thresholds in a row, as in
// v > 0.9 < 1, the first is the one that the alert is about; the others stay
// behind as filters, which is the same.
func compare(b *parser.BinaryExpr) part {
	if c := constant(b.RHS); c != nil {
		if inner, ok := bare(b.LHS).(*parser.BinaryExpr); ok && filters(inner) {
			if p := compare(inner); !p.apart {
				p.value = &parser.BinaryExpr{Op: b.Op, LHS: operand(p.value), RHS: b.RHS}
				return p
			}
		}
		return part{value: bare(b.LHS), op: b.Op, bound: c}
	}
	if c := constant(b.LHS); c != nil {
		return part{value: bare(b.RHS), op: mirror(b.Op), bound: c, mirrored: true}
	}
	difference := &parser.BinaryExpr{Op: parser.SUB, LHS: operand(b.LHS), RHS: operand(b.RHS), VectorMatching: b.VectorMatching}
	return part{value: difference, op: b.Op, bound: new(big.Rat), apart: true}
}

func mirror(op parser.ItemType) parser.ItemType {
	switch op {
	case parser.GTR:
		return parser.LSS
	case parser.LSS:
		return parser.GTR
	case parser.GTE:
		return parser.LTE
	case parser.LTE:
		return parser.GTE
	}
	return op
}

// hoisted moves a threshold out of an aggregation: max(v > c) has a series where
// max(v) > c has one, and so with min and <.
func hoisted(a *parser.AggregateExpr) (part, bool) {
	b, ok := bare(a.Expr).(*parser.BinaryExpr)
	if !ok || !filters(b) {
		return part{}, false
	}
	p := compare(b)
	up, down := p.op == parser.GTR || p.op == parser.GTE, p.op == parser.LSS || p.op == parser.LTE
	if !(a.Op == parser.MAX && up || a.Op == parser.MIN && down) {
		return part{}, false
	}
	outer := *a
	outer.Expr = p.value
	p.value = &outer
	return p, true
}

// span matches a length of time inside an expression: of a range, or at the end
// of a recorded name such as ratio_rate5m.
var span = regexp.MustCompile(`(?:[0-9]+(?:ms|[smhdwy]))+\b`)

// sameOverWindows reports whether parts are one number over different windows,
// each against a threshold, and tells them apart by the window.
func sameOverWindows(parts []part) bool {
	texts := make([]string, len(parts))
	for i, p := range parts {
		if p.op == 0 {
			return false
		}
		texts[i] = p.value.String()
		if span.ReplaceAllString(texts[i], "W") != span.ReplaceAllString(texts[0], "W") {
			return false
		}
	}
	spans := make([][]string, len(texts))
	for i, text := range texts {
		spans[i] = span.FindAllString(text, -1)
	}
	for at := range spans[0] {
		if slices.ContainsFunc(spans, func(s []string) bool { return s[at] != spans[0][at] }) {
			for i := range parts {
				parts[i].window = spans[i][at]
			}
			return true
		}
	}
	return false
}
