package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// fleetView is the version skew of the fleet, host by host. What needs a person
// comes first.
type fleetView struct {
	width, height int
	listing       listing
	detail        bool
}

func (v *fleetView) Size(width, height int) { v.width, v.height = min(width, widest), height }
func (v *fleetView) list() *listing         { return &v.listing }

func (v *fleetView) Keys() []ownKey {
	return append([]ownKey{{enter, "the host's own report, and back"}, {filter, "filter the hosts"}}, scrolling()...)
}

// hostRow is a host with its place in the list.
type hostRow struct {
	rank int
	host *model.HostView
	rec  record
}

func (v *fleetView) rows(sc *scene) (ids []string, rows []record, of []*model.HostView) {
	var all []hostRow
	for i := range sc.snap.World.Hosts {
		h := &sc.snap.World.Hosts[i]
		state, rank := sc.hostState(h)
		age := span{"never", faint}
		if !h.SeenAt.IsZero() {
			age.text = sc.old(sc.reportAge(h))
			if sc.reportAge(h) > sc.hostOld() {
				age.ink = stale
			}
		}
		rec := record{mark: state.ink, cells: []span{
			{h.Host, normal}, {joined(h.Services), faint}, state, {orDash(shortIDs(h.Lacks)), state.ink}, age, {orDash(h.Via), faint},
		}}
		if matches(v.listing.filter, rec.text()) {
			all = append(all, hostRow{rank, h, rec})
		}
	}
	slices.SortFunc(all, func(a, b hostRow) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(a.host.Host, b.host.Host)
	})
	for _, r := range all {
		ids, rows, of = append(ids, r.host.Host), append(rows, r.rec), append(of, r.host)
	}
	return ids, rows, of
}

func (v *fleetView) Update(sc *scene, a action) outcome {
	ids, _, _ := v.rows(sc)
	if v.listing.move(a, ids) {
		return ok()
	}
	switch a {
	case enter:
		if len(ids) == 0 {
			return cannot("no host is selected")
		}
		v.detail = !v.detail
		return ok()
	case back:
		if v.detail {
			v.detail = false
			return ok()
		}
	}
	return outcome{}
}

func (v *fleetView) Draw(sc *scene) page {
	f := fleetFact(sc)
	top := sentence(f.ink, f.text, v.width)
	if v.height < lowView {
		top = top[:min(len(top), 1)]
	}
	ids, rows, of := v.rows(sc)
	if len(rows) == 0 {
		return still(append(top, sentence(unknown, v.empty(sc), v.width)...))
	}
	if note := v.listing.note(len(rows), len(sc.snap.World.Hosts)); note != "" {
		top = append(top, say(strong, "   "+note))
	}
	if v.height >= lowView {
		top = append(top, nil)
	}
	v.listing.settle(ids)
	list := func(height int) page {
		return v.listing.rows([]column{
			{title: "host", least: 8, most: 32},
			{title: "services", least: 8, most: 24, drop: 2},
			{title: "state", least: 14, grow: true},
			{title: "lacks", least: 6, most: 22, drop: 1},
			{title: "age", least: 4, right: true},
			{title: "via", drop: 3},
		}, ids, rows, v.width, height)
	}
	var p page
	if room := max(v.height-len(top), 2); v.detail {
		h := of[v.listing.at]
		p = paned(list, h.Host, facts(hostFacts(sc, h), v.width), true, v.width, room)
	} else {
		p = list(room)
	}
	p.lines, p.y = append(top, p.lines...), p.y+len(top)
	return p
}

func (v *fleetView) empty(sc *scene) string {
	switch {
	case !sc.read:
		return "hosts: not read yet"
	case v.listing.filter != "":
		return fmt.Sprintf("no host matches %q: esc clears the filter", v.listing.filter)
	default:
		return "the inventory names no host: without it nothing can be counted (ic doctor)"
	}
}

// hostFacts is a host's own report.
func hostFacts(sc *scene, h *model.HostView) []fact {
	var list []fact
	if !h.Reachable {
		list = append(list, fact{"reach", "unreachable, last read " + sc.ago(h.SeenAt) + ": " + orDash(h.Detail), unknown})
	}
	if len(h.Lacks) > 0 {
		list = append(list, fact{"lacks", named(sc, h.Lacks), abnormal})
	}
	if len(h.Extra) > 0 {
		list = append(list, fact{"keeps", named(sc, h.Extra), abnormal})
	}
	r := h.Report
	if r == nil {
		return append(list, fact{"report", "this host has never reported", unknown})
	}
	state, ink := orDash(r.State), normal
	if r.State != "ok" {
		ink = abnormal
	}
	list = append(list,
		fact{"report", fmt.Sprintf("%s old, read by %s; state %s; posture %.8s", sc.old(sc.reportAge(h)), orDash(h.Via), state, r.Posture), ink},
		liveFact(sc, r))
	label := "sources"
	for _, s := range r.Sources {
		f := fact{label, fmt.Sprintf("%s, %s, read %ds before the report", s.Name, count(len(s.PresentIDs), "order"), s.AgeS), normal}
		if s.AgeS < 0 {
			f.text = s.Name + ", never read in full"
		}
		if s.Error != "" {
			f.text, f.ink = f.text+": "+s.Error, abnormal
		}
		list, label = append(list, f), ""
	}
	for _, s := range r.Refused {
		list = append(list, fact{"refused", incident.ShortID(s.ID) + ": " + s.Code, abnormal})
	}
	for _, b := range r.Budgets {
		list = append(list, fact{"budget", fmt.Sprintf("%s on %s: %d, %s", b.Right, b.Period, b.Count, b.Total), normal})
	}
	clock := fact{"clock", string(r.Clock.State), normal}
	if r.Clock.State == model.ClockUnsynced || r.Clock.State == model.ClockBehind {
		clock.ink = abnormal
	}
	return append(list, clock, fact{"policy", fmt.Sprintf("v%d %.8s; ic %s", r.Policy.Version, r.Policy.Digest, orDash(r.Versions.IC)), normal})
}

func liveFact(sc *scene, r *model.Report) fact {
	if len(r.Live) == 0 {
		return fact{"holds", "nothing: it runs as built", normal}
	}
	var parts []string
	for _, l := range r.Live {
		parts = append(parts, fmt.Sprintf("%s from %s, %s", title(sc, l.ID), l.Source, sc.ago(l.Since)))
	}
	return fact{"holds", strings.Join(parts, "; "), normal}
}

// title of an id if this console knows it, else its tail.
func title(sc *scene, id string) string {
	for i := range sc.snap.World.Issued {
		if d := &sc.snap.World.Issued[i].Directive; d.ID == id {
			return incident.TitleOf(d)
		}
	}
	return incident.ShortID(id)
}

func named(sc *scene, ids []string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, title(sc, id)+" ("+incident.ShortID(id)+")")
	}
	return strings.Join(parts, "; ")
}
