package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyApplyCmd() *cobra.Command {
	var allow []string
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Put the staged version in force, if everybody has signed, and keep the old one",
		Long: `Load the staged version as a host would, and put it in the place of the policy in force:
thresholds met, versions above everything that was ever in force here, and no document out
of force unless --allow-inactive names it. The old folder is kept as
<policy>.previous/<version>. Interrupted at any point, one of the two is in force as a whole.

There is no way to put an old version back: versions only rise, here and on every host.
Stage its content as a new version instead: ic policy stage --from <policy>.previous/3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, c, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			opts, err := a.loadOptions(c)
			if err != nil {
				return err
			}
			o := policy.ApplyOptions{Load: opts}
			for _, name := range allow {
				o.AllowInactive = append(o.AllowInactive, policy.Domain(strings.TrimSuffix(name, ".yaml")))
			}
			done, err := policy.Apply(dir, o)
			if err != nil {
				return applyFailure(err)
			}
			if err := policy.WriteHighest(filepath.Join(c.State, highestFile), done.Highest); err != nil {
				a.note("the policy versions seen could not be remembered: %v", err)
			}
			return a.print(done, func(w io.Writer) { printApplied(w, dir, &done) })
		},
	}
	cmd.Flags().StringArrayVar(&allow, "allow-inactive", nil, "DOMAIN that may be out of force afterwards (repeatable)")
	return cmd
}

func applyFailure(err error) error {
	const hint = "ic policy stage says who has to sign, and ic policy inspect what is in force"
	switch {
	case errors.Is(err, policy.ErrNothingStaged):
		return fail(exitNeeds, "%w", err).hinting("ic policy stage makes the next version")
	case errors.Is(err, policy.ErrRolledBack):
		return fail(exitIntegrity, "%w", err).hinting("versions only rise: ic policy stage --from FOLDER makes a new version of old content")
	case errors.Is(err, policy.ErrInactive), errors.Is(err, policy.ErrManifest), errors.Is(err, policy.ErrRoot), errors.Is(err, policy.ErrNotForward), errors.Is(err, policy.ErrBusy):
		return fail(exitNeeds, "%w", err).hinting(hint)
	}
	return fail(exitFailed, "%w", err)
}

func printApplied(w io.Writer, dir string, done *policy.Applied) {
	fmt.Fprintf(w, "version %d is in force in %s\n", done.Version, dir)
	if len(done.Changed) > 0 {
		fmt.Fprintf(w, "  changed: %s\n", strings.Join(done.Changed, ", "))
	}
	for _, r := range done.Inactive {
		fmt.Fprintf(w, "  not in force: %s: %s\n", r.File, r.Why)
	}
	for _, note := range done.Notes {
		fmt.Fprintf(w, "  note: %s\n", note)
	}
	fmt.Fprintf(w, "  the old one is kept in %s\n", done.Previous)
	fmt.Fprintln(w, "hosts and other consoles judge by their own copy: bring them the folder")
}
