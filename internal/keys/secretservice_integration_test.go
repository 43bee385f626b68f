//go:build integration

package keys_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/godbus/dbus/v5"
)

// These tests talk to a real D-Bus and a real gnome-keyring-daemon, or to fakes
// that own its name. The keyring's library keeps one connection per process, so
// every case is a process of its own: this program again, with a part to play.
//
//	IC_INTEGRATION=1 go test -tags integration ./internal/keys

// part is the variable that makes this program play a part instead of testing.
const part = "IC_KEYS_TEST_PART"

func TestMain(m *testing.M) {
	name := os.Getenv(part)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := play(name); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

const (
	patience = 60 * time.Second // for a machine that is busy with other tests
	poll     = 5 * time.Millisecond

	secretsName = "org.freedesktop.secrets"
	password    = "of the login keyring"
)

// need passes a test over whose program is not on this machine, and fails it
// where the integration tests have to run.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatalf("%s is not on PATH, and IC_INTEGRATION=1 wants it: install %s", program, program)
		}
		t.Skipf("%s is not on PATH: install %s to run this test", program, program)
	}
}

// ---- the parts

// play is one process: a fake secret service, or somebody who wants a token of
// the service that it starts first.
func play(name string) error {
	if fake, ok := strings.CutPrefix(name, "fake-"); ok {
		return beSecretService(fake)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var service *exec.Cmd
	switch name {
	case "unlocked":
		service = keyringDaemon(ctx, password)
	case "locked":
		service = keyringDaemon(ctx, "not "+password)
	case "silent", "prompt", "dismissed", "dies":
		service = exec.CommandContext(ctx, os.Args[0])
		service.Env = append(os.Environ(), part+"=fake-"+name)
	case "alone": // with whatever is there
	default:
		return errors.New("there is no such part")
	}
	if service != nil {
		if err := service.Start(); err != nil {
			return err
		}
		defer func() { _ = service.Process.Kill(); _ = service.Wait() }()
		if err := owned(ctx); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(useTokens(ctx))
}

func keyringDaemon(ctx context.Context, password string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
	cmd.Stdin = strings.NewReader(password)
	return cmd
}

// owned waits until somebody is the secret service.
func owned(ctx context.Context) error {
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return err
	}
	defer conn.Close()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		var has bool
		if err := conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, secretsName).Store(&has); err != nil || has {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("nobody became the secret service")
		}
	}
}

// step is what one call brought.
type step struct {
	Did, Value, Err string
	Millis          int64
}

// report is what the process that wanted tokens has seen.
type report struct {
	Steps   []step
	Hanging int // calls into the keyring's library that never came back
}

// useTokens does what commands do, in an order that leaves nothing behind.
func useTokens(ctx context.Context) report {
	var r report
	store := keys.TokenStore{Ring: keys.OSRing()}
	longest := strings.Repeat("x", keys.MaxToken)
	do := func(did string, call func() (string, error)) {
		start := time.Now()
		value, err := call()
		s := step{Did: did, Value: value, Millis: time.Since(start).Milliseconds()}
		if err != nil {
			s.Err = err.Error()
		}
		r.Steps = append(r.Steps, s)
	}
	get := func() (string, error) { t, err := store.Get(ctx, "prometheus", ""); return t.Value, err }
	set := func(value string) func() (string, error) {
		return func() (string, error) { return store.Set(ctx, "prometheus", value) }
	}
	remove := func() (string, error) { return "", store.Delete(ctx, "prometheus") }
	do("get", get)
	do("set", set("of-ring"))
	do("get again", get)
	do("set the longest", set(longest))
	do("get the longest", func() (string, error) { v, err := get(); return fmt.Sprint(v == longest), err })
	do("delete", remove)
	do("get what is gone", get)
	do("delete what is gone", remove)
	stacks := make([]byte, 1<<20)
	r.Hanging = strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "keys.(*Ring).call.func")
	// The process goes on with what a person has chosen instead.
	store.Age = &keys.AgeFile{
		Path: filepath.Join(os.Getenv("HOME"), "tokens.age"), WorkFactor: 8,
		Passphrase: func(context.Context, string, keys.Ask) ([]byte, error) { return []byte("open sesame"), nil },
	}
	do("set in age", set("of-age"))
	do("get from age", get)
	return r
}

