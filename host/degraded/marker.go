package degraded

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Header is the one header by which gateways and other services see that an answer
// is degraded. It is a dictionary of RFC 9651.
const Header = "X-Degraded"

const (
	// MaxParts is how many parts an answer names as stale, and as missing. The last
	// of them is More when there are others. The header stays under 4 KB.
	MaxParts = 32
	maxName  = 48 // bytes of a part's name
)

// More stands for the parts that are not named any more.
const More = "more"

// Degraded is the field `degraded` of a body. Both lists are sorted and never
// null. AsOf is the age of the oldest stale part, null when none is stale.
type Degraded struct {
	Stale   []string   `json:"stale"`
	Missing []string   `json:"missing"`
	AsOf    *time.Time `json:"as_of"`
}

// Marker collects what is wrong with one answer. The zero value says that nothing
// is. It is safe for concurrent use; it must not be copied.
type Marker struct {
	mu      sync.Mutex
	stale   map[string]bool
	missing map[string]bool
	asOf    time.Time
}

// Stale says that a part comes from asOf. Of several times the earliest counts.
func (m *Marker) Stale(part string, asOf time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stale = put(m.stale, part)
	if m.asOf.IsZero() || asOf.Before(m.asOf) {
		m.asOf = asOf.Round(0).UTC().Truncate(time.Second)
	}
}

// Missing says that a part could not be had at all. It wins over Stale.
func (m *Marker) Missing(part string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.missing = put(m.missing, part)
}

// Degraded is what to put into the body: nil when nothing is wrong, so that
// `json:"degraded,omitempty"` leaves it out. The result is the caller's own.
func (m *Marker) Degraded() *Degraded {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.stale)+len(m.missing) == 0 {
		return nil
	}
	d := &Degraded{Stale: []string{}, Missing: sorted(m.missing)}
	for _, part := range sorted(m.stale) {
		if !m.missing[part] || part == More {
			d.Stale = append(d.Stale, part)
		}
	}
	if len(d.Stale) > 0 {
		asOf := m.asOf
		d.AsOf = &asOf
	}
	return d
}

// Set writes the header when something is wrong, and takes it away when nothing
// is. Call it before the status is written.
func (m *Marker) Set(h http.Header) {
	if d := m.Degraded(); d != nil {
		h.Set(Header, d.String())
		return
	}
	h.Del(Header)
}

// put adds a part. A name has to fit a header, whoever made it up: what does not
// is replaced by underscores and cut.
func put(set map[string]bool, part string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	part = clean(part)
	if _, ok := set[part]; !ok && len(set) >= MaxParts-1 {
		part = More
	}
	set[part] = true
	return set
}

func clean(part string) string {
	part = strings.Map(func(r rune) rune {
		if inToken(r) {
			return r
		}
		return '_'
	}, part[:min(len(part), maxName)])
	if part == "" || !letter(rune(part[0])) {
		part = "_" + part
		return "x" + part[:min(len(part), maxName-1)]
	}
	return part
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// inToken is what a token of RFC 9651 may have after its first letter, without
// what a reader would take for punctuation.
func inToken(r rune) bool {
	return letter(r) || r >= '0' && r <= '9' || strings.ContainsRune("-_./:", r)
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for part := range set {
		out = append(out, part)
	}
	slices.Sort(out)
	return out
}
