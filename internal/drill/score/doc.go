// Package score says how a rehearsal went. A player of scenarios fills a Record:
// what happened, when, and samples of the world. Of turns the record into a
// Score: separate axes that are never added up to one number, beside the same
// axes of the baseline and of the last run, as a table, as JSON and as one
// self-contained HTML page with the timeline drawn.
//
// Everything is an integer: milliseconds of virtual time, cents, parts per
// million. What the record does not tell is UNKNOWN, never zero.
//
// May import: audit, directive, model, untrusted and the standard library. Must
// never judge people by one composite number, read a clock, a file or the network,
// or print a text of the record unescaped.
package score
