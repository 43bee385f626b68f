package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// grantOf is a bypass of one right whose cap per item tells it from the others.
func grantOf(under int64, from, until time.Duration) model.Directive {
	d := open(until, start)
	d.IssuedAt, d.NotBefore, d.Caps.Under = start, start.Add(from), usd(under)
	return d
}

// opens reports whether an item passes that is a cent below a cap.
func (h *host) opens(under int64) bool {
	ok, _ := h.allow(under - 1)
	return ok
}

func TestTheEarliestGrantsCountWhateverTheOrder(t *testing.T) {
	shape := newHost(t)
	var ids, tokens []string
	for _, d := range []model.Directive{
		grantOf(1000, 0, 10*time.Minute), grantOf(2000, time.Second, 10*time.Minute), grantOf(4000, time.Second, 10*time.Minute),
	} {
		id, token := shape.make(d)
		ids, tokens = append(ids, id), append(tokens, token)
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		h := newHost(t)
		h.clock.pass(time.Second)
		for _, i := range order {
			if r := h.offer(tokens[i]); r.Code != "" {
				t.Fatalf("order %v: %s is refused: %s", order, ids[i], r.Code)
			}
		}
		if !h.opens(2000) || h.opens(4000) {
			t.Errorf("order %v: an item under the second cap %v, under the third %v; of three grants the two earliest count", order, h.opens(2000), h.opens(4000))
		}
		if !slices.Equal(h.live(), ids) || h.Report(h.clock.Now()).Posture != directive.Posture(ids) {
			t.Errorf("order %v: the posture is of %v, want all of %v", order, h.live(), ids)
		}
		if h.refused(ids[0]) != "" || h.refused(ids[1]) != "" || h.refused(ids[2]) != model.CodeOverLive {
			t.Errorf("order %v: the report says %v", order, h.Report(h.clock.Now()).Refused)
		}
		h.crash()
		if h.opens(4000) {
			t.Errorf("order %v: a restart has opened the third", order)
		}
	}
}

func TestWhenOneGrantEndsTheNextCountsAndNothingElseEnds(t *testing.T) {
	prepare := func(t *testing.T) (*host, []string) {
		h := newHost(t)
		ids := []string{
			h.take(grantOf(1000, 0, 5*time.Minute)), h.take(grantOf(2000, time.Second, 10*time.Minute)), h.take(grantOf(4000, 2*time.Second, 10*time.Minute)),
		}
		h.clock.pass(2 * time.Second)
		if h.opens(4000) {
			t.Fatal("three are open")
		}
		return h, ids
	}
	t.Run("by its signed end", func(t *testing.T) {
		h, ids := prepare(t)
		h.clock.pass(5*time.Minute - 3*time.Second)
		if h.opens(4000) {
			t.Error("a second too early")
		}
		h.clock.pass(time.Second)
		if !h.opens(4000) || !slices.Equal(h.live(), ids[1:]) || h.refused(ids[2]) != "" {
			t.Errorf("the third is not open: live %v", h.live())
		}
	})
	t.Run("by an ending", func(t *testing.T) {
		h, ids := prepare(t)
		scoped := end(model.Bypass, "close", ids[1])
		scoped.Scope = "checkout"
		h.take(scoped)
		if !h.opens(4000) || !slices.Equal(h.live(), []string{ids[0], ids[2]}) {
			t.Errorf("live are %v", h.live())
		}
	})
	t.Run("by the end of one that was shut", func(t *testing.T) {
		h, ids := prepare(t)
		scoped := end(model.Bypass, "close", ids[2])
		scoped.Scope = "checkout"
		h.take(scoped)
		if h.opens(4000) || !h.opens(2000) || !slices.Equal(h.live(), ids[:2]) {
			t.Errorf("live are %v", h.live())
		}
	})
}

func TestEveryRightHasPlacesOfItsOwn(t *testing.T) {
	h := newHost(t)
	h.take(grantOf(1000, 0, 10*time.Minute))
	h.take(grantOf(2000, 0, 10*time.Minute))
	other := grantOf(4000, 0, 10*time.Minute)
	other.Right = "open-anywhere"
	h.take(other)
	if !h.opens(4000) {
		t.Error("another right has no place")
	}
}

func TestAPolicyThatAllowsFewerShutsTheLatest(t *testing.T) {
	for version, c := range map[int64]struct {
		live int
		open bool
	}{4: {1, false}, 5: {2, true}, 6: {0, false}} {
		h := newHost(t)
		h.take(grantOf(1000, 0, 10*time.Minute))
		second := h.take(grantOf(2000, 0, 10*time.Minute))
		h.shop.version, h.shop.bypass.Live = version, c.live
		if err := h.SetBundle(h.shop.bundle(t), h.clock.Now()); err != nil {
			t.Fatal(err)
		}
		if h.opens(2000) != c.open || h.opens(1000) != (c.live > 0) {
			t.Errorf("with %d at a time: the first %v, the second %v", c.live, h.opens(1000), h.opens(2000))
		}
		if got := h.refused(second) == model.CodeOverLive; got == c.open {
			t.Errorf("with %d at a time the report says %q", c.live, h.refused(second))
		}
	}
}

// TestWhatWasOpenedUnderAPolicyRunsToItsEnd although the policy expires in the
// middle: only what is new is judged by the day on which it comes. A right that
// outlives its document does so until the root expires, and no longer.
func TestWhatWasOpenedUnderAPolicyRunsToItsEnd(t *testing.T) {
	expiry := start.Add(5 * time.Minute)
	for _, c := range []struct {
		name     string
		outlives time.Time // of the right
		root     time.Time
		want     model.Code // of a grant issued after the expiry
	}{
		{"a right of the document", time.Time{}, start.AddDate(1, 0, 0), model.CodePolicyExpired},
		{"a right that outlives it", start.AddDate(0, 1, 0), start.AddDate(1, 0, 0), ""},
		{"a right that outlives the root", start.AddDate(0, 1, 0), expiry, model.CodePolicyExpired},
		{"a right that ends before its document", start, start.AddDate(1, 0, 0), model.CodePolicyExpired},
	} {
		h := newHost(t)
		h.shop.outlives, h.shop.root.Expires = c.outlives, c.root
		state := h.shop.states["payments"]
		state.Expires = expiry
		h.shop.states["payments"] = state
		h.folder = engine.NewMemory()
		h.start()
		first := h.take(grantOf(1000, 0, 10*time.Minute))
		h.clock.pass(5 * time.Minute)
		if !h.opens(1000) {
			t.Errorf("%s: the expiry has closed what was open", c.name)
		}
		_, token := h.make(open(10*time.Minute, h.clock.Now().Wall))
		if r := h.offer(token); r.Code != c.want {
			t.Errorf("%s: a new grant: %q, want %q", c.name, r.Code, c.want)
		}
		h.take(shed(3))
		h.crash()
		if !h.opens(1000) {
			t.Errorf("%s: a restart after the expiry has closed what was open", c.name)
		}
		h.clock.pass(5 * time.Minute)
		if slices.Contains(h.live(), first) {
			t.Errorf("%s: it runs beyond its end", c.name)
		}
	}
}
