package policy

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// MaxAhead is how far in the future a directive may have been issued.
const MaxAhead = 24 * time.Hour

// Direction computes what a directive would do from the policy, not from its
// name: whatever weakens an entry of controls is loosening.
func (b *Bundle) Direction(d *model.Directive) model.Direction {
	switch d.Kind {
	case model.Bypass:
		return model.Loosen
	case model.Off:
		if b.mayBeControl(d.Feature) {
			return model.Loosen
		}
		return model.Tighten
	case model.End:
		if d.Ends == model.Bypass || d.Ends == model.Ping {
			return model.Tighten
		}
		return model.Recover
	default:
		return model.Tighten
	}
}

// Admit judges a directive by the static bounds: key, role, quorum, scope,
// tier, caps, duration, expiry of the policy. The empty code means admitted.
// fingerprints are the distinct keys whose signatures verified; now is the
// host's or the console's own time.
//
// Hosts call it for every token, Evaluate for every request, so that the console
// can never promise what a host refuses.
func (b *Bundle) Admit(d *model.Directive, fingerprints []string, now time.Time) model.Code {
	signers, code := b.signers(fingerprints)
	if code != "" {
		return code
	}
	return b.admit(d, signers, now)
}

// AdmitNamed is Admit for signers already resolved to names: what Evaluate uses
// before anybody has signed.
func (b *Bundle) AdmitNamed(d *model.Directive, actor string, cosigners []string, now time.Time) model.Code {
	signers := make([]Signer, 0, 4)
	for i := -1; i < len(cosigners); i++ {
		name := actor
		if i >= 0 {
			name = cosigners[i]
		}
		s := Signer{Name: name}
		if _, s.Machine = b.Root.Machines[name]; !s.Machine {
			if _, person := b.Root.People[name]; !person {
				return model.CodeUnknownKey
			}
		}
		if !slices.Contains(signers, s) {
			signers = append(signers, s)
		}
	}
	return b.admit(d, signers, now)
}

func (b *Bundle) signers(fingerprints []string) ([]Signer, model.Code) {
	out := make([]Signer, 0, 4)
	for _, fp := range fingerprints {
		s, ok := b.keys[fp]
		if !ok {
			return nil, model.CodeUnknownKey
		}
		if s.Revoked {
			return nil, model.CodeRevokedKey
		}
		// Two keys of one person are one person.
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, model.CodeUnknownKey
	}
	return out, ""
}

func (b *Bundle) admit(d *model.Directive, signers []Signer, now time.Time) model.Code {
	if d.Fleet != b.Root.Fleet {
		return model.CodeForeignFleet
	}
	if d.IssuedAt.After(now.Add(MaxAhead)) {
		return model.CodeFuture
	}
	if !known(d.Kind) {
		return model.CodeUnsupported
	}
	direction := b.Direction(d)
	r, ok := b.rights[d.Right]
	if !ok {
		return b.admitWithoutRow(d, direction, signers)
	}
	if code := b.withinRow(d, direction, &r, now); code != "" {
		return code
	}
	return b.quorum(d, &r.right, signers)
}

func known(k model.Kind) bool {
	switch k {
	case model.Shed, model.Off, model.Bypass, model.Freeze, model.Dimmer, model.Ping, model.End:
		return true
	}
	return false
}

// admitWithoutRow is for a directive whose right is not in force here: a newer
// policy named it, or the matrix lost a signature. Tightening goes through for
// whoever the root lets tighten; a recovery goes through when a newer policy
// judged it and the signer holds a role that may recover here; nothing else.
func (b *Bundle) admitWithoutRow(d *model.Directive, direction model.Direction, signers []Signer) model.Code {
	absent := model.CodeUnknownRight
	if state, ok := b.Domains[Rights]; !ok || !state.Active {
		absent = model.CodeInactiveDomain
	}
	for _, s := range signers {
		switch direction {
		case model.Tighten:
			if b.mayTighten(s, d) {
				return ""
			}
		case model.Recover:
			if d.Policy.Version > b.Ref.Version && b.mayRecover(s, d) {
				return ""
			}
		}
	}
	return absent
}

// mayBeControl reports whether switching name off may weaken a control: it is
// one, or it is no feature that we know while a document of controls is not in
// force. Stripping that document must not turn its control into a feature.
func (b *Bundle) mayBeControl(name string) bool {
	if _, control := b.Controls[name]; control {
		return true
	}
	if _, feature := b.Features[name]; feature {
		return false
	}
	for domain := range b.Domains {
		if !domain.fixed() && b.fallen(domain) {
			return true
		}
	}
	return false
}

// fallen reports whether a domain is there and not in force.
func (b *Bundle) fallen(domain Domain) bool {
	state, ok := b.Domains[domain]
	return ok && !state.Active
}

// mayTighten is for what makes a fleet do less, and for the end of a bypass. A
// freeze, a dimmer and a ping have bounds that only a row knows: without it they
// would be bounded by nothing.
func (b *Bundle) mayTighten(s Signer, d *model.Directive) bool {
	if d.Kind != model.Shed && d.Kind != model.Off && (d.Kind != model.End || d.Ends != model.Bypass) {
		return false
	}
	for _, name := range sortedKeys(b.Root.Roles) {
		role := b.Root.Roles[name]
		if role.Tightens && b.Root.HasRole(name, s) && (d.Kind != model.Shed || d.Tier <= role.MaxTier) {
			return true
		}
	}
	return false
}

