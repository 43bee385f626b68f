package policy

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// everyRight makes a rule about all rights out of one about a right.
func everyRight(check func(l *lint, say say, file, path string, r *Right)) func(*lint, say) {
	return func(l *lint, say say) {
		l.eachRight(func(file, path string, r *Right) { check(l, say, file, path, r) })
	}
}

func rightRules() []rule { return slices.Concat(holderRules(), boundRules()) }

// holderRules are about who may use a right, and where.
func holderRules() []rule {
	return []rule{
		{"right-nobody-holds", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if l.root != nil && len(l.holders(r, 0)) == 0 {
				say(file, path+".who", "nobody holds the role %q", r.Who)
			}
		})},
		{"tiers-over-role", LintWarning, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if l.root == nil || r.Tiers == nil {
				return
			}
			if role, ok := l.root.Roles[r.Who]; ok && r.Tiers.To > role.MaxTier {
				say(file, path+".tiers.to", "the role %s reaches tier %d only; the rest of the range is out of reach", r.Who, role.MaxTier)
			}
		})},
		{"cosign", LintError, everyRight(cosign)},
		{"scope", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if len(r.Scope) == 0 {
				say(file, path+".scope", "the scope is empty; name services, or \"*\" for any")
			}
			for _, name := range r.Scope {
				if name != model.AnyScope && !l.service(name) {
					say(file, path+".scope", "the ladder names no service %q", name)
				}
			}
		})},
	}
}

// boundRules are about the bounds that a kind needs and those it does not know.
func boundRules() []rule {
	return []rule{
		{"shed-without-tiers", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			wants := r.Kind == model.Shed || r.Kind == model.End && r.Ends == model.Shed
			if wants && (r.Tiers == nil || r.Tiers.From < 1 || r.Tiers.From > r.Tiers.To || r.Tiers.To > maxTiers) {
				say(file, path+".tiers", "a right to shed or to recover has tiers from 1 to at most %d", maxTiers)
			}
		})},
		{"off-without-feature", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if r.Kind != model.Off || r.Feature == "*" {
				return
			}
			if r.Feature == "" {
				say(file, path, "a right to switch off names a feature, or \"*\" for any")
			} else if l.Features != nil && l.Features.Features[r.Feature].Class == "" {
				say(file, path+".feature", "there is no feature %q", r.Feature)
			}
		})},
		{"end-without-kind", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			ends := []model.Kind{model.Shed, model.Off, model.Bypass, model.Freeze, model.Dimmer, model.Ping}
			if r.Kind == model.End && !slices.Contains(ends, r.Ends) {
				say(file, path, "a right to end names the kind that it ends")
			}
		})},
		{"window-without-end", LintError, everyRight(func(_ *lint, say say, file, path string, r *Right) {
			if (r.Kind == model.Freeze || r.Kind == model.Ping) && r.Lasts <= 0 {
				say(file, path, "a right of kind %s says how long it lasts at most", r.Kind)
			}
		})},
		{"bypass-without-cap", LintError, everyRight(bypassWithoutCap)},
		{"foreign-bound", LintError, everyRight(foreignBound)},
		{"blind-alone", LintError, everyRight(func(_ *lint, say say, file, path string, r *Right) {
			if r.Blind && r.Cosign.Count < 1 {
				say(file, path+".cosign", "a recovery without known-good signals wants a second person")
			}
		})},
		{"unknown-runbook", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if r.Runbook != "" && l.names.Runbooks != nil && !slices.Contains(l.names.Runbooks, r.Runbook) {
				say(file, path+".runbook", "there is no runbook %q", r.Runbook)
			}
		})},
		{"over-grant", LintError, func(l *lint, say say) { l.overGrant(say) }},
		{"right-granted-twice", LintError, func(l *lint, say say) {
			seen := make(map[string]string)
			l.eachRight(func(file, path string, _ *Right) {
				if other := seen[path]; other != "" {
					say(file, path, "%s grants a right of this name already", other)
				}
				seen[path] = file
			})
		}},
	}
}

