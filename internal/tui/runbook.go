package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks"
)

// runbookView is the shelf of runbooks, the text of one, and the run that this
// console follows. It looks at what the model has brought and brings nothing.
type runbookView struct {
	width, height int
	listing       listing // of the shelf
	at            runbookPage

	asked   question // the shelf that was asked for last
	shelf   Shelf
	read    bool   // a shelf has arrived
	failed  string // why the last one has not
	opened  string // the runbook that is read
	wanted  string // the runbook that a rehearsal is about; "": none
	refused string // why it could not be begun or taken up
	text    bookText
	follow  *follow // nil: no run is followed here
}

// runbookPage is what of the view is in front.
type runbookPage uint8

const (
	onShelf runbookPage = iota
	inBook
	inRun
)

func (v *runbookView) Size(width, height int) { v.width, v.height = width, height }
func (v *runbookView) list() *listing         { return &v.listing }

// Keys are those of the page in front.
func (v *runbookView) Keys() []ownKey {
	switch v.at {
	case inBook:
		return append([]ownKey{{enter, "start a run of it, or take up the one that goes on"}}, scrolling()...)
	case inRun:
		return append([]ownKey{
			{enter, "take the current step: it is shown and asked first"}, {skipStep, ""}, {abortRun, ""},
			{moveDown, "next step"}, {moveUp, "previous step"}, {moveTop, "first step"}, {moveBottom, "last step"},
		}, ownKey{pageDown, "on in the text of the step"}, ownKey{pageUp, "back in the text of the step"})
	default:
		return append([]ownKey{{enter, "read it; from there it is followed"}, {filter, "filter the runbooks"}}, scrolling()...)
	}
}

// Wishes of the view.
type (
	beginWish struct{ book *Book }
	stepWish  struct{}
	skipWish  struct{}
	abortWish struct{}
)

func (v *runbookView) Update(sc *scene, a action) outcome {
	switch v.at {
	case inBook:
		return v.readKey(a)
	case inRun:
		if a == back {
			v.at = onShelf
			return ok()
		}
		return v.follow.key(a)
	}
	ids, _ := v.rows(sc)
	if v.listing.move(a, ids) {
		return ok()
	}
	if a != enter {
		return outcome{}
	}
	switch {
	case len(ids) == 0:
		return cannot("no runbook is selected")
	case v.book(v.listing.id) == nil:
		return cannot("the policy names " + v.listing.id + ", and no such file lies on the shelf")
	}
	v.open(v.listing.id)
	return ok()
}

// open shows the text of a runbook from its beginning.
func (v *runbookView) open(id string) {
	v.at, v.opened, v.refused, v.text = inBook, id, "", bookText{}
}

func (v *runbookView) readKey(a action) outcome {
	switch {
	case a == back:
		v.at = onShelf
	case v.text.scroll.move(a, v.text.total, v.text.room):
	case a == enter:
		b := v.book(v.opened)
		switch {
		case b == nil || b.Runbook == nil:
			return cannot("what cannot be read cannot be followed: the text above says why")
		case v.follow != nil && v.follow.Runbook == b.ID && !v.follow.Finished:
			v.at = inRun
		default:
			return outcome{handled: true, wish: beginWish{b}}
		}
	default:
		return outcome{}
	}
	return ok()
}

// book finds a runbook of the shelf; nil if it does not lie there.
func (v *runbookView) book(id string) *Book {
	for i := range v.shelf.Books {
		if v.shelf.Books[i].ID == id {
			return &v.shelf.Books[i]
		}
	}
	return nil
}

// going are the runs of a runbook that are not over.
func (v *runbookView) going(id string) []Going {
	return slices.DeleteFunc(slices.Clone(v.shelf.Going), func(g Going) bool { return g.Runbook != id })
}

