package engine

import (
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// maxAlias bounds the tokens remembered for one payload: the same statement may
// arrive with other signatures, and each is verified once.
const maxAlias = 4

// held is one statement that this host has taken.
type held struct {
	signed *directive.Signed
	alias  []string // tokens of this payload that have verified
	source string   // where it came from first

	accepted time.Time     // host time of the first accept
	boot     string        // boot and boot clock of the first accept
	mono     time.Duration // on this boot: a lower bound of when a run may start

	direction   model.Direction
	durable     bool
	closed      model.Code // a loosening that the present policy does not allow; "" otherwise
	unsupported bool       // of a kind this software does not know: stored, not obeyed
	begun       bool       // not_before has passed once
	run         run        // of a bypass
}

func (h *held) d() *model.Directive { return &h.signed.Directive }

// key names a payload in the form it is sent. Two payloads under one id are two
// statements: otherwise what a host holds would depend on which came first.
func key(token string) string {
	version, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	return version + "." + payload
}

func (h *held) knows(token string) bool {
	for _, a := range h.alias {
		if a == token {
			return true
		}
	}
	return false
}

// close takes over what the policy says. What waits for a clock that is fit goes
// on waiting. Tokens with other signatures are looked at again when they come.
func (h *held) close(code model.Code, fit bool) {
	if code == "" && h.closed == model.CodeClockUnfit && !fit {
		return
	}
	h.closed, h.alias = code, []string{h.signed.Token}
}

// obeyed reports whether the statement counts at all: tightening at once, the
// rest when it is durable.
func (h *held) obeyed() bool {
	return !h.unsupported && h.closed == "" && (h.durable || h.direction == model.Tighten)
}

// stands reports whether a live directive is in force by itself and part of the
// posture. An ending is kept for good and is not; a recovery is both.
func stands(d *model.Directive) bool { return d.Kind != model.End || d.IsRecovery() }

// hasBegun remembers for all but bypasses that not_before has passed: a shed
// must not be lifted by a wall clock that is set back.
func (h *held) hasBegun(at moment) bool {
	passed := !at.host.Before(h.d().NotBefore)
	if h.direction == model.Loosen {
		return passed
	}
	h.begun = h.begun || passed
	return h.begun
}

// expired is the one place where the end of a directive is looked at: not_after
// by host time, or its whole window by the clock that cannot be set.
func expired(d *model.Directive, host time.Time, elapsed time.Duration) bool {
	return !d.NotAfter.IsZero() && (!host.Before(d.NotAfter) || elapsed >= d.NotAfter.Sub(d.NotBefore))
}

// set is everything a host holds. It only grows, but for what has long expired.
type set struct {
	byKey   map[string]*held
	endings map[string][]*held // by each id they list
}

func newSet() set {
	return set{byKey: map[string]*held{}, endings: map[string][]*held{}}
}

func (s *set) add(h *held) {
	d := h.d()
	s.byKey[key(h.signed.Token)] = h
	if d.Kind == model.End {
		for _, id := range d.IDs {
			s.endings[id] = append(s.endings[id], h)
		}
	}
}

// ended reports whether an ending in force lists d, names its kind and has its
// scope.
func (s *set) ended(d *model.Directive, at moment) bool {
	for _, e := range s.endings[d.ID] {
		end := e.d()
		if end.Ends == d.EndedAs() && end.Scope == d.Scope && e.obeyed() && e.hasBegun(at) {
			return true
		}
	}
	return false
}

// live is the definition that everything else follows from.
func (s *set) live(h *held, at moment) bool {
	d := h.d()
	return h.obeyed() && stands(d) && h.hasBegun(at) && !expired(d, at.host, h.run.elapsed(at.Instant)) && !s.ended(d, at)
}
