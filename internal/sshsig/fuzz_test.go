package sshsig_test

import (
	"bytes"
	"crypto/elliptic"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	lib "github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// What is accepted is spelled in one way, and reading it never panics.
func FuzzParse(f *testing.F) {
	for _, signer := range []ssh.Signer{sshsigtest.Ed25519(f, 1), sshsigtest.NewFIDO(f, 9, sshsigtest.Touched), sshsigtest.ECDSA(f, elliptic.P256(), 7)} {
		f.Add(sign(f, signer).Blob)
	}
	f.Add([]byte("SSHSIG"))
	f.Fuzz(func(t *testing.T, blob []byte) {
		for _, use := range []sshsig.Use{sshsig.ForPolicy, sshsig.ForDirective} {
			sig, err := sshsig.Parse(blob, use)
			if err != nil {
				continue
			}
			if sig.Namespace == "" || sig.Fingerprint == "" || !bytes.Equal(sig.Blob, blob) {
				t.Errorf("accepted as %+v", sig)
			}
			if stock, err := lib.ParseSignature(blob); err != nil || !bytes.Equal(stock.Marshal(), blob) || ssh.FingerprintSHA256(stock.PublicKey) != sig.Fingerprint {
				t.Errorf("the library reads %x as %+v: %v", blob, stock, err)
			}
			if respelled := respell(t, blob, func(*outer, *inner) {}); !bytes.Equal(respelled, blob) {
				t.Errorf("%x has the second spelling %x", blob, respelled)
			}
			if sig.Verify([]byte("nobody signed this"), sig.Namespace) == nil {
				t.Error("a signature without a signer verifies")
			}
		}
	})
}

func FuzzUnarmor(f *testing.F) {
	f.Add(sshsig.Armor(sign(f, sshsigtest.Ed25519(f, 1)).Blob))
	f.Add(sshsig.Armor(nil))
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		blob, err := sshsig.Unarmor(text)
		if err == nil && !bytes.Equal(sshsig.Armor(blob), text) {
			t.Errorf("%q was accepted and is not what Armor prints", text)
		}
	})
}
