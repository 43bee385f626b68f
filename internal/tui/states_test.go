package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// Signed and without an outcome is the worst thing not to know.
func TestUnknownOutcomeIsCritical(t *testing.T) {
	s := trouble()
	s.Unknown = []incident.LiveView{{Title: "shed edge to tier 1"}}
	sitDown(t, newDesk(s), 100, 40).sees("X shed edge to tier 1", "UNKNOWN", "signed, no outcome")
}

// A record that is not on disk is text to keep.
func TestReceiptStaysOnTheScreen(t *testing.T) {
	s := trouble()
	s.Receipts = []string{"rcpt 7f3a 0012"}
	sitDown(t, newDesk(s), 100, 40).sees("X record", "not on disk yet, keep this text: rcpt 7f3a 0012")
}

func TestProposalSaysWhatItWaitsFor(t *testing.T) {
	s := trouble()
	s.Proposals = []incident.Proposal{{Directive: bypassDirective(), Token: token(t, bypassDirective()),
		Needs: "1 more signature from finance", Left: model.Duration(12 * time.Minute)}}
	h := sitDown(t, newDesk(s), 100, 40)
	h.sees("proposed", "12m00s left", "waits for 1 more signature from finance; c co-signs")
	h.press("c")
	h.sees("paste a token")
	h.press("enter")
	h.sees("CO-SIGN", "sign risk-bypass-small-orders")
}

// A dead flag service says since when, why and what to do.
func TestDeadCarrierSaysWhatToDo(t *testing.T) {
	s := trouble()
	s.Carriers[0] = incident.CarrierView{Name: "etcd", ReadAt: night.Add(-3 * time.Minute), Detail: "connection refused"}
	sitDown(t, newDesk(s), 120, 40).sees("! carriers", "etcd is not reachable, last read 3m ago: connection refused; b breaks glass")
	s.Carriers[0] = incident.CarrierView{Name: "etcd", Connected: true, ReadAt: night.Add(-3 * time.Minute)}
	sitDown(t, newDesk(s), 120, 40).sees("~ carriers", "stale: last read 3m ago")
}

// One that answers and is not as it should be says so, and so do two clocks that do
// not agree and a list of hosts that is not of now.
func TestWhatAnswersAndIsWrongIsSaid(t *testing.T) {
	s := trouble()
	s.Carriers[0] = incident.CarrierView{Name: "etcd", Connected: true, ReadAt: night, Detail: "it lacks SHED03; ic reissue hands it over"}
	s.SignalsClock = incident.ClockView{State: incident.ClocksDiffer, AheadS: 90, At: night}
	s.World.Inventory.Detail = "this is the last list that is known: connection refused"
	sitDown(t, newDesk(s), 200, 40).sees("! carriers", "etcd connected: it lacks SHED03; ic reissue hands it over",
		"! clock", "1m30s ahead of this machine", "old: this is the last list that is known: connection refused")
	s.SignalsClock.State = incident.ClocksAgree
	sitDown(t, newDesk(s), 200, 40).seesNot("! clock")
}

// A plan shows orders by what they do; a value that is something else as it is.
func TestPlanShowsOrdersInWords(t *testing.T) {
	value := token(t, shedDirective()) + " " + token(t, bypassDirective())
	got := carried(value)
	if !strings.Contains(got, "2 orders") || !strings.Contains(got, "shed checkout to tier 3 (SHED03)") || strings.Contains(got, "ic1.") {
		t.Errorf("got %q", got)
	}
	if got := carried("FEATURE_X=off"); got != "FEATURE_X=off" {
		t.Errorf("got %q", got)
	}
	if got := carried(""); got != "(empty)" {
		t.Errorf("got %q", got)
	}
}

// A service whose hosts do not tell is unknown, one that recovers says how far.
func TestServiceStates(t *testing.T) {
	sc := &scene{now: night, read: true}
	for _, c := range []struct {
		s    incident.ServiceTier
		mark ink
		want string
	}{
		{incident.ServiceTier{Hosts: 3, At: map[int]int{0: 3}}, normal, "normal"},
		{incident.ServiceTier{Hosts: 3, Unknown: 3}, unknown, "no host reports"},
		{incident.ServiceTier{Hosts: 3, At: map[int]int{0: 2}, Unknown: 1}, unknown, "1 host unknown"},
		{incident.ServiceTier{Hosts: 3, At: map[int]int{0: 2, 2: 1}}, abnormal, "hosts hold an old order"},
		{incident.ServiceTier{Hosts: 3, Issued: 2, At: map[int]int{2: 3}, Since: night.Add(-3 * time.Minute), By: "bob"}, abnormal, "shed 3m by bob"},
	} {
		r := serviceRow(sc, &c.s, 10)
		if r.mark != c.mark || r.cells[4].text != c.want {
			t.Errorf("%+v: %d %q", c.s, r.mark, r.cells[4].text)
		}
	}
}

// The bar has one cell per host if there is room, is never longer than its
// width, and leaves no group of hosts out.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		s     incident.ServiceTier
		width int
		want  string
	}{
		{incident.ServiceTier{Hosts: 6, At: map[int]int{0: 3, 3: 2}, Unknown: 1}, 10, "...33?"},
		{incident.ServiceTier{Hosts: 600, At: map[int]int{0: 599, 2: 1}}, 10, ".........2"},
		{incident.ServiceTier{}, 10, ""},
	} {
		if got := bar(&c.s, c.width); got != c.want {
			t.Errorf("bar of %+v: %q, want %q", c.s.At, got, c.want)
		}
	}
}
