package tui

import (
	"fmt"
	"strings"
)

// helpLines are the key map as it works for the view in front: in two columns if
// they fit, then the keys of dialogs and of text.
func (m *console) helpLines(width int) []line {
	own, everywhere := m.keys.listed(inNormal, m.views[m.at].Keys())
	left := append([]line{say(faint, "   in "+viewNames(m.keys)[m.at])}, printed(own)...)
	left = append(left, nil, say(faint, "   marks"))
	for i := abnormal; i <= selected; i++ {
		left = append(left, line{{"   " + pad(i.glyph(), keyWidth, false), i}, {i.word(), normal}})
	}
	right := append([]line{say(faint, "   everywhere")}, printed(everywhere)...)
	var lines []line
	if width < 72 {
		lines = append(append(left, nil), right...)
	} else {
		lines = beside(left, right, width)
	}
	for _, section := range []struct {
		title string
		in    mode
	}{
		{"in a confirmation of one key", inConfirm}, {"in a confirmation that is typed", inTyped},
		{"in a question of a runbook", inDecide}, {"in a list to choose from", inChoose}, {"in a line of text", inPrompt},
	} {
		_, list := m.keys.listed(section.in, nil)
		lines = append(append(lines, nil, say(faint, "   "+section.title)), printed(list)...)
	}
	return lines
}

// helpWindow is what of the help is in sight, and how much is not.
func (m *console) helpWindow(width, height int) []line {
	lines := m.helpLines(width)
	shownLines := window(lines, m.help.top, height)
	if rest := len(lines) - m.help.top - height; rest > 0 && height > 1 {
		shownLines[height-1] = say(faint, fmt.Sprintf("   %s below: j", count(rest+1, "line")))
	}
	return shownLines
}

// keyWidth is the column of the keys in the help.
const keyWidth = 13

// printed are bindings as lines. The keys of the views share one.
func printed(list []binding) []line {
	var lines []line
	var views []string
	for _, b := range list {
		keys := make([]string, len(b.keys))
		for i, k := range b.keys {
			keys[i] = shown(k)
		}
		if b.act >= goOverview && b.act <= goLog {
			views = append(views, keys[0])
			if b.act < goLog {
				continue
			}
			keys, b.label = []string{views[0] + ".." + views[len(views)-1]}, "the six views"
		}
		lines = append(lines, line{{"   " + pad(strings.Join(keys, " "), keyWidth, false), strong}, {b.label, normal}})
	}
	return lines
}

// beside puts two blocks next to each other.
func beside(left, right []line, width int) []line {
	half := 0
	for _, l := range left {
		half = max(half, cells(l.plain()))
	}
	half = min(half+1, width/2)
	var out []line
	for i := range max(len(left), len(right)) {
		var l line
		if i < len(left) {
			l = justify(left[i], nil, half)
		} else {
			l = line{{spaces(half), normal}}
		}
		if i < len(right) {
			l = append(l, right[i]...)
		}
		out = append(out, l)
	}
	return out
}
