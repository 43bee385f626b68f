package audit

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/mod/sumdb/note"
)

// MaxSession is the longest time for which a checkpoint key may be certified: one
// long shift. What leaks with a laptop's memory is not good for longer.
const MaxSession = 12 * time.Hour

// maxSessionName leaves room for a segment's number in an origin's last part,
// which is a name of at most directive.MaxName bytes.
const maxSessionName = 48

const certificateLayout = "2006-01-02T15:04:05Z"

// ErrUncertified is wrapped by errors about who vouches for a session's key.
var ErrUncertified = errors.New("the session's key is not certified")

// Statement is what an operator's SSH key says about a session: this checkpoint
// key is mine, from here until there.
type Statement struct {
	V       int    `json:"v"`
	Fleet   string `json:"fleet"`
	Session string `json:"session"`
	Person  string `json:"person"`
	Key     string `json:"key"` // verifier key of a signed note: <fleet>/<incident>/<session>+hash+key
	From    string `json:"from"`
	Until   string `json:"until"`
}

func readStatement(raw string) (Statement, error) {
	var s Statement
	if err := strict([]byte(raw), &s); err != nil {
		return s, err
	}
	again, err := canonical(s)
	if err != nil {
		return s, err
	}
	if !bytes.Equal(again, []byte(raw)) {
		return s, errors.New("the bytes are not canonical")
	}
	if s.V != formatVersion {
		return s, fmt.Errorf("version %d, this software reads %d", s.V, formatVersion)
	}
	length, err := s.length()
	if err != nil {
		return s, err
	}
	if length <= 0 || length > MaxSession {
		return s, fmt.Errorf("it certifies for %s, at most %s", length, MaxSession)
	}
	return s, nil
}

func (s Statement) length() (time.Duration, error) {
	from, err := time.Parse(certificateLayout, s.From)
	if err != nil {
		return 0, err
	}
	until, err := time.Parse(certificateLayout, s.Until)
	if err != nil {
		return 0, err
	}
	return until.Sub(from), nil
}

// signedBy checks the certificate and returns the fingerprint of the key that
// made it. Whose key that is, the caller has to find out.
func (s Statement) signedBy(raw string, certificate []byte, realm directive.Realm) (string, error) {
	sig, err := sshsig.Parse(certificate, sshsig.ForDirective)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUncertified, err)
	}
	if err := sig.Verify([]byte(raw), realm.Namespace("session", s.Fleet)); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUncertified, err)
	}
	return sig.Fingerprint, nil
}

// newKey makes the key that signs a session's checkpoints. It lives in memory
// only and dies with the process.
func newKey(random io.Reader, name string) (signer note.Signer, verifierKey string, err error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, "", err
	}
	public, ok := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if !ok {
		return nil, "", errors.New("an Ed25519 key without an Ed25519 public key")
	}
	verifierKey, err = note.NewEd25519VerifierKey(name, public)
	if err != nil {
		return nil, "", err
	}
	verifier, err := note.NewVerifier(verifierKey)
	if err != nil {
		return nil, "", err
	}
	algorithm := []byte{1} // Ed25519 in the notation of signed notes
	secret := base64.StdEncoding.EncodeToString(append(algorithm, seed...))
	signer, err = note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%08x+%s", name, verifier.KeyHash(), secret))
	return signer, verifierKey, err
}

// sessionName reports whether s can name a session. It has no point: that
// separates a segment's number from it.
func sessionName(s string) bool {
	return directive.Name(s) && len(s) <= maxSessionName && !strings.Contains(s, ".")
}

// segmentOf is the last part of an origin and the base name of its file.
func segmentOf(session string, segment int) string {
	if segment == 1 {
		return session
	}
	return session + "." + strconv.Itoa(segment)
}
