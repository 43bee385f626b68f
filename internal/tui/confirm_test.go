package tui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// toBypass leads to the typed confirmation of a bypass.
func toBypass(t *testing.T, d *fakeDesk) *hands {
	h := sitDown(t, d, 80, 24)
	h.press("enter").typeText("risk is down").press("enter")
	if h.m.mode != inTyped {
		t.Fatalf("no typed confirmation:\n%s", h.screen())
	}
	return h
}

// toShed leads to the one-key confirmation of a shed.
func toShed(t *testing.T, d *fakeDesk) *hands {
	h := sitDown(t, d, 80, 24)
	h.press("s").typeText("checkout 3").press("enter")
	if h.m.mode != inConfirm {
		t.Fatalf("no confirmation:\n%s", h.screen())
	}
	return h
}

func TestShedTakesOneDeliberateKey(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.sees("TIGHTEN", "shed checkout to tier 3", "not by itself", "reorder from history", "[ Cancel ]", "Any strong objections?")
	h.press("y")
	if d.called("execute") != 1 {
		t.Fatalf("executed %d times", d.called("execute"))
	}
	h.sees("effective: 60 of 60 hosts report it", "etcd: acknowledged")
	if got := d.asked[len(d.asked)-1]; got.Right != "shed" || got.Scope != "checkout" || got.Tier != 3 || got.Actor != "alice" {
		t.Errorf("asked for %+v", got)
	}
}

func TestEnterNeverGivesATightening(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.press("enter")
	if d.effects() != 0 || h.m.mode != inNormal {
		t.Errorf("Enter: effects %d, mode %b", d.effects(), h.m.mode)
	}
	h.sees("cancelled, nothing was done")
}

func TestBypassIsSpelledOut(t *testing.T) {
	d := newDesk(trouble())
	h := toBypass(t, d)
	h.sees("LOOSEN", "worst case", "4464.00 USD: 60 hosts + 2 that may join", "03:29:07Z, in 15m00s, on every host by itself",
		"commander; co-signs: nobody else", "simulated 3d ago, live never", "risk is down", "skip payment-risk")
	h.press("y", "enter")
	if d.effects() != 0 {
		t.Fatal("one key opened a bypass")
	}
	h.sees("that is not the text")
	h.press("ctrl+u").typeText("skip payment-risk").press("enter")
	if d.called("execute") != 1 {
		t.Fatalf("the right text did not give the order:\n%s", h.screen())
	}
}

func TestEnterOnEmptyTypedConfirmationCancels(t *testing.T) {
	d := newDesk(trouble())
	h := toBypass(t, d)
	h.press("enter")
	if d.effects() != 0 || h.m.mode != inNormal {
		t.Errorf("Enter: effects %d, mode %b", d.effects(), h.m.mode)
	}
}

// The order that is given is the one that was shown.
func TestGivenIsWhatWasShown(t *testing.T) {
	d := newDesk(trouble())
	var act incident.Act
	d.execute = func(a incident.Act) (incident.Result, error) {
		act = a
		return incident.Result{State: incident.Sent}, nil
	}
	h := toBypass(t, d)
	want := *h.m.dialog.ask
	h.typeText("skip payment-risk").press("enter")
	if !act.Asked || act.Request.Directive.Reason != "risk is down" || act.Request.Directive.NotAfter != night.Add(15*time.Minute) || want.Actor != "alice" {
		t.Errorf("act %+v", act)
	}
}

// Keys that come before the keyboard was quiet for 425 ms are not an answer, and
// each of them begins the wait again: a held key never passes.
func TestEarlyKeysAreNoAnswer(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.m.dialog.open(h.real)
	for range 100 {
		h.real = h.real.Add(33 * time.Millisecond) // a key held down
		h.send(keyPress("y"))
	}
	if d.effects() != 0 {
		t.Fatal("a held key gave an order")
	}
	h.sees("too early")
	h.real = h.real.Add(grace - time.Millisecond)
	h.send(keyPress("y"))
	if d.effects() != 0 {
		t.Fatal("424 ms were enough")
	}
	h.real = h.real.Add(grace)
	h.send(keyPress("y"))
	if d.called("execute") != 1 {
		t.Fatal("a deliberate key after the quiet gave no order")
	}
}

