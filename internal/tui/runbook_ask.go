package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// takeStep asks what the current step has to be told, then tells it.
func (m *console) takeStep() tea.Cmd {
	f := m.book.follow
	switch why := m.sc.mayAct(); {
	case why != "":
		m.tell(abnormal, why)
		return nil
	case f.busy:
		m.tell(faint, "the step is under way: x skips it, X ends the run")
		return nil
	case f.Finished:
		return m.chooseUndo()
	}
	step := f.current()
	d := &dialog{title: orDefault(step.Title, step.ID)}
	d.draft = func(q question) tea.Cmd {
		return m.askRuns(q, func(ctx context.Context) (*run.Question, error) { return m.opt.Runs.Ask(ctx) })
	}
	d.answered = func(q *run.Question) tea.Cmd { return m.stepQuestion(d, step, q) }
	m.dialog, m.mode = d, inWait
	return m.preview(d)
}

func (m *console) askRuns(q question, ask func(context.Context) (*run.Question, error)) tea.Cmd {
	return guard(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, planLimit)
		defer cancel()
		asked, err := ask(ctx)
		return answer{q, stepAsked{asked, err}}
	})
}

// stepAsked takes the question of a step, if somebody still waits for it.
func (m *console) stepAsked(d *dialog, a stepAsked) tea.Cmd {
	if a.err != nil {
		m.close()
		m.book.follow.why = a.err.Error()
		m.tell(abnormal, a.err.Error())
		return nil
	}
	return d.answered(a.ask)
}

// stepQuestion puts the question of a step to the person, in the form that it has
// everywhere else.
func (m *console) stepQuestion(d *dialog, step *runbooks.Step, q *run.Question) tea.Cmd {
	next := func(a run.Answer, again func() tea.Cmd) tea.Cmd {
		return m.goOn(step, step.ID, again, func(ctx context.Context, told func(string)) (Following, error) { return m.opt.Runs.Next(ctx, a, told) })
	}
	if q == nil {
		m.close()
		return next(run.Answer{Asked: true}, nil)
	}
	switch q.Kind {
	case run.AskConfirm:
		return m.confirmStep(d, step, q, func() tea.Cmd { return next(run.Answer{Confirm: true, Asked: true}, nil) })
	case run.AskSeen:
		return m.askSeen(step, q.Text, "", func(seen string, again func() tea.Cmd) tea.Cmd {
			return next(run.Answer{Seen: seen, Asked: true}, again)
		})
	}
	return m.decide(&decision{
		title: d.title, about: []fact{{"", q.Text, strong}}, options: q.Options,
		then: func(c run.Choice) tea.Cmd {
			said := q.Kind == run.AskReality && c.Choose != run.ChooseAgain || q.Kind == run.AskNoData && c.Choose == run.ChooseHolds
			switch {
			case q.Kind != run.AskChoose && c.Choose == run.ChooseStop:
				m.tell(faint, "the run stands at "+step.ID)
				return nil
			case said:
				return m.askSeen(step, c.Means, "", func(seen string, again func() tea.Cmd) tea.Cmd {
					return next(run.Answer{Choose: c.Choose, Seen: seen, Asked: true}, again)
				})
			}
			return next(run.Answer{Choose: c.Choose, Asked: true}, nil)
		},
	})
}

// askSeen asks what was seen. What says nothing is refused by the engine, and asked
// for again with what was typed.
func (m *console) askSeen(step *runbooks.Step, label, text string, then func(seen string, again func() tea.Cmd) tea.Cmd) tea.Cmd {
	m.close()
	m.prompt = &prompt{
		title: orDefault(step.Title, step.ID), about: append(saysFacts(step), fact{"", "say what you see, such as a value, a name or a time: it is evidence", faint}),
		label: label, need: true, input: input{text: text, most: maxSeen},
		then: func(seen string) tea.Cmd {
			m.close()
			return then(seen, func() tea.Cmd { return m.askSeen(step, label, seen, then) })
		},
		quit: func() tea.Cmd { m.close(); return nil },
	}
	m.mode = inPrompt
	return nil
}

