//go:build race

package scenario

// Under the race detector a run takes ten times as long: every fifth scenario, and
// fewer seeds, still go through every line.
const (
	sparse       = 5
	defaultSeeds = 1
)
