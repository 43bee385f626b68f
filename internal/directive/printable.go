package directive

import (
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks one character may carry: living
// orthographies stack up to four, more paint over the lines around them.
const maxMarks = 4

// printable reports whether s is one line of text of which nothing is hidden or
// obeyed by a terminal: letters, marks, numbers, punctuation, symbols and the
// ASCII space, as the Unicode tables of this program know them. It is a rule of
// the format; making text safe to show is a matter of package untrusted, which
// may get stricter without making a token invalid.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	marks := maxMarks // a mark at the start would join what stands before the text
	for _, r := range s {
		switch {
		case !unicode.IsPrint(r) || hidden(r):
			return false
		case !unicode.Is(unicode.M, r):
			marks = 0
		case marks == maxMarks:
			return false
		default:
			marks++
		}
	}
	return true
}

// hidden reports whether r is graphic by category and yet shows nothing:
// fillers, variation selectors, the blank Braille pattern.
func hidden(r rune) bool {
	return r == '\u2800' || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
