package main

import (
	"io"

	"github.com/degradedmode/ic/internal/explain"
	"github.com/spf13/cobra"
)

func (a *app) policyPlanCmd() *cobra.Command {
	load := "1"
	cmd := &cobra.Command{
		Use:   "plan [DIR]",
		Short: "Capacity, staleness, bulkheads, retries, recovery, exposure and cost, with their formulas",
		Long: `Add up the policy's own numbers: which tier a load needs, how old a snapshot gets,
how many calls may be in flight, how far retries multiply, how long the way back takes,
what a bypass may cost and what the programme costs and keeps in a year.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			factor, err := explain.ParseFactor(load)
			if err != nil {
				return fail(exitUsage, "--load %w", err)
			}
			src, err := a.policySource(cmd, args)
			if err != nil {
				return err
			}
			r, err := explain.Plan(src, factor)
			if err != nil {
				return fail(exitFailed, "plan: %w", err).hinting("ic policy lint says where it is wrong")
			}
			return a.print(r, func(w io.Writer) { r.Text(w) })
		},
	}
	cmd.Flags().StringVar(&load, "load", load, "multiply every peak by this, such as 1.5 or 10")
	return cmd
}
