package tui

import (
	"fmt"
	"testing"
)

func TestZZ(t *testing.T) {
	show := func(h *hands) { fmt.Println(h.screen()); fmt.Println() }
	h := sitDown(t, newDesk(trouble()), 100, 30)
	for _, k := range []string{"1", "2", "3", "4", "5", "6"} {
		h.press(k)
		if k == "2" { h.press("G") }
		if k == "3" { h.press("j", "enter") }
		if k == "5" { h.press("j", "enter") }
		show(h)
	}
	h.press("1", "enter").typeText("risk scoring is down").press("enter").typeText("skip pay")
	show(h)
	h = sitDown(t, newDesk(trouble()), 100, 30)
	h.press("s").typeText("checkout to tier 3").press("enter"); h.real = h.real.Add(1e9); h.send(redrawMsg{})
	show(h)
}
