package host

import (
	"slices"
	"strconv"
	"time"

	"github.com/degradedmode/ic/host/dimmer"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// Why an item may not pass, as Allow says it. More may come.
const (
	Closed        = string(engine.CodeClosed)     // no bypass is open here: the check stands
	OverAmount    = string(engine.CodeOverAmount) // the item is not under the cap
	BudgetSpent   = string(engine.CodeSpent)      // this host has let through what it may
	NotDurable    = string(engine.CodeNotDurable) // it could not be written down
	OtherCurrency = string(engine.CodeMismatch)   // the budget is in another currency
)

// Tier is the tier in force for a service: 0 in normal operation, never beyond
// what the policy's ladder says the service knows. Where the ladder is not in
// force it may be higher; take it for your last tier then.
func (h *Host) Tier(service string) int {
	r := h.run.Load()
	if r == nil {
		return h.defaults.Tiers[service]
	}
	tier := r.Engine().Tier(service, r.Now())
	if h.unread(r) {
		tier = max(tier, h.defaults.Tiers[service])
	}
	return tier
}

// Feature reports whether a feature is on. It is off when a directive says so for
// the service to which the policy says that it belongs, or for any service of this
// host, and when the policy says so for the tier of its service. how are the
// policy's words for the simpler form that it has at this tier; "" for none.
func (h *Host) Feature(name string) (on bool, how string) {
	r := h.run.Load()
	if r == nil {
		return !slices.Contains(h.defaults.Off, name), ""
	}
	f := r.Feature(name)
	if f.On && h.unread(r) && slices.Contains(h.defaults.Off, name) {
		return false, ""
	}
	return f.On, f.How
}

// Allow asks whether one item may pass a control whose check cannot be made:
// whether a bypass of it is open for a service of this host, the item is under
// its cap, and this host's budget has room. If so the item is counted: ask once,
// and let it pass. minor is the amount in minor units, such as cents. The reason
// is empty when it may pass; Closed is the normal answer.
func (h *Host) Allow(control string, minor int64, currency string) (allowed bool, reason string) {
	r := h.run.Load()
	if r == nil {
		return false, Closed
	}
	_, code := r.Allow(control, "", model.Money{Minor: minor, Currency: currency})
	return code == "", string(code)
}

// Dimmer are the bounds of the dimmers in force for a service: of several the
// lowest of each. It is what Config.Signed of package dimmer asks for.
func (h *Host) Dimmer(service string) (bounds dimmer.Bounds, ok bool) {
	r := h.run.Load()
	if r == nil {
		return dimmer.Bounds{}, false
	}
	d, ok := r.Engine().Dimmer(service, r.Now())
	return dimmer.Bounds{
		Target: time.Duration(d.TargetMS) * time.Millisecond, Floor: float64(d.Floor) / 100, Ceiling: float64(d.Ceiling) / 100,
	}, ok
}

// PolicyVersion names the policy by which this host judges: its version, and the
// beginning of its digest. It is "" while there is none. As part of a cache's key
// it keeps answers of an older policy apart.
func (h *Host) PolicyVersion() string {
	r := h.run.Load()
	if r == nil {
		return ""
	}
	const enough = 12
	ref := r.Engine().Bundle().Ref
	return strconv.FormatInt(ref.Version, 10) + "-" + ref.Digest[:min(enough, len(ref.Digest))]
}
