package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

// askFlags are the words of a wish.
type askFlags struct {
	scope, reason, evidence, feature, under, lasts string
	tier, target, floor, ceiling                   int
	ids                                            []string
}

func (f *askFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.scope, "scope", "", "service, or * for all (default: the widest the right covers)")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is part of the directive and of the log")
}

func (f *askFlags) ask(right string) (decisions.Ask, error) {
	ask := decisions.Ask{Right: right, Scope: f.scope, Tier: f.tier, Feature: f.feature, IDs: f.ids, Reason: f.reason, Evidence: f.evidence,
		TargetMS: f.target, Floor: f.floor, Ceiling: f.ceiling}
	if f.under != "" {
		m, err := model.ParseMoney(f.under)
		if err != nil {
			return ask, fail(exitUsage, "--under %w", err)
		}
		ask.Under = m
	}
	if f.lasts != "" {
		d, err := model.ParseDuration(f.lasts)
		if err != nil {
			return ask, fail(exitUsage, "--for %w", err)
		}
		ask.Lasts = d
	}
	return ask, nil
}

func (a *app) doCmd() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "do RIGHT",
		Short: "Use a right of the matrix",
		Long: `Use a right that the business signed in advance. ic judges it, shows the worst
case, asks, writes the intent down, signs, hands it to every flag service, and counts
the hosts that report it. Without an open incident it opens one and you take command.`,
		Example:           `  ic do risk-bypass-small-orders --reason "payment-risk answers nobody"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRights,
		RunE: func(cmd *cobra.Command, args []string) error {
			ask, err := f.ask(args[0])
			if err != nil {
				return err
			}
			return a.act(cmd, ask)
		},
	}
	f.register(cmd)
	tierFlag(cmd, &f.tier, "tier", "tier to shed to, or to recover to (default: the next one)")
	cmd.Flags().StringVar(&f.feature, "feature", "", "feature to switch off")
	cmd.Flags().StringVar(&f.under, "under", "", `smaller cap per item, like "20.00 USD"`)
	cmd.Flags().StringVar(&f.lasts, "for", "", "shorter window, like 5m")
	cmd.Flags().IntVar(&f.target, "target-ms", 0, "dimmer: latency to keep (default: the lowest the right covers)")
	cmd.Flags().IntVar(&f.floor, "floor", 0, "dimmer: lowest share of requests with optional work, in percent (default: the right's)")
	cmd.Flags().IntVar(&f.ceiling, "ceiling", 0, "dimmer: highest share, in percent (default: the right's)")
	cmd.Flags().StringVar(&f.evidence, "evidence", "", "what you have seen, for a blind recovery")
	cmd.Flags().StringSliceVar(&f.ids, "id", nil, "ids to end (default: all of the kind in scope)")
	return cmd
}

func (a *app) shedCmd() *cobra.Command {
	var f askFlags
	var right string
	cmd := &cobra.Command{
		Use:     "shed TIER",
		Short:   "Shed to a tier",
		Example: "  ic shed 3 --reason \"checkout is drowning\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := fmt.Sscanf(args[0]+"\n", "%d\n", &f.tier); err != nil || f.tier < 1 || f.tier > 6 {
				return fail(exitUsage, "%q is not a tier: a number from 1 to 6", args[0])
			}
			return a.actByKind(cmd, &f, right, func(r incident.NamedRight) bool {
				return r.Kind == model.Shed && r.Tiers != nil && f.tier >= r.Tiers.From && f.tier <= r.Tiers.To
			}, fmt.Sprintf("shed to tier %d", f.tier))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&right, "right", "", "right to use (default: the one that covers the tier)")
	return cmd
}

func (a *app) recoverCmd() *cobra.Command {
	var f askFlags
	var blind bool
	to := decisions.NextTier
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Take the next step of recovery: one tier at a time, 10, 50, 100 % of hosts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.tier = to
			return a.actByKind(cmd, &f, "", func(r incident.NamedRight) bool {
				return r.Kind == model.End && r.Ends == model.Shed && r.Blind == blind
			}, "recover")
		},
	}
	f.register(cmd)
	tierFlag(cmd, &to, "to", "tier to go to (only the next lower one is ever possible)")
	cmd.Flags().BoolVar(&blind, "blind", false, "recover without known-good signals: two people and typed evidence")
	cmd.Flags().StringVar(&f.evidence, "evidence", "", "what you have seen, for --blind")
	return cmd
}

// tierFlag is a tier that is the next one unless it is said: a number that stands
// for that is nobody's business.
func tierFlag(cmd *cobra.Command, into *int, name, usage string) {
	cmd.Flags().IntVar(into, name, decisions.NextTier, usage)
	cmd.Flags().Lookup(name).DefValue = "0"
}

func (a *app) endCmd() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "end ID",
		Short: "End a bypass, a switched-off feature or a freeze; the end of a shed is ic recover",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				target, err := findIssued(d.Snapshot(), args[0])
				if err != nil {
					return err
				}
				if target.EndedAs() == model.Shed {
					return fail(exitDenied, "%s is a shed: it ends by ic recover, one tier at a time", incident.ShortID(target.ID))
				}
				f.scope, f.ids = target.Scope, []string{target.ID}
				right, err := a.rightFor(d, func(r incident.NamedRight) bool { return r.Kind == model.End && r.Ends == target.Kind }, "end a "+string(target.Kind))
				if err != nil {
					return err
				}
				ask, err := f.ask(right)
				if err != nil {
					return err
				}
				return a.confirmAndExecute(ctx, d, ask)
			})
		},
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is part of the directive and of the log")
	return cmd
}

func (a *app) freezeCmd() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "freeze",
		Short: "No recovery, no opening and no automatic move until it ends; shedding stays possible",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.actByKind(cmd, &f, "", func(r incident.NamedRight) bool { return r.Kind == model.Freeze }, "freeze")
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.lasts, "for", "", "shorter window, like 30m")
	return cmd
}

// act is the common road of every command that uses a right.
func (a *app) act(cmd *cobra.Command, ask decisions.Ask) error {
	return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		return a.confirmAndExecute(ctx, d, ask)
	})
}

// actByKind finds the right that fits before it acts.
func (a *app) actByKind(cmd *cobra.Command, f *askFlags, right string, fits func(incident.NamedRight) bool, what string) error {
	return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
		d.Refresh(ctx)
		if right == "" {
			var err error
			if right, err = a.rightFor(d, fits, what); err != nil {
				return err
			}
		}
		ask, err := f.ask(right)
		if err != nil {
			return err
		}
		return a.confirmAndExecute(ctx, d, ask)
	})
}

// rightFor is the right that fits and asks for the fewest people.
func (a *app) rightFor(d *incident.Desk, fits func(incident.NamedRight) bool, what string) (string, error) {
	best, fewest := "", 0
	for _, r := range d.Rights() {
		if fits(r) && (best == "" || r.Cosign.Count < fewest) {
			best, fewest = r.Name, r.Cosign.Count
		}
	}
	if best == "" {
		return "", fail(exitDenied, "no right of yours lets you %s: see ic can", what)
	}
	return best, nil
}

func (a *app) confirmAndExecute(ctx context.Context, d *incident.Desk, ask decisions.Ask) error {
	p, err := d.Preview(ask)
	if err != nil {
		return undrafted(d.Snapshot().Domains, err)
	}
	if p.Verdict.Outcome != model.Denied && (!a.json || a.terminal()) {
		describePreview(a.err, &p)
	}
	if !possible(&p) && !a.yes {
		// What has become possible since is not done unasked.
		result, err := d.Refuse(ctx, p)
		return a.finish(&result, err)
	}
	asked, err := a.confirm("", p.Typed)
	if err != nil {
		return err
	}
	result, err := d.Execute(ctx, incident.Act{Request: p.Request, Asked: asked})
	return a.finish(&result, err)
}

// possible: it is permitted, or lacks nothing but other people's signatures.
func possible(p *incident.Preview) bool {
	for _, r := range p.Verdict.Reasons {
		if r.Code != model.CodeQuorum {
			return false
		}
	}
	return p.Verdict.Outcome != model.Denied
}

// finish prints a result and settles the exit code: sent and not yet everywhere
// is not done.
func (a *app) finish(r *incident.Result, err error) error {
	if err != nil {
		if r.State == incident.Proposed {
			if perr := a.print(r, func(w io.Writer) { printProposal(w, r) }); perr != nil {
				return perr
			}
			a.code = exitNeeds
			return nil
		}
		return err
	}
	if r.State != incident.Effective && r.State != incident.Advised {
		a.code = exitUnconfirmed
	}
	return a.print(r, func(w io.Writer) { printResult(w, r) })
}

func printResult(w io.Writer, r *incident.Result) {
	fmt.Fprintf(w, "%s  %s\n", r.State, r.ID)
	if r.Detail != "" {
		fmt.Fprintf(w, "  %s\n", r.Detail)
	}
	for _, line := range append(slices.Clone(r.Advice), r.Carriers...) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	if r.Token != "" && (r.State == incident.Partial || r.State == incident.Unconfirmed) {
		fmt.Fprintln(w, "  not everywhere yet: ic status names the hosts; ic break carries it past the flag service")
	}
	if r.Receipt != "" {
		fmt.Fprintf(w, "\nthe record is not on disk yet; keep this text:\n%s\n", r.Receipt)
	}
}

func printProposal(w io.Writer, r *incident.Result) {
	fmt.Fprintf(w, "proposed  %s\n  %s\n\ngive this text to the other person (ic cosign):\n\n%s\n", r.ID, r.Detail, r.Token)
}

// describePreview is the confirmation in words: who decides, bounds, worst case,
// rehearsals, the absolute end.
func describePreview(w io.Writer, p *incident.Preview) {
	fmt.Fprintf(w, "%s\n", p.Title)
	fmt.Fprintf(w, "  right       %s (%s; besides: %s)\n", p.Request.Directive.Right, p.Who, p.Cosign)
	fmt.Fprintf(w, "  direction   %s, %s\n", p.Verdict.Direction, p.Verdict.Assurance)
	if p.UserText != "" {
		fmt.Fprintf(w, "  users see   %s\n", p.UserText)
	}
	for _, j := range p.Journeys {
		fmt.Fprintf(w, "  broken      users can no longer %s\n", j)
	}
	if e := p.Exposure; e != nil {
		word := "at most"
		if e.Estimate {
			word = "an estimate of"
		}
		fmt.Fprintf(w, "  worst case  %s %s: (%d hosts + %d) x %s a day; each item under %s\n",
			word, e.WorstCase, e.Hosts, e.Replacements, e.PerHost, e.Under)
		describeOthers(w, e)
		fmt.Fprintf(w, "  ends        %s by itself on every host (%s)\n", e.Ends.UTC().Format("2006-01-02 15:04:05Z"), e.Lasts.Round(time.Second))
	}
	fmt.Fprintf(w, "  rehearsed   simulated %s, live %s\n", dateOr(p.Rehearsed.Simulated), dateOr(p.Rehearsed.Live))
	if of := p.Practised; of != nil {
		fmt.Fprintf(w, "              %s: simulated %s, live %s\n", of.Name, dateOr(of.Simulated), dateOr(of.Live))
	}
	if p.Review != "" {
		fmt.Fprintf(w, "  afterwards  somebody of %s reviews it\n", p.Review)
	}
	if p.Command != "" {
		fmt.Fprintf(w, "  command     %s\n", p.Command)
	}
	if p.Opens {
		fmt.Fprintf(w, "  incident    none is open: this opens one and you take command\n")
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(w, "  needs       %s\n", r)
	}
}

// describeOthers says what other grants of the control may cost besides.
func describeOthers(w io.Writer, e *decisions.Exposure) {
	if !e.Others.IsZero() {
		fmt.Fprintf(w, "  together    %s with the other grants of the control, which alone are worth %s\n", e.Together, e.Others)
	}
}

func dateOr(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// findIssued finds a live directive by its id or by the end of it.
func findIssued(s incident.Snapshot, id string) (*model.Directive, error) {
	var found *model.Directive
	for i := range s.World.Issued {
		d := &s.World.Issued[i].Directive
		if d.ID != id && !(len(id) >= 4 && len(id) < len(d.ID) && d.ID[len(d.ID)-len(id):] == id) {
			continue
		}
		if found != nil {
			return nil, fail(exitUsage, "%q is the end of more than one id: give all of it", id)
		}
		found = d
	}
	if found == nil {
		return nil, fail(exitFailed, "no directive with the id %q is known: see ic status", id)
	}
	return found, nil
}
