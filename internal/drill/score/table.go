package score

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
)

// maxText is the longest text of a record that a line shows, in bytes.
const maxText = 200

// Mark says how abnormal a value is. Each has a glyph and a word, those of the
// console, so that nothing depends on colour.
type Mark int

// The marks.
const (
	Plain Mark = iota
	Abnormal
	Critical
	Unknown
)

// Glyph is one column wide.
func (m Mark) Glyph() string { return [...]string{" ", "!", "X", "?"}[m] }

// Row is one axis: the value of this run, and of the others in their order.
type Row struct {
	Name   string
	Value  string
	Mark   Mark
	Word   string // of the mark; "" for a plain value
	Others []string
}

// axis is one line of the card.
type axis struct {
	name string
	show func(a *Axes) string
	mark func(a *Axes) (Mark, string)
}

// Rows is the card, an axis a row, in a fixed order.
func (s *Score) Rows() []Row {
	out := make([]Row, 0, len(card()))
	for _, x := range card() {
		r := Row{Name: x.name, Value: x.show(&s.Axes)}
		if x.mark != nil {
			r.Mark, r.Word = x.mark(&s.Axes)
		}
		if r.Mark == Plain && r.Value == unknown {
			r.Mark, r.Word = Unknown, ""
		}
		for i := range s.Against {
			r.Others = append(r.Others, x.show(&s.Against[i].Axes))
		}
		out = append(out, r)
	}
	return out
}

// unknown is the word for what a record does not tell.
const unknown = "UNKNOWN"

func card() []axis {
	return []axis{
		{"detect", func(a *Axes) string { return lasting(a.DetectMS) }, nil},
		{"decide", func(a *Axes) string { return lasting(a.DecideMS) }, nil},
		{"effect on 95 %", func(a *Axes) string { return lasting(a.EffectMS) }, nil},
		{"stabilise", func(a *Axes) string { return lasting(a.StabiliseMS) }, nil},
		{"recover", func(a *Axes) string { return lasting(a.RecoverMS) }, nil},
		{"blocked attempts", func(a *Axes) string { return strconv.Itoa(a.Blocked) }, nil},
		{"wrong role", func(a *Axes) string { return strconv.Itoa(a.WrongRole) }, some(func(a *Axes) int { return a.WrongRole }, Abnormal, "without the role")},
		{"tier too high", func(a *Axes) string { return tierMinutes(a.OverTierMS) }, nil},
		{"tier too low", func(a *Axes) string { return tierMinutes(a.UnderTierMS) }, nil},
		{"flaps", func(a *Axes) string { return strconv.Itoa(a.Flaps) }, some(func(a *Axes) int { return a.Flaps }, Abnormal, "rose again")},
		{"recovery jumps", func(a *Axes) string { return strconv.Itoa(a.Jumps) }, some(func(a *Axes) int { return a.Jumps }, Abnormal, "several tiers at once")},
		{"unscored", func(a *Axes) string { return amount(a.UnscoredCents, a.Currency) }, overCap},
		{"cap", func(a *Axes) string { return orNone(a.CapCents, a.Currency) }, nil},
		{"lost", func(a *Axes) string { return amount(a.LostCents, a.Currency) }, nil},
		{"customer impact", func(a *Axes) string { return impact(a.ImpactMS) }, nil},
		{"acts done", func(a *Axes) string { return strconv.Itoa(a.Steps) }, nil},
		{"acts skipped", func(a *Axes) string { return strconv.Itoa(a.Skipped) }, some(func(a *Axes) int { return a.Skipped }, Abnormal, "left out")},
		{"bypass at the end", left, leftOpen},
		{"evidence", evidence, evidenceMark},
	}
}

// some marks a count that should be zero.
func some(count func(*Axes) int, mark Mark, word string) func(*Axes) (Mark, string) {
	return func(a *Axes) (Mark, string) {
		if count(a) == 0 {
			return Plain, ""
		}
		return mark, word
	}
}

func overCap(a *Axes) (Mark, string) {
	if a.CapCents != nil && a.UnscoredCents != nil && *a.UnscoredCents > *a.CapCents {
		return Critical, "OVER THE CAP"
	}
	return Plain, ""
}

