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
//
// Every amount is a budget of hosts, and a budget belongs to a control, a right
// and the UTC day of not_before. So a total is for one such day, not for one
// grant: a second grant of the right on that day shares it. A grant of yesterday
// that is still in force has a budget of its own beside today's, which is why
// Together may be more than the total of the right.
type Exposure struct {
	Under        model.Money   `json:"under"`        // exclusive, per item
	PerHost      model.Money   `json:"per_host"`     // what one host may let through in one UTC day
	Hosts        int64         `json:"hosts"`        // hosts that run a service the control protects
	Replacements int64         `json:"replacements"` // hosts that may join in one day
	WorstCase    model.Money   `json:"worst_case"`   // (hosts + replacements) x per host
	Total        model.Money   `json:"total"`        // the cap that was signed
	Others       model.Money   `json:"others"`       // worst case of the other grants of the control: in force, to come, or of the same UTC day
	Together     model.Money   `json:"together"`     // this one and the others, a budget that is shared counted once
	Lasts        time.Duration `json:"lasts"`
	Ends         time.Time     `json:"ends"`
	Estimate     bool          `json:"estimate"` // hosts without a state folder may open, so the bound is not firm
}

// WorstCase computes the exposure of a bypass. Within one host the budget is
// the smaller of its total and of its count times the largest item that passes.
func WorstCase(b *policy.Bundle, w *model.World, d *model.Directive) Exposure {
	e := Exposure{Under: d.Caps.Under, PerHost: perHost(d.Caps), Total: d.Caps.Total, Ends: d.NotAfter, Lasts: d.NotAfter.Sub(d.NotBefore)}
	right, _, _ := b.Right(d.Right)
	if right.Bypass != nil {
		e.Replacements = right.Bypass.MaxReplacements
		e.Estimate = right.Bypass.VolatileHosts
	}
	e.Hosts = hostsUnder(b, w, d.Control, d.Scope)
	e.WorstCase = e.PerHost.Times(sum(e.Hosts, e.Replacements))
	beside := besidesOf(b, w, d)
	e.Others = model.Money{Minor: sum(beside.shared, beside.apart), Currency: d.Caps.Under.Currency}
	e.Together = model.Money{Minor: sum(max(beside.joint, e.WorstCase.Minor), beside.apart), Currency: d.Caps.Under.Currency}
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

// hostsUnder counts the hosts on which a bypass of a control would be open.
func hostsUnder(b *policy.Bundle, w *model.World, control, scope string) int64 {
	services := b.Controls[control].Services
	var n int64
	for i := range w.Hosts {
		for _, s := range w.Hosts[i].Services {
			if (scope == model.AnyScope || scope == s) && slices.Contains(services, s) {
				n++
				break
			}
		}
	}
	return n
}

// budget is what the grants of one right and one UTC day share on a host: items
// of each pass within its own caps, and all of them within the largest total.
type budget struct {
	right   string
	scope   string // AnyScope when they differ: never fewer hosts than there are
	perHost int64  // the sum of what each could let through alone
	most    int64  // the largest total of a host
}

func (s *budget) add(d *model.Directive) {
	if s.right == "" {
		s.scope = d.Scope
	} else if s.scope != d.Scope {
		s.scope = model.AnyScope
	}
	s.right = d.Right
	s.perHost, s.most = sum(s.perHost, perHost(d.Caps).Minor), max(s.most, d.Caps.HostTotal.Minor)
}

func (s *budget) worst(b *policy.Bundle, w *model.World, control string) int64 {
	hosts := hostsUnder(b, w, control, s.scope)
	if right, _, _ := b.Right(s.right); right.Bypass != nil {
		hosts = sum(hosts, right.Bypass.MaxReplacements)
	}
	return model.Money{Minor: min(s.perHost, s.most)}.Times(hosts).Minor
}

// besides are worst cases around one grant, in its own currency.
type besides struct {
	shared int64 // others on the grant's own budget, without it
	joint  int64 // that budget with it; 0 if nothing shares it
	apart  int64 // others, on all other budgets
}

// besidesOf adds up every other grant of a control by which money may go, or may
// have gone on the same UTC day: those in force or to come, and those of that day
// that are over, since nobody knows here what they let through.
func besidesOf(b *policy.Bundle, w *model.World, d *model.Directive) besides {
	var out besides
	own := budget{}
	for i := range w.Issued {
		g := &w.Issued[i]
		if !isBeside(w, g, d) {
			continue
		}
		if sameBudget(&g.Directive, d) {
			own.add(&g.Directive)
			continue
		}
		if one, first := budgetFrom(w, i, d); first {
			out.apart = sum(out.apart, one.worst(b, w, d.Control))
		}
	}
	if own.right == "" {
		return out
	}
	out.shared = own.worst(b, w, d.Control)
	own.add(d)
	out.joint = own.worst(b, w, d.Control)
	return out
}

// budgetFrom collects the budget of one issued grant, unless an earlier one has
// collected it already.
func budgetFrom(w *model.World, at int, d *model.Directive) (budget, bool) {
	var out budget
	first := &w.Issued[at].Directive
	for i := range w.Issued {
		g := &w.Issued[i]
		if !sameBudget(&g.Directive, first) || !isBeside(w, g, d) {
			continue
		}
		if i < at {
			return budget{}, false
		}
		out.add(&g.Directive)
	}
	return out, true
}

func isBeside(w *model.World, g *model.Issued, d *model.Directive) bool {
	o := &g.Directive
	return o.Kind == model.Bypass && o.Control == d.Control && o.ID != d.ID && o.Caps.Under.Currency == d.Caps.Under.Currency &&
		(day(o).Equal(day(d)) || g.EndedBy == "" && w.Now.Before(o.NotAfter))
}

func sameBudget(a, b *model.Directive) bool { return a.Right == b.Right && day(a).Equal(day(b)) }

// day is the UTC day whose budget a grant spends, also when it lasts beyond
// midnight.
func day(d *model.Directive) time.Time { return d.NotBefore.UTC().Truncate(24 * time.Hour) }

// fitCaps gives a draft the caps of its right, with the budget per host made small
// enough that the worst case stays within the total, and with the other grants of
// the control within the root's. Where nothing is left of that, it stays too
// large: Evaluate says by how much.
func fitCaps(b *policy.Bundle, w *model.World, d *model.Directive, rule *policy.Bypass) {
	d.Caps = model.Caps{Under: rule.Under, HostCount: rule.HostCount, HostTotal: rule.HostTotal, Total: rule.Total}
	n := sum(hostsUnder(b, w, d.Control, d.Scope), rule.MaxReplacements)
	if n == 0 {
		return
	}
	d.Caps.HostTotal.Minor = min(d.Caps.HostTotal.Minor, d.Caps.Total.Minor/n)
	_, domain, _ := b.Right(d.Right)
	most := b.Root.Domains[domain].Total
	if most == nil || most.Currency != d.Caps.Total.Currency {
		return
	}
	if room := most.Minor - besidesOf(b, w, d).apart; room >= n && room < d.Caps.Total.Minor {
		d.Caps.Total.Minor = room
		d.Caps.HostTotal.Minor = min(d.Caps.HostTotal.Minor, room/n)
	}
}

// usedToday counts the other activations of the same right on the UTC day on which
// one begins. What is being judged again, because a co-signer hands it over or it
// is carried once more, does not count against itself.
func usedToday(w *model.World, use *model.Directive) int {
	n := 0
	for i := range w.Issued {
		if d := &w.Issued[i].Directive; d.Right == use.Right && d.ID != use.ID && day(d).Equal(day(use)) {
			n++
		}
	}
	return n
}
