package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

func TestTheTierIsTheHighestOfWhatIsLive(t *testing.T) {
	h := newHost(t)
	h.take(shed(1))
	scoped := shed(3)
	scoped.Scope = "checkout"
	h.take(scoped)
	h.wantTier("checkout", 3)
	h.wantTier("catalog", 1)
	h.take(shed(4))
	h.wantTier("checkout", 4)
	h.wantTier("catalog", 2) // beyond its ladder: its last tier
	h.wantTier("unheard-of", 4)
}

func TestALostLadderDoesNotLiftASheds(t *testing.T) {
	h := newHost(t)
	h.take(shed(3))
	ladder := h.shop.states["ladder"]
	ladder.Active = false
	h.shop.states["ladder"] = ladder
	if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
		t.Fatal(err)
	}
	h.wantTier("checkout", 3)
	h.crash()
	h.wantTier("checkout", 3)
}

func TestAnEndingEndsWhatItListsOfItsKindAndScope(t *testing.T) {
	h := newHost(t)
	first, later := h.take(shed(2)), h.take(shed(3))
	scoped := shed(4)
	scoped.Scope = "checkout"
	other := h.take(scoped)
	off := h.take(model.Directive{Kind: model.Off, Feature: "reviews", Right: "off"})
	h.take(step(3, 100, first, other, off)) // the newer shed has not been seen by its signer
	h.wantTier("catalog", 2)
	if live := h.live(); slices.Contains(live, first) || !slices.Contains(live, later) || !slices.Contains(live, other) || !slices.Contains(live, off) {
		t.Errorf("live are %v", live)
	}
	if !h.Off("reviews", "catalog", h.clock.Now()) {
		t.Error("an end of sheds ended an off")
	}
	h.take(end(model.Off, "on", off))
	if h.Off("reviews", "catalog", h.clock.Now()) {
		t.Error("the feature is still off")
	}
}

func TestAnEndingMayArriveFirst(t *testing.T) {
	h := newHost(t)
	id, token := h.make(shed(3))
	h.take(step(3, 100, id))
	h.wantTier("checkout", 2)
	h.refuses(token, model.CodeEnded)
	if got := h.refused(id); got != model.CodeEnded {
		t.Errorf("the report says %q", got)
	}
	h.crash()
	h.refuses(token, model.CodeEnded)
	h.wantTier("checkout", 2)
}

func TestARecoveryHoldsItsTierUntilItIsEnded(t *testing.T) {
	h := newHost(t)
	bucket := directive.Bucket(h.name, step(1, 1, h.ids.next()).Ramp)
	id := h.take(shed(2))
	low := h.take(step(2, bucket, id)) // this host is the first that is not in it
	h.wantTier("checkout", 2)
	high := h.take(step(2, bucket+1, id, low))
	h.wantTier("checkout", 1)
	h.crash()
	h.wantTier("checkout", 1)
	last := h.take(step(1, 100, id, low, high))
	h.wantTier("checkout", 0)
	if live := h.live(); !slices.Equal(live, []string{last}) {
		t.Errorf("live are %v, want the last step", live)
	}
	r := h.Report(h.clock.Now())
	if r.Posture != directive.Posture([]string{last}) {
		t.Error("the posture is not that of the live ids")
	}
}

func TestAShedIsNotLiftedByAWallClockThatIsSetBack(t *testing.T) {
	d := shed(3)
	d.IssuedAt, d.NotBefore = start, start.Add(time.Minute)

	h := newHost(t)
	h.take(d)
	h.wantTier("checkout", 0)
	h.clock.pass(time.Minute)
	h.wantTier("checkout", 3)
	h.clock.set(-time.Hour)
	h.wantTier("checkout", 3)

	h = newHost(t)
	_, token := h.make(d)
	h.clock.pass(2 * time.Minute) // it arrives late, and so proves little
	h.offer(token)
	h.clock.set(-time.Hour)
	h.wantTier("checkout", 3)
	h.crash()
	h.wantTier("checkout", 3)
}

func TestFreezesAndPingsAreReportedWhileTheyLast(t *testing.T) {
	h := newHost(t)
	freeze := h.take(model.Directive{Kind: model.Freeze, Right: "freeze", NotAfter: start.Add(time.Minute)})
	ping := h.take(model.Directive{Kind: model.Ping, Right: "ping", NotAfter: start.Add(2 * time.Minute)})
	if live := h.live(); !slices.Equal(live, []string{freeze, ping}) {
		t.Errorf("live are %v", live)
	}
	h.clock.pass(time.Minute)
	if live := h.live(); !slices.Equal(live, []string{ping}) {
		t.Errorf("after a minute live are %v", live)
	}
	again := h.take(model.Directive{Kind: model.Freeze, Right: "freeze", IssuedAt: h.clock.Now().Wall, NotAfter: start.Add(time.Hour)})
	h.take(end(model.Freeze, "thaw", again))
	if live := h.live(); !slices.Equal(live, []string{ping}) {
		t.Errorf("after the thaw live are %v", live)
	}
}

func TestTwoStatementsUnderOneIDAreBothHeld(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		h := newHost(t)
		id := h.ids.next()
		tokens := []string{
			sign(t, draft(id, shed(2), start), "ada"),
			sign(t, draft(id, shed(3), start), "bea"),
		}
		for _, i := range order {
			h.offer(tokens[i])
		}
		h.wantTier("checkout", 3)
		if live := h.live(); !slices.Equal(live, []string{id}) {
			t.Errorf("live are %v", live)
		}
		h.take(step(3, 100, id))
		h.wantTier("checkout", 2)
	}
}

func TestTheSameStatementTwiceIsOne(t *testing.T) {
	h := newHost(t)
	d := draft(h.ids.next(), shed(2), start)
	tokens := []string{sign(t, d, "ada"), sign(t, d, "ada", "bea"), sign(t, d, "bea", "ada"), sign(t, d, "ada")}
	for i, token := range tokens {
		if r := h.offer(token); r.Code != "" || r.New != (i == 0) {
			t.Errorf("offer %d: %+v", i, r)
		}
	}
	if n := len(h.Report(h.clock.Now()).Live); n != 1 {
		t.Errorf("%d are live", n)
	}
}

func TestHeadsOfLogsAreKeptAndForksAreShown(t *testing.T) {
	h := newHost(t)
	head := func(size int64, root byte) model.LogHead {
		return model.LogHead{Origin: fleet + "/inc-1/s1", Size: size, Root: string(slices.Repeat([]byte{root}, 64))}
	}
	forks := []model.LogHead{head(1, 'a'), head(1, 'b')}
	for _, one := range append(slices.Clone(forks), head(2, 'a'), head(3, 'a'), head(4, 'a'), head(5, 'a'), head(6, 'a')) {
		d := model.Directive{Kind: model.Ping, Right: "ping", Log: one, NotAfter: start.Add(time.Minute)}
		h.take(d)
	}
	h.clock.pass(48 * time.Hour) // the pings are forgotten, what they proved is not
	for range 6 {
		shown := h.Report(h.clock.Now()).Heads
		for _, want := range append(slices.Clone(forks), head(6, 'a')) {
			if !slices.Contains(shown, want) {
				t.Errorf("%v is not shown: %v", want, shown)
			}
		}
		if len(shown) > 8 {
			t.Errorf("%d heads are shown", len(shown))
		}
		h.start()
	}
	if h.opened.Held != 0 {
		t.Errorf("%d statements are still held", h.opened.Held)
	}
}
