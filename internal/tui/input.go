package tui

import (
	tea "charm.land/bubbletea/v2"

	"strings"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/untrusted"
)

// input is one line of text under the fingers. It grows and shrinks at its end:
// what is typed at 3am is short.
type input struct {
	text string
	most int // bytes
}

// insert adds text made safe; it reports whether there was room.
func (in *input) insert(s string) bool {
	s = untrusted.Text(s, len(s)*maxEscape)
	if len(in.text)+len(s) > in.most {
		return false
	}
	in.text += s
	return true
}

// maxEscape is how much longer a byte may get when it is made safe.
const maxEscape = 10

// edit handles the keys that erase; ok is false if the action is none of them.
func (in *input) edit(a action) bool {
	switch a {
	case erase:
		_, size := utf8.DecodeLastRuneInString(in.text)
		in.text = in.text[:len(in.text)-size]
	case eraseWord:
		trimmed := strings.TrimRight(in.text, " ")
		in.text = trimmed[:strings.LastIndex(trimmed, " ")+1]
	case eraseAll:
		in.text = ""
	default:
		return false
	}
	return true
}

// tail is what of a text fits in width, its end first: the cursor is there.
func (in *input) tail(width int) string {
	text := in.text
	for cells(text) > max(width, 0) {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}

// prompt asks for one line of text. Here a paste is welcome.
type prompt struct {
	title string
	about []fact
	label string
	input input
	need  bool // an empty text does not do
	// spaceless text is taken without the blanks and line breaks that a mail or a
	// terminal has put into it.
	spaceless bool
	then      func(text string) tea.Cmd
	quit      func() tea.Cmd // escape
}

// paste is a pasted text as this prompt takes it.
func (p *prompt) paste(text string) string {
	if p.spaceless {
		return strings.Join(strings.Fields(text), "")
	}
	return strings.Join(strings.Fields(text), " ")
}

func (p *prompt) draw(width, height int) page {
	lines := append([]line{rule(p.title, width)}, facts(p.about, width)...)
	question := sentence(strong, p.label, width)
	lines = append(window(lines, 0, height-len(question)-2), nil)
	lines = append(lines, question...)
	mark := " " + selected.glyph() + " "
	text := p.input.tail(width - cells(mark) - 1)
	lines = append(lines, line{{mark, strong}, {text, normal}})
	return page{lines: lines, x: cells(mark) + cells(text), y: len(lines) - 1}
}
