package main

import (
	"context"
	"fmt"
	"io"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/spf13/cobra"
)

func (a *app) reissueCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "reissue",
		Short: "Hand to a flag service what it has lost: the same signed texts",
		Long: `A flag service that was emptied, or put back to an earlier state, lacks directives
that are in force and endings of others. Hosts keep what they hold; a new host, or one
without a folder, would not learn it. This hands over the very texts that were signed:
nothing is in force afterwards that was not before. What hosts would refuse, and a
bypass of which nobody knows what became, is left out and named.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDesk(cmd, a.reissue)
		},
	}
}

func (a *app) reissue(ctx context.Context, d *incident.Desk) error {
	missing := d.Lacks(ctx)
	for _, c := range d.Snapshot().Carriers {
		if !c.Connected {
			a.code = exitUnconfirmed
			a.note("%s was not read: %s", c.Name, c.Detail)
		}
	}
	if len(d.Snapshot().Carriers) == 0 {
		return fail(exitNeeds, "no flag service is configured")
	}
	if len(missing) == 0 {
		return a.printReissued(missing)
	}
	for _, r := range missing {
		a.note("%s lacks %s (%s) %s", r.Carrier, r.Title, incident.ShortID(r.ID), r.Barred)
	}
	if _, err := a.confirm("hand over the same signed texts again?", ""); err != nil {
		return err
	}
	all, err := d.Reissue(ctx)
	if err != nil && len(all) == 0 {
		return err
	}
	for _, r := range all {
		if r.State != incident.Sent {
			a.code = exitUnconfirmed
		}
	}
	if printErr := a.printReissued(all); printErr != nil {
		return printErr
	}
	return err
}

func (a *app) printReissued(all []incident.Reissued) error {
	return a.print(append([]incident.Reissued{}, all...), func(w io.Writer) { // in JSON a list, also when it is empty
		if len(all) == 0 {
			fmt.Fprintln(w, "no flag service that answers lacks anything that a host has to know")
		}
		for _, r := range all {
			fmt.Fprintf(w, "%s  %s  %s (%s)", r.State, r.Carrier, r.Title, incident.ShortID(r.ID))
			if r.Detail != "" {
				fmt.Fprintf(w, ": %s", r.Detail)
			}
			fmt.Fprintln(w)
		}
	})
}
