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

func rightRules() []rule {
	return slices.Concat(holderRules(), boundRules(), bypassRules(), endRules())
}

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
			l.scope(say, file, path+".scope", r.Scope)
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
	for _, field := range b.missing() {
		say(file, path+".bypass."+field, "%s is not above zero; a bypass has every cap", field)
	}
}

// missing lists the caps that bound nothing.
func (b *Bypass) missing() []string {
	var out []string
	for _, bound := range b.bounds() {
		if bound.value < bound.least {
			out = append(out, bound.field)
		}
	}
	return out
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
