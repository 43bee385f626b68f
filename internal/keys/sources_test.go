package keys_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const namespace = "ic-directive-v1@shop"

// serve runs an agent on a socket of its own; nil takes connections and says
// nothing.
func serve(t *testing.T, a agent.Agent) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ic") // t.TempDir is too long for a socket on some systems
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agent")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); os.RemoveAll(dir) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // and not before: one that is forgotten is closed, and does not hang
			if a != nil {
				go agent.ServeAgent(a, conn)
			}
		}
	}()
	return path
}

func agentWith(t *testing.T, private ...any) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, p := range private {
		if err := ring.Add(agent.AddedKey{PrivateKey: p, Comment: "ana\x1b@laptop"}); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, ring)
}

func newEd25519(t *testing.T) (ed25519.PrivateKey, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private, fingerprint(t, public)
}

func fingerprint(t *testing.T, public any) string {
	t.Helper()
	k, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(k)
}

// proves signs with signer and checks the signature the way a host does.
func proves(t *testing.T, signer ssh.Signer, fingerprint string, use sshsig.Use) {
	t.Helper()
	sig, err := sshsig.Sign(signer, rand.Reader, []byte("payload"), namespace)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sshsig.Parse(sig.Blob, use)
	if err != nil || again.Fingerprint != fingerprint || again.Verify([]byte("payload"), namespace) != nil {
		t.Errorf("the signature of %s does not verify: %v", fingerprint, err)
	}
}

func TestAKeyInTheAgentSigns(t *testing.T) {
	ed, edPrint := newEd25519(t)
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := keys.Sources{AgentSocket: agentWith(t, ed, p256), Waits: func(string, bool) func() { t.Error("a key without a touch asks for one"); return func() {} }}
	for _, print := range []string{edPrint, fingerprint(t, &p256.PublicKey)} {
		signer, err := keys.Find(t.Context(), s, print, sshsig.ForDirective)
		if err != nil {
			t.Fatal(err)
		}
		proves(t, signer, print, sshsig.ForDirective)
	}
	listed, err := keys.List(t.Context(), s)
	if err != nil || len(listed) != 2 || listed[0].Fingerprint != edPrint || listed[0].Comment != `ana\x1b@laptop` || listed[0].From != "ssh-agent" || listed[0].Type != "ssh-ed25519" {
		t.Errorf("List = %+v, %v", listed, err)
	}
}

func TestRSASignsPolicyAndNoDirective(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	s := keys.Sources{AgentSocket: agentWith(t, key)}
	print := fingerprint(t, &key.PublicKey)
	if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); !errors.Is(err, sshsig.ErrKeyType) {
		t.Errorf("for a directive: %v", err)
	}
	signer, err := keys.Find(t.Context(), s, print, sshsig.ForPolicy)
	if err != nil {
		t.Fatal(err)
	}
	proves(t, signer, print, sshsig.ForPolicy)
}

func TestAnAgentThatDoesNotAnswerIsGivenUpAndHidesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	made, err := keys.Generate(rand.Reader, path, "ana", nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ socket, want string }{
		"one that hangs": {serve(t, nil), "ssh-agent did not answer within 50ms"},
		"none":           {filepath.Join(t.TempDir(), "gone"), "ssh-agent cannot be reached"},
	} {
		s := keys.Sources{AgentSocket: c.socket, Files: []string{path}, ListWait: 50 * time.Millisecond}
		listed, err := keys.List(t.Context(), s)
		if len(listed) != 1 || !errors.Is(err, keys.ErrAgent) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: List = %+v, %v", what, listed, err)
		}
		if _, err := keys.Find(t.Context(), s, made.Fingerprint, sshsig.ForDirective); err != nil {
			t.Errorf("%s: the key in the file: %v", what, err)
		}
		_, err = keys.Find(t.Context(), s, "SHA256:other", sshsig.ForDirective)
		if !errors.Is(err, keys.ErrNoKey) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: a key that is nowhere: %v", what, err)
		}
	}
}

