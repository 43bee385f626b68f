package directive_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"golang.org/x/crypto/ssh"
)

// What a host pays for one token, in units of what nobody can avoid: one bare
// Ed25519 verification of the same payload, measured in the same run by turns.
func BenchmarkVerify(b *testing.B) {
	d := shed()
	payload := encode(b, d)
	token := signed(b, d, directive.Production, ada(b))
	sig, err := ada(b).Sign(nil, payload)
	if err != nil {
		b.Fatal(err)
	}
	key := ada(b).PublicKey().(ssh.CryptoPublicKey).CryptoPublicKey().(ed25519.PublicKey)
	var whole, bare time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if _, err := directive.Verify(token, directive.Production, fleet); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if !ed25519.Verify(key, payload, sig.Blob) {
			b.Fatal("the bare signature does not verify")
		}
		whole, bare = whole+middle.Sub(start), bare+time.Since(middle)
	}
	b.ReportMetric(float64(whole)/float64(bare), "x-bare-verify")
	b.ReportMetric(float64(whole.Nanoseconds())/float64(b.N), "ns/token")
}
