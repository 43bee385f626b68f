package decisions

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// oneBypass is 12 hosts x 2,000.00: what the small or the medium right costs at
// worst in the shop.
const oneBypass = 24_000_00

func TestOtherGrantsOfTheControlAreAddedUp(t *testing.T) {
	midnight := day0.Truncate(24 * time.Hour)
	minute := func(n int) time.Time { return midnight.Add(time.Duration(n) * time.Minute) }
	cap := func(g *model.Issued, count, hostTotal int64) {
		g.Directive.Caps.HostCount, g.Directive.Caps.HostTotal = count, usd(hostTotal)
	}
	for _, c := range []struct {
		name             string
		issue            func(*model.World)
		others, together int64
	}{
		{"there are none", func(*model.World) {}, 0, oneBypass},
		{"the same right on the same day shares the budget", func(w *model.World) { grant(w, 1, small, minute(1), minute(20)) }, oneBypass, oneBypass},
		{"also when it is over", func(w *model.World) { grant(w, 1, small, minute(1), minute(5)) }, oneBypass, oneBypass},
		{"a smaller one inside", func(w *model.World) { cap(grant(w, 1, small, minute(1), minute(20)), 100, 500_00) }, 12 * 500_00, oneBypass},
		{"another right has another budget", func(w *model.World) { grant(w, 1, medium, minute(1), minute(20)) }, oneBypass, 2 * oneBypass},
		{"also when it is over: the money of today may be gone", func(w *model.World) { grant(w, 1, medium, minute(1), minute(5)) }, oneBypass, 2 * oneBypass},
		{"also when it was ended", func(w *model.World) { grant(w, 1, medium, minute(1), minute(20)).EndedBy = id(9) }, oneBypass, 2 * oneBypass},
		{"two of another right share theirs", func(w *model.World) {
			grant(w, 1, medium, minute(1), minute(5))
			grant(w, 2, medium, minute(6), minute(20))
		}, oneBypass, 2 * oneBypass},
		{"the same right of yesterday, still in force", func(w *model.World) { grant(w, 1, small, minute(-5), minute(15)) }, oneBypass, 2 * oneBypass},
		{"two of yesterday, and the smaller one is in force", func(w *model.World) {
			grant(w, 1, small, minute(-15), minute(0))
			cap(grant(w, 2, small, minute(-5), minute(15)), 100, 500_00)
		}, 12 * 500_00, oneBypass + 12*500_00},
		{"of yesterday and over", func(w *model.World) { grant(w, 1, small, minute(-15), minute(0)) }, 0, oneBypass},
		{"of yesterday and ended", func(w *model.World) { grant(w, 1, small, minute(-5), minute(15)).EndedBy = id(9) }, 0, oneBypass},
		{"tomorrow's, signed already", func(w *model.World) { grant(w, 1, small, minute(24*60), minute(24*60+9)) }, oneBypass, 2 * oneBypass},
		{"another control", func(w *model.World) { grant(w, 1, medium, minute(1), minute(20)).Directive.Control = "stock-check" }, 0, oneBypass},
		{"no bypass", func(w *model.World) { grant(w, 1, medium, minute(1), minute(20)).Directive.Kind = model.Ping }, 0, oneBypass},
		{"another currency is never added", func(w *model.World) {
			grant(w, 1, medium, minute(1), minute(20)).Directive.Caps = model.Caps{Under: model.Money{Minor: 1, Currency: "EUR"}}
		}, 0, oneBypass},
	} {
		b, w := shop(t, 0), calm()
		w.Now = minute(10)
		c.issue(w)
		d := grant(calm(), 99, small, w.Now, w.Now.Add(15*time.Minute)).Directive
		for range 2 {
			e := WorstCase(b, w, &d)
			if e.WorstCase != usd(oneBypass) || e.Others != usd(c.others) || e.Together != usd(c.together) {
				t.Errorf("%s: alone %s, others %s, together %s; want others %s, together %s", c.name, e.WorstCase, e.Others, e.Together, usd(c.others), usd(c.together))
			}
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(w.Issued), func(i, j int) { w.Issued[i], w.Issued[j] = w.Issued[j], w.Issued[i] })
		}
	}
}

// TestASharedBudgetIsNoLargerThanItsParts: a few dear items of one grant and many
// cheap ones of another may both pass on one host.
func TestASharedBudgetIsNoLargerThanItsParts(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Hosts = w.Hosts[:1] // and 2 replacements
	cheap := &grant(w, 1, small, day0, day0.Add(10*time.Minute)).Directive
	cheap.Caps = model.Caps{Under: usd(1001), HostCount: 100, HostTotal: usd(1_000_000), Total: usd(3_000_000)}
	dear := grant(calm(), 2, small, day0, day0.Add(10*time.Minute)).Directive
	dear.Caps = model.Caps{Under: usd(20_001), HostCount: 20, HostTotal: usd(1_000_000), Total: usd(3_000_000)}
	if e := WorstCase(b, w, &dear); e.WorstCase != usd(3*20*20_000) || e.Together != usd(3*(20*20_000+100*1000)) {
		t.Errorf("one host may let 20 x 200.00 and then 80 x 10.00 through: %s alone, %s together", e.WorstCase, e.Together)
	}
	cheap.Caps.HostTotal, dear.Caps.HostTotal = usd(450_000), usd(420_000)
	if e := WorstCase(b, w, &dear); e.Together != usd(3*450_000) {
		t.Errorf("no host lets more through than the larger total: %s", e.Together)
	}
}

