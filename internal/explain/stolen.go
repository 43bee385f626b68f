package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// maxTier is the highest tier that a ladder may have.
const maxTier = 6

// alone is what one key can do without any other: every answer is given by
// Admit, which is what a host asks.
type alone struct {
	sheds    int    // highest tier; 0: none
	shedsBy  string // the right, "" for the role alone
	recovers int    // highest tier that it leaves; 0: none
	uses     []string
	bare     []string              // what it does under no right at all
	short    map[string]model.Code // rights of the holder's own role that it cannot use alone, and why
	worst    moneyOf
	bypasses []string
	open     []string // of bypasses whose worst case nobody knows
}

// stolenKeys says for everybody who has a key what that key alone can do.
func (p *page) stolenKeys() []Part {
	intro := []Sentence{say("stolen.how", "Computed from these documents by what hosts check, as if all of them were in force on %s. Whoever has the key need not use the console: nothing that only the console enforces is in the way.", when(p.Now))}
	out := []Part{{Sentences: intro}}
	for _, name := range sortedKeys(p.Root.People) {
		out = append(out, Part{Name: name, Sentences: p.keyOf(policy.Signer{Name: name})})
	}
	for _, name := range sortedKeys(p.Root.Machines) {
		out = append(out, Part{Name: name + " (a machine)", Sentences: p.keyOf(policy.Signer{Name: name, Machine: true})})
	}
	return out
}

func (p *page) keyOf(s policy.Signer) []Sentence {
	if len(p.b.FingerprintsOf(s.Name)) == 0 {
		return []Sentence{say("stolen.dead", "Every key is revoked: it can do nothing.")}
	}
	a := p.alone(s)
	out := a.money()
	if a.sheds > 0 {
		by := "by " + a.shedsBy
		if a.shedsBy == "" {
			by = "under no right at all, which hosts take from its role so that nobody can stop a fleet from shedding"
		}
		out = append(out, say("stolen.sheds", "Can shed to tier %d at most, %s.", a.sheds, by))
	}
	if a.recovers > 0 {
		out = append(out, say("stolen.recovers", "Can leave tiers from %d down, whatever the signals say: hosts do not see them.", a.recovers))
	}
	if len(a.uses) > 0 {
		out = append(out, say("stolen.uses", "Can use alone: %s.", list(a.uses)))
	}
	if len(a.bare) > 0 {
		out = append(out, say("stolen.bare", "Under no right at all, because its role tightens, it can %s.", list(a.bare)))
	}
	out = append(out, p.shortOf(&a)...)
	if a.sheds == 0 && a.recovers == 0 && len(a.uses)+len(a.bare)+len(a.bypasses) == 0 {
		out = append(out, p.nothing())
	}
	if s.Machine {
		return append(out, say("stolen.signs-nothing", "A machine signs no document and is never a second person."))
	}
	out = append(out, p.secondFor(s.Name)...)
	return append(out, p.signsAlone(s.Name)...)
}

// secondFor lists the rights for which somebody is a second person: two keys, his
// and one of the role, are what it takes.
func (p *page) secondFor(name string) []Sentence {
	var rights []string
	for _, right := range p.rightsInView() {
		if r, _, _ := p.b.Right(right); r.Cosign.Count > 0 && p.Root.InGroup(r.Cosign.Of, name) {
			rights = append(rights, right)
		}
	}
	if len(rights) == 0 {
		return nil
	}
	return []Sentence{say("stolen.second", "Counts as a second person, besides a key of the role, for %s.", list(rights))}
}

// nothing is about what is on the page: with --as that is not everything.
func (p *page) nothing() Sentence {
	if p.as != "" {
		return say("stolen.nothing", "Can use none of these rights alone.")
	}
	return say("stolen.nothing", "Can give no directive alone.")
}

func (a *alone) money() []Sentence {
	if len(a.bypasses) == 0 {
		return nil
	}
	var out []Sentence
	if len(a.worst) > 0 {
		out = append(out, say("stolen.bypass", "Can open bypasses worth at most %s in one UTC day: %s.", a.worst.words(), list(a.bypasses)))
	}
	if len(a.open) > 0 {
		out = append(out, say("stolen.bypass-unknown", "Can open bypasses whose worst case is not known, because the inventory names no host: %s.", list(a.open)))
	}
	return out
}

// shortOf says what the key cannot do alone although its holder has the role.
func (p *page) shortOf(a *alone) []Sentence {
	var out []Sentence
	for _, name := range sortedKeys(a.short) {
		r, _, _ := p.b.Right(name)
		switch code := a.short[name]; code {
		case model.CodeQuorum:
			out = append(out, say("stolen.cannot", "Cannot use %s alone: it takes %s of %s besides.", name, count(int64(r.Cosign.Count), "signature", "signatures"), r.Cosign.Of))
		case model.CodeWrongRole:
			out = append(out, say("stolen.cannot", "Cannot use %s: its role goes no higher than tier %d.", name, p.Root.Roles[r.Who].MaxTier))
		case model.CodePolicyExpired:
			out = append(out, say("stolen.cannot", "Cannot use %s: it has expired.", name))
		default:
			out = append(out, say("stolen.cannot", "Cannot use %s: hosts refuse it (%s).", name, code))
		}
	}
	return out
}

