package engine

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Never is what Advance returns when nothing will change by itself.
const Never = time.Duration(math.MaxInt64)

// snapshot is what is in force, ready to be asked without a lock. It is right
// for as long as covers says so, and never changed.
type snapshot struct {
	tiers  map[string]int      // by scope
	off    map[string][]string // scopes by feature
	grants map[string][]grant  // by control
	dims   map[string]Dimming  // by scope: the lowest of each bound
	live   []string            // ids, ascending

	floor  floor
	bootID string
	from   time.Time     // host time: the last change before this snapshot
	until  time.Time     // host time: the next change; zero: none
	ends   time.Duration // boot clock: the next end of a run
	bundle *policy.Bundle
	last   lastTiers
}

// grant is one live bypass.
type grant struct {
	id     string
	scope  string
	caps   model.Caps
	period period
	budget *budget
}

func (g *grant) covers(service string) bool { return g.scope == model.AnyScope || g.scope == service }

func (s *snapshot) covers(now model.Instant) bool {
	if now.BootID != s.bootID || now.Boot >= s.ends {
		return false
	}
	host := now.Wall
	if low := s.floor.on(now); low.After(host) {
		host = low
	}
	return !host.Before(s.from) && (s.until.IsZero() || host.Before(s.until))
}

// tier is the highest of all that is live for a service, and never beyond what
// the service knows. A ladder that is not in force caps nothing: a signature
// stripped from a file must not keep a fleet from shedding.
func (s *snapshot) tier(service string) int {
	tier := max(s.tiers[service], s.tiers[model.AnyScope])
	if last, named := s.last.of[service]; named {
		return min(tier, last)
	}
	return min(tier, s.last.others)
}

func (s *snapshot) isOff(feature, service string) bool {
	for _, scope := range s.off[feature] {
		if scope == model.AnyScope || scope == service {
			return true
		}
	}
	return false
}

// change takes note of a host time at which something changes.
func (s *snapshot) change(t, host time.Time) {
	switch {
	case t.IsZero():
	case !t.After(host):
		if t.After(s.from) {
			s.from = t
		}
	case s.until.IsZero() || t.Before(s.until):
		s.until = t
	}
}

// wait is how long it takes from at until something changes.
func (s *snapshot) wait(at moment) time.Duration {
	wait := Never
	if s.ends != Never {
		wait = max(0, s.ends-at.Boot)
	}
	if !s.until.IsZero() {
		wait = min(wait, max(0, s.until.Sub(at.host)))
	}
	return wait
}

// build makes the snapshot for at from the set, and starts the runs of bypasses
// whose time has come.
func (e *Engine) build(at moment) *snapshot {
	s := &snapshot{
		tiers: map[string]int{}, off: map[string][]string{}, grants: map[string][]grant{}, dims: map[string]Dimming{},
		floor: e.floor, bootID: at.BootID, ends: Never, bundle: e.bundle, last: e.last,
	}
	var bypasses []*held
	e.set.active = slices.DeleteFunc(e.set.active, func(h *held) bool { return e.set.settled(h, at) })
	s.live = make([]string, 0, len(e.set.active))
	for _, h := range e.set.active {
		d := h.d()
		if h.direction == model.Loosen {
			h.run = h.run.start(d.NotBefore, at)
		}
		if !h.obeyed() {
			continue
		}
		s.change(d.NotBefore, at.host)
		s.change(d.NotAfter, at.host)
		if e.set.live(h, at) {
			e.include(s, h, at)
			if d.Kind == model.Bypass {
				bypasses = append(bypasses, h)
			}
		}
	}
	s.live = slices.Compact(s.live) // in the order of the ids; two payloads may have one
	counted, _ := earliest(e.bundle, bypasses)
	for _, h := range counted {
		d := h.d()
		s.grants[d.Control] = append(s.grants[d.Control], grant{
			id: d.ID, scope: d.Scope, caps: d.Caps, period: periodOf(d), budget: e.budgets.at(periodOf(d)),
		})
	}
	for _, grants := range s.grants {
		slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.id, b.id) })
	}
	return s
}

// include adds one live directive to a snapshot.
func (e *Engine) include(s *snapshot, h *held, at moment) {
	d := h.d()
	s.live = append(s.live, d.ID)
	switch d.Kind {
	case model.Shed, model.End:
		s.tiers[d.Scope] = max(s.tiers[d.Scope], directive.TierOn(*d, e.cfg.Host))
	case model.Off:
		s.off[d.Feature] = append(s.off[d.Feature], d.Scope)
	case model.Dimmer:
		s.dims[d.Scope] = s.dims[d.Scope].lowest(dimmingOf(d))
	case model.Bypass:
		// Its end is the next change also when it is not open: another takes its place.
		left := d.NotAfter.Sub(d.NotBefore) - h.run.elapsed(at.Instant)
		s.ends = min(s.ends, at.Boot+left)
	}
}

// earliest keeps of all live bypasses of one right as many as the right allows at a
// time: the earliest by not_before and id, so that hosts with the same set agree
// whatever the order in which they got it. The others stay in force, in the posture
// and shut; when one that counts ends, the next one counts. A right that this
// policy does not know sets no limit: what it may still do is judged elsewhere.
func earliest(b *policy.Bundle, bypasses []*held) (counted, beyond []*held) {
	slices.SortFunc(bypasses, func(x, y *held) int {
		return cmp.Or(x.d().NotBefore.Compare(y.d().NotBefore), cmp.Compare(x.d().ID, y.d().ID), cmp.Compare(key(x.signed.Token), key(y.signed.Token)))
	})
	used := make(map[string]int)
	for _, h := range bypasses {
		name := h.d().Right
		right, _, _ := b.Right(name)
		if used[name]++; right.Bypass != nil && used[name] > right.Bypass.Live {
			beyond = append(beyond, h)
			continue
		}
		counted = append(counted, h)
	}
	return counted, beyond
}

// lastTiers are the highest tiers that services know by the present policy.
type lastTiers struct {
	of     map[string]int
	others int
}

func lastTiersOf(b *policy.Bundle) lastTiers {
	if len(b.Tiers) == 0 {
		return lastTiers{others: math.MaxInt}
	}
	l := lastTiers{of: make(map[string]int, len(b.Services)), others: b.LastTier(model.AnyScope)}
	for service := range b.Services {
		l.of[service] = b.LastTier(service)
	}
	return l
}
