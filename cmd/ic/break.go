package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

func (a *app) breakCmd() *cobra.Command {
	plan := false
	cmd := &cobra.Command{
		Use:   "break [BACKEND]",
		Short: "Break glass: carry what is in force through a deploy pipeline",
		Long: `Plan, confirm, push. Without BACKEND the one that shares least with what is failing
is taken. Success is what hosts report, never what the pipeline says.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				name, err := chooseBackend(d, args)
				if err != nil {
					return err
				}
				p, err := d.PlanBreak(ctx, name)
				if err != nil {
					return err
				}
				if plan {
					return a.print(p, func(w io.Writer) { printPlan(w, &p) })
				}
				printPlan(a.err, &p)
				asked, err := a.confirm("", "break "+name)
				if err != nil {
					return err
				}
				result, err := d.Push(ctx, p, asked, a.progress())
				return a.finish(&result, err)
			})
		},
	}
	cmd.Flags().BoolVar(&plan, "plan", false, "show the plan and stop")
	cmd.AddCommand(a.breakUndoCmd(), a.breakCheckCmd(), a.breakValueCmd())
	return cmd
}

func chooseBackend(d *incident.Desk, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	backends := d.Snapshot().Backends
	if len(backends) == 0 {
		return "", fail(exitNeeds, "the policy names no backend")
	}
	return backends[0].Name, nil
}

// progress shows what a backend says, on stderr, one line for each new thing.
func (a *app) progress() func(incident.Progress) {
	last := ""
	return func(p incident.Progress) {
		line := fmt.Sprintf("%s %s %d/%d %s", p.Phase, p.Target, p.Done, p.Total, p.Message)
		if line != last {
			last = line
			a.note("%s", line)
		}
	}
}

func (a *app) breakUndoCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "undo [OPERATION]",
		Short: "Remove an override; only what still equals what was written is touched",
		Long: `Remove what an operation has put on hosts; OPERATION is its id, the end of its id or
the backend. Without one all overrides are removed, the newest first, and with --json
each result is one object.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				chosen := args
				if len(args) == 0 {
					chosen = newestFirst(d.Snapshot().Overrides)
				}
				if len(chosen) == 0 {
					return fail(exitFailed, "there is no override to remove")
				}
				asked, err := a.confirm(undoQuestion(d.Snapshot().Overrides, chosen), "")
				if err != nil {
					return err
				}
				for _, operation := range chosen {
					result, err := d.UndoBreak(ctx, operation, asked, a.progress())
					if err := a.finish(&result, err); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// newestFirst lists operations in the order in which they can be undone: a later
// push stands on top of an earlier one.
func newestFirst(overrides []model.Override) []string {
	sorted := slices.SortedFunc(slices.Values(overrides), func(x, y model.Override) int { return y.Since.Compare(x.Since) })
	out := make([]string, len(sorted))
	for i, o := range sorted {
		out[i] = o.Operation
	}
	return out
}

func undoQuestion(overrides []model.Override, chosen []string) string {
	lines := []string{"remove from hosts:"}
	for _, name := range chosen {
		line := "  " + name
		for _, o := range overrides {
			if o.Operation == name {
				line = fmt.Sprintf("  %s by %s since %s: %s", o.Operation, o.Backend, o.Since.UTC().Format("15:04:05Z"), o.State)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (a *app) breakValueCmd() *cobra.Command {
	limit := 0
	cmd := &cobra.Command{
		Use:   "value",
		Short: "Print what a host would have to hold, to be put there by hand",
		Long: `Print the tokens of everything in force, in order of importance, as the value of
IC_DIRECTIVES or of a watched file: for the night on which no pipeline is left. It holds
no secret. Hosts judge it as if any carrier had brought it; ic does not know that you
did, and counts their reports as always.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				value, leftOut := d.CarrierValue(limit)
				if value == "" {
					return fail(exitNeeds, "nothing is in force that a carrier could hold")
				}
				if len(leftOut) > 0 {
					a.note("does not fit: %v", shortIDs(leftOut))
				}
				return a.print(map[string]any{"value": value, "left_out": leftOut}, func(w io.Writer) { fmt.Fprintln(w, value) })
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "bytes that fit (default: as much as hosts read)")
	return cmd
}

func (a *app) breakCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check [BACKEND]",
		Short: "Prove that breaking glass would work today; meant to run daily",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				name := ""
				if len(args) == 1 {
					name = args[0]
				}
				found := d.CheckBackends(ctx, name)
				switch {
				case len(found) == 0 && name == "":
					return fail(exitUsage, "the policy names no backend, so there is no way around the flag service to check").
						hinting("a backend is named in backends.yaml of the policy")
				case len(found) == 0:
					return fail(exitUsage, "the policy names no backend %q", name)
				}
				for _, findings := range found {
					for _, f := range findings {
						if !f.OK {
							a.code = exitFailed
						}
					}
				}
				return a.print(found, func(w io.Writer) {
					for _, backend := range sortedKeys(found) {
						for _, f := range found[backend] {
							mark := "ok    "
							if !f.OK {
								mark = "FAILED"
							}
							fmt.Fprintf(w, "%s %s: %s: %s\n", mark, backend, f.Name, f.Detail)
						}
					}
				})
			})
		},
	}
}

// maxShown is how much of a carrier's value a plan shows: a token is a thousand
// characters that nobody reads.
const maxShown = 44

func printPlan(w io.Writer, p *incident.BreakPlan) {
	fmt.Fprintf(w, "backend %s, carrier %s, operation %s\n", p.Backend, p.Carrier, p.Operation)
	fmt.Fprintf(w, "carries %s: %s\n", counted(len(p.IDs), "directive"), strings.Join(shortIDs(p.IDs), ", "))
	if len(p.LeftOut) > 0 {
		fmt.Fprintf(w, "does not fit: %s\n", strings.Join(shortIDs(p.LeftOut), ", "))
	}
	fmt.Fprintf(w, "restarts %d of %d, last-known-good on disk: %s\n", p.Restarts, p.Targets, p.LastKnownGood)
	fmt.Fprintf(w, "rehearsed: simulated %s, live %s\n", dateOr(p.Rehearsed.Simulated), dateOr(p.Rehearsed.Live))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range p.Changes {
		fmt.Fprintf(t, "  %s\tbefore\t%s\n\tafter\t%s\n", c.Target, clip(c.Before), clip(c.After))
	}
	t.Flush()
	for _, c := range p.Conflicts {
		fmt.Fprintf(w, "conflict: %s\n", c)
	}
	if p.Verdict.Outcome != model.Permitted {
		fmt.Fprintf(w, "%s: %s\n", p.Verdict.Outcome, strings.Join(p.Reasons, "; "))
	}
}

// counted is a number and its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func clip(s string) string {
	switch {
	case s == "":
		return "(nothing)"
	case len(s) > maxShown:
		return fmt.Sprintf("%s… (%d bytes)", s[:maxShown], len(s))
	}
	return s
}

func shortIDs(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = incident.ShortID(id)
	}
	return out
}
