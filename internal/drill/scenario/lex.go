package scenario

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/untrusted"
)

// ErrorAt is one thing that is wrong with a scenario, in a sentence.
type ErrorAt struct {
	File         string
	Line, Column int // from 1; the column counts characters
	Text         string
}

func (e ErrorAt) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Text)
}

// Errors is everything that is wrong, in the order of the file.
type Errors []ErrorAt

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i := range e {
		lines[i] = e[i].Error()
	}
	return strings.Join(lines, "\n")
}

// word is a part of a line and the column of its first character.
type word struct {
	text string
	col  int
}

// line is one statement.
type line struct {
	n      int
	inside bool // indented: it belongs to a section
	odd    bool // it has a character that must not be there, or is too long
	words  []word
	text   string // without the indentation
	indent int
}

// rest is the line's text from word i on, or "" if there are not so many.
func (l *line) rest(i int) string {
	if i >= len(l.words) {
		return ""
	}
	runes := 0
	for at := range l.text {
		if runes+l.indent+1 == l.words[i].col {
			return strings.TrimRight(l.text[at:], " ")
		}
		runes++
	}
	return ""
}

// col is the column of word i, or the one behind the last.
func (l *line) col(i int) int {
	if i < len(l.words) {
		return l.words[i].col
	}
	return l.indent + utf8.RuneCountInString(l.text) + 1
}

// word is word i, or "".
func (l *line) word(i int) string {
	if i < len(l.words) {
		return l.words[i].text
	}
	return ""
}

// lines cuts a text into statements. Empty ones and comments are left out.
func (p *parser) lines(raw []byte) []line {
	if len(raw) > MaxBytes {
		at := raw[:MaxBytes]
		last := at[bytes.LastIndexByte(at, '\n')+1:]
		p.fail(1+bytes.Count(at, []byte{'\n'}), 1+utf8.RuneCount(last), "the file goes on here; a scenario has less than 2 MiB")
		return nil
	}
	var out []line
	for i, text := range strings.Split(string(raw), "\n") {
		n := i + 1
		if n > MaxLines {
			p.fail(n, 1, "the file has more than %d lines", MaxLines)
			break
		}
		if len(text) > MaxLine {
			p.fail(n, 1, "the line has %d bytes; at most %d are read", len(text), MaxLine)
			out = append(out, oddLine(n, text[:64]))
			continue
		}
		if col, what := odd(text); col > 0 {
			p.fail(n, col, "%s is not allowed in a scenario: text is printable, in UTF-8, with spaces and line feeds", what)
			out = append(out, oddLine(n, text))
			continue
		}
		trimmed := strings.TrimLeft(text, " ")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		l := line{n: n, indent: len(text) - len(trimmed), text: trimmed}
		l.inside = l.indent > 0
		l.words = split(trimmed, l.indent)
		out = append(out, l)
	}
	return out
}

// oddLine is what can be said of a line that is not read: how it begins.
func oddLine(n int, text string) line {
	trimmed := strings.TrimLeft(text, " \t")
	l := line{n: n, odd: true, indent: len(text) - len(trimmed), text: trimmed}
	l.inside = l.indent > 0
	if fields := strings.Fields(trimmed); len(fields) > 0 {
		l.words = []word{{fields[0], l.indent + 1}}
	}
	return l
}

// odd is the column of the first character that must not be there.
func odd(text string) (column int, what string) {
	column = 0
	for _, r := range text {
		column++
		if r == utf8.RuneError || r != ' ' && !unicode.IsPrint(r) {
			name := fmt.Sprintf("the character U+%04X", r)
			switch r {
			case '\t':
				name = "a tab"
			case '\r':
				name = "a carriage return"
			case utf8.RuneError:
				name = "a byte that is no UTF-8"
			}
			return column, name
		}
	}
	return 0, ""
}

func split(text string, indent int) []word {
	var out []word
	start, startCol, col := -1, 0, indent
	for i, r := range text {
		col++
		switch {
		case r == ' ' && start >= 0:
			out = append(out, word{text[start:i], startCol})
			start = -1
		case r != ' ' && start < 0:
			start, startCol = i, col
		}
	}
	if start >= 0 {
		out = append(out, word{text[start:], startCol})
	}
	return out
}

// shown is a word of the file as an error may quote it.
func shown(s string) string { return fmt.Sprintf("%q", untrusted.Text(s, 60)) }

// meant ends a sentence about an unknown word: what was probably meant, or all
// there is.
func meant(got string, known []string) string {
	if len(known) == 0 {
		return "there is none"
	}
	if best := nearest(got, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "there is " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// nearest is what was probably meant, or "".
func nearest(got string, known []string) string {
	if len(got) > 60 || len(known) == 0 {
		return ""
	}
	best := slices.MinFunc(slices.Sorted(slices.Values(known)), func(a, b string) int { return cmp.Compare(policy.Distance(got, a), policy.Distance(got, b)) })
	if policy.Distance(got, best)*2 > max(len(best), 3) {
		return ""
	}
	return best
}
