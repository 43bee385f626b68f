package keys

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/crypto/ssh"
)

// maxPublic is the longest public key file in bytes; one of RSA-4096 has 800.
const maxPublic = 16 << 10

// instead is what somebody does whose key is of no use.
const instead = "make an Ed25519 key (ic keys enrol)"

// Rights is what a key of some type may sign. Whose it is, and what its owner may
// do, says the trust root.
type Rights struct {
	Policy, Directives bool
	Why                string // one sentence where it is not both
}

// RightsOf says what a key may sign and, in the words of whoever has to get
// another one, why not more.
func RightsOf(public ssh.PublicKey) Rights {
	if sshsig.AcceptKey(public, sshsig.ForDirective) == nil {
		return Rights{Policy: true, Directives: true}
	}
	if sshsig.AcceptKey(public, sshsig.ForPolicy) == nil {
		return Rights{Policy: true, Why: "an RSA key signs policy only: its signatures are too long for a directive"}
	}
	if _, ok := public.(*ssh.Certificate); ok {
		return Rights{Why: "it is a certificate: nobody checks at night who issued it and until when; enrol the plain key that it certifies"}
	}
	if public.Type() == ssh.KeyAlgoRSA {
		return Rights{Why: fmt.Sprintf("RSA with %d bits is too short: 3072 is the least, and signs policy only; %s", bits(public), instead)}
	}
	return Rights{Why: untrusted.Text(public.Type(), maxText) + " signs nothing here; " + instead}
}

func bits(public ssh.PublicKey) int {
	if k, ok := public.(ssh.CryptoPublicKey); ok {
		if k, ok := k.CryptoPublicKey().(*rsa.PublicKey); ok {
			return k.N.BitLen()
		}
	}
	return 0
}

// Line is a public key as the trust root lists it: type and base64, nothing else.
func Line(public ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

// ReadPublic reads a public key file: one key on one line, perhaps with a
// comment.
func ReadPublic(path string) (Key, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Key{}, fmt.Errorf("public key: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPublic+1))
	if err != nil {
		return Key{}, fmt.Errorf("public key: %w", err)
	}
	k, err := parsePublic(text)
	if err != nil {
		return Key{}, fmt.Errorf("public key %s: %w", path, err)
	}
	k.From = path
	return k, nil
}

func parsePublic(text []byte) (Key, error) {
	switch {
	case len(text) > maxPublic:
		return Key{}, fmt.Errorf("it has more than %d bytes", maxPublic)
	case bytes.Contains(text, []byte("PRIVATE KEY-----")):
		return Key{}, errors.New("this is a private key: give its .pub file, and the private one to nobody")
	case bytes.HasPrefix(bytes.TrimSpace(text), []byte("ssh-dss ")): // which the library does not know any more
		return Key{}, errors.New("DSA is broken and signs nothing; " + instead)
	}
	// The library passes over lines that it does not understand.
	public, comment, options, _, err := ssh.ParseAuthorizedKey(text)
	switch {
	case err != nil:
		return Key{}, errors.New("it is not an OpenSSH public key, as ssh-keygen writes into a .pub file")
	case bytes.ContainsAny(bytes.TrimSpace(text), "\r\n"):
		return Key{}, errors.New("it holds more than one line; give one key")
	case len(options) > 0:
		return Key{}, errors.New("it has options, as in authorized_keys; a key is its type, its base64 and perhaps a comment")
	}
	return newKey(public, comment, ""), nil
}
