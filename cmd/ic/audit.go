package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

func (a *app) auditCmd() *cobra.Command {
	cmd := group("audit", "Show and verify the log")
	cmd.AddCommand(a.auditShowCmd(), a.auditVerifyCmd())
	return cmd
}

func (a *app) auditShowCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "show [INCIDENT]",
		Short: "The history of an incident (default: the latest)",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			all, err := audit.List(c.State)
			if err != nil {
				return err
			}
			chosen := latest(all, args)
			if chosen == nil {
				return fail(exitFailed, "no %s is recorded in %s", orElse(strings.Join(args, " "), "incident"), c.State).
					hinting("incidents are the folders below incidents/ in the state folder")
			}
			if chosen.Err != nil {
				a.note("not all of it can be read: %v", chosen.Err)
				a.code = exitIntegrity
			}
			return a.print(storyOf(chosen), func(w io.Writer) { printStory(w, chosen) })
		},
	}
}

// story is the history of an incident as JSON.
type story struct {
	Incident  model.Incident     `json:"incident"`
	OpenedBy  string             `json:"opened_by"`
	ClosedAt  time.Time          `json:"closed_at,omitzero"`
	Issued    []model.Issued     `json:"issued"`
	Overrides []model.Override   `json:"overrides"`
	Lines     []incident.LogLine `json:"lines"`
}

func storyOf(s *audit.Summary) story {
	out := story{Incident: s.State.Incident, OpenedBy: s.State.OpenedBy, ClosedAt: s.State.ClosedAt, Issued: s.State.Issued, Overrides: s.State.Overrides}
	for _, l := range s.State.Lines {
		out.Lines = append(out.Lines, incident.LogLine{At: l.At, Actor: l.Actor, Kind: string(l.Kind), Text: l.Text})
	}
	return out
}

func printStory(w io.Writer, s *audit.Summary) {
	fmt.Fprintf(w, "incident %s", s.ID)
	if s.State.Incident.Title != "" {
		fmt.Fprintf(w, ": %s", s.State.Incident.Title)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range s.State.Lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.At.UTC().Format("2006-01-02 15:04:05Z"), l.Actor, l.Kind, l.Text)
	}
	t.Flush()
}

func latest(all []audit.Summary, args []string) *audit.Summary {
	var found *audit.Summary
	for i := range all {
		s := &all[i]
		switch {
		case len(args) == 1 && s.ID == args[0]:
			return s
		case len(args) == 0 && (found == nil || s.State.Incident.OpenedAt.After(found.State.Incident.OpenedAt)):
			found = s
		}
	}
	return found
}

// verification is what audit verify prints.
type verification struct {
	OK       bool         `json:"ok"`
	Result   audit.Result `json:"result"`
	HostSaid int          `json:"heads_from_hosts"`
	Problems []problem    `json:"problems"`
}

type problem struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Line   int    `json:"line"`
	What   string `json:"what"`
}

func (a *app) auditVerifyCmd() *cobra.Command {
	offline := false
	cmd := &cobra.Command{
		Use:   "verify [PATH...]",
		Short: "Verify the log: order, content, who wrote it, and the heads that hosts kept",
		Long: `Verify files or incident folders; without PATH, every incident of the state folder.
Any changed byte fails with its file and offset and exit code 5. Heads that directives
carried and hosts kept are held against the chain: a cut tail or a fork shows only by
them, so --offline proves less. Verifying needs no network and no key.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			b, err := a.bundle(c, false)
			if err != nil {
				return err
			}
			stand, err := a.files(c)
			if err != nil {
				return err
			}
			paths, err := a.logPaths(c, args)
			if err != nil {
				return err
			}
			out := verification{}
			opts := audit.VerifyOptions{Realm: stand.realm(), Fleet: c.Fleet, Trusted: func(fp string) (string, bool) {
				s, ok := b.SignerOf(fp)
				return s.Name, ok
			}}
			if !offline {
				opts.Heads = a.headsOfHosts(cmd, c)
				out.HostSaid = len(opts.Heads)
			}
			result, verr := audit.Verify(opts, paths...)
			out.Result, out.OK = result, verr == nil
			out.Problems = problemsOf(verr)
			if verr != nil && len(out.Problems) == 0 {
				return verr
			}
			if !out.OK {
				a.code = exitIntegrity
			}
			return a.print(out, func(w io.Writer) { printVerification(w, &out) })
		},
	}
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask hosts for the heads they kept")
	return cmd
}

func (a *app) logPaths(c config, args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	root := filepath.Dir(audit.Folder(c.State, "any"))
	found, err := os.ReadDir(root)
	if err != nil || len(found) == 0 {
		return nil, fail(exitFailed, "there is no log in %s yet", c.State)
	}
	var out []string
	for _, f := range found {
		if f.IsDir() {
			out = append(out, filepath.Join(root, f.Name()))
		}
	}
	return out, nil
}

// headsOfHosts collects what hosts kept. A host that cannot be reached proves
// nothing and stops nothing.
func (a *app) headsOfHosts(cmd *cobra.Command, c config) []model.LogHead {
	inv, err := a.hosts(cmd.Context(), c)
	if err != nil || len(inv.Hosts) == 0 {
		return nil
	}
	var heads []model.LogHead
	seen := map[model.LogHead]bool{}
	for _, h := range fleet.Pull(cmd.Context(), inv, fleet.Options{Fleet: c.Fleet, Now: a.real}) {
		if h.Report == nil {
			continue
		}
		for _, head := range h.Report.Heads {
			if !seen[head] {
				seen[head] = true
				heads = append(heads, head)
			}
		}
	}
	return heads
}

// problemsOf takes a joined error apart.
func problemsOf(err error) []problem {
	out := []problem{}
	var walk func(error)
	walk = func(err error) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
			return
		}
		var damage *audit.IntegrityError
		if errors.As(err, &damage) {
			out = append(out, problem{File: damage.File, Offset: damage.Offset, Line: damage.Line, What: damage.What})
		}
	}
	if err != nil {
		walk(err)
	}
	return out
}

func printVerification(w io.Writer, v *verification) {
	for _, p := range v.Problems {
		fmt.Fprintf(w, "FAILED %s: byte %d, line %d: %s\n", p.File, p.Offset, p.Line, p.What)
	}
	for _, f := range v.Result.Files {
		end := "ended in order"
		if !f.Ended {
			end = "not ended (running, crashed or cut)"
		}
		kept := "no kept head lies on it"
		if f.HeadsMet > 0 {
			kept = fmt.Sprintf("%s on it, the highest at entry %d", counted(f.HeadsMet, "kept head"), f.HighestHead)
		}
		fmt.Fprintf(w, "ok     %s: %d entries by %s, %s; %s\n", f.Origin, f.Entries, f.Person, end, kept)
		if f.Torn != nil {
			fmt.Fprintf(w, "       an unfinished write at the end, as a crash leaves it\n")
		}
	}
	switch {
	case !v.OK:
		fmt.Fprintf(w, "the log is NOT whole: %s\n", counted(len(v.Problems), "problem"))
	case v.HostSaid == 0:
		fmt.Fprintf(w, "the log is whole: %d entries; no head from a host was held against it, so a cut end or a fork would not show\n", v.Result.Entries)
	default:
		fmt.Fprintf(w, "the log is whole: %d entries; %d heads from hosts were held against it\n", v.Result.Entries, v.HostSaid)
	}
}
