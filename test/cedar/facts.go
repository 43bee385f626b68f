package cedar

import (
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

const (
	day   = 86_400
	never = 1 << 40 // seconds: longer ago than anybody asks for
)

// frozen lists the scopes of the freezes in force.
func (s *scene) frozen() types.Set {
	var out []types.Value
	for _, o := range s.others {
		if o.kind == model.Freeze && !o.ended && o.from <= s.now && s.now < o.until {
			out = append(out, types.String(o.scope))
		}
	}
	return types.NewSet(out...)
}

// usedToday counts the uses of a right on the day on which another one begins.
func (s *scene) usedToday(d *model.Directive) int {
	n := 0
	for _, o := range s.others {
		if o.right == d.Right && o.from/day == d.NotBefore.Unix()/day {
			n++
		}
	}
	return n
}

// live counts the grants of a right whose window meets that of another one.
func (s *scene) live(d *model.Directive) int {
	n := 0
	for _, o := range s.others {
		if o.kind == model.Bypass && o.right == d.Right && !o.ended && o.until > max(s.now, d.NotBefore.Unix()) && o.from < d.NotAfter.Unix() {
			n++
		}
	}
	return n
}

// age is how long ago a right was last used or rehearsed live.
func (s *scene) age(right string) int64 {
	if when, ok := s.used[right]; ok {
		return s.now - when
	}
	return never
}

func (s *scene) ages(p *rules) types.Record {
	out := types.RecordMap{}
	for _, name := range p.names {
		out[field(name)] = types.Long(s.age(name))
	}
	return types.NewRecord(out)
}

func field(name string) types.String { return types.String(strings.ReplaceAll(name, "-", "_")) }

// waited is by right how long the oldest proposal of it has waited in vain for
// somebody who could still sign, for a scope that meets the one asked for.
func (s *scene) waited(p *rules, d *model.Directive) types.Record {
	out := types.RecordMap{}
	rights := p.rights
	for _, name := range p.names {
		longest := int64(-1)
		right := rights[name]
		for _, a := range s.asked {
			if a.right == name && meets(a.scope, d.Scope) && s.now < a.at+window(&right) && p.tooFew(&right, &a) {
				longest = max(longest, s.now-a.at)
			}
		}
		out[field(name)] = types.Long(longest)
	}
	return types.NewRecord(out)
}

func meets(a, b string) bool { return a == b || a == model.AnyScope || b == model.AnyScope }

// window is the longest that a proposal of a right can be waited for: until it
// could start, and for as long as it would last.
func window(right *policy.Right) int64 {
	lead := int64(180)
	if right.Lead > 0 {
		lead = int64(right.Lead.Std().Seconds())
	}
	if right.Cosign.Count == 0 {
		lead = 0
	}
	if right.Bypass != nil {
		return lead + int64(right.Bypass.Lasts.Std().Seconds())
	}
	return lead + int64(right.Lasts.Std().Seconds())
}

func (p *rules) tooFew(right *policy.Right, a *proposal) bool {
	group := membersOf(p.root, []string{right.Cosign.Of})
	have := map[string]bool{}
	for _, name := range a.signers {
		if name != a.requester && slices.Contains(group, name) {
			have[name] = true
		}
	}
	return len(have) < right.Cosign.Count
}

// together is what the grants of one control may cost on all hosts, this one
// included: budgets of one right and one day are shared.
func (s *scene) together(p *rules, d *model.Directive) int64 {
	type key struct {
		right string
		day   int64
	}
	type budget struct {
		scopes    []string
		sum, most int64
	}
	budgets := map[key]*budget{}
	add := func(k key, scope string, perHost, most int64) {
		if budgets[k] == nil {
			budgets[k] = &budget{}
		}
		b := budgets[k]
		b.scopes, b.sum, b.most = append(b.scopes, scope), b.sum+perHost, max(b.most, most)
	}
	today := d.NotBefore.Unix() / day
	for _, o := range s.others {
		inForce := !o.ended && s.now < o.until
		if o.kind == model.Bypass && o.control == d.Control && d.Caps.Under.Currency == "USD" && (o.from/day == today || inForce) {
			add(key{o.right, o.from / day}, o.scope, o.perHost, o.perHost)
		}
	}
	add(key{d.Right, today}, d.Scope, min(max(d.Caps.Under.Minor-1, 0)*max(d.Caps.HostCount, 0), max(d.Caps.HostTotal.Minor, 0)), d.Caps.HostTotal.Minor)
	total := int64(0)
	for k, b := range budgets {
		scope := b.scopes[0]
		for _, other := range b.scopes {
			if other != scope {
				scope = model.AnyScope
			}
		}
		hosts := int64(0)
		if doc := p.docs.Controls[money]; doc != nil {
			for _, service := range doc.Controls[d.Control].Services {
				if scope == model.AnyScope || scope == service {
					hosts += int64(s.hosts[service])
				}
			}
		}
		if bounds := p.rights[k.right].Bypass; bounds != nil {
			hosts += bounds.MaxReplacements
		}
		total += min(b.sum, b.most) * hosts
	}
	return total
}
