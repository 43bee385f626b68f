package sshsig

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	lib "github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Limits. A blob of an RSA-4096 key is about 1,600 bytes.
const (
	MaxBlob   = 2048 // longest SSHSIG blob in bytes
	MaxArmor  = 4096 // longest armored signature in bytes
	minRSABit = 3072 // shortest RSA modulus in bits
)

const (
	armorBegin = "-----BEGIN SSH SIGNATURE-----\n"
	armorEnd   = "-----END SSH SIGNATURE-----\n"
	armorWidth = 70 // as ssh-keygen prints it
)

// Use says what a signature is for: RSA may sign policy, which is checked once
// and in daylight, but not directives, which have to be small and quick.
type Use int

// The two uses.
const (
	ForPolicy Use = iota
	ForDirective
)

// Errors that a caller may decide on.
var (
	ErrArmor     = errors.New("not one exact armored SSH signature")
	ErrBlob      = errors.New("not a canonical SSH signature")
	ErrKeyType   = errors.New("key type not accepted")
	ErrNamespace = errors.New("signature is for another namespace")
	ErrSignature = errors.New("signature does not match the content")
)

// Signature is one parsed signature with the key it names.
type Signature struct {
	Key         ssh.PublicKey
	Fingerprint string // SHA256:…
	Namespace   string
	Blob        []byte // wire form, canonical
	inner       ssh.Signature
}

// Parse reads the wire form. Bytes that would not encode back to themselves are
// refused, and so is padding inside: nobody can respell a signature that he
// could not have made. See oneSpelling for the exception. The blob is kept and
// must not be changed.
func Parse(blob []byte, use Use) (Signature, error) {
	if len(blob) > MaxBlob {
		return Signature{}, fmt.Errorf("%w: %d bytes, at most %d", ErrBlob, len(blob), MaxBlob)
	}
	p, err := unwire(blob)
	if err != nil {
		return Signature{}, err
	}
	if string(p.hash) != hashName {
		return Signature{}, fmt.Errorf("%w: hash %q, want %s", ErrBlob, p.hash, hashName)
	}
	if len(p.namespace) == 0 {
		return Signature{}, fmt.Errorf("%w: it names none", ErrNamespace)
	}
	key, err := ssh.ParsePublicKey(p.key)
	if err != nil {
		return Signature{}, fmt.Errorf("%w: %v", ErrBlob, err)
	}
	if !bytes.Equal(key.Marshal(), p.key) {
		return Signature{}, fmt.Errorf("%w: its key does not encode back to the same bytes", ErrBlob)
	}
	if err := AcceptKey(key, use); err != nil {
		return Signature{}, err
	}
	if err := oneSpelling(key, &p.signature); err != nil {
		return Signature{}, err
	}
	return Signature{
		Key:         key,
		Fingerprint: fingerprint(p.key),
		Namespace:   string(p.namespace),
		Blob:        blob,
		inner:       p.signature,
	}, nil
}

// fingerprint is that of ssh.FingerprintSHA256, from the wire form of a key.
func fingerprint(key []byte) string {
	sum := sha256.Sum256(key)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// AcceptKey reports whether a key of this type may sign for use. Certificates
// are refused: their authority and dates are not checked here.
func AcceptKey(key ssh.PublicKey, use Use) error {
	switch t := key.Type(); t {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		if use == ForDirective {
			return fmt.Errorf("%w: %s signs policy only; use Ed25519", ErrKeyType, t)
		}
		if modulusBits(key) < minRSABit {
			return fmt.Errorf("%w: RSA needs at least %d bits", ErrKeyType, minRSABit)
		}
		return nil
	default:
		return fmt.Errorf("%w: %s", ErrKeyType, t)
	}
}

// Verify checks that the signature covers content in namespace.
func (s Signature) Verify(content []byte, namespace string) error {
	if namespace == "" || s.Namespace != namespace {
		return fmt.Errorf("%w: it says %q, want %q", ErrNamespace, s.Namespace, namespace)
	}
	if err := s.Key.Verify(signedBytes(content, namespace), &s.inner); err != nil {
		return fmt.Errorf("%w: %v", ErrSignature, err)
	}
	return nil
}

// Sign signs content in namespace with signer; rand is used by ECDSA and RSA.
// What the signer returns is verified before it is handed out: an agent that
// answers with another key, or a FIDO key that nobody touched, fails here and
// not on a host.
func Sign(signer ssh.Signer, rand io.Reader, content []byte, namespace string) (Signature, error) {
	key := signer.PublicKey()
	if err := AcceptKey(key, ForPolicy); err != nil {
		return Signature{}, err
	}
	inner, err := lib.SignWithRand(bytes.NewReader(content), rand, signer, lib.HashSHA512, namespace)
	if err != nil {
		return Signature{}, fmt.Errorf("sign with %s in namespace %q: %w", ssh.FingerprintSHA256(key), namespace, err)
	}
	sig, err := Parse(inner.Marshal(), ForPolicy)
	if err != nil {
		return Signature{}, fmt.Errorf("the signer of %s made no usable signature: %w", ssh.FingerprintSHA256(key), err)
	}
	if err := sig.Verify(content, namespace); err != nil {
		return Signature{}, fmt.Errorf("the signer of %s made no usable signature: %w", ssh.FingerprintSHA256(key), err)
	}
	return sig, nil
}

// Armor prints the form that ssh-keygen writes and reads.
func Armor(blob []byte) []byte {
	var out bytes.Buffer
	out.WriteString(armorBegin)
	text := base64.StdEncoding.EncodeToString(blob)
	for len(text) > 0 {
		n := min(armorWidth, len(text))
		out.WriteString(text[:n])
		out.WriteByte('\n')
		text = text[n:]
	}
	out.WriteString(armorEnd)
	return out.Bytes()
}

// Unarmor reads exactly what Armor prints: one block, nothing before it,
// nothing behind it. Stock tools read only the first of several blocks; a file
// with more than one is refused here.
func Unarmor(text []byte) ([]byte, error) {
	if len(text) > MaxArmor {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrArmor, len(text), MaxArmor)
	}
	body, ok := bytes.CutPrefix(text, []byte(armorBegin))
	if !ok {
		return nil, fmt.Errorf("%w: it does not start with the BEGIN line", ErrArmor)
	}
	body, ok = bytes.CutSuffix(body, []byte(armorEnd))
	if !ok {
		return nil, fmt.Errorf("%w: it does not end with the END line", ErrArmor)
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(string(bytes.ReplaceAll(body, []byte("\n"), nil)))
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrArmor, err)
	}
	if !bytes.Equal(Armor(blob), text) {
		return nil, fmt.Errorf("%w: lines are not as ssh-keygen prints them", ErrArmor)
	}
	return blob, nil
}
