package policy

import (
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Bounds of what happens without a person, from rows B3, B5 and B6.
const (
	maxFlaps     = 100
	maxBlindTier = 1 // missing signals alone never take more away than tier 1 does
	minSoak      = model.Duration(10 * time.Minute)
)

// automaticRules are about moves that no person makes, and about busy times that
// are known ahead.
func automaticRules() []rule {
	return []rule{
		{"automatic-limits", LintError, automaticLimits},
		{"stuck-too-early", LintWarning, eachTier(func(l *lint, say say, _ string, t *Tier) {
			if stuck := l.Ladder.Automatic.Stuck; stuck > 0 && stuck <= t.Dwell {
				say(fileOf(Ladder), "automatic.stuck", "the alarm of a stuck tier comes after %s, and tier %d is held for %s in any case", stuck, t.Tier, t.Dwell)
			}
		})},
		{"flap-guard-idle", LintWarning, flapGuardIdle},
		{"event", LintError, everyEvent(event)},
		{"event-nobody-sheds", LintError, everyEvent(func(l *lint, say say, path string, e *Event) {
			if l.root == nil || l.Rights == nil || len(e.Scope) == 0 {
				return
			}
			may := false
			l.eachRight(func(_, _ string, r *Right) {
				may = may || r.Kind == model.Shed && inTiers(r.Tiers, e.Tier) == "" && covers(r.Scope, e.Scope) && len(l.holders(r, e.Tier)) > 0
			})
			if !may {
				say(fileOf(Ladder), path, "no right that somebody holds sheds %s to tier %d", strings.Join(e.Scope, ", "), e.Tier)
			}
		})},
		{"event-over", LintWarning, everyEvent(func(l *lint, say say, path string, e *Event) {
			if now := l.names.Now; !now.IsZero() && !now.Before(e.Until) {
				say(fileOf(Ladder), path+".until", "it was over at %s; remove it, or write when it comes again", e.Until.Format(timeLayout))
			}
		})},
	}
}

func automaticLimits(l *lint, say say) {
	if l.Ladder == nil {
		return
	}
	file, a := fileOf(Ladder), &l.Ladder.Automatic
	for _, d := range []struct {
		field string
		value model.Duration
	}{{"every", a.Every}, {"flap_window", a.FlapWindow}, {"stuck", a.Stuck}} {
		if d.value <= 0 {
			say(file, "automatic."+d.field, "%s is not above zero", d.field)
		}
	}
	sayOutside(say, file,
		number{"automatic.flaps", float64(a.Flaps), 1, maxFlaps},
		number{"automatic.blind", float64(a.Blind), 0, maxBlindTier})
}

// flapGuardIdle finds a guard that the limit of moves makes unreachable.
func flapGuardIdle(l *lint, say say) {
	if l.Ladder == nil || l.Ladder.Automatic.Every <= 0 || l.Ladder.Automatic.ShedAtOnce {
		return
	}
	a := &l.Ladder.Automatic
	if most := int64(a.FlapWindow/a.Every) + 1; most <= int64(a.Flaps) {
		say(fileOf(Ladder), "automatic.flaps", "with one move in %s there are at most %d in %s, so %d never latch the ladder", a.Every, most, a.FlapWindow, a.Flaps+1)
	}
}

func everyEvent(check func(l *lint, say say, path string, e *Event)) func(*lint, say) {
	return func(l *lint, say say) {
		if l.Ladder == nil {
			return
		}
		for _, name := range sortedKeys(l.Ladder.Schedule) {
			e := l.Ladder.Schedule[name]
			check(l, say, "schedule."+name, &e)
		}
	}
}

func event(l *lint, say say, path string, e *Event) {
	file := fileOf(Ladder)
	if !l.hasTier(e.Tier) {
		say(file, path+".tier", "the ladder has no tier %d", e.Tier)
	}
	l.scope(say, file, path+".scope", e.Scope)
	if !e.From.Before(e.Until) {
		say(file, path+".until", "it is over at %s and begins at %s; until comes after from", e.Until.Format(timeLayout), e.From.Format(timeLayout))
	}
	if e.Soak < minSoak {
		say(file, path+".soak", "a soak of %s is shorter than %s; during an event a quiet moment proves little", e.Soak, minSoak)
	}
}
