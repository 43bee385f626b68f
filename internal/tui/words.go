package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// length of time as people read it: the two largest units; seconds only where
// they are asked for, because each of them is a redraw.
func length(d time.Duration, seconds bool) string {
	d = max(d, 0).Truncate(time.Second)
	h, m, s := int(d/time.Hour), int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", h/24)
	case h >= 10:
		return fmt.Sprintf("%dh", h)
	case h > 0:
		return fmt.Sprintf("%dh%02dm", h, m)
	case seconds && m > 0:
		return fmt.Sprintf("%dm%02ds", m, s)
	case seconds:
		return fmt.Sprintf("%ds", s)
	case m > 0:
		return fmt.Sprintf("%dm", m)
	default:
		return "<1m"
	}
}

// age of something at a time; the zero time is never.
func (sc *scene) age(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return sc.old(sc.now.Sub(at))
}

// old prints an age: from a minute on, nobody needs its seconds.
func (sc *scene) old(d time.Duration) string { return length(d, sc.seconds && d < time.Minute) }

// ago is an age in a sentence.
func (sc *scene) ago(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return sc.age(at) + " ago"
}

// left until a time.
func (sc *scene) left(at time.Time) string { return length(at.Sub(sc.now), sc.seconds) }

// clock prints a time of day to the second, for ends that count.
func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// rehearsed is when a right was last done for practice. A simulated fleet is new each
// time and knows no earlier one.
func (sc *scene) rehearsed(r model.Rehearsal) string {
	if sc.snap.Rehearsal && r == (model.Rehearsal{}) {
		return "never on this simulated fleet; ic report has your own dates"
	}
	return fmt.Sprintf("simulated %s, live %s", sc.ago(r.Simulated), sc.ago(r.Live))
}

// brief is rehearsed for a column.
func (sc *scene) brief(r model.Rehearsal) string {
	short := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return length(sc.now.Sub(t), false)
	}
	return short(r.Simulated) + " / " + short(r.Live)
}

// reasons renders a verdict as sentences as of now: what has to be waited for
// has become less since the verdict was made.
func (sc *scene) reasons(v *model.Verdict) []string {
	since := sc.now.Sub(sc.snap.At)
	out := make([]string, len(v.Reasons))
	for i, r := range v.Reasons {
		if waits(r) && since > 0 {
			r.Wait = max(r.Wait-model.Duration(since), 0)
		}
		out[i] = decisions.Sentence(r)
	}
	return out
}

// waits reports whether a reason counts down.
func waits(r model.Reason) bool {
	return r.Wait > 0 && (r.Code == decisions.Dwell || r.Code == decisions.RampStep || r.Code == decisions.OneTier)
}

// verdictSpan is a word with its ink: only what is denied or missing needs the eye.
func verdictSpan(o model.Outcome) span {
	switch o {
	case model.Permitted:
		return span{string(o), strong}
	case model.Needs, model.Denied:
		return span{string(o), faint}
	default:
		return span{"?", unknown}
	}
}

// cosign says who else has to sign.
func cosign(r *decisions.Row) string {
	if r.Cosign.Count == 0 {
		return r.Who
	}
	return fmt.Sprintf("%s + %d %s", r.Who, r.Cosign.Count, r.Cosign.Of)
}

// tierName is "T3".
func tierName(n int) string { return fmt.Sprintf("T%d", n) }

// count is "1 host", "12 hosts".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// joined is what a cell shows of ids and names.
func joined(items []string) string { return strings.Join(items, ", ") }

// shortIDs are tails of ids, for people.
func shortIDs(ids []string) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = incident.ShortID(id)
	}
	return joined(out)
}

// scopeName is a scope as people say it.
func scopeName(s string) string {
	if s == model.AnyScope {
		return "all services"
	}
	return s
}

// worst is the worst case of a bypass in one sentence.
func worst(e *decisions.Exposure) string {
	text := fmt.Sprintf("%s: %d hosts", e.WorstCase, e.Hosts)
	if e.Replacements > 0 {
		text += fmt.Sprintf(" + %d that may join", e.Replacements)
	}
	text += fmt.Sprintf(", %s each", e.PerHost)
	if !e.Total.IsZero() {
		text += fmt.Sprintf("; signed for %s", e.Total)
	}
	if !e.Others.IsZero() {
		text += fmt.Sprintf("; %s with the other grants of the control", e.Together)
	}
	if e.Estimate {
		text += " (an estimate: hosts without a disk may join)"
	}
	return text
}

// used is what a bypass has let through, by the hosts that told.
func used(u map[string]incident.UsedView) string {
	var parts []string
	for _, currency := range sortedKeys(u) {
		v := u[currency]
		text := fmt.Sprintf("%s in %s", v.Total, count(int(v.Count), "item"))
		if v.Unknown > 0 {
			text += fmt.Sprintf(", %s untold", count(v.Unknown, "host"))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "not reported yet"
	}
	return strings.Join(parts, "; ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
