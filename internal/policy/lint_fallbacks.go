package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

func everyCall(check func(l *lint, say say, c *call)) func(*lint, say) {
	return func(l *lint, say say) {
		l.eachCall(func(c *call) { check(l, say, c) })
	}
}

// everyFallback makes a rule out of one about a dependency that has a fallback.
func everyFallback(check func(l *lint, say say, path string, c *call)) func(*lint, say) {
	return everyCall(func(l *lint, say say, c *call) {
		if c.Fallback != nil {
			check(l, say, c.path+".fallback", c)
		}
	})
}

// fallbackRules: a fallback exists where one is promised, differs from what it
// stands in for, is warm, and is honest about what it serves.
func fallbackRules() []rule {
	file := fileOf(Features)
	return []rule{
		{"enhancing-without-fallback", LintError, everyCall(func(_ *lint, say say, c *call) {
			if c.Need == Enhancing && c.Fallback == nil {
				say(file, c.path, "%s is enhancing and has no fallback; write what is served without it, or call it required or optional", c.name)
			}
		})},
		{"fallback-shared-fate", LintError, everyFallback(fallbackSharedFate)},
		{"resources-unnamed", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			if len(c.Resources) == 0 {
				say(file, c.path+".resources", "%s names nothing that the call needs, so nobody can tell whether its fallback shares it", c.name)
			}
			if len(c.Fallback.Resources) == 0 && c.Fallback.Source != Static {
				say(file, path+".resources", "a fallback from %s needs something that can fail; name it: pool, region, store, configuration", c.Fallback.Source)
			}
		})},
		{"fallback-difference", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			if strings.TrimSpace(c.Fallback.Differs) == "" {
				say(file, path+".differs", "nothing says how the fallback differs from its primary")
			}
		})},
		{"fallback-unmarked", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			if !c.Fallback.Marked {
				say(file, path+".marked", "the answer does not say that it is degraded, so nobody behind it can tell")
			}
		})},
		{"fallback-traffic", LintWarning, everyFallback(func(_ *lint, say say, path string, c *call) {
			if t := c.Fallback.Traffic; t < minTraffic {
				say(file, path+".traffic", "it serves %g percent of requests on a normal day; below %g it is cold when it is needed", t, minTraffic)
			}
		})},
		{"snapshot-max-age", LintError, everyFallback(snapshotMaxAge)},
		{"invariants-missing", LintError, func(l *lint, say say) {
			l.eachEndpoint(func(path string, _ *Feature, e *Endpoint) {
				if len(e.Invariants) == 0 && slices.ContainsFunc(sortedKeys(e.Dependencies), func(name string) bool { return e.Dependencies[name].Fallback != nil }) {
					say(file, path+".invariants", "the endpoint has a fallback, and nothing says what stays true of its answer; write one invariant for each field that the fallback fills")
				}
			})
		}},
		{"invariant-incomplete", LintError, everyInvariant(func(l *lint, say say, path string, i *Invariant) {
			for _, field := range []struct{ name, value string }{
				{"source", i.Source}, {"authorization", i.Authorization}, {"degraded", i.Degraded}, {"disclosure", i.Disclosure},
			} {
				if strings.TrimSpace(field.value) == "" {
					say(file, path+"."+field.name, "%s is empty; every part of an invariant is answered, with the word none where there is nothing", field.name)
				}
			}
			if !l.owner(i.Owner) {
				say(file, path+".owner", "owner %q is neither a person nor a group of the root", i.Owner)
			}
		})},
		{"staler-than-invariant", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			for _, field := range sortedKeys(c.endpoint.Invariants) {
				i := c.endpoint.Invariants[field]
				if i.Source == c.name && c.Fallback.MaxAge > i.MaxAge {
					say(file, path+".max_age", "it may serve %s that is %s old, the invariant of %s tolerates %s", c.name, c.Fallback.MaxAge, field, i.MaxAge)
				}
			}
		})},
	}
}

func everyInvariant(check func(l *lint, say say, path string, i *Invariant)) func(*lint, say) {
	return func(l *lint, say say) {
		l.eachEndpoint(func(path string, _ *Feature, e *Endpoint) {
			for _, field := range sortedKeys(e.Invariants) {
				i := e.Invariants[field]
				check(l, say, path+".invariants."+field, &i)
			}
		})
	}
}

