package tui

import (
	"fmt"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// rights is the decision-rights matrix as it stands now.
type rights struct {
	width, height int
	listing       listing
}

func (v *rights) Size(width, height int) { v.width, v.height = width, height }
func (v *rights) list() *listing         { return &v.listing }

func (v *rights) Keys() []ownKey {
	return append([]ownKey{{enter, "use this right: asks first"}, {filter, "filter the rights"}}, scrolling()...)
}

// rows are the rights that pass the filter.
func (v *rights) rows(sc *scene) (ids []string, rows []record, of []*decisions.Row) {
	for i := range sc.snap.Matrix {
		r := &sc.snap.Matrix[i]
		why := ""
		if reasons := sc.reasons(&r.Verdict); len(reasons) > 0 {
			why = reasons[0]
		}
		rec := record{cells: []span{
			{r.Name, normal}, {string(r.Verdict.Direction), faint}, {cosign(r), normal},
			verdictSpan(r.Verdict.Outcome), {sc.brief(r.Rehearsed), faint}, {why, faint},
		}}
		if matches(v.listing.filter, rec.text()) {
			ids, rows, of = append(ids, r.Name), append(rows, rec), append(of, r)
		}
	}
	return ids, rows, of
}

func (v *rights) Update(sc *scene, a action) outcome {
	ids, _, of := v.rows(sc)
	if v.listing.move(a, ids) {
		return ok()
	}
	if a != enter {
		return outcome{}
	}
	if len(of) == 0 {
		return cannot("no right is selected")
	}
	r := of[v.listing.at]
	ask := decisions.Ask{Right: r.Name}
	if r.Request.Directive.IsRecovery() {
		ask.Tier = decisions.NextTier
	}
	return outcome{handled: true, wish: askWish{ask}}
}

func (v *rights) Draw(sc *scene) page {
	ids, rows, of := v.rows(sc)
	if len(rows) == 0 {
		return still(sentence(unknown, v.empty(sc), v.width))
	}
	v.listing.settle(ids)
	r := of[v.listing.at]
	title := r.Name
	if note := v.listing.note(len(rows), len(sc.snap.Matrix)); note != "" {
		title += "  " + note
	}
	return paned(func(height int) page {
		return v.listing.rows([]column{
			{title: "right", least: 12, most: 30},
			{title: "effect"},
			{title: "who", least: 17, grow: true},
			{title: "now", least: 9},
			{title: "sim / live", drop: 1},
			{title: "why", least: 20, grow: true, drop: 2},
		}, ids, rows, v.width, height)
	}, title, facts(rightFacts(sc, r), v.width), false, v.width, v.height)
}

func (v *rights) empty(sc *scene) string {
	switch {
	case !sc.read:
		return "rights: not read yet"
	case v.listing.filter != "":
		return fmt.Sprintf("no right matches %q: esc clears the filter", v.listing.filter)
	default:
		return "no right is active: the owners' signatures are missing (ic policy inspect)"
	}
}

// rightFacts are the bounds of a right and its verdict as of now.
func rightFacts(sc *scene, r *decisions.Row) []fact {
	list := []fact{{"", r.Text, normal}, {"decides", cosign(r) + "; signed by the owners of " + string(r.Domain), normal}}
	word := verdictSpan(r.Verdict.Outcome)
	reasons := sc.reasons(&r.Verdict)
	if len(reasons) == 0 {
		list = append(list, fact{"now", word.text, strong})
	}
	for i, text := range reasons {
		f := fact{"", text, normal}
		if i == 0 {
			f = fact{"now", word.text + ": " + text, normal}
		}
		list = append(list, f)
	}
	list = append(list, fact{"bounds", bounds(&r.Request.Directive), normal})
	if r.Exposure != nil {
		list = append(list, fact{"worst case", worst(r.Exposure), normal})
	}
	return append(list, fact{"rehearsed", sc.rehearsed(r.Rehearsed) + "; " + string(r.Verdict.Assurance), normal})
}

// bounds says how far an order reaches.
func bounds(d *model.Directive) string {
	text := scopeName(d.Scope)
	switch d.Kind {
	case model.Shed:
		text += ", " + tierName(d.Tier)
	case model.Off:
		text += ", feature " + d.Feature
	case model.Bypass:
		text += fmt.Sprintf(", %s skipped under %s; a host at most %d times and %s a day",
			d.Control, d.Caps.Under, d.Caps.HostCount, d.Caps.HostTotal)
	case model.End:
		if d.IsRecovery() {
			return fmt.Sprintf("%s, T%d to T%d on %d %% of hosts", text, d.From, d.To, d.Percent)
		}
		if len(d.IDs) == 0 {
			return fmt.Sprintf("%s, no %s is in force", text, d.Ends)
		}
		text += fmt.Sprintf(", ends %s", shortIDs(d.IDs))
	}
	if !d.NotAfter.IsZero() {
		text += fmt.Sprintf("; for %s", model.Duration(d.NotAfter.Sub(d.NotBefore)))
	}
	return text
}
