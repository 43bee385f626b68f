package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const fromAgent = "ssh-agent"

// ErrAgent is wrapped by every failure of ssh-agent.
var ErrAgent = errors.New("ssh-agent")

// agentKeys lists what the agent holds. One that hangs is given up after
// ListWait.
func (s Sources) agentKeys(ctx context.Context) ([]Key, error) {
	var out []Key
	err := s.withAgent(ctx, cmp.Or(s.ListWait, DefaultListWait), func(a agent.ExtendedAgent) error {
		listed, err := a.List()
		for _, k := range listed {
			public, parseErr := ssh.ParsePublicKey(k.Blob)
			if parseErr != nil {
				continue // a type from the future; it cannot be one that we accept
			}
			out = append(out, newKey(public, k.Comment, fromAgent))
		}
		return err
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%w does not answer; check SSH_AUTH_SOCK, it may belong to a session that has ended", ErrAgent)
	}
	return out, err
}

// withAgent connects for one conversation and ends it after limit, or with ctx.
func (s Sources) withAgent(ctx context.Context, limit time.Duration, talk func(agent.ExtendedAgent) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", s.AgentSocket)
	if err == nil {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
		if err = talk(agent.NewClient(conn)); err == nil {
			return nil
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrAgent, os.ErrDeadlineExceeded)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrAgent, ctx.Err())
	case conn == nil:
		return fmt.Errorf("%w cannot be reached: %s; start one, or use a key file", ErrAgent, untrusted.Network(err))
	}
	return fmt.Errorf("%w: %s", ErrAgent, untrusted.Text(err.Error(), maxText))
}

// agentSigner signs in a connection of its own each time: between finding a key
// and using it a person may think for minutes.
type agentSigner struct {
	ctx     context.Context // of whoever asked for the key: a signature must be stoppable, and ssh.Signer has no context
	sources Sources
	key     Key
}

var _ ssh.AlgorithmSigner = (*agentSigner)(nil)

// PublicKey implements ssh.Signer.
func (a *agentSigner) PublicKey() ssh.PublicKey { return a.key.Public }

// Sign implements ssh.Signer. The agent has its own randomness.
func (a *agentSigner) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	return a.sign(data, 0)
}

// SignWithAlgorithm implements ssh.AlgorithmSigner, by which RSA signs with
// SHA-2.
func (a *agentSigner) SignWithAlgorithm(_ io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	switch algorithm {
	case "", a.key.Public.Type():
		return a.sign(data, 0)
	case ssh.KeyAlgoRSASHA512:
		return a.sign(data, agent.SignatureFlagRsaSha512)
	}
	return nil, fmt.Errorf("%w: it is not asked for %s", ErrAgent, algorithm)
}

func (a *agentSigner) sign(data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	wait := cmp.Or(a.sources.TouchWait, DefaultTouchWait)
	if a.sources.Touch != nil && needsTouch(a.key.Public) {
		a.sources.Touch(a.key.Fingerprint)
	}
	var out *ssh.Signature
	err := a.sources.withAgent(a.ctx, wait, func(ag agent.ExtendedAgent) (err error) {
		out, err = ag.SignWithFlags(a.key.Public, data, flags)
		return err
	})
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("sign with %s: nobody touched the key or confirmed within %s; nothing was signed", a.key.Fingerprint, wait)
	}
	return nil, fmt.Errorf("sign with %s: %w; it may be locked, or the key was removed or not touched", a.key.Fingerprint, err)
}

// needsTouch reports whether a key lives in a security key.
func needsTouch(k ssh.PublicKey) bool { return strings.HasPrefix(k.Type(), "sk-") }
