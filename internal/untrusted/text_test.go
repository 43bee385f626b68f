package untrusted_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/untrusted"
)

func TestTextShowsWhatATerminalWouldObeyOrAPersonWouldNotSee(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"plain text", "checkout is slow: 50% > 5%", "checkout is slow: 50% > 5%"},
		{"letters of other scripts", "Zürich 東京 Київ ไทย", "Zürich 東京 Київ ไทย"},
		{"escape sequence", "\x1b[2Jgone", `\x1b[2Jgone`},
		{"OSC that sets the title", "\x1b]0;root\x07", `\x1b]0;root\x07`},
		{"C1 CSI as a rune", "a\u009b31mb", `a\u009b31mb`},
		{"C1 CSI as a raw byte", "a\x9b31mb", `a\x9b31mb`},
		{"CR that overwrites the line", "denied\rpermitted", `denied\rpermitted`},
		{"line feed that forges a log line", "a\nb", `a\nb`},
		{"tab", "a\tb", `a\tb`},
		{"backspace and DEL", "ab\b\x7f", `ab\x08\x7f`},
		{"NUL", "a\x00b", `a\x00b`},
		{"bidi override", "a\u202eb", `a\u202eb`},
		{"bidi isolate", "\u2066x\u2069", `\u2066x\u2069`},
		{"zero width", "pay\u200bments\u200d\ufeff", `pay\u200bments\u200d\ufeff`},
		{"line and paragraph separator", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"spaces that are not the space", "a\u00a0b\u2003c\u3000", `a\u00a0b\u2003c\u3000`},
		{"soft hyphen", "a\u00adb", `a\u00adb`},
		{"variation selectors", "a\ufe0fb\U000e0100", `a\ufe0fb\U000e0100`},
		{"tags", "a\U000e0041", `a\U000e0041`},
		{"private use", "\ue000\U000f0000", `\ue000\U000f0000`},
		{"fillers that look like nothing", "\u3164\u115f\u2800", `\u3164\u115f\u2800`},
		{"a code point nobody assigned", "\U000eff80", `\U000eff80`},
		{"invalid UTF-8", "a\xff\xc3(", `a\xff\xc3(`},
		{"an encoded surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"U+FFFD itself", "\ufffd", "\ufffd"},
		{"a mark on its letter", "e\u0301", "e\u0301"},
		{"a mark that would join the border before it", "\u0301e", `\u0301e`},
		{"five marks on one letter", "e" + strings.Repeat("\u0301", 5), "e" + strings.Repeat("\u0301", 4) + `\u0301`},
		{"a backslash", `C:\x1b`, `C:\x1b`},
		{"nothing", "", ""},
	} {
		if got := untrusted.Text(c.in, 200); got != c.want {
			t.Errorf("%s: Text(%q) = %q, want %q", c.what, c.in, got, c.want)
		}
	}
}

func TestTextIsCutBetweenCharactersAndSaysSo(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abc…"},
		{"ééé", 6, "ééé"},
		{"éééé", 6, "é…"},
		{"ab\x1bcd", 8, `ab\x1bcd`},
		{"ab\x1bcde", 8, "ab…"}, // \x1b would be split
		{strings.Repeat("\x1b", 1<<20), 11, `\x1b\x1b…`},
		{"abcd", 3, "…"},
		{"abcd", 2, ""},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
	} {
		if got := untrusted.Text(c.in, c.max); got != c.want {
			t.Errorf("Text(%.20q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		what string
		in   string
		max  int
		want []string
	}{
		{"lines of a plugin", "one\r\ntwo\x1b[0m\n", 3, []string{"one", `two\x1b[0m`}},
		{"an empty line between", "a\n\nb", 3, []string{"a", "", "b"}},
		{"a CR inside a line", "10%\r20%\n", 3, []string{`10%\r20%`}},
		{"as many as there is room for", "a\nb\nc", 3, []string{"a", "b", "c"}},
		{"more than there is room for", "a\nb\nc\nd\n", 3, []string{"a", "b", "… 2 more lines"}},
		{"room for one line only", "a\nb\nc", 1, []string{"… 3 more lines"}},
		{"a long line", strings.Repeat("x", 30), 1, []string{strings.Repeat("x", 17) + "…"}},
		{"nothing", "", 3, nil},
		{"no room", "a", 0, nil},
	} {
		if got := untrusted.Lines(c.in, 20, c.max); !slices.Equal(got, c.want) {
			t.Errorf("%s: Lines(%q) = %q, want %q", c.what, c.in, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31m", "a\xffb", "e\u0301\u0301\u0301\u0301\u0301", "\u202e\U000e0041\ufe0f", "éééé…", `\x1b`} {
		f.Add(s, 12)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		got := untrusted.Text(s, max)
		if !utf8.ValidString(got) || len(got) > 0 && len(got) > max {
			t.Fatalf("Text(%q, %d) = %q: %d bytes", s, max, got, len(got))
		}
		marks := maxMarksOfTest
		for _, r := range got {
			if !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r) {
				t.Fatalf("Text(%q, %d) lets %U through", s, max, r)
			}
			if !unicode.Is(unicode.M, r) {
				marks = 0
			} else if marks++; marks > maxMarksOfTest {
				t.Fatalf("Text(%q, %d) = %q lets a mark without a base, or a pile of marks, through", s, max, got)
			}
		}
		if again := untrusted.Text(got, max); again != got {
			t.Fatalf("Text(%q, %d) = %q, and of that %q", s, max, got, again)
		}
		for _, line := range untrusted.Lines(s, max, 4) {
			if untrusted.Text(line, max) != line {
				t.Fatalf("Lines(%q, %d) lets %q through", s, max, line)
			}
		}
	})
}

const maxMarksOfTest = 4
