package decisions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Ask is what a person says when he wants to use a right; everything else is
// filled in from the policy and the world.
type Ask struct {
	Right    string
	Scope    string // "": the widest the right covers; an ending: the widest where there is something to end
	Tier     int    // shed: 0 means the next tier; recovery: the tier to go to, -1 means the next lower one
	Feature  string
	IDs      []string       // end: empty means all of the kind in scope
	Lasts    model.Duration // bypass, freeze, ping: 0 or less means as long as the right allows
	Under    model.Money    // bypass: zero means the right's own cap
	TargetMS int            // dimmer: 0 means the lowest latency that the right covers
	Floor    int            // dimmer: 0 means the right's own
	Ceiling  int            // dimmer: 0 means the right's own
	Reason   string
	Actor    string
	Evidence string
}

// NextTier asks a recovery for the next lower tier.
const NextTier = -1

// ErrDraft is wrapped by every error of Draft.
var ErrDraft = errors.New("cannot draft a directive")

// ErrNoRight is the error of Draft for a right that is not in force.
var ErrNoRight = fmt.Errorf("%w", ErrDraft)

// Draft fills in the directive that an ask means. It lacks the id, the log head
// and the signatures, and it may well be denied: Evaluate says so.
func Draft(b *policy.Bundle, w *model.World, ask Ask) (model.Request, error) {
	right, _, ok := b.Right(ask.Right)
	if !ok {
		return model.Request{}, fmt.Errorf("%w: no right named %q is in force: see ic can", ErrNoRight, ask.Right)
	}
	if !isScope(b, w, ask.Scope) {
		return model.Request{}, fmt.Errorf("%w: no service is named %q: known are %s", ErrDraft, ask.Scope, strings.Join(slices.Sorted(maps.Keys(b.Services)), ", "))
	}
	d := model.Directive{
		Fleet: w.Fleet, Incident: w.Incident.ID, Reason: ask.Reason, Kind: right.Kind, Right: ask.Right,
		Scope: scopeOf(w, &right, ask.Scope), Policy: w.Policy,
		IssuedAt: w.Now.Truncate(time.Second), NotBefore: w.Now.Truncate(time.Second),
	}
	if right.Blind {
		if d.Reason = withSeen(ask.Reason, ask.Evidence); len(d.Reason) > model.MaxReason {
			return model.Request{}, fmt.Errorf("%w: reason and evidence are signed together and have %d bytes, at most %d: say it shorter", ErrDraft, len(d.Reason), model.MaxReason)
		}
	}
	if right.Cosign.Count > 0 {
		lead := right.Lead
		if lead == 0 {
			lead = policy.DefaultLead
		}
		d.NotBefore = d.NotBefore.Add(lead.Std())
	}
	switch right.Kind {
	case model.Shed:
		d.Tier = ask.Tier
		if d.Tier <= 0 {
			d.Tier = nextTier(w, &right, d.Scope)
		}
	case model.Off:
		if d.Feature = ask.Feature; d.Feature == "" && right.Feature != "*" {
			d.Feature = right.Feature
		}
	case model.Bypass:
		draftBypass(b, w, &d, &right, ask)
	case model.Dimmer:
		draftDimmer(&d, right.Dimmer, ask)
	case model.Freeze, model.Ping:
		d.NotAfter = d.NotBefore.Add(lasting(ask.Lasts, right.Lasts).Std())
	case model.End:
		d.Ends = right.Ends
		if d.Ends == model.Shed {
			draftRecovery(b, w, &d, ask.Tier)
			break
		}
		if d.IDs = slices.Compact(slices.Sorted(slices.Values(ask.IDs))); len(d.IDs) == 0 {
			d.IDs = LiveOf(w, d.Ends, d.Scope)
		}
	}
	return model.Request{Directive: d, Actor: ask.Actor, Evidence: ask.Evidence}, nil
}

// seenMark is where the evidence of a blind recovery begins in its reason.
const seenMark = "seen: "

// withSeen puts what was seen behind the reason: the second person signs what the
// first one says he has seen, and has no other way to learn it.
func withSeen(reason, evidence string) string {
	reason, evidence = strings.TrimSpace(reason), strings.TrimSpace(evidence)
	switch {
	case evidence == "":
		return reason
	case reason == "":
		return seenMark + evidence
	default:
		return reason + "; " + seenMark + evidence
	}
}

