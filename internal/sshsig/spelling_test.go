package sshsig_test

import (
	"bytes"
	"crypto/elliptic"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

func TestNoFlippedBitVerifies(t *testing.T) {
	for name, signer := range accepted(t) {
		blob := sign(t, signer).Blob
		for i := range blob {
			for bit := range 8 {
				blob[i] ^= 1 << bit
				if opens(blob, sshsig.ForPolicy) == nil {
					t.Errorf("%s: bit %d of byte %d changed and it still verifies", name, bit, i)
				}
				blob[i] ^= 1 << bit
			}
		}
		if err := opens(blob, sshsig.ForPolicy); err != nil {
			t.Errorf("%s: the test did not put it back: %v", name, err)
		}
	}
}

func TestNoCutBlobVerifies(t *testing.T) {
	for name, signer := range accepted(t) {
		blob := sign(t, signer).Blob
		for n := range blob {
			if opens(slices.Clip(blob[:n]), sshsig.ForPolicy) == nil {
				t.Errorf("%s: it verifies with %d of %d bytes", name, n, len(blob))
			}
		}
	}
}

// Each of these is made from a good blob without the key. The libraries below
// would take several of them.
func TestNobodyRespellsASignature(t *testing.T) {
	for name, signer := range accepted(t) {
		blob := sign(t, signer).Blob
		for what, other := range map[string][]byte{
			"a byte behind the blob":      append(slices.Clone(blob), 0),
			"a byte behind the signature": respell(t, blob, func(_ *outer, i *inner) { i.Rest = append(i.Rest, 0) }),
			"a byte behind the key":       respell(t, blob, func(o *outer, _ *inner) { o.Key += "\x00" }),
			"a reserved field":            respell(t, blob, func(o *outer, _ *inner) { o.Reserved = "x" }),
			"version 0":                   respell(t, blob, func(o *outer, _ *inner) { o.Version = 0 }),
			"version 2":                   respell(t, blob, func(o *outer, _ *inner) { o.Version = 2 }),
			"another magic":               respell(t, blob, func(o *outer, _ *inner) { o.Magic[0] = 's' }),
			"another hash name":           respell(t, blob, func(o *outer, _ *inner) { o.Hash = "SHA512" }),
			"another signature name":      respell(t, blob, func(_ *outer, i *inner) { i.Format = "ssh-ed448" }),
			"zeros before the signature":  respell(t, blob, func(_ *outer, i *inner) { i.Blob = append([]byte{0}, i.Blob...) }),
			"zeros behind the signature":  respell(t, blob, func(_ *outer, i *inner) { i.Blob = append(i.Blob, 0) }),
		} {
			if opens(other, sshsig.ForPolicy) == nil {
				t.Errorf("%s: it verifies with %s", name, what)
			}
		}
	}
}

// l is the order of the group of Ed25519, n that of P-256.
var (
	l, _ = new(big.Int).SetString("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed", 16)
	n    = elliptic.P256().Params().N
)

func TestEd25519TakesOnlyTheReducedScalar(t *testing.T) {
	for name, signer := range map[string]ssh.Signer{"Ed25519": sshsigtest.Ed25519(t, 1), "sk-Ed25519": sshsigtest.NewFIDO(t, 9, sshsigtest.Touched)} {
		blob := sign(t, signer).Blob
		for times := range int64(4) {
			other := respell(t, blob, func(_ *outer, i *inner) {
				s := slices.Clone(i.Blob[32:])
				slices.Reverse(s) // little-endian
				sum := new(big.Int).Add(new(big.Int).SetBytes(s), new(big.Int).Mul(l, big.NewInt(times)))
				sum.FillBytes(i.Blob[32:])
				slices.Reverse(i.Blob[32:])
			})
			if err := opens(other, sshsig.ForDirective); (err == nil) != (times == 0) {
				t.Errorf("%s with S + %d L: %v", name, times, err)
			}
		}
	}
}

func TestP256TakesNumbersInTheirShortestFormOnly(t *testing.T) {
	blob := sign(t, sshsigtest.ECDSA(t, elliptic.P256(), 7)).Blob
	for what, edit := range map[string]func(r, s []byte) (r2, s2 []byte){
		"zeros before r":  func(r, s []byte) ([]byte, []byte) { return append([]byte{0, 0}, r...), s },
		"zeros before s":  func(r, s []byte) ([]byte, []byte) { return r, append([]byte{0, 0}, s...) },
		"r + n":           func(r, s []byte) ([]byte, []byte) { return plus(r, n), s },
		"s + n":           func(r, s []byte) ([]byte, []byte) { return r, plus(s, n) },
		"r without sign":  func(r, s []byte) ([]byte, []byte) { return plus(r, new(big.Int).Neg(n)), s },
		"r of zero":       func(_, s []byte) ([]byte, []byte) { return nil, s },
		"s of zero":       func(r, _ []byte) ([]byte, []byte) { return r, nil },
		"both of zero":    func(_, _ []byte) ([]byte, []byte) { return nil, nil },
		"r of one zero":   func(_, s []byte) ([]byte, []byte) { return []byte{0}, s },
		"r and s swapped": func(r, s []byte) ([]byte, []byte) { return s, r },
	} {
		other := respell(t, blob, func(_ *outer, i *inner) {
			var pair struct{ R, S []byte }
			if err := ssh.Unmarshal(i.Blob, &pair); err != nil {
				t.Fatal(err)
			}
			pair.R, pair.S = edit(pair.R, pair.S)
			i.Blob = ssh.Marshal(pair)
		})
		if err := opens(other, sshsig.ForDirective); err == nil {
			t.Errorf("it verifies with %s", what)
		}
	}
}

// plus adds to the number of an mpint and gives the mpint of the sum.
func plus(mpint []byte, m *big.Int) []byte {
	sum := new(big.Int).Add(new(big.Int).SetBytes(mpint), m)
	return ssh.Marshal(struct{ N *big.Int }{sum})[4:]
}

// The one pair that stays: stock tools write both halves. It is harmless as
// long as nothing is known by the bytes of a blob.
func TestTheTwinOfAP256SignatureSaysTheSame(t *testing.T) {
	blob := sign(t, sshsigtest.ECDSA(t, elliptic.P256(), 7)).Blob
	twin := respell(t, blob, func(_ *outer, i *inner) {
		var pair struct{ R, S *big.Int }
		if err := ssh.Unmarshal(i.Blob, &pair); err != nil {
			t.Fatal(err)
		}
		pair.S.Sub(n, pair.S)
		i.Blob = ssh.Marshal(pair)
	})
	a, errA := sshsig.Parse(blob, sshsig.ForDirective)
	b, errB := sshsig.Parse(twin, sshsig.ForDirective)
	if errA != nil || errB != nil || bytes.Equal(blob, twin) {
		t.Fatal(errA, errB)
	}
	if a.Fingerprint != b.Fingerprint || a.Namespace != b.Namespace || b.Verify(content, namespace) != nil {
		t.Error("the twin says something else")
	}
	if b.Verify([]byte("other"), namespace) == nil {
		t.Error("the twin covers other content")
	}
}

func TestRSASignsOverSHA512InFullLengthOnly(t *testing.T) {
	signer := rsaSigner(t, 3072)
	digest := digestOf(t, sign(t, signer).Blob)
	for format, ok := range map[string]bool{ssh.KeyAlgoRSASHA512: true, ssh.KeyAlgoRSASHA256: false, ssh.KeyAlgoRSA: false} {
		s, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(nil, digest, format)
		if err != nil {
			t.Fatal(err)
		}
		other := respell(t, sign(t, signer).Blob, func(_ *outer, i *inner) { i.Format, i.Blob = s.Format, s.Blob })
		if err := opens(other, sshsig.ForPolicy); (err == nil) != ok {
			t.Errorf("%s: %v", format, err)
		}
	}
	short := respell(t, sign(t, signer).Blob, func(_ *outer, i *inner) { i.Blob = i.Blob[1:] })
	if _, err := sshsig.Parse(short, sshsig.ForPolicy); !errors.Is(err, sshsig.ErrBlob) {
		t.Errorf("a signature that lost its first byte: %v", err)
	}
}

func TestABlobHasALimit(t *testing.T) {
	blob := respell(t, sign(t, sshsigtest.Ed25519(t, 1)).Blob, func(o *outer, _ *inner) {
		o.Namespace = string(bytes.Repeat([]byte("x"), sshsig.MaxBlob))
	})
	if _, err := sshsig.Parse(blob, sshsig.ForPolicy); !errors.Is(err, sshsig.ErrBlob) {
		t.Errorf("%d bytes: %v", len(blob), err)
	}
}
