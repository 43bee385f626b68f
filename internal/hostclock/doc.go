// Package hostclock is the machine's own clock: wall time, time since boot that
// goes on through suspend, the name of the boot, and whether the system says
// that its wall clock is synchronised.
//
// May import: model, golang.org/x/sys/unix. It is the only place besides main
// programs that asks the machine what time it is.
package hostclock
