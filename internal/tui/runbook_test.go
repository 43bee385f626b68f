package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/runbooks/run"
)

// A person follows a runbook from its first step to its last with the keys of the
// console; what the engine is told is what was typed.
func TestARunbookIsFollowedToItsEnd(t *testing.T) {
	h := follows(t, trouble(), 100, 30, "")
	h.sees("run R7K2, finished", "every step has been taken")
	var said []string
	for _, a := range h.runs.answers {
		said = append(said, fmt.Sprintf("%s|%s|%t|%t", a.Choose, a.Seen, a.Confirm, a.Asked))
	}
	want := "||false|true ; |p95 2.1 s at 03:12|false|true ; small||false|true ; ||true|true ; ||false|true ; ||true|true"
	if got := strings.Join(said, " ; "); got != want {
		t.Errorf("the engine was told\n%s, want\n%s", got, want)
	}
}

// What fits now comes first, with its signals; what nobody signed, what was changed,
// what cannot be read and what is missing each have a word of their own.
func TestTheShelfSaysWhatFitsAndWhatItIsWorth(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 110, 30)
	h.press("4")
	lines := strings.Split(h.screen(), "\n")
	var order []string
	for _, l := range lines {
		for _, word := range []string{"signed  ", "check list", "unreadable", "changed", "no file"} {
			if strings.Contains(l, word) && !strings.Contains(l, "fits now") {
				order = append(order, strings.TrimSpace(word))
				break
			}
		}
	}
	if got := strings.Join(order, ", "); !strings.HasPrefix(got, "signed, check list, unreadable, changed, no file") {
		t.Errorf("the shelf is %s:\n%s", got, h.screen())
	}
	h.sees("fits: payment-risk-up", "use when payment-risk does not answer")
	h.press("j", "j")
	h.sees("unknown key ownr; did you mean owner?")
	h.press("G", "enter")
	h.sees("the policy names catalog-slow, and no such file lies on the shelf")
	blind := trouble()
	blind.Signals[4].Abnormal, blind.Signals[4].Reading.State = false, model.ReadingNoData
	sitDown(t, newDesk(blind), 110, 30).press("4").sees("payment-risk-down unknown")
}

// All of the text can be read line by line, fences too; nothing of it is a key.
func TestTheTextIsReadLineByLine(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 60, 14)
	h.press(openRisk()...)
	seen := map[string]bool{}
	for range 80 {
		for _, l := range strings.Split(h.screen(), "\n") {
			seen[squash(l)] = true
		}
		h.press("j")
	}
	all := strings.Join(sortedKeys(seen), "\n")
	for _, want := range []string{"Look at the graph, not at the chat.", "│ kubectl -n payments get pods | grep risk", "6. Carry it past the flag service", "undone by: take back"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is never on the screen:\n%s", want, all)
		}
	}
	if n := h.desk.effects(); n != 0 {
		t.Errorf("reading had %d effects", n)
	}
}

// Text of a file moves no terminal, and a long line of a fence is not cut off.
func TestProseIsMadeSafeAndFencesAreKept(t *testing.T) {
	var b strings.Builder
	for _, l := range proseLines("one\x1b[2Jtwo\r\n\n~~~sh\n\tkubectl "+strings.Repeat("x", 60)+"END\n~~~\nafter", 40) {
		b.WriteString(l.plain() + "\n")
	}
	got := b.String()
	if strings.ContainsAny(got, "\x1b\r\t") || !strings.Contains(got, "END") || !strings.Contains(got, "\n   after\n") || !strings.Contains(got, "│     kubectl") {
		t.Errorf("got %q", got)
	}
}

