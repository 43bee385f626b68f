package directive_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

var specification = filepath.Join("..", "..", "docs", "token-format.md")

// block is the one fenced block with this info string in the specification.
func block(t *testing.T, info string) string {
	t.Helper()
	text, err := os.ReadFile(specification)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n```"+info+"\n")
	body, after, closed := strings.Cut(rest, "\n```\n")
	if !found || !closed || strings.Contains(after, "\n```"+info+"\n") {
		t.Fatalf("%s does not have exactly one block %s", specification, info)
	}
	return body + "\n"
}

func TestTheExampleOfTheSpecificationVerifies(t *testing.T) {
	token := strings.TrimSuffix(block(t, "token"), "\n")
	got, err := directive.Verify(token, directive.Production, fleet)
	if err != nil {
		t.Fatal(err)
	}
	if got.Directive.Kind != model.Shed || got.Directive.Tier != 3 {
		t.Errorf("it says %+v", got.Directive)
	}
	printed, _, _ := strings.Cut(block(t, "output"), "\n")
	if string(got.Payload) != printed {
		t.Errorf("the payload is %s", got.Payload)
	}
	fields := strings.SplitN(block(t, "allowed_signers"), " ", 3) // name, options, key
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(fields[2]))
	if err != nil {
		t.Fatal(err)
	}
	if want := ssh.FingerprintSHA256(key); got.Fingerprints()[0] != want {
		t.Errorf("it is signed by %v, not by %s", got.Fingerprints(), want)
	}
}

// stock finds a program of the system. Under IC_INTEGRATION=1 a missing one is
// a failure.
func stock(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("%s is not installed", program)
	}
}

func TestTheExampleOfTheSpecificationRunsAsItStands(t *testing.T) {
	stock(t, "sh", "ssh-keygen", "base64", "awk", "sha256sum", "fold")
	dir := t.TempDir()
	for _, file := range []string{"token", "allowed_signers"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(block(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", block(t, "sh"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != block(t, "output") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestStockToolsAgreeWithEveryAcceptedVector(t *testing.T) {
	stock(t, "ssh-keygen")
	dir := t.TempDir()
	for path, v := range readVectors(t) {
		if v.Code != "" {
			continue
		}
		got, err := directive.Verify(v.Token, v.Realm, v.Fleet)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, sig := range got.Signers {
			armored, allowed := filepath.Join(dir, "sig"), filepath.Join(dir, "allowed")
			if err := os.WriteFile(armored, sshsig.Armor(sig.Blob), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(allowed, []byte("them "+v.Keys[i]+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "them",
				"-n", v.Realm.Namespace("directive", v.Fleet), "-s", armored)
			cmd.Stdin = bytes.NewReader([]byte(v.Payload))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s, signature %d: %v: %s", path, i+1, err, out)
			}
		}
	}
}
