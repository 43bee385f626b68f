// Package model holds the words everybody uses: Directive, World, Request,
// Verdict, Reading, Report, Money, Instant.
//
// It holds no decisions. Values know how to print and parse themselves and
// nothing more; what is allowed is said in policy and decisions, what is in
// force is said in engine.
//
// May import: the standard library. Must never import another package of this
// module, read a clock, or do I/O.
package model
