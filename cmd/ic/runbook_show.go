package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

func (a *app) runbookShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show RUNBOOK",
		Short: "Read a runbook: what each step does, all of its text, and who signed it",
		Long: `RUNBOOK is an id, or a file. What stands in fences is shown and never executed; only
steps do something, and only when ic runbook run gets to them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.shelf(cmd)
			if err != nil {
				return err
			}
			defer s.root.Close() // read only: nothing can be lost
			fsys, _, name, err := s.file(args[0])
			if err != nil {
				return err
			}
			one := s.read(fsys, name)
			if one.Runbook == nil {
				return fail(exitFailed, "%s", one.Error).hinting("ic runbook lint explains each; docs/runbook-format.md is the format")
			}
			return a.print(one, func(w io.Writer) { printRunbook(w, s, &one) })
		},
	}
}

func printRunbook(w io.Writer, s *shelf, one *shelved) {
	rb := one.Runbook
	fmt.Fprintf(w, "%s\n%s\n\n", rb.Title, strings.Repeat("=", len([]rune(rb.Title))))
	if rb.Manual {
		fmt.Fprintf(w, "plain Markdown: a check list of %s; nothing in it is run\n", counted(len(rb.Steps), "step"))
	} else {
		fmt.Fprintf(w, "use when  %s\nowner     %s\nvalid     until %s, at most %s\n", rb.UseWhen, rb.Owner, one.valid(s), rb.MaxDuration)
	}
	fmt.Fprintf(w, "signed    %s\n", one.signed())
	if one.Signature != nil {
		if one.Signature.Why != "" {
			fmt.Fprintf(w, "          %s\n", one.Signature.Why)
		}
		for _, note := range one.Signature.Notes {
			fmt.Fprintf(w, "          note: %s\n", note)
		}
	}
	fmt.Fprintf(w, "sha256    %s\n", rb.Digest)
	printProse(w, "", rb.Intro)
	for i := range rb.Steps {
		printStep(w, i, &rb.Steps[i])
	}
	printProse(w, "", rb.Outro)
}

func printStep(w io.Writer, i int, step *runbooks.Step) {
	fmt.Fprintf(w, "\n[%d] %s  (%s, %s)\n", i+1, orElse(step.Title, step.ID), step.ID, step.Kind)
	for k, line := range step.Says() {
		mark := "    "
		if k == 0 {
			mark = "  > "
		}
		fmt.Fprintf(w, "%s%s\n", mark, line)
	}
	printProse(w, "    ", step.Prose)
}

// printProse prints text of a file as it stands there.
func printProse(w io.Writer, indent, text string) {
	if text == "" {
		return
	}
	fmt.Fprintln(w)
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			fmt.Fprintln(w)
			continue
		}
		fmt.Fprintf(w, "%s%s\n", indent, line)
	}
}
