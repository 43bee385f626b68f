package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// AgentSource is what Key.From says of a key in ssh-agent.
const AgentSource = "ssh-agent"

// Errors of ssh-agent.
var (
	ErrAgent  = errors.New("ssh-agent") // is wrapped by every failure of it
	ErrHangs  = errors.New("did not answer")
	ErrNoSign = errors.New("it may be locked (ssh-add -X), or the key was removed, not touched or not confirmed")
)

// agentKeys lists what the agent holds. One that hangs is given up after
// ListWait.
func (s Sources) agentKeys(ctx context.Context) ([]Key, error) {
	var out []Key
	wait := cmp.Or(s.ListWait, DefaultListWait)
	err := s.withAgent(ctx, wait, func(a agent.ExtendedAgent) error {
		listed, err := a.List()
		for _, k := range listed {
			public, parseErr := ssh.ParsePublicKey(k.Blob)
			if parseErr != nil {
				continue // a type from the future; it cannot be one that we accept
			}
			out = append(out, newKey(public, k.Comment, AgentSource))
		}
		return err
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("%w %w within %s; check SSH_AUTH_SOCK, it may belong to a session that has ended", ErrAgent, ErrHangs, wait)
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
	settled := a.announce()
	var out *ssh.Signature
	err := a.sources.withAgent(a.ctx, wait, func(ag agent.ExtendedAgent) (err error) {
		out, err = ag.SignWithFlags(a.key.Public, data, flags)
		return err
	})
	settled()
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%w %w: nobody touched the key or confirmed within %s; nothing was signed", ErrAgent, ErrHangs, wait)
	}
	return nil, fmt.Errorf("%w; %w", err, ErrNoSign)
}

// announce tells somebody that he is waited for: at once where the key has to be
// touched, after a while where it should have signed long since. settled ends
// that, and afterwards nothing is said any more.
func (a *agentSigner) announce() (settled func()) {
	say := a.sources.Waits
	switch {
	case say == nil:
		return func() {}
	case a.key.NeedsTouch():
		return say(a.key.Fingerprint, true)
	}
	said := make(chan func(), 1)
	timer := time.AfterFunc(cmp.Or(a.sources.SlowAfter, DefaultSlowAfter), func() { said <- say(a.key.Fingerprint, false) })
	return func() {
		if !timer.Stop() {
			(<-said)()
		}
	}
}
