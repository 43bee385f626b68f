package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// led is a bypass of ten minutes whose not_before lies three minutes after its
// issue, as with a quorum.
func led(at time.Time) model.Directive {
	d := open(13*time.Minute, at)
	d.NotBefore = at.Add(3 * time.Minute)
	return d
}

func TestBypassEndsByItself(t *testing.T) {
	const lead = 3 * time.Minute                        // the token is under way for as long, so that it proves less than the time of now
	for name, during := range map[string]func(h *host){ // what happens to the host five minutes into the window
		"by its signed end":                     func(*host) {},
		"after a restart":                       func(h *host) { h.crash() },
		"when the wall clock is set back":       func(h *host) { h.clock.set(-time.Hour) },
		"set back by less than it has proved":   func(h *host) { h.clock.set(-lead) },
		"set back and restarted":                func(h *host) { h.clock.set(-90 * time.Second); h.crash() },
		"set back, then restarted with a tick":  func(h *host) { h.clock.set(-time.Minute); h.Advance(h.clock.Now()); h.crash() },
		"rebooted in no time with a slow clock": func(h *host) { h.Advance(h.clock.Now()); h.clock.set(-lead); h.clock.reboot(0); h.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.t = t
			_, token := h.make(led(start))
			h.clock.pass(lead)
			h.offer(token)
			h.wantOpen(true)
			h.clock.pass(5 * time.Minute)
			h.wantOpen(true)
			during(h)
			h.wantOpen(true)
			h.clock.pass(5*time.Minute - time.Second)
			h.wantOpen(true)
			h.clock.pass(time.Second)
			h.wantOpen(false) // nobody has called Advance
			if live := h.live(); len(live) != 0 {
				t.Errorf("the report still lists %v", live)
			}
			h.crash()
			h.wantOpen(false)
		})
	}
	t.Run("accepted late", func(t *testing.T) {
		h := newHost(t)
		h.t = t
		_, token := h.make(open(10*time.Minute, start))
		h.clock.pass(8 * time.Minute)
		h.offer(token)
		h.wantOpen(true)
		h.clock.pass(2 * time.Minute)
		h.wantOpen(false)
	})
}

func TestABypassEndsEarlyRatherThanLate(t *testing.T) {
	h := newHost(t)
	h.take(open(10*time.Minute, start))
	h.clock.set(20 * time.Minute)
	h.wantOpen(false)
	h.crash()
	h.wantOpen(false)
	h.clock.set(-20 * time.Minute)
	h.wantOpen(true) // the clock was wrong, the bypass is still within its time
	h.clock.pass(10 * time.Minute)
	h.wantOpen(false)
}

func TestABypassOpensAtItsBeginning(t *testing.T) {
	h := newHost(t)
	id := h.take(led(start))
	h.wantOpen(false)
	if wait := h.Advance(h.clock.Now()); wait != 3*time.Minute {
		t.Errorf("the next change is in %s, want 3m", wait)
	}
	before := h.Revision()
	h.clock.pass(3 * time.Minute)
	h.wantOpen(true)
	if h.Revision() == before {
		t.Error("the revision did not change")
	}
	if r := h.Report(h.clock.Now()); len(r.Live) != 1 || r.Live[0].ID != id || !r.Live[0].Since.Equal(start.Add(3*time.Minute)) {
		t.Errorf("live: %+v", r.Live)
	}
}

func TestTimeThatPassesDuringABootCountsAfterIt(t *testing.T) {
	h := newHost(t)
	_, token := h.make(led(start))
	h.clock.pass(3 * time.Minute)
	h.offer(token)
	h.clock.pass(4 * time.Minute)
	h.Advance(h.clock.Now())
	h.clock.reboot(2 * time.Minute)
	h.crash()
	h.clock.set(-3 * time.Minute) // only now: the start has seen the right time
	h.wantOpen(true)
	h.clock.pass(4*time.Minute - time.Second)
	h.wantOpen(true)
	h.clock.pass(time.Second)
	h.wantOpen(false)
}

func TestARunThatAJumpOfTheClockHasBegunGoesOn(t *testing.T) {
	h := newHost(t)
	h.take(led(start))
	h.clock.pass(time.Minute)
	h.clock.set(150 * time.Second)
	h.wantOpen(true) // since half a minute, as far as this host can know
	h.crash()
	h.clock.set(-150 * time.Second)
	h.wantOpen(false)
	h.clock.pass(2 * time.Minute)
	h.wantOpen(true)
	h.clock.pass(7*time.Minute + 29*time.Second)
	h.wantOpen(true)
	h.clock.pass(time.Second)
	h.wantOpen(false)
}

