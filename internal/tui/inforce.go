package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// inForce are the orders that hold, those whose outcome is not known and those
// that wait for a signature.
func (v *overview) inForce(sc *scene) []line {
	var rows []record
	for i := range sc.snap.Unknown {
		l := &sc.snap.Unknown[i]
		rows = append(rows, record{mark: critical, cells: []span{{what(l), normal}, {"UNKNOWN", critical}, {"signed, no outcome", critical}}})
	}
	for i := range sc.snap.Live {
		rows = append(rows, liveRow(sc, &sc.snap.Live[i], v.width))
	}
	for i := range sc.snap.Proposals {
		p := &sc.snap.Proposals[i]
		left := "window over"
		if d := p.Left.Std() - sc.now.Sub(sc.snap.At); d > 0 {
			left = length(d, sc.seconds) + " left"
		}
		rows = append(rows, record{mark: abnormal, cells: []span{
			{incident.TitleOf(&p.Directive), normal}, {"proposed", abnormal}, {left, normal}},
			below: []line{say(faint, spaces(margin+2)+"waits for "+p.Needs+"; c co-signs")}})
	}
	if len(rows) == 0 {
		if !sc.read {
			return sentence(unknown, "orders: not read yet", v.width)
		}
		return sentence(normal, "nothing is in force: every service runs as built", v.width)
	}
	return draw([]column{
		{title: "in force", least: 24, grow: true},
		{title: "hosts", least: 5},
		{title: "ends", least: 6},
	}, rows, v.width)
}

// what an order does, without the end, which has a column of its own.
func what(l *incident.LiveView) string {
	title, _, _ := strings.Cut(l.Title, " until ")
	return title
}

func liveRow(sc *scene, l *incident.LiveView, width int) record {
	d := &l.Issued.Directive
	mark := normal
	switch {
	case l.State == string(incident.Unknown):
		mark = critical
	case l.Direction == model.Loosen || l.State != string(incident.Effective):
		mark = abnormal
	}
	ends := "until ended"
	switch {
	case sc.now.Before(d.NotBefore):
		ends = "in " + sc.left(d.NotBefore)
	case !d.NotAfter.IsZero():
		ends = sc.left(d.NotAfter) + " " + clock(d.NotAfter)
	}
	r := record{mark: mark, cells: []span{
		{what(l), normal}, {fmt.Sprintf("%d/%d %s", l.Done, l.Total, l.State), mark}, {ends, mark}}}
	if d.Kind == model.Bypass {
		text := "used " + used(l.Used)
		if l.Exposure != nil {
			text += "; at worst " + l.Exposure.WorstCase.String()
		}
		for _, part := range wrap(text, width-margin-2) {
			r.below = append(r.below, say(faint, spaces(margin+2)+part))
		}
	}
	return r
}

// standing is how the parts stand that every order depends on.
func standing(sc *scene, fold bool) []fact {
	if !sc.read {
		return []fact{{"fleet", "not read yet", unknown}, {"carriers", "not read yet", unknown}}
	}
	list := []fact{fleetFact(sc)}
	list = append(list, carrierFacts(sc)...)
	list = append(list, clockFacts(sc)...)
	list = append(list, policyFacts(sc)...)
	for _, r := range sc.snap.Receipts {
		list = append(list, fact{"record", "not on disk yet, keep this text: " + r, critical})
	}
	for i := range sc.snap.Overrides {
		if fold {
			break // counted among what keeps the incident open
		}
		o := &sc.snap.Overrides[i]
		list = append(list, fact{"override", fmt.Sprintf("%s by %s, %s, %s: u removes it", shortIDs(o.IDs), o.Backend, o.State, sc.ago(o.Since)), abnormal})
	}
	return append(list, incidentFacts(sc, fold)...)
}

func fleetFact(sc *scene) fact {
	s := &sc.snap.Skew
	if advised(sc) {
		return fact{"fleet", "the policy names no host: ic decides and logs, a person executes", unknown}
	}
	if s.Hosts == 0 || s.At.IsZero() {
		return fact{"fleet", "no host has been read yet", unknown}
	}
	mark := normal
	text := fmt.Sprintf("%d/%d hosts follow", s.Effective, s.Hosts)
	for _, part := range []struct {
		n    int
		text string
	}{{s.Lacking, "behind"}, {s.Stale, "stale"}, {s.Unreachable, "unreachable"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.text)
			mark = abnormal
		}
	}
	if s.Alarm {
		mark, text = critical, "critical: "+text
	}
	text += ", " + sc.age(s.At) + " old"
	if inv := &sc.snap.World.Inventory; inv.Detail != "" && !s.InventoryAt.IsZero() {
		mark, text = max(mark, stale), text+"; the list of hosts is "+sc.age(s.InventoryAt)+" old: "+inv.Detail
	} else if limit := inv.MaxAge.Std(); limit > 0 && !s.InventoryAt.IsZero() && sc.now.Sub(s.InventoryAt) > limit {
		mark, text = max(mark, stale), text+"; the list of hosts is stale, "+sc.age(s.InventoryAt)+" old"
	}
	return fact{"fleet", text, mark}
}

