package hostclock

import (
	"os"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/sys/unix"
)

// bootID is what the kernel names this boot; "" where it does not say.
func bootID() string {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// sinceBoot is CLOCK_BOOTTIME: Go's monotonic clock stands still in suspend.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// staUnsync is STA_UNSYNC of the kernel's clock discipline.
const staUnsync = 0x40

// synced asks the kernel's clock discipline; containers may not.
func synced() model.ClockState {
	var tx unix.Timex
	if _, err := unix.Adjtimex(&tx); err != nil {
		return model.ClockUnknown
	}
	if tx.Status&staUnsync != 0 {
		return model.ClockUnsynced
	}
	return model.ClockOK
}
