package policytest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

// Fleet is the fleet of the test shop.
const Fleet = "shop-demo"

// Now is a time at which the test shop's policy is in force: half past two in
// the morning, a year before it expires.
func Now() time.Time { return time.Date(2026, 11, 30, 2, 30, 0, 0, time.UTC) }

// Expires is when every document of the test shop expires.
func Expires() time.Time { return time.Date(2027, 11, 30, 0, 0, 0, 0, time.UTC) }

// PrivateKey is the Ed25519 key that belongs to a name, the same in every run.
func PrivateKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("policytest/" + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// Key is PrivateKey as a signer.
func Key(name string) ssh.Signer {
	signer, err := ssh.NewSignerFromKey(PrivateKey(name))
	if err != nil {
		panic(err) // an Ed25519 key is always accepted
	}
	return signer
}

// Keys holds the keys of the five people and of the machine.
func Keys() map[string]ssh.Signer {
	keys := map[string]ssh.Signer{templates.LadderController: Key(templates.LadderController)}
	for _, name := range templates.ShopPeople() {
		keys[name] = Key(name)
	}
	return keys
}

// People is Keys without the machine: whoever signs policy.
func People() map[string]ssh.Signer {
	keys := Keys()
	delete(keys, templates.LadderController)
	return keys
}

// Params are what the test shop is rendered with.
func Params() templates.ShopParams {
	p := templates.ShopParams{
		Fleet: Fleet, Expires: Expires(), Reviewed: Now().AddDate(0, -3, 0).Truncate(24 * time.Hour),
		People:   map[string]ssh.PublicKey{},
		Machines: map[string]ssh.PublicKey{templates.LadderController: Key(templates.LadderController).PublicKey()},
	}
	for name, key := range People() {
		p.People[name] = key.PublicKey()
	}
	return p
}

// Rand is entropy for keys that need none: Ed25519.
func Rand() *bytes.Reader { return bytes.NewReader(nil) }

// Write renders, signs and writes a shop into dir and returns the options that
// load it.
func Write(t testing.TB, dir string, p templates.ShopParams) policy.LoadOptions {
	t.Helper()
	files, err := templates.Shop(p)
	if err != nil {
		t.Fatal(err)
	}
	return Sign(t, dir, files)
}

// Sign signs files of the test shop, as they are, with everybody's key.
func Sign(t testing.TB, dir string, files map[string][]byte) policy.LoadOptions {
	t.Helper()
	pin, err := templates.Sign(dir, files, templates.Signing{
		Signers: People(), Rand: Rand(), Realm: directive.Production, Fleet: Fleet, Version: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy.LoadOptions{Fleet: Fleet, RootSHA256: pin, Realm: directive.Production, Now: Now()}
}

// Shop writes the test shop into a folder of its own, loads it, and returns the
// folder, the bundle and all keys. Everything in it is active.
func Shop(t testing.TB) (dir string, bundle *policy.Bundle, keys map[string]ssh.Signer) {
	t.Helper()
	return ShopWith(t, Params())
}

// ShopWith is Shop with other parameters.
func ShopWith(t testing.TB, p templates.ShopParams) (dir string, bundle *policy.Bundle, keys map[string]ssh.Signer) {
	t.Helper()
	dir = t.TempDir()
	opts := Write(t, dir, p)
	bundle, _, err := policy.LoadDir(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range bundle.Domains {
		if !state.Active {
			t.Fatalf("%s is not active: %s", state.Domain, state.Why)
		}
	}
	return dir, bundle, Keys()
}