// advised reports whether nothing verifies what is decided: every verdict of such
// a world says so.
func advised(sc *scene) bool {
	return len(sc.snap.Matrix) > 0 && sc.snap.Matrix[0].Verdict.Assurance == model.Advised
}

func carrierFacts(sc *scene) []fact {
	if len(sc.snap.Carriers) == 0 && advised(sc) {
		return nil
	}
	if len(sc.snap.Carriers) == 0 {
		return []fact{{"carriers", "none is configured: orders go by break-glass (b)", unknown}}
	}
	var list []fact
	label := "carriers"
	for i := range sc.snap.Carriers {
		c := &sc.snap.Carriers[i]
		f := fact{label, c.Name + " connected, read " + sc.ago(c.ReadAt), normal}
		switch {
		case !c.Connected:
			f.ink, f.text = abnormal, c.Name+" is not reachable, last read "+sc.ago(c.ReadAt)
			if c.Detail != "" {
				f.text += ": " + c.Detail
			}
			f.text += "; b breaks glass"
		case c.Detail != "":
			f.ink, f.text = abnormal, c.Name+" connected: "+c.Detail
		case !c.ReadAt.IsZero() && sc.now.Sub(c.ReadAt) > carrierOld:
			f.ink, f.text = stale, c.Name+" connected, stale: last read "+sc.ago(c.ReadAt)
		}
		list, label = append(list, f), ""
	}
	return list
}

// clockFacts speaks only of clocks that do not agree.
func clockFacts(sc *scene) []fact {
	if c := &sc.snap.SignalsClock; c.State == incident.ClocksDiffer {
		return []fact{{"clock", c.Text(), abnormal}}
	}
	return nil
}

// policyFacts speaks only of what is wrong: the version stands in the header.
func policyFacts(sc *scene) []fact {
	var list []fact
	for i := range sc.snap.Domains {
		if d := &sc.snap.Domains[i]; !d.Active {
			list = append(list, fact{"policy", string(d.Domain) + " is not active: " + d.Why, abnormal})
		}
	}
	return list
}

func incidentFacts(sc *scene, fold bool) []fact {
	in := &sc.snap.World.Incident
	if in.ID == "" {
		return append([]fact{{"incident", "no incident is open: i opens one and gives you command", normal}}, owedFacts(sc, fold)...)
	}
	if n := len(sc.snap.Blockers); fold && n > 1 {
		return append([]fact{{"to close", fmt.Sprintf("%d in the way, first: %s", n, sc.snap.Blockers[0]), normal}}, owedFacts(sc, fold)...)
	}
	list := []fact{}
	label := "to close"
	for _, b := range sc.snap.Blockers {
		list, label = append(list, fact{label, b, normal}), ""
	}
	if len(list) == 0 {
		list = append(list, fact{"to close", "nothing is in the way: i closes the incident", normal})
	}
	return append(list, owedFacts(sc, fold)...)
}

// owedFacts are the reviews that uses of rights still owe. They keep nothing open.
func owedFacts(sc *scene, fold bool) []fact {
	n := len(sc.snap.Owed)
	if fold && n > 1 {
		return []fact{{"owed", fmt.Sprintf("%d reviews, first: %s", n, sc.snap.Owed[0].Text()), normal}}
	}
	var list []fact
	label := "owed"
	for _, o := range sc.snap.Owed {
		list, label = append(list, fact{label, o.Text(), normal}), ""
	}
	return list
}

// firstEnd is the order that ends soonest, for a window too small for all.
func firstEnd(sc *scene) (*incident.LiveView, time.Time) {
	var first *incident.LiveView
	var at time.Time
	for i := range sc.snap.Live {
		l := &sc.snap.Live[i]
		end := l.Issued.Directive.NotAfter
		if !end.IsZero() && end.After(sc.now) && (first == nil || end.Before(at)) {
			first, at = l, end
		}
	}
	return first, at
}

// summary is the overview of a window too small for it: what matters, what is
// shed, what ends first, how many hosts follow.
func summary(sc *scene, width int) []line {
	now := sc.snap.Headline
	now.Runbook = ""
	lines := headline(sc, now, width)
	for i := range sc.snap.Services {
		s := &sc.snap.Services[i]
		if s.Issued > 0 || s.Unknown > 0 {
			r := serviceRow(sc, s, 0)
			lines = append(lines, line{{" " + r.mark.glyph() + " ", r.mark}, {s.Service + " " + tierName(s.Issued) + ", " + r.cells[4].text, r.mark}})
		}
	}
	if l, at := firstEnd(sc); l != nil {
		lines = append(lines, line{{" ! ", abnormal}, {sc.left(at) + " " + what(l), abnormal}})
	}
	if sc.read {
		f := fleetFact(sc)
		lines = append(lines, line{{" " + f.ink.glyph() + " ", f.ink}, {fmt.Sprintf("%d/%d hosts follow", sc.snap.Skew.Effective, sc.snap.Skew.Hosts), f.ink}})
	}
	return lines
}
