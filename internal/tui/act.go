package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// key takes one key press: the mode says who gets it.
func (m *console) key(msg tea.KeyPressMsg) tea.Cmd {
	b, known := m.keys.find(m.mode, msg.String())
	switch b.act {
	case interrupt:
		m.interrupted = true
		return tea.Quit
	case suspend:
		return tea.Suspend
	}
	m.notice = fact{}
	text := msg.Key().Text
	switch m.mode {
	case inFilter:
		return m.filterKey(b.act, text)
	case inPrompt:
		return m.promptKey(b.act, text)
	case inChoose:
		return m.chooserKey(b.act, text)
	case inDecide:
		return m.decideKey(b.act, text)
	case inConfirm, inTyped, inWait, inResult:
		return m.dialogKey(b.act, text)
	case inHelp:
		return m.helpKey(b.act)
	case inLeave:
		return m.leaveKey(b.act)
	case inEnding:
		return m.endingKey(b.act)
	}
	if !known {
		m.tell(faint, "no key here: ? lists those that work")
		return nil
	}
	return m.act(b.act)
}

// act does what an action means in the normal mode. The palette comes here too.
func (m *console) act(a action) tea.Cmd {
	if a >= goOverview && a <= goLog {
		return m.goTo(int(a - goOverview))
	}
	switch a {
	case goNext:
		return m.goTo((m.at + 1) % len(m.views))
	case goPrevious:
		return m.goTo((m.at + len(m.views) - 1) % len(m.views))
	case help:
		m.mode, m.help = inHelp, scroll{}
	case palette:
		return m.openPalette()
	case shed:
		return m.openShed()
	case recovery:
		return m.openRecovery()
	case breakGlass:
		return m.openGlass()
	case undo:
		return m.openUndo()
	case command:
		return m.openIncident()
	case cosignature:
		return m.openCosign()
	case faults:
		return m.openFaults()
	case quit:
		return m.leave()
	case filter:
		return m.openFilter()
	default:
		return m.inView(a)
	}
	return nil
}

// inView hands an action to the view in front and does what it wishes.
func (m *console) inView(a action) tea.Cmd {
	out := m.views[m.at].Update(&m.sc, a)
	switch {
	case out.says != "":
		m.tell(faint, out.says)
	case out.wish != nil:
		return m.grant(out.wish)
	case !out.handled && a == back:
		return m.clearFilter()
	case !out.handled && (a == skipStep || a == abortRun):
		m.tell(faint, "that key leaves the step of a run: none is in front (4 has runbooks)")
	case !out.handled:
		m.tell(faint, "that key moves a list: this view has none (2, 4, 5 and 6 do)")
	}
	return nil
}

// grant turns the wish of a view into a question to the desk.
func (m *console) grant(wish any) tea.Cmd {
	switch w := wish.(type) {
	case askWish:
		return m.begin(w.ask)
	case planWish:
		return m.askPlan(w.backend)
	case pushWish:
		return m.confirmPush()
	case beginWish:
		return m.beginRun(w.book)
	case stepWish:
		return m.takeStep()
	case skipWish:
		return m.leaveStep("skip "+m.book.follow.Current, "why is it skipped?", func(ctx context.Context, why string) (Following, error) { return m.opt.Runs.Skip(ctx, why) })
	case abortWish:
		return m.leaveStep("abort the run of "+m.book.follow.Runbook, "why does it end here?", func(ctx context.Context, why string) (Following, error) { return m.opt.Runs.Abort(ctx, why) })
	}
	return nil
}

func (m *console) openFilter() tea.Cmd {
	if _, has := m.views[m.at].(filtered); !has {
		m.tell(faint, "nothing to filter in this view: 2, 4, 5 and 6 have lists")
		return nil
	}
	m.mode = inFilter
	return nil
}

func (m *console) clearFilter() tea.Cmd {
	if f, has := m.views[m.at].(filtered); has && f.list().filter != "" {
		f.list().filter = ""
		return nil
	}
	m.tell(faint, "nothing to go back from: 1 is the overview, q quits")
	return nil
}

func (m *console) filterKey(a action, text string) tea.Cmd {
	f, has := m.views[m.at].(filtered)
	if !has {
		m.mode = inNormal
		return nil
	}
	in := input{text: f.list().filter, most: maxFilter}
	switch {
	case a == enter:
		m.mode = inNormal
	case a == back:
		in.text, m.mode = "", inNormal
	case a == moveDown || a == moveUp:
		m.views[m.at].Update(&m.sc, a)
	case in.edit(a):
	default:
		in.insert(text)
	}
	f.list().filter = in.text
	return nil
}

func (m *console) promptKey(a action, text string) tea.Cmd {
	p := m.prompt
	switch {
	case a == back:
		return p.quit()
	case a == enter && p.need && p.input.text == "":
		m.tell(abnormal, "this cannot be empty; esc goes back, nothing is done")
	case a == enter:
		return p.then(p.input.text)
	case p.input.edit(a):
	default:
		m.intoPrompt(text)
	}
	return nil
}

func (m *console) intoPrompt(text string) {
	if !m.prompt.input.insert(text) {
		m.tell(abnormal, "no room: at most "+count(m.prompt.input.most, "byte"))
	}
}

func (m *console) chooserKey(a action, text string) tea.Cmd {
	c := m.chooser
	switch {
	case a == back:
		m.close()
	case a == moveDown || a == moveUp:
		c.move(a)
	case a == enter:
		return m.choose()
	case c.input.edit(a):
		c.reset()
	case text != "":
		c.input.insert(text)
		c.reset()
	}
	return nil
}

func (m *console) choose() tea.Cmd {
	ch, found := m.chooser.chosen()
	switch {
	case !found:
		m.tell(faint, "nothing is selected; esc goes back")
		return nil
	case ch.why != "":
		m.tell(faint, ch.label+": "+ch.why)
		return nil
	}
	m.close()
	return ch.run()
}

// helpKey scrolls the help; q and ? close it like escape.
func (m *console) helpKey(a action) tea.Cmd {
	if a == back || a == help || a == quit {
		m.mode = inNormal
		return nil
	}
	m.help.move(a, len(m.helpLines(m.inner())), m.room())
	return nil
}

// paste is welcome where text is asked for and nowhere else.
func (m *console) paste(text string) {
	switch m.mode {
	case inPrompt:
		m.intoPrompt(m.prompt.paste(text))
	case inFilter:
		m.filterKey(noAction, text)
	case inChoose:
		m.chooserKey(noAction, text)
	case inConfirm, inTyped:
		m.dialog.shut = m.opt.Real()
		m.tell(abnormal, "a paste is no answer: it was ignored, type it")
	default:
		m.tell(faint, "a paste is no command: it was ignored")
	}
}
