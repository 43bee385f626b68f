package keys

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/crypto/ssh"
)

// maxKeyFile is the longest key file in bytes; one of RSA-4096 has 3,400.
const maxKeyFile = 32 << 10

// maxPassphrases is how often a passphrase may be typed wrong, as ssh has it.
const maxPassphrases = 3

// Ask is how a passphrase is asked for.
type Ask int

// The ways to ask.
const (
	AskKnown Ask = iota // the one that it has
	AskAgain            // the answer before was wrong
	AskNew              // it is used for the first time: typed twice
)

// AskPassphrase asks a person for the passphrase of a file. It must not echo, and
// ends with ctx.
type AskPassphrase func(ctx context.Context, path string, ask Ask) ([]byte, error)

// Errors of a key file that a caller may decide on.
var (
	ErrExposed = errors.New("others may read it; run chmod 600 on it")
	ErrNoAsk   = errors.New("it is encrypted and nobody can be asked for its passphrase; load it into ssh-agent with ssh-add")
	ErrWrong   = errors.New("the passphrase is wrong")
	ErrHandle  = errors.New("it is the handle of a security key: load it into ssh-agent with ssh-add, and say key: agent")
)

// Opened keeps the signers of the key files that a passphrase has opened. The
// zero value keeps none yet. It is safe for concurrent use: while one asks, the
// others wait for his answer.
type Opened struct {
	mu      sync.Mutex
	signers map[string]ssh.Signer
}

// keyFile is a private key file as read, perhaps still encrypted.
type keyFile struct {
	key    Key
	pem    []byte
	signer ssh.Signer // nil if it is encrypted or a handle
}

func readKeyFile(path string) (keyFile, error) {
	text, err := readSecret(path, maxKeyFile)
	if err != nil {
		return keyFile{}, fmt.Errorf("key file: %w", err)
	}
	f := keyFile{pem: text}
	var missing *ssh.PassphraseMissingError
	f.signer, err = ssh.ParsePrivateKey(text)
	switch {
	case err == nil:
		f.key = newKey(f.signer.PublicKey(), "", path)
		return f, nil
	case errors.As(err, &missing) && missing.PublicKey != nil:
		f.key = newKey(missing.PublicKey, "", path)
		f.key.Encrypted = true
	default:
		public := publicPart(text)
		if public == nil {
			return keyFile{}, fmt.Errorf("key file %s: it is not an OpenSSH private key (%s)", path, untrusted.Text(err.Error(), maxText))
		}
		f.key = newKey(public, "", path)
	}
	f.key.Handle = f.key.NeedsTouch()
	return f, nil
}

// publicPart is the public key that stands in the clear in OpenSSH's format, also
// where the private part is of a kind that our library does not read. nil: there
// is none.
func publicPart(text []byte) ssh.PublicKey {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	body, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	var file struct {
		Cipher, KDF, Options string
		Keys                 uint32
		Public               []byte
		Private              []byte `ssh:"rest"`
	}
	if !ok || ssh.Unmarshal(body, &file) != nil || file.Keys != 1 {
		return nil
	}
	public, err := ssh.ParsePublicKey(file.Public)
	if err != nil {
		return nil
	}
	return public
}

// open makes a signer of a key file and asks for its passphrase if it has one.
func (s Sources) open(ctx context.Context, path string) (ssh.Signer, error) {
	if s.Opened == nil {
		return s.unlock(ctx, path)
	}
	s.Opened.mu.Lock()
	defer s.Opened.mu.Unlock()
	if signer, ok := s.Opened.signers[path]; ok {
		return signer, nil
	}
	signer, err := s.unlock(ctx, path)
	if err != nil {
		return nil, err
	}
	if s.Opened.signers == nil {
		s.Opened.signers = make(map[string]ssh.Signer)
	}
	s.Opened.signers[path] = signer
	return signer, nil
}

func (s Sources) unlock(ctx context.Context, path string) (ssh.Signer, error) {
	f, err := readKeyFile(path)
	switch {
	case err != nil:
		return nil, err
	case f.key.Handle:
		return nil, fmt.Errorf("key file %s: %w", path, ErrHandle)
	case f.signer != nil:
		return f.signer, nil
	case s.Passphrase == nil:
		return nil, fmt.Errorf("key file %s: %w", path, ErrNoAsk)
	}
	ask := AskKnown
	for range maxPassphrases {
		passphrase, err := s.Passphrase(ctx, path, ask)
		if err != nil {
			return nil, fmt.Errorf("key file %s: no passphrase: %w", path, err)
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(f.pem, passphrase)
		clear(passphrase)
		switch {
		case err == nil:
			return signer, nil
		case !errors.Is(err, x509.IncorrectPasswordError):
			return nil, fmt.Errorf("key file %s: %s", path, untrusted.Text(err.Error(), maxText))
		}
		ask = AskAgain
	}
	return nil, fmt.Errorf("key file %s: %w", path, ErrWrong)
}

// Generate makes an Ed25519 key pair in OpenSSH's formats: path, for its owner
// only, and path.pub. It never replaces a file. passphrase may be empty; then
// whoever can read the file has the key.
func Generate(rand io.Reader, path, comment string, passphrase []byte) (Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return Key{}, fmt.Errorf("generate key %s: %w", path, err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		return Key{}, fmt.Errorf("generate key %s: %w", path, err)
	}
	comment = untrusted.Text(comment, maxText)
	marshal := func() (*pem.Block, error) { return ssh.MarshalPrivateKey(private, comment) }
	if len(passphrase) > 0 {
		marshal = func() (*pem.Block, error) { return ssh.MarshalPrivateKeyWithPassphrase(private, comment, passphrase) }
	}
	block, err := marshal()
	if err != nil {
		return Key{}, fmt.Errorf("generate key %s: %w", path, err)
	}
	line := strings.TrimSpace(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))+" "+comment) + "\n"
	if err := createNew(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return Key{}, err
	}
	if err := createNew(path+".pub", []byte(line), 0o644); err != nil {
		return Key{}, errors.Join(err, os.Remove(path)) // half a pair would only be in the way
	}
	return newKey(public, comment, path), nil
}

func createNew(path string, content []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write %s: it exists and is not replaced; move it away first", path)
	}
	if err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// readSecret reads a file that only its owner may read. The mode is that of the
// opened file, so nothing can be put in its place in between; the open does not
// wait for the other end of a pipe.
func readSecret(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %04o: %w", path, info.Mode().Perm(), ErrExposed)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes, at most %d", path, info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
