package keys_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"golang.org/x/crypto/ssh"
)

var errNotExist = fs.ErrNotExist

func rsaKey(t *testing.T, bits int) ssh.PublicKey {
	t.Helper()
	modulus := new(big.Int).Lsh(big.NewInt(1), uint(bits-1)) // only its length is looked at
	key, err := ssh.NewPublicKey(&rsa.PublicKey{N: modulus.Add(modulus, big.NewInt(1)), E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func p384(t *testing.T) ssh.PublicKey {
	t.Helper()
	return sshsigtest.ECDSA(t, elliptic.P384(), 7).PublicKey()
}

func certificate(t *testing.T) ssh.PublicKey {
	t.Helper()
	cert := &ssh.Certificate{Key: sshsigtest.Ed25519(t, 1).PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ana"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, sshsigtest.Ed25519(t, 2)); err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAKeyThatMayNotSignHearsWhyAndWhatInstead(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ssh.NewPublicKey(&p256.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what               string
		key                ssh.PublicKey
		policy, directives bool
		why                string
	}{
		{"Ed25519", sshsigtest.Ed25519(t, 1).PublicKey(), true, true, ""},
		{"sk-Ed25519", sshsigtest.NewFIDO(t, 9, 0).PublicKey(), true, true, ""},
		{"P-256", ec, true, true, ""},
		{"RSA-3072", rsaKey(t, 3072), true, false, "policy only"},
		{"RSA-3071", rsaKey(t, 3071), false, false, "RSA with 3071 bits is too short"},
		{"RSA-2048", rsaKey(t, 2048), false, false, "3072 is the least"},
		{"P-384", p384(t), false, false, "ecdsa-sha2-nistp384 signs nothing here"},
		{"a certificate", certificate(t), false, false, "enrol the plain key"},
	} {
		got := keys.RightsOf(c.key)
		if got.Policy != c.policy || got.Directives != c.directives || !strings.Contains(got.Why, c.why) || (c.why == "") != (got.Why == "") {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

func TestAPublicKeyFileHoldsOneKeyAndNothingElse(t *testing.T) {
	line := keys.Line(sshsigtest.Ed25519(t, 1).PublicKey())
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "key.pub")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, comment := range map[string]string{
		line: "", line + "\n": "", line + " ines@laptop\n": "ines@laptop", line + " with\x1besc\n": `with\x1besc`, "\n" + line + "\r\n": "",
	} {
		k, err := keys.ReadPublic(write(text))
		if err != nil || k.Comment != comment || keys.Line(k.Public) != line || k.From != filepath.Join(dir, "key.pub") {
			t.Errorf("%q: %+v, %v", text, k, err)
		}
	}
	for text, want := range map[string]string{
		"":                             "not an OpenSSH public key",
		"hello":                        "not an OpenSSH public key",
		line + "\n" + line:             "more than one line",
		"hello\n" + line:               "more than one line",
		`command="x" ` + line:          "options",
		strings.Repeat("x", 17<<10):    "more than 16384 bytes",
		"ssh-dss AAAAB3NzaC1kc3M= ana": "DSA is broken",
		"ssh-ed25519 AAAA":             "not an OpenSSH public key",
		string(skHandle(t, "")):        "this is a private key",
		"-----BEGIN RSA PRIVATE KEY--": "not an OpenSSH public key",
	} {
		if _, err := keys.ReadPublic(write(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "key.pub") {
			t.Errorf("%.30q: %v, want %q", text, err, want)
		}
	}
	for _, path := range []string{filepath.Join(dir, "gone"), dir} {
		if _, err := keys.ReadPublic(path); err == nil {
			t.Errorf("%s was read", path)
		}
	}
}

// skHandle is the file that ssh-keygen -t ed25519-sk leaves: no key, only a
// handle for the device. With a cipher nothing in it can be read but the public
// key.
func skHandle(t *testing.T, cipher string) []byte {
	t.Helper()
	token := sshsigtest.NewFIDO(t, 9, sshsigtest.Touched)
	key := token.PublicKey().(ssh.CryptoPublicKey).CryptoPublicKey().(ed25519.PublicKey)
	inner := ssh.Marshal(struct {
		Check1, Check2 uint32
		Type, Public   string
		Application    string
		Flags          uint8
		Handle, Extra  string
		Comment        string
		Pad            []byte `ssh:"rest"`
	}{1, 1, ssh.KeyAlgoSKED25519, string(key), "ssh:", 1, "handle", "", "", []byte{1, 2, 3}})
	kdf, options := "none", ""
	if cipher == "" {
		cipher = "none"
	} else {
		kdf, options = "bcrypt", string(ssh.Marshal(struct {
			Salt   string
			Rounds uint32
		}{"0123456789abcdef", 1}))
	}
	file := append([]byte("openssh-key-v1\x00"), ssh.Marshal(struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public, Private      []byte
	}{cipher, kdf, options, 1, token.PublicKey().Marshal(), inner})...)
	return pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: file})
}

func TestTheHandleOfASecurityKeyIsListedAndWantsTheAgent(t *testing.T) {
	print := printOf(sshsigtest.NewFIDO(t, 9, sshsigtest.Touched))
	for _, cipher := range []string{"", "aes256-ctr"} {
		path := filepath.Join(t.TempDir(), "id_ed25519_sk")
		if err := os.WriteFile(path, skHandle(t, cipher), 0o600); err != nil {
			t.Fatal(err)
		}
		s := keys.Sources{Files: []string{path}}
		listed, err := keys.List(t.Context(), s)
		if err != nil || len(listed) != 1 || listed[0].Fingerprint != print || !listed[0].Handle || !listed[0].NeedsTouch() {
			t.Fatalf("cipher %q: List = %+v, %v", cipher, listed, err)
		}
		if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); !errors.Is(err, keys.ErrHandle) {
			t.Errorf("cipher %q: %v", cipher, err)
		}
	}
}

func TestAPassphraseIsAskedOnceInAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	made, err := keys.Generate(rand.Reader, path, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := keys.Sources{Files: []string{path}, Opened: new(keys.Opened), Passphrase: ask(&asked, "wrong", "open sesame")}
	for range 3 {
		signer, err := keys.Find(t.Context(), s, made.Fingerprint, sshsig.ForDirective)
		if err != nil {
			t.Fatal(err)
		}
		proves(t, signer, made.Fingerprint, sshsig.ForDirective)
	}
	if asked != 2 { // a wrong one and the right one
		t.Errorf("asked %d times", asked)
	}
	// What did not open is asked for again.
	s.Opened, s.Passphrase = new(keys.Opened), ask(new(int), "wrong", "wrong", "wrong", "open sesame")
	if _, err := keys.Find(t.Context(), s, made.Fingerprint, sshsig.ForDirective); !errors.Is(err, keys.ErrWrong) {
		t.Errorf("three wrong answers: %v", err)
	}
	if _, err := keys.Find(t.Context(), s, made.Fingerprint, sshsig.ForDirective); err != nil {
		t.Errorf("the fourth answer is right: %v", err)
	}
}