func TestTypedAheadIsNoAnswer(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 80, 24)
	h.press("enter").typeText("risk is down")
	for _, k := range append([]string{"enter"}, strings.Split("skip payment-risk", "")...) {
		h.real = h.real.Add(20 * time.Millisecond)
		h.send(keyPress(k))
	}
	h.send(keyPress("enter"))
	if d.effects() != 0 {
		t.Fatal("what was typed ahead gave an order")
	}
	if h.m.dialog == nil || h.m.dialog.text.text != "" {
		t.Error("typed-ahead keys were kept")
	}
}

func TestEscapeWorksDuringTheQuiet(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.m.dialog.open(h.real)
	h.send(keyPress("esc"))
	if h.m.mode != inNormal || d.effects() != 0 {
		t.Error("escape has to back out at any time")
	}
}

func TestPasteIsNoAnswer(t *testing.T) {
	for name, to := range map[string]func(*testing.T, *fakeDesk) *hands{"typed": toBypass, "one key": toShed} {
		d := newDesk(trouble())
		h := to(t, d)
		h.real = h.real.Add(time.Second)
		for range 50 {
			h.send(tea.PasteMsg{Content: "skip payment-risk\ny\ny\n"})
		}
		if d.effects() != 0 || h.m.dialog == nil || h.m.dialog.text.text != "" {
			t.Errorf("%s: a paste did something", name)
		}
		h.sees("a paste is no answer")
	}
}

// A terminal without bracketed paste sends a paste as keys: faster than fingers.
func TestPasteAsKeysIsNoAnswer(t *testing.T) {
	d := newDesk(trouble())
	h := toBypass(t, d)
	h.real = h.real.Add(time.Second)
	for _, r := range "skip payment-risk" {
		h.real = h.real.Add(time.Millisecond)
		h.send(keyPress(string(r)))
	}
	h.send(keyPress("enter"))
	if d.effects() != 0 {
		t.Fatal("a paste as keys gave an order")
	}
	h.sees("faster than it can be typed")
}

// A late answer to an older question never fills the dialog of a newer one.
func TestLateAnswerIsDropped(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 80, 24)
	h.press("2", "G")
	h.hold = true
	h.press("enter") // the bypass is asked for; its preview is late
	late := h.held
	h.held = nil
	h.press("esc")
	h.hold = false
	h.press("k", "k", "k", "enter") // the shed is asked for and shown
	h.sees("TIGHTEN")
	before := h.frame()
	for _, msg := range late {
		h.send(msg)
	}
	if h.frame() != before {
		t.Errorf("a late answer changed the dialog:\n%s", h.screen())
	}
}

// An answer to a closed dialog opens nothing.
func TestAnswerAfterEscapeOpensNothing(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 80, 24)
	h.hold = true
	h.press("enter", "esc")
	h.deliver()
	if h.m.mode != inNormal || h.m.dialog != nil {
		t.Errorf("mode %b after a late answer", h.m.mode)
	}
}

func TestDeniedCannotBeGivenAndSaysWhy(t *testing.T) {
	d := newDesk(trouble())
	d.preview = func(ask decisions.Ask) (incident.Preview, error) {
		p := previewOf(decisions.Ask{Right: "recover"})
		p.Verdict.Outcome = model.Needs
		p.Verdict.Reasons = []model.Reason{{Code: decisions.Dwell, Wait: model.Duration(192 * time.Second), N: 3}}
		return p, nil
	}
	h := sitDown(t, d, 80, 24)
	h.press("r")
	h.sees("cannot be given now: wait 3m12s: tier 3 has to hold before it is left")
	h.press("y", "enter")
	if d.effects() != 0 {
		t.Fatal("a verdict that needs time was given")
	}
}

// When what had to be waited for has come, the dialog becomes a new question: a
// key that was on its way to the old one does not answer it.
func TestDialogThatBecomesPossibleAsksAnew(t *testing.T) {
	d := newDesk(trouble())
	waiting := true
	d.preview = func(ask decisions.Ask) (incident.Preview, error) {
		p := previewOf(decisions.Ask{Right: "shed", Scope: "checkout", Tier: 3})
		if waiting {
			p.Verdict.Outcome, p.Verdict.Reasons = model.Needs, []model.Reason{{Code: decisions.Dwell, Wait: model.Duration(time.Second)}}
		}
		return p, nil
	}
	h := sitDown(t, d, 80, 24)
	h.press("r")
	h.sees("cannot be given now")
	h.real = h.real.Add(time.Minute)
	waiting = false
	h.refresh()
	h.seesNot("cannot be given now")
	h.send(keyPress("y"))
	if d.effects() != 0 {
		t.Fatal("a key on its way to the old question answered the new one")
	}
	h.press("y")
	if d.called("execute") != 1 {
		t.Fatal("the new question cannot be answered")
	}
}