func TestAnEndedBypassIsClosedAtOnce(t *testing.T) {
	h := newHost(t)
	id := h.take(open(10*time.Minute, start))
	h.wantOpen(true)
	h.folder.(*engine.Memory).Fail(errGone)
	_, elsewhere := h.make(model.Directive{Kind: model.End, Ends: model.Bypass, IDs: []string{id}, Scope: "catalog", Right: "close"})
	h.offer(elsewhere)
	h.wantOpen(true) // another scope: it ends nothing here
	scoped := end(model.Bypass, "close", id)
	scoped.Scope = "checkout"
	_, token := h.make(scoped, "bea")
	if r := h.offer(token); r.Code != "" || !r.New {
		t.Fatalf("the ending: %+v", r)
	}
	h.wantOpen(false)
	h.wantState(engine.StateUnpersisted)
}

func TestARevokedKeyClosesBypassesOnlyAndTakesNothingNew(t *testing.T) {
	h := newHost(t)
	opened := h.take(open(10*time.Minute, start), "sam")
	h.take(shed(3), "sam")
	off := h.take(model.Directive{Kind: model.Off, Feature: "reviews", Right: "off"}, "sam")
	h.take(model.Directive{Kind: model.End, Ends: model.Off, IDs: []string{off}, Right: "on"}, "sam")
	h.take(model.Directive{Kind: model.Off, Feature: "search", Right: "off"}, "sam")
	_, late := h.make(shed(4), "sam")

	h.shop.version = 4
	h.shop.root.Version = 2
	h.shop.root.Revoked = []string{fingerprint("sam")}
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		h.wantOpen(false)
		if got := h.refused(opened); got != model.CodeRevokedKey {
			t.Errorf("%s: the report says %q about the bypass", when, got)
		}
		h.wantTier("checkout", 3)
		if h.Off("reviews", "checkout", h.clock.Now()) || !h.Off("search", "checkout", h.clock.Now()) {
			t.Errorf("%s: an off or an ending was lost", when)
		}
		h.refuses(late, model.CodeRevokedKey)
	}
	check("after the revocation")
	h.crash()
	check("after a restart")
	delete(h.shop.root.People, "sam") // he has left, his key stays on the list
	h.shop.root.Roles["commander"] = policy.Role{Members: []string{"ada", "bea"}, Tightens: true, MaxTier: 4}
	h.start()
	h.wantTier("checkout", 3)
	h.wantOpen(false)
	h.clock.pass(10 * time.Minute)
	if got := h.refused(opened); got != "" {
		t.Errorf("the report still says %q about a bypass whose time is over", got)
	}
}

func TestANewPolicyJudgesBypassesAfresh(t *testing.T) {
	h := newHost(t)
	id := h.take(open(10*time.Minute, start))
	_, ahead := h.make(func() model.Directive {
		d := open(5*time.Minute, start)
		d.Policy.Version = 5
		return d
	}())
	h.refuses(ahead, model.CodePolicyBehind)
	h.take(shed(2))

	change := func(version int64, change func(*shop)) {
		t.Helper()
		h.shop.version = version
		change(h.shop)
		if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
			t.Fatal(err)
		}
		h.wantTier("checkout", 2)
	}
	change(4, func(s *shop) { s.bypass.Under = usd(4999) })
	h.wantOpen(false)
	if got := h.refused(id); got != model.CodeOverCap {
		t.Errorf("the report says %q", got)
	}
	change(4, func(s *shop) { s.bypass.Under = usd(5000) })
	h.wantOpen(true)
	lost := h.shop.states["payments"]
	lost.Active = false
	kept := h.shop.states["payments"]
	change(4, func(s *shop) { s.states["payments"] = lost })
	h.wantOpen(false)
	change(5, func(s *shop) { s.states["payments"] = kept })
	h.wantOpen(true)
	if live := h.live(); len(live) != 3 {
		t.Errorf("live are %v: the bypass of policy 5 was not judged afresh", live)
	}
	h.clock.pass(5 * time.Minute)
	h.wantOpen(true)
	h.clock.pass(5 * time.Minute)
	h.wantOpen(false)

	h.shop.version = 4
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err == nil {
		t.Error("an older policy was taken")
	}
	h.shop.version, h.shop.root.Fleet = 6, "other-shop"
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err == nil {
		t.Error("another fleet's policy was taken")
	}
}

