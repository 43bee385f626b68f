// Package worldclock is the one clock of a demo: start + speed x elapsed. The
// world serves it; console, engines, log and the Prometheus API read it, each
// from its own copy that was synchronised once and goes on with the local
// monotonic clock.
//
// Only what the demo shows runs on it. Deadlines of input and output use real
// time, always: a connection does not time out sixty times faster.
//
// May import: model and the standard library. Must never be linked into a path
// that a real fleet uses: real fleets have no such switch.
package worldclock
