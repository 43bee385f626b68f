package directive

import (
	"unicode"
	"unicode/utf8"
)

// unseen are the characters that text of a directive may not hold: what a
// terminal obeys, what nobody sees, what reorders the line, and every space but
// the ASCII one. The list is closed, a part of the format: it follows no later
// version of Unicode, so that no host refuses a shed because its tables are
// older than the console's. What is safe to show beyond that is a matter of
// package untrusted.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0000, 0x001f, 1}, // C0
		{0x007f, 0x00a0, 1}, // DEL, C1, no-break space
		{0x00ad, 0x00ad, 1}, // soft hyphen
		{0x034f, 0x034f, 1}, // grapheme joiner
		{0x061c, 0x061c, 1}, // bidirectional
		{0x115f, 0x1160, 1}, // fillers
		{0x1680, 0x1680, 1}, // space
		{0x17b4, 0x17b5, 1}, // inherent vowels
		{0x180b, 0x180f, 1}, // variation selectors
		{0x2000, 0x200f, 1}, // spaces, zero width, bidirectional
		{0x2028, 0x202f, 1}, // separators, bidirectional, space
		{0x205f, 0x206f, 1}, // space, invisible operators, bidirectional
		{0x2800, 0x2800, 1}, // blank Braille
		{0x3000, 0x3000, 1}, // ideographic space
		{0x3164, 0x3164, 1}, // filler
		{0xd800, 0xf8ff, 1}, // surrogates, private use
		{0xfdd0, 0xfdef, 1}, // no characters
		{0xfe00, 0xfe0f, 1}, // variation selectors
		{0xfeff, 0xfeff, 1}, // byte order mark
		{0xffa0, 0xffa0, 1}, // filler
		{0xfff0, 0xffff, 1}, // specials
	},
	R32: []unicode.Range32{
		{0x13430, 0x1343f, 1},  // hieroglyph joiners
		{0x1bca0, 0x1bca3, 1},  // shorthand controls
		{0x1d173, 0x1d17a, 1},  // musical controls
		{0xe0000, 0x10ffff, 1}, // tags, variation selectors, private use
	},
}

// printable reports whether s is UTF-8 without a character of unseen.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		// The last two code points of every plane are no characters.
		if r&0xfffe == 0xfffe || unicode.Is(unseen, r) {
			return false
		}
	}
	return true
}
