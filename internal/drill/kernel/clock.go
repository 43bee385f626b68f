package kernel

import (
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// HostClock is the pair of clocks of one simulated host: a wall clock that can
// be wrong and CLOCK_BOOTTIME, which cannot be set but starts again at a boot.
// It may be read from any goroutine if its time source may.
type HostClock struct {
	source func() time.Time
	ids    *Stream

	mu     sync.Mutex
	skew   time.Duration // wall clock minus true time
	booted time.Time     // moves forward by every pause: a stopped machine counts nothing
	bootID string
	state  model.ClockState
	frozen time.Time // when the machine was stopped; zero: it runs
}

var _ model.Clock = (*HostClock)(nil)

// NewHostClock makes the clock of a host that boots now, exact and
// synchronised. source is the true time: a kernel's Now, or the demo's clock.
// ids is where boot ids come from.
func NewHostClock(source func() time.Time, ids *Stream) *HostClock {
	c := &HostClock{source: source, ids: ids}
	c.Reboot()
	return c
}

// HostClock makes the clock of host on the kernel's virtual time.
func (k *Kernel) HostClock(host string) *HostClock {
	return NewHostClock(k.Now, k.Stream("clock/"+host))
}

// Now reads every clock of the host.
func (c *HostClock) Now() model.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.trueNow()
	return model.Instant{Wall: now.Add(c.skew).UTC(), Boot: now.Sub(c.booted), BootID: c.bootID, State: c.state}
}

// SetSkew sets how far the wall clock is ahead of true time (behind, when
// negative). It does not change what the host says about its synchronisation:
// a clock that is wrong and believes itself right is the dangerous one.
func (c *HostClock) SetSkew(ahead time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = ahead
}

// SetState sets what the host says about its synchronisation.
func (c *HostClock) SetState(s model.ClockState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

// Reboot starts CLOCK_BOOTTIME again under a new boot id, with the wall clock
// set right and synchronised, as a machine that has just asked its time server.
func (c *HostClock) Reboot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = time.Time{}
	c.skew = 0
	c.state = model.ClockOK
	c.booted = c.source()
	c.bootID = bootID(c.ids)
}

// Pause stops the machine as a hypervisor does: no clock of it counts, and it
// does not know. Pausing twice is pausing once.
func (c *HostClock) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen.IsZero() {
		c.frozen = c.source()
	}
}

// Resume lets the machine run on. Its wall clock is behind by the length of the
// pause, and its CLOCK_BOOTTIME lacks it, until SetSkew or a reboot.
func (c *HostClock) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen.IsZero() {
		return
	}
	lost := c.source().Sub(c.frozen)
	c.frozen = time.Time{}
	c.skew -= lost
	c.booted = c.booted.Add(lost)
}

func (c *HostClock) trueNow() time.Time {
	if !c.frozen.IsZero() {
		return c.frozen
	}
	return c.source()
}

// bootID has the shape of the kernel's boot_id: 8-4-4-4-12 hex digits.
func bootID(ids *Stream) string {
	h := ids.Hex(16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
