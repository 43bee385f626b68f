package tui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// runbookAt is the index of the view.
const runbookAt = 3

// Bodies of answers about runbooks.
type (
	shelved struct {
		shelf Shelf
		err   error
	}
	begun struct {
		going Going // that was taken up; zero: a new one
		book  *Book
		f     Following
		err   error
	}
	stepAsked struct {
		ask *run.Question
		err error
	}
	stepTold  struct{ text string }
	stepTaken struct {
		title string
		f     Following
		err   error
		again func() tea.Cmd // asks for words again that said nothing; nil: there were none
	}
)

// noRuns is why no runbook can be followed.
const noRuns = "this console has no shelf of runbooks (ic runbook list says why)"

// goTo puts a view in front. The shelf is read again whenever somebody comes to it.
func (m *console) goTo(at int) tea.Cmd {
	m.at = at
	if at == runbookAt {
		return m.readShelf()
	}
	return nil
}

func (m *console) readShelf() tea.Cmd {
	if m.opt.Runs == nil {
		return nil
	}
	m.book.asked = m.question("shelf")
	q := m.book.asked
	return guard(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, shelfLimit)
		defer cancel()
		shelf, err := m.opt.Runs.Shelf(ctx)
		return answer{q, shelved{shelf, err}}
	})
}

// aboutRunbooks takes answers about runbooks; false if it is none.
func (m *console) aboutRunbooks(a answer) (tea.Cmd, bool) {
	v := m.book
	switch body := a.body.(type) {
	case shelved:
		if v.asked != a.q {
			return nil, true
		}
		if v.failed = ""; body.err != nil {
			v.failed = body.err.Error()
			return nil, true
		}
		if !v.read && v.wanted != "" {
			v.listing.id = v.wanted
		}
		v.shelf, v.read = body.shelf, true
	case begun:
		return m.tookUp(a.q, body), true
	case stepAsked:
		if d := m.dialog; d != nil && d.q == a.q && (d.stage == drafting || d.stage == asking) {
			return m.stepAsked(d, body), true
		}
	case stepTold:
		if f := v.follow; f != nil && f.busy && f.q == a.q {
			f.progress = body.text
		}
	case stepTaken:
		return m.stepTaken(a.q, body), true
	default:
		return nil, false
	}
	return nil, true
}

// beginRun asks before a run is begun or taken up: both are entries of the log, and
// the first may open an incident.
func (m *console) beginRun(b *Book) tea.Cmd {
	switch why := m.sc.mayAct(); {
	case why != "":
		m.tell(abnormal, why)
		return nil
	case m.opt.Runs == nil:
		m.tell(abnormal, noRuns)
		return nil
	case m.book.follow != nil && m.book.follow.busy:
		m.tell(abnormal, "a step of "+m.book.follow.Runbook+" is under way: end that first")
		return nil
	}
	going := m.book.going(b.ID)
	switch len(going) {
	case 0:
		return m.show(m.startDialog(b))
	case 1:
		return m.confirmResume(b, going[0], false, "")
	}
	var all []choice
	for _, g := range going {
		all = append(all, choice{label: g.Run, note: "taken by " + g.TakenBy + " " + m.sc.ago(g.TakenAt), run: func() tea.Cmd { return m.confirmResume(b, g, false, "") }})
	}
	m.chooser, m.mode = newChooser("take up which run?", "", all), inChoose
	return nil
}

func (m *console) startDialog(b *Book) *dialog {
	rb := b.Runbook
	d := &dialog{title: "start a run of " + b.ID, word: "RUNBOOK"}
	signed := b.Signature != nil && b.Signature.State == runbooks.Signed || rb.Manual
	d.facts = func(sc *scene) []fact {
		list := append([]fact{{"runbook", rb.Title, strong}}, m.book.bookHead(sc, b)...)
		if !signed && sc.snap.Rehearsal {
			list = append(list, fact{"rehearsal", "it is followed here although it is not signed, and only here", abnormal})
		}
		list = append(list, fact{"asks", count(len(rb.Steps), "step") + "; each order in it is shown and asked before it is given", normal})
		if sc.snap.World.Incident.OpenedAt.IsZero() {
			list = append(list, fact{"incident", "none is open: this opens one and gives you command", normal})
		}
		return list
	}
	d.blocked = func(sc *scene) []string {
		if signed || sc.snap.Rehearsal {
			return nil
		}
		return []string{"it is not signed, and outside a rehearsal only a signed one is followed (ic runbook sign)"}
	}
	d.give = func() tea.Cmd { return m.startRun(b, Going{}, false) }
	return d
}

// confirmResume asks before a run is taken up. why is said when it was refused
// before.
func (m *console) confirmResume(b *Book, g Going, kept bool, why string) tea.Cmd {
	d := &dialog{title: "take up run " + g.Run, word: "RUNBOOK"}
	d.facts = func(sc *scene) []fact {
		list := []fact{{"runbook", b.Runbook.Title, strong}, {"followed", "by " + g.TakenBy + ", since " + sc.ago(g.TakenAt), normal},
			{"resuming", "reads reality for what was begun and not concluded, and repeats nothing; whoever follows it now is told so", normal}}
		if why != "" {
			list = append(list, fact{"changed", why, abnormal}, fact{"goes by", "the text that the run began with, which is in the log", normal})
		}
		return list
	}
	d.give = func() tea.Cmd { return m.startRun(b, g, kept) }
	return m.show(d)
}

// startRun begins a run, or takes one up.
func (m *console) startRun(b *Book, g Going, kept bool) tea.Cmd {
	m.close()
	q := m.question(b.ID)
	m.running[q.epoch] = "runbook " + b.ID
	return guard(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, startLimit)
		defer cancel()
		var f Following
		var err error
		if g.Run == "" {
			f, err = m.opt.Runs.Start(ctx, b.ID)
		} else {
			f, err = m.opt.Runs.Resume(ctx, g.Run, kept)
		}
		return answer{q, begun{g, b, f, err}}
	})
}

