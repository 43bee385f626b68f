package incident

import (
	"fmt"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// byHand is the name under which an advised act stands in the log, in the place
// of a carrier.
const byHand = "by-hand"

// advises reports whether there is neither a host nor a carrier: ic then decides
// and writes down, and a person does it by hand. No bypass gets this far: nothing
// would end it.
func (d *Desk) advises(w *model.World) bool {
	return len(d.o.Carriers) == 0 && decisions.AssuranceOf(d.o.Bundle, w) == model.Advised
}

// advise says what a person has to do now, and writes down that he was told. It is
// never proof that he did it.
func (d *Desk) advise(log *audit.Writer, dir *model.Directive, result *Result) {
	result.State, result.Advice = Advised, adviceOf(d.o.Bundle, dir)
	result.Detail = "ic cannot see whether it is done; " + whenOver(dir)
	d.note(log, audit.Outcome{ID: dir.ID, Carrier: byHand, State: audit.StateAdvised})
}

// adviceOf is what the policy's owners wrote for this right, and what the
// directive says in plain words.
func adviceOf(b *policy.Bundle, dir *model.Directive) []string {
	right, _, _ := b.Right(dir.Right)
	out := []string{"by hand, now: " + TitleOf(dir)}
	if right.Advice != "" {
		out = append(out, right.Advice)
	} else {
		out = append(out, fmt.Sprintf("the right %s says nothing about how", dir.Right))
	}
	tier := dir.Tier
	if dir.IsRecovery() {
		tier = dir.To
	}
	if tier == 0 {
		return out
	}
	if t, ok := b.TierOf(tier); ok && t.Text != "" {
		out = append(out, fmt.Sprintf("tier %d, as users see it: %s", tier, t.Text))
	}
	for _, name := range sortedNames(b.Features) {
		f := b.Features[name]
		if does := f.Tiers[tier]; does != "" && does != policy.NoChange && dir.Covers(f.Service) {
			out = append(out, fmt.Sprintf("%s: %s", name, does))
		}
	}
	return out
}

// whenOver says how ic learns that it was undone.
func whenOver(dir *model.Directive) string {
	switch {
	case !holdsFleet(dir):
		return "what it ends counts as ended"
	case dir.EndedAs() == model.Shed:
		return "it counts as in force until ic recover says otherwise"
	default:
		return fmt.Sprintf("it counts as in force until you say so: ic end %s", ShortID(dir.ID))
	}
}
