package promrules

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/prometheus/prometheus/promql/parser"
)

// Decision is one thing that only a person can decide about a drafted signal.
type Decision struct {
	Code     string `json:"code"` // a stable word, listed in Codes
	Sentence string `json:"sentence"`
}

// Codes of decisions. Every signal has unit, age, held and fits.
const (
	codeUnit       = "unit"       // the unit of the number: guessed from names, or not known
	codeEquality   = "equality"   // ==, !=, >= and <= are no thresholds of a policy
	codeMirrored   = "mirrored"   // the threshold stood on the left: the direction is turned round
	codeNoise      = "noise"      // the threshold looks like a rounding error of another
	codeZero       = "zero"       // above 0 has no room for hysteresis
	codeTooLarge   = "too-large"  // the threshold is beyond what a policy holds
	codeDifference = "difference" // the alert compares two numbers
	codePresence   = "presence"   // the alert has no threshold
	codeAbsent     = "absent"     // a condition on series that are missing
	codeUnless     = "unless"     // a condition that excludes series
	codeReducer    = "reducer"    // how several series become one, and which labels go
	codeFilter     = "filter"     // no data while a condition is false
	codeNaN        = "nan"        // NaN without traffic
	codeRecorded   = "recorded"   // the number is made by a recording rule
	codeJoined     = "joined"     // the alert has several conditions, each a signal of its own
	codeSame       = "same"       // another signal asks the same query
	codeAge        = "age"        // step and max_age
	codeHeld       = "held"       // how long the alert waits
	codeFits       = "fits"       // the right and the runbook that fit
)

// Codes lists the codes of decisions in the order in which they are told.
func Codes() []string {
	return []string{codeUnit, codeEquality, codeMirrored, codeNoise, codeZero, codeTooLarge, codeDifference, codePresence, codeAbsent, codeUnless,
		codeReducer, codeFilter, codeNaN, codeRecorded, codeJoined, codeSame, codeAge, codeHeld, codeFits}
}

// sketch is a part on its way to a signal.
type sketch struct {
	query     parser.Expr
	abnormal  *policy.Threshold
	unit      string
	decisions []Decision
}

func (s *sketch) decide(code, format string, args ...any) {
	s.decisions = append(s.decisions, Decision{code, fmt.Sprintf(format, args...)})
}

// half is half a step of numbers that are whole.
const half = 0.5

// sketchOf makes one part of an alert a query of one series and a threshold.
func sketchOf(p part) *sketch {
	s := &sketch{query: p.value, unit: unitOf(p.value)}
	if s.unit == unknownUnit {
		s.decide(codeUnit, "the unit is not known")
	} else {
		s.decide(codeUnit, "the unit %s is a guess from the names", s.unit)
	}
	if p.op == 0 {
		s.presence()
	} else {
		s.threshold(p)
		s.reduce()
		s.fit()
	}
	s.conditions()
	return s
}

// presence counts the series of an expression that has no threshold.
func (s *sketch) presence() {
	s.unit = "series"
	s.decisions = nil
	s.decide(codeUnit, "the unit is a number of series, made up here")
	s.decide(codePresence, "the alert has no threshold: the draft counts what it finds, and 0 also stands for series that are missing altogether")
	found := bare(s.query)
	if found.Type() == parser.ValueTypeScalar {
		found = call("vector", found)
	}
	count := &parser.AggregateExpr{Op: parser.COUNT, Expr: found}
	s.query = &parser.BinaryExpr{Op: parser.LOR, LHS: count, RHS: call("vector", &parser.NumberLiteral{}), VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany}}
	s.above(half)
}

func call(name string, arg parser.Expr) parser.Expr {
	return &parser.Call{Func: parser.Functions[name], Args: parser.Expressions{arg}}
}

func (s *sketch) above(f float64) { s.abnormal = &policy.Threshold{Above: &f} }
func (s *sketch) below(f float64) { s.abnormal = &policy.Threshold{Below: &f} }