// Outside a rehearsal only a signed runbook or a check list is begun; in one the
// other ones too, and the dialog says so.
func TestAnUnsignedRunbookIsForRehearsals(t *testing.T) {
	open := func(snap incident.Snapshot, moves ...string) *hands {
		h := sitDown(t, newDesk(snap), 100, 30)
		return h.press(append([]string{"4", "g"}, moves...)...).press("enter", "enter")
	}
	live := open(trouble(), "j", "j", "j")
	live.sees("start a run of flags-down", "cannot be given now: it is not signed, and outside a rehearsal only a signed one is followed")
	live.press("y")
	if live.m.book.follow != nil || live.desk.effects() != 0 {
		t.Error("a changed runbook was begun in a live fleet")
	}
	rehearsal := open(drill(), "j", "j", "j")
	rehearsal.sees("it is followed here although it is not signed, and only here")
	rehearsal.press("y").sees("* current see")
	open(trouble(), "j").press("y").sees("run R7K2", "* current") // a check list
}

// The confirmation of a step is that of the same order by hand, with the runbook and
// the step in front.
func TestAStepIsConfirmedAsByHand(t *testing.T) {
	h := follows(t, trouble(), 120, 40, "open")
	before := h.desk.effects()
	h.press("enter")
	h.sees("LOOSEN", "payment-risk-down, step open", "worst case 4464.00 USD", "type skip payment-risk")
	h.press("enter")
	if h.desk.effects() != before {
		t.Fatal("Enter gave the order of a step")
	}
	h.press("enter")
	h.send(tea.PasteMsg{Content: "skip payment-risk"})
	h.press("enter")
	if h.desk.effects() != before {
		t.Fatal("a paste gave the order of a step")
	}
	h.press("enter").typeText("skip payment-risk").press("enter")
	if h.desk.effects() != before+1 {
		t.Errorf("%d effects", h.desk.effects()-before)
	}
	h.press("k")
	h.sees("+ done open", "58 of 60 hosts report it", "order BYPAS1")
	push := follows(t, trouble(), 120, 60, "carry")
	push.press("enter")
	push.sees("BREAK-GLASS", "push by git", "payment-risk-down, step carry", "type push git", "restarts")
}

// A step whose verdict makes it wait cannot be confirmed; the step is asked again,
// not more often than every two seconds, and opens as a new question.
func TestAStepThatHasToWaitIsAskedAgain(t *testing.T) {
	h := follows(t, trouble(), 120, 40, "open")
	wait := true
	h.runs.preview = func() incident.Preview {
		p := previewOf(decisions.Ask{Right: "risk-bypass-small-orders", Reason: "payment-risk is gone"})
		if wait {
			p.Verdict.Outcome, p.Verdict.Reasons = model.Denied, []model.Reason{{Code: model.CodeOverLive}}
		}
		return p
	}
	h.press("enter")
	h.sees("cannot be given now")
	asked := h.desk.called("ask")
	h.refresh()
	h.refresh()
	if n := h.desk.called("ask"); n != asked {
		t.Errorf("asked %d times within two seconds", n-asked)
	}
	wait = false
	h.real = h.real.Add(3 * time.Second)
	h.refresh()
	if n := h.desk.called("ask"); n != asked+1 {
		t.Errorf("asked %d times", n-asked)
	}
	h.seesNot("cannot be given now")
	h.sees("after a moment of quiet")
}

// "done" is no evidence: the question stands again, with what was typed.
func TestWhatSaysNothingIsAskedAgain(t *testing.T) {
	h := follows(t, trouble(), 100, 30, "graph")
	h.press("enter", "enter")
	h.sees("this cannot be empty")
	h.typeText("done").press("enter")
	h.sees("that says nothing", "what did you see?", "> done")
	h.press("ctrl+u").typeText("p95 is 2.1 s").press("enter")
	h.sees("+ done graph 03:14:07Z p95 is 2.1 s", "* current choose")
}

// A decision takes one digit, of an answer that there is, after a moment of quiet.
func TestADecisionIsOneDigit(t *testing.T) {
	h := follows(t, trouble(), 100, 30, "choose")
	h.press("enter")
	h.sees("1 small: orders under 50 dollars -> open", "2 none: nothing is opened -> end")
	h.send(keyPress("1")) // typed ahead: no time has passed
	h.sees("too early")
	h.press("7").sees("there are answers 1 to 2")
	h.press("y").sees("the number of an answer takes it")
	if h.m.at != runbookAt || len(h.runs.answers) != 2 {
		t.Errorf("view %d, %d answers", h.m.at+1, len(h.runs.answers))
	}
	h.press("2")
	h.sees("finished")
}