// maxSeen is the longest text of what was seen, in bytes: what the log keeps of it.
const maxSeen = 1000

// confirmStep confirms an effect as it is confirmed by hand: the same facts, the
// same text to type. What is given is what was shown.
func (m *console) confirmStep(d *dialog, step *runbooks.Step, q *run.Question, give func() tea.Cmd) tea.Cmd {
	about := fact{"runbook", m.book.follow.Runbook + ", step " + step.ID, normal}
	dress := func() {
		of := d.facts
		d.facts = func(sc *scene) []fact { return append([]fact{about}, of(sc)...) }
		d.give = func() tea.Cmd { m.close(); return give() }
	}
	switch {
	case q.Preview != nil:
		d.dress = dress
		return m.drafted(d, previewed{preview: *q.Preview})
	case q.Plan != nil:
		pushDialog(d, q.Plan)
	case step.Push != nil:
		m.undoFacts(d, step.Push.Undo, q.Text)
	default:
		d.facts = func(*scene) []fact { return []fact{{"what", q.Text, normal}} }
	}
	dress()
	return m.show(d)
}

// undoFacts are the removal of an override by a step.
func (m *console) undoFacts(d *dialog, backend, text string) {
	d.word, d.typed = "BREAK-GLASS", "undo "+backend
	for i := range m.sc.snap.Overrides {
		if o := m.sc.snap.Overrides[i]; o.Backend == backend {
			d.facts = func(sc *scene) []fact { return append([]fact{{"what", text, normal}}, overrideFacts(sc, &o)...) }
			return
		}
	}
	d.facts = func(*scene) []fact { return []fact{{"what", text, normal}} }
}

// chooseUndo offers what stands of a run that is over.
func (m *console) chooseUndo() tea.Cmd {
	f := m.book.follow
	var all []choice
	for _, u := range f.Undos {
		c := choice{label: u.Step, note: u.What, ink: abnormal, run: func() tea.Cmd { return m.undoStep(u) }}
		if u.What == "" {
			c.why = u.Why
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		m.tell(faint, "the run is over, and nothing of it is left to undo")
		return nil
	}
	m.chooser, m.mode = newChooser("undo what the run did", "", all), inChoose
	return nil
}

func (m *console) undoStep(u run.Undoable) tea.Cmd {
	f := m.book.follow
	step := f.Book.Step(u.Step)
	d := &dialog{title: "undo " + orDefault(u.Title, u.Step)}
	d.draft = func(q question) tea.Cmd {
		return m.askRuns(q, func(ctx context.Context) (*run.Question, error) { return m.opt.Runs.AskUndo(ctx, u.Step) })
	}
	give := func(a run.Answer) tea.Cmd {
		return m.goOn(step, u.Step, nil, func(ctx context.Context, told func(string)) (Following, error) {
			return m.opt.Runs.Undo(ctx, u.Step, a, told)
		})
	}
	d.answered = func(q *run.Question) tea.Cmd {
		switch {
		case q == nil:
			m.close()
			return give(run.Answer{Asked: true})
		case q.Kind == run.AskConfirm:
			undo := &runbooks.Step{ID: u.Step + ", undo"}
			if step.Undo != nil {
				undo.Push = step.Undo.Push
			}
			return m.confirmStep(d, undo, q, func() tea.Cmd { return give(run.Answer{Confirm: true, Asked: true}) })
		}
		return m.decide(&decision{title: d.title, about: []fact{{"", q.Text, strong}}, options: q.Options, then: func(c run.Choice) tea.Cmd {
			if c.Choose == run.ChooseStop {
				return nil
			}
			if q.Kind != run.AskReality || c.Choose == run.ChooseAgain {
				return give(run.Answer{Choose: c.Choose, Asked: true})
			}
			return m.askSeen(step, c.Means, "", func(seen string, again func() tea.Cmd) tea.Cmd {
				return give(run.Answer{Choose: c.Choose, Seen: seen, Asked: true})
			})
		}})
	}
	m.dialog, m.mode = d, inWait
	return m.preview(d)
}