// beSecretService owns the name and treats those who call it badly: it never
// answers, shows a prompt that nobody closes, has it dismissed, or goes away.
func beSecretService(kind string) error {
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := conn.RequestName(secretsName, dbus.NameFlagDoNotQueue)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		return fmt.Errorf("own %s: %v, %w", secretsName, reply, err)
	}
	calls := make(chan *dbus.Message, 16)
	conn.Eavesdrop(calls) // from here on nothing is answered but by us
	const (
		collection = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
		session    = dbus.ObjectPath("/org/freedesktop/secrets/session/s1")
		prompt     = dbus.ObjectPath("/org/freedesktop/secrets/prompt/p1")
	)
	for call := range calls {
		member, _ := call.Headers[dbus.FieldMember].Value().(string)
		switch {
		case kind == "silent" || call.Type != dbus.TypeMethodCall:
			continue
		case kind == "dies" && member == "Unlock":
			return nil
		}
		var body []any
		switch member {
		case "Get":
			body = []any{dbus.MakeVariant([]dbus.ObjectPath{collection})}
		case "OpenSession":
			body = []any{dbus.MakeVariant(""), session}
		case "Unlock":
			body = []any{[]dbus.ObjectPath{}, prompt}
		case "Prompt", "Close":
		default:
			return fmt.Errorf("nobody expected %s", member)
		}
		if err := answer(conn, call, body); err != nil {
			return err
		}
		if member == "Prompt" && kind == "dismissed" {
			if err := conn.Emit(prompt, "org.freedesktop.Secret.Prompt.Completed", true, dbus.MakeVariant([]dbus.ObjectPath{})); err != nil {
				return err
			}
		}
	}
	return nil
}

func answer(conn *dbus.Conn, call *dbus.Message, body []any) error {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
		dbus.FieldDestination: call.Headers[dbus.FieldSender],
	}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return conn.Send(m, nil).Err
}

// ---- the tests

