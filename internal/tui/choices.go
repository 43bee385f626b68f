package tui

import (
	"cmp"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// candidate is an ask that a chooser may offer.
type candidate struct {
	label string
	ask   decisions.Ask
	place int // of its scope in the list
}

// openShed offers every tier of every scope that a shed right covers.
func (m *console) openShed() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	var asks []candidate
	for i := range m.sc.snap.Matrix {
		r := &m.sc.snap.Matrix[i]
		if r.Request.Directive.Kind != model.Shed {
			continue
		}
		for place, s := range shedScopes(&m.sc) {
			for t := 1; t <= s.last; t++ {
				asks = append(asks, candidate{
					label: fmt.Sprintf("%s to tier %d", scopeName(s.name), t),
					ask:   decisions.Ask{Right: r.Name, Scope: s.name, Tier: t, Actor: m.sc.snap.Person},
					place: place,
				})
			}
		}
	}
	slices.SortStableFunc(asks, func(a, b candidate) int {
		return cmp.Or(a.place-b.place, a.ask.Tier-b.ask.Tier)
	})
	return m.offer("shed", "no right to shed is active (2 lists the rights)", asks)
}

// scopeTiers is a scope and the highest tier that anything in it knows.
type scopeTiers struct {
	name string
	last int
}

func shedScopes(sc *scene) []scopeTiers {
	all := []scopeTiers{{name: model.AnyScope}}
	for i := range sc.snap.Services {
		s := &sc.snap.Services[i]
		all = append(all, scopeTiers{s.Service, s.Last})
		all[0].last = max(all[0].last, s.Last)
	}
	return all
}

// openRecovery offers the next step of every scope that is shed; with only one,
// it goes straight there.
func (m *console) openRecovery() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	scopes := heldScopes(&m.sc.snap.World)
	if len(scopes) == 0 {
		m.tell(faint, "no shed is in force: there is nothing to recover from")
		return nil
	}
	var asks []candidate
	for i := range m.sc.snap.Matrix {
		r := &m.sc.snap.Matrix[i]
		if !r.Request.Directive.IsRecovery() {
			continue
		}
		for _, s := range scopes {
			asks = append(asks, candidate{
				label: scopeName(s) + " by " + r.Name,
				ask:   decisions.Ask{Right: r.Name, Scope: s, Tier: decisions.NextTier, Actor: m.sc.snap.Person},
			})
		}
	}
	if len(asks) == 1 {
		return m.begin(asks[0].ask)
	}
	return m.offer("recover", "no right to recover is active (2 lists the rights)", asks)
}

// heldScopes are the scopes in which a shed holds a tier.
func heldScopes(w *model.World) []string {
	var out []string
	for i := range w.Issued {
		d := &w.Issued[i].Directive
		if d.EndedAs() == model.Shed && !slices.Contains(out, d.Scope) && decisions.ChainOf(w, d.Scope).Tier > 0 {
			out = append(out, d.Scope)
		}
	}
	slices.Sort(out)
	return out
}

// offer opens a chooser whose choices carry their verdicts. The verdicts come
// from the desk, so they are asked for in the background.
func (m *console) offer(title, empty string, asks []candidate) tea.Cmd {
	c := newChooser(title, empty, nil)
	c.q, c.loading = m.question(title), len(asks) > 0
	m.chooser, m.mode = c, inChoose
	if len(asks) == 0 {
		return nil
	}
	q := c.q
	return guard(func() tea.Msg { return answer{q, offered{m.judged(asks)}} })
}

// judged leaves out what a right does not cover at all. It runs in a command and
// touches nothing of the model but the desk.
func (m *console) judged(asks []candidate) []choice {
	var all []choice
	for _, a := range asks {
		p, err := m.desk.Preview(a.ask)
		if err != nil || outside(&p.Verdict) {
			continue
		}
		note := string(p.Verdict.Outcome)
		if len(p.Reasons) > 0 {
			note += ": " + p.Reasons[0]
		} else if p.UserText != "" {
			note += "; users see: " + p.UserText
		}
		all = append(all, choice{label: a.label, note: note, run: func() tea.Cmd { return m.begin(a.ask) }})
	}
	return all
}

