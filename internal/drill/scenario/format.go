package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// column is where the first word after a keyword of the head stands.
const column = 10

// Format prints a scenario in its one canonical form: fixed order, one space
// between words, keywords of the head aligned. Comments are not part of a scenario
// and are not printed; what has to stay stands in "why". Parsing it again gives
// the same scenario.
func Format(s *Scenario) []byte {
	f := &printer{}
	f.head("scenario", s.Name)
	f.head("title", s.Title)
	f.head("source", s.Source)
	for _, why := range s.Why {
		f.head("why", why)
	}
	f.gap()
	f.head("fleet", fmt.Sprintf("shop %d", s.Hosts))
	f.head("lasts", span(s.Lasts))
	for i := range s.People {
		f.person(&s.People[i])
	}
	for _, one := range s.Shop {
		name := one.Name
		if one.Of != "" {
			name += " of " + one.Of
		}
		f.head("shop", name+" "+settingNamed(one.Name).unit.print(one.Value))
	}
	if s.Expires > 0 {
		f.head("policy", "expires "+span(s.Expires))
	}
	f.gap()
	for i := range s.Series {
		f.line("series every %s %s", span(s.Series[i].Every), s.Series[i].Text)
	}
	for i := range s.World {
		f.happening(&s.World[i])
	}
	f.gap()
	for i := range s.AbortIf {
		f.head("abort_if", s.AbortIf[i].String())
	}
	f.gap()
	f.line("baseline")
	f.steps(s.Baseline)
	f.gap()
	with := "with ic"
	if s.Runbook != "" {
		with = "with runbook " + s.Runbook
	}
	if s.Ladder {
		with += " and " + ladder
	}
	f.line("%s", with)
	f.steps(s.IC)
	f.gap()
	for i := range s.Expect {
		f.head("expect", string(s.Expect[i].Mode)+" "+s.Expect[i].String())
	}
	f.gap()
	for _, one := range s.Fitted {
		f.head("fitted", fmt.Sprintf("%s = %s because %s", one.Name, one.Value, one.Why))
	}
	return []byte(f.out.String())
}

type printer struct {
	out   strings.Builder
	wants bool // an empty line before the next one
}

func (f *printer) gap() { f.wants = f.out.Len() > 0 }

func (f *printer) line(format string, args ...any) {
	if f.wants {
		f.out.WriteByte('\n')
		f.wants = false
	}
	fmt.Fprintf(&f.out, format+"\n", args...)
}

func (f *printer) head(keyword, text string) { f.line("%-*s%s", column, keyword, text) }

func span(d time.Duration) string { return model.Duration(d).String() }

func (f *printer) person(one *Person) {
	text := one.Name + " " + one.Role
	switch {
	case one.Absent:
		text += " absent"
	case one.Acts != one.Reacts:
		text += fmt.Sprintf(" reacts %s acts %s", span(one.Reacts), span(one.Acts))
	default:
		text += " reacts " + span(one.Reacts)
	}
	f.head("people", text)
}

func (f *printer) happening(one *Happening) {
	what := one.Verb + " " + one.Fault
	if one.Verb == "load" {
		what = "load " + percent.print(one.Load)
	}
	f.line("at %-7s%s", span(one.At), what)
}

func (f *printer) steps(all []Step) {
	for i := range all {
		f.line("  %s", all[i].String())
	}
}

// String is the step as a scenario writes it.
func (s *Step) String() string {
	text := s.Cue.String() + " " + s.Who + " " + s.Verb
	for _, a := range s.Args {
		text += " " + a
	}
	return text
}

// String is the cue as a scenario writes it.
func (c Cue) String() string {
	switch c.Kind {
	case CueAt:
		return "at " + span(c.At)
	case CueTime:
		return "on " + span(c.At)
	case CueAbnormal, CueNormal:
		return "on " + c.Signal + " " + string(c.Kind)
	case CueSkew:
		return "on skew"
	default:
		return "then"
	}
}

// String is the figure as a scenario writes it.
func (f Figure) String() string {
	text := f.Name
	if f.Of != "" {
		text += " of " + f.Of
	}
	if f.When != "" {
		text += " " + f.When + " " + span(f.Time)
	}
	return text
}

// Print writes a value of the figure with its unit.
func (f Figure) Print(v int64) string { return figureNamed(f.Name).unit.print(v) }

// String is the bound as a scenario writes it.
func (b *Bound) String() string {
	if b.Op == opWithin {
		return b.Figure.String() + " " + b.Figure.Print(b.Value) + " within " + percent.print(b.Within)
	}
	return b.Figure.String() + " " + b.Op + " " + b.Figure.Print(b.Value)
}
