package incident

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// issuedOf joins what the log knows with what the carriers hold. A token that
// this policy does not admit is left out: a carrier cannot make anything true.
func (d *Desk) issuedOf(logged []model.Issued, overrides []model.Override, h *heard, now time.Time) []model.Issued {
	byID := make(map[string]*model.Issued)
	for _, is := range logged {
		// The log is only a file until it is verified: a token in it counts as
		// little as one from a carrier if its signatures do not hold.
		if d.seen.verify(is.Token, d.o.Realm, d.o.Fleet) != nil {
			is.Carried = slices.Clone(is.Carried) // the log's own stays as it is, for other readers
			byID[is.Directive.ID] = &is
		}
	}
	for i := range h.carriers {
		name := d.o.Carriers[i].Name()
		for _, token := range h.carriers[i].tokens {
			d.join(byID, token, name, h.hosts, now)
		}
	}
	d.recallEndings(byID)
	out := make([]model.Issued, 0, len(byID))
	for _, is := range byID {
		if is.Directive.Kind == model.End && is.Outcome == audit.StateAbsent && len(is.Carried) == 0 {
			continue // reality was read and it is nowhere: it ended nothing, and is no step of a ramp
		}
		slices.Sort(is.Carried)
		is.Carried = slices.Compact(is.Carried)
		out = append(out, *is)
	}
	slices.SortFunc(out, func(a, b model.Issued) int { return cmp.Compare(a.Directive.ID, b.Directive.ID) })
	applyEndings(out, overrides, now)
	return out
}

// recallEndings adds endings of incidents that are over, if they end what a carrier
// holds now: a store that was put back to a state of before them holds what they
// ended, and nothing that says so.
func (d *Desk) recallEndings(byID map[string]*model.Issued) {
	for _, e := range d.history.endings() {
		ends := slices.ContainsFunc(e.Directive.IDs, func(id string) bool { return byID[id] != nil })
		if _, known := byID[e.Directive.ID]; !known && ends && d.seen.verify(e.Token, d.o.Realm, d.o.Fleet) != nil {
			byID[e.Directive.ID] = &e
		}
	}
}

func (d *Desk) join(byID map[string]*model.Issued, token, carrier string, hosts []model.HostView, now time.Time) {
	signed := d.seen.verify(token, d.o.Realm, d.o.Fleet)
	if signed == nil {
		return
	}
	if known, ok := byID[signed.Directive.ID]; ok {
		known.Carried = append(known.Carried, carrier)
		if known.Token == "" {
			known.Token = token
		}
		return
	}
	// Judged by the time it was issued: an expired one is history, not a forgery.
	code := d.o.Bundle.Admit(&signed.Directive, signed.Fingerprints(), minTime(now, signed.Directive.IssuedAt))
	if code != "" && !(code == model.CodeRevokedKey && d.stays(&signed.Directive, hosts)) {
		return
	}
	is := model.Issued{Directive: signed.Directive, Token: token, Carried: []string{carrier}, Outcome: string(Sent), Signers: d.signersOf(signed)}
	byID[signed.Directive.ID] = &is
}

// stays: a revoked key closes bypasses only. What makes the fleet stricter and is
// in force on a host stays in force there, and has to be seen to be ended.
func (d *Desk) stays(dir *model.Directive, hosts []model.HostView) bool {
	return d.o.Bundle.Direction(dir) != model.Loosen && slices.ContainsFunc(hosts, func(h model.HostView) bool {
		return h.Reachable && h.Report != nil && inForce(h.Report, dir.ID)
	})
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// applyEndings marks what has been ended: exactly the ids an ending lists, of
// its kind and scope, in whatever order they came. An ending that is not known to have
// left its console, by a carrier or a push, has not ended a grant, a freeze or a feature
// that is off. A recovery step stays in its chain, which says that it is unseen.
func applyEndings(all []model.Issued, overrides []model.Override, now time.Time) {
	at := make(map[string]int, len(all))
	for i := range all {
		all[i].EndedBy = ""
		at[all[i].Directive.ID] = i
	}
	for i := range all {
		e := &all[i].Directive
		if e.Kind != model.End || now.Before(e.NotBefore) {
			continue
		}
		if !e.IsRecovery() && !audit.Departed(all[i].Outcome) && len(all[i].Carried) == 0 && !model.Pushed(overrides, e.ID) {
			continue
		}
		for _, id := range e.IDs {
			if j, ok := at[id]; ok && all[j].Directive.EndedAs() == e.Ends && all[j].Directive.Scope == e.Scope {
				all[j].EndedBy = e.ID
			}
		}
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
