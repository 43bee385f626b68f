package tui

import (
	"context"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// follow is the run that this console follows, and the step that is under way.
type follow struct {
	Following
	listing listing // of the steps
	away    bool    // somebody looks at another step than the current one
	scroll  scroll  // in the text of the selected step
	total   int     // its lines, as last drawn
	room    int

	q        question // of the call under way
	busy     bool
	step     *runbooks.Step // that it is about
	began    time.Time      // of the call, by the world's clock
	progress string         // what is waited for, in the engine's words
	cancel   context.CancelFunc
	why      string // why the run stands where it does
}

// stateWord is a state of a step with its glyph and its meaning.
type stateWord struct {
	glyph, word string
	ink         ink
}

func wordOf(state string) stateWord {
	switch state {
	case run.Done:
		return stateWord{"+", "done", normal}
	case run.Current:
		return stateWord{"*", "current", strong}
	case run.Skipped:
		return stateWord{"-", "skipped", abnormal}
	case run.Failed:
		return stateWord{"X", "failed", critical}
	case run.Unknown:
		return stateWord{"?", "UNKNOWN", unknown}
	case run.NotDone:
		return stateWord{"!", "not done", abnormal}
	case run.NotTaken:
		return stateWord{" ", "not taken", faint}
	default:
		return stateWord{".", "pending", faint}
	}
}

// take puts the run as it stands now in the place of what was known.
func (f *follow) take(s Following) {
	if s.Book == nil {
		return // the call failed before there was anything to say
	}
	moved := s.Current != f.Current || s.Finished != f.Finished
	f.Following = s
	if moved {
		f.away, f.scroll = false, scroll{}
	}
}

// current is the step that comes next; nil when the run is over.
func (f *follow) current() *runbooks.Step {
	if f.Finished {
		return nil
	}
	return f.Book.Step(f.Current)
}

func (f *follow) ids() []string {
	ids := make([]string, len(f.Steps))
	for i := range f.Steps {
		ids[i] = f.Steps[i].ID
	}
	return ids
}

// stand keeps the selection on the current step until somebody looks elsewhere.
func (f *follow) stand() {
	if !f.away && f.Current != "" {
		f.listing.id = f.Current
	}
	f.listing.settle(f.ids())
}

func (f *follow) key(a action) outcome {
	f.stand()
	switch a {
	case pageDown, pageUp:
		if f.total <= f.room {
			return cannot("all of the step is in front of you: there is nothing to scroll")
		}
		f.scroll.move(a, f.total, f.room)
		return ok()
	case enter:
		if !f.Finished && f.listing.id != f.Current {
			f.away, f.scroll = false, scroll{}
			return cannot("the run stands at " + f.Current + ": now it is selected")
		}
		return outcome{handled: true, wish: stepWish{}}
	case skipStep:
		return outcome{handled: true, wish: skipWish{}}
	case abortRun:
		return outcome{handled: true, wish: abortWish{}}
	}
	if f.listing.move(a, f.ids()) {
		f.away, f.scroll = f.listing.id != f.Current, scroll{}
		return ok()
	}
	return outcome{}
}

func (f *follow) draw(sc *scene, width, height int) page {
	f.stand()
	var top []line
	if height >= lowView {
		top = f.top(sc, width)
	}
	rows := make([]record, len(f.Steps))
	for i := range f.Steps {
		s := &f.Steps[i]
		w := wordOf(f.stateOf(s))
		rows[i] = record{cells: []span{{w.glyph + " " + w.word, w.ink}, {s.ID, normal}, {f.briefly(sc, s), normal}}}
	}
	left := max(height-len(top), 2)
	p := f.listing.rows([]column{
		{title: "  state", least: 9, most: 11},
		{title: "step", least: 10, most: 22},
		{title: "", least: 8, grow: true, drop: 1},
	}, f.ids(), rows, width, min(len(rows)+1, max(left/2, 2)))
	p.lines, p.y = append(top, p.lines...), p.y+len(top)
	if height >= lowView {
		p.lines = append(p.lines, nil)
	}
	lines := f.selected(sc, width)
	f.total, f.room = len(lines), max(height-len(p.lines), 0)
	f.scroll.top = min(f.scroll.top, max(f.total-f.room, 0))
	p.lines = append(p.lines, window(lines, f.scroll.top, f.room)...)
	if rest := f.total - f.scroll.top - f.room; rest > 0 && f.room > 1 {
		p.lines[len(p.lines)-1] = say(faint, fmt.Sprintf("   %s below: pgdn", count(rest+1, "line")))
	}
	return p
}

// stateOf is a step's state; what is under way is current, whatever it was.
func (f *follow) stateOf(s *run.StepView) string {
	if f.busy && f.step != nil && f.step.ID == s.ID {
		return run.Current
	}
	return s.State
}

// top is which run this is, who follows it, and what is wrong with it.
func (f *follow) top(sc *scene, width int) []line {
	at := 0
	for i := range f.Steps {
		if f.Steps[i].ID == f.Current {
			at = i + 1
		}
	}
	where := fmt.Sprintf("step %d of %d", at, len(f.Steps))
	if f.Finished {
		where = orDefault(f.End, "over")
	}
	lines := []line{rule(f.Title, width)}
	lines = append(lines, sentence(faint, fmt.Sprintf("run %s, %s, begun by %s %s, %s", f.Run, where, f.By, sc.ago(f.At), f.Signature), width)...)
	for _, w := range f.Warnings {
		lines = append(lines, sentence(abnormal, w, width)...)
	}
	for _, r := range f.Receipts {
		lines = append(lines, sentence(critical, "the record is not on disk; keep this text: "+r, width)...)
	}
	return lines
}

// briefly is what a step left behind, or its title while it has not been taken.
func (f *follow) briefly(sc *scene, s *run.StepView) string {
	text := ""
	switch {
	case s.Choice != "":
		text = "chose " + s.Choice
	case s.Value != "":
		text = s.Value
	case s.Seen != "":
		text = s.Seen
	case s.Total > 0:
		text = fmt.Sprintf("%d of %d hosts", s.Done, s.Total)
	case s.Detail != "" && s.State != run.Pending && s.State != run.Current:
		text = s.Detail
	default:
		return s.Title
	}
	return clock(s.At) + " " + text
}

// selected is the step under the selection: what happens now, what it does, what
// it left behind, and what it says.
func (f *follow) selected(sc *scene, width int) []line {
	step := f.Book.Step(f.listing.id)
	if step == nil {
		return nil
	}
	list := f.now(sc, step)
	list = append(list, saysFacts(step)...)
	for i := range f.Steps {
		if f.Steps[i].ID == step.ID {
			list = append(list, leftBehind(sc, &f.Steps[i])...)
		}
	}
	lines := facts(list, width)
	if prose := proseLines(step.Prose, width); len(prose) > 0 {
		lines = append(append(lines, nil), prose...)
	}
	return lines
}

// now is what goes on with the step, or what enter would do.
func (f *follow) now(sc *scene, step *runbooks.Step) []fact {
	switch {
	case f.busy && f.step == step:
		list := []fact{{"now", orDefault(f.progress, "on its way ..."), strong}}
		if end := f.deadline(); !end.IsZero() {
			list = append(list, fact{"until", fmt.Sprintf("%s, in %s", clock(end), length(end.Sub(sc.now), true)), normal})
		}
		return list
	case f.Finished:
		return f.over()
	case step.ID != f.Current:
		return nil
	}
	var list []fact
	if f.why != "" {
		list = append(list, fact{"stands", f.why, abnormal})
	}
	return append(list, fact{"enter", enterDoes(step), strong})
}

// deadline is when a check or a wait gives up; zero when it does not, and for an
// effect, whose time begins when it was sent: its progress says what is left.
func (f *follow) deadline() time.Time {
	began := f.began
	for i := range f.Steps {
		if s := &f.Steps[i]; s.ID == f.step.ID && s.State == run.Current && !s.At.IsZero() {
			began = s.At // taken up: it was begun earlier
		}
	}
	switch s := f.step; {
	case s.Wait != nil && s.Wait.Until == nil:
		return began.Add(s.Wait.For.Std())
	case s.Wait != nil:
		return began.Add(s.Wait.AtMost.Std())
	case s.Check != nil && s.Timeout > 0:
		return began.Add(s.Timeout.Std())
	}
	return time.Time{}
}

// enterDoes is the next key in words.
func enterDoes(step *runbooks.Step) string {
	switch step.Kind {
	case runbooks.KindDo, runbooks.KindRecover, runbooks.KindPush:
		return "shows what would be done, and asks"
	case runbooks.KindCheck:
		return "looks now"
	case runbooks.KindWait:
		return "begins to wait"
	case runbooks.KindDecide:
		return "shows the answers, 1 to 9"
	default:
		return "asks what you see"
	}
}

// undoOf is how far the undo of a step has come; "": there was none.
func (f *follow) undoOf(step string) string {
	for i := range f.Steps {
		if f.Steps[i].ID == step {
			return f.Steps[i].Undo
		}
	}
	return ""
}

// undoneWord is the state of an undo in words.
func undoneWord(state string) string {
	if state == run.Done {
		return "undone"
	}
	return "undo " + orDefault(state, "not begun")
}

// over is how the run ended, and what stands of it and what was taken back.
func (f *follow) over() []fact {
	i := normal
	if f.End == run.Aborted {
		i = abnormal
	}
	list := []fact{{orDefault(f.End, "over"), orDefault(f.EndWhy, "every step has been taken"), i}}
	if f.why != "" {
		list = append(list, fact{"stands", f.why, abnormal})
	}
	for _, u := range f.Undos {
		if u.What == "" {
			list = append(list, fact{"stays", u.Step + ": " + u.Why, normal})
			continue
		}
		list = append(list, fact{"to undo", u.Step + ": " + u.What + " (enter asks)", abnormal})
	}
	for i := range f.Steps {
		if s := &f.Steps[i]; s.Undo != "" {
			i := abnormal
			if s.Undo == run.Done {
				i = normal
			}
			list = append(list, fact{"taken back", s.ID + ": " + undoneWord(s.Undo), i})
		}
	}
	return list
}

// leftBehind is the evidence of a step: a value with its age, who, when, which
// directive, how many hosts.
func leftBehind(sc *scene, s *run.StepView) []fact {
	if s.At.IsZero() {
		return nil
	}
	w := wordOf(s.State)
	list := []fact{{"state", fmt.Sprintf("%s, by %s at %s, %s", w.word, s.By, clock(s.At), sc.ago(s.At)), w.ink}}
	if s.Value != "" {
		list = append(list, fact{"value", fmt.Sprintf("%s (%ds old when it was read)", s.Value, s.AgeS), normal})
	}
	for _, f := range []fact{{"chosen", s.Choice, normal}, {"seen", s.Seen, normal}, {"detail", s.Detail, normal}, {"undone", s.Undo, normal}} {
		if f.text != "" {
			list = append(list, f)
		}
	}
	if s.Directive != "" {
		text := incident.ShortID(s.Directive)
		if s.Total > 0 {
			text += fmt.Sprintf(", %d of %d hosts report it", s.Done, s.Total)
		}
		list = append(list, fact{"order", text, normal})
	}
	return list
}

// counting reports whether a deadline of this run is on the screen.
func (f *follow) counting() bool {
	return f != nil && f.busy && f.step != nil && !f.deadline().IsZero()
}
