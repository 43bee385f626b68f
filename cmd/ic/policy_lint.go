package main

import (
	"fmt"
	"io"
	"os"

	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) policyLintCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Check a policy folder against the rules of the standard",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, _, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				dir = args[0]
			}
			docs, root, findings, err := policy.ReadDrafts(os.DirFS(dir))
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			findings = append(findings, policy.Lint(docs, root, policy.Names{Bundled: breakglass.BundledNames(), Now: a.real()})...)
			findings = append([]policy.Finding{}, findings...) // in JSON a list, also when it is empty
			for _, f := range findings {
				if f.Severity == policy.LintError {
					a.code = exitFailed
				}
			}
			return a.print(findings, func(w io.Writer) {
				for _, f := range findings {
					fmt.Fprintln(w, f)
				}
				if len(findings) == 0 {
					fmt.Fprintln(w, "nothing to complain about")
				}
			})
		},
	}
}
