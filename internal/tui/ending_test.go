package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

func overNow() Ending {
	return Ending{
		Title: "risk-down: The risk check is gone", Verdict: "FAILED",
		Why:     []string{"a bypass is alive at the end, on 3 hosts"},
		Columns: []string{"", "this run", "baseline", "last, real time"},
		Rows: []EndingRow{
			{Cells: []string{"detect", "1m0s", "4m0s", "59s"}},
			{Cells: []string{"effect on 95 %", "UNKNOWN", "UNKNOWN", "5s"}, Unknown: true},
			{Cells: []string{"unscored", "120.00 USD", "39486.76 USD", "118.20 USD"}},
			{Cells: []string{"bypass at the end", "on 3 hosts LEFT OPEN", "none", "none"}, Abnormal: true},
		},
		Notes: []string{"! worse than the last run: failed, and passed the last time", "kept: state/rehearsals/20261130T030000Z-00000000.json"},
	}
}

// rehearses puts a person before a rehearsal; over is how it ends.
func rehearses(t *testing.T, snap incident.Snapshot, width, height int) (h *hands, over chan Ending) {
	t.Helper()
	h = sitDown(t, newDesk(snap), width, height)
	over = make(chan Ending, 1)
	h.m.opt.Drill = &Drill{
		Welcome: "you are ines (commander): 45m", Runbook: "payment-risk-down",
		Leaving: func() string { return "12m of 45m have passed: leaving ends it here" }, Over: over,
	}
	return h, over
}

// end lets the scenario end, as the console hears of it.
func (h *hands) end(over chan Ending) {
	h.t.Helper()
	over <- overNow()
	h.send(h.m.awaitEnding()())
}

func TestFramesOfTheEnd(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {40, 10}} {
		t.Run(fmt.Sprintf("%dx%d", size.w, size.h), func(t *testing.T) {
			h, over := rehearses(t, drill(), size.w, size.h)
			h.end(over)
			golden.RequireEqual(t, h.screen()+"\n")
		})
	}
}

// Every frame of the end says REHEARSAL, whatever stood there before; also one whose
// fleet was in break-glass, or was never read.
func TestTheEndSaysRehearsalWhateverWasOpen(t *testing.T) {
	glass := as(drill(), model.BreakGlass)
	for name, c := range map[string]struct {
		snap incident.Snapshot
		keys []string
	}{
		"calm": {drill(), nil}, "break-glass": {glass, nil}, "nothing read": {incident.Snapshot{}, nil},
		"a prompt": {drill(), []string{"1", "enter"}}, "a list": {drill(), []string{":"}}, "a confirmation": {drill(), []string{"s", "enter"}},
		"help": {drill(), []string{"?"}}, "leaving": {drill(), []string{"q"}}, "a filter": {drill(), []string{"6", "/", "x"}},
		"a runbook": {drill(), []string{"4", "enter", "enter", "y", "enter"}},
	} {
		h, over := rehearses(t, c.snap, 80, 24)
		h.press(c.keys...)
		h.end(over)
		h.sees("REHEARSAL is over", "FAILED", "a bypass is alive at the end", "kept: state/rehearsals", "q or enter leaves")
		if h.m.mode != inEnding || h.quit {
			t.Errorf("%s: mode %d, left %v", name, h.m.mode, h.quit)
		}
	}
}

// What was typed for the fleet that is gone closes nothing, and gives nothing.
func TestKeysTypedIntoTheEndLeaveNothing(t *testing.T) {
	h, over := rehearses(t, drill(), 80, 24)
	h.end(over)
	for _, k := range []string{"s", "enter", "q", "y"} { // as fast as they come
		h.real = h.real.Add(50 * time.Millisecond)
		h.send(keyPress(k))
		h.sees("that key was not taken")
	}
	h.press("s").sees("the scenario is over: q or enter leaves")
	h.press("esc", "4", "y")
	if h.quit || h.m.mode != inEnding || h.desk.called("execute") > 0 {
		t.Errorf("left %v, mode %d, %d orders", h.quit, h.m.mode, h.desk.called("execute"))
	}
	for _, k := range []string{"q", "enter"} {
		if h.quit = false; !h.press(k).quit {
			t.Errorf("%s does not leave", k)
		}
	}
}

// In a low window the card is scrolled.
func TestTheEndIsScrolled(t *testing.T) {
	h, over := rehearses(t, drill(), 60, 12)
	h.end(over)
	h.seesNot("kept:")
	h.sees("below: j")
	h.press("pgdown", "pgdown").sees("kept:")
	if h.quit {
		t.Error("scrolling has left")
	}
}

