package decisions

import (
	"fmt"
	"math"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Headline is the one line of the console: what matters now, which right fits
// and which runbook.
type Headline struct {
	Text    string `json:"text"`
	Right   string `json:"right,omitempty"`
	Runbook string `json:"runbook,omitempty"`
	Handled string `json:"handled,omitempty"` // a right in force that answers what is abnormal
	Calm    bool   `json:"calm"`
}

// HeadlineOf picks what matters most: an abnormal signal with a right that fits
// and is not already in force, then an event of the schedule whose tier is not
// entered, then any abnormal signal, then signals that are not known, then calm. Of
// several rights the one that answers the fewest signals is the most specific, and
// named.
func HeadlineOf(b *policy.Bundle, w *model.World) Headline {
	names := sortedNames(b.Signals)
	answers := make(map[string]int) // right -> signals that it answers
	for _, signal := range b.Signals {
		answers[signal.Right]++
	}
	var handled, unknown string
	best := Headline{}
	for _, name := range names {
		signal := b.Signals[name]
		reading, ok := w.Readings[name]
		switch {
		case !ok || reading.State != model.ReadingValue || math.IsNaN(reading.Value):
			if unknown == "" {
				unknown = name
			}
		case !Abnormal(&signal, &reading):
		case signal.Right != "" && rightLive(w, signal.Right):
			handled = signal.Right
		case best.Text == "" || signal.Right != "" && (best.Right == "" || answers[signal.Right] < answers[best.Right]):
			best = Headline{Text: abnormal(name, &signal, &reading), Right: signal.Right, Runbook: signal.Runbook}
		}
	}
	event := eventLine(b, w)
	best.Handled, event.Handled = handled, handled
	switch {
	case best.Right == "" && event.Text != "":
		return event
	case len(names) == 0:
		return Headline{Text: "the policy in force names no signal: no recovery, shedding stays possible (ic policy inspect)"}
	case best.Right != "":
		return best
	case handled != "":
		return Headline{Text: fmt.Sprintf("%s is in force: watch the hosts and the end", handled), Handled: handled}
	case best.Text != "":
		return best
	case unknown != "":
		return Headline{Text: fmt.Sprintf("signal %s is not known: no recovery on it, shedding stays possible", unknown)}
	default:
		return Headline{Text: "every signal is within its bounds", Calm: true}
	}
}

func rightLive(w *model.World, right string) bool {
	for i := range w.Issued {
		if w.Issued[i].Directive.Right == right && w.Issued[i].LiveAt(w.Now) {
			return true
		}
	}
	return false
}

func abnormal(name string, s *policy.Signal, r *model.Reading) string {
	return fmt.Sprintf("%s is %s, %s", name, Quantity(r.Value, s.Unit), LimitText(s))
}

// Abnormal reports whether a reading is a value beyond its signal's threshold.
func Abnormal(s *policy.Signal, r *model.Reading) bool {
	return s.Abnormal != nil && r.State == model.ReadingValue && holds(*s.Abnormal, r.Value)
}

// LimitText prints the threshold of a signal, "above 1 %"; "" if it has none.
func LimitText(s *policy.Signal) string {
	switch {
	case s.Abnormal == nil:
		return ""
	case s.Abnormal.Above != nil:
		return "above " + Quantity(*s.Abnormal.Above, s.Unit)
	case s.Abnormal.Below != nil:
		return "below " + Quantity(*s.Abnormal.Below, s.Unit)
	}
	return ""
}

// Quantity prints a value with its unit: "3.0 s", "35 %", "0.42".
func Quantity(v float64, unit string) string {
	switch unit {
	case "":
		return fmt.Sprintf("%.3g", v)
	case "ratio":
		return fmt.Sprintf("%.3g %%", v*100)
	case "percent":
		return fmt.Sprintf("%.3g %%", v)
	case "seconds":
		return fmt.Sprintf("%.3g s", v)
	default:
		return fmt.Sprintf("%.3g %s", v, unit)
	}
}
