package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Exposure is what the bypasses of one right let through on one day, against
// what they permitted. All grants of a (right, control, UTC day) share one
// budget on each host, so it is counted once, at the widest grant's size.
type Exposure struct {
	Right   string `json:"right"`
	Control string `json:"control"`
	Day     string `json:"day"` // UTC day of not_before

	HostCount      int64       `json:"host_count"` // one host's budget
	HostTotal      model.Money `json:"host_total"`
	PermittedCount int64       `json:"permitted_count"` // (hosts + replacements) x budget
	PermittedTotal model.Money `json:"permitted_total"`

	UsedCount   int64       `json:"used_count"` // by the hosts that reported
	UsedTotal   model.Money `json:"used_total"`
	AtMostCount int64       `json:"at_most_count"` // with every unknown at its whole budget
	AtMostTotal model.Money `json:"at_most_total"`

	Hosts   []HostExposure `json:"hosts"`
	Unknown []string       `json:"unknown"` // never reported, or not in this currency: not zero
	Open    []string       `json:"open"`    // last reported while a grant was live: may have used more since
	Over    []string       `json:"over"`    // reported more than its budget
}

// HostExposure is one host's use.
type HostExposure struct {
	Host  string      `json:"host"`
	Count int64       `json:"count"`
	Total model.Money `json:"total"`
	At    time.Time   `json:"at"`
}

// exposureKey is what one budget is kept for.
type exposureKey struct{ right, control, day, currency string }

// grants are the bypasses that share one budget.
type grants struct {
	budget model.Caps
	scopes []string
	until  time.Time
}

// Exposures computes the exposure of every bypass in issued from what hosts
// report. Replacements are the hosts that may come on top of those in the
// inventory while a grant is live, each with a budget of its own.
func Exposures(issued []model.Issued, hosts []model.HostView, replacements int) []Exposure {
	all := map[exposureKey]*grants{}
	for i := range issued {
		d := &issued[i].Directive
		if d.Kind != model.Bypass {
			continue
		}
		key := exposureKey{d.Right, d.Control, d.NotBefore.UTC().Format(dayLayout), d.Caps.HostTotal.Currency}
		g := all[key]
		if g == nil {
			g = &grants{budget: d.Caps}
			all[key] = g
		}
		g.budget.HostCount = max(g.budget.HostCount, d.Caps.HostCount)
		if d.Caps.HostTotal.Minor > g.budget.HostTotal.Minor {
			g.budget.HostTotal = d.Caps.HostTotal
		}
		g.scopes = append(g.scopes, d.Scope)
		if d.NotAfter.After(g.until) {
			g.until = d.NotAfter
		}
	}
	out := make([]Exposure, 0, len(all))
	for key, g := range all {
		out = append(out, g.exposure(key, hosts, int64(replacements)))
	}
	slices.SortFunc(out, func(a, b Exposure) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Right, b.Right), cmp.Compare(a.Control, b.Control), cmp.Compare(a.HostTotal.Currency, b.HostTotal.Currency))
	})
	return out
}

func (g *grants) covers(h *model.HostView) bool {
	return slices.Contains(g.scopes, model.AnyScope) ||
		slices.ContainsFunc(g.scopes, func(scope string) bool { return slices.Contains(h.Services, scope) })
}

func (g *grants) exposure(key exposureKey, hosts []model.HostView, replacements int64) Exposure {
	e := Exposure{Right: key.right, Control: key.control, Day: key.day,
		HostCount: g.budget.HostCount, HostTotal: g.budget.HostTotal,
		UsedTotal: model.Money{Currency: key.currency}, AtMostTotal: model.Money{Currency: key.currency},
		Hosts: []HostExposure{}, Unknown: []string{}, Open: []string{}, Over: []string{}}
	covered := int64(0)
	for i := range hosts {
		h := &hosts[i]
		if !g.covers(h) {
			continue
		}
		covered++
		use, ok := usedOn(h, key)
		if !ok {
			e.Unknown = append(e.Unknown, h.Host)
			continue
		}
		e.Hosts = append(e.Hosts, use)
		e.UsedCount += use.Count
		e.UsedTotal.Minor += use.Total.Minor
		if use.Count > e.HostCount || use.Total.Minor > e.HostTotal.Minor {
			e.Over = append(e.Over, h.Host)
		}
		if use.At.Before(g.until) {
			e.Open = append(e.Open, h.Host)
			e.AtMostCount += max(use.Count, e.HostCount)
			e.AtMostTotal.Minor += max(use.Total.Minor, e.HostTotal.Minor)
			continue
		}
		e.AtMostCount += use.Count
		e.AtMostTotal.Minor += use.Total.Minor
	}
	// Replacements are hosts nobody has named: like those that never reported.
	unknown := int64(len(e.Unknown)) + replacements
	e.AtMostCount += unknown * e.HostCount
	e.AtMostTotal.Minor += e.HostTotal.Times(unknown).Minor
	e.PermittedCount = (covered + replacements) * e.HostCount
	e.PermittedTotal = e.HostTotal.Times(covered + replacements)
	return e
}

// usedOn reads one host's own count. No report is no number; a report without the
// budget means that nothing was reserved from it.
func usedOn(h *model.HostView, key exposureKey) (HostExposure, bool) {
	if h.Report == nil {
		return HostExposure{}, false
	}
	use := HostExposure{Host: h.Host, Total: model.Money{Currency: key.currency}, At: h.Report.At}
	for _, b := range h.Report.Budgets {
		if b.Right != key.right || b.Control != key.control || b.Period != key.day {
			continue
		}
		if b.Total.Currency != key.currency {
			return HostExposure{}, false
		}
		use.Count, use.Total = b.Count, b.Total
	}
	return use, true
}
