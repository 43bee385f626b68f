package keys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/crypto/ssh"
)

// How long ssh-agent may take.
const (
	DefaultListWait  = 3 * time.Second  // to say which keys it has: nobody is asked anything
	DefaultTouchWait = 60 * time.Second // to sign: somebody looks for his key and touches it
	DefaultSlowAfter = time.Second      // a key in memory signs in milliseconds: longer is a question to somebody
)

// maxText bounds a comment or a quoted cause, in bytes.
const maxText = 120

// ErrNoKey means that no source holds the key.
var ErrNoKey = errors.New("the key is in no source")

// Sources are the places where signing keys may be. The zero value has none.
type Sources struct {
	AgentSocket string   // what SSH_AUTH_SOCK says; "" none
	Files       []string // OpenSSH private key files
	// Passphrase is for files that are encrypted. nil: they cannot be used.
	Passphrase AskPassphrase
	// Opened keeps what a passphrase has opened, so that it is asked once. nil:
	// it is asked for every signer.
	Opened *Opened
	// Waits is told that somebody is waited for: at once where a security key
	// wants to be touched, after SlowAfter where ssh-agent takes long over another
	// key and may be asking for a confirmation somewhere. over ends the wait.
	Waits     func(fingerprint string, touch bool) (over func())
	ListWait  time.Duration // 0: DefaultListWait
	TouchWait time.Duration // 0: DefaultTouchWait
	SlowAfter time.Duration // 0: DefaultSlowAfter
}

// Key is one key that a source holds.
type Key struct {
	Fingerprint string // SHA256:…
	Type        string
	Comment     string
	From        string // AgentSource, or the path of the file
	Public      ssh.PublicKey
	Encrypted   bool // the file wants a passphrase to sign
	Handle      bool // the file is the handle of a security key: only ssh-agent can sign with it
}

// NeedsTouch reports whether a key lives in a security key, which signs only when
// somebody touches it.
func (k Key) NeedsTouch() bool { return strings.HasPrefix(k.Public.Type(), "sk-") }

// Each is every source on its own, in the order in which Find asks them.
func (s Sources) Each() []Sources {
	var out []Sources
	if s.AgentSocket != "" {
		one := s
		one.Files = nil
		out = append(out, one)
	}
	for _, path := range s.Files {
		one := s
		one.AgentSocket, one.Files = "", []string{path}
		out = append(out, one)
	}
	return out
}

// List returns the keys of all sources, of every type; sshsig.AcceptKey says
// what one may sign. The error names the sources that could not be read; the
// keys of the others are there all the same. No passphrase is asked for.
func List(ctx context.Context, s Sources) ([]Key, error) {
	var out []Key
	var failed []error
	if s.AgentSocket != "" {
		keys, err := s.agentKeys(ctx)
		out, failed = append(out, keys...), append(failed, err)
	}
	for _, path := range s.Files {
		f, err := readKeyFile(path)
		if err == nil {
			out = append(out, f.key)
		}
		failed = append(failed, err)
	}
	return out, errors.Join(failed...)
}

// Find returns a signer for the key with this fingerprint, in the agent if it is
// there (no passphrase, perhaps a touch), else from a file. The signer of an
// agent works until ctx ends, and each signature may take TouchWait.
func Find(ctx context.Context, s Sources, fingerprint string, use sshsig.Use) (ssh.Signer, error) {
	listed, failed := List(ctx, s)
	for _, k := range listed {
		if k.Fingerprint != fingerprint {
			continue
		}
		if err := sshsig.AcceptKey(k.Public, use); err != nil {
			return nil, fmt.Errorf("key %s from %s: %w", fingerprint, k.From, err)
		}
		if k.From == AgentSource {
			return &agentSigner{ctx: ctx, sources: s, key: k}, nil
		}
		return s.open(ctx, k.From)
	}
	quoted := untrusted.Text(fingerprint, maxText)
	switch {
	case failed != nil:
		return nil, fmt.Errorf("find key %s: %w, and not all could be read: %w", quoted, ErrNoKey, failed)
	case len(listed) == 0 && s.AgentSocket != "":
		// A locked agent lists nothing; nothing tells it from one that is empty.
		return nil, fmt.Errorf("find key %s: %w: ssh-agent lists none; it is empty, or locked: ssh-add -X unlocks it", quoted, ErrNoKey)
	}
	return nil, fmt.Errorf("find key %s among %d: %w; add it with ssh-add, or name its file", quoted, len(listed), ErrNoKey)
}

func newKey(public ssh.PublicKey, comment, from string) Key {
	return Key{
		Fingerprint: ssh.FingerprintSHA256(public), Type: untrusted.Text(public.Type(), maxText),
		Comment: untrusted.Text(comment, maxText), From: from, Public: public,
	}
}
