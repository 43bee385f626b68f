package tui

import (
	"fmt"
	"strconv"
	"strings"
)

// runsOf shortens names that count on from each other to the first and the last:
// sixty hosts are four groups to a person. No name is left out, and the order stays.
func runsOf(names []string) []string {
	var out []string
	for i := 0; i < len(names); {
		j := i + 1
		for j < len(names) && countsOn(names[j-1], names[j]) {
			j++
		}
		if j-i > 2 {
			out = append(out, names[i]+" to "+names[j-1])
		} else {
			out = append(out, names[i:j]...)
		}
		i = j
	}
	return out
}

// countsOn reports whether b is a with the next number at its end, of as many digits.
func countsOn(a, b string) bool {
	stem := strings.TrimRight(a, "0123456789")
	digits := a[len(stem):]
	n, err := strconv.ParseUint(digits, 10, 32)
	return err == nil && b == stem+fmt.Sprintf("%0*d", len(digits), n+1)
}
