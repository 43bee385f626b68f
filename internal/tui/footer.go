package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// footer is the last thing told and the keys that work now.
func (m *console) footer() []line {
	w := m.inner()
	told := m.told()
	last := line{{" " + told.ink.glyph() + " ", told.ink}, {told.text, told.ink}}
	switch {
	case m.foot() == footLines:
		return []line{last, m.hints(w)}
	case m.notice.text != "" && m.mode != inFilter:
		return []line{last}
	default:
		return []line{m.hints(w)}
	}
}

// told is one sentence: what was last told, else what must not be forgotten.
func (m *console) told() fact {
	old := m.sc.now.Sub(m.sc.snap.At)
	switch {
	case m.notice.text != "":
		return m.notice
	case m.sc.running > 0:
		return fact{text: "on its way: " + joined(m.busy()), ink: normal}
	case m.sc.read && old > deskOld:
		return fact{text: fmt.Sprintf("stale: every number here is at least %s old", m.sc.old(old)), ink: stale}
	default:
		return fact{text: edgeOf(&m.sc).line, ink: strong}
	}
}

// filterLabel stands before a filter while it is typed.
const filterLabel = "   /"

// hints are the keys of the mode, from the key map, as many as fit.
func (m *console) hints(width int) line {
	if m.mode == inFilter {
		f := m.views[m.at].(filtered)
		return append(line{{filterLabel, strong}, {f.list().filter, normal}, {"   ", faint}}, m.hintsOf(width-cells(f.list().filter)-7)...)
	}
	return append(line{{"   ", normal}}, m.hintsOf(width-margin)...)
}

func (m *console) hintsOf(width int) line {
	var l line
	for _, b := range m.keys {
		if b.in&m.mode == 0 || b.hint == "" || b.own && !m.owns(b.act) {
			continue
		}
		key, text := shown(b.keys[0]), " "+b.hint
		if len(l) > 0 {
			key = spaces(gap) + key
		}
		if width -= cells(key) + cells(text); width < 0 {
			break
		}
		l = append(l, span{key, strong}, span{text, faint})
	}
	return l
}

func (m *console) owns(a action) bool {
	for _, o := range m.views[m.at].Keys() {
		if o.act == a {
			return true
		}
	}
	return false
}

// leave quits, or says first what goes on without this console.
func (m *console) leave() tea.Cmd {
	if len(m.leaveFacts()) == 0 {
		return tea.Quit
	}
	m.mode = inLeave
	return nil
}

func (m *console) leaveKey(a action) tea.Cmd {
	switch a {
	case yes, quit:
		return tea.Quit
	case back:
		m.mode = inNormal
	case help:
		m.mode, m.help = inHelp, scroll{}
	default:
		m.tell(faint, "y leaves, esc stays")
	}
	return nil
}

// leaveFacts are what stays behind; of a scenario nothing does.
func (m *console) leaveFacts() []fact {
	if m.opt.Drill != nil {
		return []fact{{"rehearsal", m.opt.Drill.Leaving(), abnormal}}
	}
	var list []fact
	for _, title := range m.busy() {
		list = append(list, fact{"on its way", title + ": its outcome will not be seen here (ic status)", abnormal})
	}
	if f := m.book.follow; f != nil && !f.Finished {
		list = append(list, fact{"runbook", "run " + f.Run + " of " + f.Runbook + " stands at " + f.Current + ": ic runbook resume takes it up", abnormal})
	}
	for i := range m.sc.snap.Live {
		list = append(list, goesOn(&m.sc, &m.sc.snap.Live[i]))
	}
	for i := range m.sc.snap.Overrides {
		o := &m.sc.snap.Overrides[i]
		list = append(list, fact{"override", shortIDs(o.IDs) + " by " + o.Backend + " stays until it is removed (ic break undo)", abnormal})
	}
	if in := &m.sc.snap.World.Incident; in.ID != "" && in.Lease.Held(m.sc.snap.Person, m.sc.now) {
		list = append(list, fact{"command", "you keep it for " + length(in.Lease.Until.Sub(m.sc.now), false) + "; offer it first (i) if somebody takes over", normal})
	}
	return list
}

// goesOn says how an order ends without this console.
func goesOn(sc *scene, l *incident.LiveView) fact {
	d := &l.Issued.Directive
	if d.Kind == model.Bypass || !d.NotAfter.IsZero() {
		return fact{"goes on", fmt.Sprintf("%s; ends %s (in %s) on every host by itself", what(l), clock(d.NotAfter), sc.left(d.NotAfter)), normal}
	}
	return fact{"goes on", what(l) + "; until somebody ends it", normal}
}

func (m *console) leaveLines(width int) []line {
	title := "leaving: what goes on without this console"
	if m.opt.Drill != nil {
		title = "leaving the rehearsal"
	}
	lines := append([]line{rule(title, width)}, facts(m.leaveFacts(), width)...)
	return append(lines, nil, line{{"   y", strong}, {" or ", faint}, {"q", strong}, {" leaves, ", faint}, {"esc", strong}, {" stays", faint}})
}

// farewell is what is printed when the screen is gone.
func (m *console) farewell() string {
	if m.opt.Drill != nil {
		return "" // nothing goes on, and the card says the rest
	}
	var b strings.Builder
	for _, f := range m.leaveFacts() {
		fmt.Fprintf(&b, "ic: %s: %s\n", f.label, f.text)
	}
	return b.String()
}
