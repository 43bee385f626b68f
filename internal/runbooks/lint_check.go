package runbooks

import (
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// questions checks every question of a step for whether it can be answered.
func (l *lint) questions(i int) {
	s := &l.rb.Steps[i]
	if s.Check != nil {
		l.question(i, "check", s.Check, s.Timeout)
	}
	if s.Wait != nil && s.Wait.Until != nil {
		l.question(i, "wait.until", s.Wait.Until, s.Wait.AtMost)
	}
	if s.Probe != nil {
		l.question(i, "probe", s.Probe, s.Timeout)
	}
}

// question checks one; within is how long it is asked again, 0 for once.
func (l *lint) question(i int, path string, c *Check, within model.Duration) {
	never := func(key, format string, args ...any) { l.say(CodeNeverAnswers, i, join(path, key), format, args...) }
	switch {
	case c.PromQL != nil:
		if l.known.Query != nil {
			if why := l.known.Query(c.PromQL.Query); why != "" {
				never("promql", "this never answers with one number: %s", why)
			}
		}
		if l.known.Bounds != nil {
			if low, high := l.known.Bounds(c.PromQL.Query); !c.PromQL.Is.possible(low, high) {
				never("is", "%s, so this never holds", bounded(c.PromQL.Query, low, high))
			}
		}
		if c.PromQL.For > within && within > 0 {
			never("for", "it has to hold for %s and is asked for %s: it can never have held long enough", c.PromQL.For, within)
		}
	case c.Signal != nil:
		l.signal(i, path, c.Signal)
	case c.HTTP != nil:
		if origin := Origin(c.HTTP.URL); l.known.Origins != nil && !slices.Contains(l.known.Origins, origin) {
			l.say(CodeOrigin, i, path+".http.url", "%s is not in %s, so it is never asked%s", quote(origin), OriginsFile, nearest(origin, l.known.Origins))
		}
	case c.Tier != nil:
		if !l.service(i, path+".tier.scope", c.Tier.Scope) {
			return
		}
		if last, known := l.known.lastTier(c.Tier.Scope); known && c.Tier.Is > last {
			never("tier.is", "%s has %d tiers and is never at %d", quote(c.Tier.Scope), last, c.Tier.Is)
		}
	case c.Bypass != nil:
		l.named(i, path+".bypass.control", "the policy has no control", c.Bypass.Control, l.known.Controls != nil, keysOf(l.known.Controls))
	}
}

// bounded says between which numbers the values of a query lie.
func bounded(query string, low, high float64) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	switch {
	case low == high:
		return quote(query) + " is never anything but " + number(low)
	case math.IsInf(high, 1):
		return quote(query) + " is never below " + number(low)
	case math.IsInf(low, -1):
		return quote(query) + " is never above " + number(high)
	}
	return quote(query) + " is always between " + number(low) + " and " + number(high)
}

func (l *lint) signal(i int, path string, c *SignalIs) {
	if !l.named(i, path+".signal", "the ladder has no signal", c.Name, l.known.Signals != nil, keysOf(l.known.Signals)) || l.known.Signals == nil {
		return
	}
	signal := l.known.Signals[c.Name]
	switch {
	case signal.Query == "":
		l.say(CodeNeverAnswers, i, path+".signal", "the signal %s has no query, so it never has a value", quote(c.Name))
	case signal.Abnormal == nil:
		l.say(CodeNeverAnswers, i, path+".signal", "the signal %s has no abnormal threshold, so it is never %s; give it one in the ladder, or compare with promql", quote(c.Name), c.Is)
	}
}

// Origin is the origin of an address as browsers know it: scheme, host and a port
// that is not the scheme's own; "" when it is no address.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || badURL(address) != "" {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		port = ""
	}
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host
}