// rows are what fits first, then the rest of the shelf, then what the policy names
// and nobody has written.
func (v *runbookView) rows(sc *scene) (ids []string, rows []record) {
	var fits, rest []record
	var fitIDs, restIDs []string
	add := func(id string, rec record, now bool) {
		switch {
		case !matches(v.listing.filter, rec.text()):
		case now:
			fits, fitIDs = append(fits, rec), append(fitIDs, id)
		default:
			rest, restIDs = append(rest, rec), append(restIDs, id)
		}
	}
	for i := range v.shelf.Books {
		b := &v.shelf.Books[i]
		fit, now := fitsNow(sc, signalsOf(sc, b))
		rec := record{cells: []span{{b.ID, normal}, fit, signedSpan(b), {v.titleOf(b), normal}}}
		if now {
			rec.mark = abnormal
		}
		add(b.ID, rec, now)
	}
	for _, r := range sc.runbooks {
		if v.book(r.Name) != nil {
			continue
		}
		fit, now := fitsNow(sc, r.Signals)
		rec := record{cells: []span{{r.Name, normal}, fit, {"no file", unknown}, {"named by " + orDefault(joined(slices.Concat(r.Rights, r.Signals)), "the policy"), faint}}}
		if now {
			rec.mark = abnormal
		}
		add(r.Name, rec, now)
	}
	return slices.Concat(fitIDs, restIDs), slices.Concat(fits, rest)
}

// titleOf is the title, or first of all that somebody follows it.
func (v *runbookView) titleOf(b *Book) string {
	if b.Runbook == nil {
		return b.Error
	}
	title := b.Runbook.Title
	if b.ID == v.wanted {
		title = "to be followed: " + title
	}
	for _, g := range v.going(b.ID) {
		title = g.TakenBy + " follows it: " + title
	}
	return title
}

