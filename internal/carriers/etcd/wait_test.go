package etcd

import (
	"testing"
	"time"
)

func TestWaitsAreCappedBeforeTheyAreSpread(t *testing.T) {
	for _, c := range []struct {
		failures int
		jitter   float64
		want     time.Duration
	}{
		{0, 0, 125 * time.Millisecond},
		{0, 0.5, 250 * time.Millisecond},
		{1, 0.5, 500 * time.Millisecond},
		{5, 0.5, 8 * time.Second},
		{6, 0.5, 10 * time.Second},
		{6, 0, 5 * time.Second},
		{6, 0.75, 12500 * time.Millisecond},
		{1 << 30, 0.5, 10 * time.Second},
	} {
		if got := waitAfter(c.failures, c.jitter); got != c.want {
			t.Errorf("waitAfter(%d, %v) = %s, want %s", c.failures, c.jitter, got, c.want)
		}
	}
}
