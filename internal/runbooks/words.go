package runbooks

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/untrusted"
)

// maxQuoted bounds what a sentence quotes of a file.
const maxQuoted = 80

func quote(s string) string { return strconv.Quote(untrusted.Text(s, maxQuoted)) }

// maxGuess is the longest word for which a known one is looked for.
const maxGuess = 64

// distance is the number of inserted, dropped and changed bytes between two
// words; of words over maxGuess it is only large.
func distance(a, b string) int {
	if len(a) > maxGuess || len(b) > maxGuess {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// nearest continues a sentence about an unknown word: with the known one that was
// probably meant, or with all of them.
func nearest(word string, known []string) string {
	if len(known) == 0 {
		return "; there is none"
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(word, a), distance(word, b)) })
	if distance(word, best) <= max(2, len(best)/3) {
		return "; did you mean " + quote(best) + "?"
	}
	sorted := slices.Sorted(slices.Values(known))
	if len(sorted) > maxKnown {
		return "; known are " + strings.Join(sorted[:maxKnown], ", ") + ", …"
	}
	return "; known are " + strings.Join(sorted, ", ")
}

// maxKnown is how many known words a sentence lists.
const maxKnown = 12

// refused says why a character may not stand in a runbook that is run; "" if it
// may. A tab may, in prose.
func refused(r rune) string {
	switch {
	case r >= ' ' && r <= '~', r == '\t':
		return ""
	case r == '\r':
		return "a carriage return (U+000D) ends a line for some readers only; lines end in LF"
	case r == '\u2028', r == '\u2029', r == '\u0085':
		return fmt.Sprintf("U+%04X ends a line for some readers only; remove it", r)
	case r == '\ufeff':
		return "a byte order mark (U+FEFF); save the file as UTF-8 without one"
	case untrusted.Text("a"+string(r), 2*utf8.UTFMax) != "a"+string(r): // a mark needs a letter to stand on
		return fmt.Sprintf("U+%04X is not a printable character; remove it", r)
	}
	return ""
}
