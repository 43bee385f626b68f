package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// The first frame: model built, snapshot of 60 hosts taken, drawn at 120x40.
func BenchmarkFirstFrame(b *testing.B) {
	d := newDesk(trouble())
	opt := Options{Now: func() time.Time { return night }, Real: func() time.Time { return night }}
	for b.Loop() {
		m := newConsole(b.Context(), d, opt)
		m.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
		m.Update(snapshotMsg{snap: d.snap})
		if m.View().Content == "" {
			b.Fatal("empty")
		}
	}
}

// A key in the longest list: update and frame.
func BenchmarkKeyInFleet(b *testing.B) {
	h := sitDown(b, newDesk(trouble()), 120, 40)
	h.press("5")
	keys := []tea.KeyPressMsg{keyPress("j"), keyPress("k")}
	i := 0
	for b.Loop() {
		h.m.Update(keys[i%2])
		h.m.View()
		i++
	}
}
