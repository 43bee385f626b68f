package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) loginCmd() *cobra.Command {
	remove := false
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Put a token (prometheus, github, …) into the keyring, or into the age file that you have chosen",
		Long: `Read a token from standard input, without an echo on a terminal, and keep it in the
operating system's keyring, or, with --tokens FILE or tokens in the configuration, in that
file under a passphrase. At night it is looked for in the file of --token-file NAME=FILE,
in IC_<NAME>_TOKEN, in the keyring and in the age file, in that order. It is never an
argument and never written in plain text.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			if remove {
				return a.logout(cmd.Context(), c, args[0])
			}
			value, err := a.readToken(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			from, err := a.tokens(c).Set(cmd.Context(), args[0], value)
			if err != nil {
				return tokenFailure(err)
			}
			if env := keys.EnvName(args[0]); a.getenv(env) != "" {
				a.note("%s is set here, and counts before it", env)
			}
			return a.print(map[string]string{"name": args[0], "kept_in": from}, func(w io.Writer) { fmt.Fprintf(w, "the token for %s is in the %s\n", args[0], placed(from)) })
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take it out again")
	return cmd
}

func (a *app) logout(ctx context.Context, c config, name string) error {
	if err := a.tokens(c).Delete(ctx, name); err != nil {
		return tokenFailure(err)
	}
	return a.print(map[string]string{"removed": name}, func(w io.Writer) { fmt.Fprintf(w, "the token for %s is gone\n", name) })
}

func placed(from string) string {
	if from == keys.KeyringSource {
		return from
	}
	return "age file " + from
}

// tokenFailure: a keyring that is not there, locked or silent wants something of
// a person first.
func tokenFailure(err error) error {
	for _, first := range []error{keys.ErrNoBus, keys.ErrNoDaemon, keys.ErrLocked, keys.ErrSilent, keys.ErrGone} {
		if errors.Is(err, first) {
			return fail(exitNeeds, "%w", err)
		}
	}
	return err
}

// readToken reads one line that must not be seen.
func (a *app) readToken(ctx context.Context, name string) (string, error) {
	if a.terminal() {
		raw, err := a.askSecret(ctx, "token for "+name)
		return string(raw), err
	}
	line, err := readLine(a.in)
	if err == io.EOF && line != "" {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// examineTokens is the doctor's look at the tokens that this policy and this
// configuration want; without one that is wanted no keyring is asked.
func (a *app) examineTokens(ctx context.Context, c config, b *policy.Bundle, say func(name string, ok bool, detail, remedy string)) {
	wanted := map[string]bool{} // by name: whether nothing works without it
	for _, backend := range b.Backends {
		for _, name := range backend.Secrets {
			wanted[name] = true
		}
	}
	if _, needed := wanted["prometheus"]; c.Prometheus != "" && a.seat.info == nil && !needed {
		wanted["prometheus"] = false
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		t, err := a.token(ctx, c, name)
		switch {
		case err == nil:
			say("token "+name, true, "in "+t.From, "")
		case errors.Is(err, keys.ErrNoToken) && !wanted[name]:
			say("token "+name, true, "none, and most servers want none", "")
		default:
			say("token "+name, false, err.Error(), "ic login "+name)
		}
	}
}
