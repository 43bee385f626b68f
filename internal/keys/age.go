package keys

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"filippo.io/age"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/google/renameio/v2"
)

// Limits of an age file.
const (
	DefaultWorkFactor = 18 // about a second, as age itself does

	maxAgeFile    = 256 << 10 // bytes: a hundred tokens
	maxWorkFactor = 22        // that is accepted: 4 GiB of memory
)

// AgeFile holds tokens, encrypted with a passphrase, for where there is no
// keyring. It is used only when a person has chosen it. `age -d` reads it, too:
// inside is one JSON object of names and tokens.
type AgeFile struct {
	Path       string
	Passphrase AskPassphrase // nil: nobody can be asked
	WorkFactor int           // scrypt's log N of what is written; 0: DefaultWorkFactor

	mu     sync.Mutex
	tokens map[string]string // once decrypted: a person is asked once
	secret []byte
}

func (f *AgeFile) get(ctx context.Context, name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unlock(ctx, false); err != nil {
		return "", err
	}
	value, ok := f.tokens[name]
	if !ok {
		return "", ErrNoToken
	}
	return value, nil
}

func (f *AgeFile) set(ctx context.Context, name, value string) error {
	return f.change(ctx, func(tokens map[string]string) { tokens[name] = value })
}

func (f *AgeFile) delete(ctx context.Context, name string) error {
	switch _, err := f.get(ctx, name); {
	case errors.Is(err, ErrNoToken):
		return nil
	case err != nil:
		return err
	}
	return f.change(ctx, func(tokens map[string]string) { delete(tokens, name) })
}

// change keeps what is in memory only after it is on disk. A file that is not
// there is begun.
func (f *AgeFile) change(ctx context.Context, edit func(map[string]string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unlock(ctx, true); err != nil {
		return err
	}
	tokens := maps.Clone(f.tokens)
	edit(tokens)
	text, err := f.encrypt(tokens)
	if err != nil {
		return fmt.Errorf("age file %s: %w", f.Path, err)
	}
	if err := renameio.WriteFile(f.Path, text, 0o600); err != nil {
		return fmt.Errorf("age file: %w", err)
	}
	f.tokens = tokens
	return nil
}

// unlock reads the file once. One that is not there has no tokens, and is begun
// only by a change.
func (f *AgeFile) unlock(ctx context.Context, begin bool) error {
	if f.tokens != nil {
		return nil
	}
	text, err := readSecret(f.Path, maxAgeFile)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case isNew && !begin:
		return ErrNoToken
	case err != nil && !isNew:
		return fmt.Errorf("age file: %w", err)
	}
	if f.Passphrase == nil {
		return fmt.Errorf("age file %s: nobody can be asked for its passphrase", f.Path)
	}
	f.tokens, f.secret, err = f.open(ctx, text, isNew)
	if err != nil {
		return fmt.Errorf("age file %s: %w", f.Path, err)
	}
	return nil
}

// open asks for the passphrase, and again where it was wrong.
func (f *AgeFile) open(ctx context.Context, text []byte, isNew bool) (tokens map[string]string, secret []byte, err error) {
	ask := AskKnown
	if isNew {
		ask = AskNew
	}
	for range maxPassphrases {
		if secret, err = f.Passphrase(ctx, f.Path, ask); err != nil {
			return nil, nil, fmt.Errorf("no passphrase: %w", err)
		}
		if isNew {
			return make(map[string]string), secret, nil
		}
		if tokens, err = decrypt(text, secret); !errors.Is(err, ErrWrong) {
			return tokens, secret, err
		}
		ask = AskAgain
	}
	return nil, nil, ErrWrong
}

func (f *AgeFile) encrypt(tokens map[string]string) ([]byte, error) {
	recipient, err := age.NewScryptRecipient(string(f.secret))
	if err != nil {
		return nil, errors.New("the passphrase is empty")
	}
	recipient.SetWorkFactor(cmp.Or(f.WorkFactor, DefaultWorkFactor))
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, recipient)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decrypt(text, secret []byte) (map[string]string, error) {
	identity, err := age.NewScryptIdentity(string(secret))
	if err != nil {
		return nil, errors.New("the passphrase is empty")
	}
	identity.SetMaxWorkFactor(maxWorkFactor)
	r, err := age.Decrypt(bytes.NewReader(text), identity)
	var wrong *age.NoIdentityMatchError
	switch {
	case errors.As(err, &wrong) && slices.Contains(wrong.StanzaTypes, "scrypt"):
		return nil, ErrWrong
	case err != nil:
		return nil, fmt.Errorf("it is not an age file with a passphrase: %s", untrusted.Text(err.Error(), maxText))
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxAgeFile))
	if err != nil {
		return nil, fmt.Errorf("it is damaged: %s", untrusted.Text(err.Error(), maxText))
	}
	var tokens map[string]string
	if err := json.Unmarshal(plain, &tokens); err != nil || tokens == nil {
		return nil, errors.New("it does not hold tokens")
	}
	return tokens, nil
}
