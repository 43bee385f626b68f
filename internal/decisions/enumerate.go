package decisions

import (
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Row is one line of the decision-rights matrix as it stands now.
type Row struct {
	Name      string          `json:"right"`
	Text      string          `json:"text"`
	Who       string          `json:"who"`
	Cosign    policy.Cosign   `json:"cosign"`
	Domain    policy.Domain   `json:"domain"`
	Request   model.Request   `json:"request"`
	Verdict   model.Verdict   `json:"verdict"`
	Exposure  *Exposure       `json:"exposure,omitempty"` // loosening only
	Rehearsed model.Rehearsal `json:"rehearsed"`
}

// Enumerate gives every active right with a verdict for actor, sorted by
// direction (tighten, recover, loosen) and name. The draft of each row is the
// nearest use: the next tier, the next step, the whole bypass.
func Enumerate(b *policy.Bundle, w *model.World, actor string) []Row {
	rows := make([]Row, 0, len(b.RightNames()))
	for _, direction := range []model.Direction{model.Tighten, model.Recover, model.Loosen} {
		for _, name := range b.RightNames() {
			row, ok := rowOf(b, w, Ask{Right: name, Tier: nearest(b, name), Actor: actor, Reason: draftReason})
			if ok && row.Verdict.Direction == direction {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// draftReason stands for the reason that a person has still to give: a row must
// not read "needs a reason" only because nobody was asked yet.
const draftReason = "-"

func nearest(b *policy.Bundle, name string) int {
	if right, _, _ := b.Right(name); right.Kind == model.End {
		return NextTier
	}
	return 0
}

func rowOf(b *policy.Bundle, w *model.World, ask Ask) (Row, bool) {
	request, err := Draft(b, w, ask)
	if err != nil {
		return Row{}, false
	}
	if request.Directive.Kind == model.Off && request.Directive.Feature == "" {
		request.Directive.Feature = firstFeature(b)
	}
	right, domain, _ := b.Right(ask.Right)
	row := Row{
		Name: ask.Right, Text: right.Text, Who: right.Who, Cosign: right.Cosign, Domain: domain,
		Request: request, Verdict: Evaluate(b, w, &request), Rehearsed: w.Rehearsals[ask.Right],
	}
	if request.Directive.Kind == model.Bypass {
		worst := WorstCase(b, w, &request.Directive)
		row.Exposure = &worst
	}
	return row, true
}

// firstFeature is the feature a row of "any feature" is judged with.
func firstFeature(b *policy.Bundle) string {
	first := ""
	for name, f := range b.Features {
		if f.Class != policy.Critical && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
