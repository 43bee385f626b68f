package decisions

import (
	"math"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Exposure is the worst case of a bypass in money and time, computed from what
// hosts enforce alone: it does not rely on signals, lease, dwell or the number
// of uses, which only the console checks.
type Exposure struct {
	Under        model.Money   `json:"under"`        // exclusive, per item
	PerHost      model.Money   `json:"per_host"`     // what one host may let through in one UTC day
	Hosts        int64         `json:"hosts"`        // hosts that run a service the control protects
	Replacements int64         `json:"replacements"` // hosts that may join in one day
	WorstCase    model.Money   `json:"worst_case"`   // (hosts + replacements) x per host
	Total        model.Money   `json:"total"`        // the cap that was signed
	Lasts        time.Duration `json:"lasts"`
	Ends         time.Time     `json:"ends"`
	Estimate     bool          `json:"estimate"` // hosts without a state folder may open, so the bound is not firm
}

// WorstCase computes the exposure of a bypass. Within one host the budget is
// the smaller of its total and of its count times the largest item that passes;
// it is kept per right and UTC day, so that a second grant on the same day does
// not add to it.
func WorstCase(b *policy.Bundle, w *model.World, d *model.Directive) Exposure {
	e := Exposure{Under: d.Caps.Under, PerHost: perHost(d.Caps), Total: d.Caps.Total, Ends: d.NotAfter, Lasts: d.NotAfter.Sub(d.NotBefore)}
	right, _, _ := b.Right(d.Right)
	if right.Bypass != nil {
		e.Replacements = right.Bypass.MaxReplacements
		e.Estimate = right.Bypass.VolatileHosts
	}
	e.Hosts = hostsUnder(b, w, d)
	e.WorstCase = e.PerHost.Times(sum(e.Hosts, e.Replacements))
	return e
}

func perHost(c model.Caps) model.Money {
	largest := model.Money{Minor: max(c.Under.Minor, 1) - 1, Currency: c.Under.Currency}
	byCount := largest.Times(max(c.HostCount, 0))
	if byCount.Minor < c.HostTotal.Minor {
		return byCount
	}
	return model.Money{Minor: max(c.HostTotal.Minor, 0), Currency: c.HostTotal.Currency}
}

// sum stays at the largest number instead of turning over: a worst case that is
// too large to say must not look small.
func sum(a, b int64) int64 {
	if a, b = max(a, 0), max(b, 0); a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// hostsUnder counts the hosts on which the bypass would be open.
func hostsUnder(b *policy.Bundle, w *model.World, d *model.Directive) int64 {
	services := b.Controls[d.Control].Services
	var n int64
	for i := range w.Hosts {
		for _, s := range w.Hosts[i].Services {
			if d.Covers(s) && slices.Contains(services, s) {
				n++
				break
			}
		}
	}
	return n
}

// fitCaps are the caps of a right, with the budget per host made small enough
// that the worst case stays within the total.
func fitCaps(b *policy.Bundle, w *model.World, d *model.Directive, rule *policy.Bypass) model.Caps {
	caps := model.Caps{Under: rule.Under, HostCount: rule.HostCount, HostTotal: rule.HostTotal, Total: rule.Total}
	if n := sum(hostsUnder(b, w, d), rule.MaxReplacements); n > 0 {
		caps.HostTotal.Minor = min(caps.HostTotal.Minor, caps.Total.Minor/n)
	}
	return caps
}

// usedToday counts the other activations of the same right on the UTC day on which
// one begins. What is being judged again, because a co-signer hands it over or it
// is carried once more, does not count against itself.
func usedToday(w *model.World, use *model.Directive) int {
	day, n := use.NotBefore.UTC().Truncate(24*time.Hour), 0
	for i := range w.Issued {
		d := &w.Issued[i].Directive
		if d.Right == use.Right && d.ID != use.ID && d.NotBefore.UTC().Truncate(24*time.Hour).Equal(day) {
			n++
		}
	}
	return n
}
