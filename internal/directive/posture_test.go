package directive_test

import (
	"fmt"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// The vectors below were made with sha256sum and with Python, not with this
// package. They are part of the format.
const (
	firstID  = "01JDZ8K3V5Q2M7N9P4R6S8T0W1"
	secondID = "01JDZ8K3V5Q2M7N9P4R6S8T0W2"
)

func TestPostureIsTheHashOfTheSortedSetOfIDs(t *testing.T) {
	const none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	const one = "bdb8842563fb4d9dd5b3181d9dd0e186ada3aaea9d382d1d113ee4a69a22cb80"
	const both = "581228059fdc4fb1619a7f168e8e0c979f2e6145eee2379292d1fe1ec15d2527"
	for _, c := range []struct {
		ids  []string
		want string
	}{
		{nil, none},
		{[]string{firstID}, one},
		{[]string{firstID, firstID}, one},
		{[]string{firstID, secondID}, both},
		{[]string{secondID, firstID}, both},
	} {
		if got := directive.Posture(c.ids); got != c.want {
			t.Errorf("Posture(%v) = %s, want %s", c.ids, got, c.want)
		}
	}
}

func TestPostureLeavesItsArgumentAlone(t *testing.T) {
	ids := []string{secondID, firstID, secondID}
	directive.Posture(ids)
	if ids[0] != secondID || ids[1] != firstID || ids[2] != secondID {
		t.Errorf("ids are now %v", ids)
	}
}

func TestBucketIsFixedByTheFormat(t *testing.T) {
	for _, c := range []struct {
		host string
		want int
	}{{"checkout-01", 90}, {"checkout-02", 95}, {"edge-07", 24}, {"payment-risk-12", 25}, {"", 45}} {
		if got := directive.Bucket(c.host, firstID); got != c.want {
			t.Errorf("Bucket(%q) = %d, want %d", c.host, got, c.want)
		}
	}
}

func TestARampCoversTheShareOfHostsThatItSays(t *testing.T) {
	const hosts = 10_000
	for percent, want := range map[int]int{10: 1014, 50: 4969, 100: hosts} {
		got := 0
		for i := range hosts {
			if directive.Bucket(fmt.Sprintf("host-%04d", i), firstID) < percent {
				got++
			}
		}
		if got != want {
			t.Errorf("%d%% covers %d of %d hosts, want %d", percent, got, hosts, want)
		}
	}
}

func TestTierOnHost(t *testing.T) {
	step := func(percent int) model.Directive {
		return model.Directive{Kind: model.End, Ends: model.Shed, From: 3, To: 2, Ramp: firstID, Percent: percent}
	}
	for _, c := range []struct {
		what string
		d    model.Directive
		want int
	}{
		{"a shed", model.Directive{Kind: model.Shed, Tier: 3}, 3},
		{"a step that has not reached bucket 24", step(24), 3},
		{"a step that has reached bucket 24", step(25), 2},
		{"the last step", step(100), 2},
		{"an end of a bypass", model.Directive{Kind: model.End, Ends: model.Bypass}, 0},
		{"a bypass", model.Directive{Kind: model.Bypass}, 0},
	} {
		if got := directive.TierOn(c.d, "edge-07"); got != c.want {
			t.Errorf("%s asks edge-07 for tier %d, want %d", c.what, got, c.want)
		}
	}
}
