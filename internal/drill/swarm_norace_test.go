//go:build !race

package drill_test

// How many worlds each test lives through unless it is told.
const (
	usualSeeds = 12
	plantSeeds = 2
	twiceSeeds = 4
)