// signalsOf are the signals that a runbook answers: those that it names and those
// that name it.
func signalsOf(sc *scene, b *Book) []string {
	var names []string
	if b.Runbook != nil {
		names = slices.Clone(b.Runbook.Signals)
	}
	for _, r := range sc.runbooks {
		if r.Name == b.ID {
			names = append(names, r.Signals...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fitsNow says whether one of the signals is abnormal now. What cannot be read is
// no "no".
func fitsNow(sc *scene, names []string) (span, bool) {
	var because []string
	known := false
	for i := range sc.snap.Signals {
		s := &sc.snap.Signals[i]
		if !slices.Contains(names, s.Name) {
			continue
		}
		known = known || s.Reading.State == model.ReadingValue
		if s.Abnormal {
			because = append(because, s.Name)
		}
	}
	switch {
	case len(because) > 0:
		return span{"fits: " + joined(because), abnormal}, true
	case len(names) == 0:
		return span{"-", faint}, false
	case !known:
		return span{"unknown", unknown}, false
	default:
		return span{"no", faint}, false
	}
}

// signedSpan is what the signatures beside a runbook are worth, in a word.
func signedSpan(b *Book) span {
	switch {
	case b.Runbook == nil:
		return span{"unreadable", critical}
	case b.Runbook.Manual:
		return span{"check list", faint}
	case b.Signature == nil:
		return span{"not checked", unknown}
	case b.Signature.State == runbooks.Signed:
		return span{"signed", normal}
	default:
		return span{string(b.Signature.State), abnormal}
	}
}

func (v *runbookView) Draw(sc *scene) page {
	switch {
	case !sc.read && v.at == onShelf:
		return still(sentence(unknown, "runbooks: not read yet", v.width))
	case v.at == inBook:
		return v.drawBook(sc)
	case v.at == inRun:
		return v.follow.draw(sc, v.width, v.height)
	}
	top := v.top(sc)
	ids, rows := v.rows(sc)
	if len(rows) == 0 {
		text := "no runbook lies on the shelf: ic runbook new NAME makes the first one"
		if !v.read && v.failed == "" {
			text = "the shelf has not been read yet"
		}
		if v.listing.filter != "" {
			text = "no runbook matches the filter: esc clears it"
		}
		return still(append(top, sentence(normal, text, v.width)...))
	}
	list := func(height int) page {
		return v.listing.rows([]column{
			{title: "runbook", least: 12},
			{title: "fits now", least: 8, most: 24, drop: 1},
			{title: "signed", least: 6},
			{title: "title", least: 8, grow: true, drop: 2},
		}, ids, rows, v.width, height)
	}
	v.listing.settle(ids)
	p := paned(list, v.listing.id, facts(v.about(sc), v.width), false, v.width, max(v.height-len(top), 2))
	p.lines, p.y = append(top, p.lines...), p.y+len(top)
	return p
}

// top says which runbook is called for, and what is followed here.
func (v *runbookView) top(sc *scene) []line {
	var top []line
	fitting := v.fitting(sc)
	switch name := sc.snap.Headline.Runbook; {
	case v.failed != "":
		top = sentence(abnormal, "the shelf cannot be read: "+v.failed, v.width)
	case name != "":
		top = append(sentence(abnormal, sc.snap.Headline.Text, v.width), line{{"   -> ", faint}, {"runbook " + name, strong}})
	case len(fitting) > 0:
		top = append(sentence(abnormal, sc.snap.Headline.Text, v.width), line{{"   -> ", faint}, {"what fits now: " + joined(fitting), strong}})
	default:
		top = sentence(normal, "no runbook is called for: "+sc.snap.Headline.Text, v.width)
	}
	if f := v.follow; f != nil && !f.Finished {
		top = append(top, sentence(strong, fmt.Sprintf("you follow %s, step %s: open it to go on", f.Runbook, f.Current), v.width)...)
	}
	if v.height < lowView {
		return window(top, 0, 1)
	}
	return append(top, nil)
}

// fitting are the runbooks of the shelf that a signal calls for.
func (v *runbookView) fitting(sc *scene) []string {
	var out []string
	for i := range v.shelf.Books {
		if _, now := fitsNow(sc, signalsOf(sc, &v.shelf.Books[i])); now {
			out = append(out, v.shelf.Books[i].ID)
		}
	}
	return out
}

// about is the runbook under the selection in a few words.
func (v *runbookView) about(sc *scene) []fact {
	b := v.book(v.listing.id)
	if b == nil {
		return []fact{{"", "the policy names it; a file " + v.listing.id + ".md would have to lie in " + orDefault(v.shelf.Where, "the folder beside the policy"), normal}}
	}
	if b.Runbook == nil {
		return []fact{{"unreadable", b.Error, critical}}
	}
	rb := b.Runbook
	list := []fact{{"title", rb.Title, strong}}
	if rb.Manual {
		list = append(list, fact{"", "plain Markdown: a check list of " + count(len(rb.Steps), "step") + ", nothing in it is run", normal})
	} else {
		list = append(list, fact{"use when", rb.UseWhen, normal})
	}
	for _, g := range v.going(b.ID) {
		list = append(list, fact{"goes on", fmt.Sprintf("run %s, taken by %s %s", g.Run, g.TakenBy, sc.ago(g.TakenAt)), abnormal})
	}
	return append(list, signedFacts(sc, b)...)
}

// signedFacts say who signed, and whether the day is over until which it counts.
func signedFacts(sc *scene, b *Book) []fact {
	var list []fact
	switch s := b.Signature; {
	case s == nil:
		list = append(list, fact{"signed", "not checked: no policy says who signs", unknown})
	case s.State == runbooks.Signed:
		list = append(list, fact{"signed", "by " + strings.Join(s.By, ", "), normal})
	case !b.Runbook.Manual:
		list = append(list, fact{"signed", string(s.State) + ": " + s.Why, abnormal})
	}
	if rb := b.Runbook; rb.Expired(sc.now) {
		list = append(list, fact{"valid", "it is no longer valid since " + rb.ValidUntil.UTC().Format("2006-01-02"), abnormal})
	}
	return list
}
