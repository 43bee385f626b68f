// Package faults names what can go wrong in a drill. A fault has a name, one
// sentence, a way in and a way out; what it pulls on belongs to the world that
// builds the set.
//
// May import: the standard library. Must never know how a fault is done, so
// that a simulated and a live world share the names.
package faults
