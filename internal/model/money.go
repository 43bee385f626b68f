package model

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxMinor bounds an amount in minor units (cents): ten billion dollars. The
// bound keeps hosts x budget inside int64 for any fleet that ic can hold.
const MaxMinor int64 = 1_000_000_000_000

// Money is an amount in integer minor units of one currency. Currencies are
// never added to one another. The printed form is "50.00 USD".
type Money struct {
	Minor    int64
	Currency string
}

// ErrMoney is wrapped by every error of ParseMoney.
var ErrMoney = errors.New(`an amount is written like "50.00 USD"`)

// ParseMoney reads the one accepted form: digits without a leading zero, a
// point, two digits, a space, three capital letters.
func ParseMoney(s string) (Money, error) {
	amount, currency, ok := strings.Cut(s, " ")
	if !ok || len(currency) != 3 || strings.Trim(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return Money{}, fmt.Errorf("%q: %w", s, ErrMoney)
	}
	whole, cents, ok := strings.Cut(amount, ".")
	if !ok || len(cents) != 2 || whole == "" || len(whole) > 1 && whole[0] == '0' ||
		strings.Trim(whole+cents, "0123456789") != "" {
		return Money{}, fmt.Errorf("%q: %w", s, ErrMoney)
	}
	minor, err := strconv.ParseInt(whole+cents, 10, 64)
	if err != nil || minor > MaxMinor {
		return Money{}, fmt.Errorf("%q: at most %s: %w", s, Money{MaxMinor, currency}, ErrMoney)
	}
	return Money{Minor: minor, Currency: currency}, nil
}

// String prints the form that ParseMoney reads.
func (m Money) String() string {
	sign, minor := "", m.Minor
	if minor < 0 {
		sign, minor = "-", -minor
	}
	return fmt.Sprintf("%s%d.%02d %s", sign, minor/100, minor%100, m.Currency)
}

// IsZero reports whether the amount was never set.
func (m Money) IsZero() bool { return m == Money{} }

// MarshalText implements encoding.TextMarshaler.
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Money) UnmarshalText(b []byte) error {
	parsed, err := ParseMoney(string(b))
	if err != nil {
		return err
	}
	*m = parsed
	return nil
}

// Times multiplies and saturates at the largest int64, so that a worst case is
// never understated by an overflow.
func (m Money) Times(n int64) Money {
	if n > 0 && m.Minor > math.MaxInt64/n {
		return Money{Minor: math.MaxInt64, Currency: m.Currency}
	}
	return Money{Minor: m.Minor * n, Currency: m.Currency}
}