// home is a home folder, short enough for a socket in it.
func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ic")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// busConfig is a session bus that starts no service by itself: what is on it was
// started by the test.
const busConfig = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
`

// onBus plays a part on a session bus of its own and returns what it reports.
func onBus(t *testing.T, home, name string) report {
	t.Helper()
	need(t, "dbus-run-session", "dbus-daemon")
	config := filepath.Join(home, "bus.conf")
	if err := os.WriteFile(config, []byte(fmt.Sprintf(busConfig, home)), 0o600); err != nil {
		t.Fatal(err)
	}
	return played(t, home, name, nil, "dbus-run-session", "--config-file="+config, "--", os.Args[0])
}

// played runs a program with nothing of our environment but PATH.
func played(t *testing.T, home, name string, env []string, program ...string) report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + filepath.Join(home, "data"), "XDG_RUNTIME_DIR=" + home, part + "=" + name,
	}, env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil || readErr != nil {
		t.Fatalf("%s: %v, %v\n%s", name, err, readErr, &said)
	}
	var r report
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("%s: %v in %q", name, err, line)
	}
	for _, s := range r.Steps {
		t.Logf("%5d ms  %-20s %.20q %s", s.Millis, s.Did, s.Value, s.Err)
	}
	return r
}

// wants compares the steps with what each brings: "=" and a value, or the
// sentence that its error holds.
func (r report) wants(t *testing.T, want map[string]string) {
	t.Helper()
	for _, s := range r.Steps {
		w := want[s.Did]
		if value, ok := strings.CutPrefix(w, "="); ok {
			if s.Err != "" || s.Value != value {
				t.Errorf("%s: %.30q, %s; want %q", s.Did, s.Value, s.Err, value)
			}
		} else if w == "" || !strings.Contains(s.Err, w) {
			t.Errorf("%s: the error %q, want %q", s.Did, s.Err, w)
		}
	}
	if len(r.Steps) != len(want) {
		t.Errorf("%d steps, want %d", len(r.Steps), len(want))
	}
}

// fails is what a keyring brings that fails in one way all the time.
func (r report) fails(t *testing.T, with error) {
	t.Helper()
	want := map[string]string{"set in age": "=" + r.ageFile(), "get from age": "=of-age"}
	for _, did := range []string{"get", "set", "get again", "set the longest", "get the longest", "delete", "get what is gone", "delete what is gone"} {
		want[did] = with.Error()
		if strings.HasPrefix(did, "delete") && (with == keys.ErrNoBus || with == keys.ErrNoDaemon) {
			want[did] = "=" // without a keyring nothing can be in it
		}
	}
	r.wants(t, want)
}

func (r report) ageFile() string {
	for _, s := range r.Steps {
		if s.Did == "set in age" && strings.HasSuffix(s.Value, "tokens.age") {
			return s.Value
		}
	}
	return "a path that ends in tokens.age"
}

func TestAnUnlockedKeyringKeepsTokens(t *testing.T) {
	need(t, "gnome-keyring-daemon")
	r := onBus(t, home(t), "unlocked")
	r.wants(t, map[string]string{
		"get": keys.ErrNoToken.Error(), "set": "=" + keys.KeyringSource, "get again": "=of-ring",
		"set the longest": "=" + keys.KeyringSource, "get the longest": "=true",
		"delete": "=", "get what is gone": keys.ErrNoToken.Error(), "delete what is gone": "=",
		"set in age": "=" + r.ageFile(), "get from age": "=of-age",
	})
	if r.Hanging != 0 {
		t.Errorf("%d calls hang", r.Hanging)
	}
}

func TestALockedKeyringSaysSo(t *testing.T) {
	need(t, "gnome-keyring-daemon")
	h := home(t)
	onBus(t, h, "unlocked").wantsNoError(t, "set")
	onBus(t, h, "locked").fails(t, keys.ErrLocked)
	// It is the lock that was in the way.
	onBus(t, h, "unlocked").wantsNoError(t, "set")
}

func (r report) wantsNoError(t *testing.T, did string) {
	t.Helper()
	for _, s := range r.Steps {
		if s.Did == did && s.Err == "" {
			return
		}
	}
	t.Fatalf("%s failed: %+v", did, r.Steps)
}

func TestABusWithoutAKeyringSaysSo(t *testing.T) {
	onBus(t, home(t), "alone").fails(t, keys.ErrNoDaemon)
}

func TestNoBusSaysSo(t *testing.T) {
	for what, address := range map[string]string{
		"not set":  "",
		"gone":     "unix:path=" + filepath.Join(t.TempDir(), "bus"),
		"nonsense": "nonsense",
	} {
		t.Run(what, func(t *testing.T) {
			env := []string{"PATH=" + t.TempDir()} // with dbus-launch a bus would be started
			if address != "" {
				env = append(env, "DBUS_SESSION_BUS_ADDRESS="+address)
			}
			played(t, home(t), "alone", env, os.Args[0]).fails(t, keys.ErrNoBus)
		})
	}
}

// Both are what a person sees as a program that hangs: nothing comes back, and a
// prompt on a screen at which nobody sits.
func TestASecretServiceThatNeverAnswersCostsOneWaitAndOneGoroutine(t *testing.T) {
	for _, name := range []string{"silent", "prompt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := onBus(t, home(t), name)
			r.fails(t, keys.ErrSilent)
			if r.Hanging != 1 {
				t.Errorf("%d goroutines hang, want the one that is documented", r.Hanging)
			}
			limit := keys.DefaultRingWait.Milliseconds()
			if first := r.Steps[0].Millis; first < limit || first > 2*limit {
				t.Errorf("the first call came back after %d ms, want %d", first, limit)
			}
			for _, s := range r.Steps[1:] {
				if s.Millis > limit/2 {
					t.Errorf("%s came back after %d ms: one wait is enough", s.Did, s.Millis)
				}
			}
		})
	}
}

func TestAPromptThatIsDismissedLeavesTheKeyringLocked(t *testing.T) {
	r := onBus(t, home(t), "dismissed")
	r.fails(t, keys.ErrLocked)
	if r.Hanging != 0 {
		t.Errorf("%d calls hang", r.Hanging)
	}
}

func TestASecretServiceThatGoesAwayIsNoLongerThere(t *testing.T) {
	r := onBus(t, home(t), "dies")
	if first := r.Steps[0]; !strings.Contains(first.Err, keys.ErrGone.Error()) {
		t.Errorf("%s: %s", first.Did, first.Err)
	}
	r.Steps = r.Steps[1:]
	for _, s := range r.Steps {
		if s.Did == "get again" && !strings.Contains(s.Err, keys.ErrNoDaemon.Error()) {
			t.Errorf("%s: %s", s.Did, s.Err)
		}
	}
}