// While a step waits, the rest of the console works; its deadline and what is waited
// for are on the screen, and it is never taken twice.
func TestAWaitCountsDownAndHoldsUpNothing(t *testing.T) {
	h := follows(t, calm(), 100, 30, "back")
	f := h.m.book.follow
	f.busy, f.step, f.began, f.q = true, f.current(), h.now, h.m.question("back") // under way
	h.send(answer{f.q, stepTold{"payment-risk-up is 0, abnormal; 14m48s left"}})
	h.sees("now payment-risk-up is 0, abnormal; 14m48s left", "until 03:29:07Z, in 15m00s")
	h.now = h.now.Add(10 * time.Second)
	h.send(redrawMsg{})
	h.sees("in 14m50s")
	before := len(h.runs.answers)
	h.press("enter").sees("the step is under way")
	h.send(answer{question{1, "back"}, stepTold{"of another question"}})
	h.seesNot("of another question")
	h.press("1", "s", "enter").sees("shed all services to tier 1")
	if len(h.runs.answers) != before {
		t.Error("the step was taken twice")
	}
}

// Skipping asks why, ends a wait, and is refused while an order is on its way.
func TestSkippingAsksWhy(t *testing.T) {
	h := follows(t, trouble(), 100, 30, "back")
	f := h.m.book.follow
	stopped := false
	f.busy, f.step, f.cancel, f.q = true, f.current(), func() { stopped = true }, h.m.question("back")
	late := f.q
	h.press("x")
	h.sees("why is it skipped?")
	h.press("enter").sees("this cannot be empty")
	h.typeText("the vendor says an hour").press("enter")
	if !stopped {
		t.Error("the wait goes on")
	}
	h.sees("- skipped back 03:14:07Z the vendor says an hour", "* current carry")
	h.send(answer{late, stepTaken{title: "back", err: fmt.Errorf("context canceled")}})
	h.seesNot("context canceled")

	h = follows(t, trouble(), 100, 30, "back")
	f = h.m.book.follow
	f.busy, f.step, f.q = true, f.current(), h.m.question("back")
	h.press("x").typeText("too slow")
	h.runs.at(h.runs.place() + 1)
	h.send(answer{f.q, stepTaken{title: "back", f: h.runs.f}}) // it has held meanwhile
	h.press("enter").sees("the run has gone on meanwhile", "* current carry")

	h = follows(t, trouble(), 100, 30, "open")
	f = h.m.book.follow
	f.busy, f.step = true, f.current() // the order is being given
	h.press("x").sees("an order of the step is on its way")
	h.press("X").sees("an order of the step is on its way")
	f.progress = "12 of 60 hosts report it"
	h.press("x").sees("why is it skipped?")
}

// An aborted run lists what can be undone and why the rest stays; an undo is
// confirmed like one by hand.
func TestAbortListsTheUndos(t *testing.T) {
	h := follows(t, trouble(), 110, 34, "carry")
	h.takes()
	h = follows(t, trouble(), 110, 34, "carry")
	h.press("X").typeText("wrong runbook, flags are fine").press("enter")
	h.sees("aborted wrong runbook, flags are fine", "to undo carry: remove the override of git", "stays open: orders that went through")
	h.press("enter").sees("undo what the run did", "carry")
	h.press("down", "enter").sees("not now") // what has no undo is not chosen
	h.press("up", "enter")
	h.sees("BREAK-GLASS", "type undo git", "payment-risk-down, step carry, undo")
	h.typeText("undo git").press("enter")
	h.seesNot("to undo carry", "the run of payment-risk-down is")
	h.sees("taken back carry: undone")
	if h.desk.called("undo") != 1 {
		t.Errorf("%d undos", h.desk.called("undo"))
	}
}

