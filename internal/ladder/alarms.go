package ladder

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// Kind of an alarm.
type Kind string

// Alarms, each about something that only a person can settle.
const (
	Latched  Kind = "latched"   // it flapped, and moves no more
	Stuck    Kind = "stuck"     // a tier is held for very long
	Budget   Kind = "budget"    // the minutes at tier 2 and above of this month are spent
	Unseen   Kind = "unseen"    // signals of the ladder are missing
	ForHuman Kind = "for-human" // a tier is called for that only people enter
	Broken   Kind = "broken"    // a ramp fails its gates, and no machine may halt it
)

// Alarm is raised as long as what it says is so.
type Alarm struct {
	Kind  Kind      `json:"kind"`
	About string    `json:"about"` // scope, tier or event; with the kind it names the alarm
	Since time.Time `json:"since,omitzero"`
	Text  string    `json:"text"`
}

// Key names an alarm as long as it lasts.
func (a *Alarm) Key() string { return string(a.Kind) + "/" + a.About }

func (l *look) alarm(kind Kind, about string, since time.Time, format string, args ...any) {
	l.out.Alarms = append(l.out.Alarms, Alarm{Kind: kind, About: about, Since: since, Text: fmt.Sprintf(format, args...)})
}

func (l *look) alarms() {
	l.out.Alarms = []Alarm{}
	a := &l.b.Automatic
	if at := l.flaps.latched; !at.IsZero() {
		l.alarm(Latched, model.AnyScope, at, "the ladder has turned more than %d times in %s and is latched since %s: it moves no more until a person has signed a shed, a recovery or a freeze", a.Flaps, a.FlapWindow, clock(at))
	}
	for _, scope := range l.shedScopes() {
		tier := decisions.ChainOf(l.w, scope).Tier
		if since := heldSince(l.Moves, scope, tier); a.Stuck > 0 && !since.IsZero() && l.now.Sub(since) > a.Stuck.Std() {
			l.alarm(Stuck, scope, since, "%s stands at tier %d or above since %s, longer than %s", named(scope), tier, since.UTC().Format(time.RFC3339), a.Stuck)
		}
		l.brokenRamp(scope)
	}
	if used := time.Duration(l.out.Spent) * time.Second; a.Budget > 0 && used > a.Budget.Std() {
		l.alarm(Budget, l.now.UTC().Format("2006-01"), time.Time{}, "%s at tier %d and above this month; the budget is %s", used, budgetTier, a.Budget)
	}
	l.unseen()
	l.forPeople()
}

// brokenRamp is for ramps out of tiers that are beyond a machine: of a commander,
// who has to halt it himself.
func (l *look) brokenRamp(scope string) {
	chain := decisions.ChainOf(l.w, scope)
	if causes := l.broken(&chain); len(causes) > 0 && l.shedRight(scope, chain.Tier) == "" {
		l.alarm(Broken, scope, chain.Since, "the ramp of %s out of tier %d fails its gates (%s): a commander halts it (ic shed %d)", named(scope), chain.Tier, sentence(causes), chain.Tier)
	}
}

// unseen names the signals that have been missing for as long as any condition on
// them looks back on the way in.
func (l *look) unseen() {
	var names []string
	var since time.Time
	for _, c := range l.calls {
		for i := range c.tier.Enter {
			cond := &c.tier.Enter[i]
			if !l.blindFor(cond) || slices.Contains(names, cond.Signal) {
				continue
			}
			names = append(names, cond.Signal)
			if at := l.Blind[cond.Signal]; since.IsZero() || at.Before(since) {
				since = at
			}
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	l.alarm(Unseen, model.AnyScope, since, "the ladder does not see %s since %s: no tier is left by itself, and above tier %d none is entered on it", strings.Join(names, ", "), clock(since), min(l.b.Automatic.Blind, maxBlind))
}

// forPeople names tiers that signals or the schedule call for and that no machine
// may enter.
func (l *look) forPeople() {
	for _, scope := range l.entered() {
		standing := decisions.TierOf(l.w, scope)
		if scope == model.AnyScope {
			standing = decisions.ChainOf(l.w, scope).Tier
		}
		for _, c := range slices.Backward(l.calls) {
			if !c.held || c.tier.Tier <= standing {
				continue
			}
			if l.shedRight(scope, c.tier.Tier) == "" {
				l.alarm(ForHuman, "tier-"+number(c.tier.Tier)+" "+scope, time.Time{}, "signals call for tier %d (%s) of %s, which only people enter: %s", c.tier.Tier, c.tier.Name, named(scope), sentence(c.causes))
			}
			break
		}
	}
	for _, event := range decisions.EventsNow(l.b, l.w) {
		for _, scope := range event.Lacks {
			if l.shedRight(scope, min(event.Tier, l.b.LastTier(scope))) == "" && !l.takenOver(scope, event.From) {
				l.alarm(ForHuman, event.Name+" "+scope, event.From, "%s wants tier %d for %s from %s, and no machine may enter it: ic shed %d", event.Name, event.Tier, named(scope), clock(event.From), event.Tier)
			}
		}
	}
}
