//go:build race

package drill_test

// The race detector makes a world ten times as dear, and looks for something that
// shows in few of them.
const (
	usualSeeds = 2
	plantSeeds = 1
	twiceSeeds = 1
)
