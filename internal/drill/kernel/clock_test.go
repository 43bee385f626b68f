package kernel

import (
	"io"
	"regexp"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

func TestAHostsClocksFollowVirtualTime(t *testing.T) {
	k := New(1, start, io.Discard)
	c := k.HostClock("checkout-01")
	k.Run(at(90))
	now := c.Now()
	if !now.Wall.Equal(at(90)) || now.Boot != 90*time.Second || now.State != model.ClockOK {
		t.Errorf("after 90 s the host reads %+v", now)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(now.BootID) {
		t.Errorf("boot id %q has not the shape of a boot id", now.BootID)
	}
}

func TestSkewMovesTheWallClockOnly(t *testing.T) {
	k := New(1, start, io.Discard)
	c := k.HostClock("a")
	k.Run(at(10))
	c.SetSkew(20 * time.Minute)
	now := c.Now()
	if !now.Wall.Equal(at(10).Add(20*time.Minute)) || now.Boot != 10*time.Second || now.State != model.ClockOK {
		t.Errorf("20 min ahead reads %+v", now)
	}
}

func TestARebootStartsBoottimeUnderANewID(t *testing.T) {
	k := New(1, start, io.Discard)
	c := k.HostClock("a")
	before := c.Now().BootID
	k.Run(at(10))
	c.SetSkew(time.Hour)
	c.SetState(model.ClockUnsynced)
	c.Reboot()
	k.Run(at(15))
	now := c.Now()
	if now.Boot != 5*time.Second || now.BootID == before || !now.Wall.Equal(at(15)) || now.State != model.ClockOK {
		t.Errorf("after a reboot at 10 s, at 15 s: %+v (boot id before %s)", now, before)
	}
}

func TestAPausedMachineCountsNothingAndDoesNotKnow(t *testing.T) {
	k := New(1, start, io.Discard)
	c := k.HostClock("a")
	k.Run(at(10))
	c.Pause()
	k.Run(at(40))
	c.Pause() // once is enough
	if now := c.Now(); !now.Wall.Equal(at(10)) || now.Boot != 10*time.Second {
		t.Errorf("a paused machine reads %+v", now)
	}
	k.Run(at(70))
	c.Resume()
	c.Resume()
	k.Run(at(75))
	now := c.Now()
	if !now.Wall.Equal(at(15)) || now.Boot != 15*time.Second || now.State != model.ClockOK {
		t.Errorf("5 s after a pause of 60 s: %+v, want a wall clock and a boot time that lack 60 s", now)
	}
	c.SetSkew(0)
	if now := c.Now(); !now.Wall.Equal(at(75)) || now.Boot != 15*time.Second {
		t.Errorf("after synchronisation: %+v", now)
	}
}

func TestBootIDsComeFromTheSeed(t *testing.T) {
	id := func(seed uint64, host string) string {
		return New(seed, start, io.Discard).HostClock(host).Now().BootID
	}
	if id(1, "a") != id(1, "a") || id(1, "a") == id(1, "b") || id(1, "a") == id(2, "a") {
		t.Error("a boot id is not a function of seed and host")
	}
}
