package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// indexes of the views that others jump to.
const (
	glassAt = 2
	fleetAt = 4
)

// openGlass goes to the break-glass view, and one step on if it is in front.
func (m *console) openGlass() tea.Cmd {
	if m.at != glassAt {
		m.at = glassAt
		return nil
	}
	return m.inView(breakGlass)
}

// askPlan asks a backend what it would do. It changes nothing.
func (m *console) askPlan(backend string) tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	m.glass.drop()
	q := m.question(backend)
	m.glass.asked, m.glass.asking = q, true
	return guard(func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, planLimit)
		defer cancel()
		plan, err := m.desk.PlanBreak(ctx, backend)
		return answer{q, planned{plan, err}}
	})
}

// planned takes a plan if it is still the one that was asked for.
func (v *glass) planned(q question, p planned) {
	if !v.asking || v.asked != q {
		return
	}
	v.asking = false
	if p.err != nil {
		v.planErr = p.err.Error()
		return
	}
	v.plan = &p.plan
}

// confirmPush asks for the push of the plan in front.
func (m *console) confirmPush() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	plan := *m.glass.plan
	d := &dialog{}
	pushDialog(d, &plan)
	d.give = func() tea.Cmd {
		m.close()
		m.at = glassAt
		p := &pushing{q: m.question(plan.Backend), verb: "push", backend: plan.Backend, ids: plan.IDs}
		m.glass.drop()
		m.glass.push = p
		return m.run(p.q, d.title, pushLimit, func(ctx context.Context) (incident.Result, error) {
			return m.desk.Push(ctx, plan, true, m.progress(p.q))
		})
	}
	return m.show(d)
}

// pushDialog fills a dialog with what a push would do.
func pushDialog(d *dialog, plan *incident.BreakPlan) {
	d.title, d.word, d.typed = "push by "+plan.Backend, "BREAK-GLASS", "push "+plan.Backend
	d.facts = func(sc *scene) []fact { return planFacts(sc, plan) }
	if !givable(&plan.Verdict) {
		d.blocked = func(*scene) []string { return append(plan.Reasons, string(plan.Verdict.Outcome)) }
	}
}

// progress tells what a pipeline says, as long as its push is in front.
func (m *console) progress(q question) func(incident.Progress) {
	return func(p incident.Progress) { m.post(answer{q, progressed{p}}) }
}

// show opens a dialog whose content is at hand.
func (m *console) show(d *dialog) tea.Cmd {
	d.q = m.question(d.title)
	d.open(m.opt.Real())
	m.dialog = d
	m.mode = d.mode(&m.sc)
	return m.afterGrace()
}

// openUndo chooses the override to remove.
func (m *console) openUndo() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	overrides := m.sc.snap.Overrides
	switch {
	case len(overrides) == 0:
		m.tell(faint, "no override is on any host: there is nothing to undo")
		return nil
	case m.glass.push != nil && !m.glass.push.done:
		m.tell(faint, "a "+m.glass.push.verb+" is on its way: wait for it")
		return nil
	case len(overrides) == 1:
		return m.confirmUndo(overrides[0])
	}
	var all []choice
	for _, o := range overrides {
		all = append(all, choice{
			label: incident.ShortID(o.Operation) + " by " + o.Backend, note: o.State + ", " + m.sc.ago(o.Since) + ": " + shortIDs(o.IDs),
			ink: abnormal, run: func() tea.Cmd { return m.confirmUndo(o) },
		})
	}
	m.chooser, m.mode = newChooser("undo an override", "", all), inChoose
	return nil
}

func (m *console) confirmUndo(o model.Override) tea.Cmd {
	d := &dialog{
		title: "undo " + incident.ShortID(o.Operation) + " by " + o.Backend, word: "BREAK-GLASS", typed: "undo " + o.Backend,
		facts: func(sc *scene) []fact { return overrideFacts(sc, &o) },
	}
	d.give = func() tea.Cmd {
		m.close()
		m.at = glassAt
		p := &pushing{q: m.question(o.Backend), verb: "undo", backend: o.Backend, ids: o.IDs}
		m.glass.push = p
		return m.run(p.q, d.title, pushLimit, func(ctx context.Context) (incident.Result, error) {
			return m.desk.UndoBreak(ctx, o.Operation, true, m.progress(p.q))
		})
	}
	return m.show(d)
}

// overrideFacts are what the removal of an override does.
func overrideFacts(sc *scene, o *model.Override) []fact {
	return []fact{
		{"removes", named(sc, o.IDs), normal},
		{"put there", sc.ago(o.Since) + ", " + o.State, normal},
		{"restarts", "a backend that carries by environment restarts hosts again", abnormal},
		{"leaves", "what somebody else has changed since: only what still equals what was written is removed", normal},
	}
}
