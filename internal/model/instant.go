package model

import "time"

// ClockState says how far a wall clock can be trusted.
type ClockState string

// Clock states. ClockUnknown is what a platform without a time-sync query
// reports; it does not refuse by itself.
const (
	ClockOK       ClockState = "ok"
	ClockUnsynced ClockState = "unsynchronised"
	ClockBehind   ClockState = "behind"
	ClockUnknown  ClockState = "unknown"
)

// Instant is one reading of every clock that a decision may depend on. Boot is
// CLOCK_BOOTTIME since the boot named by BootID: it goes on through suspend and
// cannot be set by hand.
type Instant struct {
	Wall   time.Time
	Boot   time.Duration
	BootID string
	State  ClockState
}

// Clock is the one way by which time is passed in.
type Clock interface {
	Now() Instant
}
