package tui

import (
	"fmt"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/runbooks/run"
)

// decision is a question of a runbook with numbered answers. An answer gives no
// order: it says where the run goes on. It takes no key before the keyboard has
// been quiet, so that what is typed ahead decides nothing.
type decision struct {
	title   string
	about   []fact
	options []run.Choice
	shut    time.Time // real time of the last key that was not taken
	scroll  scroll
	lines   int
	room    int
	then    func(run.Choice) tea.Cmd
}

// maxPicks is how many answers have a key; the format allows no more.
const maxPicks = 9

func (d *decision) draw(width, height int) page {
	lines := facts(d.about, width)
	for i, o := range d.options {
		text := o.Means
		if o.Goto != "" {
			text += " -> " + o.Goto
		}
		lines = append(lines, facts([]fact{{fmt.Sprintf("%d", i+1), o.Choose + ": " + text, strong}}, width)...)
	}
	d.lines, d.room = len(lines), max(height-1, 1)
	d.scroll.top = min(d.scroll.top, max(d.lines-d.room, 0))
	body := append([]line{rule(d.title, width)}, window(lines, d.scroll.top, d.room)...)
	if rest := d.lines - d.scroll.top - d.room; rest > 0 && len(body) > 2 {
		body[len(body)-1] = say(abnormal, fmt.Sprintf(" %s %s below: down", abnormal.glyph(), count(rest+1, "line")))
	}
	return still(body)
}

// decide puts a question with numbered answers in front.
func (m *console) decide(d *decision) tea.Cmd {
	d.shut = m.opt.Real()
	d.options = d.options[:min(len(d.options), maxPicks)]
	m.close()
	m.decision, m.mode = d, inDecide
	return nil
}

func (m *console) decideKey(a action, text string) tea.Cmd {
	d, real := m.decision, m.opt.Real()
	switch {
	case a == back:
		m.close()
		m.tell(faint, "nothing was decided")
		return nil
	case d.scroll.move(a, d.lines, d.room):
		return nil
	case real.Sub(d.shut) < grace:
		d.shut = real
		m.tell(faint, "too early: no key was taken")
		return nil
	case a != pick:
		m.tell(faint, "the number of an answer takes it, esc goes back")
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(d.options) {
		m.tell(faint, fmt.Sprintf("there are answers 1 to %d", len(d.options)))
		return nil
	}
	m.close()
	return d.then(d.options[n-1])
}
