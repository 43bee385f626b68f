package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// scenes are the screens that the golden frames hold, by the keys that lead to
// them.
func scenes() map[string][]string {
	typed := strings.Split("1|enter|r|i|s|k|enter", "|")
	book := openRisk()
	begun := append(slices.Clone(book), "enter", "y")
	graph := append(slices.Clone(begun), "enter")
	noted := append(append(slices.Clone(graph), "enter"), strings.Split("p95 2.1 s", "")...)
	chosen := append(slices.Clone(noted), "enter", "enter")
	opens := append(slices.Clone(chosen), "1", "enter")
	return map[string][]string{
		"4-book": book, "4-start": append(slices.Clone(book), "enter"), "4-run": begun, "4-evidence": append(slices.Clone(graph), "k"),
		"4-note": noted, "4-decide": chosen, "4-do": opens, "4-skip": append(slices.Clone(begun), "x"),
		"1-overview": {"1"}, "2-rights": {"2", "G"}, "3-glass": {"3"}, "4-runbook": {"4"}, "5-fleet": {"5"}, "6-log": {"6"},
		"5-host": {"5", "enter"}, "3-plan": {"3", "j", "enter"}, "3-push": {"3", "j", "enter", "enter"},
		"confirm-bypass": typed, "confirm-shed": {"s", "enter"}, "choose-shed": {"s"},
		"incident": {"i"}, "help": {"?"}, "palette": {":"}, "leave": {"q"}, "6-filter": {"6", "/", "s", "h", "e", "d"},
	}
}

// A frame is what a person sees: any change of it is a decision, not an accident.
func TestFrames(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {40, 10}} {
		for name, keys := range scenes() {
			t.Run(fmt.Sprintf("%dx%d/%s", size.w, size.h, name), func(t *testing.T) {
				h := sitDown(t, newDesk(trouble()), size.w, size.h)
				h.press(keys...)
				golden.RequireEqual(t, h.screen()+"\n")
			})
		}
	}
}

// The four modes differ without colour, and so do calm, nothing read, and an
// override that is being pushed.
func TestFramesOfModes(t *testing.T) {
	states := map[string]incident.Snapshot{
		"calm": calm(), "rehearsal": drill(), "break-glass": as(trouble(), model.BreakGlass),
		"read-only": as(calm(), model.ReadOnly), "nothing-read": {},
	}
	for name, snap := range states {
		t.Run(name, func(t *testing.T) {
			h := sitDown(t, newDesk(snap), 80, 24)
			golden.RequireEqual(t, h.screen()+"\n")
		})
	}
}

// The same frame in colours, once, so that the theme cannot drift unseen.
func TestFrameInColour(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 80, 24)
	golden.RequireEqual(t, h.frame()+"\n")
}

// Nothing is said by colour alone: without it every word is still there, and no
// escape sequence names a colour.
func TestNoColourLosesNoWord(t *testing.T) {
	for name, keys := range scenes() {
		coloured := sitDown(t, newDesk(trouble()), 80, 24)
		coloured.press(keys...)
		grey := sitDown(t, newDesk(trouble()), 80, 24)
		grey.m.ink = newTheme(true)
		grey.press(keys...)
		if coloured.screen() != grey.screen() {
			t.Errorf("%s: the text differs without colour", name)
		}
		for _, code := range []string{"[31m", "[33m", "[35m", "[36m", ";31m", ";33m", ";35m", ";36m", "38;5"} {
			if strings.Contains(grey.frame(), code) {
				t.Errorf("%s: a colour (%q) without colour", name, code)
			}
		}
	}
}

// Every state that needs a person has its glyph and its word on the overview.
func TestMeaningsHaveGlyphAndWord(t *testing.T) {
	s := trouble()
	s.Skew.Alarm = true
	h := sitDown(t, newDesk(s), 120, 40)
	for _, want := range []string{
		"! payment-risk-up", "abnormal", "~ error-rate", "stale 47s", "? catalog-p95", "unknown: no-data", "X fleet", "critical",
	} {
		h.sees(want)
	}
}

// What is not known is never shown as the last good value or as zero.
func TestUnknownReadingShowsNoNumber(t *testing.T) {
	s := trouble()
	s.Signals[0].Reading.State, s.Signals[0].Text = model.ReadingError, "0.07 s"
	h := sitDown(t, newDesk(s), 120, 40)
	h.seesNot("0.07 s")
	h.sees("? catalog-p95", "unknown: error")
}