// What only lacks signatures is given: as a proposal, whose token is shown.
func TestQuorumIsGivenAsProposal(t *testing.T) {
	d := newDesk(trouble())
	d.preview = func(ask decisions.Ask) (incident.Preview, error) {
		p := previewOf(decisions.Ask{Right: "x", Reason: "y"})
		p.Verdict.Outcome, p.Verdict.Reasons = model.Needs, []model.Reason{{Code: model.CodeQuorum, N: 1, Other: "finance"}}
		return p, nil
	}
	d.execute = func(incident.Act) (incident.Result, error) {
		return incident.Result{State: incident.Proposed, Token: "ic1.abc.def", Detail: "waits for finance"}, incident.ErrNeeds
	}
	h := sitDown(t, d, 80, 24)
	h.press("enter").typeText("skip payment-risk").press("enter")
	h.sees("proposed: waits for finance", "ic1.abc.def", "ctrl+y copies it")
	h.seesNot("needs something first")
}

func TestOutcomeOfALeftOrderIsStillTold(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.hold = true
	h.press("y")
	h.press("esc")
	h.sees("on its way")
	h.deliver()
	h.sees("shed checkout to tier 3: effective, 60 of 60 hosts")
}

func TestErrorsOfAnOrderAreShown(t *testing.T) {
	d := newDesk(trouble())
	d.execute = func(incident.Act) (incident.Result, error) {
		return incident.Result{Receipt: "rcpt 1 2 3"}, errors.Join(incident.ErrDenied, errors.New("the freeze began a second ago"))
	}
	h := toShed(t, d)
	h.press("y")
	h.sees("denied", "the freeze began a second ago", "keep this text: rcpt 1 2 3")
}

// In a window that cannot show all of a dangerous order, all of it has to be
// scrolled through first.
func TestDangerousOrderHasToBeReadToItsEnd(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 60, 15)
	h.press("enter").typeText("risk").press("enter").typeText("skip payment-risk").press("enter")
	if d.effects() != 0 {
		t.Fatal("an order was given whose worst case was out of sight")
	}
	h.sees("read the lines below first")
	h.press("pgdown", "pgdown", "pgdown", "pgdown", "enter")
	if d.called("execute") != 1 {
		t.Fatalf("read to the end, and still refused:\n%s", h.screen())
	}
}

// What cannot be shown cannot be given.
func TestDangerousOrderNeedsAWindowThatShowsIt(t *testing.T) {
	d := newDesk(trouble())
	h := toBypass(t, d)
	h.typeText("skip payment-risk")
	h.send(tea.WindowSizeMsg{Width: 80, Height: 6})
	h.press("enter")
	if d.effects() != 0 {
		t.Fatal("an order was given that the window cannot show")
	}
	h.sees("too small")
	h.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	h.press("enter")
	if d.called("execute") != 1 {
		t.Fatalf("refused in a window that is large enough:\n%s", h.screen())
	}
}

// Numbers that arrive while a reason is being written do not take the text away.
func TestSnapshotDoesNotInterruptWriting(t *testing.T) {
	d := newDesk(trouble())
	d.preview = func(ask decisions.Ask) (incident.Preview, error) {
		p := previewOf(decisions.Ask{Right: "recover", Reason: ask.Reason})
		p.Verdict.Outcome, p.Verdict.Reasons = model.Needs, []model.Reason{{Code: decisions.Dwell, Wait: model.Duration(time.Minute)}}
		return p, nil
	}
	h := sitDown(t, d, 80, 24)
	h.press("r", "ctrl+e").typeText("half a ")
	h.refresh()
	h.typeText("reason").press("enter")
	h.sees("half a reason")
}

func TestReasonOfASheddingCanBeWritten(t *testing.T) {
	d := newDesk(trouble())
	h := toShed(t, d)
	h.press("ctrl+e").typeText("pool is full").press("enter")
	h.sees("pool is full")
	h.press("y")
	if d.called("execute") != 1 || d.asked[len(d.asked)-1].Reason != "pool is full" {
		t.Errorf("asked %+v", d.asked[len(d.asked)-1])
	}
}

// The desk is asked with a deadline, always.
func TestOrdersHaveADeadline(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 80, 24)
	var has bool
	h.run(h.m.run(h.m.question("x"), "x", executeLimit, func(ctx context.Context) (incident.Result, error) {
		_, has = ctx.Deadline()
		return incident.Result{}, nil
	}))
	if !has {
		t.Error("no deadline")
	}
}
