package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func (a *app) runbookSignCmd() *cobra.Command {
	person := ""
	cmd := &cobra.Command{
		Use:   "sign RUNBOOK",
		Short: "Sign the exact bytes of a runbook, or of origins.txt, as yourself",
		Long: `The signature goes to FILE.sig/NAME.sig beside the file. Runbooks are signed by the group
that signs the rights of the policy. ssh-keygen -Y sign does the same, and ssh-keygen -Y
verify checks it: the namespace is ic-runbook-v1@FLEET.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.shelf(cmd)
			if err != nil {
				return err
			}
			defer s.root.Close() // what is written is closed by itself
			if s.bundle == nil {
				return fail(exitUsage, "no policy is configured, so nobody knows who signs").hinting("--config FILE, or ic init")
			}
			person := orElse(person, s.c.Person)
			if person == "" {
				return fail(exitUsage, "say who signs").hinting("--as NAME, or person in the configuration")
			}
			fsys, dir, name, err := s.file(args[0])
			if err != nil {
				return err
			}
			raw, err := runbooks.ReadFile(fsys, name, runbooks.MaxFile)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			if err := a.signable(s, name, raw); err != nil {
				return err
			}
			if err := a.signRunbook(cmd.Context(), s, dir, name, person, raw); err != nil {
				return err
			}
			signature := runbooks.Judge(fsys, name, raw, s.bundle, s.stand.realm(), s.c.Fleet)
			return a.print(map[string]any{"file": name, "person": person, "signature": signature}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is signed by %s\n", name, person)
				if signature.State != runbooks.Signed {
					fmt.Fprintf(w, "  %s\n", signature.Why)
				}
			})
		},
	}
	cmd.Flags().StringVar(&person, "as", "", "who signs (default: person of the configuration)")
	return cmd
}

// signable refuses what lint refuses: a signature says that somebody may follow
// it in a night.
func (a *app) signable(s *shelf, name string, raw []byte) error {
	if name == runbooks.OriginsFile {
		if _, err := runbooks.ParseOrigins(name, raw); err != nil {
			return fail(exitFailed, "%w", err)
		}
		return nil
	}
	known, err := s.known()
	if err != nil {
		return fail(exitFailed, "%w", err)
	}
	for _, f := range runbooks.LintSource(name, raw, known) {
		if f.Severity == runbooks.LintError {
			return fail(exitFailed, "%s", f.String()).hinting("ic runbook lint %s says all that is wrong", name)
		}
	}
	return nil
}

func (a *app) signRunbook(ctx context.Context, s *shelf, dir, name, person string, raw []byte) error {
	group := runbooks.Group(s.bundle.Root)
	if !s.bundle.Root.InGroup(group, person) {
		return fail(exitDenied, "sign %s: %s is not in the group %s, which signs runbooks; the signature would not count", name, person, group)
	}
	signer, err := a.runbookSigner(ctx, s, name, person)
	if err != nil {
		return err
	}
	if err := runbooks.SignFile(dir, name, person, raw, signer, randReader, s.stand.realm(), s.c.Fleet); err != nil {
		return fail(exitFailed, "%w", err)
	}
	return nil
}

// runbookSigner picks the key at hand that the trust root has for person.
func (a *app) runbookSigner(ctx context.Context, s *shelf, name, person string) (ssh.Signer, error) {
	own := s.bundle.FingerprintsOf(person)
	sources, err := a.namedKey(s.c)
	if err != nil {
		return nil, err
	}
	listed, err := keys.List(ctx, sources)
	if len(listed) == 0 {
		return nil, fail(exitNeeds, "sign %s: no key is at hand: %w", name, err).hinting("ic keys list shows what there is")
	}
	at := slices.IndexFunc(listed, func(k keys.Key) bool {
		return slices.Contains(own, k.Fingerprint) && sshsig.AcceptKey(k.Public, sshsig.ForPolicy) == nil
	})
	if at < 0 {
		return nil, fail(exitDenied, "sign %s: the key %s is not %s's in the trust root", name, listed[0].Fingerprint, person)
	}
	signer, err := keys.Find(ctx, sources, listed[at].Fingerprint, sshsig.ForPolicy)
	if err != nil {
		return nil, keyFailure(err)
	}
	return signer, nil
}