// In every frame: fleet, mode, commander and lease, UTC time, policy, log head.
func TestEveryFrameHasTheHeader(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {40, 10}} {
		for name, keys := range scenes() {
			h := sitDown(t, newDesk(trouble()), size.w, size.h)
			h.press(keys...)
			for _, want := range []string{"shop-demo", "LIVE", "alice (you) commands, 2h48m left", "03:14 UTC", "policy v7, 51d left", "log 128 9f3ab2c1"} {
				if !strings.Contains(h.screen(), want) {
					t.Errorf("%s at %dx%d: no %q in\n%s", name, size.w, size.h, want, h.screen())
				}
			}
		}
	}
}

// Modes differ at both ends of every line, not only in a word.
func TestModesMarkEveryLine(t *testing.T) {
	marks := map[model.Mode]string{model.Live: " ", model.Rehearsing: ":", model.BreakGlass: "#", model.ReadOnly: "|"}
	for mode, mark := range marks {
		h := sitDown(t, newDesk(as(trouble(), mode)), 80, 24)
		h.sees(string(mode))
		for i, l := range strings.Split(h.screen(), "\n") {
			if !strings.HasPrefix(l, mark) || !strings.HasSuffix(l, mark) {
				t.Errorf("%s: line %d is not marked: %q", mode, i, l)
			}
		}
	}
}

// Break-glass in a drill is both, in every line.
func TestBreakGlassInADrillIsBoth(t *testing.T) {
	h := sitDown(t, newDesk(as(drill(), model.BreakGlass)), 80, 24)
	h.sees("BREAK-GLASS", "REHEARSAL")
	for i, l := range strings.Split(h.screen(), "\n") {
		if !strings.HasPrefix(l, "#") || !strings.HasSuffix(l, ":") {
			t.Errorf("line %d is not marked: %q", i, l)
		}
	}
}

// Seconds appear only while something counts down.
func TestSecondsOnlyWhileCounting(t *testing.T) {
	h := sitDown(t, newDesk(calm()), 120, 40)
	h.seesNot("12s")
	h.sees("<1m")
	h = sitDown(t, newDesk(trouble()), 120, 40)
	h.sees("13m00s", "12s")
}

// Nothing wakes a quiet console within the minute; a countdown wakes it each
// second. A second message does not start a second clock.
func TestWakesOnlyWhenTheScreenChanges(t *testing.T) {
	h := sitDown(t, newDesk(calm()), 80, 24)
	if wait := h.m.tickDue.Sub(h.real); wait != 53*time.Second {
		t.Errorf("a quiet console wakes in %s, the minute ends in 53s", wait)
	}
	gen := h.m.tickGen
	h.press("5", "j", "k")
	if h.m.tickGen != gen {
		t.Error("every key starts another clock")
	}
	h = sitDown(t, newDesk(trouble()), 80, 24)
	if wait := h.m.tickDue.Sub(h.real); wait != time.Second {
		t.Errorf("a countdown wakes in %s", wait)
	}
}

// A drill's clock runs faster than ours: its minutes are met by its own pace.
func TestTickFollowsTheWorldsPace(t *testing.T) {
	h := sitDown(t, newDesk(calm()), 80, 24)
	h.real, h.now = h.real.Add(10*time.Second), h.now.Add(200*time.Second)
	h.m.tickDue = time.Time{}
	h.send(redrawMsg{})
	if wait := h.m.tickDue.Sub(h.real); wait > 3*time.Second {
		t.Errorf("at 20 times our pace the next minute is awaited for %s", wait)
	}
}

// What a wait still takes goes down with the clock, not with the next snapshot.
func TestWaitsCountDown(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 120, 40)
	h.press("2", "j", "j", "j")
	h.sees("wait 3m12s")
	h.now = h.now.Add(5 * time.Second)
	h.send(redrawMsg{})
	h.sees("wait 3m07s")
}

// A console that does not hear from its own desk says that every number is old.
func TestOldSnapshotIsSaid(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 80, 24)
	h.now = h.now.Add(5 * time.Minute)
	h.send(redrawMsg{})
	h.sees("~ stale: every number here is at least 5m old")
}

// A narrow window cuts off neither the mode nor the fleet for the other.
func TestANarrowWindowKeepsModeAndFleet(t *testing.T) {
	h := sitDown(t, newDesk(as(drill(), model.BreakGlass)), 40, 10)
	h.sees("BREAK-GLASS REHEARSAL", "shop-demo", "alice commands", "03:14 UTC", "[1]")
	h = sitDown(t, newDesk(drill()), 40, 10)
	h.sees("REHEARSAL", "shop-demo", "alice (you) commands", "03:14 UTC", "[1]")
}
