package tui

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// Sizes of the frame.
const (
	headLines = 3 // identity, command and evidence, views
	footLines = 2 // what was last told, keys; in a low window they share one
	lowWindow = 15
	// below this width the names of the views do not fit
	namesWidth = 76
)

// edge is how a mode looks without colour: the mark at both ends of every line,
// the fill of the line of views, and the word around it.
type edge struct{ left, right, fill, badge, line string }

// edgeOf is the edge of a snapshot. Break-glass in a drill keeps the mark of the
// drill at the right: a person must see both.
func edgeOf(sc *scene) edge {
	e := edgeOfMode(sc.snap.Mode)
	if sc.snap.Mode == model.BreakGlass && sc.snap.Rehearsal {
		drill := edgeOfMode(model.Rehearsing)
		e.right, e.badge = drill.right, e.badge+"- REHEARSAL - "
	}
	return e
}

func edgeOfMode(m model.Mode) edge {
	switch m {
	case model.Live:
		return edge{" ", " ", "─", " LIVE ", ""}
	case model.Rehearsing:
		return edge{":", ":", "-", " - REHEARSAL - ", "REHEARSAL: a simulated fleet; nothing here reaches a real one"}
	case model.BreakGlass:
		return edge{"#", "#", "═", " # BREAK-GLASS # ", "BREAK-GLASS: an override is on hosts or on its way; u removes it"}
	case model.ReadOnly:
		return edge{"|", "|", ".", " | READ-ONLY | ", "READ-ONLY: you can look, not act; no key of yours is in the trust root"}
	default:
		return edge{" ", " ", ".", " ? MODE NOT READ ? ", ""}
	}
}

// inner is the width between the edges.
func (m *console) inner() int { return max(m.width-2, 0) }

// room is the height between header and footer.
func (m *console) room() int { return max(m.height-headLines-m.foot(), 0) }

// foot is the height of the footer.
func (m *console) foot() int {
	if m.height < lowWindow {
		return footLines - 1
	}
	return footLines
}

// frame is the whole screen, and where the cursor stands (y < 0: nowhere).
func (m *console) frame() (content string, x, y int) {
	if m.width <= 0 || m.height <= 0 {
		return "", 0, -1
	}
	body := m.body()
	lines := m.header()
	top := len(lines)
	lines = append(lines, window(body.lines, 0, m.room())...)
	for len(lines) < m.height-m.foot() {
		lines = append(lines, nil)
	}
	lines = append(lines, m.footer()...)
	if len(lines) > m.height {
		lines = lines[:m.height]
	}
	e := edgeOf(&m.sc)
	var b strings.Builder
	b.Grow(m.width * m.height * 2)
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if m.width < 3 {
			m.ink.paint(&b, l, m.width)
			continue
		}
		m.ink.paint(&b, say(strong, e.left), 1)
		m.ink.paint(&b, l, m.inner())
		m.ink.paint(&b, say(strong, e.right), 1)
	}
	x, y = body.x+1, body.y+top
	if m.mode == inFilter {
		x, y = cells(filterLabel)+cells(m.views[m.at].(filtered).list().filter)+1, m.height-1
		return b.String(), min(x, m.width-1), y
	}
	if body.y < 0 || y >= m.height-m.foot() || x >= m.width {
		return b.String(), 0, -1
	}
	return b.String(), x, y
}

// body is what the mode puts between header and footer.
func (m *console) body() page {
	w, h := m.inner(), m.room()
	switch m.mode {
	case inPrompt:
		return m.prompt.draw(w, h)
	case inChoose:
		return m.chooser.draw(w, h)
	case inDecide:
		return m.decision.draw(w, h)
	case inConfirm, inTyped, inWait, inResult:
		return m.dialog.draw(&m.sc, m.opt.Real(), w, h)
	case inEnding:
		return m.ending.draw(w, h)
	case inHelp:
		return still(m.helpWindow(w, h))
	case inLeave:
		return still(m.leaveLines(w))
	}
	return m.views[m.at].Draw(&m.sc)
}

// header stands in every frame.
func (m *console) header() []line {
	w, sc := m.inner(), &m.sc
	e := edgeOf(sc)
	clockText := sc.now.UTC().Format("15:04 UTC")
	left := line{{e.badge, badge}, {"  " + orDefault(sc.snap.Fleet, "fleet not read yet"), strong}}
	who := commander(sc)
	ends, head := policyLeft(sc), logHead(sc)
	if m.width < namesWidth {
		right := line{{fmt.Sprintf(" [%d] ", m.at+1), strong}, {clockText, normal}}
		return append(narrow(left, right, line{{who.glyph(), who.ink}, {who.text, who.ink}}, w),
			justify(line{{ends.glyph(), ends.ink}, {ends.text, ends.ink}}, line{{head.text, head.ink}}, w))
	}
	in := incidentName(sc)
	left = append(left, span{"   " + in.text, in.ink})
	return []line{justify(left, line{{"  " + clockText, strong}}, w), evidence(who, ends, head, w), m.tabs(e, w)}
}

