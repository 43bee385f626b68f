package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// Bounds of a ladder, from rows A3 and A4 of what the field asks for.
const (
	minTiers   = 2
	maxTiers   = 6
	exitFactor = 3 // the way out is watched at least this many times longer than the way in
)

// DecideMark stands in the why of a signal that an import has drafted, before what
// a person has to decide. As long as it is there the signal is a draft.
const DecideMark = "DECIDE:"

// eachTier and eachSignal make a rule about the ladder out of one about a part.
func eachTier(check func(l *lint, say say, path string, t *Tier)) func(*lint, say) {
	return func(l *lint, say say) {
		if l.Ladder == nil {
			return
		}
		for i := range l.Ladder.Tiers {
			check(l, say, "tiers["+strconv.Itoa(i)+"]", &l.Ladder.Tiers[i])
		}
	}
}

func eachSignal(check func(l *lint, say say, path string, s *Signal)) func(*lint, say) {
	return func(l *lint, say say) {
		if l.Ladder == nil {
			return
		}
		for _, name := range sortedKeys(l.Ladder.Signals) {
			s := l.Ladder.Signals[name]
			check(l, say, "signals."+name, &s)
		}
	}
}

func ladderRules() []rule { return slices.Concat(tierRules(), signalRules()) }

func tierRules() []rule {
	return []rule{
		{"tier-numbers", LintError, tierNumbers},
		{"tier-without-text", LintError, eachTier(func(_ *lint, say say, path string, t *Tier) {
			if t.Name == "" || t.Text == "" {
				say(fileOf(Ladder), path, "tier %d has no name or no text; the text says what the user sees", t.Tier)
			}
		})},
		{"tier-owner", LintError, eachTier(func(l *lint, say say, path string, t *Tier) {
			if !l.owner(t.Owner) {
				say(fileOf(Ladder), path+".owner", "owner %q is neither a person nor a group of the root", t.Owner)
			}
		})},
		{"ramp", LintError, eachTier(ramp)},
		{"dwell", LintError, eachTier(func(_ *lint, say say, path string, t *Tier) {
			if t.Dwell <= 0 || t.RampStep <= 0 {
				say(fileOf(Ladder), path, "tier %d has no dwell or no ramp_step; both are above zero, or the ladder flaps", t.Tier)
			}
		})},
		{"threshold-shape", LintError, thresholdShapes},
		{"unknown-signal", LintError, eachTier(func(l *lint, say say, path string, t *Tier) {
			for _, c := range t.conditions(path) {
				if _, ok := l.Ladder.Signals[c.Signal]; !ok {
					say(fileOf(Ladder), c.path+".signal", "the ladder defines no signal %q", c.Signal)
				}
			}
		})},
		{"enter-needs", LintError, eachTier(enterNeeds)},
		{"condition-too-short", LintError, eachTier(conditionTooShort)},
		{"exit-missing", LintError, eachTier(exitMissing)},
		{"exit-not-inside", LintError, eachTier(exitNotInside)},
		{"exit-window", LintError, eachTier(exitWindow)},
		{"tier-nobody-may-enter", LintError, eachTier(nobodyMayEnter)},
		{"tier-nobody-may-leave", LintError, eachTier(nobodyMayLeave)},
	}
}

