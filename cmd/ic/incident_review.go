package main

import (
	"context"
	"fmt"
	"io"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/spf13/cobra"
)

func (a *app) incidentReviewCmd() *cobra.Command {
	statement := ""
	cmd := &cobra.Command{
		Use:   "review ID",
		Short: "Sign off the use of a right that owes a review",
		Long: `Some rights owe a review: somebody of the group that the policy names, and not the one
who asked for it, says in signed words that the use was looked at. ID is the directive's
id, or the last 6 characters of it. It can be done any time later, also when the incident is closed.`,
		Example: `  ic incident review 7Q2XKD --statement "14 orders under $20 went through, none came back"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.signOff(cmd, statement, func(ctx context.Context, d *incident.Desk) (incident.Result, error) {
				return d.Review(ctx, args[0], statement)
			})
		},
	}
	cmd.Flags().StringVar(&statement, "statement", "", "what you found; it is signed and kept in the log")
	return cmd
}

func (a *app) incidentWaiveCmd() *cobra.Command {
	statement := ""
	cmd := &cobra.Command{
		Use:   "waive NAME...",
		Short: "As an owner of hosts and backends, let the incident close over a host or an override",
		Long: `An incident does not close while a host cannot be reached or an override is still in a
deploy pipeline. The owners of the document backends may accept that: NAME is a host that
cannot be reached, or the operation of an override. What is in force is never waived.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.signOff(cmd, statement, func(ctx context.Context, d *incident.Desk) (incident.Result, error) {
				return d.Waive(ctx, args, statement)
			})
		},
	}
	cmd.Flags().StringVar(&statement, "statement", "", "why that is acceptable; it is signed and kept in the log")
	return cmd
}

func (a *app) signOff(cmd *cobra.Command, statement string, do func(context.Context, *incident.Desk) (incident.Result, error)) error {
	if statement == "" {
		return fail(exitUsage, "a sign-off says something: give --statement")
	}
	return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		if _, err := a.confirm("Sign: "+statement, ""); err != nil {
			return err
		}
		result, err := do(ctx, d)
		if err != nil {
			return err
		}
		return a.print(result, func(w io.Writer) { fmt.Fprintln(w, result.Detail) })
	})
}

func (a *app) incidentReviewsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "reviews", Short: "The reviews that are owed, over all incidents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDesk(cmd, func(_ context.Context, d *incident.Desk) error {
				owed, err := d.Reviews()
				if err != nil {
					return err
				}
				return a.print(owed, func(w io.Writer) {
					if len(owed) == 0 {
						fmt.Fprintln(w, "no review is owed")
					}
					for _, o := range owed {
						fmt.Fprintf(w, "%s  %s\n", o.Incident, o.Text())
					}
				})
			})
		},
	}
}
