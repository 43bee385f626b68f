package hostclock

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

func TestTheClockGoesForwardAndNamesItsBoot(t *testing.T) {
	c := New(Trust)
	first := c.Now()
	second := c.Now()
	if second.Boot < first.Boot || first.Boot <= 0 {
		t.Errorf("time since boot went from %s to %s", first.Boot, second.Boot)
	}
	if first.BootID == "" || first.BootID != second.BootID {
		t.Errorf("the boot is named %q and %q", first.BootID, second.BootID)
	}
	if d := time.Since(first.Wall); d < 0 || d > time.Minute {
		t.Errorf("wall time is %s off", d)
	}
}

func TestTrustNeverReportsAnUnsynchronisedClock(t *testing.T) {
	if s := New(Trust).Now().State; s == model.ClockUnsynced {
		t.Errorf("state %s", s)
	}
	if require, trust := New(Require).Now().State, New(Trust).Now().State; require != trust && require != model.ClockUnsynced {
		t.Errorf("require says %s, trust says %s", require, trust)
	}
}
