package hostclock

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Sync says what an unsynchronised clock means. Many machines in data centres
// are kept by a hypervisor and say "unsynchronised" all their lives; on those,
// requiring it would forbid every bypass.
type Sync int

const (
	// Trust reports an unsynchronised clock as unknown, which refuses nothing. A
	// clock that is behind what signed statements prove is refused all the same.
	Trust Sync = iota
	// Require reports it as unsynchronised, and nothing is loosened.
	Require
)

// carry is how long what the kernel said is carried on by Go's clock, which needs
// no system call: services ask with every request. Whatever wakes a machine up or
// moves its wall clock is seen at once.
const carry = 10 * time.Millisecond

// Clock reads this machine's clocks. It is safe for concurrent use.
type Clock struct {
	sync Sync
	boot string

	now    func() time.Time
	kernel func() (time.Duration, model.ClockState)
	last   atomic.Pointer[reading]
}

// reading is what the kernel said at a time.
type reading struct {
	at    time.Time
	boot  time.Duration
	state model.ClockState
}

// New reads the name of the boot once: it does not change under a process. A
// boot that the kernel does not name counts as a new one at every start, so that
// nobody takes the time since this boot for that of another.
func New(sync Sync) *Clock {
	boot := bootID()
	if boot == "" {
		boot = "unnamed-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return &Clock{sync: sync, boot: boot, now: time.Now, kernel: func() (time.Duration, model.ClockState) { return sinceBoot(), synced() }}
}

// Now implements model.Clock.
func (c *Clock) Now() model.Instant {
	now := c.now()
	r := c.last.Load()
	if r == nil || !r.carries(now) {
		now, r = c.ask()
	}
	return model.Instant{Wall: now, Boot: r.boot + now.Sub(r.at), BootID: c.boot, State: r.state}
}

// carries compares both of Go's clocks: the monotonic one stands still while the
// machine sleeps.
func (r *reading) carries(now time.Time) bool {
	wall := now.Round(0).Sub(r.at.Round(0))
	return now.Sub(r.at) < carry && wall < carry && wall > -carry
}

// ask reads the kernel's clocks.
func (c *Clock) ask() (time.Time, *reading) {
	before := c.now()
	boot, state := c.kernel()
	if state == model.ClockUnsynced && c.sync == Trust {
		state = model.ClockUnknown
	}
	r := &reading{at: c.now(), boot: boot, state: state}
	if r.at.Sub(before) < carry/10 { // what took longer would be carried on as wrong as that
		c.last.Store(r)
	}
	return r.at, r
}
