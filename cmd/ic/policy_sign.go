package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func (a *app) policySignCmd() *cobra.Command {
	person, detached := "", ""
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a file of the policy as yourself: of the staged version if there is one",
		Long: `Sign FILE (such as payments.yaml, manifest.yaml or roots/2.yaml) of the staged version of
the policy, or of the policy folder itself when nothing is staged, with ssh-agent or a key
file. With --signature a detached signature made elsewhere, for example by ssh-keygen -Y
sign, is verified and put in its place instead.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, c, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			person := orElse(person, c.Person)
			if person == "" || c.Fleet == "" {
				return fail(exitUsage, "say who signs, and for which fleet").hinting("--as NAME and --fleet NAME, or person and fleet in the configuration")
			}
			staged, isStaged := policy.IsStaged(dir)
			if isStaged {
				dir = staged
			}
			if _, err := os.Stat(filepath.Join(dir, args[0])); err != nil || !filepath.IsLocal(args[0]) {
				return fail(exitUsage, "there is no file %s in %s", args[0], dir).hinting("FILE is its name in the policy folder, such as payments.yaml or roots/1.yaml")
			}
			if err := a.sign(cmd.Context(), c, dir, args[0], person, detached); err != nil {
				return err
			}
			out := map[string]any{"file": args[0], "person": person, "folder": dir, "staged": isStaged}
			return a.print(out, func(w io.Writer) {
				fmt.Fprintf(w, "%s is signed by %s\n", args[0], person)
				if isStaged {
					fmt.Fprintf(w, "  in the staged version, %s; ic policy stage says who else has to\n", dir)
				}
			})
		},
	}
	cmd.Flags().StringVar(&person, "as", "", "who signs (default: person of the configuration)")
	cmd.Flags().StringVar(&detached, "signature", "", "detached armored signature to put in place")
	return cmd
}

// sign puts one signature into a policy folder.
func (a *app) sign(ctx context.Context, c config, dir, file, person, detached string) error {
	stand, err := a.files(c)
	if err != nil {
		return err
	}
	if detached != "" {
		armored, err := os.ReadFile(detached)
		if err != nil {
			return fail(exitUsage, "%w", err)
		}
		if err := policy.AddDetached(dir, file, person, armored, stand.realm(), c.Fleet); err != nil {
			return fail(exitDenied, "%w", err)
		}
		return nil
	}
	signer, err := a.policySigner(ctx, c, dir, file, person)
	if err != nil {
		return err
	}
	if err := policy.SignFile(dir, file, person, signer, randReader, stand.realm(), c.Fleet); err != nil {
		return fail(exitDenied, "%w", err)
	}
	return nil
}

// policySigner picks the key that the roots of this very folder have for person:
// a person whose key is being replaced signs with either.
func (a *app) policySigner(ctx context.Context, c config, dir, file, person string) (ssh.Signer, error) {
	own, err := policy.SigningKeys(dir, file, person, c.Fleet)
	if err != nil {
		return nil, fail(exitDenied, "sign %s: %w", file, err)
	}
	sources, err := a.namedKey(c)
	if err != nil {
		return nil, err
	}
	listed, err := keys.List(ctx, sources)
	if len(listed) == 0 {
		return nil, fail(exitNeeds, "sign %s: no key is at hand: %w", file, err).hinting("ic keys list shows what there is")
	}
	at := slices.IndexFunc(listed, func(k keys.Key) bool {
		return slices.Contains(own, k.Fingerprint) && sshsig.AcceptKey(k.Public, sshsig.ForPolicy) == nil
	})
	if at < 0 {
		return nil, fail(exitDenied, "sign %s: the key %s is not %s's in the trust root; use the key that the root lists, or change the root first",
			file, listed[0].Fingerprint, person)
	}
	signer, err := keys.Find(ctx, sources, listed[at].Fingerprint, sshsig.ForPolicy)
	if err != nil {
		return nil, keyFailure(err)
	}
	return signer, nil
}
