package untrusted

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ellipsis ends a text that was cut.
const Ellipsis = "…"

// maxMarks is how many combining marks one character may carry. Living
// orthographies stack up to four; more than that paints over the lines above
// and below.
const maxMarks = 4

// Text returns s as one line of printable text of at most max bytes. A longer
// one is cut between characters, never inside an escape, and ends in Ellipsis;
// if max has no room for that, the result is empty. Text of clean text is the
// text itself.
func Text(s string, max int) string {
	if len(s) <= max && plain(s) {
		return s
	}
	var out strings.Builder
	fits := 0 // bytes of out that leave room for the ellipsis
	marks := maxMarks
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		piece := s[:size]
		s = s[size:]
		switch {
		case r == utf8.RuneError && size == 1:
			piece, marks = escapeByte(piece[0]), 0
		case unicode.Is(unicode.M, r) && printable(r):
			// A mark without a base would join whatever stands before the text.
			if marks++; marks > maxMarks {
				piece, marks = escape(r), 0
			}
		case printable(r):
			marks = 0
		default:
			piece, marks = escape(r), 0
		}
		if out.Len()+len(piece) > max {
			return cut(out.String()[:fits], max)
		}
		out.WriteString(piece)
		if out.Len()+len(Ellipsis) <= max {
			fits = out.Len()
		}
	}
	return out.String()
}

// Lines returns s line by line, each as Text makes it with maxLine, and at most
// maxLines of them: the last one then says how many are missing. A CR before a
// line feed belongs to the line's end; a line feed at the end of s starts no
// line.
func Lines(s string, maxLine, maxLines int) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" || maxLines < 1 {
		return nil
	}
	var out []string
	for more := true; more; {
		if left := strings.Count(s, "\n") + 1; len(out) == maxLines-1 && left > 1 {
			return append(out, Text(fmt.Sprintf("%s %d more lines", Ellipsis, left), maxLine))
		}
		var line string
		line, s, more = strings.Cut(s, "\n")
		out = append(out, Text(strings.TrimSuffix(line, "\r"), maxLine))
	}
	return out
}

// plain reports whether s is printable ASCII, which is nearly all text.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// printable is an allow-list: letters, marks, numbers, punctuation, symbols and
// the ASCII space. That leaves out every control, bidirectional and zero-width
// character, tags, private use, unassigned code points and the spaces that look
// like nothing; the two properties remove what is graphic by category and yet
// invisible (fillers, variation selectors), and U+2800 is a blank symbol.
func printable(r rune) bool {
	return unicode.IsPrint(r) && r != '\u2800' &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < utf8.RuneSelf:
		return escapeByte(byte(r))
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}

func escapeByte(b byte) string { return fmt.Sprintf(`\x%02x`, b) }

func cut(s string, max int) string {
	if max < len(Ellipsis) {
		return ""
	}
	return s + Ellipsis
}
