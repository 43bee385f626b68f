package policy_test

import (
	"testing"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// The example policy has 6 domains, 60 hosts and 17 signatures of 5 people.
func BenchmarkLoadVerify(b *testing.B) {
	dir := b.TempDir()
	opts := policytest.Write(b, dir, policytest.Params())
	for b.Loop() {
		if _, _, err := policy.LoadDir(dir, opts); err != nil {
			b.Fatal(err)
		}
	}
}
