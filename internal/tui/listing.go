package tui

import (
	"fmt"
	"slices"
	"strings"
)

// listing is a list with one selected entry. The selection is held by name:
// entries move under it when numbers change, and a key must act on what the
// person saw.
type listing struct {
	id     string
	at     int
	top    int
	room   int // rows that fit, as last drawn
	filter string
}

// settle finds the selection in ids again, or stays where it was.
func (l *listing) settle(ids []string) {
	if i := slices.Index(ids, l.id); i >= 0 {
		l.at = i
	}
	l.at = min(max(l.at, 0), max(len(ids)-1, 0))
	l.id = ""
	if l.at < len(ids) {
		l.id = ids[l.at]
	}
}

// move handles the keys that move; ok is false if the action is none of them.
func (l *listing) move(a action, ids []string) bool {
	l.settle(ids)
	step := max(l.room-1, 1)
	switch a {
	case moveUp:
		l.at--
	case moveDown:
		l.at++
	case pageUp:
		l.at -= step
	case pageDown:
		l.at += step
	case moveTop:
		l.at = 0
	case moveBottom:
		l.at = len(ids) - 1
	default:
		return false
	}
	l.at = min(max(l.at, 0), max(len(ids)-1, 0))
	if len(ids) > 0 {
		l.id = ids[l.at]
	}
	return true
}

// show scrolls so that the selection is among height lines, and says which.
func (l *listing) show(n, height int) (from, to int) {
	height = max(height, 1)
	l.room = height
	if l.at < l.top {
		l.top = l.at
	}
	if l.at >= l.top+height {
		l.top = l.at - height + 1
	}
	l.top = min(max(l.top, 0), max(n-height, 0))
	return l.top, min(l.top+height, n)
}

// rows lays a selectable table out in height lines: the head, then the window
// of rows around the selection, and how many are out of sight.
func (l *listing) rows(columns []column, ids []string, rows []record, width, height int) page {
	l.settle(ids)
	t := layout(columns, rows, width)
	from, to := l.show(len(rows), height-1)
	p := page{lines: []line{t.head()}, y: -1}
	for i := from; i < to; i++ {
		rows[i].selected = i == l.at
		if rows[i].selected {
			p.y = len(p.lines)
		}
		p.lines = append(p.lines, t.row(rows[i]))
	}
	return p
}

// matches reports whether a text contains every word of a filter.
func matches(filter, text string) bool {
	if filter == "" {
		return true
	}
	text = strings.ToLower(text)
	for _, word := range strings.Fields(strings.ToLower(filter)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// text is all that a record shows, for a filter.
func (r *record) text() string {
	var b strings.Builder
	for _, s := range r.cells {
		b.WriteString(s.text)
		b.WriteByte(' ')
	}
	return b.String()
}

// note says what a filter leaves.
func (l *listing) note(n, total int) string {
	if l.filter == "" {
		return ""
	}
	return fmt.Sprintf("/%s: %d of %d (esc clears)", l.filter, n, total)
}