// alone tries the widest use of every right in view with one signature.
func (p *page) alone(s policy.Signer) alone {
	a := alone{short: make(map[string]model.Code), worst: make(moneyOf)}
	for _, name := range p.rightsInView() {
		r, _, _ := p.b.Right(name)
		if !p.Root.HasRole(r.Who, s) {
			continue
		}
		code := p.try(s, name, &r, &a)
		if code != "" {
			a.short[name] = code
		}
	}
	if p.as == "" {
		p.withoutRight(s, &a)
	}
	return a
}

// try asks whether a right can be used alone and notes how far.
func (p *page) try(s policy.Signer, name string, r *policy.Right, a *alone) model.Code {
	switch {
	case r.Kind == model.Shed, r.Kind == model.End && r.Ends == model.Shed:
		return p.tryTiers(s, name, r, a)
	case r.Kind == model.Bypass:
		code := p.admits(s, widest(p, name, r, 0))
		if code == "" {
			a.bypasses = append(a.bypasses, name)
			if w := p.worst(name); w == nil || w.Hosts == 0 {
				a.open = append(a.open, name)
			} else {
				a.worst.add(w.WorstCase)
			}
		}
		return code
	}
	code := p.admits(s, widest(p, name, r, 0))
	if code == "" {
		a.uses = append(a.uses, name)
	}
	return code
}

func (p *page) tryTiers(s policy.Signer, name string, r *policy.Right, a *alone) model.Code {
	if r.Tiers == nil {
		return model.CodeOverTier
	}
	code := model.CodeOverTier
	for tier := min(r.Tiers.To, maxTier); tier >= max(r.Tiers.From, 1); tier-- {
		if code = p.admits(s, widest(p, name, r, tier)); code != "" {
			continue
		}
		switch {
		case r.Kind == model.End:
			a.recovers = max(a.recovers, tier)
		case tier > a.sheds:
			a.sheds, a.shedsBy = tier, name
		}
		break
	}
	return code
}

// withoutRight tries what hosts take from a role that may tighten under a right
// that they do not know, and what they take under a policy newer than theirs.
func (p *page) withoutRight(s policy.Signer, a *alone) {
	for tier := maxTier; tier >= 1; tier-- {
		d := p.draft(model.Shed, model.AnyScope)
		if d.Tier = tier; p.admits(s, d) == "" && tier > a.sheds {
			a.sheds, a.shedsBy = tier, ""
		}
		d = p.draft(model.End, model.AnyScope)
		d.Ends, d.From, d.To, d.Percent = model.Shed, tier, tier-1, 100
		d.Policy.Version++
		if p.admits(s, d) == "" {
			a.recovers = max(a.recovers, tier)
		}
	}
	feature, freeze, bypass := p.draft(model.Off, model.AnyScope), p.draft(model.Freeze, model.AnyScope), p.draft(model.End, model.AnyScope)
	if len(p.b.Features) > 0 {
		feature.Feature = sortedKeys(p.b.Features)[0]
	}
	freeze.NotAfter, bypass.Ends = freeze.NotBefore.AddDate(1, 0, 0), model.Bypass
	for _, bare := range []struct {
		what string
		d    *model.Directive
	}{{"switch any feature off", feature}, {"freeze for any time", freeze}, {"end any bypass", bypass}} {
		if p.admits(s, bare.d) == "" {
			a.bare = append(a.bare, bare.what)
		}
	}
}

func (p *page) admits(s policy.Signer, d *model.Directive) model.Code {
	return p.b.AdmitNamed(d, s.Name, nil, p.Now)
}

func (p *page) draft(kind model.Kind, scope string) *model.Directive {
	return &model.Directive{
		Fleet: p.Root.Fleet, Kind: kind, Scope: scope, Policy: p.b.Ref,
		IssuedAt: p.Now.Truncate(time.Second), NotBefore: p.Now.Truncate(time.Second),
	}
}

// widest is the directive that takes everything a right allows.
func widest(p *page, name string, r *policy.Right, tier int) *model.Directive {
	scope := model.AnyScope
	if !slices.Contains(r.Scope, scope) && len(r.Scope) > 0 {
		scope = r.Scope[0]
	}
	d := p.draft(r.Kind, scope)
	d.Right, d.Ends = name, r.Ends
	lasts := r.Lasts
	switch r.Kind {
	case model.Shed:
		d.Tier = tier
	case model.End:
		d.From, d.To, d.Percent = tier, tier-1, 100
	case model.Off:
		d.Feature = r.Feature
		if r.Feature == "*" && len(p.b.Features) > 0 {
			d.Feature = sortedKeys(p.b.Features)[0]
		}
	case model.Dimmer:
		if r.Dimmer != nil {
			d.TargetMS, d.Floor, d.Ceiling = r.Dimmer.TargetMS.To, r.Dimmer.Floor, r.Dimmer.Ceiling
		}
	case model.Bypass:
		if b := r.Bypass; b != nil {
			lasts, d.Control = b.Lasts, b.Control
			d.Caps = model.Caps{Under: b.Under, HostCount: b.HostCount, HostTotal: b.HostTotal, Total: b.Total}
		}
	}
	if lasts > 0 {
		d.NotAfter = d.NotBefore.Add(lasts.Std())
	}
	return d
}

