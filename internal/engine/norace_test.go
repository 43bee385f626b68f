//go:build !race

package engine_test

const thinned = 1
