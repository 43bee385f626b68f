package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

func dim(scope string, target, floor, ceiling int) model.Directive {
	return model.Directive{Kind: model.Dimmer, Scope: scope, TargetMS: target, Floor: floor, Ceiling: ceiling, Right: "dim"}
}

func (h *host) wantDimmer(service string, want engine.Dimming) {
	h.t.Helper()
	got, ok := h.Dimmer(service, h.clock.Now())
	if got != want || ok != (want != engine.Dimming{}) {
		h.t.Errorf("dimmer of %s is %+v (%v), want %+v", service, got, ok, want)
	}
}

func TestOfOverlappingDimmersTheLowestOfEachBoundCounts(t *testing.T) {
	h := newHost(t)
	h.wantDimmer("checkout", engine.Dimming{})
	h.take(dim("checkout", 300, 10, 60))
	h.wantDimmer("checkout", engine.Dimming{TargetMS: 300, Floor: 10, Ceiling: 60})
	h.wantDimmer("catalog", engine.Dimming{})
	everywhere := h.take(dim(model.AnyScope, 500, 5, 80))
	h.wantDimmer("checkout", engine.Dimming{TargetMS: 300, Floor: 5, Ceiling: 60})
	h.wantDimmer("catalog", engine.Dimming{TargetMS: 500, Floor: 5, Ceiling: 80})
	h.take(dim("checkout", 200, 20, 20))
	h.wantDimmer("checkout", engine.Dimming{TargetMS: 200, Floor: 5, Ceiling: 20})
	ending := end(model.Dimmer, "undim", everywhere)
	h.take(ending)
	h.wantDimmer("checkout", engine.Dimming{TargetMS: 200, Floor: 10, Ceiling: 20})
	h.wantDimmer("catalog", engine.Dimming{})
	h.crash()
	h.wantDimmer("checkout", engine.Dimming{TargetMS: 200, Floor: 10, Ceiling: 20})
}

func TestADimmerEndsByItself(t *testing.T) {
	h := newHost(t)
	d := dim("checkout", 300, 10, 60)
	d.NotAfter = h.clock.Now().Wall.Add(time.Minute)
	h.take(d)
	h.clock.pass(time.Minute)
	h.wantDimmer("checkout", engine.Dimming{})
}

func TestADimmerBeyondItsRightIsRefused(t *testing.T) {
	h := newHost(t)
	for _, d := range []model.Directive{dim("checkout", 99, 10, 60), dim("checkout", 1001, 10, 60), dim("checkout", 300, 1, 60)} {
		_, token := h.make(d)
		h.refuses(token, model.CodeOverCap)
	}
	h.wantDimmer("checkout", engine.Dimming{})
}

func happened(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestWhoeverWaitsIsToldOfEachChangeAndOfNothingElse(t *testing.T) {
	h := newHost(t)
	now := h.clock.Now
	_, token := h.make(shed(2))
	_, opening := h.make(open(time.Minute, now().Wall))
	for _, c := range []struct {
		what string
		do   func()
		told bool
	}{
		{"a shed", func() { h.offer(token) }, true},
		{"the same shed", func() { h.offer(token) }, false},
		{"a bypass", func() { h.offer(opening) }, true},
		{"the clock, before anything is due", func() { h.clock.pass(time.Second); h.Advance(now()) }, false},
		{"the end of the bypass", func() { h.clock.pass(time.Minute); h.Advance(now()) }, true},
		{"a policy", func() {
			h.shop.version++
			if err := h.SetBundle(h.shop.bundle(t), now()); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a failed read", func() { h.Seen("etcd", nil, errors.New("down"), now()) }, false},
		{"the first read of a source", func() { h.Seen("etcd", nil, nil, now()) }, true},
		{"the second", func() { h.Seen("etcd", nil, nil, now()) }, false},
		{"the first look at a file", func() { h.Unchanged("file", "", now()) }, true},
		{"the second look", func() { h.Unchanged("file", "", now()) }, false},
	} {
		next := h.Changed()
		if c.do(); happened(next) != c.told {
			t.Errorf("%s: told %v, want %v", c.what, !c.told, c.told)
		}
	}
}

func TestAHostSaysWhetherItReadItsFolderAndItsSources(t *testing.T) {
	h := newHost(t)
	if h.opened.Read {
		t.Error("a new folder was read")
	}
	h.Seen("etcd", nil, errors.New("down"), h.clock.Now())
	if h.SourceRead("etcd") || h.SourceRead("file") {
		t.Error("a source counts as read that never was")
	}
	h.Seen("etcd", nil, nil, h.clock.Now())
	h.Seen("etcd", nil, errors.New("down"), h.clock.Now())
	if !h.SourceRead("etcd") {
		t.Error("a source that was read is forgotten when it fails")
	}
	if h.crash(); !h.opened.Read {
		t.Error("a folder without statements was not read")
	}
}
