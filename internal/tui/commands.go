package tui

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// openIncident offers what can be done about command.
func (m *console) openIncident() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	m.chooser, m.mode = newChooser("incident and command", "", m.incidentChoices()), inChoose
	return nil
}

// incidentChoices are the commands about an incident, each with the reason why
// it makes no sense now.
func (m *console) incidentChoices() []choice {
	in, me := &m.sc.snap.World.Incident, m.sc.snap.Person
	none := ""
	if in.ID == "" {
		none = "no incident is open"
	}
	mine := none
	if mine == "" && !in.Lease.Held(me, m.sc.now) {
		mine = "you do not hold command"
	}
	open := ""
	if in.ID != "" {
		open = "one is open already: " + orDefault(in.Title, in.ID)
	}
	offered := none
	if offered == "" && (in.Lease.OfferedTo != me || me == "") {
		offered = "command was not offered to you"
	}
	one := func(label, note, why, action string) choice {
		return choice{label: label, note: note, why: why, run: func() tea.Cmd { return m.confirmCommand(action, note, me) }}
	}
	give := one("offer command", "to a person you name", mine, actionOffer)
	give.run = m.offerCommand
	return []choice{
		one("open an incident", "begins a log and gives you command", open, actionOpen),
		one("take command", "for 3 hours; it orders people, shedding never needs it", none, actionTake),
		give,
		one("accept command", "that was offered to you", offered, actionAccept),
		one("relinquish command", "nobody holds it afterwards", mine, actionRelinquish),
		one("close the incident", "refused while anything of it is left on a host", none, actionClose),
	}
}

// confirmCommand asks before a command about the incident is given.
func (m *console) confirmCommand(action, note, person string) tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	d := &dialog{title: action + " incident", word: "COMMAND"}
	d.facts = func(sc *scene) []fact {
		list := []fact{{"what", note, normal}, {"who", person, normal}, {"now", commander(sc).text, normal}}
		if action == actionClose {
			for _, b := range sc.snap.Blockers {
				list = append(list, fact{"in the way", b, abnormal})
			}
		}
		return list
	}
	if action == actionClose && len(m.sc.snap.Blockers) > 0 {
		d.blocked = func(sc *scene) []string { return sc.snap.Blockers }
	}
	d.give = func() tea.Cmd {
		return m.run(d.q, action+" incident", commandLimit, func(ctx context.Context) (incident.Result, error) {
			return m.desk.Command(ctx, action, person)
		})
	}
	return m.show(d)
}

// offerCommand asks for the name of the person first.
func (m *console) offerCommand() tea.Cmd {
	m.prompt = &prompt{
		title: "offer command", label: "to whom?", need: true, input: input{most: directive.MaxName},
		about: []fact{{"", "the person accepts with i in a console of their own; until then you hold command", normal}},
		then: func(text string) tea.Cmd {
			m.prompt = nil
			return m.confirmCommand(actionOffer, "offers command to "+text, text)
		},
		quit: func() tea.Cmd { m.close(); return nil },
	}
	m.mode = inPrompt
	return nil
}

// fault begins or clears a fault. It touches a drill's world, never a fleet.
func (m *console) fault(name string, active bool) tea.Cmd {
	verb := "begin "
	if active {
		verb = "clear "
	}
	return m.run(m.question(name), verb+name, faultLimit, func(ctx context.Context) (incident.Result, error) {
		err := m.desk.Fault(ctx, name, active)
		return incident.Result{State: incident.Sent}, err
	})
}