func signalRules() []rule {
	return []rule{
		{"signal-bounds", LintError, eachSignal(func(_ *lint, say say, path string, s *Signal) {
			if s.Query == "" || s.MaxAge <= 0 || s.Step <= 0 || s.Step > s.MaxAge {
				say(fileOf(Ladder), path, "a signal has a query, a max_age and a step above zero, and the step is at most the max_age")
			}
		})},
		{"undecided", LintError, eachSignal(func(_ *lint, say say, path string, s *Signal) {
			if strings.Contains(s.Why, DecideMark) {
				say(fileOf(Ladder), path+".why", "an import has left something for a person to decide; decide it, and write why the number is right")
			}
		})},
		{"query-series", LintError, eachSignal(func(l *lint, say say, path string, s *Signal) {
			if l.names.Query == nil || s.Query == "" {
				return
			}
			if problem := l.names.Query(s.Query); problem != "" {
				say(fileOf(Ladder), path+".query", "%s", problem)
			}
		})},
		{"unknown-right", LintError, eachSignal(func(l *lint, say say, path string, s *Signal) {
			if s.Right != "" && l.Rights != nil && !l.right(s.Right) {
				say(fileOf(Ladder), path+".right", "no document grants a right %q", s.Right)
			}
		})},
		{"unknown-runbook", LintError, eachSignal(func(l *lint, say say, path string, s *Signal) {
			if s.Runbook != "" && l.names.Runbooks != nil && !slices.Contains(l.names.Runbooks, s.Runbook) {
				say(fileOf(Ladder), path+".runbook", "there is no runbook %q", s.Runbook)
			}
		})},
		{"service-tiers", LintError, func(l *lint, say say) {
			if l.Ladder == nil {
				return
			}
			for _, name := range sortedKeys(l.Ladder.Services) {
				if n := l.Ladder.Services[name].Tiers; n < 1 || n > len(l.Ladder.Tiers) {
					say(fileOf(Ladder), "services."+name+".tiers", "%s knows %d tiers; it is at least 1 and at most the %d of the ladder", name, n, len(l.Ladder.Tiers))
				}
			}
		}},
	}
}

func tierNumbers(l *lint, say say) {
	if l.Ladder == nil {
		return
	}
	if n := len(l.Ladder.Tiers); n < minTiers || n > maxTiers {
		say(fileOf(Ladder), "tiers", "the ladder has %d tiers; it has %d to %d", n, minTiers, maxTiers)
	}
	for i, t := range l.Ladder.Tiers {
		if t.Tier != i+1 {
			say(fileOf(Ladder), "tiers["+strconv.Itoa(i)+"].tier", "tier %d stands where tier %d belongs; tiers count from 1 without a gap", t.Tier, i+1)
		}
	}
}

func ramp(_ *lint, say say, path string, t *Tier) {
	ascending := len(t.Ramp) > 0 && t.Ramp[0] >= 1 && t.Ramp[len(t.Ramp)-1] == 100
	for i := 1; i < len(t.Ramp); i++ {
		ascending = ascending && t.Ramp[i-1] < t.Ramp[i]
	}
	if !ascending {
		say(fileOf(Ladder), path+".ramp", "a ramp rises from at least 1 to 100 percent, like [10, 50, 100]")
	}
}

// placed is a condition with its path.
type placed struct {
	*Condition
	path string
}

func (t *Tier) conditions(path string) []placed {
	return slices.Concat(placeAll(t.Enter, path+".enter"), placeAll(t.Leave, path+".leave"))
}

func placeAll(conditions []Condition, path string) []placed {
	out := make([]placed, len(conditions))
	for i := range conditions {
		out[i] = placed{&conditions[i], path + "[" + strconv.Itoa(i) + "]"}
	}
	return out
}

func (t Threshold) shaped() bool { return (t.Above == nil) != (t.Below == nil) }

func thresholdShapes(l *lint, say say) {
	if l.Ladder == nil {
		return
	}
	const sentence = "a threshold has either above or below, and not both"
	for i := range l.Ladder.Tiers {
		for _, c := range l.Ladder.Tiers[i].conditions("tiers[" + strconv.Itoa(i) + "]") {
			if !c.shaped() {
				say(fileOf(Ladder), c.path, sentence)
			}
		}
	}
	for _, name := range sortedKeys(l.Ladder.Signals) {
		if a := l.Ladder.Signals[name].Abnormal; a != nil && !a.shaped() {
			say(fileOf(Ladder), "signals."+name+".abnormal", sentence)
		}
	}
}

// enterNeeds wants a tier that some reason can enter.
func enterNeeds(_ *lint, say say, path string, t *Tier) {
	switch {
	case len(t.Enter) == 0:
		say(fileOf(Ladder), path+".enter", "tier %d has no reason to enter it", t.Tier)
	case t.EnterNeeds < 1 || t.EnterNeeds > len(t.Enter):
		say(fileOf(Ladder), path+".enter_needs", "%d of the %d reasons have to hold; it is 1 for any, up to all", t.EnterNeeds, len(t.Enter))
	}
}

