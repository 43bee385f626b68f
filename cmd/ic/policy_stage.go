package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyStageCmd() *cobra.Command {
	from := ""
	cmd := &cobra.Command{
		Use:   "stage [FILE...]",
		Short: "Make the next version beside the policy in force: format, versions, lint, and who has to sign",
		Long: `Make the next version of the policy in the folder <policy>.staged: the files in force, and
in their place each FILE that is given (payments.yaml, or root.yaml for the next trust
root). Files may be edited in that folder as well; after an edit stage again. Documents are
formatted, changed ones get a new version, a manifest is written over them, and signatures
that do not fit any more are dropped. Errors of lint are refused. Staging twice changes
nothing, and the policy in force is not touched before ic policy apply.

The way back to an older policy is forward: --from takes the documents of a folder, such as
<policy>.previous/3, as the content of a new version.`,
		Example: `  ic policy stage payments.yaml
  ic policy stage --from shop.previous/3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, c, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			files := map[string][]byte{}
			for _, path := range args {
				raw, err := os.ReadFile(path)
				if err != nil {
					return fail(exitUsage, "%w", err)
				}
				files[documentName(path)] = raw
			}
			return a.stage(c, dir, files, from)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "take all documents of this folder")
	return cmd
}

// loadOptions are by what the policy of a configuration is judged.
func (a *app) loadOptions(c config) (policy.LoadOptions, error) {
	stand, err := a.files(c)
	if err != nil {
		return policy.LoadOptions{}, err
	}
	highest, err := policy.ReadHighest(filepath.Join(c.State, highestFile))
	if err != nil {
		return policy.LoadOptions{}, fail(exitIntegrity, "%w", err)
	}
	return policy.LoadOptions{Fleet: c.Fleet, RootSHA256: c.RootSHA256, Realm: stand.realm(), State: highest, Now: stand.clock.Now().Wall}, nil
}

// stage stages and prints what there is to do.
func (a *app) stage(c config, dir string, files map[string][]byte, from string) error {
	opts, err := a.loadOptions(c)
	if err != nil {
		return err
	}
	known, err := a.namesFor(dir)
	if err != nil {
		return err
	}
	s, err := policy.Stage(dir, policy.StageOptions{Load: opts, Files: files, From: from, Names: known})
	switch {
	case errors.Is(err, policy.ErrLint):
		a.code = exitFailed
		return a.print(s, func(w io.Writer) {
			for _, f := range s.Findings {
				fmt.Fprintln(w, f)
			}
			fmt.Fprintln(w, "nothing is staged: mend the errors first")
		})
	case errors.Is(err, policy.ErrBusy), errors.Is(err, policy.ErrConflict):
		return fail(exitNeeds, "%w", err)
	case errors.Is(err, os.ErrNotExist):
		return fail(exitUsage, "%w", err).hinting("ic policy init starts a policy; --policy names one that is there")
	case err != nil:
		return fail(exitFailed, "%w", err)
	}
	return a.print(s, func(w io.Writer) { printStaging(w, &s) })
}

func printStaging(w io.Writer, s *policy.Staging) {
	if len(s.Changed)+len(s.Removed) == 0 {
		fmt.Fprintf(w, "nothing differs from version %d, which is in force; edit the files in %s and stage again\n", s.Live, s.Dir)
	} else {
		fmt.Fprintf(w, "version %d is staged in %s; version %d is in force\n", s.Version, s.Dir, s.Live)
		fmt.Fprintf(w, "  changed: %s\n", strings.Join(s.Changed, ", "))
		if len(s.Removed) > 0 {
			fmt.Fprintf(w, "  not in it any more: %s\n", strings.Join(s.Removed, ", "))
		}
	}
	for _, f := range s.Findings {
		fmt.Fprintf(w, "  lint: %s\n", f)
	}
	missing := false
	for _, r := range s.Wanted {
		if r.Needs == 0 {
			fmt.Fprintf(w, "%s version %d: signed by %s, enough for %s\n", r.File, r.Version, strings.Join(r.Signed, ", "), r.Group)
			continue
		}
		missing = true
		fmt.Fprintf(w, "%s version %d: %d more of %s%s\n", r.File, r.Version, r.Needs, r.Group, parenthesis(r.Why))
		for _, person := range r.Missing {
			fmt.Fprintf(w, "  ic policy sign %s --as %s\n", r.File, person)
		}
	}
	switch {
	case missing:
		fmt.Fprintln(w, "who has no ic signs with what ic policy invite NAME prints; then: ic policy apply")
	case len(s.Wanted) > 0:
		fmt.Fprintln(w, "everything is signed: ic policy apply")
	}
}

func parenthesis(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
