package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// at returns what is in force at now. Most of the time that is one load; when
// something has changed by the passing of time it is worked out first, so that
// no answer waits for a timer.
func (e *Engine) at(now model.Instant) *snapshot {
	if s := e.snap.Load(); s.covers(now) {
		return s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.snap.Load(); s.covers(now) {
		return s
	}
	e.refresh(now)
	return e.snap.Load()
}

// Tier is the tier in force for a service, 0 in normal operation.
func (e *Engine) Tier(service string, now model.Instant) int { return e.at(now).tier(service) }

// Off reports whether a live directive has switched a feature off for a service.
// It wins over whatever a tier says about the feature.
func (e *Engine) Off(feature, service string, now model.Instant) bool {
	return e.at(now).isOff(feature, service)
}

// Allow asks whether one item may pass a control whose check cannot be made. It
// counts the item against the budget of this host if so. The code says why not;
// CodeClosed is the normal answer.
func (e *Engine) Allow(control, service string, amount model.Money, now model.Instant) (bool, model.Code) {
	grants := e.at(now).grants[control]
	reason := CodeClosed
	for i := range grants {
		if !grants[i].covers(service) {
			continue
		}
		code := e.spend(&grants[i], amount, now)
		if code == "" {
			return true, ""
		}
		if reason == CodeClosed || reason == CodeOverAmount {
			reason = code
		}
	}
	return false, reason
}

// IsOpen reports whether a live bypass of a control exists for a service, whatever
// is left of its budget. It counts nothing.
func (e *Engine) IsOpen(control, service string, now model.Instant) bool {
	return slices.ContainsFunc(e.at(now).grants[control], func(g grant) bool { return g.covers(service) })
}

// spend counts one item under one bypass.
func (e *Engine) spend(g *grant, amount model.Money, now model.Instant) model.Code {
	if amount.Minor < 0 || amount.Currency != g.caps.Under.Currency || amount.Minor >= g.caps.Under.Minor {
		return CodeOverAmount
	}
	for {
		ok, want, code := g.budget.take(amount, &g.caps)
		if ok || code != "" {
			return code
		}
		if !e.reserve(g, want, now) {
			return CodeNotDurable
		}
	}
}

// reserve makes the next block of a budget durable before anything of it is
// used.
func (e *Engine) reserve(g *grant, want use, now model.Instant) bool {
	if e.store == nil {
		g.budget.reserve(want)
		return true
	}
	// The disk is held until the block counts: a new generation of the file that
	// was written in between would not have it.
	e.disk.Lock()
	defer e.disk.Unlock()
	if e.append([]record{budgetRecord(g.period, want)}, now) != nil {
		return false
	}
	g.budget.reserve(want)
	return true
}

// Held is the host's own copy of a token that it holds, "" if it does not hold
// exactly this one.
func (e *Engine) Held(token []byte) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h, ok := e.set.byKey[string(keyIn(token, bytes.IndexByte))]; ok && h.signed.Token == string(token) {
		return h.signed.Token
	}
	return ""
}

// Standing is one directive in force.
type Standing struct {
	Directive model.Directive
	Source    string    // where it came from first
	Since     time.Time // host time: accepted and begun
}

// Standing lists what is in force at now, by id.
func (e *Engine) Standing(now model.Instant) []Standing {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.standing(e.floor.moment(now))
}

func (e *Engine) standing(at moment) []Standing {
	out := []Standing{}
	for _, h := range e.set.active {
		if !e.set.live(h, at) {
			continue
		}
		since := h.accepted
		if d := h.d(); d.NotBefore.After(since) {
			since = d.NotBefore
		}
		out = append(out, Standing{Directive: *h.d(), Source: h.source, Since: since})
	}
	slices.SortFunc(out, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Directive.ID, b.Directive.ID), a.Since.Compare(b.Since))
	})
	return out
}
