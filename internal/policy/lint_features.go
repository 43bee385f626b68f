package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// reviewAge is how long a classification of a feature holds.
const reviewAge = 366 * 24 * time.Hour

func headerRules() []rule {
	return []rule{
		{"header", LintError, func(l *lint, say say) {
			l.each(func(file string, head Header) {
				switch {
				case head.V != 1:
					say(file, "v", "the format is v %d, this software reads 1", head.V)
				case fileOf(head.Domain) != file:
					say(file, "domain", "it says domain %q, its file is %s", head.Domain, file)
				case head.Version < 1:
					say(file, "version", "versions start at 1")
				case l.root != nil && head.Fleet != l.root.Fleet:
					say(file, "fleet", "it is for fleet %q, the root for %q", head.Fleet, l.root.Fleet)
				}
			})
		}},
		{"domain-without-owner", LintError, func(l *lint, say say) {
			l.each(func(file string, head Header) {
				if l.root == nil {
					return
				}
				if _, ok := l.root.Domains[head.Domain]; !ok {
					say(file, "domain", "the root names no group that signs %s, so it can never be active", file)
				}
			})
		}},
	}
}

func featureRules() []rule {
	each := func(check func(l *lint, say say, path, name string, f *Feature)) func(*lint, say) {
		return func(l *lint, say say) {
			if l.Features == nil {
				return
			}
			for _, name := range sortedKeys(l.Features.Features) {
				f := l.Features.Features[name]
				check(l, say, "features."+name, name, &f)
			}
		}
	}
	file := fileOf(Features)
	return []rule{
		{"feature-owner", LintError, each(func(l *lint, say say, path, _ string, f *Feature) {
			if !l.owner(f.Owner) {
				say(file, path+".owner", "owner %q is neither a person nor a group of the root", f.Owner)
			}
		})},
		{"review-overdue", LintWarning, each(func(l *lint, say say, path, _ string, f *Feature) {
			if !l.names.Now.IsZero() && l.names.Now.Sub(f.Reviewed) > reviewAge {
				say(file, path+".reviewed", "last reviewed on %s; classes are reviewed every year", f.Reviewed.Format(time.DateOnly))
			}
		})},
		{"unknown-service", LintError, each(func(l *lint, say say, path, _ string, f *Feature) {
			if !l.service(f.Service) {
				say(file, path+".service", "the ladder names no service %q", f.Service)
			}
		})},
		{"tier-behaviour-missing", LintError, each(featureTiers)},
		{"tier-behaviour-unknown", LintError, each(func(l *lint, say say, path, _ string, f *Feature) {
			if l.Ladder == nil {
				return
			}
			for _, n := range sortedKeys(f.Tiers) {
				if !l.hasTier(n) {
					say(file, path+".tiers."+strconv.Itoa(n), "the ladder has no tier %d", n)
				}
			}
		})},
		{"control-as-feature", LintError, each(func(l *lint, say say, path, name string, f *Feature) {
			if domain := l.control(name); domain != "" {
				say(file, path, "%s is a control of %s; a control is weakened by a bypass only, never switched off as a feature", name, domain)
			}
		})},
		{"control-in-behaviour", LintError, each(func(l *lint, say say, path, _ string, f *Feature) {
			for _, n := range sortedKeys(f.Tiers) {
				if name := l.mentionsControl(f.Tiers[n]); name != "" {
					say(file, path+".tiers."+strconv.Itoa(n), "the behaviour speaks of the control %s; no tier weakens a control", name)
				}
			}
		})},
	}
}

func featureTiers(l *lint, say say, path, _ string, f *Feature) {
	if l.Ladder == nil {
		return
	}
	for _, t := range l.Ladder.Tiers {
		if strings.TrimSpace(f.Tiers[t.Tier]) == "" {
			say(fileOf(Features), path+".tiers", "nothing is said about tier %d; write what happens there, %q if nothing does", t.Tier, NoChange)
		}
	}
}

func (l *lint) hasTier(n int) bool {
	return slices.ContainsFunc(l.Ladder.Tiers, func(t Tier) bool { return t.Tier == n })
}

// mentionsControl finds the name of a control as a word of its own in a text.
func (l *lint) mentionsControl(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;:()", r) })
	for _, domain := range sortedKeys(l.Controls) {
		for _, name := range sortedKeys(l.Controls[domain].Controls) {
			if slices.Contains(words, name) {
				return name
			}
		}
	}
	return ""
}

func journeyRules() []rule {
	each := func(check func(l *lint, say say, path string, j *Journey)) func(*lint, say) {
		return func(l *lint, say say) {
			if l.Journeys == nil {
				return
			}
			for _, name := range sortedKeys(l.Journeys.Journeys) {
				j := l.Journeys.Journeys[name]
				check(l, say, "journeys."+name+".broken_by", &j)
			}
		}
	}
	file := fileOf(Journeys)
	return []rule{
		{"journey-unbreakable", LintError, each(func(_ *lint, say say, path string, j *Journey) {
			if len(j.BrokenBy) == 0 || slices.ContainsFunc(j.BrokenBy, func(set []string) bool { return len(set) == 0 }) {
				say(file, path, "a journey names at least one set of features, and no set is empty")
			}
		})},
		{"unknown-feature", LintError, each(func(l *lint, say say, path string, j *Journey) {
			if l.Features == nil {
				return
			}
			for i, set := range j.BrokenBy {
				for k, name := range set {
					if _, ok := l.Features.Features[name]; !ok {
						say(file, path+"["+strconv.Itoa(i)+"]["+strconv.Itoa(k)+"]", "there is no feature %q", name)
					}
				}
			}
		})},
	}
}
