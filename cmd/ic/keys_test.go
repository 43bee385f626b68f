package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/xpty"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/degradedmode/ic/internal/sshsig/sshsigtest"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// The scripts in testdata/keys are sessions about keys and tokens. Besides what
// those of TestSessions know they know
//
//	agent KIND [FILE...]            start an ssh-agent of this kind (see agentOf) with the keys of these files
//	                                and put it into $SSH_AUTH_SOCK
//	person FILE CODE PROGRAM...     run it in a terminal and want this exit code. FILE is the conversation: a line
//	                                with what has to be on the screen, a line with what is typed then, and so on.
//	                                What was on the screen is in the file "screen"
//	nowhere TEXT FOLDER             no file in the folder holds this text, no name of one, and not the screen
//
// $WORK/seat is a seat before a production fleet whose trust root lists for ines
// a key in a file, one under the passphrase "open sesame", one on a security key
// and one that is revoked. Its keys/old.age holds a token under "correct horse".
func TestKeySessions(t *testing.T) {
	seat := t.TempDir()
	writeKeysSeat(t, seat)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "keys"),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(env.WorkDir, "no-bus"))
			env.Setenv("IC_STATE_DIR", filepath.Join(env.WorkDir, "seat"))
			return copySeat(filepath.Join(env.WorkDir, "seat"), seat)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "isjson": isJSON, "keep": keep, "agent": startAgent, "person": person, "nowhere": nowhere,
		},
	})
}

// token is the security key of ines.
func token(t testing.TB, flags byte) *sshsigtest.FIDO { return sshsigtest.NewFIDO(t, 9, flags) }

