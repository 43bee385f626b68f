// Package fallback counts what was served instead of an answer: one counter per
// dependency and reason, and how old it was. A fallback that nobody counts looks
// like success.
//
//	counters, err := fallback.New(fallback.Config{Dependencies: []string{"recommendations"}})
//	…
//	counters.Count("recommendations", fallback.ReasonOf(err))            // a default was served
//	counters.Stale("recommendations", fallback.ReasonOf(err), age)       // an old answer was served
//
// May import: host/metrics and the standard library. Must never have more labels
// than its limit, whatever it is called with.
package fallback
