package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// Errors of a proof.
var (
	ErrNotYours = errors.New("it holds no key of yours")
	ErrWhich    = errors.New("it holds several keys and none was named")
)

// Proof is what became of asking one source for a signature.
type Proof struct {
	From string // AgentSource, or the path of the file
	Key  Key    // the key that was asked; its Public is nil where it came to none
	Err  error  // nil: it signs
}

// Prove asks every source on its own, in the order in which Find does, to sign
// with the first key of these fingerprints that it holds. Without fingerprints
// it is the only key there that may sign directives. sign has to check what it
// gets.
func Prove(ctx context.Context, s Sources, fingerprints []string, sign func(ssh.Signer) error) []Proof {
	var out []Proof
	for _, one := range s.Each() {
		p := Proof{From: AgentSource}
		if one.AgentSocket == "" {
			p.From = one.Files[0]
		}
		p.Key, p.Err = one.pick(ctx, fingerprints)
		if p.Err == nil {
			signer, err := Find(ctx, one, p.Key.Fingerprint, sshsig.ForDirective)
			if p.Err = err; err == nil {
				p.Err = sign(signer)
			}
		}
		out = append(out, p)
	}
	return out
}

func (s Sources) pick(ctx context.Context, fingerprints []string) (Key, error) {
	listed, err := List(ctx, s)
	var fitting []Key
	for _, k := range listed {
		if slices.Contains(fingerprints, k.Fingerprint) {
			return k, nil
		}
		if RightsOf(k.Public).Directives {
			fitting = append(fitting, k)
		}
	}
	switch {
	case err != nil:
		return Key{}, err
	case len(fingerprints) == 0 && len(fitting) == 1:
		return fitting[0], nil
	case len(fingerprints) == 0 && len(fitting) > 1:
		return Key{}, fmt.Errorf("%w (%d may sign): name one by its fingerprint", ErrWhich, len(fitting))
	case len(listed) == 0: // a locked agent lists nothing, and nothing tells it from an empty one
		return Key{}, fmt.Errorf("%w: it is empty, or locked: ssh-add -X unlocks it, ssh-add FILE loads a key", ErrNotYours)
	case len(fingerprints) == 0:
		return Key{}, errors.New(RightsOf(listed[0].Public).Why)
	case s.AgentSocket == "":
		return Key{}, fmt.Errorf("%w: its key is %s", ErrNotYours, listed[0].Fingerprint)
	}
	return Key{}, fmt.Errorf("%w among %d: ssh-add FILE loads it", ErrNotYours, len(listed))
}
