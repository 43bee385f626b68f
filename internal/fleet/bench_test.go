package fleet_test

import (
	"fmt"
	"testing"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
)

// BenchmarkSkew is what one look at a large fleet costs the console: 10,000
// hosts that hold 20 directives each, half of them lacking one.
func BenchmarkSkew(b *testing.B) {
	var issued []model.Issued
	var ids []string
	for i := range 20 {
		s := shed("*")
		s.Directive.ID = fmt.Sprintf("01JDZ8K3V5Q2M7N9P4R6S8T0%02d", i)
		issued = append(issued, s)
		ids = append(ids, s.Directive.ID)
	}
	hosts := make([]model.HostView, 10_000)
	for i := range hosts {
		hosts[i] = seen(fmt.Sprint(i), t0, ids[i%2:]...)
	}
	for b.Loop() {
		if sum := fleet.Skew(issued, hosts, 0, t0); sum.Lacking != len(hosts)/2 {
			b.Fatalf("lacking %d", sum.Lacking)
		}
	}
}
