package policy

import (
	"fmt"
	"strings"
	"time"
)

// maxException is how long an exception from the standard may stand: two
// quarters, the longest two that follow one another.
const maxException = 184 * 24 * time.Hour

// codeExceptionIdle is found after all rules have spoken.
const codeExceptionIdle = "exception-idle"

func exceptionRules() []rule {
	each := func(check func(l *lint, say say, path string, e *Exception)) func(*lint, say) {
		return func(l *lint, say say) {
			if l.Ladder == nil {
				return
			}
			for _, name := range sortedKeys(l.Ladder.Exceptions) {
				e := l.Ladder.Exceptions[name]
				check(l, say, "exceptions."+name, &e)
			}
		}
	}
	file := fileOf(Ladder)
	return []rule{
		{"exception-code", LintError, each(func(_ *lint, say say, path string, e *Exception) {
			if !standardCodes()[e.Code] {
				say(file, path+".code", "%q is not a rule of the standard; only those may be departed from, and nothing that keeps a control closed is among them", e.Code)
			}
		})},
		{"exception-path", LintError, each(func(_ *lint, say say, path string, e *Exception) {
			if at, inside, _ := strings.Cut(e.Path, " "); !strings.HasSuffix(at, yamlSuffix) || inside == "" {
				say(file, path+".path", "%q is not a file and a path, like \"features.yaml features.search\"", e.Path)
			}
		})},
		{"exception-owner", LintError, each(func(l *lint, say say, path string, e *Exception) {
			if !l.owner(e.Owner) {
				say(file, path+".owner", "owner %q is neither a person nor a group of the root", e.Owner)
			}
		})},
		{"exception-dates", LintError, each(func(_ *lint, say say, path string, e *Exception) {
			if !e.boxed() {
				say(file, path+".until", "it runs from %s to %s; until comes after since, at most two quarters (%d days) later", e.Since.Format(time.DateOnly), e.Until.Format(time.DateOnly), int(maxException.Hours()/24))
			}
		})},
		{"exception-over", LintError, each(func(l *lint, say say, path string, e *Exception) {
			if now := l.names.Now; !now.IsZero() && !now.Before(e.Until) {
				say(file, path+".until", "it was over on %s; mend what it excused, or let reliability agree anew", e.Until.Format(time.DateOnly))
			}
		})},
	}
}

func (e *Exception) boxed() bool {
	return e.Since.Before(e.Until) && !e.Until.After(e.Since.Add(maxException))
}

// inForce reports whether an exception may excuse anything at all.
func (l *lint) inForce(e *Exception) bool {
	now := l.names.Now
	return standardCodes()[e.Code] && l.owner(e.Owner) && e.boxed() && (now.IsZero() || !now.Before(e.Since) && now.Before(e.Until))
}

// matches reports whether an exception speaks of a finding: of its very path, or
// of one entry with everything inside. A whole list of entries is never excused
// by its name alone.
func (e *Exception) matches(f *Finding) bool {
	file, path, _ := strings.Cut(e.Path, " ")
	if f.Code != e.Code || f.File != file {
		return false
	}
	if f.Path == path {
		return true
	}
	rest, inside := strings.CutPrefix(f.Path, path)
	return inside && strings.ContainsAny(path, ".[") && (rest[0] == '.' || rest[0] == '[')
}

// except marks the findings to which an exception in force agrees. They stay in
// the list: what is excused is not mended.
func (l *lint) except(found []Finding) []Finding {
	if l.Ladder == nil {
		return found
	}
	for _, name := range sortedKeys(l.Ladder.Exceptions) {
		e := l.Ladder.Exceptions[name]
		if !l.inForce(&e) {
			continue
		}
		matched := false
		for i := range found {
			if f := &found[i]; f.Severity != LintExcepted && e.matches(f) {
				matched = true
				f.Severity = LintExcepted
				f.Sentence += fmt.Sprintf("; the exception %s agrees to it until %s, %s mends it", name, e.Until.Format(time.DateOnly), e.Owner)
			}
		}
		if file, _, _ := strings.Cut(e.Path, " "); !matched && l.read(file) {
			found = append(found, l.finding(codeExceptionIdle, LintWarning, fileOf(Ladder), "exceptions."+name,
				"it excuses %s at %q, and nothing there departs from it; remove it", e.Code, e.Path))
		}
	}
	return found
}

// read reports whether the rules had a file to look at. Of a name that is no
// document they had all there is.
func (l *lint) read(file string) bool {
	domain, _ := domainOf(file)
	there := !domain.fixed()
	l.each(func(name string, _ Header) { there = there || name == file })
	return there
}
