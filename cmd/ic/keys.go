package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func (a *app) keysCmd() *cobra.Command {
	cmd := group("keys", "Signing keys: make one, list them, check yours")
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
	Directives  bool     `json:"may_sign_directives"`
	Detail      string   `json:"detail,omitempty"`
}

func (a *app) keysListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Keys at hand, and whose they are in the trust root", Args: cobra.NoArgs,
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
	sources := a.keySources(c)
	sources.AgentSocket = a.getenv("SSH_AUTH_SOCK")
	listed, err := keys.List(cmd.Context(), sources)
	if err != nil {
		a.note("%v", err)
	}
	b, berr := a.bundle(c, false)
	if berr != nil {
		a.note("whose they are is not known: %v", berr)
	}
	views := []keyView{}
	for _, k := range listed {
		v := keyView{Fingerprint: k.Fingerprint, Type: k.Type, From: k.From, Comment: k.Comment}
		if err := sshsig.AcceptKey(k.Public, sshsig.ForDirective); err != nil {
			v.Detail = err.Error()
		} else {
			v.Directives = true
		}
		if b != nil {
			if owner, ok := b.SignerOf(k.Fingerprint); ok {
				v.Owner, v.Roles = owner.Name, b.Root.RolesOf(owner)
				if owner.Revoked {
					v.Directives, v.Detail = false, "revoked"
				}
			}
		}
		views = append(views, v)
	}
	return views, nil
}

func printKeys(w io.Writer, views []keyView) {
	if len(views) == 0 {
		fmt.Fprintln(w, "no keys are at hand: ic keys enrol makes one")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FINGERPRINT\tTYPE\tOWNER\tROLES\tFROM")
	for _, v := range views {
		owner := v.Owner
		if owner == "" {
			owner = "(not in the trust root)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", v.Fingerprint, v.Type, owner, strings.Join(v.Roles, ", "), v.From)
	}
	t.Flush()
}

func (a *app) keysCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Would your key work at 3am?", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			b, err := a.bundle(c, false)
			if err != nil {
				return err
			}
			if a.person(cmd.Context(), c, b) == "" {
				return fail(exitNeeds, "no key of %q in the trust root is at hand", c.Person).hinting("ic keys list shows what there is")
			}
			signer, err := a.signer(cmd.Context(), c)
			if err != nil {
				return err
			}
			s, err := a.files(c)
			if err != nil {
				return err
			}
			// A signature over nothing that anybody would take.
			sig, err := sshsig.Sign(signer, randReader, []byte("ic keys check"), s.realm().Namespace("check", c.Fleet))
			if err != nil {
				return fail(exitFailed, "the key does not sign: %w", err)
			}
			owner, _ := b.SignerOf(sig.Fingerprint)
			out := keyView{Fingerprint: sig.Fingerprint, Owner: owner.Name, Roles: b.Root.RolesOf(owner), Directives: true}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "%s signs as %s (%s)\n", out.Fingerprint, out.Owner, strings.Join(out.Roles, ", "))
			})
		},
	}
}

func (a *app) keysEnrolCmd() *cobra.Command {
	path, plain := "", false
	cmd := &cobra.Command{
		Use: "enrol", Short: "Make an Ed25519 key for signing, and print what belongs into the trust root", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			if c.Person == "" {
				return fail(exitUsage, "whose key will it be?").hinting("--person NAME")
			}
			if path == "" {
				path = filepath.Join(c.State, "keys", c.Person)
			}
			var passphrase []byte
			if !plain {
				if passphrase, err = a.newPassphrase(); err != nil {
					return err
				}
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			k, err := keys.Generate(randReader, path, c.Person, passphrase)
			if err != nil {
				return fail(exitFailed, "%w", err)
			}
			public, err := os.ReadFile(path + ".pub")
			if err != nil {
				return err
			}
			fields := strings.Fields(string(public))
			line := strings.Join(fields[:min(2, len(fields))], " ")
			out := map[string]string{"person": c.Person, "fingerprint": k.Fingerprint, "private": path, "public": line}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "%s\nprivate key: %s\nthe trust root lists under people.%s.keys:\n  %s\n", k.Fingerprint, path, c.Person, line)
			})
		},
	}
	cmd.Flags().StringVar(&path, "file", "", "where (default: keys/<person> in the state folder)")
	cmd.Flags().BoolVar(&plain, "no-passphrase", false, "whoever can read the file has the key")
	return cmd
}

func (a *app) newPassphrase() ([]byte, error) {
	in, ok := a.in.(*os.File)
	if !ok || !a.terminal() {
		return nil, fail(exitUsage, "there is no terminal to ask for a passphrase on").hinting("--no-passphrase says that you want none")
	}
	ask := func(text string) ([]byte, error) {
		fmt.Fprint(a.err, text)
		defer fmt.Fprintln(a.err)
		return term.ReadPassword(int(in.Fd()))
	}
	first, err := ask("passphrase: ")
	if err != nil {
		return nil, err
	}
	second, err := ask("the same again: ")
	if err != nil {
		return nil, err
	}
	if len(first) == 0 || !slices.Equal(first, second) {
		return nil, fail(exitUsage, "the two differ, or are empty: nothing was made")
	}
	return first, nil
}

func (a *app) loginCmd() *cobra.Command {
	remove := false
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Put a token (prometheus, github, …) into the operating system's keyring",
		Long: `Read a token from standard input, without an echo on a terminal, and keep it in the
keyring. At night it is looked for in a file named by a flag, in IC_<NAME>_TOKEN, in the
keyring, in that order. It is never an argument and never written in plain text.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store := a.tokens()
			if remove {
				if err := store.Delete(cmd.Context(), args[0]); err != nil {
					return fail(exitFailed, "%w", err)
				}
				return a.print(map[string]string{"removed": args[0]}, func(w io.Writer) { fmt.Fprintf(w, "the token for %s is gone\n", args[0]) })
			}
			value, err := a.readSecret("token for " + args[0] + ": ")
			if err != nil {
				return err
			}
			from, err := store.Set(cmd.Context(), args[0], value)
			if err != nil {
				return fail(exitFailed, "%w", err)
			}
			return a.print(map[string]string{"name": args[0], "kept_in": from}, func(w io.Writer) { fmt.Fprintf(w, "the token for %s is in the %s\n", args[0], from) })
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take it out again")
	return cmd
}

// readSecret reads one line that must not be seen.
func (a *app) readSecret(prompt string) (string, error) {
	if in, ok := a.in.(*os.File); ok && a.terminal() {
		fmt.Fprint(a.err, prompt)
		defer fmt.Fprintln(a.err)
		raw, err := term.ReadPassword(int(in.Fd()))
		return string(raw), err
	}
	line, err := readLine(a.in)
	if err == io.EOF && line != "" {
		err = nil
	}
	return strings.TrimSpace(line), err
}
