// Package carriers holds what brings signed tokens to a reader: a watched file
// here, key-value stores and flag services in packages below.
//
// A carrier only delivers. It cannot mint authority, so nothing here verifies a
// signature or judges a directive, and what it delivers is offered to an engine
// or an audit fold that does. What was delivered is never taken back: a carrier
// that is lost, empty or wiped changes nothing on a host but the age of its
// source.
//
// May import: model, directive, untrusted. Must never decide on a token, drop
// one because of its content, or print.
package carriers
