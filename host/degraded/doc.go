// Package degraded says in an answer that it is not the whole truth: which parts
// are old, which are missing, and as of when. In the body:
//
//	"degraded": {"stale": ["reviews"], "missing": ["points"], "as_of": "2026-11-30T03:17:00Z"}
//
// and for gateways in one header:
//
//	X-Degraded: stale=(reviews), missing=(points), as_of=@1796008620
//
// A Marker collects both while an answer is put together, from any number of
// goroutines. A Panel is one part of the answer, AVAILABLE, STALE or UNAVAILABLE;
// a Number is one that may be absent. What is not known is null: never 0, never an
// empty list, never a guess.
//
// May import: the standard library. Must never turn what is absent into a value.
package degraded
