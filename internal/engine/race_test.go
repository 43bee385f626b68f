//go:build race

package engine_test

// thinned is how much less of a sweep is tried under the race detector: a sweep is
// one goroutine, which it makes ten times slower and finds nothing in.
const thinned = 8