func TestAGeneratedPairIsOpenSSHsAndForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	made, err := keys.Generate(rand.Reader, path, "ana\n@laptop", nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	line, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	public, comment, _, rest, err := ssh.ParseAuthorizedKey(line)
	if err != nil || comment != `ana\n@laptop` || len(rest) != 0 || ssh.FingerprintSHA256(public) != made.Fingerprint {
		t.Errorf("public key is %q: %v", line, err)
	}
	signer, err := keys.Find(t.Context(), keys.Sources{Files: []string{path}}, made.Fingerprint, sshsig.ForDirective)
	if err != nil {
		t.Fatal(err)
	}
	proves(t, signer, made.Fingerprint, sshsig.ForDirective)

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Generate(rand.Reader, path, "", nil); err == nil {
		t.Error("an existing key was replaced")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the key changed: %v", err)
	}
}

func TestHalfAPairIsNotLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path+".pub", []byte("somebody's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Generate(rand.Reader, path, "", nil); err == nil {
		t.Error("an existing public key was replaced")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the private key is there: %v", err)
	}
}

// testdata/encrypted was made with ssh-keygen -t ed25519 -a 1; one round instead
// of 16, because this test is about asking.
func TestAnEncryptedFileAsksOnlyToSign(t *testing.T) {
	const print = "SHA256:tN26KpNqZOvJRWa2Bdtz3VAK7BPgpa8OemTSk7K2TYM"
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, mustRead(t, "testdata/encrypted"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked, answer := 0, []byte("open sesame")
	s := keys.Sources{Files: []string{path}, Passphrase: func(_ context.Context, which string, ask keys.Ask) ([]byte, error) {
		if asked++; which != path || (ask == keys.AskAgain) != (asked > 1) {
			t.Errorf("asked for %s the %d. time in the way %d", which, asked, ask)
		}
		return slices.Clone(answer), nil
	}}
	if listed, err := keys.List(t.Context(), s); err != nil || len(listed) != 1 || asked != 0 {
		t.Errorf("List = %+v, %v, asked %d times", listed, err, asked)
	}
	signer, err := keys.Find(t.Context(), s, print, sshsig.ForDirective)
	if err != nil || asked != 1 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	proves(t, signer, print, sshsig.ForDirective)

	asked, answer = 0, []byte("wrong")
	if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); err == nil || !errors.Is(err, keys.ErrWrong) || asked != 3 {
		t.Errorf("a wrong passphrase, asked %d times: %v", asked, err)
	}
	s.Passphrase = func(context.Context, string, keys.Ask) ([]byte, error) { return nil, errors.New("no terminal") }
	if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); err == nil || !strings.HasSuffix(err.Error(), "no terminal") {
		t.Errorf("nobody who answers: %v", err)
	}
	s.Passphrase = nil
	if _, err := keys.Find(t.Context(), s, print, sshsig.ForDirective); !errors.Is(err, keys.ErrNoAsk) {
		t.Errorf("nobody to ask: %v", err)
	}
}

func TestAPairIsGeneratedUnderAPassphrase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	made, err := keys.Generate(rand.Reader, path, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	s := keys.Sources{Files: []string{path}, Passphrase: func(context.Context, string, keys.Ask) ([]byte, error) {
		asked = true
		return []byte("open sesame"), nil
	}}
	signer, err := keys.Find(t.Context(), s, made.Fingerprint, sshsig.ForDirective)
	if err != nil || !asked {
		t.Fatalf("asked %v, %v", asked, err)
	}
	proves(t, signer, made.Fingerprint, sshsig.ForDirective)
}

func TestFilesThatCannotBeUsedAreNamed(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if _, err := keys.Generate(rand.Reader, good, "", nil); err != nil {
		t.Fatal(err)
	}
	exposed := filepath.Join(dir, "exposed")
	if _, err := keys.Generate(rand.Reader, exposed, "", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(exposed, 0o640); err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		exposed:                            "chmod 600",
		write("text", []byte("hello\x1b")): "not an OpenSSH private key",
		write("public", mustRead(t, good+".pub")): "not an OpenSSH private key",
		write("long", make([]byte, 40<<10)):       "at most",
		dir:                                       "not a regular file",
		filepath.Join(dir, "gone"):                "no such file",
	} {
		listed, err := keys.List(t.Context(), keys.Sources{Files: []string{path, good}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: error is %v, want %q", filepath.Base(path), err, want)
		}
		if len(listed) != 1 || listed[0].From != good {
			t.Errorf("%s: the file beside it is gone: %+v", filepath.Base(path), listed)
		}
	}
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
