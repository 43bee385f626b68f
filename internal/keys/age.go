package keys

import (
	"bytes"
	"cmp"
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
	Path string
	// Passphrase must not echo. isNew means that it will be used for the first
	// time and has to be typed twice.
	Passphrase func(path string, isNew bool) ([]byte, error)
	WorkFactor int // scrypt's log N of what is written; 0: DefaultWorkFactor

	mu     sync.Mutex
	tokens map[string]string // once decrypted: a person is asked once
	secret []byte
}

func (f *AgeFile) get(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unlock(false); err != nil {
		return "", err
	}
	value, ok := f.tokens[name]
	if !ok {
		return "", ErrNoToken
	}
	return value, nil
}

func (f *AgeFile) set(name, value string) error {
	return f.change(func(tokens map[string]string) { tokens[name] = value })
}

func (f *AgeFile) delete(name string) error {
	err := f.change(func(tokens map[string]string) { delete(tokens, name) })
	if errors.Is(err, ErrNoToken) {
		return nil
	}
	return err
}

// change keeps what is in memory only after it is on disk.
func (f *AgeFile) change(edit func(map[string]string)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unlock(true); err != nil {
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
func (f *AgeFile) unlock(begin bool) error {
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
	secret, err := f.Passphrase(f.Path, isNew)
	if err != nil {
		return fmt.Errorf("age file %s: no passphrase: %w", f.Path, err)
	}
	tokens := make(map[string]string)
	if !isNew {
		if tokens, err = decrypt(text, secret); err != nil {
			return fmt.Errorf("age file %s: %w", f.Path, err)
		}
	}
	f.tokens, f.secret = tokens, secret
	return nil
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
		return nil, errors.New("the passphrase is wrong")
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
