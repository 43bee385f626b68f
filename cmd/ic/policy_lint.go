package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/degradedmode/ic/docs/lint"
	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

func (a *app) policyLintCmd() *cobra.Command {
	code := ""
	cmd := &cobra.Command{
		Use:   "lint [DIR]",
		Short: "Check a policy folder against the rules of the standard",
		Long: `Check the drafts of a policy folder, signed or not. A finding has a file, a line,
a sentence and a code; --explain CODE prints what the code means and how it is put
right. The exit code is 1 when there is an error; warnings, and departures from the
standard to which an exception agrees, do not fail. Runbooks that the policy names
are looked for in the folder runbooks beside it, if there is one.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("explain") {
				return a.explainCode(code)
			}
			dir, _, err := a.policyDir(cmd)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				dir = args[0]
			}
			known, err := a.namesFor(dir)
			if err != nil {
				return err
			}
			findings, err := policy.LintFolder(os.DirFS(dir), known)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			return a.printFindings(findings)
		},
	}
	cmd.Flags().StringVar(&code, "explain", "", "print the page of a code")
	// The flag was defined by the line above: there is no error to have.
	_ = cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions(lint.Codes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// namesFor collects what a policy in a folder may refer to and does not define.
func (a *app) namesFor(dir string) (policy.Names, error) {
	runbooks, err := runbooksBeside(dir)
	return policy.Names{
		Runbooks: runbooks, Bundled: breakglass.BundledNames(), Now: a.real(),
		Query: func(query string) string {
			if err := promrules.OneSeries(query); err != nil {
				return err.Error()
			}
			return ""
		},
	}, err
}

// runbooksBeside lists the runbooks in the folder beside a policy by their names
// without ".md"; nil when there is no such folder, so that nothing is checked.
func runbooksBeside(dir string) ([]string, error) {
	files, err := runbooks.Names(os.DirFS(filepath.Join(dir, "..", "runbooks")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitUsage, "list the runbooks beside the policy: %w", err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(file, ".md")
	}
	return files, nil
}

// printFindings prints them and how many there are of each severity.
func (a *app) printFindings(findings []policy.Finding) error {
	count := make(map[policy.Severity]int)
	for _, f := range findings {
		count[f.Severity]++
	}
	if count[policy.LintError] > 0 {
		a.code = exitFailed
	}
	return a.print(append([]policy.Finding{}, findings...), func(w io.Writer) { // in JSON a list, also when it is empty
		if len(findings) == 0 {
			fmt.Fprintln(w, "nothing to complain about")
			return
		}
		for _, f := range findings {
			fmt.Fprintln(w, f)
		}
		fmt.Fprintf(w, "%s, %s, %d excepted; ic policy lint --explain CODE says why and how to put it right\n",
			counted(count[policy.LintError], "error"), counted(count[policy.LintWarning], "warning"), count[policy.LintExcepted])
	})
}

func (a *app) explainCode(code string) error {
	text, ok := lint.Page(code)
	if !ok {
		return fail(exitUsage, "lint has no code %q", code).hinting("did you mean %s? docs/lint/README.md lists all codes", policy.NearestLintCode(code))
	}
	return a.print(map[string]string{"code": code, "page": text}, func(w io.Writer) { fmt.Fprint(w, text) })
}
