package hostclock

import (
	"strconv"
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

// Clock reads this machine's clocks. It is safe for concurrent use.
type Clock struct {
	sync Sync
	boot string
}

// New reads the name of the boot once: it does not change under a process. A
// boot that the kernel does not name counts as a new one at every start, so that
// nobody takes the time since this boot for that of another.
func New(sync Sync) *Clock {
	boot := bootID()
	if boot == "" {
		boot = "unnamed-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return &Clock{sync: sync, boot: boot}
}

// Now implements model.Clock.
func (c *Clock) Now() model.Instant {
	state := synced()
	if state == model.ClockUnsynced && c.sync == Trust {
		state = model.ClockUnknown
	}
	return model.Instant{Wall: time.Now(), Boot: sinceBoot(), BootID: c.boot, State: state}
}