// An answer that comes late is about a world that is gone.
func TestNothingOpensOverTheEnd(t *testing.T) {
	h, over := rehearses(t, drill(), 80, 24)
	h.hold = true
	h.press("s", "enter")
	h.end(over)
	h.deliver()
	h.refresh()
	h.sees("REHEARSAL is over")
	if h.m.dialog != nil || len(h.m.running) > 0 {
		t.Errorf("a dialog stands over the end: %+v, %v", h.m.dialog, h.m.running)
	}
}

// A terminal without anybody before it does not hold up what started the console.
func TestTheLastScreenLeavesByItself(t *testing.T) {
	h, over := rehearses(t, drill(), 80, 24)
	h.end(over)
	if _, cmd := h.m.Update(goneMsg{}); cmd == nil {
		t.Fatal("it stays")
	} else if _, left := cmd().(tea.QuitMsg); !left {
		t.Errorf("it does %T", cmd())
	}
	if cmd := h.m.ends(overNow()); !isTimer(cmd) {
		t.Error("nothing waits for a person who does not come")
	}
}

// Leaving in the middle says what it means, and what of it goes on: nothing.
func TestLeavingARehearsalIsAskedFirst(t *testing.T) {
	h, _ := rehearses(t, drill(), 80, 24)
	h.press("q").sees("leaving the rehearsal", "12m of 45m have passed: leaving ends it here")
	h.seesNot("goes on without this console")
	if h.press("esc").quit {
		t.Error("it was left")
	}
	if !h.press("q", "y").quit {
		t.Error("it was not left")
	}
	if said := h.m.farewell(); said != "" {
		t.Errorf("said %q afterwards", said)
	}
}

// The first frame says whose seat this is, and view 4 what is to be followed in it.
func TestARehearsalSaysWhoseSeatItIs(t *testing.T) {
	d := newDesk(drill())
	runs := newRuns(t, d)
	m := newConsole(t.Context(), d, Options{Runs: runs, Now: func() time.Time { return night }, Real: func() time.Time { return night },
		Drill: &Drill{Welcome: "you are ines (commander): 45m; follow flags-down (4)", Runbook: "flags-down"}})
	h := &hands{t: t, desk: d, runs: runs, m: m, now: night, real: night}
	h.send(tea.WindowSizeMsg{Width: 100, Height: 30})
	h.refresh()
	h.sees("you are ines (commander): 45m; follow flags-down (4)")
	h.run(m.readShelf())
	h.press("4").sees("to be followed: ")
	if !strings.Contains(h.screen(), ">  flags-down") {
		t.Errorf("another runbook is selected:\n%s", h.screen())
	}
}

// Names that count on are said by the first and the last; what does not is named.
func TestNamesThatCountOnAreARun(t *testing.T) {
	for want, names := range map[string]string{
		"edge-01 to edge-03, risk-1, risk-2":      "edge-01 edge-02 edge-03 risk-1 risk-2",
		"a-8, a-9, a-11":                          "a-8 a-9 a-11",
		"a-8 to a-10":                             "a-8 a-9 a-10",
		"a-08, a-9, a-10":                         "a-08 a-9 a-10",
		"one, two, three":                         "one two three",
		"b-99999999999999999999, b-1, c-1 to c-3": "b-99999999999999999999 b-1 c-1 c-2 c-3",
		"a-1 to a-3, a-5 to a-7":                  "a-1 a-2 a-3 a-5 a-6 a-7",
	} {
		if got := joined(runsOf(strings.Fields(names))); got != want {
			t.Errorf("%s: %q, want %q", names, got, want)
		}
	}
	if got := runsOf(nil); got != nil {
		t.Errorf("nobody is %q", got)
	}
}

// Sixty files that get the same are one entry that names all of them.
func TestEqualChangesOfAPlanAreReadOnce(t *testing.T) {
	p := &incident.BreakPlan{Changes: []incident.BreakChange{{Target: "edge-01"}, {Target: "edge-02", Owner: "deploy"}, {Target: "edge-03"}, {Target: "edge-04", Before: "x"}}}
	var said []string
	for _, f := range changeFacts(p) {
		if f.label == "change" {
			said = append(said, f.text)
		}
	}
	if got := strings.Join(said, "; "); got != "2 targets: edge-01, edge-03; edge-02 (owned by deploy); edge-04" {
		t.Errorf("changes %q", got)
	}
}
