//go:build race

package shipped_test

// sparse is 1 in how many nights is played: under the race detector they take ten
// times as long, and they share no memory.
const sparse = 6