// openCosign offers what waits for a signature; a token may always be pasted.
func (m *console) openCosign() tea.Cmd {
	if why := m.sc.mayAct(); why != "" {
		m.tell(abnormal, why)
		return nil
	}
	if len(m.sc.snap.Proposals) == 0 {
		return m.pasteToken()
	}
	var all []choice
	for i := range m.sc.snap.Proposals {
		p := m.sc.snap.Proposals[i]
		all = append(all, choice{
			label: incident.TitleOf(&p.Directive), note: "needs " + p.Needs, ink: abnormal,
			run: func() tea.Cmd { return m.confirmCosign(p.Token) },
		})
	}
	all = append(all, choice{label: "paste a token", note: "that somebody sent you", run: m.pasteToken})
	m.chooser, m.mode = newChooser("co-sign", "", all), inChoose
	return nil
}

func (m *console) pasteToken() tea.Cmd {
	m.prompt = &prompt{
		title: "co-sign", label: "token:", need: true, input: input{most: directive.MaxToken}, spaceless: true,
		about: []fact{{"", "paste the token that somebody sent you (it begins with ic1.); what it says is shown before you sign", normal}},
		then:  func(text string) tea.Cmd { m.prompt = nil; return m.confirmCosign(text) },
		quit:  func() tea.Cmd { m.close(); return nil },
	}
	m.mode = inPrompt
	return nil
}

// confirmCosign shows what would be signed, read from the token itself. The desk
// verifies the signatures that are on it before it adds one.
func (m *console) confirmCosign(token string) tea.Cmd {
	d, err := decoded(token)
	if err != nil {
		m.close()
		m.tell(abnormal, err.Error())
		return nil
	}
	dlg := &dialog{
		title: incident.TitleOf(&d), word: "CO-SIGN", typed: "sign " + orDefault(d.Right, string(d.Kind)),
		facts: func(sc *scene) []fact { return tokenFacts(sc, &d) },
		copy:  token,
	}
	if d.Fleet != m.sc.snap.Fleet {
		dlg.blocked = func(sc *scene) []string {
			return []string{fmt.Sprintf("it is for fleet %s, this is %s", d.Fleet, sc.snap.Fleet)}
		}
	}
	dlg.give = func() tea.Cmd {
		return m.run(dlg.q, "co-sign "+dlg.title, executeLimit, func(ctx context.Context) (incident.Result, error) {
			return m.desk.Cosign(ctx, token)
		})
	}
	return m.show(dlg)
}

// tokenFacts are a directive as it stands in a token.
func tokenFacts(sc *scene, d *model.Directive) []fact {
	list := []fact{
		{"fleet", d.Fleet + ", incident " + orDash(d.Incident), normal},
		{"right", d.Right, normal},
		{"reach", bounds(d), normal},
	}
	if d.Kind == model.Bypass {
		list = append(list, fact{"at most", d.Caps.Total.String() + " in the whole fleet", abnormal})
	}
	list = append(list, fact{"starts", clock(d.NotBefore) + ", " + within(sc, d), normal})
	if !d.NotAfter.IsZero() {
		list = append(list, fact{"ends", clock(d.NotAfter) + ", in " + sc.left(d.NotAfter), normal})
	}
	return append(list,
		fact{"reason", orDefault(d.Reason, "none given"), normal},
		fact{"id", d.ID, faint},
		fact{"policy", fmt.Sprintf("v%d %.8s", d.Policy.Version, d.Policy.Digest), faint})
}

func within(sc *scene, d *model.Directive) string {
	if sc.now.Before(d.NotBefore) {
		return "in " + sc.left(d.NotBefore)
	}
	return sc.ago(d.NotBefore)
}

// errToken says what a token looks like.
var errToken = errors.New("that is no token: it begins with ic1. and has a payload and signatures, parted by points")

// decoded reads what a token says. It proves nothing about who signed it.
func decoded(token string) (model.Directive, error) {
	parts := strings.Split(token, ".")
	if len(parts) < 3 || parts[0] != "ic1" {
		return model.Directive{}, errToken
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return model.Directive{}, errToken
	}
	d, err := directive.Parse(payload)
	if err != nil {
		return d, fmt.Errorf("that token says nothing this version understands: %w", err)
	}
	return d, nil
}
