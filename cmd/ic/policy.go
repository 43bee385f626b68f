package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyCmd() *cobra.Command {
	cmd := group("policy", "Write, check, sign and inspect the policy")
	cmd.AddCommand(
		a.policyFmtCmd(),
		a.policyLintCmd(),
		a.policyExplainCmd(), a.policyPlanCmd(), a.policyDiffCmd(),
		a.policySignCmd(),
		a.policyManifestCmd(),
		a.policyInspectCmd(),
		a.policyImportCmd(),
		a.policyInitCmd(),
		a.policyInviteCmd(),
		a.policyStageCmd(),
		a.policyApplyCmd(),
	)
	return cmd
}

// bundle loads and verifies the policy of a configuration. With keep the highest
// versions seen are remembered, so that no older policy is ever obeyed again.
func (a *app) bundle(c config, keep bool) (*policy.Bundle, error) {
	if c.Policy == "" || c.Fleet == "" || c.RootSHA256 == "" {
		return nil, fail(exitUsage, "no policy is configured: fleet, policy and root_sha256 are needed").
			hinting("ic init sets up yours; ic demo sets up a fleet to try")
	}
	stand, err := a.files(c)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.State, highestFile)
	highest, err := policy.ReadHighest(path)
	if err != nil {
		return nil, fail(exitIntegrity, "%w", err)
	}
	opts := policy.LoadOptions{Fleet: c.Fleet, RootSHA256: c.RootSHA256, Realm: stand.realm(), State: highest, Now: stand.clock.Now().Wall}
	b, now, err := policy.LoadDir(c.Policy, opts)
	if errors.Is(err, fs.ErrNotExist) && policy.Recover(c.Policy) == nil { // an apply may have been killed
		b, now, err = policy.LoadDir(c.Policy, opts)
	}
	if err != nil {
		code := exitIntegrity
		if errors.Is(err, fs.ErrNotExist) {
			code = exitUsage
		}
		return nil, fail(code, "policy: %w", err).hinting("ic policy inspect says what is there and what is missing")
	}
	if keep && (highest == nil || !reflect.DeepEqual(*highest, now)) {
		if err := policy.WriteHighest(path, now); err != nil {
			a.note("the policy versions seen could not be remembered: %v", err)
		}
	}
	return b, nil
}

// highestFile remembers in the state folder which policy was obeyed.
const highestFile = "policy-highest.json"

// policyDir is the folder that a policy command works on: --policy, the
// configuration, or the current folder.
func (a *app) policyDir(cmd *cobra.Command) (string, config, error) {
	c, err := a.load(cmd)
	if err != nil {
		return "", c, err
	}
	if c.Policy == "" {
		c.Policy = "."
	}
	return c.Policy, c, nil
}

func (a *app) policyFmtCmd() *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "fmt FILE...",
		Short: "Print policy files in their one canonical form, in place",
		Long:  "A signed file is byte-identical to what this prints. Signatures are over bytes: format before you sign.",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := []string{}
			for _, path := range args {
				src, err := os.ReadFile(path)
				if err != nil {
					return fail(exitUsage, "%w", err)
				}
				out, err := policy.Fmt(documentName(path), src)
				if err != nil {
					return fail(exitFailed, "%w", err)
				}
				if bytes.Equal(out, src) {
					continue
				}
				changed = append(changed, path)
				if !check {
					if err := os.WriteFile(path, out, 0o644); err != nil {
						return err
					}
				}
			}
			if check && len(changed) > 0 {
				a.code = exitFailed
			}
			return a.print(map[string]any{"changed": changed}, func(w io.Writer) {
				for _, path := range changed {
					fmt.Fprintln(w, path)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; fail when a file is not canonical")
	return cmd
}

// documentName is the name by which policy knows a document: roots keep their
// folder.
func documentName(path string) string {
	if dir := filepath.Base(filepath.Dir(path)); dir == "roots" {
		return "roots/" + filepath.Base(path)
	}
	return filepath.Base(path)
}

func (a *app) policyManifestCmd() *cobra.Command {
	var version int64
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Write manifest.yaml over the files that are there, to be signed by the publishers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, _, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			if version < 1 {
				return fail(exitUsage, "--version is at least 1, and higher than the last one")
			}
			out, err := policy.BuildManifest(dir, version)
			if err != nil {
				return fail(exitFailed, "%w", err)
			}
			path := filepath.Join(dir, policy.ManifestFileName)
			if err := os.WriteFile(path, out, 0o644); err != nil {
				return err
			}
			return a.print(map[string]any{"file": path, "version": version}, func(w io.Writer) { fmt.Fprintf(w, "%s is written; sign it: ic policy sign manifest.yaml\n", path) })
		},
	}
	cmd.Flags().Int64Var(&version, "version", 0, "version of the manifest")
	return cmd
}

func (a *app) policyInspectCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect",
		Short: "Who signed what, what is inactive and why, days left",
		Long:  "Show who signed what. The exit code is 5 when the policy, or one of its files, may not be obeyed.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, c, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(dir, "roots")); err != nil {
				return fail(exitUsage, "there is no policy in %s: %w", dir, err).hinting("--policy names the folder that has roots, the files and their signatures")
			}
			stand, err := a.files(c)
			if err != nil {
				return err
			}
			highest, err := policy.ReadHighest(filepath.Join(c.State, highestFile))
			if err != nil {
				return fail(exitIntegrity, "%w", err)
			}
			r, err := policy.Inspect(dir, policy.LoadOptions{Fleet: c.Fleet, RootSHA256: c.RootSHA256, Realm: stand.realm(), State: highest, Now: stand.clock.Now().Wall})
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			if r.Error != "" || slices.ContainsFunc(r.Domains, func(f policy.FileReport) bool { return !f.Active }) {
				a.code = exitIntegrity
			}
			return a.print(r, func(w io.Writer) { printInspect(w, &r) })
		},
	}
}

func printInspect(w io.Writer, r *policy.Report) {
	if r.Error != "" {
		fmt.Fprintf(w, "nothing of this policy may be obeyed: %s\n\n", r.Error)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FILE\tVERSION\tSTATE\tSIGNED BY\tGROUP\tDAYS LEFT")
	for _, f := range append([]policy.FileReport{r.Manifest}, r.Domains...) {
		state, days := "active", "-"
		if !f.Active {
			state = "inactive"
		}
		if !f.Expires.IsZero() {
			days = fmt.Sprint(f.DaysLeft)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", f.File, f.Version, state, strings.Join(f.Signed, ", "), f.Group, days)
	}
	t.Flush()
	for _, f := range r.Domains {
		if !f.Active {
			fmt.Fprintf(w, "%s: %s\n", f.File, f.Why)
		}
	}
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}
