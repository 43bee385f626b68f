// Package cache keeps the last good answers of a dependency and serves them, marked
// with their age, while it is slow, broken or full: fresh, then stale for a bounded
// time, then refused.
//
// A key says whose answer it is and by which version of the rules he may see it.
// Nothing is ever served under another key, and nothing is kept under a key that
// lacks either. Each answer carries its age. Entries, bytes, and fetches at a time
// are bounded; one fetch serves all who ask for the same; fresh entries are renewed
// early, each at a moment of its own, so that they do not all expire at once.
//
// May import: host/degraded, host/fallback, host/metrics and the standard library. Must never
// serve an answer across scopes, an answer older than its window, or one that its
// check refuses; must never wait longer than the caller has time.
package cache
