package directive

import (
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// scan takes a payload apart that is spelled as Encode spells it, at a tenth of
// what a reader of any JSON costs a host for each token. What it takes has one
// spelling, provided that check passes it: every byte is one that Encode prints, or
// belongs to a text without escapes, a number, a time or an amount in its only form.
// Anything else goes to the reader of JSON, which knows what is wrong.
//
// The texts of the result are parts of one copy of the payload.
func scan(payload []byte) (d model.Directive, ok bool) {
	s := scanner{rest: string(payload), ok: true}
	d.ID = s.text(`{"v":1,"id":"`)
	d.Fleet = s.text(`,"fleet":"`)
	d.Incident = s.text(`,"incident":"`)
	d.Scope = s.text(`,"scope":"`)
	d.Kind = model.Kind(s.text(`,"kind":"`))
	s.skip(`,"body":`)
	s.body(&d)
	d.IssuedAt = s.time(`,"issued_at":"`)
	d.NotBefore = s.time(`,"not_before":"`)
	if s.next(`,"not_after":"`) {
		d.NotAfter = s.time(`,"not_after":"`)
	}
	d.Right = s.text(`,"right":"`)
	d.Policy.Version = s.number(`,"policy":{"version":`)
	d.Policy.Digest = s.text(`,"digest":"`)
	d.Log.Origin = s.text(`},"log":{"origin":"`)
	d.Log.Size = s.number(`,"size":`)
	d.Log.Root = s.text(`,"root":"`)
	d.Reason = s.text(`},"reason":"`)
	s.skip(`}`)
	return d, s.ok && s.rest == ""
}

// scanner is what is left of a payload. Once something is not as it should be it
// is no longer ok, and nothing that it gave counts.
type scanner struct {
	rest string
	ok   bool
}

func (s *scanner) next(what string) bool { return strings.HasPrefix(s.rest, what) }

func (s *scanner) skip(what string) {
	rest, found := strings.CutPrefix(s.rest, what)
	s.rest, s.ok = rest, s.ok && found
}

// text is what stands between before, which has the opening quote, and the closing
// one. An escaped character is for the other reader.
func (s *scanner) text(before string) string {
	s.skip(before)
	text, rest, found := strings.Cut(s.rest, `"`)
	s.rest, s.ok = rest, s.ok && found && strings.IndexByte(text, '\\') < 0
	return text
}

func (s *scanner) number(before string) int64 {
	s.skip(before)
	end := 0
	for end < len(s.rest) && s.rest[end] >= '0' && s.rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s.rest[:end], 10, 64)
	padded := end > 1 && s.rest[0] == '0'
	s.rest, s.ok = s.rest[end:], s.ok && err == nil && !padded
	return n
}

func (s *scanner) int(before string) int { return int(s.number(before)) }

func (s *scanner) time(before string) time.Time {
	text := s.text(before)
	t, err := unstamp(text)
	// The parser takes fractions and hours of one digit, and a time left out has no field.
	s.ok = s.ok && err == nil && text != "" && stamp(t) == text
	return t
}

func (s *scanner) money(before string) model.Money {
	m, err := model.ParseMoney(s.text(before))
	s.ok = s.ok && err == nil
	return m
}

// body takes the body of a kind that is known.
func (s *scanner) body(d *model.Directive) {
	switch d.Kind {
	case model.Shed:
		d.Tier = s.int(`{"tier":`)
	case model.Off:
		d.Feature = s.text(`{"feature":"`)
	case model.Bypass:
		d.Control = s.text(`{"control":"`)
		d.Caps.Under = s.money(`,"caps":{"under":"`)
		d.Caps.HostCount = s.number(`,"host_count":`)
		d.Caps.HostTotal = s.money(`,"host_total":"`)
		d.Caps.Total = s.money(`,"total":"`)
		s.skip(`}`)
	case model.Freeze, model.Ping:
		s.skip(`{`)
	case model.Dimmer:
		d.TargetMS = s.int(`{"target_ms":`)
		d.Floor = s.int(`,"floor":`)
		d.Ceiling = s.int(`,"ceiling":`)
	case model.End:
		s.ending(d)
	default:
		s.ok = false
	}
	s.skip(`}`)
}

func (s *scanner) ending(d *model.Directive) {
	d.Ends = model.Kind(s.text(`{"ends":"`))
	before := `,"ids":["`
	for s.next(before) && len(d.IDs) <= MaxIDs {
		d.IDs = append(d.IDs, s.text(before))
		before = `,"`
	}
	s.skip(`]`)
	if d.IsRecovery() {
		d.From = s.int(`,"from":`)
		d.To = s.int(`,"to":`)
		d.Ramp = s.text(`,"ramp":"`)
		d.Percent = s.int(`,"percent":`)
	}
}
