package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// kept is what one run of the program has opened, in memory only: nobody is asked
// for the same passphrase twice, and a keyring that hangs hangs once.
type kept struct {
	keys keys.Opened

	mu   sync.Mutex
	ring *keys.Ring
	age  *keys.AgeFile

	screen  atomic.Bool            // the console is drawn: nobody can be asked, and nothing written beside it
	waiting atomic.Pointer[string] // what the console says instead
}

// keySources is where the key stands that the configuration names, and nowhere
// else.
func (a *app) keySources(c config) keys.Sources {
	s := keys.Sources{Opened: &a.kept.keys, Waits: a.waits}
	if c.Key == agentKey {
		s.AgentSocket = a.getenv("SSH_AUTH_SOCK")
		return s
	}
	if c.Key != "" {
		s.Files = []string{c.Key}
	}
	s.Passphrase = a.asker()
	return s
}

// asker asks for passphrases where there is somebody to ask, else it is nil.
func (a *app) asker() keys.AskPassphrase {
	if !a.terminal() || a.kept.screen.Load() {
		return nil
	}
	return a.passphrase
}

// waits tells a person that his key waits for him: as a line, or in the console.
func (a *app) waits(fingerprint string, touch bool) (over func()) {
	text := fmt.Sprintf("touch your key (%s)", fingerprint)
	if !touch {
		text = fmt.Sprintf("ssh-agent takes long over %s: it may be asking for a confirmation on another screen", fingerprint)
	}
	if !a.kept.screen.Load() {
		a.note("%s", text)
		return func() {}
	}
	a.kept.waiting.Store(&text)
	return func() { a.kept.waiting.Store(nil) }
}

// waiting is what the key waits for, for the console.
func (a *app) waiting() string {
	if text := a.kept.waiting.Load(); text != nil {
		return *text
	}
	return ""
}

// passphrase asks for the passphrase of a file, without an echo.
func (a *app) passphrase(ctx context.Context, path string, ask keys.Ask) ([]byte, error) {
	switch ask {
	case keys.AskNew:
		return a.newPassphrase(ctx, "new passphrase of "+path)
	case keys.AskAgain:
		return a.askSecret(ctx, "that was wrong; passphrase of "+path)
	default:
		return a.askSecret(ctx, "passphrase of "+path)
	}
}

// newPassphrase asks twice.
func (a *app) newPassphrase(ctx context.Context, what string) ([]byte, error) {
	first, err := a.askSecret(ctx, what)
	if err != nil {
		return nil, err
	}
	second, err := a.askSecret(ctx, "the same again")
	if err != nil {
		return nil, err
	}
	defer clear(second)
	if len(first) == 0 || !slices.Equal(first, second) {
		clear(first)
		return nil, fail(exitUsage, "the two differ, or are empty: nothing was made")
	}
	return first, nil
}

// errNoTerminal means that there is nobody to type a secret.
var errNoTerminal = errors.New("there is no terminal to ask on")

// askSecret reads one line that must not be seen. Interrupted, it leaves the
// terminal as it was.
func (a *app) askSecret(ctx context.Context, what string) ([]byte, error) {
	in, ok := a.in.(*os.File)
	if !ok || !a.terminal() || a.kept.screen.Load() {
		return nil, errNoTerminal
	}
	show, err := hideTyping(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("ask for a secret: %w", err)
	}
	fmt.Fprintf(a.err, "%s: ", what)
	defer fmt.Fprintln(a.err)
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			err = errors.New("nothing was typed")
		}
		got <- answer{line, err}
	}()
	select {
	case g := <-got:
		return []byte(g.line), errors.Join(g.err, show())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), show())
	}
}

