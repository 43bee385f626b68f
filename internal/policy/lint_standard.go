package policy

import (
	"slices"
	"strings"
	"time"
)

// Numbers of the standard.
const (
	reviewAge  = 366 * 24 * time.Hour // how long a class of a feature holds: a year, a leap year too
	gameDayAge = 92                   // whole days from one game day to the next: the longest quarter
	minTraffic = 1.0                  // percent of requests that a fallback serves on a normal day
)

// standardRules are the rules of the degradation standard: a MUST is an error, a
// SHOULD a warning. Only these may be departed from by an exception; whatever
// keeps a control closed is not among them.
func standardRules() []rule {
	return slices.Concat(classRules(), behaviourRules(), fallbackRules(), serviceRules())
}

// standardCodes are the codes that an exception may name.
func standardCodes() map[string]bool {
	codes := make(map[string]bool)
	for _, r := range standardRules() {
		codes[r.code] = true
	}
	return codes
}

func everyFeature(check func(l *lint, say say, path string, f *Feature)) func(*lint, say) {
	return func(l *lint, say say) {
		l.eachFeature(func(path, _ string, f *Feature) { check(l, say, path, f) })
	}
}

// classRules: who answers for a class, and for how long it holds.
func classRules() []rule {
	file := fileOf(Features)
	return []rule{
		{"feature-owner", LintError, everyFeature(func(l *lint, say say, path string, f *Feature) {
			if !l.owner(f.Owner) {
				say(file, path+".owner", "owner %q is neither a person nor a group of the root", f.Owner)
			}
		})},
		{"owner-does-not-sign", LintWarning, everyFeature(func(l *lint, say say, path string, f *Feature) {
			if l.root == nil || !l.owner(f.Owner) {
				return
			}
			group := l.root.Domains[Features].Group
			if !slices.ContainsFunc(l.people, func(p string) bool {
				return (p == f.Owner || l.root.InGroup(f.Owner, p)) && l.root.InGroup(group, p)
			}) {
				say(file, path+".owner", "%s owns it and is not in the group %q that signs %s, so the owner never approves the class", f.Owner, group, file)
			}
		})},
		{"review-overdue", LintError, everyFeature(func(l *lint, say say, path string, f *Feature) {
			switch now := l.names.Now; {
			case now.IsZero():
			case now.Sub(f.Reviewed) > reviewAge:
				say(file, path+".reviewed", "last reviewed on %s; classes are reviewed every year", f.Reviewed.Format(time.DateOnly))
			case f.Reviewed.After(now):
				say(file, path+".reviewed", "reviewed on %s, a day that has not come; write when the class was looked at last", f.Reviewed.Format(time.DateOnly))
			}
		})},
	}
}

// behaviourRules: what happens at each tier is written down, for every feature
// and every service.
func behaviourRules() []rule {
	file := fileOf(Features)
	return []rule{
		{"tier-behaviour-missing", LintError, everyFeature(func(l *lint, say say, path string, f *Feature) {
			if l.Ladder == nil {
				return
			}
			for _, t := range l.Ladder.Tiers {
				if strings.TrimSpace(f.Tiers[t.Tier]) == "" {
					say(file, path+".tiers", "nothing is said about tier %d; write what happens there, %q if nothing does", t.Tier, NoChange)
				}
			}
		})},
		{"service-without-behaviour", LintWarning, serviceWithoutBehaviour},
		{"degradable-without-fallback", LintError, everyFeature(func(_ *lint, say say, path string, f *Feature) {
			if f.Class == Degradable && !f.getsSimpler() {
				say(file, path+".tiers", "a degradable feature gets simpler; this one has neither words for a simpler form nor a fallback: write one, or call it sheddable")
			}
		})},
	}
}

// getsSimpler reports whether there is anything between the whole feature and
// none of it.
func (f *Feature) getsSimpler() bool {
	for _, behaviour := range f.Tiers {
		if behaviour != OffBehaviour && behaviour != NoChange && strings.TrimSpace(behaviour) != "" {
			return true
		}
	}
	for _, e := range f.Endpoints {
		for _, d := range e.Dependencies {
			if d.Fallback != nil {
				return true
			}
		}
	}
	return false
}

// serviceWithoutBehaviour finds a service of which no document says what becomes
// of it at any tier.
func serviceWithoutBehaviour(l *lint, say say) {
	if l.Features == nil {
		return
	}
	spoken := make(map[string]bool)
	l.eachFeature(func(_, _ string, f *Feature) { spoken[f.Service] = true })
	l.eachCall(func(c *call) { spoken[c.name] = true })
	for _, doc := range l.Controls {
		for _, control := range doc.Controls {
			for _, name := range control.Services {
				spoken[name] = true
			}
		}
	}
	l.eachService(func(path, name string, _ *Service) {
		if !spoken[name] {
			say(fileOf(Ladder), path, "no feature, endpoint or control speaks of %s, so nobody has said what it does at any tier", name)
		}
	})
}

// serviceRules: the state of a degradation is local, and how much a request
// matters is decided once.
func serviceRules() []rule {
	file := fileOf(Ladder)
	each := func(check func(l *lint, say say, path, name string, s *Service)) func(*lint, say) {
		return func(l *lint, say say) {
			l.eachService(func(path, name string, s *Service) { check(l, say, path, name, s) })
		}
	}
	return []rule{
		{"remote-state", LintError, each(func(_ *lint, say say, path, name string, s *Service) {
			if !s.LocalState {
				say(file, path+".local_state", "%s asks a control plane for its tier while a request waits; the tier is read from memory and the last known one kept on disk", name)
			}
		})},
		{"criticality-ignored", LintError, each(func(_ *lint, say say, path, name string, s *Service) {
			if s.Criticality == Ignores {
				say(file, path+".criticality", "%s drops the criticality of a request, so everything behind it sheds blindly; it hands the criticality on, or lowers it", name)
			}
		})},
		{"criticality-reassigned", LintError, each(func(l *lint, say say, path, name string, s *Service) {
			if s.Criticality != Assigns {
				return
			}
			for _, caller := range sortedKeys(l.Ladder.Services) {
				if caller != name && slices.Contains(l.Ladder.Services[caller].Dependencies, name) {
					say(file, path+".criticality", "%s assigns the criticality of requests that come from %s, and so may raise it; only the edge assigns, all others hand on or lower", name, caller)
					return
				}
			}
		})},
		{"criticality-not-assigned", LintError, func(l *lint, say say) {
			if l.Ladder == nil {
				return
			}
			for _, s := range l.Ladder.Services {
				if s.Criticality == Assigns {
					return
				}
			}
			say(file, "services", "no service assigns the criticality of a request; the one at the edge does")
		}},
		{"game-day", LintWarning, each(func(l *lint, say say, path, name string, s *Service) {
			const day = 24 * time.Hour
			switch now := l.names.Now; {
			case s.GameDay.IsZero():
				say(file, path, "%s has never taken part in a game day; the standard asks for one a quarter", name)
			case !now.IsZero() && now.Truncate(day).Sub(s.GameDay.Truncate(day)) > gameDayAge*day:
				say(file, path+".game_day", "the last game day of %s was on %s, more than %d days ago; the standard asks for one a quarter", name, s.GameDay.Format(time.DateOnly), gameDayAge)
			case !now.IsZero() && s.GameDay.After(now):
				say(file, path+".game_day", "the game day of %s is on %s, which has not come; write the last one that took place", name, s.GameDay.Format(time.DateOnly))
			}
		})},
	}
}
