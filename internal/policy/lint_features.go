package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func headerRules() []rule {
	return []rule{
		{"header", LintError, func(l *lint, say say) {
			l.each(func(file string, head Header) {
				switch {
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
		{"expired", LintError, expired},
		{"expires-soon", LintWarning, expiresSoon},
		{"unexplained", LintWarning, unexplained},
	}
}

// unexplained finds what a signer or a reader at night is not told. Which texts
// are asked for is a matter of who reads them: the sentences of ic policy explain
// are made of these.
func unexplained(l *lint, say say) {
	tell := func(file, path, text string) {
		if strings.TrimSpace(text) == "" {
			field := path[strings.LastIndex(path, ".")+1:]
			say(file, path, "%s is empty; whoever signs and whoever reads at night is told nothing", field)
		}
	}
	l.each(func(file string, head Header) { tell(file, "why", head.Why) })
	l.eachFeature(func(path, _ string, f *Feature) { tell(fileOf(Features), path+".why", f.Why) })
	l.eachCall(func(c *call) {
		if c.Fallback != nil {
			tell(fileOf(Features), c.path+".fallback.text", c.Fallback.Text)
		}
	})
	l.eachRight(func(file, path string, r *Right) {
		tell(file, path+".text", r.Text)
		tell(file, path+".why", r.Why)
	})
	for _, domain := range sortedKeys(l.Controls) {
		for _, name := range sortedKeys(l.Controls[domain].Controls) {
			tell(fileOf(domain), fmt.Sprintf("controls.%s.text", name), l.Controls[domain].Controls[name].Text)
		}
	}
	if l.Ladder == nil {
		return
	}
	for _, name := range sortedKeys(l.Ladder.Schedule) {
		tell(fileOf(Ladder), fmt.Sprintf("schedule.%s.why", name), l.Ladder.Schedule[name].Why)
	}
	for _, name := range sortedKeys(l.Ladder.Exceptions) {
		tell(fileOf(Ladder), fmt.Sprintf("exceptions.%s.why", name), l.Ladder.Exceptions[name].Why)
	}
}

func featureRules() []rule {
	each := func(check func(l *lint, say say, path, name string, f *Feature)) func(*lint, say) {
		return func(l *lint, say say) {
			l.eachFeature(func(path, name string, f *Feature) { check(l, say, path, name, f) })
		}
	}
	file := fileOf(Features)
	return []rule{
		{"unknown-service", LintError, each(func(l *lint, say say, path, _ string, f *Feature) {
			if !l.service(f.Service) {
				say(file, path+".service", "the ladder names no service %q", f.Service)
			}
		})},
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
