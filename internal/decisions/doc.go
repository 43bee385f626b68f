// Package decisions says whether a directive may be given now, and if not, what
// it would take: Evaluate for one request, Enumerate for the whole matrix, Draft
// to fill a request in, Exposure for the worst case in money, BrokenJourneys for
// what users would miss, EventsNow for the schedule, AssuranceOf for who holds the
// fleet to it, Headline for the one line that matters.
//
// Everything is a pure function of policy, world and request: default-deny,
// independent of the order of its inputs, and total: it never panics, whatever
// it is given.
//
// May import: model, policy. Must never do I/O, read a clock or write a log.
package decisions