// signsAlone lists the files that one person can sign without anybody else, and
// what would follow from it.
func (p *page) signsAlone(name string) []Sentence {
	person := map[string]bool{name: true}
	var out []Sentence
	if p.Root.Satisfied(p.Root.Root, person) {
		out = append(out, say("stolen.root", "Can sign the next trust root ALONE: that is everything."))
	}
	publishes := p.Root.Satisfied(p.Root.Publish, person)
	if publishes {
		out = append(out, say("stolen.publish", "Can publish alone: choose which signed versions are in force, never older ones than before, and leave documents out, which takes their rights away. Cannot write a document that its owners have not signed."))
	}
	var files []string
	for _, domain := range sortedKeys(p.Root.Domains) {
		if rule := p.Root.Domains[domain]; p.signs(rule.Group) && p.Root.Satisfied(rule.Group, person) {
			files = append(files, string(domain))
			out = append(out, grantsAlone(domain, rule)...)
		}
	}
	if len(files) > 0 {
		then := "somebody who may publish has to put them in force"
		if publishes {
			then = "and can put them in force, since the same key publishes"
		}
		out = append(out, say("stolen.signs", "Can sign new versions of %s alone; %s.", list(files), then))
	}
	if !publishes && len(files) == 0 {
		out = append(out, say("stolen.signs-nothing", "Can sign none of these documents alone, nor the manifest, nor the trust root."))
	}
	return out
}

// grantsAlone says how much money a document may open that one person can sign.
func grantsAlone(domain policy.Domain, rule policy.DomainRule) []Sentence {
	if !slices.Contains(rule.Grants, model.Bypass) || rule.Under == nil || rule.Total == nil {
		return nil
	}
	return []Sentence{say("stolen.grants", "Could write any bypass into %s alone, up to the trust root's bounds: items under %s, %s in one UTC day for each right, %s.",
		domain, rule.Under, rule.Total, rule.Lasts)}
}

// rootParts explain the trust root: people, groups, roles, and who signs what.
func (p *page) rootParts() []Part {
	r := p.Root
	out := []Part{{Sentences: []Sentence{
		say("signers", "%s signs it: %s. A next root needs the thresholds of this one and of its own.", r.Root, p.wants(r.Root)),
		say("version", "Version %d, until %s.", r.Version, when(r.Expires)),
	}}}
	groups := Part{Name: "groups"}
	for _, name := range sortedKeys(r.Groups) {
		groups.Sentences = append(groups.Sentences, say("root.group", "%s is %s.", name, p.wants(name)))
	}
	roles := Part{Name: "roles"}
	for _, name := range sortedKeys(r.Roles) {
		role := r.Roles[name]
		text := fmt.Sprintf("%s is held by %s and goes no higher than tier %d", name, list(holders(r, name)), role.MaxTier)
		if role.Tightens {
			text += "; it may shed, switch off and end a bypass although the matrix is not in force"
		}
		roles.Sentences = append(roles.Sentences, say("root.role", "%s.", text))
	}
	people := Part{Name: "people and machines"}
	for _, name := range sortedKeys(r.People) {
		person := r.People[name]
		people.Sentences = append(people.Sentences, say("root.person", "%s is %s, reached by %s, with %s.", name, person.Name, person.Reach, p.keyWords(name, len(person.Keys))))
	}
	for _, name := range sortedKeys(r.Machines) {
		people.Sentences = append(people.Sentences, say("root.machine", "%s is a machine with %s; it never counts in a quorum.", name, p.keyWords(name, len(r.Machines[name].Keys))))
	}
	return append(out, groups, roles, people)
}

func (p *page) keyWords(name string, all int) string {
	words := count(int64(all), "key", "keys")
	if live := len(p.b.FingerprintsOf(name)); live < all {
		words += fmt.Sprintf(", %d of them revoked", all-live)
	}
	return words
}

func (p *page) manifestParts() []Part {
	out := []Sentence{
		say("signers", "%s signs it: %s.", p.Root.Publish, p.wants(p.Root.Publish)),
		say("manifest.what", "It names the version of every document that is in force together: %s.", list(p.domainNames())),
	}
	if p.Unsigned != "" {
		out = append(out, say("unsigned", "NOT SIGNED YET. %s", sentence(p.Unsigned)))
		p.out.Signed = false
	} else {
		out = append(out, say("version", "Version %d, SHA-256 %s.", p.Ref.Version, p.Ref.Digest))
	}
	return []Part{{Sentences: out}}
}

func (p *page) domainNames() []string {
	var out []string
	for _, domain := range sortedKeys(documentsOf(&p.Docs)) {
		out = append(out, strings.TrimSpace(string(domain)))
	}
	return out
}