// narrow is where we stand and who commands, in a window that has no room for
// both as they are: the mode loses its marks first, then the fleet moves to the
// second line. Neither is ever cut off for the other.
func narrow(left, right, who line, width int) []line {
	room := width - cells(right.plain())
	if cells(left.plain()) > room {
		var words []string
		for _, word := range strings.Fields(left[0].text) {
			if len(word) > 1 {
				words = append(words, word)
			}
		}
		left[0].text = " " + strings.Join(words, " ") + " "
	}
	if cells(left.plain()) > room {
		short := strings.NewReplacer(" (you)", "").Replace(who[1].text)
		who = line{{" " + strings.TrimSpace(left[1].text) + " ", strong}, who[0], {short, who[1].ink}}
		left = left[:1]
	}
	return []line{justify(left, right, width), who}
}

// evidence is who commands, and by what policy and log; in the shortest words
// that are needed to have all of it in one line.
func evidence(who, ends, head span, width int) line {
	right := line{{ends.glyph(), ends.ink}, {ends.text, ends.ink}, {"   ", normal}, {head.text, head.ink}}
	if cells(who.text)+cells(right.plain())+gap > width {
		right[1].text = strings.TrimPrefix(right[1].text, "policy ")
		who.text = strings.NewReplacer(" (you)", "", " commands", "").Replace(who.text)
	}
	return justify(line{{who.glyph(), who.ink}, {who.text, who.ink}}, right, width)
}

// glyph of a span with the blank after it; nothing for what is normal.
func (s span) glyph() string {
	if s.ink.word() == "" || s.ink == normal {
		return " "
	}
	return s.ink.glyph() + " "
}

// justify puts one line at the left and one at the right; the right one stays.
func justify(left, right line, width int) line {
	room := width - cells(right.plain())
	var out line
	for _, s := range left {
		s.text = clip(s.text, room)
		room -= cells(s.text)
		out = append(out, s)
	}
	out = append(out, span{spaces(room), normal})
	return append(out, right...)
}

// tabs are the views on a rule whose fill shows the mode.
func (m *console) tabs(e edge, width int) line {
	l := line{{e.fill, faint}}
	used := 1
	for i, name := range viewNames(m.keys) {
		text, mark := " "+name+" ", faint
		if i == m.at {
			text, mark = "["+name+"]", strong
		}
		l = append(l, span{text, mark}, span{e.fill, faint})
		used += cells(text) + 1
	}
	return append(l, span{strings.Repeat(e.fill, max(width-used, 0)), faint})
}

// viewNames are the views as the key map names them.
func viewNames(k keymap) []string {
	names := make([]string, 0, 6)
	for _, b := range k {
		if b.act >= goOverview && b.act <= goLog {
			names = append(names, b.keys[0]+" "+strings.ToUpper(b.label[:1])+b.label[1:])
		}
	}
	return names
}

func incidentName(sc *scene) span {
	in := &sc.snap.World.Incident
	switch {
	case !sc.read:
		return span{"", faint}
	case in.ID == "":
		return span{"no incident", faint}
	case in.OpenedAt.IsZero():
		return span{"incident " + orDefault(in.Title, in.ID), normal}
	default:
		return span{"incident " + sc.age(in.OpenedAt) + orPrefix(": ", in.Title), normal}
	}
}

func orPrefix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// commander says who commands and for how long.
func commander(sc *scene) span {
	l := &sc.snap.World.Incident.Lease
	switch {
	case !sc.read:
		return span{"command: not read yet", unknown}
	case l.Holder == "" && sc.snap.World.Incident.ID == "":
		return span{"nobody commands", faint}
	case l.Holder == "":
		return span{"nobody commands: i takes command", abnormal}
	case !sc.now.Before(l.Until):
		text := fmt.Sprintf("nobody commands: the lease of %s lapsed %s", l.Holder, sc.ago(l.Until))
		if l.Deputy != "" {
			text += ", deputy " + l.Deputy
		}
		return span{text, abnormal}
	}
	who := l.Holder + " commands"
	if l.Holder == sc.snap.Person {
		who = l.Holder + " (you) commands"
	}
	text := who + ", " + length(l.Until.Sub(sc.now), false) + " left"
	if l.Deputy != "" {
		text += ", deputy " + l.Deputy
	}
	if l.OfferedTo != "" {
		text += ", offered to " + l.OfferedTo
	}
	if !l.Confirmed {
		return span{text + ", unconfirmed", abnormal}
	}
	return span{text, normal}
}

// policyLeft is the version of the policy and how long it still permits to
// loosen.
func policyLeft(sc *scene) span {
	end := sc.snap.PolicyEnd
	version := fmt.Sprintf("policy v%d", sc.snap.World.Policy.Version)
	switch {
	case end.IsZero():
		return span{"policy: not read yet", unknown}
	case !sc.now.Before(end):
		return span{version + " expired " + length(sc.now.Sub(end), false) + " ago", critical}
	case end.Sub(sc.now) < policySoon:
		return span{version + ", " + length(end.Sub(sc.now), false) + " left", abnormal}
	default:
		return span{version + ", " + length(end.Sub(sc.now), false) + " left", normal}
	}
}

func logHead(sc *scene) span {
	h := sc.snap.Head
	switch {
	case h.Size > 0:
		return span{fmt.Sprintf("log %d %.8s", h.Size, h.Root), normal}
	case !sc.read:
		return span{"log: not read yet", faint}
	default:
		return span{"log: no entry this session", faint}
	}
}
