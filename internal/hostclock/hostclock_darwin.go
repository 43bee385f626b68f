package hostclock

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/sys/unix"
)

// bootID is what the kernel names this boot; "" where it does not say.
func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// sinceBoot is the continuous clock, which goes on in sleep.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// synced: the system has no query for it that a user may make.
func synced() model.ClockState { return model.ClockUnknown }
