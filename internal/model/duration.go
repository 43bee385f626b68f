package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in whole seconds. It is written in the largest
// unit that divides it: "45s", "15m", "2h", "90s". There is no unit for days: a day is "24h", and
// nobody has to ask whether it follows the calendar.
type Duration time.Duration

// MaxDuration bounds every duration of a policy: five years.
const MaxDuration = Duration(5 * 366 * 24 * time.Hour)

var durationUnits = []struct {
	suffix string
	size   time.Duration
}{{"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}

// ParseDuration reads one number with one unit of h, m or s, in the form that
// String prints: "15m" but not "900s", "15", "0.25h" or "1h30m".
func ParseDuration(s string) (Duration, error) {
	for _, u := range durationUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 || n > int64(time.Duration(MaxDuration)/u.size) {
			break
		}
		d := Duration(time.Duration(n) * u.size)
		if d.String() != s {
			return 0, fmt.Errorf("%q: write it as %q", s, d)
		}
		return d, nil
	}
	return 0, fmt.Errorf(`%q: a duration is a number and one unit, like "15m", "45s", "2h"`, s)
}

// String prints the form that ParseDuration reads.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	for _, u := range durationUnits {
		if time.Duration(d)%u.size == 0 {
			return strconv.FormatInt(int64(time.Duration(d)/u.size), 10) + u.suffix
		}
	}
	return time.Duration(d).String()
}

// Std is d for the standard library.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	parsed, err := ParseDuration(s)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
