package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

// imported is the result of an import: what was drafted, and where it stands.
type imported struct {
	*promrules.Draft
	Into     string `json:"into,omitempty"`     // the file that the signals were added to
	Fragment string `json:"fragment,omitempty"` // or their text, to be put into one
}

func (a *app) policyImportCmd() *cobra.Command {
	into, skipBad := "", false
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Draft signals from Prometheus alerting rules",
		Long: `Read Prometheus rule files and PrometheusRule objects ("-" is the standard input) and
draft a signal for every number that their alerts look at. Without --into the signals are
printed as they stand in ladder.yaml. What a person has to decide about each is in its
why, behind "DECIDE:", and in the table on the standard error; --json prints the whole
report instead.

Nothing is written when a rule cannot be read or a signal of the same name is there.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			sources := make([]promrules.Source, len(args))
			for i, path := range args {
				content, err := a.readRules(path)
				if err != nil {
					return fail(exitUsage, "read rules: %w", err)
				}
				sources[i] = promrules.Source{Name: path, Content: content}
			}
			r := imported{Draft: promrules.Import(sources), Into: into}
			if len(r.Bad) > 0 && !skipBad {
				return fail(exitFailed, "%s", problems(r.Draft)).hinting("nothing was written; --skip-bad leaves out what cannot be read")
			}
			if into == "" {
				r.Fragment = string(r.Draft.Fragment())
			} else if err := addSignals(r.Draft, into); err != nil {
				return err
			}
			if !a.json {
				printImport(a.err, r.Draft)
			}
			return a.print(r, func(w io.Writer) {
				if into == "" {
					fmt.Fprint(w, r.Fragment)
					return
				}
				fmt.Fprintf(w, "%s has %d new signals; decide what their why asks, then ic policy lint\n", into, len(r.Signals))
			})
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "ladder.yaml of a draft that the signals are added to")
	cmd.Flags().BoolVar(&skipBad, "skip-bad", false, "leave out rules that cannot be read, instead of importing none")
	return cmd
}

// readRules reads a file of rules, or the standard input, up to the limit and
// one byte: more is reported with the other problems.
func (a *app) readRules(path string) ([]byte, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, promrules.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// problems lists what could not be read, a line each.
func problems(d *promrules.Draft) string {
	lines := make([]string, len(d.Bad))
	for i, p := range d.Bad {
		lines[i] = p.Error()
	}
	if d.Untold > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", d.Untold))
	}
	return strings.Join(lines, "\n")
}

// addSignals puts the signals into a ladder.yaml that need be neither signed nor
// canonical, and writes it in its canonical form.
func addSignals(d *promrules.Draft, path string) error {
	dir, name := filepath.Split(path)
	if name != string(policy.Ladder)+".yaml" {
		return fail(exitUsage, "signals stand in a file named ladder.yaml, not in %s", name)
	}
	_, err := os.Stat(path)
	if err != nil {
		hint := "ic policy import without --into prints the signals"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "ic policy init makes a policy folder; without --into the signals are printed"
		}
		return fail(exitUsage, "%w", err).hinting("%s", hint)
	}
	docs, _, findings, err := policy.ReadDrafts(os.DirFS(filepath.Clean(dir)))
	if err != nil {
		return fail(exitUsage, "%w", err)
	}
	if docs.Ladder == nil {
		var why []string
		for _, f := range findings {
			if f.File == name {
				why = append(why, f.String())
			}
		}
		return fail(exitFailed, "%s", strings.Join(why, "\n")).hinting("mend %s first; nothing was written", path)
	}
	if err := d.Into(docs.Ladder); err != nil {
		return fail(exitFailed, "%s: %w", path, err).hinting("rename or remove them there; nothing was written")
	}
	out, err := policy.Fmt(name, policy.Canonical(docs.Ladder))
	if err != nil {
		return fail(exitFailed, "the ladder with its new signals: %w", err).hinting("import fewer files at a time; nothing was written")
	}
	if err := renameio.WriteFile(path, out, 0o644, renameio.WithExistingPermissions()); err != nil {
		return fail(exitFailed, "write the ladder: %w", err)
	}
	return nil
}

// printImport tells a person, a line for each signal, what is left to decide.
func printImport(w io.Writer, d *promrules.Draft) {
	if len(d.Bad) > 0 {
		fmt.Fprintf(w, "left out:\n%s\n", problems(d))
	}
	for _, p := range d.Skipped {
		fmt.Fprintf(w, "skipped: %s\n", p.Error())
	}
	decisions := 0
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tALERT\tSIGNAL\tDECIDE")
	for _, alert := range d.Alerts {
		for _, s := range alert.Signals {
			codes := make([]string, len(s.Decisions))
			for i, decision := range s.Decisions {
				codes[i] = decision.Code
			}
			decisions += len(codes)
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", alert.Place, alert.Alert, s.Name, strings.Join(codes, ", "))
		}
	}
	t.Flush()
	fmt.Fprintf(w, "%d alerts gave %d signals with %d decisions to take; %d recording rules give none\n", len(d.Alerts), len(d.Signals), decisions, d.Recording)
}