// Seen is the evidence in the reason of a blind recovery; "" when it has none.
func Seen(d *model.Directive) string {
	_, seen, _ := strings.Cut(d.Reason, seenMark)
	return strings.TrimSpace(seen)
}

// isScope reports whether a scope that was asked for means something: a typing
// mistake must not become a directive that no host heeds.
func isScope(b *policy.Bundle, w *model.World, asked string) bool {
	if _, known := b.Services[asked]; known || asked == "" || asked == model.AnyScope {
		return true
	}
	return slices.ContainsFunc(w.Hosts, func(h model.HostView) bool { return slices.Contains(h.Services, asked) })
}

// scopeOf is the scope asked for, else the widest one of the right; for an ending
// the widest in which it finds something to end.
func scopeOf(w *model.World, right *policy.Right, asked string) string {
	if asked != "" {
		return asked
	}
	widest := widestScope(right)
	if right.Kind != model.End || endable(w, right.Ends, widest) {
		return widest
	}
	found := widest
	for i := range w.Issued {
		scope := w.Issued[i].Directive.Scope
		covered := widest == model.AnyScope || slices.Contains(right.Scope, scope)
		if covered && (found == widest || scope < found) && endable(w, right.Ends, scope) {
			found = scope
		}
	}
	return found
}

// endable reports whether a kind is in force in exactly that scope.
func endable(w *model.World, kind model.Kind, scope string) bool {
	if kind == model.Shed {
		return ChainOf(w, scope).Tier > 0
	}
	return len(LiveOf(w, kind, scope)) > 0
}

func widestScope(right *policy.Right) string {
	switch {
	case slices.Contains(right.Scope, model.AnyScope) || len(right.Scope) == 0:
		return model.AnyScope
	default:
		return right.Scope[0]
	}
}

func nextTier(w *model.World, right *policy.Right, scope string) int {
	tier := ChainOf(w, scope).Tier + 1
	if right.Tiers != nil {
		tier = min(max(tier, right.Tiers.From), right.Tiers.To)
	}
	return tier
}

func draftBypass(b *policy.Bundle, w *model.World, d *model.Directive, right *policy.Right, ask Ask) {
	if right.Bypass == nil {
		return
	}
	d.Control = right.Bypass.Control
	d.NotAfter = d.NotBefore.Add(lasting(ask.Lasts, right.Bypass.Lasts).Std())
	fitCaps(b, w, d, right.Bypass)
	if !ask.Under.IsZero() {
		d.Caps.Under = ask.Under
	}
}

// draftDimmer takes what was asked for and the bounds of the right for the rest.
func draftDimmer(d *model.Directive, rule *policy.Dimmer, ask Ask) {
	if rule == nil {
		return
	}
	d.TargetMS, d.Floor, d.Ceiling = cmp.Or(ask.TargetMS, rule.TargetMS.From), cmp.Or(ask.Floor, rule.Floor), cmp.Or(ask.Ceiling, rule.Ceiling)
}

// draftRecovery fills in the next step of the ramp of a scope.
func draftRecovery(b *policy.Bundle, w *model.World, d *model.Directive, to int) {
	c := ChainOf(w, d.Scope)
	d.IDs, d.From, d.To = c.IDs, c.Tier, to
	if to == NextTier {
		d.To = c.Tier - 1
	}
	tier, _ := b.TierOf(c.Tier)
	d.Percent = nextPercent(tier.Ramp, c.Ramp)
	// The first id of a chain is unique to it; with the tier it names the ramp,
	// so that every step of one tier has the same ramp without anybody's memory.
	if c.Ramp != nil {
		d.Ramp = c.Ramp.ID
	} else if len(c.Live) > 0 {
		d.Ramp = c.Live[len(c.Live)-1]
	}
}

// nextPercent is the step after the one reached; without a ramp in the policy a
// recovery goes in one step.
func nextPercent(ramp []int, live *Ramp) int {
	for _, p := range ramp {
		if live == nil || p > live.Percent {
			return p
		}
	}
	return 100
}

// lasting is as long as was asked, also when that is too long: it is for Evaluate
// to say so.
func lasting(asked, limit model.Duration) model.Duration {
	if asked > 0 {
		return asked
	}
	return limit
}