func left(a *Axes) string {
	if a.BypassLeft == nil {
		return unknown
	}
	if *a.BypassLeft == 0 {
		return "none"
	}
	return "on " + counted(*a.BypassLeft, "host")
}

func leftOpen(a *Axes) (Mark, string) {
	if a.BypassLeft != nil && *a.BypassLeft > 0 {
		return Critical, "LEFT OPEN"
	}
	return Plain, ""
}

func evidence(a *Axes) string {
	switch {
	case a.Evidence == nil:
		return unknown
	case a.Evidence.Complete():
		return "complete: " + counted(a.Evidence.Effects, "effect")
	default:
		return "gaps in " + counted(a.Evidence.Effects, "effect")
	}
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func evidenceMark(a *Axes) (Mark, string) {
	if a.Evidence != nil && !a.Evidence.Complete() {
		return Critical, "INCOMPLETE"
	}
	return Plain, ""
}

func lasting(ms *int64) string {
	if ms == nil {
		return unknown
	}
	return (time.Duration(*ms) * time.Millisecond).Round(time.Second).String()
}

// tierMinutes is tiers x minutes with one decimal.
func tierMinutes(ms int64) string { return tenths(ms) + " tier min" }

func impact(ms *int64) string {
	if ms == nil {
		return unknown
	}
	return tenths(*ms) + " min"
}

// tenths are minutes with one decimal, rounded half up.
func tenths(ms int64) string {
	n := (ms + 3_000) / 6_000
	return fmt.Sprintf("%d.%d", n/10, n%10)
}

func amount(cents *int64, currency string) string {
	if cents == nil {
		return unknown
	}
	return money(*cents, currency)
}

func orNone(cents *int64, currency string) string {
	if cents == nil {
		return "none granted"
	}
	return money(*cents, currency)
}

func money(cents int64, currency string) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return strings.TrimSpace(fmt.Sprintf("%s%d.%02d %s", sign, cents/100, cents%100, untrusted.Text(currency, 8)))
}

// VerdictMark is how a verdict is shown.
func VerdictMark(v Verdict) Mark {
	switch v {
	case Passed:
		return Plain
	case Failed:
		return Critical
	default:
		return Abnormal
	}
}

// Heading says what was run.
func (s *Score) Heading() string {
	text := untrusted.Text(s.Scenario, maxText)
	if s.Title != "" {
		text += ": " + untrusted.Text(s.Title, maxText)
	}
	return text
}

// Run says how it was run.
func (s *Score) Run() string {
	text := fmt.Sprintf("seed %d, %s, %s of virtual time", s.Seed, untrusted.Text(string(s.Mode), maxText), lasting(&s.LastsMS))
	if s.Played != nil && s.Script == "" {
		text += ", " + s.Played.String()
		if speed := s.Played.speed(); speed != "" {
			text += " at " + speed
		}
	}
	if s.Runbook != "" {
		text += ", runbook " + untrusted.Text(s.Runbook, maxText)
	}
	if s.Script != "" {
		text += ", script " + untrusted.Text(s.Script[:min(len(s.Script), 12)], maxText)
	}
	return text
}

// Write prints the card. Every line of it says REHEARSAL.
func (s *Score) Write(w io.Writer) error {
	var out strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintf(&out, "%s  %s\n", model.Rehearsing, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	say("%s", s.Heading())
	say("%s", s.Run())
	say("%s %s", VerdictMark(s.Verdict).Glyph(), strings.ToUpper(string(s.Verdict)))
	for _, why := range s.Why {
		say("    %s", untrusted.Text(why, maxText))
	}
	var rows strings.Builder
	t := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "  axis\tthis run\t\t")
	for _, name := range s.Columns() {
		fmt.Fprintf(t, "%s\t", name)
	}
	fmt.Fprintln(t)
	for _, r := range s.Rows() {
		fmt.Fprintf(t, "%s %s\t%s\t%s\t", r.Mark.Glyph(), r.Name, r.Value, r.Word)
		for _, other := range r.Others {
			fmt.Fprintf(t, "%s\t", other)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(rows.String()) {
		say("%s", strings.TrimSuffix(line, "\n"))
	}
	if s.Axes.Evidence != nil {
		for _, missing := range s.Axes.Evidence.Missing {
			say("    %s", untrusted.Text(missing, maxText))
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
