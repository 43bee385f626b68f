package directive

import "unicode"

// graphic reports whether r is a letter, mark, number, punctuation or symbol.
// Separators other than the space, and every format character (bidirectional
// controls, zero-width joiners, tags), are not.
func graphic(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		!unicode.Is(unicode.Variation_Selector, r)
}
