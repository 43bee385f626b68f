package tui

import (
	"fmt"
	"strconv"
)

// logView is the log for people, newest last. It follows the end until somebody
// scrolls away from it.
type logView struct {
	width, height int
	listing       listing
	away          bool // scrolled away from the end
	detail        bool
}

func (v *logView) Size(width, height int) { v.width, v.height = width, height }
func (v *logView) list() *listing         { return &v.listing }

func (v *logView) Keys() []ownKey {
	return append([]ownKey{{enter, "the whole line, and back"}, {filter, "filter the log"}}, scrolling()...)
}

// rows number their lines from the end of the log, so that a selection stays on
// its line when the oldest are cut off.
func (v *logView) rows(sc *scene) (ids []string, rows []record, at []int) {
	log := sc.snap.Log
	for i := range log {
		l := &log[i]
		rec := record{cells: []span{{l.At.UTC().Format("15:04:05"), faint}, {l.Actor, normal}, {l.Kind, normal}, {l.Text, normal}}}
		if matches(v.listing.filter, rec.text()) {
			ids = append(ids, strconv.FormatInt(l.At.UnixNano(), 10)+l.Kind+l.Text)
			rows, at = append(rows, rec), append(at, i)
		}
	}
	return ids, rows, at
}

func (v *logView) Update(sc *scene, a action) outcome {
	ids, _, _ := v.rows(sc)
	v.follow(ids)
	if v.listing.move(a, ids) {
		v.away = v.listing.at < len(ids)-1
		return ok()
	}
	switch a {
	case enter:
		if len(ids) == 0 {
			return cannot("no line is selected")
		}
		v.detail = !v.detail
		return ok()
	case back:
		if v.detail || v.away {
			v.detail, v.away = false, false
			return ok()
		}
	}
	return outcome{}
}

// follow keeps the selection on the newest line.
func (v *logView) follow(ids []string) {
	if !v.away {
		v.listing.id, v.listing.at = "", len(ids)-1
	}
}

func (v *logView) Draw(sc *scene) page {
	ids, rows, at := v.rows(sc)
	if len(rows) == 0 {
		return still(sentence(normal, v.empty(sc), v.width))
	}
	v.follow(ids)
	v.listing.settle(ids)
	top := v.top(sc, len(rows))
	list := func(height int) page {
		return v.listing.rows([]column{
			{title: "time UTC"},
			{title: "who", most: 18, drop: 1},
			{title: "what", most: 14},
			{title: "", least: 20, grow: true},
		}, ids, rows, v.width, height)
	}
	room := max(v.height-len(top), 2)
	var p page
	if v.detail {
		l := &sc.snap.Log[at[v.listing.at]]
		p = paned(list, l.Kind, facts([]fact{
			{"at", l.At.UTC().Format("2006-01-02 15:04:05.000Z") + ", " + sc.ago(l.At), normal},
			{"who", l.Actor, normal}, {"", l.Text, normal},
		}, v.width), true, v.width, room)
	} else {
		p = list(room)
	}
	p.lines, p.y = append(top, p.lines...), p.y+len(top)
	return p
}

// top names the log and its head in full, for a person who reads it to somebody.
func (v *logView) top(sc *scene, n int) []line {
	h := sc.snap.Head
	text := fmt.Sprintf("%s, %d entries, head %.16s", h.Origin, h.Size, h.Root)
	if note := v.listing.note(n, len(sc.snap.Log)); note != "" {
		text = note
	}
	if v.away {
		text += "; scrolled: G follows the end again"
	}
	if v.height < lowView {
		return nil
	}
	return []line{say(faint, "   "+text), nil}
}

func (v *logView) empty(sc *scene) string {
	switch {
	case !sc.read:
		return "log: not read yet"
	case v.listing.filter != "":
		return fmt.Sprintf("no line matches %q: esc clears the filter", v.listing.filter)
	default:
		return "nothing has been written yet: the first order or i (incident) begins the log"
	}
}
