package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) keysCmd() *cobra.Command {
	cmd := group("keys", "Signing keys: make or choose one, list them, check yours")
	cmd.AddCommand(a.keysEnrolCmd(), a.keysListCmd(), a.keysCheckCmd())
	return cmd
}

// keyView is one key with what the trust root says of it.
type keyView struct {
	Fingerprint string   `json:"fingerprint"`
	Type        string   `json:"type"`
	From        string   `json:"from"`
	Comment     string   `json:"comment"`
	Owner       string   `json:"owner"` // "" when it is not in the trust root
	Roles       []string `json:"roles"`
	Revoked     bool     `json:"revoked"`
	Directives  bool     `json:"may_sign_directives"`
	Policy      bool     `json:"may_sign_policy"`
	Touch       bool     `json:"needs_touch"`
	Passphrase  bool     `json:"needs_passphrase"`
	Detail      string   `json:"detail,omitempty"`
}

// view says what is known of a key; b may be nil.
func view(k keys.Key, b *policy.Bundle) keyView {
	rights := keys.RightsOf(k.Public)
	v := keyView{
		Fingerprint: k.Fingerprint, Type: k.Type, From: k.From, Comment: k.Comment, Roles: []string{},
		Directives: rights.Directives, Policy: rights.Policy, Touch: k.NeedsTouch(), Passphrase: k.Encrypted, Detail: rights.Why,
	}
	if k.Handle {
		v.Detail = keys.ErrHandle.Error()
	}
	if b == nil {
		return v
	}
	if owner, ok := b.SignerOf(k.Fingerprint); ok {
		v.Owner, v.Roles = owner.Name, append(v.Roles, b.Root.RolesOf(owner)...)
		if owner.Revoked {
			v.Revoked, v.Directives, v.Policy = true, false, false
		}
	}
	return v
}

// signs is what a key may sign, in one word.
func (v *keyView) signs() string {
	switch {
	case v.Directives:
		return "directives, policy"
	case v.Policy:
		return "policy only"
	default:
		return "nothing"
	}
}

// needs is what has to happen before a key signs.
func (v *keyView) needs() string {
	var needs []string
	if v.Touch {
		needs = append(needs, "a touch")
	}
	if v.Passphrase {
		needs = append(needs, "a passphrase")
	}
	return strings.Join(needs, ", ")
}

func (a *app) keysListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Keys at hand: whose they are in the trust root, and what they may sign", Args: cobra.NoArgs,
		Long: `List the keys of ssh-agent, of the configured key file, and of the file in which ic keys
enrol puts yours. It works without a policy, and with an ssh-agent that hangs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.keyViews(cmd)
			if err != nil {
				return err
			}
			return a.print(views, func(w io.Writer) { printKeys(w, views) })
		},
	}
}

func (a *app) keyViews(cmd *cobra.Command) ([]keyView, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	b := a.whose(c)
	views := []keyView{}
	for _, sources := range a.everywhere(c) {
		listed, err := keys.List(cmd.Context(), sources)
		if err != nil {
			a.note("%v", err)
		}
		for _, k := range listed {
			views = append(views, view(k, b))
		}
	}
	return views, nil
}

// whose is the policy that says whose a key is; nil, and said, where there is
// none.
func (a *app) whose(c config) *policy.Bundle {
	b, err := a.bundle(c, false)
	if err != nil {
		a.note("whose they are is not known: %v", err)
	}
	return b
}

// everywhere is the source that the configuration names, and after it those that
// it does not name and that may hold a key of ours all the same.
func (a *app) everywhere(c config) []keys.Sources {
	all := a.keySources(c).Each()
	spare := a.keySources(c)
	spare.AgentSocket, spare.Files, spare.Passphrase = "", nil, a.asker()
	if c.Key != agentKey {
		spare.AgentSocket = a.getenv("SSH_AUTH_SOCK")
	}
	if path := ownKeyFile(c); c.Person != "" && path != c.Key {
		if _, err := os.Stat(path); err == nil {
			spare.Files = []string{path}
		}
	}
	return append(all, spare.Each()...)
}

func printKeys(w io.Writer, views []keyView) {
	if len(views) == 0 {
		fmt.Fprintln(w, "no keys are at hand: ic keys enrol makes one")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FINGERPRINT\tTYPE\tOWNER\tROLES\tSIGNS\tNEEDS\tFROM")
	for _, v := range views {
		owner := orElse(v.Owner, "(not in the trust root)")
		if v.Revoked {
			owner += " (revoked)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Fingerprint, v.Type, owner, orElse(strings.Join(v.Roles, ", "), "-"), v.signs(), orElse(v.needs(), "-"), v.From)
	}
	t.Flush()
	for _, v := range views {
		if v.Detail != "" {
			fmt.Fprintf(w, "%s: %s\n", v.Fingerprint, v.Detail)
		}
	}
}

// agentKeys lists what ssh-agent holds.
func (a *app) agentKeys(ctx context.Context) ([]keys.Key, error) {
	socket := a.getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, fail(exitNeeds, "no ssh-agent runs here: SSH_AUTH_SOCK is not set").hinting("eval \"$(ssh-agent)\" && ssh-add FILE")
	}
	listed, err := keys.List(ctx, keys.Sources{AgentSocket: socket})
	if err != nil {
		return nil, keyFailure(err)
	}
	return listed, nil
}