// tookUp puts the run in front that was begun or taken up.
func (m *console) tookUp(q question, r begun) tea.Cmd {
	delete(m.running, q.epoch)
	v := m.book
	if r.f.Book == nil {
		if errors.Is(r.err, run.ErrChanged) && m.mode == inNormal {
			return m.confirmResume(r.book, r.going, true, r.err.Error())
		}
		m.tell(abnormal, r.book.ID+": "+r.err.Error())
		v.refused = r.err.Error()
		return m.readShelf()
	}
	v.follow, v.refused = &follow{Following: r.f}, ""
	if r.err != nil {
		v.follow.why = r.err.Error()
	}
	v.at = inRun
	m.tell(normal, "run "+r.f.Run+" of "+r.f.Runbook+" is followed here; the view 4 has it")
	return m.readShelf()
}

// goOn lets the engine go on, in the background. A step ends by its own deadline.
func (m *console) goOn(step *runbooks.Step, title string, again func() tea.Cmd, do func(context.Context, func(string)) (Following, error)) tea.Cmd {
	f := m.book.follow
	q := m.question(title)
	ctx, cancel := context.WithCancel(m.ctx)
	f.q, f.busy, f.step, f.began, f.progress, f.cancel, f.why = q, true, step, m.sc.now, "", cancel, ""
	m.running[q.epoch] = "runbook " + f.Runbook + ", step " + title
	return guard(func() tea.Msg {
		defer cancel()
		after, err := do(ctx, func(text string) { m.post(answer{q, stepTold{text}}) })
		return answer{q, stepTaken{title, after, err, again}}
	})
}

// stepTaken tells what came of a step.
func (m *console) stepTaken(q question, t stepTaken) tea.Cmd {
	delete(m.running, q.epoch)
	f := m.book.follow
	if f == nil || f.q != q {
		return nil // it was left for a skip or an abort, whose answer knows more
	}
	f.busy, f.progress, f.cancel = false, "", nil
	over := f.Finished
	f.take(t.f)
	switch {
	case t.err == nil && over:
		m.tell(normal, t.title+": "+undoneWord(f.undoOf(t.title)))
		return nil
	case t.err == nil && f.Finished:
		m.tell(normal, "the run of "+f.Runbook+" is "+orDefault(f.End, "over"))
		return m.readShelf()
	case t.err == nil:
		m.tell(normal, t.title+": "+m.stateWordOf(t.title))
		return nil
	}
	f.why = t.err.Error()
	if t.again != nil && errors.Is(t.err, run.ErrAnswer) && m.mode == inNormal && m.at == runbookAt {
		cmd := t.again()
		m.tell(abnormal, "that says nothing: say what you saw, such as a value, a name or a time")
		return cmd
	}
	m.tell(abnormal, f.why)
	return nil
}

func (m *console) stateWordOf(step string) string {
	f := m.book.follow
	for i := range f.Steps {
		if s := &f.Steps[i]; s.ID == step {
			return wordOf(s.State).word
		}
	}
	return "taken"
}

// leaveStep asks why the current step, or the run, is left, and leaves it. What is
// only waited for is not waited for any longer; what is being done is.
func (m *console) leaveStep(title, label string, leave func(context.Context, string) (Following, error)) tea.Cmd {
	f := m.book.follow
	switch why := m.sc.mayAct(); {
	case why != "":
		m.tell(abnormal, why)
		return nil
	case f.Finished:
		m.tell(faint, "the run is over")
		return nil
	case !f.onlyWaits():
		m.tell(abnormal, "an order of the step is on its way: wait until it has been sent")
		return nil
	}
	return m.askWhy(title, label, "", f.Current, leave)
}

// askWhy asks for a reason. at is the step that was in front when the key was
// pressed: if the run has gone on meanwhile, another step is not left for it.
func (m *console) askWhy(title, label, text, at string, leave func(context.Context, string) (Following, error)) tea.Cmd {
	f := m.book.follow
	m.prompt = &prompt{
		title: title, about: []fact{{"", "it is part of the log, with your name", normal}}, label: label, need: true, input: input{text: text, most: maxSeen},
		then: func(reason string) tea.Cmd {
			m.close()
			if f.Current != at {
				m.tell(abnormal, "the run has gone on meanwhile: nothing was left out")
				return nil
			}
			if !f.onlyWaits() {
				m.tell(abnormal, "an order of the step is on its way: wait until it has been sent")
				return nil
			}
			if f.cancel != nil {
				f.cancel()
				delete(m.running, f.q.epoch)
			}
			again := func() tea.Cmd { return m.askWhy(title, label, reason, at, leave) }
			return m.goOn(f.current(), f.Current, again, func(_ context.Context, _ func(string)) (Following, error) {
				ctx, cancel := context.WithTimeout(m.ctx, leaveLimit)
				defer cancel()
				return leave(ctx, reason)
			})
		},
		quit: func() tea.Cmd { m.close(); return nil },
	}
	m.mode = inPrompt
	return nil
}

// onlyWaits: no order is on its way. One that has been sent and is proved tells its
// progress; of a push that is the pipeline's, so a push is waited for to its end.
func (f *follow) onlyWaits() bool {
	if !f.busy || f.step == nil {
		return true
	}
	return !f.step.Kind.HasEffect() || f.progress != "" && f.step.Push == nil
}

// toRunbook opens the text of a runbook.
func (m *console) toRunbook(id string) tea.Cmd {
	m.book.open(id)
	return m.goTo(runbookAt)
}
