package sshsig

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// skTail is what follows the signature of a FIDO key: one byte of flags and
// four of a counter. Both are covered by the signature.
const skTail = 1 + 4

// oneSpelling refuses what the libraries below would verify although it is not
// how the signature was made: bytes behind it, which Ed25519, ECDSA and RSA
// ignore; numbers with leading zeros; an RSA signature cut short or over
// SHA-256. Without this anybody on the way could make a second blob from a good
// one and a log, a size limit or a comparison of bytes would see two.
//
// One pair remains. With an ECDSA signature (r, s) goes (r, n-s), made without
// the key, and stock tools and hardware write either, so neither can be refused.
// It says nothing that its twin does not say: same key, content and namespace.
// Hence the rule for callers: what was signed is known by its content, who
// signed by the fingerprint, and nothing by the bytes of a blob.
func oneSpelling(key ssh.PublicKey, sig *ssh.Signature) error {
	want, tail := key.Type(), 0
	var exact bool
	switch want {
	case ssh.KeyAlgoED25519:
		exact = len(sig.Blob) == ed25519.SignatureSize
	case ssh.KeyAlgoSKED25519:
		exact, tail = len(sig.Blob) == ed25519.SignatureSize, skTail
	case ssh.KeyAlgoECDSA256:
		exact = exactPair(sig.Blob)
	case ssh.KeyAlgoRSA:
		want, exact = ssh.KeyAlgoRSASHA512, len(sig.Blob) == (modulusBits(key)+7)/8
	}
	if sig.Format != want {
		return fmt.Errorf("%w: a signature of the form %q by a key of type %s", ErrBlob, sig.Format, key.Type())
	}
	if !exact || len(sig.Rest) != tail {
		return fmt.Errorf("%w: padding or extra bytes in a signature of the form %s", ErrBlob, sig.Format)
	}
	return nil
}

// exactPair reports whether blob holds the two numbers of an ECDSA signature in
// their shortest form.
func exactPair(blob []byte) bool {
	var pair struct{ R, S *big.Int }
	return ssh.Unmarshal(blob, &pair) == nil && bytes.Equal(ssh.Marshal(pair), blob)
}

// modulusBits is the length of an RSA modulus in bits, 0 of any other key.
func modulusBits(key ssh.PublicKey) int {
	if ck, ok := key.(ssh.CryptoPublicKey); ok {
		if pub, ok := ck.CryptoPublicKey().(*rsa.PublicKey); ok {
			return pub.N.BitLen()
		}
	}
	return 0
}
