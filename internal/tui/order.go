package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// directionWord names the asymmetry that a confirmation belongs to.
func directionWord(d model.Direction) string {
	switch d {
	case model.Tighten:
		return "TIGHTEN"
	case model.Recover:
		return "RECOVER"
	case model.Loosen:
		return "LOOSEN"
	default:
		return strings.ToUpper(string(d))
	}
}

// orderFacts are a confirmation: who decides, how far it reaches, the worst
// case, when it ends, how it was rehearsed, what users lose.
func orderFacts(sc *scene, p *incident.Preview) []fact {
	d := &p.Request.Directive
	list := []fact{
		{"decides", p.Who + "; co-signs: " + p.Cosign, normal},
		{"reach", bounds(d), normal},
	}
	if p.Exposure != nil {
		list = append(list, fact{"worst case", worst(p.Exposure), abnormal})
	}
	if sc.now.Before(d.NotBefore) {
		list = append(list, fact{"starts", "in " + sc.left(d.NotBefore) + ", at " + clock(d.NotBefore), normal})
	}
	switch {
	case !d.NotAfter.IsZero():
		list = append(list, fact{"ends", fmt.Sprintf("%s, in %s, on every host by itself", clock(d.NotAfter), length(d.NotAfter.Sub(sc.now), true)), normal})
	case d.Kind != model.End:
		list = append(list, fact{"ends", "not by itself: until somebody ends it", normal})
	}
	list = append(list, fact{"rehearsed", sc.rehearsed(p.Rehearsed), normal})
	if p.Practised != nil {
		list = append(list, fact{"", p.Practised.Name + ": " + sc.rehearsed(p.Practised.Rehearsal), normal})
	}
	if p.Review != "" {
		list = append(list, fact{"afterwards", "somebody of " + p.Review + " reviews it", normal})
	}
	if p.UserText != "" {
		list = append(list, fact{"users see", p.UserText, normal})
	}
	for _, j := range p.Journeys {
		list = append(list, fact{"users lose", j, abnormal})
	}
	if p.Opens {
		list = append(list, fact{"incident", "none is open: this opens one and gives you command", normal})
	}
	list = append(list, fact{"reason", orDefault(d.Reason, "none given (ctrl+e writes one)"), normal})
	if p.Request.Evidence != "" {
		list = append(list, fact{"evidence", p.Request.Evidence, normal})
	}
	return append(append(list, verdictOf(sc, p)...), fact{"say", lineToSay(p), faint})
}

// verdictOf is the verdict as a word, the assurance, and what is missing.
func verdictOf(sc *scene, p *incident.Preview) []fact {
	v := &p.Verdict
	i := strong
	if v.Outcome != model.Permitted {
		i = abnormal
	}
	list := []fact{{"verdict", string(v.Outcome) + ", " + string(v.Assurance), i}}
	for _, r := range v.Reasons {
		list = append(list, fact{"", decisions.Sentence(r), normal})
	}
	return list
}

// lineToSay is what is said aloud before the order is given.
func lineToSay(p *incident.Preview) string {
	text := "Proposal: " + p.Title
	if p.Exposure != nil {
		text += ", at worst " + p.Exposure.WorstCase.String()
	}
	return text + ". Any strong objections?"
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// dialogKey answers, scrolls or leaves the dialog in front.
func (m *console) dialogKey(a action, text string) tea.Cmd {
	d, real := m.dialog, m.opt.Real()
	switch {
	case a == back:
		m.leaveDialog(d)
		return nil
	case d.scroll.move(a, d.lines, d.room):
		return nil
	case d.stage == done && a == enter:
		m.close()
		return nil
	case d.stage == done && a == copyLine:
		return m.copy(d)
	case d.stage != asking:
		return nil
	case !d.quiet(real):
		m.tell(faint, "too early: no key was taken")
		return m.afterGrace()
	}
	switch {
	case a == copyLine:
		return m.copy(d)
	case a == editReason:
		return m.writeReason(d)
	case m.mode == inTyped:
		return m.typedKey(d, a, text)
	case a == yes:
		return m.give(d)
	case a == enter:
		m.leaveDialog(d)
	default:
		m.tell(faint, "y gives the order, enter and esc cancel")
	}
	return nil
}

// typedKey takes the text that spells the order out.
func (m *console) typedKey(d *dialog, a action, text string) tea.Cmd {
	real := m.opt.Real()
	switch {
	case a == enter && d.text.text == "":
		m.leaveDialog(d)
	case a == enter && !d.matched():
		m.tell(abnormal, "that is not the text: nothing was done")
	case a == enter && d.tooFast(real):
		d.text.text, d.shut = "", real
		m.tell(abnormal, "that came faster than it can be typed: ignored, type it")
		return m.afterGrace()
	case a == enter:
		return m.give(d)
	case d.text.edit(a):
	default:
		d.insert(text, real)
	}
	return nil
}

// give gives the order, if nothing is in the way.
func (m *console) give(d *dialog) tea.Cmd {
	switch blocks := d.blocks(&m.sc); {
	case len(blocks) > 0:
		m.tell(abnormal, "cannot be given now: "+blocks[0])
		return nil
	case d.cut && d.typed != "":
		m.tell(abnormal, "this window is too small to show what you would do: make it larger")
		return nil
	case !d.seen && d.typed != "":
		m.tell(abnormal, "read the lines below first: down")
		return nil
	}
	d.stage, m.mode = going, inWait
	return d.give()
}

// leaveDialog goes back to the view; an order on its way goes on.
func (m *console) leaveDialog(d *dialog) {
	text := d.title + ": cancelled, nothing was done"
	switch d.stage {
	case going:
		text = d.title + " is on its way: its outcome will be told here"
	case done:
		text = ""
	}
	m.close()
	m.tell(faint, text)
}

func (m *console) writeReason(d *dialog) tea.Cmd {
	if d.ask == nil {
		m.tell(faint, "this one takes no reason")
		return nil
	}
	m.promptFor(d, askReason, &d.ask.Reason, d.facts(&m.sc))
	return nil
}

// copy hands the line to say, or a token, to the terminal's clipboard.
func (m *console) copy(d *dialog) tea.Cmd {
	if d.copy == "" {
		m.tell(faint, "there is nothing to copy here")
		return nil
	}
	m.tell(faint, "sent to the clipboard, if this terminal allows it")
	return tea.SetClipboard(d.copy)
}
