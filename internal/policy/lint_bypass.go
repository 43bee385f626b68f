package policy

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// maxOutlives is how long a right may go on after its document: long enough for
// a renewal that everybody forgot, not for ever.
const maxOutlives = 366 * 24 * time.Hour

// bypassRules are about the bypasses that exist because something went wrong
// with another one: nobody came to sign, or the policy ran out.
func bypassRules() []rule {
	return []rule{
		{"live-over-per-day", LintError, everyBypass(func(_ *lint, say say, file, path string, r *Right) {
			if b := r.Bypass; b.PerDay > 0 && b.Live > b.PerDay {
				say(file, path+".live", "%d may be in force at once and only %d begin in a day; live is at most per_day", b.Live, b.PerDay)
			}
		})},
		{"no-second", LintError, everyRight(func(l *lint, say say, file, path string, r *Right) {
			if r.NoSecond != nil && r.Bypass != nil {
				noSecond(l, say, file, path, r)
			}
		})},
		{"outlives-document", LintError, everyBypass(outlivesDocument)},
		{"expires-idle", LintWarning, everyBypass(func(l *lint, say say, file, path string, r *Right) {
			at := rightOf(path) + ".expires"
			switch document := l.headerOf(file).Expires; {
			case r.Expires.IsZero():
			case !r.Expires.After(document):
				say(file, at, "it ends on %s and its document on %s; a right ends with its document unless it says a later day", r.Expires.Format(time.DateOnly), document.Format(time.DateOnly))
			case l.root != nil && l.root.Expires.Before(r.Expires):
				say(file, at, "the root ends on %s, and nothing is loosened after that whatever a right says", l.root.Expires.Format(time.DateOnly))
			}
		})},
		{"review", LintError, everyRight(review)},
		{"dimmer-bounds", LintError, everyRight(dimmerBounds)},
	}
}

// rightOf cuts ".bypass" off the path of a bypass.
func rightOf(path string) string { return path[:len(path)-len(".bypass")] }

// noSecond wants the right for "nobody came" to be smaller in every amount than
// the one that it stands in for, open only after a wait, and looked at afterwards.
func noSecond(l *lint, say say, file, path string, r *Right) {
	at := path + ".no_second"
	if r.NoSecond.After <= 0 {
		say(file, at+".after", "it may be used at once; after says how long the proposal has waited in vain")
	}
	if r.Cosign.Count != 0 {
		say(file, path+".cosign.count", "nobody came, and it wants somebody to sign; its count is 0")
	}
	if r.Review == "" {
		say(file, path, "one person decides alone here, so a group reviews each use afterwards; name it in review")
	}
	first, ok := l.bypassesIn(file)[r.NoSecond.Of]
	switch {
	case !ok || first.Bypass == nil:
		say(file, at+".of", "%s grants no bypass %q", file, r.NoSecond.Of)
	case first.Bypass.Control != r.Bypass.Control:
		say(file, at+".of", "%s bypasses %s, this right %s", r.NoSecond.Of, first.Bypass.Control, r.Bypass.Control)
	case first.Cosign.Count < 1:
		say(file, at+".of", "%s wants nobody besides the one who asks, so nobody can fail to come", r.NoSecond.Of)
	case r.NoSecond.After >= first.LeadTime()+first.Bypass.Lasts:
		say(file, at+".after", "a proposal of %s is over %s after it was made, so it can never have waited %s", r.NoSecond.Of, first.LeadTime()+first.Bypass.Lasts, r.NoSecond.After)
	default:
		smallerThan(say, file, path, r, r.NoSecond.Of, &first)
	}
}

func smallerThan(say say, file, path string, r *Right, name string, first *Right) {
	for i, mine := range r.Bypass.bounds() {
		theirs := first.Bypass.bounds()[i]
		if mine.compare(theirs) > 0 || mine.money && mine.compare(theirs) == 0 {
			say(file, path+".bypass."+mine.field, "%s is %s, in %s it is %s; amounts are lower when nobody came, everything else is at most the same", mine.field, mine.text, name, theirs.text)
		}
	}
	if !covers(first.Scope, r.Scope) {
		say(file, path+".scope", "it reaches further than %s, for which nobody came", name)
	}
}

// bound is one cap of a bypass in a form that compares.
type bound struct {
	field    string
	value    int64
	currency string
	money    bool
	least    int64 // below it the cap bounds nothing
	text     string
}

