//go:build !race

package shipped_test

// sparse: every night is played.
const sparse = 1
