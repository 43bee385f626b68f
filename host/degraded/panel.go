package degraded

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Availability of one part of an answer.
type Availability string

// The three availabilities.
const (
	Available   Availability = "AVAILABLE"
	Stale       Availability = "STALE"
	Unavailable Availability = "UNAVAILABLE"
)

// Panel is one part of an answer with a value or with the reason why it has none.
// The zero value is UNAVAILABLE: what was forgotten is not zero.
type Panel[T any] struct {
	availability Availability
	value        T
	asOf         time.Time
	reason       string
}

// Now is a panel with a current value.
func Now[T any](value T) Panel[T] { return Panel[T]{availability: Available, value: value} }

// Old is a panel with a value from asOf, and why there is none from now.
func Old[T any](value T, asOf time.Time, reason string) Panel[T] {
	return Panel[T]{availability: Stale, value: value, asOf: asOf.Round(0).UTC().Truncate(time.Second), reason: reason}
}

// None is a panel without a value, and why.
func None[T any](reason string) Panel[T] {
	return Panel[T]{availability: Unavailable, reason: reason}
}

// Availability says whether the value is there, and whether it is old.
func (p Panel[T]) Availability() Availability {
	if p.availability == "" {
		return Unavailable
	}
	return p.availability
}

// Value is the value and whether there is one.
func (p Panel[T]) Value() (T, bool) { return p.value, p.Availability() != Unavailable }

// AsOf is when a stale value was true; zero otherwise.
func (p Panel[T]) AsOf() time.Time { return p.asOf }

// Reason is why the value is not current; "" when it is.
func (p Panel[T]) Reason() string { return p.reason }

// Mark notes in m what the panel says, under the name of the part, and returns the
// panel: a literal of an answer can hold the call.
func (p Panel[T]) Mark(m *Marker, part string) Panel[T] {
	switch p.Availability() {
	case Stale:
		m.Stale(part, p.asOf)
	case Unavailable:
		m.Missing(part)
	}
	return p
}

// panel is the form in JSON. value is always there.
type panel struct {
	Availability Availability    `json:"availability"`
	Value        json.RawMessage `json:"value"`
	AsOf         *time.Time      `json:"as_of,omitempty"`
	Reason       string          `json:"reason,omitempty"`
}

var null = json.RawMessage("null")

// MarshalJSON implements json.Marshaler. The value of an unavailable panel is
// null.
func (p Panel[T]) MarshalJSON() ([]byte, error) {
	out := panel{Availability: p.Availability(), Value: null, Reason: p.reason}
	if value, ok := p.Value(); ok {
		var err error
		if out.Value, err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	if out.Availability == Stale {
		out.AsOf = &p.asOf
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler. What does not say one of the three
// availabilities, has a value although it is unavailable, or is stale without a
// time, is an error.
func (p *Panel[T]) UnmarshalJSON(b []byte) error {
	var in panel
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	absent := in.Value == nil || string(in.Value) == "null"
	switch {
	case in.Availability == Unavailable && absent:
		*p = None[T](in.Reason)
		return nil
	case in.Availability == Available && in.Value != nil, in.Availability == Stale && in.Value != nil && in.AsOf != nil:
	default:
		return fmt.Errorf("read a panel: %q with the value %.32q and its time %v do not fit", in.Availability, in.Value, in.AsOf)
	}
	var value T
	if err := json.Unmarshal(in.Value, &value); err != nil {
		return err
	}
	if *p = Now(value); in.Availability == Stale {
		*p = Old(value, *in.AsOf, in.Reason)
	}
	return nil
}

// Number is a number that may be absent. The zero value is: it is null in JSON, and
// only Known makes it a number, zero included.
type Number[T number] struct {
	value T
	known bool
}

type number interface {
	~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Known is a number that is there. Neither NaN nor an infinity is: they come from
// arithmetic with what is absent.
func Known[T number](value T) Number[T] {
	if f := float64(value); math.IsNaN(f) || math.IsInf(f, 0) {
		return Number[T]{}
	}
	return Number[T]{value: value, known: true}
}

// Value is the number and whether there is one.
func (n Number[T]) Value() (T, bool) { return n.value, n.known }

// MarshalJSON implements json.Marshaler.
func (n Number[T]) MarshalJSON() ([]byte, error) {
	if !n.known {
		return null, nil
	}
	return json.Marshal(n.value)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number[T]) UnmarshalJSON(b []byte) error {
	var value *T
	if err := json.Unmarshal(b, &value); err != nil {
		return err
	}
	if *n = (Number[T]{}); value != nil {
		*n = Known(*value)
	}
	return nil
}
