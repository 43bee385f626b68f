package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// Drill is a world that ends with this console: a scenario that is rehearsed at it.
type Drill struct {
	Welcome string        // one sentence: whose seat this is, and how fast time goes
	Runbook string        // that is to be followed; "": none
	Leaving func() string // what leaving now means
	Over    <-chan Ending // receives one when the scenario is over
}

// Ending is what came of a rehearsal: the last screen. Its texts are fit to print.
type Ending struct {
	Title   string
	Verdict string
	Passed  bool
	Why     []string
	Columns []string // headings: the axis, this run, and the runs it is held against
	Rows    []EndingRow
	Notes   []string // what is worse than the last time, and where the rest is
}

// EndingRow is one axis of the score card.
type EndingRow struct {
	Cells    []string // as many as there are columns, at most
	Abnormal bool
	Unknown  bool
}

// endingLimit is how long the last screen stays in front of nobody, in real time: a
// terminal without a person must not hold up what started the console.
const endingLimit = 10 * time.Minute

// ending is the last screen in front of a person.
type ending struct {
	Ending
	shut   time.Time // real time of the last key that was not taken
	scroll scroll
	lines  int
	room   int
}

type (
	endingMsg struct{ e Ending }
	goneMsg   struct{} // nobody has left the last screen
)

// awaitEnding waits for the end of a scenario.
func (m *console) awaitEnding() tea.Cmd {
	if m.opt.Drill == nil {
		return nil
	}
	return guard(func() tea.Msg {
		select {
		case <-m.ctx.Done():
			return nil
		case e := <-m.opt.Drill.Over:
			return endingMsg{e}
		}
	})
}

// ends puts the last screen in front, over whatever was open: the world that it was
// about is gone. What was typed into that leaves nothing.
func (m *console) ends(e Ending) tea.Cmd {
	m.close()
	m.notice = fact{}
	if f := m.book.follow; f != nil && f.cancel != nil {
		f.cancel()
		f.busy, f.cancel = false, nil
	}
	clear(m.running)
	m.ending, m.mode = &ending{Ending: e, shut: m.opt.Real()}, inEnding
	return tea.Tick(endingLimit, func(time.Time) tea.Msg { return goneMsg{} })
}

func (m *console) endingKey(a action) tea.Cmd {
	e, real := m.ending, m.opt.Real()
	switch {
	case e.scroll.move(a, e.lines, e.room):
		return nil
	case real.Sub(e.shut) < grace:
		e.shut = real
		m.tell(faint, "the scenario is over: that key was not taken")
		return nil
	case a == enter || a == quit:
		return tea.Quit
	}
	m.tell(faint, "the scenario is over: q or enter leaves")
	return nil
}

// draw is the verdict, why, the short card, and where the rest is.
func (e *ending) draw(width, height int) page {
	verdict := abnormal
	if e.Passed {
		verdict = strong
	}
	lines := []line{rule("REHEARSAL is over: "+e.Title, width)}
	lines = append(lines, sentence(verdict, e.Verdict, width)...)
	for _, why := range e.Why {
		lines = append(lines, sentence(normal, why, width)...)
	}
	lines = append(append(lines, nil), e.card(width)...)
	if len(e.Notes) > 0 {
		lines = append(lines, nil)
	}
	for _, note := range e.Notes {
		lines = append(lines, sentence(faint, note, width)...)
	}
	e.lines, e.room = len(lines), height
	e.scroll.top = min(e.scroll.top, max(e.lines-e.room, 0))
	body := window(lines, e.scroll.top, height)
	if rest := e.lines - e.scroll.top - height; rest > 0 && height > 1 {
		body[height-1] = say(faint, "   "+count(rest+1, "line")+" below: j")
	}
	return still(body)
}

// card is the axes; what does not fit the window is the last of the other runs.
func (e *ending) card(width int) []line {
	if len(e.Columns) == 0 {
		return nil
	}
	columns := make([]column, len(e.Columns))
	for i, title := range e.Columns {
		columns[i] = column{title: title, least: cells(title)}
		if i > 1 {
			columns[i].drop = len(e.Columns) - i
		}
	}
	rows := make([]record, len(e.Rows))
	for i, r := range e.Rows {
		for j := range e.Columns {
			cell := span{ink: normal}
			if j < len(r.Cells) {
				cell.text = r.Cells[j]
			}
			rows[i].cells = append(rows[i].cells, cell)
		}
		switch {
		case r.Abnormal:
			rows[i].mark = abnormal
		case r.Unknown:
			rows[i].mark = unknown
		}
	}
	return draw(columns, rows, width)
}
