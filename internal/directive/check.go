package directive

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/oklog/ulid/v2"
)

// lastYear is the last year that a time of four digits can name.
const lastYear = 9999

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrPayload, fmt.Errorf(format, args...))
}

// check holds what every directive must fulfil, whoever signed it.
func check(d *model.Directive) error {
	if !isID(d.ID) {
		return bad("id %q is not a ULID in capitals", d.ID)
	}
	for _, f := range []struct{ what, name string }{
		{"fleet", d.Fleet}, {"incident", d.Incident}, {"right", d.Right}, {"kind", string(d.Kind)},
	} {
		if !Name(f.name) {
			return bad("%s %q is not a name of a-z, 0-9, '-', '.', '_' and at most %d bytes", f.what, f.name, MaxName)
		}
	}
	if d.Scope != model.AnyScope && !Name(d.Scope) {
		return bad("scope %q is neither a service nor *", d.Scope)
	}
	if len(d.Reason) > model.MaxReason || !printable(d.Reason) {
		return bad("a reason is one line of at most %d bytes of printable text", model.MaxReason)
	}
	if d.Policy.Version < 1 || !hexDigest(d.Policy.Digest) {
		return bad("policy needs a version and a SHA-256 in hex")
	}
	if d.Log.Size < 0 || !hexDigest(d.Log.Root) || !originOK(d.Log.Origin) {
		return bad("log needs an origin, a size and a root in hex")
	}
	if err := checkTimes(d); err != nil {
		return err
	}
	return checkBody(d)
}

// checkTimes also says which kinds end by themselves. A shed, an off and an
// ending never do: on running out, a shed would recover without a gate, and a
// step of a recovery would let go of the tier that it holds.
func checkTimes(d *model.Directive) error {
	if d.IssuedAt.IsZero() || d.NotBefore.IsZero() {
		return bad("issued_at and not_before are required")
	}
	for _, t := range []time.Time{d.IssuedAt, d.NotBefore, d.NotAfter} {
		if t.Nanosecond() != 0 || t.UTC().Year() > lastYear || t.UTC().Year() < 1 {
			return bad("%s is not a whole second before the year %d", t, lastYear+1)
		}
	}
	if !d.NotAfter.IsZero() && !d.NotBefore.Before(d.NotAfter) {
		return bad("not_after is not later than not_before")
	}
	switch d.Kind {
	case model.Bypass, model.Freeze, model.Ping:
		if d.NotAfter.IsZero() {
			return bad("a %s must have not_after", d.Kind)
		}
	case model.Shed, model.Off, model.End:
		if !d.NotAfter.IsZero() {
			return bad("a %s holds until it is ended; it has no not_after", d.Kind)
		}
	}
	return nil
}

func checkBody(d *model.Directive) error {
	switch d.Kind {
	case model.Shed:
		if d.Tier < 1 || d.Tier > maxTier {
			return bad("a shed names a tier from 1 to %d", maxTier)
		}
	case model.Off:
		if !Name(d.Feature) {
			return bad("an off names a feature")
		}
	case model.Bypass:
		return checkBypass(d)
	case model.Freeze, model.Ping:
	case model.Dimmer:
		if d.TargetMS < 1 || d.Floor < 1 || d.Ceiling > 100 || d.Floor > d.Ceiling {
			return bad("a dimmer has a target in ms and 1 <= floor <= ceiling <= 100 percent")
		}
	case model.End:
		return checkEnd(d)
	default:
		return checkUnknown(d.Raw)
	}
	return nil
}

func checkBypass(d *model.Directive) error {
	if !Name(d.Control) {
		return bad("a bypass names a control")
	}
	c := &d.Caps
	for _, m := range []model.Money{c.Under, c.HostTotal, c.Total} {
		if m.Minor < 1 || m.Currency != c.Under.Currency {
			return bad("the caps of a bypass are above zero and in one currency")
		}
	}
	if c.HostCount < 1 {
		return bad("host_count of a bypass is above zero")
	}
	return nil
}

// checkEnd also keeps an ending from reaching itself or another ending: a step
// of a recovery that ended itself would let go of its tier at once, and ending
// the end of a bypass would open it again.
func checkEnd(d *model.Directive) error {
	if len(d.IDs) < 1 || len(d.IDs) > MaxIDs {
		return bad("an ending lists 1 to %d ids", MaxIDs)
	}
	for i, id := range d.IDs {
		if !isID(id) || i > 0 && d.IDs[i-1] >= id {
			return bad("ids of an ending are distinct ULIDs in capitals, in ascending order")
		}
	}
	if slices.Contains(d.IDs, d.ID) {
		return bad("an ending lists itself")
	}
	if d.Ends == model.End || !Name(string(d.Ends)) {
		return bad("an ending names the kind it ends, which is not an ending")
	}
	if d.Ends != model.Shed {
		return nil
	}
	if d.From < 1 || d.From > maxTier || d.To != d.From-1 || d.Percent < 1 || d.Percent > 100 || !isID(d.Ramp) {
		return bad("an end of sheds steps from one tier to the next lower one, with the id of a ramp and 1 to 100 percent")
	}
	return nil
}

// isID reports whether s is a ULID in its one spelling; the reference parser
// takes small letters too, which would make two names of one directive.
func isID(s string) bool {
	_, err := ulid.ParseStrict(s)
	return err == nil && strings.ToUpper(s) == s
}

// Name reports whether s is a name as this format takes it: lower-case letters,
// digits, '-', '.', '_', starting with a letter or digit, at most MaxName bytes.
func Name(s string) bool {
	if s == "" || len(s) > MaxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '.' && c != '_') {
			return false
		}
	}
	return true
}

// originOK reports whether s is <fleet>/<incident>/<session>.
func originOK(s string) bool {
	parts := strings.Split(s, "/")
	return len(parts) == 3 && Name(parts[0]) && Name(parts[1]) && Name(parts[2])
}

func hexDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}
