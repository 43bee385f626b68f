package runbooks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/untrusted"
)

// maxQuoted bounds what a sentence quotes of a file.
const maxQuoted = 80

func quote(s string) string { return strconv.Quote(untrusted.Text(s, maxQuoted)) }

// nearest continues a sentence about an unknown word: with the known one that was
// probably meant, or with all of them.
func nearest(word string, known []string) string {
	if len(known) == 0 {
		return "; there is none"
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(policy.Distance(word, a), policy.Distance(word, b)) })
	if policy.Distance(word, best) <= max(2, len(best)/3) {
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
// may: what a policy refuses, but for a tab in prose.
func refused(r rune) string {
	switch r {
	case '\t':
		return ""
	case '\ufeff':
		return "a byte order mark (U+FEFF); save the file as UTF-8 without one"
	}
	return policy.RefusedRune(r)
}