// threshold turns a comparison into above or below, which are strict.
func (s *sketch) threshold(p part) {
	if p.mirrored {
		s.decide(codeMirrored, "the alert has its threshold on the left: the direction is turned round")
	}
	if p.apart {
		s.decide(codeDifference, "the alert compares two numbers: the draft is their difference; would a ratio be better?")
	}
	c := p.bound
	switch p.op {
	case parser.GTR:
		s.above(s.strict(c))
		if c.Sign() == 0 {
			s.decide(codeZero, "above 0 leaves no number for the way out: choose one with room, such as 0.5 for counts")
		}
	case parser.LSS:
		s.below(s.strict(c))
	case parser.GTE:
		s.above(s.halfStep(c, ">=", -half))
	case parser.LTE:
		s.below(s.halfStep(c, "<=", half))
	case parser.EQLC:
		s.distance(p, "==", "below")
		s.below(half)
	case parser.NEQ:
		s.distance(p, "!=", "above")
		s.above(half)
	}
}

// strict is a threshold as it stands.
func (s *sketch) strict(c *big.Rat) float64 {
	f := float(c)
	if short, ok := meant(f); ok {
		s.decide(codeNoise, "the threshold %s looks like %s with a rounding error", number(f), number(short))
	}
	return f
}

// halfStep moves a threshold that includes its number so that a strict one does:
// by half a step where numbers are whole. Left as it is it might never be
// crossed, as >= 1 of a flag.
func (s *sketch) halfStep(c *big.Rat, op string, step float64) float64 {
	f := s.strict(c)
	if !c.IsInt() {
		s.decide(codeEquality, "%s %s became a strict threshold: exactly %s does not count", op, number(f), number(f))
		return f
	}
	s.decide(codeEquality, "%s %s became %s, half a step off: right for whole numbers only", op, number(f), number(f+step))
	return f + step
}

// distance replaces a number by how far it is from the one that it is compared
// to.
func (s *sketch) distance(p part, op, side string) {
	f := float(p.bound)
	if f == 0 && op == "==" && !mayBeNegative(s.query) {
		// The number itself is easier to read.
		s.decide(codeEquality, "== 0 became below 0.5, half a step: right for whole numbers from 0 on only")
		return
	}
	s.decide(codeEquality, "%s %s became a distance %s 0.5, half a step: right for whole numbers only", op, number(f), side)
	if f != 0 {
		s.query = &parser.BinaryExpr{Op: parser.SUB, LHS: operand(s.query), RHS: &parser.NumberLiteral{Val: f}}
	}
	s.query = call("abs", s.query)
}

// fit drops a threshold that no policy can hold.
func (s *sketch) fit() {
	for _, f := range []*float64{s.abnormal.Above, s.abnormal.Below} {
		if f != nil && math.Abs(*f) > maxBound {
			s.abnormal = nil
			s.decide(codeTooLarge, "the threshold %g is beyond what a policy holds (1e12): use a larger unit", *f)
			return
		}
	}
}

// reduce proposes a reducer where several series are left: the one that speaks
// when any of them does.
func (s *sketch) reduce() {
	sh := shapeOf(s.query)
	if sh.one() {
		return
	}
	op, word := parser.ItemType(parser.MAX), "max"
	if s.abnormal.Below != nil {
		op, word = parser.MIN, "min"
	}
	over := "all labels"
	if sh.known {
		over = strings.Join(sh.labels, ", ")
	}
	s.decide(codeReducer, "%s() over %s is proposed: the worst series speaks for all; or sum() or avg()?", word, over)
	inner := bare(s.query)
	for {
		a, ok := inner.(*parser.AggregateExpr)
		if !ok || a.Op != op {
			break
		}
		inner = bare(a.Expr)
	}
	s.query = &parser.AggregateExpr{Op: op, Expr: inner}
}
