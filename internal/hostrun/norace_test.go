//go:build !race

package hostrun_test

// herd is the fleet of the claim.
const herd = 1000
