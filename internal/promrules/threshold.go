package promrules

import (
	"math"
	"math/big"
	"strconv"

	"github.com/prometheus/prometheus/promql/parser"
)

// Limits of constants.
const (
	maxBits     = 4096 // of a constant on the way: a product of three numbers of 300 digits fits
	maxPower    = 64   // largest exponent
	maxBound    = 1e12 // largest threshold that a policy holds
	noise       = 1e-9 // share of a threshold that is taken for a rounding error of a generator
	noiseDigits = 6    // digits of the number that was meant
)

// constant evaluates an expression of literals with the decimal numbers that
// people wrote, so that 14.4 * 0.001 is 0.0144 and not the nearest product of two
// binary fractions; nil if it is no such expression.
func constant(e parser.Expr) *big.Rat {
	switch x := bare(e).(type) {
	case *parser.NumberLiteral:
		if math.IsNaN(x.Val) || math.IsInf(x.Val, 0) {
			return nil
		}
		r, _ := new(big.Rat).SetString(strconv.FormatFloat(x.Val, 'g', -1, 64))
		return r
	case *parser.UnaryExpr:
		r := constant(x.Expr)
		if r != nil && x.Op == parser.SUB {
			r.Neg(r)
		}
		return r
	case *parser.BinaryExpr:
		left, right := constant(x.LHS), constant(x.RHS)
		if left == nil || right == nil {
			return nil
		}
		return small(calculate(x.Op, left, right))
	}
	return nil
}

func calculate(op parser.ItemType, a, b *big.Rat) *big.Rat {
	switch {
	case op == parser.ADD:
		return a.Add(a, b)
	case op == parser.SUB:
		return a.Sub(a, b)
	case op == parser.MUL:
		return a.Mul(a, b)
	case op == parser.DIV && b.Sign() != 0:
		return a.Quo(a, b)
	case op == parser.POW && b.IsInt() && b.Sign() >= 0 && b.Num().IsInt64() && b.Num().Int64() <= maxPower:
		out := big.NewRat(1, 1)
		for range b.Num().Int64() {
			if out = small(out.Mul(out, a)); out == nil {
				return nil
			}
		}
		return out
	}
	return nil
}

// small is r unless it has grown out of what a threshold is.
func small(r *big.Rat) *big.Rat {
	if r == nil || r.Num().BitLen() > maxBits || r.Denom().BitLen() > maxBits {
		return nil
	}
	return r
}

// float is a constant as a policy holds it.
func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// meant is the short number of which f is a rounding error away, such as 0.0144
// of 0.01439999999999918; false if f is short itself.
func meant(f float64) (float64, bool) {
	short, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', noiseDigits, 64), 64)
	return short, err == nil && short != f && math.Abs(short-f) <= noise*math.Abs(f)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
