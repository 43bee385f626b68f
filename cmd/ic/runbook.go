package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/promrules"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

func (a *app) runbookCmd() *cobra.Command {
	cmd := group("runbook", "Write, check, sign and follow runbooks")
	cmd.Long = `A runbook is a Markdown file with one fence "ic-step" for each step. Runbooks lie in the
folder runbooks beside the policy folder; --dir names another one. docs/runbook-format.md
is the format. Plain Markdown opens as a check list.`
	cmd.PersistentFlags().String("dir", "", "folder of the runbooks (default: runbooks, beside the policy folder)")
	cmd.AddCommand(a.runbookListCmd(), a.runbookShowCmd(), a.runbookLintCmd(), a.runbookNewCmd(), a.runbookSignCmd(),
		a.runbookRunCmd(), a.runbookResumeCmd(), a.runbookSkipCmd(), a.runbookAbortCmd())
	return cmd
}

// runbooksFolder is the folder that a runbook command works on.
func (a *app) runbooksFolder(cmd *cobra.Command) (string, config, error) {
	c, err := a.load(cmd)
	if err != nil {
		return "", c, err
	}
	if f := cmd.Flags().Lookup("dir"); f != nil && f.Value.String() != "" {
		return f.Value.String(), c, nil
	}
	return runbooksOf(c), c, nil
}

// runbooksOf is the folder beside the policy of a configuration.
func runbooksOf(c config) string {
	if c.Policy == "" {
		return "runbooks"
	}
	return filepath.Join(c.Policy, "..", "runbooks")
}

// openRunbooks opens a folder of runbooks. Nothing outside it is read, whatever
// links lie in it.
func openRunbooks(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitUsage, "there is no folder %s", dir).hinting("ic runbook new NAME makes the first one; --dir names another folder")
	}
	if err != nil {
		return nil, fail(exitUsage, "open the runbooks: %w", err)
	}
	return root, nil
}

// shelf is a folder of runbooks and what is known about them.
type shelf struct {
	dir    string
	root   *os.Root
	c      config
	bundle *policy.Bundle // nil: no policy is configured, and nothing is verified
	stand  *seat
}

// shelf opens the folder of a command. A policy that cannot be obeyed is an error;
// that none is configured is not.
func (a *app) shelf(cmd *cobra.Command) (*shelf, error) {
	dir, c, err := a.runbooksFolder(cmd)
	if err != nil {
		return nil, err
	}
	s := &shelf{dir: dir, c: c}
	if c.Policy != "" && c.RootSHA256 != "" {
		if s.bundle, err = a.bundle(c, false); err != nil {
			return nil, err
		}
	}
	if s.stand, err = a.files(c); err != nil {
		return nil, err
	}
	s.root, err = openRunbooks(dir)
	return s, err
}

// runbookFile finds the file that a word means: an id, a file of the folder, or a
// path elsewhere.
func (s *shelf) file(word string) (fsys fs.FS, dir, name string, err error) {
	for _, name := range []string{word, word + ".md"} {
		if info, err := s.root.Stat(name); err == nil && info.Mode().IsRegular() {
			return s.root.FS(), s.dir, name, nil
		}
	}
	if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
		dir := filepath.Dir(word)
		return os.DirFS(dir), dir, filepath.Base(word), nil
	}
	hint := "ic runbook list shows what there is"
	if names, err := runbooks.Names(s.root.FS()); err == nil && len(names) == 0 {
		hint = "ic runbook new NAME makes the first one"
	}
	return nil, "", "", fail(exitUsage, "there is no runbook %s in %s", word, s.dir).hinting("%s", hint)
}

// shelved is one runbook as it lies there.
type shelved struct {
	File      string              `json:"file"`
	Runbook   *runbooks.Runbook   `json:"runbook,omitempty"`
	Signature *runbooks.Signature `json:"signature,omitempty"` // absent: no policy says who signs
	Error     string              `json:"error,omitempty"`
	raw       []byte
}