// A step that did not hold says why where it stands; without an answer to a check a
// person says what was seen.
func TestAStepThatDidNotHoldSaysWhy(t *testing.T) {
	h := follows(t, trouble(), 110, 34, "see")
	h.runs.err = fmt.Errorf("%w: step see: no-data: prometheus does not answer", run.ErrStopped)
	h.press("enter")
	h.sees("X failed see", "stands", "prometheus does not answer")
	h.runs.err = nil
	h.press("enter").sees("there is no answer", "1 again: look again", "2 holds")
	h.press("3").sees("the run stands at see")
	h.press("enter", "2").typeText("the graph shows 0").press("enter")
	if a := h.runs.answers[len(h.runs.answers)-1]; a.Choose != run.ChooseHolds || a.Seen != "the graph shows 0" {
		t.Errorf("told %+v", a)
	}
	h.sees("+ done see")
}

// Every state has a glyph and a word of its own.
func TestStatesOfStepsDifferWithoutColour(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{run.Pending, run.Current, run.Done, run.Skipped, run.Failed, run.Unknown, run.NotDone, run.NotTaken} {
		w := wordOf(s)
		if other, taken := seen[w.glyph]; taken {
			t.Errorf("%s and %s have the glyph %q", s, other, w.glyph)
		}
		seen[w.glyph] = s
		if !strings.EqualFold(w.word, strings.ReplaceAll(s, "-", " ")) {
			t.Errorf("%s is called %s", s, w.word)
		}
	}
}

// A run that goes on is taken up, not begun again; a file that has changed since is
// said before its kept text is followed.
func TestARunThatGoesOnIsTakenUp(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 110, 34)
	h.runs.shelf.Going = []Going{{Run: "R-CHANGED", Runbook: "payment-risk-down", TakenBy: "bob", TakenAt: night.Add(-5 * time.Minute)}}
	h.press("4").sees("bob follows it", "run R-CHANGED, taken by bob 5m ago")
	h.press("g", "enter").sees("enter: take up the run that goes on")
	h.press("enter").sees("take up run R-CHANGED", "by bob, since 5m ago", "repeats nothing")
	h.press("y")
	h.sees("the runbook has changed since the run began", "steps: open changed", "the text that the run began with")
	h.press("y").sees("run R7K2", "* current see")
	h.press("q").sees("runbook run R7K2 of payment-risk-down stands at see: ic runbook resume takes it up")
}

// Enter on another step than the current one takes nothing.
func TestEnterTakesOnlyTheCurrentStep(t *testing.T) {
	h := follows(t, trouble(), 100, 30, "choose")
	before := len(h.runs.answers)
	h.press("k", "k", "enter").sees("the run stands at choose")
	if h.m.mode != inNormal || len(h.runs.answers) != before {
		t.Error("a step that is over was taken")
	}
	h.press("enter").sees("Which orders may go through unscored?")
}

// The shelf is asked for when somebody comes to it, and a late answer is dropped.
func TestALateShelfIsDropped(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 30)
	h.send(answer{question{1, "shelf"}, shelved{shelf: Shelf{Books: []Book{{ID: "stale-book", Error: "x"}}}}})
	h.press("4").seesNot("stale-book")
	h.runs.shelf.Books = append(h.runs.shelf.Books, bookOf(t, "new-one", checkText, "unsigned"))
	h.press("1", "4").sees("new-one")
	h.press(":").typeText("new-one").press("enter")
	h.sees("Look at the catalog", "enter: start a run")
}

// Without a shelf the console says so and the rest of it works.
func TestWithoutAShelf(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 30)
	h.m.opt.Runs = nil
	h.m.book.shelf = Shelf{}
	h.press("4", "g", "enter").sees("no such file lies on the shelf")
}

// A paragraph is wrapped as one, whatever the length of the lines of its file; a
// heading, an item and a row of a table begin anew, and bold marks are not shown.
func TestAParagraphIsWrappedAsOne(t *testing.T) {
	var got []string
	for _, l := range proseLines("## When\n**What you see.** One line\nand its other half.\n\n- first item\n  goes on\n- second\n1. third\n| a | b |\n    code", 60) {
		var b strings.Builder
		for _, s := range l {
			b.WriteString(s.text)
		}
		got = append(got, strings.TrimSpace(b.String()))
	}
	want := []string{"## When", "What you see. One line and its other half.", "", "- first item goes on", "- second", "1. third", "| a | b |", "code"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
