// Package signals reads the signals of a policy from Prometheus, or from
// anything that speaks its HTTP API, into model.Reading.
//
// A number is hard to earn here. A signal is one series with one finite float,
// young enough by the time at which it was collected, from an answer that says
// it is whole. Everything else is a state with a sentence: no data, stale,
// partial, error. None of them ever reads as zero, since a zero that is a
// failure looks like health.
//
// May import: model, untrusted, client_golang/api. Must never follow a redirect,
// write a token anywhere but into the request, judge a reading, or wait without
// a deadline.
package signals