func (s *shelf) read(fsys fs.FS, name string) shelved {
	out := shelved{File: name}
	raw, err := runbooks.ReadFile(fsys, name, runbooks.MaxFile)
	if err == nil {
		out.raw = raw
		out.Runbook, err = runbooks.Parse(name, raw)
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	if s.bundle != nil {
		signature := runbooks.Judge(fsys, name, raw, s.bundle, s.stand.realm(), s.c.Fleet)
		out.Signature = &signature
	}
	return out
}

// origins is what HTTP checks may ask: nil when there is no list. signed says
// whether the list counts outside rehearsals.
func (s *shelf) origins() (list []string, signed bool, err error) {
	raw, err := runbooks.ReadFile(s.root.FS(), runbooks.OriginsFile, runbooks.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if list, err = runbooks.ParseOrigins(runbooks.OriginsFile, raw); err != nil {
		return nil, false, err
	}
	if s.bundle != nil {
		signed = runbooks.Judge(s.root.FS(), runbooks.OriginsFile, raw, s.bundle, s.stand.realm(), s.c.Fleet).State == runbooks.Signed
	}
	return list, signed, nil
}

// known is what runbooks of the shelf may refer to by the policy in force.
func (s *shelf) known() (runbooks.Known, error) {
	var k runbooks.Known
	if s.bundle != nil {
		k = runbooks.KnownOf(s.bundle)
	}
	origins, _, err := s.origins()
	k.Origins, k.Now, k.Query, k.Bounds = origins, s.stand.clock.Now().Wall, answersOnce, promrules.Bounds
	return k, err
}

// answersOnce says why a query does not answer with one number whenever its series
// exist.
func answersOnce(query string) string {
	for _, look := range []func(string) error{promrules.OneSeries, promrules.Filters} {
		if err := look(query); err != nil {
			return err.Error()
		}
	}
	return ""
}

// listed is one line of the list.
type listed struct {
	shelved
	Fits    string   `json:"fits"`              // yes, no, unknown: by the signals now; "" when it names none
	Because []string `json:"because,omitempty"` // abnormal signals
}

func (a *app) runbookListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "Which runbooks there are, who signed them, and which fit now",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.shelf(cmd)
			if err != nil {
				return err
			}
			defer s.root.Close() // read only: nothing can be lost
			names, err := runbooks.Names(s.root.FS())
			if err != nil {
				return fail(exitFailed, "list the runbooks: %w", err)
			}
			signals, err := a.signalsNow(cmd, s)
			if err != nil {
				return err
			}
			out := []listed{}
			for _, name := range names {
				line := listed{shelved: s.read(s.root.FS(), name)}
				line.fit(s.bundle, signals)
				out = append(out, line)
			}
			slices.SortStableFunc(out, func(x, y listed) int { return len(y.Because) - len(x.Because) })
			return a.print(out, func(w io.Writer) { printRunbooks(w, s, out) })
		},
	}
}

// signalsNow looks at the signals once; nil when there is nobody to ask.
func (a *app) signalsNow(cmd *cobra.Command, s *shelf) ([]incident.SignalView, error) {
	if s.bundle == nil || s.c.Prometheus == "" && s.stand.info == nil {
		return nil, nil
	}
	var out []incident.SignalView
	err := a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		out = d.Snapshot().Signals
		return nil
	})
	return out, err
}

// fit says whether a runbook fits: when one of the signals that it names, or that
// name it, is abnormal.
func (l *listed) fit(b *policy.Bundle, signals []incident.SignalView) {
	if l.Runbook == nil {
		return
	}
	names := slices.Clone(l.Runbook.Signals)
	if b != nil {
		for name, signal := range b.Signals {
			if signal.Runbook == l.Runbook.ID && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	l.Fits = "unknown"
	for i := range signals {
		v := &signals[i]
		if !slices.Contains(names, v.Name) {
			continue
		}
		switch {
		case v.Abnormal:
			l.Because = append(l.Because, v.Name)
		case v.Reading.State == model.ReadingValue && l.Fits == "unknown":
			l.Fits = "no"
		}
	}
	if len(l.Because) > 0 {
		l.Fits = "yes"
	}
}

func printRunbooks(w io.Writer, s *shelf, lines []listed) {
	if len(lines) == 0 {
		fmt.Fprintf(w, "no runbook in %s; ic runbook new NAME makes the first one\n", s.dir)
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUNBOOK\tFITS NOW\tSIGNED\tVALID UNTIL\tTITLE\tUSE WHEN")
	for i := range lines {
		l := &lines[i]
		if l.Runbook == nil {
			fmt.Fprintf(t, "%s\t-\t-\t-\tcannot be read\t%s\n", strings.TrimSuffix(l.File, ".md"), firstLine(l.Error))
			continue
		}
		fits := orElse(l.Fits, "-")
		if len(l.Because) > 0 {
			fits = "yes: " + strings.Join(l.Because, ", ")
		}
		use := l.Runbook.UseWhen
		if l.Runbook.Manual {
			use = fmt.Sprintf("plain Markdown, a check list of %s", counted(len(l.Runbook.Steps), "step"))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Runbook.ID, fits, l.signed(), l.valid(s), l.Runbook.Title, use)
	}
	t.Flush()
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// signed says by whom, in a few words.
func (l *shelved) signed() string {
	switch {
	case l.Signature == nil:
		return "not checked"
	case len(l.Signature.By) == 0:
		return string(l.Signature.State)
	}
	return fmt.Sprintf("%s: %s", l.Signature.State, strings.Join(l.Signature.By, ", "))
}

func (l *shelved) valid(s *shelf) string {
	rb := l.Runbook
	switch {
	case rb.ValidUntil.IsZero():
		return "-"
	case rb.Expired(s.stand.clock.Now().Wall):
		return rb.ValidUntil.Format("2006-01-02") + " (over)"
	}
	return rb.ValidUntil.Format("2006-01-02")
}
