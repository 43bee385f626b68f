package host_test

import (
	"strings"
	"testing"

	"github.com/degradedmode/ic/host"
)

func BenchmarkTier(b *testing.B) {
	s := newShop(b)
	s.cfg.Directives = s.shed(2)
	h := s.open()
	b.ReportAllocs()
	for b.Loop() {
		if h.Tier("checkout") != 2 {
			b.Fatal("not shed")
		}
	}
}

func BenchmarkFeature(b *testing.B) {
	s := newShop(b)
	s.cfg.Directives = s.off("recommendations")
	h := s.open()
	b.ReportAllocs()
	for b.Loop() {
		if on, _ := h.Feature("recommendations"); on {
			b.Fatal("on")
		}
	}
}

// BenchmarkAllowRefused asks for an item at the cap of an open bypass. One that
// passes may have to reserve the next block of the budget on disk first.
func BenchmarkAllowRefused(b *testing.B) {
	s := newShop(b)
	s.cfg.Directives = strings.Join([]string{s.shed(2), s.bypass()}, " ")
	h := s.open()
	b.ReportAllocs()
	for b.Loop() {
		if ok, why := h.Allow("payment-risk", 5000, "USD"); ok || why != host.OverAmount {
			b.Fatal(ok, why)
		}
	}
}
