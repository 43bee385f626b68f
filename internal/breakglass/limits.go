package breakglass

import "time"

// Limits of what we take from a backend.
const (
	maxWord      = 64      // bytes of a code, a version, a phase
	maxName      = 256     // bytes of a target, an owner, a remote id
	maxSentence  = 600     // bytes of anything meant to be read
	maxFindings  = 64      // answers of one Check
	maxDepends   = 64      // dependencies of one backend
	maxOutput    = 16384   // bytes kept of what it prints, the last ones
	maxLine      = 300     // bytes of one line of that
	maxFirstLine = 200     // bytes quoted of what it prints instead of a handshake
	maxProgram   = 1 << 30 // bytes of a foreign backend's file
)

const (
	// drainLimit is how long we read on after a backend was killed: a grandchild
	// that hid from us may hold the pipe for ever.
	drainLimit = 500 * time.Millisecond

	// cleanLimit is how long Open and Close wait for what is left of a backend.
	cleanLimit = 3 * time.Second
)

// Limits are the deadlines of every kind of wait.
type Limits struct {
	Start   time.Duration // from start to an established connection
	Ask     time.Duration // Describe and Configure, which do no remote work
	Check   time.Duration
	Plan    time.Duration
	Act     time.Duration // Apply, Undo: all of it
	Idle    time.Duration // Apply, Undo, Observe: between two signs of life
	Observe time.Duration
	Stop    time.Duration
}

// DefaultLimits are for people who wait at a console: what takes longer is as
// good as dead, and Observe finds out later what it did.
func DefaultLimits() Limits {
	return Limits{
		Start:   10 * time.Second,
		Ask:     5 * time.Second,
		Check:   time.Minute,
		Plan:    30 * time.Second,
		Act:     10 * time.Minute,
		Idle:    2 * time.Minute,
		Observe: time.Minute,
		Stop:    3 * time.Second,
	}
}
