package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// chooser is a list to choose from by typing: palette, tiers, overrides, faults.
// Choosing never gives an order: what has an effect on a fleet asks first.
type chooser struct {
	q       question
	title   string
	empty   string // what to say when there is nothing to choose from
	loading bool
	all     []choice
	input   input
	listing listing
}

// choice is one line of a chooser.
type choice struct {
	label string
	note  string
	ink   ink
	why   string // why it cannot be chosen
	run   func() tea.Cmd
}

// maxFilter is the longest text that narrows a list, in bytes.
const maxFilter = 80

func newChooser(title, empty string, all []choice) *chooser {
	return &chooser{title: title, empty: empty, all: all, input: input{most: maxFilter}}
}

// matching are the choices that the typed words leave. A match in the label
// comes before one in the note, and a label that begins with the text first.
func (c *chooser) matching() []choice {
	var first, second, rest []choice
	for _, ch := range c.all {
		switch {
		case strings.HasPrefix(ch.label, c.input.text):
			first = append(first, ch)
		case matches(c.input.text, ch.label):
			second = append(second, ch)
		case matches(c.input.text, ch.label+" "+ch.note):
			rest = append(rest, ch)
		}
	}
	return slices.Concat(first, second, rest)
}

// move selects by place: the list changes with every key that is typed.
func (c *chooser) move(a action) {
	n := len(c.matching())
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	c.listing.move(a, ids)
}

// reset puts the selection on the best match.
func (c *chooser) reset() { c.listing = listing{} }

func (c *chooser) chosen() (choice, bool) {
	all := c.matching()
	if c.listing.at >= len(all) {
		return choice{}, false
	}
	return all[c.listing.at], true
}

func (c *chooser) draw(width, height int) page {
	label := " " + selected.glyph() + " "
	text := c.input.tail(width - cells(label) - 1)
	lines := []line{rule(c.title, width), {{label, strong}, {text, normal}}}
	p := page{x: cells(label) + cells(text), y: 1}
	all := c.matching()
	switch {
	case c.loading:
		p.lines = append(lines, sentence(faint, "asking ...", width)...)
		return p
	case len(c.all) == 0:
		p.lines = append(lines, sentence(normal, c.empty, width)...)
		return p
	case len(all) == 0:
		p.lines = append(lines, sentence(normal, "nothing matches: backspace", width)...)
		return p
	}
	rows := make([]record, len(all))
	ids := make([]string, len(all))
	for i, ch := range all {
		note := ch.note
		if ch.why != "" {
			note = "not now: " + ch.why
		}
		rows[i] = record{mark: ch.ink, cells: []span{{ch.label, normal}, {note, faint}}}
		ids[i] = fmt.Sprint(i)
	}
	c.listing.id = fmt.Sprint(c.listing.at)
	list := c.listing.rows([]column{{least: 12, most: max(width/2, 12)}, {least: 10, grow: true, drop: 1}}, ids, rows, width, max(height-1, 2))
	p.lines = append(lines, list.lines[1:]...)
	return p
}