func (b *Bundle) mayRecover(s Signer, d *model.Directive) bool {
	for _, r := range b.rights {
		if r.right.Kind == model.End && r.right.Ends == d.Ends && b.Root.HasRole(r.right.Who, s) &&
			d.From <= b.Root.Roles[r.right.Who].MaxTier {
			return true
		}
	}
	return false
}

// withinRow checks everything about a row that does not depend on who signs.
func (b *Bundle) withinRow(d *model.Directive, direction model.Direction, r *row, now time.Time) model.Code {
	right := &r.right
	if right.Kind != d.Kind || d.Kind == model.End && right.Ends != d.Ends {
		return model.CodeWrongKind
	}
	if !slices.Contains(right.Scope, model.AnyScope) && !slices.Contains(right.Scope, d.Scope) {
		return model.CodeOutOfScope
	}
	if direction == model.Loosen {
		if code := b.mayLoosen(d, r, now); code != "" {
			return code
		}
	}
	switch d.Kind {
	case model.Shed:
		return inTiers(right.Tiers, d.Tier)
	case model.Off:
		// Without the list of features nobody can say that one is unknown, and a
		// stripped signature must not stop anybody from shedding.
		if _, ok := b.Features[d.Feature]; !ok && !b.fallen(Features) {
			return model.CodeUnknownFeature
		}
		if right.Feature != "*" && right.Feature != d.Feature {
			return model.CodeOutOfScope
		}
	case model.End:
		if d.IsRecovery() {
			return inTiers(right.Tiers, d.From)
		}
	case model.Freeze, model.Ping:
		return window(d, right.Lasts)
	case model.Bypass:
		return withinBypass(d, right.Bypass)
	case model.Dimmer:
		return withinDimmer(d, right.Dimmer)
	}
	return ""
}

// withinDimmer: the target lies in the rule's range, and the share between its
// floor and its ceiling, the right way round.
func withinDimmer(d *model.Directive, rule *Dimmer) model.Code {
	if rule == nil || d.TargetMS < rule.TargetMS.From || d.TargetMS > rule.TargetMS.To ||
		d.Floor < rule.Floor || d.Ceiling > rule.Ceiling || d.Floor > d.Ceiling {
		return model.CodeOverCap
	}
	return ""
}

func inTiers(r *Range, tier int) model.Code {
	if r == nil || tier < r.From || tier > r.To {
		return model.CodeOverTier
	}
	return ""
}

func window(d *model.Directive, lasts model.Duration) model.Code {
	if d.NotAfter.IsZero() {
		return model.CodeNoEnd
	}
	if d.NotAfter.Sub(d.NotBefore) > lasts.Std() {
		return model.CodeOverDuration
	}
	return ""
}

// mayLoosen holds what only a loosening needs of the policy itself.
func (b *Bundle) mayLoosen(d *model.Directive, r *row, now time.Time) model.Code {
	if d.Policy.Version > b.Ref.Version {
		return model.CodePolicyBehind
	}
	if d.Policy.Version == b.Ref.Version && d.Policy.Digest != b.Ref.Digest {
		return model.CodePolicyMismatch
	}
	if !now.Before(b.RightExpires(r.domain, &r.right)) {
		return model.CodePolicyExpired
	}
	if d.Kind != model.Bypass || r.right.Bypass == nil {
		return model.CodeWrongKind
	}
	control, ok := b.Controls[d.Control]
	if !ok || d.Control != r.right.Bypass.Control {
		return model.CodeUnknownControl
	}
	if control.Protects == ProtectsAuthorization {
		return model.CodeNeverOpens
	}
	if d.Scope != model.AnyScope && !slices.Contains(control.Services, d.Scope) {
		return model.CodeOutOfScope
	}
	return ""
}

// RightExpires is when a right of a domain stops loosening anything: with its
// document, later if it says so itself, never later than the root.
func (b *Bundle) RightExpires(domain Domain, right *Right) time.Time {
	at := b.Domains[domain].Expires
	if right.Expires.After(at) {
		at = right.Expires
	}
	if b.Root.Expires.Before(at) {
		at = b.Root.Expires
	}
	return at
}

func withinBypass(d *model.Directive, rule *Bypass) model.Code {
	c := d.Caps
	if over(c.Under, rule.Under) || over(c.HostTotal, rule.HostTotal) || over(c.Total, rule.Total) || c.HostCount > rule.HostCount {
		return model.CodeOverCap
	}
	return window(d, rule.Lasts)
}

// over reports whether an amount exceeds its limit; another currency does.
func over(amount, limit model.Money) bool {
	return amount.Currency != limit.Currency || amount.Minor > limit.Minor
}

// quorum looks for a requester who holds the role, and counts everybody else:
// people of the group, by name. A group that is missing or empty has nobody in
// it, so it never makes a quorum smaller, and neither does a negative count.
func (b *Bundle) quorum(d *model.Directive, right *Right, signers []Signer) model.Code {
	role, code := b.Root.Roles[right.Who], model.CodeWrongRole
	for _, requester := range signers {
		if !b.Root.HasRole(right.Who, requester) || tierOf(d) > role.MaxTier {
			continue
		}
		n := 0
		for _, s := range signers {
			if s != requester && !s.Machine && b.Root.InGroup(right.Cosign.Of, s.Name) {
				n++
			}
		}
		if right.Cosign.Count >= 0 && n >= right.Cosign.Count {
			return ""
		}
		code = model.CodeQuorum
	}
	return code
}

func tierOf(d *model.Directive) int {
	if d.Kind == model.Shed {
		return d.Tier
	}
	return d.From
}
