package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/model"
)

// everyKey is all keys of the map, in any mode.
func everyKey() []string {
	seen := map[string]bool{}
	var out []string
	add := func(k string) {
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	for _, b := range newKeymap() {
		for _, k := range b.keys {
			add(k)
		}
	}
	return out
}

// A read-only console never asks the desk for an effect, whatever is pressed,
// in whatever view, whichever two keys follow.
func TestReadOnlyNeverActs(t *testing.T) {
	snap := few(as(trouble(), model.ReadOnly))
	snap.Faults = drill().Faults
	for view := range 6 {
		for _, first := range everyKey() {
			d := newDesk(snap)
			h := sitDown(t, d, 80, 24)
			h.press(fmt.Sprint(view+1), first)
			for _, next := range []string{"y", "enter", "enter", "y", "enter"} {
				h.press(next)
			}
			if n := d.effects(); n != 0 {
				t.Fatalf("view %d, key %q: %d effects: %v", view+1, first, n, d.calls)
			}
		}
	}
}

// No single key gives an order in any view, not even followed by Enter; a person
// has to answer a dialog.
func TestNoKeyAndEnterGivesAnOrder(t *testing.T) {
	for view := range 6 {
		for _, key := range everyKey() {
			d := newDesk(few(trouble()))
			h := sitDown(t, d, 80, 24)
			h.press(fmt.Sprint(view+1), key, "enter", "enter", "enter")
			if n := d.effects(); n != 0 {
				t.Errorf("view %d, key %q and Enter: %v", view+1, key, d.calls)
			}
		}
	}
}

// A key that is not on the map does nothing and says so.
func TestKeysOffTheMapDoNothing(t *testing.T) {
	m := newKeymap()
	d := newDesk(few(trouble()))
	h := sitDown(t, d, 80, 24)
	for r := '!'; r <= '~'; r++ {
		if _, bound := m.find(inNormal, string(r)); bound {
			continue
		}
		h.press(string(r))
		h.sees("no key here: ? lists those that work")
	}
	if h.m.mode != inNormal || h.m.at != 0 || d.effects() != 0 {
		t.Errorf("mode %b, view %d, effects %d", h.m.mode, h.m.at, d.effects())
	}
}

// A key that cannot act says why.
func TestBlockedKeysSayWhy(t *testing.T) {
	quiet := calm()
	cases := []struct {
		key  string
		snap func() *hands
		want string
	}{
		{"s", func() *hands { return sitDown(t, newDesk(as(calm(), model.ReadOnly)), 80, 24) }, "read-only"},
		{"r", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "nothing to recover from"},
		{"u", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "nothing to undo"},
		{"f", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "drills only"},
		{"/", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "nothing to filter"},
		{"enter", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "no right fits"},
		{"esc", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "nothing to go back from"},
		{"%", func() *hands { return sitDown(t, newDesk(quiet), 80, 24) }, "no key here"},
	}
	for _, c := range cases {
		h := c.snap()
		h.press(c.key)
		if !strings.Contains(h.screen(), c.want) {
			t.Errorf("%q does not say %q:\n%s", c.key, c.want, h.screen())
		}
	}
}

// Every key that the help lists for a view does something there: the frame, the
// mode or the desk's work changes.
func TestNoDeadKeys(t *testing.T) {
	for view := range 6 {
		m := newConsole(t.Context(), newDesk(drill()), Options{Now: sitDown(t, newDesk(drill()), 9, 9).m.opt.Now})
		own, everywhere := m.keys.listed(inNormal, m.views[view].Keys())
		for _, b := range append(own, everywhere...) {
			for _, key := range b.keys {
				if b.act == suspend || b.act == interrupt {
					continue // they leave the program; TestSuspendAndInterrupt has them
				}
				h := sitDown(t, newDesk(drill()), 80, 16)
				h.press(fmt.Sprint(view + 1))
				prepare(h, b.act)
				h.m.notice = fact{}
				before, x, y := h.m.frame()
				h.press(key)
				after, x2, y2 := h.m.frame()
				if before == after && x == x2 && y == y2 && !h.quit {
					t.Errorf("view %d: %q (%s) does nothing\n%s", view+1, key, b.label, h.screen())
				}
			}
		}
	}
}

// prepare puts a view where an action has something to do.
func prepare(h *hands, a action) {
	switch a {
	case moveUp, pageUp, moveTop:
		h.press("pgdown", "pgdown", "down")
	case moveDown, pageDown, moveBottom:
		h.press("pgup", "g")
	case goOverview, goRights, goGlass, goRunbook, goFleet, goLog:
		if h.m.at == int(a-goOverview) {
			h.press("tab")
		}
	}
}

func TestSuspendAndInterrupt(t *testing.T) {
	for _, mode := range []string{"", "?", "s", ":", "/"} {
		h := sitDown(t, newDesk(trouble()), 80, 24)
		h.press("5")
		if mode != "" {
			h.press(mode)
		}
		if _, cmd := h.m.Update(keyPress("ctrl+z")); !produces[tea.SuspendMsg](cmd) {
			t.Errorf("ctrl-z in %q does not suspend", mode)
		}
		if _, cmd := h.m.Update(keyPress("ctrl+c")); !produces[tea.QuitMsg](cmd) {
			t.Errorf("ctrl-c in %q does not quit", mode)
		}
	}
}

func produces[T any](cmd tea.Cmd) bool {
	if cmd == nil || isTimer(cmd) {
		return false
	}
	switch msg := cmd().(type) {
	case T:
		return true
	case tea.BatchMsg:
		for _, c := range msg {
			if produces[T](c) {
				return true
			}
		}
	}
	return false
}

// The help is the key map: each binding of the view in front is on it with its
// key and its label.
func TestHelpIsTheKeyMap(t *testing.T) {
	for view := range 6 {
		h := sitDown(t, newDesk(trouble()), 120, 60)
		h.press(fmt.Sprint(view+1), "?")
		own, everywhere := h.m.keys.listed(inNormal, h.m.views[view].Keys())
		for _, b := range append(own, everywhere...) {
			if b.act >= goOverview && b.act <= goLog {
				continue // they share one line
			}
			h.sees(shown(b.keys[0]), b.label)
		}
	}
}

// In no mode does one key mean two things.
func TestOneKeyOneMeaning(t *testing.T) {
	for m := inNormal; m <= inLeave; m <<= 1 {
		seen := map[string]action{}
		for _, b := range newKeymap() {
			if b.in&m == 0 {
				continue
			}
			for _, k := range b.keys {
				if other, taken := seen[k]; taken {
					t.Errorf("mode %b: %q means %d and %d", m, k, other, b.act)
				}
				seen[k] = b.act
			}
		}
	}
}

// Escape backs out of every mode, in at most two presses, without any effect.
func TestEscapeAlwaysBacksOut(t *testing.T) {
	for name, keys := range scenes() {
		d := newDesk(trouble())
		h := sitDown(t, d, 80, 24)
		h.press(keys...)
		before := d.effects() // those of the keys that led there
		h.press("esc", "esc")
		if h.m.mode != inNormal || d.effects() != before || h.quit {
			t.Errorf("%s: escape leaves mode %b, effects %d", name, h.m.mode, d.effects())
		}
	}
}
