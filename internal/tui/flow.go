package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// answer is what came back from the desk, with the question it belongs to.
type answer struct {
	q    question
	body any
}

// Bodies of answers.
type (
	previewed struct {
		preview incident.Preview
		err     error
	}
	offered struct{ choices []choice } // for a chooser
	planned struct {
		plan incident.BreakPlan
		err  error
	}
	progressed struct{ progress incident.Progress }
	executed   struct {
		title  string
		result incident.Result
		err    error
	}
)

// answered puts an answer where its question still stands. What came of an
// order is told in any case; everything else is dropped when nobody waits.
func (m *console) answered(a answer) tea.Cmd {
	if cmd, mine := m.aboutRunbooks(a); mine {
		return cmd
	}
	switch body := a.body.(type) {
	case previewed:
		if d := m.dialog; d != nil && d.q == a.q && m.prompt == nil && (d.stage == drafting || d.stage == asking) {
			return m.drafted(d, body)
		}
	case offered:
		if c := m.chooser; c != nil && c.q == a.q {
			c.all, c.loading = body.choices, false
		}
	case planned:
		m.glass.planned(a.q, body)
	case progressed:
		if p := m.glass.push; p != nil && p.q == a.q {
			p.progress = &body.progress
		}
	case executed:
		m.finished(a.q, body)
	}
	return nil
}

// begin starts the way of one order: draft and verdict, reason, confirmation.
func (m *console) begin(ask decisions.Ask) tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	ask.Actor = m.sc.snap.Person
	m.dialog = &dialog{title: ask.Right, ask: &ask}
	m.mode = inWait
	return m.preview(m.dialog)
}

// preview asks the desk what the ask of a dialog would be.
func (m *console) preview(d *dialog) tea.Cmd {
	if d.draft != nil {
		d.q, d.drafted = m.question(d.title), m.opt.Real()
		return d.draft(d.q)
	}
	d.q = m.question(d.ask.Right)
	q, ask := d.q, *d.ask
	return guard(func() tea.Msg {
		p, err := m.desk.Preview(ask)
		return answer{q, previewed{p, err}}
	})
}

// drafted fills the dialog, unless the verdict wants words from the person
// first.
func (m *console) drafted(d *dialog, p previewed) tea.Cmd {
	if p.err != nil {
		m.close()
		m.tell(abnormal, p.err.Error())
		return nil
	}
	has := func(code model.Code) bool {
		return slices.ContainsFunc(p.preview.Verdict.Reasons, func(r model.Reason) bool { return r.Code == code })
	}
	was := len(d.blocks(&m.sc)) > 0
	if d.stage == drafting {
		d.title = p.preview.Title
		switch {
		case d.ask == nil: // a runbook has its own words
		case d.ask.Reason == "" && has(decisions.NoReason):
			m.promptFor(d, askReason, &d.ask.Reason, orderFacts(&m.sc, &p.preview))
			return nil
		case d.ask.Evidence == "" && has(decisions.NoEvidence):
			m.promptFor(d, "what have you seen that shows it is well? it is logged", &d.ask.Evidence, orderFacts(&m.sc, &p.preview))
			return nil
		}
		d.open(m.opt.Real())
	}
	m.fill(d, p.preview)
	if was && len(d.blocks(&m.sc)) == 0 {
		d.open(m.opt.Real()) // what had to be waited for has come: a new question
	}
	m.mode = d.mode(&m.sc)
	return m.afterGrace()
}

// afterGrace wakes the screen when a dialog begins to take keys.
func (m *console) afterGrace() tea.Cmd {
	return tea.Tick(grace, func(time.Time) tea.Msg { return redrawMsg{} })
}

// fill puts a draft and its verdict into a dialog.
func (m *console) fill(d *dialog, p incident.Preview) {
	d.title, d.typed = p.Title, p.Typed
	d.word = directionWord(p.Verdict.Direction)
	at := m.sc.now
	d.facts = func(sc *scene) []fact { return orderFacts(sc, &p) }
	d.copy = lineToSay(&p)
	d.blocked = nil
	if !givable(&p.Verdict) {
		// Sentences count down by the age of the verdict, not of the snapshot.
		d.blocked = func(sc *scene) []string {
			s := *sc
			s.snap.At = at
			return s.reasons(&p.Verdict)
		}
	}
	d.give = func() tea.Cmd {
		title, request := p.Title, p.Request
		return m.run(d.q, title, executeLimit, func(ctx context.Context) (incident.Result, error) {
			return m.desk.Execute(ctx, incident.Act{Request: request, Asked: true})
		})
	}
	if d.dress != nil {
		d.dress()
	}
}

