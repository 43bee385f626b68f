package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

func (a *app) canCmd() *cobra.Command {
	var f askFlags
	var save, from string
	cmd := &cobra.Command{
		Use:   "can [RIGHT]",
		Short: "The matrix now: permitted, needs, denied, and why",
		Long: `Show every right that is in force with a verdict as of now, or one right with
everything that a confirmation would show. It changes nothing. With a RIGHT the exit
code is the verdict: 0 permitted, 6 needs something first, 3 denied.

--save FILE keeps the world that was judged; --world FILE judges it again, later or
elsewhere, by the policy that is configured: no network, no log and no key is touched.`,
		Example:           "  ic can shed --save shed.json\n  ic can --world shed.json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeRights,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask, err := f.ask(strings.Join(args, ""))
			if err != nil {
				return err
			}
			switch {
			case from != "" && save != "":
				return fail(exitUsage, "a saved world is there already: give --save or --world")
			case from != "":
				return a.replay(cmd, from, ask)
			}
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				scene := d.Scene()
				return a.canNow(&scene, ask, save)
			})
		},
	}
	cmd.Flags().StringVar(&f.scope, "scope", "", "judge it for a service, or * for all (default: the widest the right covers)")
	tierFlag(cmd, &f.tier, "tier", "judge it for a tier (default: the next one)")
	cmd.Flags().StringVar(&f.feature, "feature", "", "judge it for a feature")
	cmd.Flags().StringVar(&save, "save", "", "write the world that was judged into a new file")
	cmd.Flags().StringVar(&from, "world", "", "judge the world in this file instead of the present one")
	return cmd
}

// canNow answers for one right, or for all of them when none is named.
func (a *app) canNow(scene *incident.Scene, ask decisions.Ask, save string) error {
	if ask.Right == "" {
		if err := saveScene(scene, nil, save); err != nil {
			return err
		}
		return a.canAll(scene)
	}
	// A wish that nobody has: with a reason, and with a feature if the right is for
	// any.
	ask.Reason = orElse(ask.Reason, "-")
	for _, row := range scene.Matrix() {
		if row.Name == ask.Right && ask.Feature == "" {
			ask.Feature = row.Request.Directive.Feature
		}
	}
	p, err := scene.Preview(ask)
	if err != nil {
		return undrafted(scene.Domains(), err)
	}
	if err := saveScene(scene, &p.Request, save); err != nil {
		return err
	}
	return a.canOne(&p)
}

func (a *app) canAll(scene *incident.Scene) error {
	rows := append([]decisions.Row{}, scene.Matrix()...) // in JSON a list, also when it is empty
	return a.print(rows, func(w io.Writer) {
		fmt.Fprintln(w, incidentLine(&scene.World))
		printMatrix(w, rows)
		printInactive(w, scene.Domains())
	})
}

func (a *app) canOne(p *incident.Preview) error {
	switch p.Verdict.Outcome {
	case model.Needs:
		a.code = exitNeeds
	case model.Denied:
		a.code = exitDenied
	}
	return a.print(p, func(w io.Writer) {
		if p.Verdict.Outcome == model.Denied {
			fmt.Fprintf(w, "denied: %s\n", p.Request.Directive.Right)
			for _, r := range p.Reasons {
				fmt.Fprintf(w, "  because     %s\n", r)
			}
			return
		}
		fmt.Fprintf(w, "%s: ", p.Verdict.Outcome)
		describePreview(w, p)
	})
}

// undrafted explains why a wish could not even be put into words. A right that is
// missing because its domain is inactive is denied, not misspelt.
func undrafted(domains []policy.DomainState, err error) error {
	if !errors.Is(err, decisions.ErrNoRight) {
		return fail(exitUsage, "%w", err)
	}
	for _, domain := range domains {
		if !domain.Active {
			return fail(exitDenied, "%w; %s is inactive: %s", err, domain.Domain, domain.Why).hinting("ic policy inspect says who signed what")
		}
	}
	return fail(exitUsage, "%w", err)
}

// printInactive names the domains of the policy of which nothing may be used.
func printInactive(w io.Writer, domains []policy.DomainState) {
	for _, domain := range domains {
		if !domain.Active {
			fmt.Fprintf(w, "policy: %s is inactive: %s\n", domain.Domain, domain.Why)
		}
	}
}

func printMatrix(w io.Writer, rows []decisions.Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RIGHT\tDIRECTION\tWHO\tBESIDES\tNOW\tWHY")
	for i := range rows {
		r := &rows[i]
		why := ""
		if len(r.Verdict.Reasons) > 0 {
			why = decisions.Sentence(r.Verdict.Reasons[0])
		}
		besides := "-"
		if r.Cosign.Count > 0 {
			besides = fmt.Sprintf("%d of %s", r.Cosign.Count, r.Cosign.Of)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.Verdict.Direction, r.Who, besides, r.Verdict.Outcome, why)
	}
	t.Flush()
}

// completeRights offers the names of rights to the shell.
func (a *app) completeRights(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := a.load(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	b, err := a.bundle(c, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return b.RightNames(), cobra.ShellCompDirectiveNoFileComp
}
