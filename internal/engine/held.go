package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// maxAlias bounds the tokens remembered for one payload: the same statement may
// arrive with other signatures, and each is verified once.
const maxAlias = 4

// statement is what a host keeps of a token that has verified: neither payload nor
// signatures again, since the token has both.
type statement struct {
	Directive model.Directive
	Token     string
	By        []string // fingerprints of the distinct keys that signed
}

// held is one statement that this host has taken.
type held struct {
	signed *statement
	alias  []string // tokens of this payload that have verified
	source string   // where it came from first

	first    time.Time     // host time, boot and boot clock of the first accept
	boot     string        //
	mono     time.Duration //
	accepted time.Time     // by which a policy judges: first, as far as this host can believe it

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
func key(token string) string { return keyIn(token, strings.IndexByte) }

// keyIn is key of text in either form: a part of it, since a copy would be of a
// thousand bytes.
func keyIn[T string | []byte](token T, index func(T, byte) int) T {
	version := index(token, '.')
	if version < 0 {
		return token
	}
	payload := index(token[version+1:], '.')
	if payload < 0 {
		return token
	}
	return token[:version+1+payload]
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
	active  []*held            // those that may have an effect of their own, now or later, by id
}

func newSet() set {
	return set{byKey: map[string]*held{}, endings: map[string][]*held{}}
}

func (s *set) add(h *held) {
	d := h.d()
	s.byKey[key(h.signed.Token)] = h
	i, _ := slices.BinarySearchFunc(s.active, d.ID, func(a *held, id string) int { return strings.Compare(a.d().ID, id) })
	s.active = slices.Insert(s.active, i, h)
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

// settled reports whether h will never again have an effect of its own: it is
// ended, or is itself an ending that counts and holds no tier. Neither can be taken
// back, since what an ending says is kept for good. A loosening ends by itself and
// is never settled: its time goes on being counted until it is forgotten.
func (s *set) settled(h *held, at moment) bool {
	d := h.d()
	switch {
	case h.direction == model.Loosen:
		return false
	case stands(d):
		return s.ended(d, at)
	}
	return h.obeyed() && h.hasBegun(at)
}

// forget drops what gone names.
func (s *set) forget(gone func(*held) bool) {
	maps.DeleteFunc(s.byKey, func(_ string, h *held) bool { return gone(h) })
	s.active = slices.DeleteFunc(s.active, gone)
}

// live is the definition that everything else follows from.
func (s *set) live(h *held, at moment) bool {
	d := h.d()
	return h.obeyed() && stands(d) && h.hasBegun(at) && !expired(d, at.host, h.run.elapsed(at.Instant)) && !s.ended(d, at)
}