// signer is our key for directives, and for whatever else is signed at night: of
// those at hand the first that the trust root lists as ours, and without a trust
// root that knows us the first that may sign.
func (a *app) signer(ctx context.Context, c config) (ssh.Signer, error) {
	sources, err := a.namedKey(c)
	if err != nil {
		return nil, err
	}
	listed, err := keys.List(ctx, sources)
	if len(listed) == 0 {
		if err == nil {
			err = errors.New("ssh-agent lists none: it is empty, or locked (ssh-add -X unlocks it)")
		}
		return nil, fail(exitNeeds, "no signing key: %w", err).hinting("ic keys check tries every key there is")
	}
	var own []string
	if b, err := a.bundle(c, false); err == nil {
		own = b.FingerprintsOf(c.Person)
	}
	at := slices.IndexFunc(listed, func(k keys.Key) bool {
		return keys.RightsOf(k.Public).Directives && (len(own) == 0 || slices.Contains(own, k.Fingerprint))
	})
	if at < 0 {
		return nil, fail(exitNeeds, "of the %d keys at hand none is %s's in the trust root and may sign this", len(listed), c.Person).
			hinting("ic keys list says whose they are and what they may sign")
	}
	signer, err := keys.Find(ctx, sources, listed[at].Fingerprint, sshsig.ForDirective)
	if err != nil {
		return nil, keyFailure(err)
	}
	return signer, nil
}

// namedKey is the source that the configuration names; it is an error where it
// names none.
func (a *app) namedKey(c config) (keys.Sources, error) {
	s := a.keySources(c)
	switch {
	case c.Key == "":
		return s, fail(exitNeeds, "no key is configured").hinting("set key to %q or to a private key file: --key, IC_KEY or config.yaml", agentKey)
	case c.Key == agentKey && s.AgentSocket == "":
		return s, fail(exitNeeds, "the key is in ssh-agent, and none runs here: SSH_AUTH_SOCK is not set").hinting("eval \"$(ssh-agent)\" && ssh-add FILE, or log in with agent forwarding")
	}
	return s, nil
}

// keyFailure says whether a key works after something was done first, or not.
func keyFailure(err error) error {
	for _, first := range []error{keys.ErrNoKey, keys.ErrNotYours, keys.ErrWhich, keys.ErrAgent, keys.ErrNoAsk, keys.ErrHandle, keys.ErrExposed, os.ErrNotExist, errNoTerminal} {
		if errors.Is(err, first) {
			return fail(exitNeeds, "%w", err)
		}
	}
	return err
}

// openKey asks for the passphrase of our key before the console is drawn, where
// nobody can be asked any more. A key that does not open is no reason not to
// look.
func (a *app) openKey(ctx context.Context, c config) error {
	listed, _ := keys.List(ctx, keys.Sources{Files: a.keySources(c).Files}) // what cannot be read is said where it is used
	if !slices.ContainsFunc(listed, func(k keys.Key) bool { return k.Encrypted }) {
		return nil
	}
	_, err := a.signer(ctx, c)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		a.note("this console can look and not sign: %v", err)
	}
	return nil
}

// token finds a token: in a file named by --token-file, in the environment, in
// the keyring, in the age file that was chosen.
func (a *app) token(ctx context.Context, c config, name string) (keys.Token, error) {
	return a.tokens(c).Get(ctx, name, a.tokenFiles[name])
}

// tokens is where tokens are kept.
func (a *app) tokens(c config) keys.TokenStore {
	a.kept.mu.Lock()
	defer a.kept.mu.Unlock()
	if a.kept.ring == nil {
		a.kept.ring = keys.OSRing()
	}
	s := keys.TokenStore{Getenv: a.getenv, Ring: a.kept.ring}
	if c.Tokens != "" {
		if a.kept.age == nil {
			a.kept.age = &keys.AgeFile{Path: c.Tokens, Passphrase: a.asker()}
		}
		s.Age = a.kept.age
	}
	return s
}

// ownKeyFile is where ic keys enrol puts a key unless told otherwise.
func ownKeyFile(c config) string { return filepath.Join(c.State, "keys", c.Person) }
