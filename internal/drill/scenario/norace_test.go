//go:build !race

package scenario

// Every scenario, and five seeds of those with figures; IC_SEEDS=100 is what the
// document states.
const (
	sparse       = 1
	defaultSeeds = 5
)
