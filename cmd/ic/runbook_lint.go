package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/degradedmode/ic/docs/lint/runbook"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

func (a *app) runbookLintCmd() *cobra.Command {
	code := ""
	cmd := &cobra.Command{
		Use:   "lint [RUNBOOK...]",
		Short: "Check runbooks against the format and against the policy beside them",
		Long: `Check runbooks, signed or not; without a name all of the folder. Names of rights, roles,
signals, services and so on are looked for in the drafts of the policy folder. A finding
has a file, a line, a column, a sentence and a code; --explain CODE prints what the code
means. The exit code is 1 when there is an error.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("explain") {
				return a.explainRunbookCode(code)
			}
			s, err := a.draftShelf(cmd)
			if err != nil {
				return err
			}
			defer s.root.Close() // read only: nothing can be lost
			findings, err := s.lint(args)
			if err != nil {
				return err
			}
			return a.printRunbookFindings(findings)
		},
	}
	cmd.Flags().StringVar(&code, "explain", "", "print the page of a code")
	// The flag was defined by the line above: there is no error to have.
	_ = cmd.RegisterFlagCompletionFunc("explain", cobra.FixedCompletions(runbook.Codes(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// draftShelf opens the folder of a command beside the drafts of its policy: what
// is written here is signed later.
func (a *app) draftShelf(cmd *cobra.Command) (*shelf, error) {
	dir, c, err := a.runbooksFolder(cmd)
	if err != nil {
		return nil, err
	}
	s := &shelf{dir: dir, c: c}
	if s.stand, err = a.files(c); err != nil {
		return nil, err
	}
	if s.bundle, err = draftBundle(c.Policy); err != nil {
		return nil, err
	}
	s.root, err = openRunbooks(dir)
	return s, err
}

// draftBundle is the policy of a folder as its drafts say, verified by nobody; nil
// without a folder.
func draftBundle(dir string) (*policy.Bundle, error) {
	if dir == "" {
		return nil, nil
	}
	docs, root, _, err := policy.ReadDrafts(os.DirFS(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(exitUsage, "%w", err)
	}
	if root == nil {
		return nil, fail(exitFailed, "the trust root in %s cannot be read", dir).hinting("ic policy lint %s says why", dir)
	}
	b, err := policy.NewBundle(root, model.PolicyRef{}, nil, docs)
	if err != nil {
		return nil, fail(exitFailed, "%w", err).hinting("ic policy lint %s says more", dir)
	}
	return b, nil
}

func (s *shelf) lint(words []string) ([]runbooks.Finding, error) {
	known, err := s.known()
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	if len(words) == 0 {
		if words, err = runbooks.Names(s.root.FS()); err != nil {
			return nil, fail(exitFailed, "list the runbooks: %w", err)
		}
	}
	out := []runbooks.Finding{}
	for _, word := range words {
		fsys, _, name, err := s.file(word)
		if err != nil {
			return nil, err
		}
		raw, err := runbooks.ReadFile(fsys, name, runbooks.MaxFile)
		if err != nil {
			return nil, fail(exitFailed, "%w", err)
		}
		out = append(out, runbooks.LintSource(name, raw, known)...)
	}
	return out, nil
}

func (a *app) printRunbookFindings(findings []runbooks.Finding) error {
	count := make(map[policy.Severity]int)
	for _, f := range findings {
		count[f.Severity]++
	}
	if runbooks.HasError(findings) {
		a.code = exitFailed
	}
	return a.print(findings, func(w io.Writer) {
		if len(findings) == 0 {
			fmt.Fprintln(w, "nothing to complain about")
			return
		}
		for _, f := range findings {
			fmt.Fprintln(w, f)
		}
		fmt.Fprintf(w, "%s, %s, %d for your information; ic runbook lint --explain CODE says why and how to put it right\n",
			counted(count[runbooks.LintError], "error"), counted(count[runbooks.LintWarning], "warning"), count[runbooks.LintInfo])
	})
}

func (a *app) explainRunbookCode(code string) error {
	text, ok := runbook.Page(code)
	if !ok {
		return fail(exitUsage, "runbook lint has no code %q", code).hinting("did you mean %s? docs/lint/runbook/README.md lists all codes", runbooks.NearestCode(code))
	}
	return a.print(map[string]string{"code": code, "page": text}, func(w io.Writer) { fmt.Fprint(w, text) })
}

func (a *app) runbookNewCmd() *cobra.Command {
	owner := ""
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Write the skeleton of a runbook, in which lint finds nothing",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := runbooks.CheckID(args[0]); err != nil {
				return fail(exitUsage, "%w", err)
			}
			dir, c, err := a.runbooksFolder(cmd)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fail(exitUsage, "make the folder of the runbooks: %w", err)
			}
			s, err := a.draftShelf(cmd)
			if err != nil {
				return err
			}
			defer s.root.Close() // what is written is closed by itself
			owner := orElse(owner, c.Person)
			if owner == "" && s.bundle != nil {
				owner = runbooks.Group(s.bundle.Root)
			}
			if owner == "" {
				return fail(exitUsage, "say who owns the runbook").hinting("--owner NAME: a person or group of the trust root")
			}
			known, err := s.known()
			if err != nil {
				return fail(exitFailed, "%w", err)
			}
			text, path := runbooks.Skeleton(args[0], owner, known.Now, known), filepath.Join(dir, args[0]+".md")
			if err := writeNew(path, text); err != nil {
				return err
			}
			return a.print(map[string]string{"file": path, "id": args[0]}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is written; fill it in, then: ic runbook lint %s\n", path, args[0])
			})
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "who answers for it: a person or group of the trust root (default: person of the configuration)")
	return cmd
}

// writeNew writes a file that was not there before and that others may read.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fail(exitUsage, "%s is there already, and is not overwritten", path)
	}
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}
