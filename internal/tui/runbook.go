package tui

import "strings"

// runbookView shows which runbooks the policy names and where. It runs none:
// they arrive with ic runbook.
type runbookView struct {
	width, height int
	listing       listing
}

func (v *runbookView) Size(width, height int) { v.width, v.height = width, height }
func (v *runbookView) list() *listing         { return &v.listing }

func (v *runbookView) Keys() []ownKey {
	return append([]ownKey{{filter, "filter the runbooks"}}, scrolling()...)
}

func (v *runbookView) rows(sc *scene) (ids []string, rows []record) {
	for _, r := range sc.runbooks {
		rec := record{cells: []span{{r.Name, normal}, {signalsNow(sc, r.Signals), normal}, {orDash(joined(r.Rights)), normal}}}
		if sc.snap.Headline.Runbook == r.Name {
			rec.mark = abnormal
			rec.cells[0].ink = abnormal
		}
		if matches(v.listing.filter, rec.text()) {
			ids, rows = append(ids, r.Name), append(rows, rec)
		}
	}
	return ids, rows
}

func (v *runbookView) Update(sc *scene, a action) outcome {
	ids, _ := v.rows(sc)
	if v.listing.move(a, ids) {
		return ok()
	}
	return outcome{}
}

func (v *runbookView) Draw(sc *scene) page {
	var top []line
	switch name := sc.snap.Headline.Runbook; {
	case !sc.read:
		top = sentence(unknown, "runbooks: not read yet", v.width)
	case name != "":
		top = append(sentence(abnormal, sc.snap.Headline.Text, v.width), line{{"   -> ", faint}, {"runbook " + name, strong}})
	default:
		top = sentence(normal, "no runbook is called for: "+sc.snap.Headline.Text, v.width)
	}
	if v.height >= lowView {
		top = append(top, sentence(faint, "The policy names the runbooks below. Following one step by step is ic runbook's part; here are the signals and rights that call for it.", v.width)...)
		top = append(top, nil)
	}
	ids, rows := v.rows(sc)
	if len(rows) == 0 {
		text := "the policy names no runbook: a signal or a right may (runbook: NAME)"
		if v.listing.filter != "" {
			text = "no runbook matches the filter: esc clears it"
		}
		return still(append(top, sentence(normal, text, v.width)...))
	}
	p := v.listing.rows([]column{
		{title: "runbook", least: 12},
		{title: "for signals", least: 16, grow: true},
		{title: "for rights", least: 12},
	}, ids, rows, v.width, max(v.height-len(top), 2))
	p.lines, p.y = append(top, p.lines...), p.y+len(top)
	return p
}

// signalsNow names signals with how they stand.
func signalsNow(sc *scene, names []string) string {
	var out []string
	for _, name := range names {
		text := name
		for i := range sc.snap.Signals {
			if s := &sc.snap.Signals[i]; s.Name == name && s.Abnormal {
				text += " (abnormal: " + s.Text + ")"
			}
		}
		out = append(out, text)
	}
	return orDash(strings.Join(out, ", "))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