// conditionTooShort finds windows that hold no two samples: they would be
// decided by one reading.
func conditionTooShort(l *lint, say say, path string, t *Tier) {
	for _, c := range t.conditions(path) {
		if s, ok := l.Ladder.Signals[c.Signal]; ok && c.For < 2*s.Step {
			say(fileOf(Ladder), c.path+".for", "%s is shorter than two steps of %s (%s each)", c.For, c.Signal, s.Step)
		}
	}
}

// exitMissing finds an entry whose signal the way out does not look at.
func exitMissing(_ *lint, say say, path string, t *Tier) {
	if len(t.Leave) == 0 {
		say(fileOf(Ladder), path+".leave", "tier %d has no condition for leaving it, so it would be left on no evidence", t.Tier)
		return
	}
	for _, in := range placeAll(t.Enter, path+".enter") {
		if len(t.exitsOf(in.Signal)) == 0 {
			say(fileOf(Ladder), in.path, "tier %d is entered by %s and left without looking at it", t.Tier, in.Signal)
		}
	}
}

func (t *Tier) exitsOf(signal string) []Condition {
	return slices.DeleteFunc(slices.Clone(t.Leave), func(c Condition) bool { return c.Signal != signal })
}

// exitNotInside finds a way out at or beyond the threshold of the way in.
func exitNotInside(_ *lint, say say, path string, t *Tier) {
	for _, in := range placeAll(t.Enter, path+".enter") {
		for _, out := range placeAll(t.Leave, path+".leave") {
			if in.Signal != out.Signal || !in.shaped() || !out.shaped() {
				continue
			}
			inside := in.Above != nil && out.Below != nil && *out.Below < *in.Above ||
				in.Below != nil && out.Above != nil && *out.Above > *in.Below
			if !inside {
				say(fileOf(Ladder), out.path, "tier %d is left at a value of %s that may enter it again; the exit lies strictly inside the entry, like 60 in after 80", t.Tier, in.Signal)
			}
		}
	}
}

func exitWindow(_ *lint, say say, path string, t *Tier) {
	for _, in := range t.Enter {
		for _, out := range placeAll(t.Leave, path+".leave") {
			if in.Signal == out.Signal && out.For < exitFactor*in.For {
				say(fileOf(Ladder), out.path+".for", "%s is watched %s on the way out and %s on the way in; out is at least %d times in", in.Signal, out.For, in.For, exitFactor)
			}
		}
	}
}

func nobodyMayEnter(l *lint, say say, path string, t *Tier) {
	if l.root == nil || l.Rights == nil {
		return
	}
	if !l.somebodyMay(t.Tier, false, func(r *Right) bool { return r.Kind == model.Shed }) {
		say(fileOf(Ladder), path, "no right sheds to tier %d, or nobody holds it", t.Tier)
	}
	if t.Auto && !l.somebodyMay(t.Tier, true, func(r *Right) bool { return r.Kind == model.Shed }) {
		say(fileOf(Ladder), path+".auto", "tier %d is automatic and no machine holds a right that sheds to it", t.Tier)
	}
}

func nobodyMayLeave(l *lint, say say, path string, t *Tier) {
	if l.root == nil || l.Rights == nil {
		return
	}
	if !l.somebodyMay(t.Tier, false, func(r *Right) bool { return r.Kind == model.End && r.Ends == model.Shed && !r.Blind }) {
		say(fileOf(Ladder), path, "no right recovers from tier %d, or nobody holds it", t.Tier)
	}
}

func (l *lint) somebodyMay(tier int, machine bool, kind func(r *Right) bool) bool {
	found := false
	l.eachRight(func(_, _ string, r *Right) {
		if kind(r) && inTiers(r.Tiers, tier) == "" {
			found = found || slices.ContainsFunc(l.holders(r, tier), func(s Signer) bool { return s.Machine == machine })
		}
	})
	return found
}
