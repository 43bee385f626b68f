package decisions

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Row is one line of the decision-rights matrix as it stands now.
type Row struct {
	Name      string          `json:"right"`
	Text      string          `json:"text"`
	Who       string          `json:"who"`
	Mine      bool            `json:"mine"` // the actor holds the role
	Cosign    policy.Cosign   `json:"cosign"`
	Domain    policy.Domain   `json:"domain"`
	Request   model.Request   `json:"request"`
	Verdict   model.Verdict   `json:"verdict"`
	Exposure  *Exposure       `json:"exposure,omitempty"` // loosening only
	Rehearsed model.Rehearsal `json:"rehearsed"`
	Review    string          `json:"review,omitempty"` // the group to which every use owes a review afterwards
	Advice    string          `json:"advice,omitempty"` // advised only: what a person does by hand
}

// Enumerate gives every active right with a verdict for actor: first those whose
// role actor holds, sorted by direction (tighten, recover, loosen) and name, then
// those of others. A row keeps its place whatever the verdict: hands remember
// places. The draft of each row is the nearest use: the next tier, the next step,
// the whole bypass.
func Enumerate(b *policy.Bundle, w *model.World, actor string) []Row {
	rows := make([]Row, 0, len(b.RightNames()))
	who := policy.Signer{Name: actor}
	_, who.Machine = b.Root.Machines[actor]
	for _, name := range b.RightNames() {
		if row, ok := rowOf(b, w, Ask{Right: name, Tier: nearest(b, name), Actor: actor, Reason: draftReason}); ok {
			row.Mine = b.Root.HasRole(row.Who, who)
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(x, y Row) int {
		if x.Mine != y.Mine {
			if x.Mine {
				return -1
			}
			return 1
		}
		return rank(x.Verdict.Direction) - rank(y.Verdict.Direction)
	})
	return rows
}

func rank(d model.Direction) int {
	return slices.Index([]model.Direction{model.Tighten, model.Recover, model.Loosen}, d)
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
		Request: request, Verdict: Evaluate(b, w, &request), Rehearsed: w.Rehearsals[ask.Right], Review: right.Review,
	}
	if row.Verdict.Assurance == model.Advised {
		row.Advice = right.Advice
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
