package tui

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// ink is what a piece of text means. The first six are the meanings of the
// console: each has a colour, a glyph and a word. The others are typography.
type ink uint8

const (
	normal ink = iota
	abnormal
	critical
	stale
	unknown
	selected
	faint  // labels and column heads
	strong // titles
	badge  // the mode
	inks
)

// meaning is how an ink looks without colour.
type meaning struct {
	glyph string // one cell
	word  string
}

var meanings = [inks]meaning{
	normal:   {" ", "normal"},
	abnormal: {"!", "abnormal"},
	critical: {"X", "critical"},
	stale:    {"~", "stale"},
	unknown:  {"?", "unknown"},
	selected: {">", "selected"},
	faint:    {" ", ""},
	strong:   {" ", ""},
	badge:    {" ", ""},
}

func (i ink) glyph() string { return meanings[i].glyph }
func (i ink) word() string  { return meanings[i].word }

// theme paints. It holds the escape sequence before and after each ink, taken
// once from Lip Gloss: a frame has hundreds of spans.
type theme struct {
	before, after [inks]string
}

// newTheme uses the sixteen colours that every terminal has and that people
// tune for their own eyes; without colour it keeps bold, faint and reverse.
func newTheme(noColor bool) *theme {
	style := func(c string) lipgloss.Style {
		if noColor || c == "" {
			return lipgloss.NewStyle()
		}
		return lipgloss.NewStyle().Foreground(lipgloss.Color(c))
	}
	styles := [inks]lipgloss.Style{
		abnormal: style("3").Bold(true),
		critical: style("1").Bold(true),
		stale:    style("6"),
		unknown:  style("5"),
		selected: style("").Reverse(true),
		faint:    style("").Faint(true),
		strong:   style("").Bold(true),
		badge:    style("").Reverse(true).Bold(true),
	}
	t := &theme{}
	const here = "#"
	for i := range styles {
		t.before[i], t.after[i], _ = strings.Cut(styles[i].Render(here), here)
	}
	return t
}

// line is one line of a frame before it is painted.
type line []span

// span is a text with one meaning.
type span struct {
	text string
	ink  ink
}

// say is a line of one span.
func say(i ink, text string) line { return line{{text, i}} }

// plain is the text of a line without its meaning.
func (l line) plain() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// paint writes a line into b, clipped and padded to exactly width cells. A
// selected line is one reversed stretch: inks inside it would break the bar.
func (t *theme) paint(b *strings.Builder, l line, width int) {
	if len(l) > 0 && l[0].ink == selected {
		l = line{{l.plain(), selected}}
	}
	left := width
	for _, s := range l {
		if left <= 0 {
			break
		}
		text := clip(s.text, left)
		left -= cells(text)
		if len(l) == 1 && s.ink == selected {
			text += spaces(left)
			left = 0
		}
		if s.ink != selected && s.ink != badge && strings.Trim(text, " ") == "" {
			b.WriteString(text) // blanks need no ink, and ink is bytes on the line
			continue
		}
		b.WriteString(t.before[s.ink])
		b.WriteString(text)
		b.WriteString(t.after[s.ink])
	}
	b.WriteString(spaces(left))
}
