package sshsig_test

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"sync"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

const namespace = "ic-directive-v1@shop"

var content = []byte(`{"v":1,"kind":"shed"}`)

// rsaKeys makes one key per length and test binary: 3,072 bits take 0.4 s.
var rsaKeys = map[int]func() (*rsa.PrivateKey, error){
	2048: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }),
	3072: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 3072) }),
	1024: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 1024) }),
	4096: sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 4096) }),
}

func rsaSigner(t testing.TB, bits int) ssh.Signer {
	key, err := rsaKeys[bits]()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// accepted are the signers whose keys may sign at least one thing.
func accepted(t testing.TB) map[string]ssh.Signer {
	return map[string]ssh.Signer{
		"Ed25519":    sshsigtest.Ed25519(t, 1),
		"sk-Ed25519": sshsigtest.NewFIDO(t, 9, sshsigtest.Touched),
		"P-256":      sshsigtest.ECDSA(t, elliptic.P256(), 7),
		"RSA-3072":   rsaSigner(t, 3072),
	}
}

func sign(t testing.TB, signer ssh.Signer) sshsig.Signature {
	t.Helper()
	sig, err := sshsig.Sign(signer, rand.Reader, content, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return sig
}

// outer and inner are the wire form as PROTOCOL.sshsig has it, so that a test
// can make what this package would not.
type outer struct {
	Magic     [6]byte
	Version   uint32
	Key       string
	Namespace string
	Reserved  string
	Hash      string
	Signature string
}

type inner struct {
	Format string
	Blob   []byte
	Rest   []byte `ssh:"rest"`
}

// signedData is what the key signs.
type signedData struct {
	Namespace, Reserved, Hash string
	Digest                    []byte
}

// respell takes a blob apart, lets edit change it and puts it together again.
func respell(t testing.TB, blob []byte, edit func(*outer, *inner)) []byte {
	t.Helper()
	var o outer
	var i inner
	if err := ssh.Unmarshal(blob, &o); err != nil {
		t.Fatal(err)
	}
	if err := ssh.Unmarshal([]byte(o.Signature), &i); err != nil {
		t.Fatal(err)
	}
	edit(&o, &i)
	o.Signature = string(ssh.Marshal(i))
	return ssh.Marshal(o)
}

// opens reports whether blob is taken as a signature over content.
func opens(blob []byte, use sshsig.Use) error {
	sig, err := sshsig.Parse(blob, use)
	if err != nil {
		return err
	}
	return sig.Verify(content, namespace)
}
