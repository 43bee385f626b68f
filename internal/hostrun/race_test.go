//go:build race

package hostrun_test

// herd is smaller where every step costs ten times as much.
const herd = 200
