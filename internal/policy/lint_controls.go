package policy

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

func everyControl(check func(l *lint, say say, file, path string, c *Control)) func(*lint, say) {
	return func(l *lint, say say) {
		for _, domain := range sortedKeys(l.Controls) {
			for _, name := range sortedKeys(l.Controls[domain].Controls) {
				c := l.Controls[domain].Controls[name]
				check(l, say, fileOf(domain), "controls."+name, &c)
			}
		}
	}
}

func everyBypass(check func(l *lint, say say, file, path string, r *Right)) func(*lint, say) {
	return everyRight(func(l *lint, say say, file, path string, r *Right) {
		if r.Bypass != nil {
			check(l, say, file, path+".bypass", r)
		}
	})
}

func controlRules() []rule {
	return []rule{
		{"authorization-opens", LintError, everyControl(func(_ *lint, say say, file, path string, c *Control) {
			if c.Protects == ProtectsAuthorization && c.Fails != FailsClosed {
				say(file, path+".fails", "authorization never opens; it fails closed")
			}
		})},
		{"control-fails-open", LintError, everyControl(func(_ *lint, say say, file, path string, c *Control) {
			if (c.Protects == ProtectsMoney || c.Protects == ProtectsInventory) && c.Fails == FailsOpen {
				say(file, path+".fails", "what protects %s never fails open by itself, without a cap and without an end; it fails closed, and a bypass opens it within bounds", c.Protects)
			}
		})},
		{"control-owner", LintError, everyControl(func(l *lint, say say, file, path string, c *Control) {
			if !l.owner(c.Owner) {
				say(file, path+".owner", "owner %q is neither a person nor a group of the root", c.Owner)
			}
		})},
		{"control-services", LintError, everyControl(func(l *lint, say say, file, path string, c *Control) {
			if len(c.Services) == 0 {
				say(file, path+".services", "a control names the services that hold it")
			}
			for _, name := range c.Services {
				if !l.service(name) {
					say(file, path+".services", "the ladder names no service %q", name)
				}
			}
		})},
		{"control-defined-twice", LintError, func(l *lint, say say) {
			for _, domain := range sortedKeys(l.Controls) {
				for _, name := range sortedKeys(l.Controls[domain].Controls) {
					if first := l.control(name); first != domain {
						say(fileOf(domain), "controls."+name, "%s defines a control of this name already", fileOf(first))
					}
				}
			}
		}},
		{"item-over-host", LintError, everyBypass(func(_ *lint, say say, file, path string, r *Right) {
			if over(r.Bypass.Under, r.Bypass.HostTotal) {
				say(file, path+".under", "one item may be worth more than a host may let through in a day (%s over %s)", r.Bypass.Under, r.Bypass.HostTotal)
			}
		})},
		{"total-out-of-reach", LintWarning, everyBypass(func(l *lint, say say, file, path string, r *Right) {
			if worst, ok := l.worstCase(r); ok && over(r.Bypass.Total, worst) {
				say(file, path+".total", "the total of %s can never be reached: all hosts together let through %s", r.Bypass.Total, worst)
			}
		})},
		{"worst-case-over-total", LintWarning, everyBypass(func(l *lint, say say, file, path string, r *Right) {
			if worst, ok := l.worstCase(r); ok && over(worst, r.Bypass.Total) {
				say(file, path+".host_total", "hosts enforce their own budgets only: together they let through %s, the total says %s", worst, r.Bypass.Total)
			}
		})},
	}
}

// worstCase is (hosts + replacements) x budget of one host, over the hosts of the
// right's scope that hold the control.
func (l *lint) worstCase(r *Right) (model.Money, bool) {
	if l.Backends == nil || len(l.Backends.Inventory.Hosts) == 0 {
		return model.Money{}, false
	}
	domain := l.control(r.Bypass.Control)
	if domain == "" {
		return model.Money{}, false
	}
	services := l.Controls[domain].Controls[r.Bypass.Control].Services
	hosts := int64(0)
	for _, h := range l.Backends.Inventory.Hosts {
		if slices.ContainsFunc(h.Services, func(s string) bool {
			return slices.Contains(services, s) && (slices.Contains(r.Scope, s) || slices.Contains(r.Scope, model.AnyScope))
		}) {
			hosts++
		}
	}
	return r.Bypass.HostTotal.Times(hosts + r.Bypass.MaxReplacements), true
}
