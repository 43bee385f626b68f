package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

// challengeLength is how many random bytes a key has to sign: nobody has an
// answer ready.
const challengeLength = 32

// trial is what became of one source.
type trial struct {
	From        string   `json:"from"`
	InUse       bool     `json:"in_use"` // the configuration names it
	Fingerprint string   `json:"fingerprint,omitempty"`
	Signs       bool     `json:"signs"`
	Owner       string   `json:"owner"`
	Roles       []string `json:"roles"`
	Detail      string   `json:"detail"`

	code   int // what it means for the exit code
	absent bool
}

func (a *app) keysCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use: "check [FINGERPRINT]", Short: "Would your key work at 3am?", Args: cobra.MaximumNArgs(1),
		Long: `Let your key sign something that nobody accepts: first where the configuration says that
it is, then wherever else a key of yours lies. Only the first decides the exit code:
0 it signs and the trust root knows it, 6 something has to come first, 1 it does not sign.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			if _, err := a.namedKey(c); err != nil {
				return err
			}
			b := a.whose(c)
			wanted := args
			if len(wanted) == 0 && b != nil {
				wanted = b.FingerprintsOf(c.Person)
			}
			trials, err := a.tryKeys(cmd.Context(), c, b, wanted)
			if err != nil {
				return err
			}
			a.code = trials[0].code
			return a.print(trials, func(w io.Writer) { printTrials(w, trials) })
		},
	}
}

func (a *app) tryKeys(ctx context.Context, c config, b *policy.Bundle, wanted []string) ([]trial, error) {
	stand, err := a.files(c)
	if err != nil {
		return nil, err
	}
	challenge := make([]byte, challengeLength)
	if _, err := io.ReadFull(randReader, challenge); err != nil {
		return nil, fmt.Errorf("make a challenge: %w", err)
	}
	sign := func(signer ssh.Signer) error {
		_, err := sshsig.Sign(signer, randReader, challenge, stand.realm().Namespace("check", c.Fleet))
		return err
	}
	var trials []trial
	for i, sources := range a.everywhere(c) {
		for _, p := range keys.Prove(ctx, sources, wanted, sign) {
			if errors.Is(p.Err, context.Canceled) {
				return nil, p.Err
			}
			t := judge(p, b, c.Person)
			t.InUse = i == 0
			if t.InUse || !t.absent {
				trials = append(trials, t)
			}
		}
	}
	return trials, nil
}

// judge says what a proof means for a person.
func judge(p keys.Proof, b *policy.Bundle, person string) trial {
	t := trial{From: p.From, Fingerprint: p.Key.Fingerprint, Signs: p.Err == nil, Roles: []string{}, absent: errors.Is(p.Err, keys.ErrNotYours)}
	if p.Err != nil {
		t.Detail, t.code = p.Err.Error(), codeOf(keyFailure(p.Err))
		return t
	}
	if b == nil {
		t.Detail, t.code = "signs; there is no trust root here that says whose it is", exitNeeds
		return t
	}
	owner, known := b.SignerOf(p.Key.Fingerprint)
	t.Owner, t.Roles = owner.Name, append(t.Roles, b.Root.RolesOf(owner)...)
	switch {
	case !known:
		t.Detail, t.code = "signs, and is not in the trust root: ic keys enrol --public prints the line that belongs there", exitNeeds
	case owner.Revoked:
		t.Detail, t.code = fmt.Sprintf("signs, and is revoked: nothing that it signs for %s counts", owner.Name), exitNeeds
	case owner.Name != person:
		t.Detail, t.code = fmt.Sprintf("signs as %s, and the configuration says %s", owner.Name, orElse(person, "nobody")), exitNeeds
	case len(t.Roles) == 0:
		t.Detail = fmt.Sprintf("signs as %s (no role: policy only)", owner.Name)
	default:
		t.Detail = fmt.Sprintf("signs as %s (%s)", owner.Name, strings.Join(t.Roles, ", "))
	}
	return t
}

func printTrials(w io.Writer, trials []trial) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range trials {
		mark := "ok"
		if r.code != exitDone {
			mark = "FAILED"
		}
		if !r.InUse {
			mark = "(" + mark + ", spare)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", mark, r.From, orElse(r.Fingerprint, "-"), r.Detail)
	}
	t.Flush()
}
