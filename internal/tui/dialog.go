package tui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// question is what a call to the desk was asked for. The answer carries it; if
// it is not the question of the moment any more, the answer is dropped before
// it touches anything.
type question struct {
	epoch  uint64
	target string
}

// stage of a dialog.
type stage uint8

const (
	drafting stage = iota // the desk is asked what the order would be
	asking                // the person is asked
	going                 // the order is on its way
	done                  // this came of it
)

// dialog confirms one order. It starts on Cancel.
type dialog struct {
	q       question
	stage   stage
	title   string
	word    string                // tighten, recover, loosen, break-glass ...
	facts   func(*scene) []fact   // what would be done, as of now
	blocked func(*scene) []string // why it cannot be given; nil: it can
	typed   string                // what has to be typed; "": one key
	ask     *decisions.Ask        // an order whose reason can be written
	give    func() tea.Cmd

	// Of a step of a runbook: who is asked what it would be, what is done with the
	// answer, and what a runbook adds to a confirmation.
	draft    func(question) tea.Cmd
	answered func(*run.Question) tea.Cmd
	dress    func()
	drafted  time.Time // real time at which it was asked last

	copy   string // the line to say, or a token
	result []fact

	text   input
	began  time.Time // real time of the first character typed
	shut   time.Time // real time of the last key that was not taken
	scroll scroll
	lines  int  // as last drawn
	room   int  // how many of them fit
	seen   bool // all of them have been in the window
	cut    bool // not even the answer fits the window
}

// Limits of a dialog.
const (
	// grace is how long the keyboard has to be quiet before a dialog takes a key:
	// nobody reads and decides faster, and typing ahead or a key held down never
	// pauses that long.
	grace = 425 * time.Millisecond
	// fastest is the shortest time per character that counts as typing. A paste in
	// a terminal without bracketed paste arrives in a few milliseconds as a whole.
	fastest = 10 * time.Millisecond
	// redraft is how long a dialog that cannot be given waits before the step of a
	// runbook is asked again what it would be: it asks hosts and signals.
	redraft = 2 * time.Second
	// maxTyped bounds what can be typed into a confirmation.
	maxTyped = 120
)

// mode of the console while the dialog is open.
func (d *dialog) mode(sc *scene) mode {
	switch {
	case d.stage == drafting, d.stage == going:
		return inWait
	case d.stage == done:
		return inResult
	case d.typed != "" && len(d.blocks(sc)) == 0:
		return inTyped
	default:
		return inConfirm
	}
}

func (d *dialog) blocks(sc *scene) []string {
	if d.blocked == nil {
		return nil
	}
	return d.blocked(sc)
}

// open puts the question to the person.
func (d *dialog) open(real time.Time) {
	d.stage, d.shut, d.text, d.scroll, d.seen = asking, real, input{most: maxTyped}, scroll{}, false
}

// quiet reports whether the dialog takes keys; a key too early starts the wait
// again.
func (d *dialog) quiet(real time.Time) bool {
	if d.stage != asking || real.Sub(d.shut) >= grace {
		return true
	}
	d.shut = real
	return false
}

// insert takes a typed character.
func (d *dialog) insert(s string, real time.Time) {
	if d.text.text == "" {
		d.began = real
	}
	d.text.insert(s)
}

// tooFast reports whether the text came faster than fingers are.
func (d *dialog) tooFast(real time.Time) bool {
	return real.Sub(d.began) < time.Duration(len(d.text.text))*fastest
}

// matched reports whether the text is there.
func (d *dialog) matched() bool { return d.typed != "" && d.text.text == d.typed }

// draw is the whole dialog: what would be done above, the answer below.
func (d *dialog) draw(sc *scene, real time.Time, width, height int) page {
	head := d.head(width)
	var lines []line
	switch {
	case d.stage == drafting:
		lines = sentence(faint, "asking what this would be ...", width)
	case d.stage == done:
		lines = facts(d.result, width)
	default:
		lines = facts(d.facts(sc), width)
	}
	answer := d.answer(sc, real, width)
	room := max(height-len(answer)-2, 1)
	d.scroll.top = min(max(d.scroll.top, 0), max(len(lines)-room, 0))
	hidden := max(len(lines)-d.scroll.top-room, 0)
	d.lines, d.room, d.seen = len(lines), room, d.seen || hidden == 0
	body := append([]line{head}, window(lines, d.scroll.top, room)...)
	note := line(nil)
	if hidden > 0 {
		note = say(abnormal, fmt.Sprintf(" %s %s below: down", abnormal.glyph(), count(hidden, "line")))
	}
	body = append(append(body, note), answer...)
	d.cut = len(body) > height
	p := page{lines: body, y: len(body) - 1, x: 1}
	if d.mode(sc) == inTyped {
		p.x = cells(d.entry(width))
	}
	return p
}

// head names the order, its direction first: that must never be cut off.
func (d *dialog) head(width int) line {
	mark := strong
	if d.word == "LOOSEN" || d.word == "BREAK-GLASS" {
		mark = abnormal
	}
	if d.word == "" {
		return rule(d.title, width)
	}
	l := rule(d.title, width-cells(d.word)-4)
	return append(line{{"── ", faint}, {d.word, mark}, {" ", faint}}, l...)
}

// entry is the line under the fingers.
func (d *dialog) entry(width int) string {
	label := " " + selected.glyph() + " "
	return label + d.text.tail(width-cells(label)-1)
}

// toType says what has to be typed, all of it in any width.
func (d *dialog) toType(note string, width int) []line {
	const label = "   type  "
	if cells(label)+cells(d.typed) <= width {
		return []line{{{label, normal}, {d.typed, strong}, {"  " + note, faint}}}
	}
	lines := []line{say(normal, label)}
	for _, part := range wrap(d.typed, width-margin) {
		lines = append(lines, line{{spaces(margin), normal}, {part, strong}})
	}
	return lines
}

// waiting is what a dialog says while it takes no keys.
const waiting = ", after a moment of quiet"

// answer are the lines that say how to answer.
func (d *dialog) answer(sc *scene, real time.Time, width int) []line {
	cancel := line{{" " + selected.glyph() + " ", strong}, {"[ Cancel ]", strong}}
	blocks := d.blocks(sc)
	switch {
	case d.stage == drafting:
		return []line{append(cancel, span{"  esc", faint})}
	case d.stage == going:
		return []line{say(strong, "   on its way ...  esc leaves it, it goes on")}
	case d.stage == done:
		return []line{{{" " + selected.glyph() + " ", strong}, {"[ Close ]", strong}, {"  enter", faint}}}
	case len(blocks) > 0:
		return append(sentence(abnormal, "cannot be given now: "+blocks[0], width), append(cancel, span{"  enter", faint}))
	case d.typed == "" && real.Sub(d.shut) < grace:
		return []line{append(cancel, span{"  enter", faint}, span{"      y  gives the order" + waiting, faint})}
	case real.Sub(d.shut) < grace:
		return append(d.toType("to give the order"+waiting, width), say(normal, d.entry(width)))
	case d.matched():
		return []line{line{{"   enter gives the order, esc cancels", strong}}, say(normal, d.entry(width))}
	case d.typed != "":
		return append(d.toType("to give the order; esc cancels", width), say(normal, d.entry(width)))
	default:
		return []line{append(cancel, span{"  enter", faint}, span{"      y", strong}, span{"  gives the order", normal})}
	}
}