// cosign wants a group that exists and that can hold enough people besides at
// least one of those who may ask.
func cosign(l *lint, say say, file, path string, r *Right) {
	if l.root == nil {
		return
	}
	if _, ok := l.root.Groups[r.Cosign.Of]; !ok {
		say(file, path+".cosign.of", "the root has no group %q", r.Cosign.Of)
		return
	}
	if r.Cosign.Count < 0 {
		say(file, path+".cosign.count", "a number of co-signers is not negative")
	}
	holders := l.holders(r, 0)
	possible := slices.ContainsFunc(holders, func(requester Signer) bool {
		n := 0
		for _, person := range l.people {
			if person != requester.Name && l.root.InGroup(r.Cosign.Of, person) {
				n++
			}
		}
		return n >= r.Cosign.Count
	})
	if len(holders) > 0 && !possible {
		say(file, path+".cosign.count", "%d co-signers of %s are wanted and the group never has so many besides the one who asks", r.Cosign.Count, r.Cosign.Of)
	}
}

func bypassWithoutCap(_ *lint, say say, file, path string, r *Right) {
	if r.Kind != model.Bypass {
		return
	}
	b := r.Bypass
	if b == nil {
		say(file, path, "a bypass has no bounds at all; write bypass: with every cap")
		return
	}
	for _, cap := range []struct {
		field string
		set   bool
	}{
		{"under", b.Under.Minor > 0}, {"host_count", b.HostCount > 0}, {"host_total", b.HostTotal.Minor > 0}, {"total", b.Total.Minor > 0},
		{"lasts", b.Lasts > 0}, {"per_day", b.PerDay > 0}, {"live", b.Live > 0}, {"max_replacements", b.MaxReplacements >= 0},
	} {
		if !cap.set {
			say(file, path+".bypass."+cap.field, "%s is not above zero; a bypass has every cap", cap.field)
		}
	}
}

// foreignBound finds a bound that the kind does not read: its author believes in
// a limit that nothing enforces.
func foreignBound(_ *lint, say say, file, path string, r *Right) {
	recovery := r.Kind == model.End && r.Ends == model.Shed
	for _, b := range []struct {
		field   string
		set, ok bool
	}{
		{"ends", r.Ends != "", r.Kind == model.End},
		{"tiers", r.Tiers != nil, r.Kind == model.Shed || recovery},
		{"feature", r.Feature != "", r.Kind == model.Off},
		{"bypass", r.Bypass != nil, r.Kind == model.Bypass},
		{"dimmer", r.Dimmer != nil, r.Kind == model.Dimmer},
		{"no_second", r.NoSecond != nil, r.Kind == model.Bypass},
		{"expires", !r.Expires.IsZero(), r.Kind == model.Bypass},
		{"lead", r.Lead != 0, r.Cosign.Count > 0},
		{"rehearsed_within", r.RehearsedWithin != 0, r.Kind == model.Bypass || recovery},
		{"lasts", r.Lasts != 0, r.Kind == model.Freeze || r.Kind == model.Ping},
		{"blind", r.Blind, recovery},
	} {
		if b.set && !b.ok {
			say(file, path+"."+b.field, "%s means nothing for a right of kind %s; nothing would enforce it", b.field, r.Kind)
		}
	}
}

// overGrant says before signing what Load would say after it.
func (l *lint) overGrant(say say) {
	if l.root == nil {
		return
	}
	check := func(domain Domain, rights map[string]Right, controls map[string]Control) {
		rule, ok := l.root.Domains[domain]
		for _, name := range sortedKeys(rights) {
			right := rights[name]
			if why := rightWithin(&right, controls, rule); ok && why != "" {
				say(fileOf(domain), "rights."+name, "%s", why)
			}
		}
	}
	if l.Rights != nil {
		check(Rights, l.Rights.Rights, nil)
	}
	for _, domain := range sortedKeys(l.Controls) {
		check(domain, l.Controls[domain].Rights, l.Controls[domain].Controls)
	}
}

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
