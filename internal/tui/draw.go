package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/degradedmode/ic/internal/untrusted"
)

// cells is how many cells a text takes.
func cells(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// clip cuts a text to width cells; what was cut ends in an ellipsis.
func clip(s string, width int) string {
	switch {
	case width <= 0:
		return ""
	case cells(s) <= width:
		return s
	default:
		return ansi.Truncate(s, width, untrusted.Ellipsis)
	}
}

// spaces is n blanks, none for a negative n.
func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// pad clips and fills a text to exactly width cells.
func pad(s string, width int, right bool) string {
	s = clip(s, width)
	fill := spaces(width - cells(s))
	if right {
		return fill + s
	}
	return s + fill
}

// wrap breaks a text between words into lines of at most width cells.
func wrap(s string, width int) []string {
	if width <= 0 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, width, ""), "\n")
}

// column of a table.
type column struct {
	title string
	least int  // narrower than this it does not go
	most  int  // wider than this it is clipped; 0: no limit
	right bool // aligned right, for numbers
	grow  bool // takes what is left, and gives when there is too little
	drop  int  // in a narrow window the highest goes first; 0: never
}

// record is one row of a table: the glyph of its meaning in front, cells after.
type record struct {
	mark     ink
	cells    []span
	selected bool
	below    []line // what belongs under it, indented
}

// gap is what lies between two columns.
const gap = 2

// margin is the room in front of every row: the selection, the glyph, a blank.
const margin = 3

// table lays rows out in columns that fit width.
type table struct {
	columns []column
	widths  []int // 0: dropped
}

// layout fits the columns to the rows. All rows count, also those that are
// scrolled away: columns must not jump while scrolling.
func layout(columns []column, rows []record, width int) table {
	t := table{columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		w := max(cells(c.title), c.least)
		for _, r := range rows {
			if i < len(r.cells) {
				w = max(w, cells(r.cells[i].text))
			}
		}
		if c.most > 0 {
			w = min(w, max(c.most, cells(c.title)))
		}
		t.widths[i] = w
	}
	t.shrink(width - margin)
	return t
}

func (t *table) total() int {
	n := -gap
	for _, w := range t.widths {
		if w > 0 {
			n += w + gap
		}
	}
	return max(n, 0)
}

// shrink takes from the growing columns down to their least, then drops columns,
// then cuts the growing ones to whatever is left.
func (t *table) shrink(width int) {
	for {
		over := t.total() - width
		for i, c := range t.columns {
			if c.grow && over > 0 {
				give := min(over, max(t.widths[i]-max(c.least, 1), 0))
				t.widths[i] -= give
				over -= give
			}
		}
		if over <= 0 {
			break
		}
		first := -1
		for i, c := range t.columns {
			if c.drop > 0 && t.widths[i] > 0 && (first < 0 || c.drop > t.columns[first].drop) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		t.widths[first] = 0
	}
	for i, c := range slices.Backward(t.columns) {
		if c.grow && t.widths[i] > 0 {
			t.widths[i] += max(width-t.total(), 0)
			break
		}
	}
}

// head is the line of column titles.
func (t *table) head() line {
	l := line{{spaces(margin), faint}}
	for i, c := range t.columns {
		if t.widths[i] == 0 {
			continue
		}
		if len(l) > 1 {
			l = append(l, span{spaces(gap), normal})
		}
		l = append(l, span{pad(c.title, t.widths[i], c.right), faint})
	}
	return l
}

// row is one line of the table.
func (t *table) row(r record) line {
	first := normal
	pointer := " "
	if r.selected {
		first, pointer = selected, selected.glyph()
	}
	l := line{{pointer, first}, {r.mark.glyph() + " ", r.mark}}
	for i, c := range t.columns {
		if t.widths[i] == 0 {
			continue
		}
		if len(l) > 2 {
			l = append(l, span{spaces(gap), normal})
		}
		var s span
		if i < len(r.cells) {
			s = r.cells[i]
		}
		l = append(l, span{pad(s.text, t.widths[i], c.right), s.ink})
	}
	return l
}

// all is the head and every row with what lies below it.
func (t *table) all(rows []record) []line {
	lines := []line{t.head()}
	for _, r := range rows {
		lines = append(lines, t.row(r))
		lines = append(lines, r.below...)
	}
	return lines
}

// draw is a table in one go.
func draw(columns []column, rows []record, width int) []line {
	t := layout(columns, rows, width)
	return t.all(rows)
}

// fact is a labelled sentence.
type fact struct {
	label string
	text  string
	ink   ink
}

// labelWidth fits the longest label of a fact.
const labelWidth = 10

// facts are labelled sentences, wrapped beside their labels, with the glyph of
// their meaning where tables have theirs. Without room for a label column the
// labels go in front of the text.
func facts(list []fact, width int) []line {
	var lines []line
	beside := width >= 4*labelWidth
	for _, f := range list {
		text, room := f.text, width-margin
		if beside {
			room -= labelWidth + gap
		} else if f.label != "" {
			text = f.label + ": " + text
		}
		glyph, label := f.ink.glyph(), f.label
		for _, part := range wrap(text, room) {
			l := line{{" " + glyph + " ", f.ink}}
			if beside {
				l = append(l, span{pad(label, labelWidth, false) + spaces(gap), faint})
			}
			lines = append(lines, append(l, span{part, f.ink}))
			glyph, label = " ", ""
		}
	}
	return lines
}

// paned puts a pane below a list. The pane gets what it needs, the list at
// least half. Where there is no room for both, only what was asked for is there:
// the pane if somebody opened it, else the list.
func paned(list func(height int) page, title string, pane []line, opened bool, width, height int) page {
	room := min(len(pane), height/2)
	if height < lowView && opened {
		return still(window(append([]line{rule(title, width)}, pane...), 0, height))
	}
	if height < lowView {
		return list(height)
	}
	p := list(height - room - 1)
	p.lines = window(p.lines, 0, height-room-1)
	for len(p.lines) < height-room-1 {
		p.lines = append(p.lines, nil)
	}
	p.lines = append(append(p.lines, rule(title, width)), pane[:room]...)
	return p
}

// rule is a thin line with a title.
func rule(title string, width int) line {
	if title == "" {
		return line{{strings.Repeat("─", max(width, 0)), faint}}
	}
	return line{{"── ", faint}, {title, strong}, {" " + strings.Repeat("─", max(width-cells(title)-4, 0)), faint}}
}

// window cuts lines to height, from top on.
func window(lines []line, top, height int) []line {
	top = min(max(top, 0), max(len(lines)-height, 0))
	return lines[top:min(top+max(height, 0), len(lines))]
}

// page is what a view draws: lines, and where the cursor stands so that a
// screen reader follows the selection; a negative row is none.
type page struct {
	lines []line
	x, y  int
}

// still is a page without a cursor.
func still(lines []line) page { return page{lines: lines, y: -1} }
