// Package kernel runs a simulated world: events ordered by (time, sequence) on
// one thread, virtual time, one seeded random stream per component, and a log
// in which the same seed and the same inputs leave the same bytes.
//
// Nothing in the kernel starts a goroutine or waits. Whoever owns it calls Run
// or Step from one goroutine; the only door for others is Post, whose inputs
// become events at the virtual time at which the owner takes them in.
//
// May import: model and the standard library. Must never read the machine's
// clock or its random source, iterate a map into the log, or put a floating
// point number into it.
package kernel
