package directive

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// Limits of a token and of what a carrier holds.
const (
	MaxToken     = 4096  // bytes of one token
	MaxCarrier   = 16384 // bytes of all tokens in one carrier value
	MaxSignature = 8     // signatures on one token
)

const version = "ic1"

// Refusal is an error with the stable code of what is wrong with a token.
type Refusal struct {
	Code model.Code
	Err  error
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %v", r.Code, r.Err) }

// Unwrap returns the cause.
func (r *Refusal) Unwrap() error { return r.Err }

func refuse(code model.Code, format string, args ...any) error {
	return &Refusal{Code: code, Err: fmt.Errorf(format, args...)}
}

// CodeOf is the stable code of an error of this package, CodeMalformed if it
// carries none.
func CodeOf(err error) model.Code {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return model.CodeMalformed
}

// Signed is a token taken apart and verified: every signature on it is valid for
// its payload, in the namespace of its own fleet.
type Signed struct {
	Directive model.Directive
	Payload   []byte
	Token     string
	Signers   []sshsig.Signature // distinct keys, in the order of the token
}

// Fingerprints lists the keys that signed.
func (s *Signed) Fingerprints() []string {
	out := make([]string, len(s.Signers))
	for i, sig := range s.Signers {
		out[i] = sig.Fingerprint
	}
	return out
}

// Realm separates production from drills: their namespaces differ, so a drill's
// signature never verifies in production, whatever the keys.
type Realm string

// The two realms.
const (
	Production Realm = "ic"
	Drill      Realm = "ic-drill"
)

// Namespace is the SSHSIG namespace of one kind of document in a fleet, such as
// "ic-directive-v1@shop".
func (r Realm) Namespace(document, fleet string) string {
	return string(r) + "-" + document + "-v1@" + fleet
}

// Sign adds signer's signature over payload. It signs nothing that no host
// would take: not a payload that Parse refuses or that is for another fleet, and
// not with a key of a type that signs policy only.
func Sign(signer ssh.Signer, rand io.Reader, payload []byte, realm Realm, fleet string) (sshsig.Signature, error) {
	d, err := Parse(payload)
	if err != nil {
		return sshsig.Signature{}, fmt.Errorf("sign directive: %w", err)
	}
	if d.Fleet != fleet {
		return sshsig.Signature{}, fmt.Errorf("sign directive %s: it is for fleet %q, this is %q", d.ID, d.Fleet, fleet)
	}
	if err := sshsig.AcceptKey(signer.PublicKey(), sshsig.ForDirective); err != nil {
		return sshsig.Signature{}, fmt.Errorf("sign directive %s: %w", d.ID, err)
	}
	sig, err := sshsig.Sign(signer, rand, payload, realm.Namespace("directive", fleet))
	if err != nil {
		return sshsig.Signature{}, fmt.Errorf("sign directive %s: %w", d.ID, err)
	}
	return sig, nil
}

// Token joins a payload and its signatures, of which there is at least one.
func Token(payload []byte, signatures ...sshsig.Signature) (string, error) {
	if len(signatures) < 1 || len(signatures) > MaxSignature {
		return "", refuse(model.CodeMalformed, "a token has 1 to %d signatures, not %d", MaxSignature, len(signatures))
	}
	var out strings.Builder
	out.WriteString(version + "." + base64.RawURLEncoding.EncodeToString(payload))
	for _, s := range signatures {
		out.WriteString("." + base64.RawURLEncoding.EncodeToString(s.Blob))
	}
	if out.Len() > MaxToken {
		return "", refuse(model.CodeTooLong, "the token has %d bytes, at most %d fit every carrier: shorten the reason", out.Len(), MaxToken)
	}
	return out.String(), nil
}

// Verify takes a token apart and checks its form, its audience and every
// signature on it. One bad signature makes the whole token bad.
//
// With an error the result is nil, or holds what the token claims, for a report
// of what was refused: it then names no signer, and nothing of it may be obeyed.
func Verify(token string, realm Realm, fleet string) (*Signed, error) {
	payload, blobs, err := split(token)
	if err != nil {
		return nil, err
	}
	d, err := Parse(payload)
	switch {
	case errors.Is(err, errVersion):
		return nil, refuse(model.CodeUnsupported, "%w", err)
	case err != nil:
		return nil, refuse(model.CodeMalformed, "%w", err)
	}
	out := &Signed{Directive: d, Payload: payload, Token: token}
	if d.Fleet != fleet {
		return out, refuse(model.CodeForeignFleet, "it is for fleet %q, this is %q", d.Fleet, fleet)
	}
	signers, err := verifyAll(payload, blobs, realm.Namespace("directive", fleet))
	if err != nil {
		return out, err
	}
	out.Signers = signers
	return out, nil
}

func verifyAll(payload []byte, blobs [][]byte, namespace string) ([]sshsig.Signature, error) {
	signers := make([]sshsig.Signature, 0, len(blobs))
	seen := make(map[string]bool, len(blobs))
	for _, blob := range blobs {
		sig, err := sshsig.Parse(blob, sshsig.ForDirective)
		if err != nil {
			return nil, refuse(model.CodeBadSignature, "%w", err)
		}
		if seen[sig.Fingerprint] {
			return nil, refuse(model.CodeDuplicateSigner, "%s signed twice", sig.Fingerprint)
		}
		seen[sig.Fingerprint] = true
		if err := sig.Verify(payload, namespace); err != nil {
			return nil, refuse(model.CodeBadSignature, "%s: %w", sig.Fingerprint, err)
		}
		signers = append(signers, sig)
	}
	return signers, nil
}

// split takes a token apart without judging it.
func split(token string) (payload []byte, blobs [][]byte, err error) {
	if len(token) > MaxToken {
		return nil, nil, refuse(model.CodeTooLong, "the token has %d bytes, at most %d", len(token), MaxToken)
	}
	parts := strings.Split(token, ".")
	if later(parts[0]) {
		return nil, nil, refuse(model.CodeUnsupported, "a token of form %s, this software reads %s", parts[0], version)
	}
	if len(parts) < 3 || parts[0] != version {
		return nil, nil, refuse(model.CodeMalformed, "a token is %s.<payload>.<signature>", version)
	}
	if len(parts)-2 > MaxSignature {
		return nil, nil, refuse(model.CodeMalformed, "a token has at most %d signatures", MaxSignature)
	}
	for i, part := range parts[1:] {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return nil, nil, refuse(model.CodeMalformed, "part %d is not base64url: %w", i+1, err)
		}
		// The decoder skips CR and LF; a token has one spelling only.
		if base64.RawURLEncoding.EncodedLen(len(raw)) != len(part) {
			return nil, nil, refuse(model.CodeMalformed, "part %d has characters outside base64url", i+1)
		}
		if i == 0 {
			payload = raw
			continue
		}
		blobs = append(blobs, raw)
	}
	return payload, blobs, nil
}

// later reports whether the first part of a token names a later form of tokens:
// "ic" and a number above 1, without a leading zero.
func later(part string) bool {
	digits, ok := strings.CutPrefix(part, "ic")
	n, err := strconv.ParseUint(digits, 10, 16)
	return ok && err == nil && n > 1 && strconv.FormatUint(n, 10) == digits
}

// SplitCarrier takes a carrier value apart: tokens separated by one space, with
// an optional final newline. Other white space is forgiven, since people paste
// into files: no token holds any. Order carries no meaning to a reader.
func SplitCarrier(value string) []string {
	return strings.Fields(value)
}
