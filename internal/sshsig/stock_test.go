package sshsig_test

import (
	"bytes"
	"crypto/sha512"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// digestOf is what the key behind blob signs for content, built from the text
// of PROTOCOL.sshsig.
func digestOf(t testing.TB, blob []byte) []byte {
	t.Helper()
	var o outer
	if err := ssh.Unmarshal(blob, &o); err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(content)
	return append([]byte("SSHSIG"), ssh.Marshal(signedData{o.Namespace, o.Reserved, o.Hash, sum[:]})...)
}

// stock finds a program of the system. Under IC_INTEGRATION=1 a missing one is
// a failure.
func stock(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("IC_INTEGRATION") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
	return ""
}

func run(t testing.TB, stdin []byte, program string, args ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd.CombinedOutput()
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStockToolsVerifyWhatWeSign(t *testing.T) {
	keygen := stock(t, "ssh-keygen")
	for name, signer := range accepted(t) {
		allowed := write(t, "allowed_signers", append([]byte(`ada namespaces="`+namespace+`" `), ssh.MarshalAuthorizedKey(signer.PublicKey())...))
		armored := write(t, "content.sig", sshsig.Armor(sign(t, signer).Blob))
		verify := func(content []byte) ([]byte, error) {
			return run(t, content, keygen, "-Y", "verify", "-f", allowed, "-I", "ada", "-n", namespace, "-s", armored)
		}
		if out, err := verify(content); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if out, err := verify([]byte("other")); err == nil {
			t.Errorf("%s over other content: %s", name, out)
		}
	}
}

func TestWeVerifyWhatStockToolsSign(t *testing.T) {
	keygen := stock(t, "ssh-keygen")
	for _, c := range []struct {
		name string
		args []string
		use  sshsig.Use
	}{
		{"Ed25519", []string{"-t", "ed25519"}, sshsig.ForDirective},
		{"P-256", []string{"-t", "ecdsa", "-b", "256"}, sshsig.ForDirective},
		{"RSA-3072", []string{"-t", "rsa", "-b", "3072"}, sshsig.ForPolicy},
	} {
		key := filepath.Join(t.TempDir(), "key")
		if out, err := run(t, nil, keygen, append(c.args, "-q", "-N", "", "-C", "", "-f", key)...); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, out)
		}
		file := write(t, "content", content)
		if out, err := run(t, nil, keygen, "-Y", "sign", "-f", key, "-n", namespace, file); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, out)
		}
		armored, err := os.ReadFile(file + ".sig")
		if err != nil {
			t.Fatal(err)
		}
		blob, err := sshsig.Unarmor(armored)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := opens(blob, c.use); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestStockSignaturesOverSHA256AreRefused(t *testing.T) {
	keygen := stock(t, "ssh-keygen")
	key := filepath.Join(t.TempDir(), "key")
	if out, err := run(t, nil, keygen, "-t", "ed25519", "-q", "-N", "", "-f", key); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	armored, err := run(t, content, keygen, "-q", "-Y", "sign", "-O", "hashalg=sha256", "-f", key, "-n", namespace)
	if err != nil {
		t.Fatalf("%v: %s", err, armored)
	}
	start := bytes.Index(armored, []byte("-----BEGIN"))
	blob, err := sshsig.Unarmor(armored[max(start, 0):])
	if err != nil {
		t.Fatalf("%v: %s", err, armored)
	}
	if _, err := sshsig.Parse(blob, sshsig.ForPolicy); err == nil {
		t.Error("a stock signature over SHA-256 is accepted")
	}
}