func TestOtherSignaturesOpenAgainWhatARevocationClosed(t *testing.T) {
	h := newHost(t)
	d := draft(h.ids.next(), open(10*time.Minute, start), start)
	if r := h.offer(sign(t, d, "sam")); r.Code != "" {
		t.Fatal(r)
	}
	h.clock.pass(4 * time.Minute)
	h.shop.root.Revoked = []string{fingerprint("sam")}
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	h.wantOpen(false)
	if r := h.offer(sign(t, d, "ada")); r.Code != "" {
		t.Fatal(r)
	}
	h.wantOpen(true)
	h.crash()
	h.wantOpen(true)
	h.clock.pass(6 * time.Minute)
	h.wantOpen(false)
}

func TestWhatWasOpenedInTimeRunsOnWhenThePolicyExpires(t *testing.T) {
	h := newHost(t)
	state := h.shop.states["payments"]
	state.Expires = start.Add(5 * time.Minute)
	h.shop.states["payments"] = state
	h.start()
	h.take(open(10*time.Minute, start))
	_, late := h.make(open(15*time.Minute, start))
	h.clock.pass(6 * time.Minute)
	h.wantOpen(true)
	h.refuses(late, model.CodePolicyExpired)
	h.crash()
	h.wantOpen(true)
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	h.wantOpen(true)
	h.clock.pass(4 * time.Minute)
	h.wantOpen(false)
}

func TestAClockThatIsNotFitOpensNothing(t *testing.T) {
	h := newHost(t)
	id, token := h.make(open(10*time.Minute, start))
	h.clock.now.State = model.ClockUnsynced
	h.refuses(token, model.CodeClockUnfit)
	h.take(shed(3))
	h.wantTier("checkout", 3)
	if got := h.Report(h.clock.Now()).Clock.State; got != model.ClockUnsynced {
		t.Errorf("the report says %q", got)
	}
	h.clock.pass(time.Minute)
	h.clock.now.State = model.ClockUnknown
	h.Advance(h.clock.Now())
	h.wantOpen(true)
	if h.refused(id) != "" {
		t.Error("it is open and still reported as refused")
	}
	h.clock.now.State = model.ClockUnsynced
	h.wantOpen(true) // accepted with a fit clock, it runs to its end
	h.crash()
	h.wantOpen(false) // but a process that starts anew cannot know the time
	if got := h.refused(id); got != model.CodeClockUnfit {
		t.Errorf("the report says %q", got)
	}
	h.clock.pass(time.Minute)
	h.clock.now.State = model.ClockOK
	h.Advance(h.clock.Now())
	h.wantOpen(true)
	h.clock.pass(8 * time.Minute)
	h.wantOpen(false)
}

func TestAWallClockBehindWhatWasProvedOpensNothing(t *testing.T) {
	h := newHost(t)
	h.clock.pass(10 * time.Minute)
	h.take(shed(1)) // proves ten past three
	_, token := h.make(open(10*time.Minute, start.Add(5*time.Minute)))
	h.clock.set(-2*time.Minute - time.Second)
	h.refuses(token, model.CodeClockUnfit)
	r := h.Report(h.clock.Now())
	if r.Clock.State != model.ClockBehind || !r.Clock.Floor.Equal(start.Add(10*time.Minute)) {
		t.Errorf("clock: %+v", r.Clock)
	}
	h.clock.reboot(0)
	h.crash()
	h.refuses(token, model.CodeClockUnfit)
	h.clock.set(time.Second)
	if r := h.offer(token); r.Code != "" {
		t.Errorf("two minutes behind: %+v", r)
	}

	h.clock.pass(10 * time.Minute)
	h.Advance(h.clock.Now()) // what has passed since is proved as well
	_, token = h.make(open(15*time.Minute, start.Add(10*time.Minute)))
	h.clock.reboot(0)
	h.clock.set(-time.Minute)
	h.crash()
	h.refuses(token, model.CodeClockUnfit)
}

func TestTheTokenItselfProvesThatItsTimeHasCome(t *testing.T) {
	h := newHost(t)
	_, token := h.make(open(10*time.Minute, start.Add(3*time.Minute)))
	h.refuses(token, model.CodeClockUnfit)        // three minutes ahead of this host's clock
	_, late := h.make(open(2*time.Minute, start)) // not yet over by the wall clock
	h.refuses(late, model.CodeExpired)
}

func TestTheWaitIsUntilTheNextChange(t *testing.T) {
	h := newHost(t)
	if wait := h.Advance(h.clock.Now()); wait != engine.Never {
		t.Errorf("nothing is held, and something changes in %s", wait)
	}
	h.take(open(4*time.Second, start))
	var waits []time.Duration
	for range 3 {
		wait := h.Advance(h.clock.Now())
		waits = append(waits, wait)
		if wait == engine.Never {
			break
		}
		h.clock.pass(wait)
	}
	if want := []time.Duration{4 * time.Second, engine.Never}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}