// givable reports whether an order may be given as far as the verdict goes. What
// lacks only signatures is given as a proposal.
func givable(v *model.Verdict) bool {
	switch v.Outcome {
	case model.Permitted:
		return true
	case model.Needs:
		return !slices.ContainsFunc(v.Reasons, func(r model.Reason) bool { return r.Code != model.CodeQuorum })
	default:
		return false
	}
}

// askReason is the question behind every order that opens something.
const askReason = "why? it is written into the order and the log"

// promptFor asks for words that the verdict wants, then for the verdict again.
// Escape gives up a draft; it leaves a dialog that was open already as it was.
func (m *console) promptFor(d *dialog, label string, into *string, about []fact) {
	m.prompt = &prompt{
		title: d.title, about: about, label: label, input: input{text: *into, most: model.MaxReason}, need: d.stage == drafting,
		then: func(text string) tea.Cmd {
			*into = text
			m.prompt, m.mode, d.stage = nil, inWait, drafting
			return m.preview(d)
		},
		quit: func() tea.Cmd {
			if d.stage == drafting {
				m.close()
				return nil
			}
			d.open(m.opt.Real())
			m.prompt, m.mode = nil, d.mode(&m.sc)
			return m.afterGrace()
		},
	}
	m.mode = inPrompt
}

// run gives an order in the background and tells what came of it.
func (m *console) run(q question, title string, limit time.Duration, f func(context.Context) (incident.Result, error)) tea.Cmd {
	m.running[q.epoch] = title
	return guard(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, limit)
		defer cancel()
		result, err := f(ctx)
		return answer{q, executed{title, result, err}}
	})
}

// finished tells what came of an order: in its dialog if that is still in
// front, else in the line above the keys.
func (m *console) finished(q question, e executed) {
	delete(m.running, q.epoch)
	if p := m.glass.push; p != nil && p.q == q {
		p.done, p.result = true, e.result
		if e.err != nil {
			p.err = e.err.Error()
		}
	}
	i, text := stateInk(e.result.State), e.title+": "+string(e.result.State)
	if e.result.Total > 0 {
		text += fmt.Sprintf(", %d of %d hosts", e.result.Done, e.result.Total)
	}
	if e.err != nil && e.result.State != incident.Proposed {
		i, text = abnormal, e.title+": "+e.err.Error()
	}
	if d := m.dialog; d != nil && d.q == q {
		d.stage, d.result, d.copy, d.scroll = done, resultFacts(&e), e.result.Token, scroll{}
		m.mode = d.mode(&m.sc)
		return
	}
	m.tell(i, text)
	if e.result.Receipt != "" {
		m.tell(critical, e.title+": the record is not on disk; 1 shows the text to keep")
	}
}

// outcomeText is the state of a result and its detail, which may name the state
// itself.
func outcomeText(r *incident.Result) string {
	detail := strings.TrimPrefix(r.Detail, string(r.State)+": ")
	if detail == "" && r.Total > 0 {
		detail = fmt.Sprintf("%d of %d hosts report it", r.Done, r.Total)
	}
	if detail == "" {
		return string(r.State)
	}
	return string(r.State) + ": " + detail
}

// resultFacts are what came of an order.
func resultFacts(e *executed) []fact {
	r := &e.result
	var list []fact
	if r.State == incident.Proposed {
		return append(list, fact{"state", outcomeText(r), normal}, fact{"token", r.Token, normal},
			fact{"", "ctrl+y copies it: the other person presses c and pastes it", faint})
	}
	if e.err != nil {
		word := "failed"
		switch {
		case errors.Is(e.err, incident.ErrDenied):
			word = "denied"
		case errors.Is(e.err, incident.ErrNeeds):
			word = "needs"
		}
		list = append(list, fact{word, e.err.Error(), abnormal})
		if r.Detail != "" {
			list = append(list, fact{"detail", r.Detail, normal})
		}
	} else {
		list = append(list, fact{"state", outcomeText(r), stateInk(r.State)})
	}
	for _, text := range r.Reasons {
		list = append(list, fact{"why", text, normal})
	}
	label := "by hand"
	for _, text := range r.Advice {
		list, label = append(list, fact{label, strings.TrimPrefix(text, "by hand, now: "), abnormal}), ""
	}
	label = "carried"
	for _, c := range r.Carriers {
		list, label = append(list, fact{label, c, normal}), ""
	}
	if r.Receipt != "" {
		list = append(list, fact{"receipt", "the record could not be written; keep this text: " + r.Receipt, critical})
	}
	return list
}