func TestTwoScopesOfOneBudgetAreCountedOnAllTheirHosts(t *testing.T) {
	b := changed(t, func(p *parts) {
		control := p.docs.Controls["payments"].Controls["payment-risk"]
		control.Services = []string{"checkout", "edge"}
		p.docs.Controls["payments"].Controls["payment-risk"] = control
	})
	w := calm()
	w.Hosts = []model.HostView{{Host: "a", Services: []string{"checkout"}}, {Host: "b", Services: []string{"edge"}}}
	grant(w, 1, small, day0, day0.Add(time.Minute)).Directive.Scope = "edge"
	d := grant(calm(), 2, small, day0, day0.Add(time.Minute)).Directive
	if e := WorstCase(b, w, &d); e.WorstCase != usd(3*2000_00) || e.Together != usd(4*2000_00) {
		t.Errorf("a host of each and 2 replacements: %s alone, %s together", e.WorstCase, e.Together)
	}
}

func rooted(t *testing.T, total int64) *policy.Bundle {
	return changed(t, func(p *parts) {
		rule, most := p.root.Domains["payments"], usd(total)
		rule.Total = &most
		p.root.Domains["payments"] = rule
		p.right(medium, func(r *policy.Right) { r.Cosign, r.Bypass.Live = policy.Cosign{}, 2 })
	})
}

func TestAllGrantsOfAControlStayWithinWhatTheRootLetsItLose(t *testing.T) {
	for _, c := range []struct {
		name  string
		most  int64
		issue func(*model.World)
		want  model.Code
	}{
		{"alone", oneBypass, func(*model.World) {}, ""},
		{"a cent too much", 2*oneBypass - 1, func(w *model.World) { grant(w, 1, small, day0, day0.Add(time.Minute)) }, OverTotal},
		{"exactly what there is", 2 * oneBypass, func(w *model.World) { grant(w, 1, small, day0, day0.Add(time.Minute)) }, ""},
		{"one of the same right shares the budget", oneBypass, func(w *model.World) { grant(w, 1, medium, day0.Add(-time.Hour), day0.Add(-time.Minute)) }, ""},
		{"one of yesterday is still open", oneBypass, func(w *model.World) {
			w.Now = day0.Truncate(24 * time.Hour).Add(time.Minute)
			w.Incident.Lease.From = w.Now
			grant(w, 1, medium, w.Now.Add(-5*time.Minute), w.Now.Add(9*time.Minute))
		}, OverTotal},
	} {
		b, w := rooted(t, c.most), calm()
		c.issue(w)
		r := draft(t, b, w, Ask{Right: medium, Reason: "x"})
		caps := model.Caps{Under: usd(5000), HostCount: 100, HostTotal: usd(200000), Total: usd(3000000)}
		r.Directive.Caps = caps
		v := Evaluate(b, w, &r)
		if c.want == "" {
			expect(t, v, model.Permitted)
			continue
		}
		expect(t, v, model.Denied, c.want)
		if s := Sentence(v.Reasons[0]); !strings.Contains(s, "the other grants of payment-risk") || !strings.Contains(s, usd(2*oneBypass).String()) || !strings.Contains(s, usd(c.most).String()) {
			t.Errorf("%s: %q", c.name, s)
		}
	}
}

// TestADraftFitsIntoWhatIsLeft: what is offered is possible, and where nothing is
// left the refusal says how much it would be.
func TestADraftFitsIntoWhatIsLeft(t *testing.T) {
	w := calm()
	grant(w, 1, small, day0, day0.Add(time.Minute))
	b := rooted(t, oneBypass+12_000_00)
	r := draft(t, b, w, Ask{Right: medium, Reason: "x"})
	if c := r.Directive.Caps; c.Total != usd(12_000_00) || c.HostTotal != usd(1000_00) {
		t.Errorf("12,000.00 are left for 12 hosts: %+v", c)
	}
	expect(t, Evaluate(b, w, &r), model.Permitted)

	b = rooted(t, oneBypass+12)
	r = draft(t, b, w, Ask{Right: medium, Reason: "x"})
	if c := r.Directive.Caps; c.Total != usd(12) || c.HostTotal != usd(1) {
		t.Errorf("a cent a host is left: %+v", c)
	}
	b = rooted(t, oneBypass)
	r = draft(t, b, w, Ask{Right: medium, Reason: "x"})
	if r.Directive.Caps.HostTotal != usd(200000) {
		t.Errorf("nothing is left: %+v", r.Directive.Caps)
	}
	expect(t, Evaluate(b, w, &r), model.Denied, OverTotal)
}

func TestARootOfAnotherCurrencyLetsNothingThrough(t *testing.T) {
	b := changed(t, func(p *parts) {
		p.root.Domains["payments"] = policy.DomainRule{Group: "finance", Total: &model.Money{Minor: 1 << 40, Currency: "EUR"}}
	})
	w := calm()
	r := draft(t, b, w, Ask{Right: small, Reason: "x"})
	expect(t, Evaluate(b, w, &r), model.Denied, OverTotal)
}