// fallbackSharedFate reports everything that a fallback and its primary both
// need, also what they need by way of services of the ladder.
func fallbackSharedFate(l *lint, say say, path string, c *call) {
	primary := l.needs(append([]string{c.name}, c.Resources...))
	fallback := l.needs(c.Fallback.Resources)
	var shared []string
	for _, name := range sortedKeys(fallback) {
		by, both := primary[name]
		if !both {
			continue
		}
		switch {
		case fallback[name] != "":
			name = fmt.Sprintf("%s (by way of %s)", name, fallback[name])
		case by != "":
			name = fmt.Sprintf("%s (the primary by way of %s)", name, by)
		}
		shared = append(shared, name)
	}
	if len(shared) > 0 {
		say(fileOf(Features), path+".resources", "the fallback and %s both need %s: what takes the one takes the other", c.name, strings.Join(shared, ", "))
	}
}

// needs lists resources and what they need in turn, as far as the ladder knows
// them as services; the value names the service that brought it, "" for the
// resource itself.
func (l *lint) needs(resources []string) map[string]string {
	out := make(map[string]string)
	for _, name := range resources {
		out[name] = ""
	}
	if l.Ladder == nil {
		return out
	}
	queue := slices.Clone(resources)
	for len(queue) > 0 {
		service := queue[0]
		queue = queue[1:]
		for _, name := range l.Ladder.Services[service].Dependencies {
			if _, known := out[name]; !known {
				out[name] = service
				queue = append(queue, name)
			}
		}
	}
	return out
}

// snapshotMaxAge wants room for one missed run: with less, the first hiccup of
// the job takes the fallback away.
func snapshotMaxAge(_ *lint, say say, path string, c *call) {
	f := c.Fallback
	least := f.Refresh + f.Job + f.Refresh
	if f.Source == Snapshot && f.Refresh > 0 && f.MaxAge > 0 && f.MaxAge < least {
		say(fileOf(Features), path+".max_age", "a snapshot of every %s that takes %s is %s old after one missed run; max_age is %s", f.Refresh, f.Job, least, f.MaxAge)
	}
}

// dependencyRules are about what contradicts itself, whatever a standard says.
func dependencyRules() []rule {
	file := fileOf(Features)
	return []rule{
		{"fallback-not-enhancing", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			if c.Need != Enhancing {
				say(file, path, "%s is %s and has a fallback all the same; with a fallback it is enhancing", c.name, c.Need)
			}
		})},
		{"fallback-ages", LintError, everyFallback(func(_ *lint, say say, path string, c *call) {
			f := c.Fallback
			for _, age := range []struct {
				field string
				value model.Duration
				wants bool
			}{
				{"refresh", f.Refresh, f.Source == Snapshot},
				{"job", f.Job, f.Source == Snapshot},
				{"max_age", f.MaxAge, f.Source == Snapshot || f.Source == Cache},
			} {
				switch {
				case age.wants && age.value <= 0:
					say(file, path+"."+age.field, "a fallback of source %s has a %s above zero", f.Source, age.field)
				case !age.wants && age.value != 0:
					say(file, path+"."+age.field, "%s means nothing for a fallback of source %s; write 0s", age.field, f.Source)
				}
			}
		})},
		{"criticality-against-class", LintWarning, func(l *lint, say say) {
			l.eachEndpoint(func(path string, f *Feature, e *Endpoint) {
				switch {
				case f.Class == Critical && e.Criticality == lastCriticality:
					say(file, path+".criticality", "the feature is critical and its requests are rejected first")
				case f.Class == Sheddable && e.Criticality == 0:
					say(file, path+".criticality", "the feature is sheddable and its requests are rejected last")
				}
			})
		}},
		{"dependency-unlisted", LintWarning, everyCall(func(l *lint, say say, c *call) {
			if l.Ladder == nil || c.name == c.feature.Service {
				return
			}
			caller, known := l.Ladder.Services[c.feature.Service]
			_, service := l.Ladder.Services[c.name]
			if known && service && !slices.Contains(caller.Dependencies, c.name) {
				say(file, c.path, "the ladder does not list %s among the dependencies of %s", c.name, c.feature.Service)
			}
		})},
	}
}