func writeKeysSeat(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	must := func(k keys.Key, err error) keys.Key {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sealed := must(keys.Generate(rand.Reader, filepath.Join(dir, "keys", "sealed"), "", []byte("open sesame")))
	old := must(keys.Generate(rand.Reader, filepath.Join(dir, "keys", "old"), "", nil))
	must(keys.Generate(rand.Reader, filepath.Join(dir, "keys", "stranger"), "", nil))
	for _, name := range []string{templates.Ines, templates.Dev} {
		writeKey(t, filepath.Join(dir, "keys", name), policytest.PrivateKey(name))
	}
	public := keys.Line(policytest.Key(templates.Ines).PublicKey()) + " ines@laptop\n"
	if err := os.WriteFile(filepath.Join(dir, "keys", "ines.pub"), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	store := keys.TokenStore{Age: &keys.AgeFile{
		Path: filepath.Join(dir, "keys", "old.age"), WorkFactor: 8, // one that does not take a second to open
		Passphrase: func(context.Context, string, keys.Ask) ([]byte, error) { return []byte("correct horse"), nil },
	}}
	if _, err := store.Set(t.Context(), "prometheus", "0ld-token"); err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	writeKey(t, filepath.Join(dir, "keys", "rsa"), long)

	params := policytest.Params()
	params.Hosts, params.Expires = []policy.InventoryHost{}, time.Now().AddDate(1, 0, 0)
	files, err := templates.Shop(params)
	if err != nil {
		t.Fatal(err)
	}
	first := strconv.Quote(keys.Line(params.People[templates.Ines]))
	more := []string{first}
	for _, k := range []ssh.PublicKey{sealed.Public, token(t, 0).PublicKey(), old.Public} {
		more = append(more, strconv.Quote(keys.Line(k)))
	}
	edited := strings.NewReplacer(first, strings.Join(more, ", "), "revoked: []", "revoked: ["+old.Fingerprint+"]").Replace(string(files["roots/1.yaml"]))
	if files["roots/1.yaml"], err = policy.Fmt("roots/1.yaml", []byte(edited)); err != nil {
		t.Fatal(err)
	}
	delete(files, "backends.yaml") // nobody asks for a host that is somewhere else
	opts := policytest.Sign(t, filepath.Join(dir, "policy"), files)
	text := fmt.Sprintf("fleet: %s\nroot_sha256: %s\npolicy: policy\nperson: ines\nkey: keys/ines\n", opts.Fleet, opts.RootSHA256)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeKey(t *testing.T, path string, private any) {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

// scriptAgent is an ssh-agent that behaves as a script wants.
type scriptAgent struct {
	agent.ExtendedAgent
	token   *sshsigtest.FIDO // listed beside what it holds; nil: none
	refuses bool
	hangs   bool // when it is asked to sign
}

func (a *scriptAgent) List() ([]*agent.Key, error) {
	listed, err := a.ExtendedAgent.List()
	if a.token != nil {
		p := a.token.PublicKey()
		listed = append(listed, &agent.Key{Format: p.Type(), Blob: p.Marshal(), Comment: "on a lanyard"})
	}
	return listed, err
}

func (a *scriptAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	switch {
	case a.hangs:
		select {}
	case a.refuses:
		return nil, errors.New("denied")
	case a.token != nil && bytes.Equal(key.Marshal(), a.token.PublicKey().Marshal()):
		return a.token.Sign(rand.Reader, data)
	}
	return a.ExtendedAgent.SignWithFlags(key, data, flags)
}

// agentOf makes an agent: one that holds keys, is locked, refuses every
// signature, has a token that is touched or is not, or hangs.
func agentOf(ts *testscript.TestScript, t testing.TB, kind string, files []string) *scriptAgent {
	a := &scriptAgent{ExtendedAgent: agent.NewKeyring().(agent.ExtendedAgent)}
	for _, file := range files {
		private, err := ssh.ParseRawPrivateKey([]byte(ts.ReadFile(file)))
		ts.Check(err)
		if ed, ok := private.(*ed25519.PrivateKey); ok {
			private = *ed
		}
		ts.Check(a.Add(agent.AddedKey{PrivateKey: private, Comment: filepath.Base(file)}))
	}
	switch kind {
	case "holds":
	case "locked":
		ts.Check(a.Lock([]byte("x")))
	case "refuses":
		a.refuses = true
	case "touched":
		a.token = token(t, sshsigtest.Touched)
	case "untouched":
		a.token = token(t, 0)
	case "hangs":
		return nil
	default:
		ts.Fatalf("no such agent: %s", kind)
	}
	return a
}

func startAgent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: agent KIND [FILE...]")
	}
	a := agentOf(ts, new(testing.T), args[0], args[1:])
	dir, err := os.MkdirTemp("", "ic") // $WORK is too long for a socket on some systems
	ts.Check(err)
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	ts.Check(err)
	ts.Defer(func() { l.Close(); os.RemoveAll(dir) })
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
	ts.Setenv("SSH_AUTH_SOCK", l.Addr().String())
}

// onScreen is what a terminal has shown so far.
type onScreen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // something was added
	over chan struct{} // closed: there will be no more
}

func (s *onScreen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	select {
	case s.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (s *onScreen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// wait for a text behind what was there before; it reports where it ends.
func (s *onScreen) wait(ctx context.Context, from int, text string) (int, bool) {
	for last := false; ; {
		if at := strings.Index(s.String()[from:], text); at >= 0 {
			return from + at + len(text), true
		}
		if last {
			return from, false
		}
		select {
		case <-s.more:
		case <-s.over:
			last = true
		case <-ctx.Done():
			last = true
		}
	}
}

// person runs a program as somebody does who reads before he types.
func person(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: person FILE CODE PROGRAM...")
	}
	path, err := exec.LookPath(args[2])
	ts.Check(err)
	tty, err := xpty.NewPty(120, 40)
	ts.Check(err)
	defer tty.Close()
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	for _, name := range []string{"SSH_AUTH_SOCK", "IC_TOKENS"} {
		if v := ts.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // ctrl-c reaches who sits at a terminal
	ts.Check(tty.Start(cmd))
	screen := &onScreen{more: make(chan struct{}, 1), over: make(chan struct{})}
	go func() {
		defer close(screen.over)
		_, _ = io.Copy(screen, tty) // ends with an error when the program is gone
	}()
	ctx, cancel := context.WithTimeout(context.Background(), scriptPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for i, at := 0, 0; i+1 < len(lines); i += 2 {
		var ok bool
		if at, ok = screen.wait(ctx, at, lines[i]); !ok {
			ts.Fatalf("%q does not come; the screen:\n%s", lines[i], screen)
		}
		_, err = io.WriteString(tty, strings.NewReplacer("^C", "\x03").Replace(lines[i+1]))
		ts.Check(err)
		if lines[i+1] != "^C" {
			_, err = io.WriteString(tty, "\r")
			ts.Check(err)
		}
	}
	_ = cmd.Wait() // the exit code is looked at below
	tty.Close()
	<-screen.over
	ts.Check(os.WriteFile(ts.MkAbs("screen"), []byte(screen.String()), 0o600))
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, want %s; the screen:\n%s", got, args[1], screen)
	}
	ts.Logf("%s", screen)
}

func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 || args[0] == "" {
		ts.Fatalf("usage: nowhere TEXT FOLDER")
	}
	looked := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[1]), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.Contains(d.Name(), args[0]) {
			ts.Fatalf("it is in the name %s", path)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(args[0])) {
			ts.Fatalf("it is in %s", path)
		}
		looked++
		return err
	}))
	if looked == 0 {
		ts.Fatalf("%s holds no file: nothing was looked at", args[1])
	}
	for _, shown := range []string{"stdout", "stderr"} {
		if strings.Contains(ts.ReadFile(shown), args[0]) {
			ts.Fatalf("it is in %s", shown)
		}
	}
	if text, err := os.ReadFile(ts.MkAbs("screen")); err == nil && bytes.Contains(text, []byte(args[0])) {
		ts.Fatalf("it was on the screen:\n%s", text)
	}
}