// outside reports whether the right does not speak about what was asked, or is
// not this person's.
func outside(v *model.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r model.Reason) bool {
		return r.Code == model.CodeOutOfScope || r.Code == model.CodeOverTier || r.Code == model.CodeWrongRole
	})
}

// openFaults offers the faults of a drill's world.
func (m *console) openFaults() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	if len(m.sc.snap.Faults) == 0 {
		text := "faults exist in drills only: this fleet is real, or nothing has been read yet"
		if m.sc.snap.Rehearsal {
			text = "no fault is at hand: a scenario says what goes wrong here, or the list has not been read yet"
		}
		m.tell(faint, text)
		return nil
	}
	m.chooser, m.mode = newChooser("faults of this drill", "", m.faultChoices()), inChoose
	return nil
}

func (m *console) faultChoices() []choice {
	var all []choice
	for _, f := range m.sc.snap.Faults {
		c := choice{label: f.Name, note: f.Text, why: m.sc.mayAct(), run: func() tea.Cmd { return m.fault(f.Name, f.Active) }}
		if f.Active {
			c.ink, c.note = abnormal, "active: choosing it clears it. "+f.Text
		}
		all = append(all, c)
	}
	return all
}

// openPalette offers everything that has a name. What it runs goes the same way
// as the key or the view would.
func (m *console) openPalette() tea.Cmd {
	var all []choice
	add := func(label, note string, i ink, run func() tea.Cmd) {
		all = append(all, choice{label: label, note: note, ink: i, run: run})
	}
	_, everywhere := m.keys.listed(inNormal, nil)
	for _, b := range everywhere {
		if b.act != palette && b.act != back {
			add(b.label, "key "+shown(b.keys[0]), normal, func() tea.Cmd { return m.runKey(b.act) })
		}
	}
	for i := range m.sc.snap.Matrix {
		r := &m.sc.snap.Matrix[i]
		ask := decisions.Ask{Right: r.Name, Tier: nearestTier(&m.sc, r.Name)}
		add(r.Name, "right, "+string(r.Verdict.Outcome)+": "+r.Text, normal, func() tea.Cmd { return m.begin(ask) })
	}
	for i := range m.sc.snap.Backends {
		b := m.sc.snap.Backends[i].Name
		add("plan "+b, "backend", normal, func() tea.Cmd { return m.toBackend(b) })
	}
	for i := range m.book.shelf.Books {
		b := &m.book.shelf.Books[i]
		add(b.ID, "runbook, "+signedSpan(b).text+": "+m.book.titleOf(b), normal, func() tea.Cmd { return m.toRunbook(b.ID) })
	}
	all = append(all, m.faultChoices()...)
	all = append(all, m.incidentChoices()...)
	for i := range m.sc.snap.World.Hosts {
		h := &m.sc.snap.World.Hosts[i]
		state, _ := m.sc.hostState(h)
		add(h.Host, "host, "+state.text, state.ink, func() tea.Cmd { return m.toHost(h.Host) })
	}
	m.chooser, m.mode = newChooser("everything", "", all), inChoose
	return nil
}

// runKey does what the key of an action does.
func (m *console) runKey(a action) tea.Cmd {
	switch a {
	case interrupt:
		m.interrupted = true
		return tea.Quit
	case suspend:
		return tea.Suspend
	default:
		return m.act(a)
	}
}

func (m *console) toHost(host string) tea.Cmd {
	m.at = fleetAt
	if f, is := m.views[fleetAt].(*fleetView); is {
		f.listing.filter, f.listing.id, f.detail = "", host, true
	}
	return nil
}

func (m *console) toBackend(name string) tea.Cmd {
	m.at = glassAt
	m.glass.listing.id = name
	return m.inView(breakGlass)
}
