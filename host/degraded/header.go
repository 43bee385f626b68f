package degraded

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxHeader bounds what is read of a header: what String prints at most, and some.
const maxHeader = 4096

// Keys of the header.
const (
	keyStale   = "stale"
	keyMissing = "missing"
	keyAsOf    = "as_of"
)

// String is the value of the header; "" of nil.
func (d *Degraded) String() string {
	if d == nil {
		return ""
	}
	var members []string
	for _, list := range []struct {
		key   string
		parts []string
	}{{keyStale, d.Stale}, {keyMissing, d.Missing}} {
		if len(list.parts) > 0 {
			members = append(members, list.key+"=("+strings.Join(list.parts, " ")+")")
		}
	}
	if d.AsOf != nil {
		members = append(members, keyAsOf+"=@"+strconv.FormatInt(d.AsOf.Unix(), 10))
	}
	return strings.Join(members, ", ")
}

// Parse reads a header that another service has set, so that one that puts
// answers together can hand the marks on. It reads what String prints and
// nothing else; an empty value is nil, since the answer is not marked.
func Parse(value string) (*Degraded, error) {
	if value == "" {
		return nil, nil
	}
	if len(value) > maxHeader {
		return nil, fmt.Errorf("read %s: %d bytes, at most %d", Header, len(value), maxHeader)
	}
	d := &Degraded{Stale: []string{}, Missing: []string{}}
	for member := range strings.SplitSeq(value, ", ") {
		key, rest, _ := strings.Cut(member, "=")
		var err error
		switch key {
		case keyStale:
			d.Stale, err = parts(rest)
		case keyMissing:
			d.Missing, err = parts(rest)
		case keyAsOf:
			d.AsOf, err = date(rest)
		default:
			err = fmt.Errorf("%.32q is no key of it", key)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", Header, err)
		}
	}
	if d.String() != value || (d.AsOf != nil) != (len(d.Stale) > 0) {
		return nil, fmt.Errorf("read %s: %.64q is not as a marker prints it", Header, value)
	}
	return d, nil
}

func parts(list string) ([]string, error) {
	inner, opened := strings.CutPrefix(list, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	out := strings.Split(inner, " ")
	wrong := func(part string) bool { return part != clean(part) }
	ascending := slices.IsSorted(out) && len(slices.Compact(slices.Clone(out))) == len(out)
	if !opened || !closed || len(out) > MaxParts || !ascending || slices.ContainsFunc(out, wrong) {
		return nil, fmt.Errorf("%.64q is no list of at most %d parts", list, MaxParts)
	}
	return out, nil
}

func date(value string) (*time.Time, error) {
	digits, ok := strings.CutPrefix(value, "@")
	unix, err := strconv.ParseInt(digits, 10, 64)
	at := time.Unix(unix, 0).UTC()
	if !ok || err != nil || at.Year() < 1 || at.Year() > 9999 { // years that JSON has
		return nil, fmt.Errorf("%.32q is no date", value)
	}
	return &at, nil
}

// Add takes over the marks of an answer that this one contains, under a name of
// its own: what was stale of it is "part.stale-part". A nil d adds nothing.
func (m *Marker) Add(part string, d *Degraded) {
	if d == nil {
		return
	}
	for _, one := range d.Stale {
		at := time.Time{} // nobody says how old: as old as can be
		if d.AsOf != nil {
			at = *d.AsOf
		}
		m.Stale(part+"."+one, at)
	}
	for _, one := range d.Missing {
		m.Missing(part + "." + one)
	}
}
