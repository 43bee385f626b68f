package engine_test

import (
	"crypto/ed25519"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
)

func BenchmarkTmpDirectiveVerify(b *testing.B) {
	h := newHost(b)
	_, token := h.make(shed(2))
	for b.Loop() {
		if _, err := directive.Verify(token, directive.Production, fleet); err != nil {
			b.Fatal(err)
		}
	}
}
func BenchmarkTmpBare(b *testing.B) {
	public, private, _ := ed25519.GenerateKey(nil)
	m := make([]byte, 130)
	sig := ed25519.Sign(private, m)
	for b.Loop() {
		ed25519.Verify(public, m, sig)
	}
}
