package runbooks

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// Says is what a step does, line by line, in words that a tired person reads.
func (s *Step) Says() []string {
	out := []string{s.act()}
	if s.Decide != nil {
		for _, o := range s.Decide.Options {
			out = append(out, fmt.Sprintf("%s: %s -> %s", o.Choose, o.Means, o.Goto))
		}
	}
	add := func(given bool, format string, args ...any) {
		if given {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(s.Role != "", "by: %s", s.Role)
	if s.Probe != nil {
		out = append(out, "proved when "+s.Probe.says())
	}
	add(s.Timeout > 0 && s.OnTimeout != "", "not within %s: %s", s.Timeout, s.OnTimeout)
	add(s.Wait != nil && s.Wait.Until != nil && s.OnTimeout != "", "not by then: %s", s.OnTimeout)
	if s.Undo != nil {
		out = append(out, "undone by: "+s.Undo.says())
	}
	add(s.Irreversible != "", "cannot be undone: %s", s.Irreversible)
	add(s.Then != "", "then: %s", s.Then)
	return out
}

func (s *Step) act() string {
	switch {
	case s.Check != nil:
		return "check that " + s.Check.says()
	case s.Decide != nil:
		return "decide: " + s.Decide.Ask
	case s.Do != nil:
		return s.Do.says()
	case s.Recover != nil:
		return s.Recover.says()
	case s.Push != nil:
		return s.Push.says()
	case s.Wait != nil && s.Wait.Until != nil:
		return fmt.Sprintf("wait until %s, at most %s", s.Wait.Until.says(), s.Wait.AtMost)
	case s.Wait != nil:
		return fmt.Sprintf("wait for %s", s.Wait.For)
	case s.Note != nil:
		return "note what you see: " + s.Note.Ask
	}
	return "by hand: do it, and note what you see"
}

func (c *Check) says() string {
	switch {
	case c.PromQL != nil && c.PromQL.For > 0:
		return fmt.Sprintf("%s is %s %v for %s", c.PromQL.Query, c.PromQL.Is.Op, c.PromQL.Is.Value, c.PromQL.For)
	case c.PromQL != nil:
		return fmt.Sprintf("%s is %s %v", c.PromQL.Query, c.PromQL.Is.Op, c.PromQL.Is.Value)
	case c.Signal != nil:
		return fmt.Sprintf("the signal %s is %s", c.Signal.Name, c.Signal.Is)
	case c.HTTP != nil:
		return fmt.Sprintf("%s answers %d", c.HTTP.URL, c.HTTP.Status)
	case c.Tier != nil:
		return fmt.Sprintf("%s is at tier %d", scoped(c.Tier.Scope), c.Tier.Is)
	case c.Skew != nil:
		return fmt.Sprintf("%d %% of hosts have what was issued", c.Skew.AtLeast)
	case c.Bypass != nil:
		return fmt.Sprintf("the control %s is %s", c.Bypass.Control, map[string]string{BypassOpen: "bypassed", BypassClosed: "not bypassed"}[c.Bypass.Is])
	case c.Reach != nil:
		return fmt.Sprintf("%d %% of hosts report this step's directive", c.Reach.AtLeast)
	}
	return ""
}

func scoped(scope string) string {
	if scope == model.AnyScope {
		return "every service"
	}
	return scope
}

func (d *Do) says() string {
	words := []string{"use the right " + d.Right}
	add := func(given bool, format string, args ...any) {
		if given {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(d.Scope != "", "for %s", scoped(d.Scope))
	add(d.Tier > 0, "to tier %d", d.Tier)
	add(d.Feature != "", "feature %s", d.Feature)
	add(d.Control != "", "on %s", d.Control)
	add(!d.Under.IsZero(), "for items under %s", d.Under)
	add(d.For > 0, "for %s", d.For)
	add(d.TargetMS > 0, "at %d ms", d.TargetMS)
	add(d.Floor > 0, "from %d %%", d.Floor)
	add(d.Ceiling > 0, "up to %d %%", d.Ceiling)
	return strings.Join(words, " ") + " (" + d.Reason + ")"
}

func (r *Recover) says() string {
	return fmt.Sprintf("recover %s to tier %d on %d %% of hosts", scoped(r.Scope), r.To, r.Percent)
}

func (p *Push) says() string {
	if p.Undo != "" {
		return "take back what was pushed through " + p.Undo
	}
	return "push what is in force through " + p.Backend
}

func (u *Undo) says() string {
	switch {
	case u.Do != nil:
		return u.Do.says()
	case u.Recover != nil:
		return u.Recover.says()
	}
	return u.Push.says()
}
