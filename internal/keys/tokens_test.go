package keys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/zalando/go-keyring"
)

// ring is a keyring in memory, as the library mocks it.
func ring() *keys.Ring {
	keyring.MockInit()
	return keys.OSRing()
}

func getenv(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func ageFile(t *testing.T, passphrase string) *keys.AgeFile {
	return &keys.AgeFile{
		Path:       filepath.Join(t.TempDir(), "tokens.age"),
		Passphrase: func(context.Context, string, keys.Ask) ([]byte, error) { return []byte(passphrase), nil },
		WorkFactor: 8,
	}
}

// ask answers one after the other.
func ask(asked *int, answers ...string) keys.AskPassphrase {
	return func(context.Context, string, keys.Ask) ([]byte, error) {
		if *asked == len(answers) {
			return nil, errors.New("it is asked once too often")
		}
		*asked++
		return []byte(answers[*asked-1]), nil
	}
}

func secretFile(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheFirstSourceThatHasATokenIsTaken(t *testing.T) {
	file := secretFile(t, "of-file\n", 0o400)
	env := getenv(map[string]string{"IC_PROMETHEUS_TOKEN": "of-env"})
	r := ring()
	if _, err := (keys.TokenStore{Ring: r}).Set(t.Context(), "prometheus", "of-ring"); err != nil {
		t.Fatal(err)
	}
	f := ageFile(t, "open sesame")
	if _, err := (keys.TokenStore{Age: f}).Set(t.Context(), "prometheus", "of-age"); err != nil {
		t.Fatal(err)
	}
	empty := keys.NewRing(keys.Backend{Get: func(string, string) (string, error) { return "", keyring.ErrNotFound }}, time.Second)
	for _, c := range []struct {
		store       keys.TokenStore
		file        string
		value, from string
	}{
		{keys.TokenStore{Getenv: env, Ring: r, Age: f}, file, "of-file", file},
		{keys.TokenStore{Getenv: env, Ring: r, Age: f}, "", "of-env", "IC_PROMETHEUS_TOKEN"},
		{keys.TokenStore{Getenv: getenv(nil), Ring: r, Age: f}, "", "of-ring", "keyring"},
		{keys.TokenStore{Ring: empty, Age: f}, "", "of-age", f.Path},
	} {
		got, err := c.store.Get(t.Context(), "prometheus", c.file)
		if err != nil || got.Value != c.value || got.From != c.from {
			t.Errorf("Get = %q from %s, %v; want %q from %s", got.Value, got.From, err, c.value, c.from)
		}
	}
}

func TestNoTokenAnywhereSaysWhereToPutOne(t *testing.T) {
	for what, s := range map[string]keys.TokenStore{
		"empty sources": {Getenv: getenv(nil), Ring: ring(), Age: ageFile(t, "x")},
		"no source":     {},
	} {
		_, err := s.Get(t.Context(), "launch-darkly", "")
		if !errors.Is(err, keys.ErrNoToken) || !strings.Contains(err.Error(), "`ic login launch-darkly`") || !strings.Contains(err.Error(), "IC_LAUNCH_DARKLY_TOKEN") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestASourceThatIsNamedAndFailsIsNotSkipped(t *testing.T) {
	const secret = "s3cr3t"
	s := keys.TokenStore{Getenv: getenv(map[string]string{"IC_PROMETHEUS_TOKEN": "of-env"}), Ring: ring()}
	for what, path := range map[string]string{
		"others may read it":   secretFile(t, secret, 0o644),
		"the group may":        secretFile(t, secret, 0o640),
		"empty":                secretFile(t, "\n", 0o600),
		"two words":            secretFile(t, secret+" "+secret, 0o600),
		"two lines":            secretFile(t, secret+"\n"+secret, 0o600),
		"longer than possible": secretFile(t, strings.Repeat("x", keys.MaxToken+2), 0o600),
		"not there":            filepath.Join(t.TempDir(), "gone"),
		"a folder":             t.TempDir(),
	} {
		got, err := s.Get(t.Context(), "prometheus", path)
		if err == nil || got.Value != "" || errors.Is(err, keys.ErrNoToken) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %q, %v", what, got.Value, err)
		}
	}
	if _, err := s.Get(t.Context(), "prometheus", secretFile(t, secret, 0o644)); !errors.Is(err, keys.ErrExposed) {
		t.Errorf("a file that others may read: %v", err)
	}
}

func TestEveryFailureOfAKeyringSaysWhatToDo(t *testing.T) {
	for text, want := range map[string]error{
		`exec: "dbus-launch": executable file not found in $PATH`:                        keys.ErrNoBus,
		"dial unix /run/user/1000/bus: connect: no such file or directory":               keys.ErrNoBus,
		"dbus: invalid bus address (no transport)":                                       keys.ErrNoBus,
		"Message recipient disconnected from message bus without replying":               keys.ErrGone,
		"The name org.freedesktop.secrets was not provided by any .service files":        keys.ErrNoDaemon,
		"failed to unlock correct collection '/org/freedesktop/secrets/aliases/default'": keys.ErrLocked,
	} {
		keyring.MockInitWithError(errors.New(text))
		s := keys.TokenStore{Ring: keys.OSRing()}
		_, err := s.Get(t.Context(), "prometheus", "")
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "age file") {
			t.Errorf("Get with %q: %v", text, err)
		}
		// Without a keyring there is no token; a locked one may hold it.
		if errors.Is(err, keys.ErrNoToken) != (want == keys.ErrNoBus || want == keys.ErrNoDaemon) {
			t.Errorf("Get with %q: is it no token? %v", text, err)
		}
		if _, err := s.Set(t.Context(), "prometheus", "x"); !errors.Is(err, want) || strings.Contains(err.Error(), " x ") {
			t.Errorf("Set with %q: %v", text, err)
		}
	}
	keyring.MockInitWithError(errors.New("odd\x1b"))
	if _, err := (keys.TokenStore{Ring: keys.OSRing()}).Get(t.Context(), "prometheus", ""); err == nil || !strings.Contains(err.Error(), `odd\x1b`) {
		t.Errorf("an unknown failure: %v", err)
	}
	keyring.MockInitWithError(keyring.ErrSetDataTooBig)
	if _, err := (keys.TokenStore{Ring: keys.OSRing()}).Set(t.Context(), "prometheus", "x"); !errors.Is(err, keys.ErrTooBig) {
		t.Errorf("too long: %v", err)
	}
}

func TestAKeyringThatNeverAnswersIsGivenUpAndAskedOnce(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	var calls atomic.Int32
	hangs := func() { calls.Add(1); <-release }
	s := keys.TokenStore{Ring: keys.NewRing(keys.Backend{
		Get:    func(string, string) (string, error) { hangs(); return "", nil },
		Set:    func(string, string, string) error { hangs(); return nil },
		Delete: func(string, string) error { hangs(); return nil },
	}, 20*time.Millisecond)}
	_, err := s.Get(t.Context(), "prometheus", "")
	if !errors.Is(err, keys.ErrSilent) || errors.Is(err, keys.ErrNoToken) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Set(t.Context(), "prometheus", "x"); !errors.Is(err, keys.ErrSilent) {
		t.Errorf("Set: %v", err)
	}
	if err := s.Delete(t.Context(), "prometheus"); !errors.Is(err, keys.ErrSilent) {
		t.Errorf("Delete: %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls hang", calls.Load())
	}
	f := ageFile(t, "open sesame")
	s.Age = f
	if _, err := s.Set(t.Context(), "prometheus", "of-age"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "prometheus", ""); err != nil || got.Value != "of-age" {
		t.Errorf("with an age file: %q, %v", got.Value, err)
	}
}

func TestATokenIsStoredAndDeleted(t *testing.T) {
	for what, s := range map[string]keys.TokenStore{"keyring": {Ring: ring()}, "age": {Age: ageFile(t, "x")}} {
		if err := s.Delete(t.Context(), "prometheus"); err != nil {
			t.Errorf("%s: delete of nothing: %v", what, err)
		}
		if _, err := s.Set(t.Context(), "prometheus", "one"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Set(t.Context(), "prometheus", "two"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Get(t.Context(), "prometheus", ""); err != nil || got.Value != "two" {
			t.Errorf("%s: %q, %v", what, got.Value, err)
		}
		if err := s.Delete(t.Context(), "prometheus"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "prometheus", ""); !errors.Is(err, keys.ErrNoToken) {
			t.Errorf("%s: after delete: %v", what, err)
		}
	}
	if _, err := (keys.TokenStore{}).Set(t.Context(), "prometheus", "x"); err == nil {
		t.Error("a token was stored nowhere")
	}
	for _, bad := range [][2]string{{"../x", "y"}, {"prometheus", ""}, {"prometheus", "a b"}, {"prometheus", "a\n"}} {
		if _, err := (keys.TokenStore{Ring: ring()}).Set(t.Context(), bad[0], bad[1]); err == nil {
			t.Errorf("Set(%q, %q) was accepted", bad[0], bad[1])
		}
	}
}

func TestAnAgeFileIsReadAgainByAnotherProcess(t *testing.T) {
	f := ageFile(t, "open sesame")
	asked := []keys.Ask{}
	f.Passphrase = func(_ context.Context, _ string, ask keys.Ask) ([]byte, error) {
		asked = append(asked, ask)
		return []byte("open sesame"), nil
	}
	s := keys.TokenStore{Age: f}
	for _, name := range []string{"prometheus", "github"} {
		if _, err := s.Set(t.Context(), name, "token-of-"+name); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 1 || asked[0] != keys.AskNew {
		t.Errorf("asked %v, want once, for a new file", asked)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil || !strings.HasPrefix(string(text), "age-encryption.org/v1\n-> scrypt ") || strings.Contains(string(text), "token-of") {
		t.Errorf("the file is no age file: %v", err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	another := &keys.AgeFile{Path: f.Path, Passphrase: f.Passphrase}
	asked = nil
	for _, name := range []string{"prometheus", "github"} {
		if got, err := (keys.TokenStore{Age: another}).Get(t.Context(), name, ""); err != nil || got.Value != "token-of-"+name {
			t.Errorf("%s: %q, %v", name, got.Value, err)
		}
	}
	if len(asked) != 1 || asked[0] != keys.AskKnown {
		t.Errorf("asked %v, want once, for a known file", asked)
	}
}

func TestAnAgeFileThatCannotBeReadIsNamedAndNotReplaced(t *testing.T) {
	f := ageFile(t, "open sesame")
	if _, err := (keys.TokenStore{Age: f}).Set(t.Context(), "prometheus", "x"); err != nil {
		t.Fatal(err)
	}
	whole := string(mustRead(t, f.Path))
	say := func(text string) keys.AskPassphrase {
		return func(context.Context, string, keys.Ask) ([]byte, error) { return []byte(text), nil }
	}
	for _, c := range []struct {
		what, content string
		mode          os.FileMode
		passphrase    keys.AskPassphrase
		want          string
	}{
		{"a wrong passphrase", whole, 0o600, say("wrong"), "the passphrase is wrong"},
		{"an empty passphrase", whole, 0o600, say(""), "the passphrase is empty"},
		{"nobody to ask", whole, 0o600, nil, "nobody can be asked"},
		{"nobody who answers", whole, 0o600, func(context.Context, string, keys.Ask) ([]byte, error) { return nil, errors.New("no terminal") }, "no terminal"},
		{"a file that others may read", whole, 0o644, say("open sesame"), "chmod 600"},
		{"a cut file", whole[:len(whole)-3], 0o600, say("open sesame"), "damaged"},
		{"another file", "hello", 0o600, say("open sesame"), "not an age file"},
	} {
		path := secretFile(t, c.content, c.mode)
		s := keys.TokenStore{Age: &keys.AgeFile{Path: path, Passphrase: c.passphrase, WorkFactor: 8}}
		if _, err := s.Get(t.Context(), "prometheus", ""); err == nil || errors.Is(err, keys.ErrNoToken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Get: %v, want %q", c.what, err, c.want)
		}
		if _, err := s.Set(t.Context(), "prometheus", "y"); err == nil {
			t.Errorf("%s: Set replaced it", c.what)
		}
		if string(mustRead(t, path)) != c.content {
			t.Errorf("%s: the file changed", c.what)
		}
	}
}

func TestTheLongestTokenAndOneByteMore(t *testing.T) {
	s := keys.TokenStore{Ring: ring()}
	if _, err := s.Set(t.Context(), "prometheus", strings.Repeat("x", keys.MaxToken)); err != nil {
		t.Error(err)
	}
	if _, err := s.Set(t.Context(), "prometheus", strings.Repeat("x", keys.MaxToken+1)); err == nil || !strings.Contains(err.Error(), "2561 bytes; 1 to 2560") {
		t.Errorf("one byte more: %v", err)
	}
}

func TestAPassphraseTypedWrongIsAskedForAgain(t *testing.T) {
	f := ageFile(t, "open sesame")
	if _, err := (keys.TokenStore{Age: f}).Set(t.Context(), "prometheus", "x"); err != nil {
		t.Fatal(err)
	}
	asked := 0
	s := keys.TokenStore{Age: &keys.AgeFile{Path: f.Path, Passphrase: ask(&asked, "wrong", "open sesame")}}
	if got, err := s.Get(t.Context(), "prometheus", ""); err != nil || got.Value != "x" || asked != 2 {
		t.Errorf("%q, %v, asked %d times", got.Value, err, asked)
	}
}

func TestDeletingFromAnAgeFileThatIsNotThereBeginsNone(t *testing.T) {
	f := ageFile(t, "")
	asked := 0
	f.Passphrase = ask(&asked, "open sesame")
	if err := (keys.TokenStore{Age: f}).Delete(t.Context(), "prometheus"); err != nil || asked != 0 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := os.Stat(f.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was begun: %v", err)
	}
}

func TestAKeyringThatCameBackIsAskedAgain(t *testing.T) {
	release := make(chan struct{})
	back := make(chan struct{}, 2)
	s := keys.TokenStore{Ring: keys.NewRing(keys.Backend{Get: func(string, string) (string, error) {
		<-release
		defer func() { back <- struct{}{} }()
		return "of-ring", nil
	}}, 20*time.Millisecond)}
	if _, err := s.Get(t.Context(), "prometheus", ""); !errors.Is(err, keys.ErrSilent) {
		t.Errorf("Get: %v", err)
	}
	close(release)
	<-back
	deadline := time.After(10 * time.Second)
	for {
		got, err := s.Get(t.Context(), "prometheus", "")
		if err == nil && got.Value == "of-ring" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("it is never asked again: %v", err)
		default:
		}
	}
}

func TestATokenDoesNotPrintItself(t *testing.T) {
	token := keys.Token{Value: "s3cr3t", From: "keyring"}
	body, err := json.Marshal(token)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(token), fmt.Sprintf("%+v %#v %s", token, token, token), string(body)} {
		if strings.Contains(text, "s3cr3t") {
			t.Errorf("it prints %q", text)
		}
	}
}
