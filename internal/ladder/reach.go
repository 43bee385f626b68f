package ladder

import (
	"slices"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// shedRight is the right by which the machine sheds a scope to an automatic tier;
// "" if it may not.
func (l *look) shedRight(scope string, tier int) string {
	if t, ok := l.b.TierOf(tier); !ok || !t.Auto {
		return ""
	}
	return l.right(model.Shed, scope, tier)
}

// recoverRight is the right by which it leaves a tier, when that is known to be
// good.
func (l *look) recoverRight(scope string, tier int) string { return l.right(model.End, scope, tier) }

func (l *look) right(kind model.Kind, scope string, tier int) string {
	for _, name := range l.b.RightsOf(kind) {
		r, _, _ := l.b.Right(name)
		ends := kind == model.Shed || r.Ends == model.Shed && !r.Blind
		if ends && l.mine(&r) && r.Tiers != nil && tier >= r.Tiers.From && tier <= r.Tiers.To &&
			tier <= l.b.Root.Roles[r.Who].MaxTier && covers(r.Scope, scope) {
			return name
		}
	}
	return ""
}

// mine: a right that the machine may use without anybody else.
func (l *look) mine(r *policy.Right) bool {
	return r.Cosign.Count == 0 && decisions.IsMachine(l.b, l.Machine) && l.b.Root.HasRole(r.Who, policy.Signer{Name: l.Machine, Machine: true})
}

func covers(scopes []string, scope string) bool {
	return slices.Contains(scopes, model.AnyScope) || slices.Contains(scopes, scope)
}

// entered are the scopes that the machine sheds when signals call for it: all
// services at once where it may, else one by one.
func (l *look) entered() []string {
	var out []string
	for _, name := range l.b.RightsOf(model.Shed) {
		if r, _, _ := l.b.Right(name); l.mine(&r) {
			out = append(out, r.Scope...)
		}
	}
	if slices.Contains(out, model.AnyScope) {
		return []string{model.AnyScope}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// shedScopes are those in which something is in force.
func (l *look) shedScopes() []string {
	var out []string
	for i := range l.w.Issued {
		d := &l.w.Issued[i].Directive
		if d.EndedAs() == model.Shed && l.w.Issued[i].LiveAt(l.now) && !slices.Contains(out, d.Scope) && decisions.ChainOf(l.w, d.Scope).Tier > 0 {
			out = append(out, d.Scope)
		}
	}
	slices.Sort(out)
	return out
}
