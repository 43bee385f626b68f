package ladder

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Cause is one signal behind a move, as it read then.
type Cause struct {
	Signal string             `json:"signal"`
	State  model.ReadingState `json:"state"`
	Value  float64            `json:"value"` // meaningful when state is value
	Is     string             `json:"is"`    // beyond, inside, outside or missing
	Text   string             `json:"text"`  // "checkout-p99 1.3 s, above 1.2 s for 2m"
}

// causeOf words a condition. Beyond is held, outside is not held and should be,
// missing is not known.
func (l *look) causeOf(c *policy.Condition, is string) Cause {
	unit := l.b.Signals[c.Signal].Unit
	r, known := l.w.Readings[c.Signal]
	if !known {
		r.State = model.ReadingNoData
	}
	cause := Cause{Signal: c.Signal, State: r.State, Is: is}
	limit := limitText(c.Threshold, unit)
	switch {
	case r.State != model.ReadingValue:
		cause.Text = fmt.Sprintf("%s is %s, %s for %s", c.Signal, r.State, limit, c.For)
	default:
		cause.Value = r.Value
		cause.Text = fmt.Sprintf("%s %s, %s for %s", c.Signal, decisions.Quantity(r.Value, unit), limit, c.For)
	}
	switch is {
	case "missing":
		cause.Text = fmt.Sprintf("%s is %s for %s", c.Signal, r.State, c.For)
	case "outside":
		cause.Text = fmt.Sprintf("%s %s, not %s", c.Signal, decisions.Quantity(r.Value, unit), limit)
	}
	return cause
}

// leaveCauses are the conditions by which a tier is left.
func (l *look) leaveCauses(tier *policy.Tier) []Cause {
	out := make([]Cause, 0, len(tier.Leave))
	for i := range tier.Leave {
		out = append(out, l.causeOf(&tier.Leave[i], "inside"))
	}
	return out
}

func limitText(t policy.Threshold, unit string) string {
	switch {
	case t.Above != nil:
		return "above " + decisions.Quantity(*t.Above, unit)
	case t.Below != nil:
		return "below " + decisions.Quantity(*t.Below, unit)
	}
	return "beyond nothing"
}

func sentence(causes []Cause) string {
	texts := make([]string, len(causes))
	for i := range causes {
		texts[i] = causes[i].Text
	}
	return strings.Join(texts, "; ")
}

// shortened fits a sentence into the reason of a directive.
func shortened(text string) string {
	const mark = "..."
	if len(text) <= model.MaxReason {
		return text
	}
	cut := model.MaxReason - len(mark)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

func number(n int) string { return strconv.Itoa(n) }

func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func named(scope string) string {
	if scope == model.AnyScope {
		return "all services"
	}
	return scope
}
