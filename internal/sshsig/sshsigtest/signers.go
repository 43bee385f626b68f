package sshsigtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Ed25519 is the key whose private seed is 32 times seed.
func Ed25519(t testing.TB, seed byte) ssh.Signer {
	t.Helper()
	return signer(t, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

// ECDSA is a key on curve made from seed. With a nil source of randomness it
// signs the same in every run (RFC 6979).
func ECDSA(t testing.TB, curve elliptic.Curve, seed byte) ssh.Signer {
	t.Helper()
	scalar := bytes.Repeat([]byte{seed}, (curve.Params().BitSize+7)/8)
	scalar[0] = 0 // below the order of every curve
	key, err := ecdsa.ParseRawPrivateKey(curve, scalar)
	if err != nil {
		t.Fatal(err)
	}
	return signer(t, key)
}

func signer(t testing.TB, key any) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Flags of what a FIDO token saw.
const (
	Touched  byte = 0x01
	Verified byte = 0x04 // it asked for a PIN
)

// application is what OpenSSH binds its FIDO keys to unless told otherwise.
const application = "ssh:"

// FIDO is an sk-ssh-ed25519 key in software. It signs what a token would sign
// and puts Flags into it, which a token sets by itself.
type FIDO struct {
	Flags byte
	key   ed25519.PrivateKey
	pub   ssh.PublicKey
}

// NewFIDO is the token whose private seed is 32 times seed.
func NewFIDO(t testing.TB, seed, flags byte) *FIDO {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	pub, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Name        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, key.Public().(ed25519.PublicKey), application}))
	if err != nil {
		t.Fatal(err)
	}
	return &FIDO{Flags: flags, key: key, pub: pub}
}

// PublicKey implements ssh.Signer.
func (f *FIDO) PublicKey() ssh.PublicKey { return f.pub }

// Sign implements ssh.Signer after PROTOCOL.u2f: the key covers the hash of the
// application, the flags, a counter and the hash of the data.
func (f *FIDO) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	const counter = 41
	app, digest := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	tail := binary.BigEndian.AppendUint32([]byte{f.Flags}, counter)
	message := bytes.Join([][]byte{app[:], tail, digest[:]}, nil)
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(f.key, message), Rest: tail}, nil
}