func (b *Bypass) bounds() []bound {
	amount := func(field string, m model.Money) bound {
		return bound{field: field, value: m.Minor, currency: m.Currency, money: true, least: 1, text: m.String()}
	}
	number := func(field string, n, least int64) bound {
		return bound{field: field, value: n, least: least, text: strconv.FormatInt(n, 10)}
	}
	return []bound{
		amount("under", b.Under), number("host_count", b.HostCount, 1), amount("host_total", b.HostTotal), amount("total", b.Total),
		{field: "lasts", value: int64(b.Lasts), least: 1, text: b.Lasts.String()}, number("per_day", int64(b.PerDay), 1), number("live", int64(b.Live), 1),
		number("max_replacements", b.MaxReplacements, 0),
	}
}

// compare orders two values of one cap; another currency is more.
func (b bound) compare(other bound) int {
	if b.currency != other.currency {
		return 1
	}
	return cmp.Compare(b.value, other.value)
}

// outlivesDocument keeps what is left when a policy has run out at or below
// everything that the business signed for better days.
func outlivesDocument(l *lint, say say, file, path string, r *Right) {
	document := l.headerOf(file).Expires
	if !r.Expires.After(document) {
		return
	}
	if limit := document.Add(maxOutlives); r.Expires.After(limit) {
		say(file, rightOf(path)+".expires", "it ends on %s, more than %d days after its document", r.Expires.Format(time.DateOnly), int(maxOutlives.Hours()/24))
	}
	for _, name := range sortedKeys(l.bypassesIn(file)) {
		other := l.bypassesIn(file)[name]
		if "rights."+name == rightOf(path) || other.Bypass == nil || other.Bypass.Control != r.Bypass.Control || len(other.Bypass.missing()) > 0 {
			continue
		}
		for i, mine := range r.Bypass.bounds() {
			if theirs := other.Bypass.bounds()[i]; mine.compare(theirs) > 0 {
				say(file, path+"."+mine.field, "it outlives its document, and its %s of %s is over the %s of %s", mine.field, mine.text, theirs.text, name)
			}
		}
	}
}

// review wants a reviewer who is not the only one who could have acted.
func review(l *lint, say say, file, path string, r *Right) {
	if r.Review == "" || l.root == nil {
		return
	}
	if _, ok := l.root.Groups[r.Review]; !ok {
		say(file, path+".review", "the root has no group %q", r.Review)
		return
	}
	holders := l.holders(r, 0)
	if !slices.ContainsFunc(l.people, func(person string) bool {
		return l.root.InGroup(r.Review, person) && (len(holders) != 1 || holders[0].Name != person)
	}) {
		say(file, path+".review", "nobody of %s could review a use but the one who made it", r.Review)
	}
}

func dimmerBounds(_ *lint, say say, file, path string, r *Right) {
	if r.Kind != model.Dimmer {
		return
	}
	d, at := r.Dimmer, path+".dimmer"
	if d == nil {
		say(file, path, "a dimmer has no bounds at all; write dimmer: with a target, a floor and a ceiling")
		return
	}
	sayOutside(say, file,
		number{at + ".target_ms.from", float64(d.TargetMS.From), 1, maxTimeoutMS},
		number{at + ".target_ms.to", float64(d.TargetMS.To), max(float64(d.TargetMS.From), 1), maxTimeoutMS},
		number{at + ".floor", float64(d.Floor), 1, percent},
		number{at + ".ceiling", float64(d.Ceiling), max(float64(d.Floor), 1), percent})
}

// endRules want an end for everything that can be begun.
func endRules() []rule {
	return []rule{{"nobody-may-end", LintWarning, everyRight(func(l *lint, say say, file, path string, r *Right) {
		begins := r.Kind == model.Off || r.Kind == model.Bypass || r.Kind == model.Freeze || r.Kind == model.Dimmer
		if !begins || l.root == nil || l.Rights == nil {
			return
		}
		for _, service := range r.Scope {
			ended := false
			l.eachRight(func(_, _ string, end *Right) {
				ended = ended || end.Kind == model.End && end.Ends == r.Kind && covers(end.Scope, []string{service}) && l.personHolds(end, 0)
			})
			if !ended {
				say(file, path, "nobody may end a %s for %q before its time; grant a right of kind end that ends %s", begun(r.Kind), service, r.Kind)
				return
			}
		}
	})}}
}

// begun names what a kind begins.
func begun(kind model.Kind) string {
	if kind == model.Off {
		return "switch-off"
	}
	return string(kind)
}
