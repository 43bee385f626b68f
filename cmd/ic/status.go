package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/spf13/cobra"
)

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "What is going on, once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				d.Refresh(ctx)
				if err := d.Reconcile(ctx); err != nil {
					a.note("%v", err)
				}
				s := d.Snapshot()
				return a.print(s, func(w io.Writer) { printStatus(w, &s) })
			})
		},
	}
}

func (a *app) watchCmd() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "What is going on, as lines, until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < time.Second {
				return fail(exitUsage, "--every %s: at least 1s", every)
			}
			return a.withDesk(cmd, func(ctx context.Context, d *incident.Desk) error {
				return a.watch(ctx, d, every)
			})
		},
	}
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "how often to look")
	return cmd
}

// watch prints a line whenever what it says has changed.
func (a *app) watch(ctx context.Context, d *incident.Desk, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for {
		d.Refresh(ctx)
		s := d.Snapshot()
		if line := watchLine(&s); line != last {
			last = line
			if err := a.printLine(s, func(w io.Writer) { fmt.Fprintf(w, "%s  %s\n", s.At.UTC().Format("15:04:05Z"), line) }); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func watchLine(s *incident.Snapshot) string {
	tiers := make([]string, len(s.Services))
	for i, t := range s.Services {
		tiers[i] = fmt.Sprintf("%s T%d", t.Service, t.Issued)
	}
	return fmt.Sprintf("%s | %s | hosts %d/%d effective, %d lacking, %d unreachable | %d in force | %s",
		modeText(s), strings.Join(tiers, " "), s.Skew.Effective, s.Skew.Hosts, s.Skew.Lacking, s.Skew.Unreachable, len(s.Live), s.Headline.Text)
}

func modeText(s *incident.Snapshot) string {
	if s.Rehearsal && s.Mode != model.Rehearsing {
		return string(model.Rehearsing) + " " + string(s.Mode)
	}
	return string(s.Mode)
}

func printStatus(w io.Writer, s *incident.Snapshot) {
	fmt.Fprintf(w, "%s  %s  %s\n", s.Fleet, modeText(s), s.At.UTC().Format("2006-01-02 15:04:05Z"))
	fmt.Fprintf(w, "%s\n", incidentLine(&s.World))
	now := s.Headline.Text
	if s.Headline.Right != "" {
		now += "; the right that fits: " + s.Headline.Right
	}
	fmt.Fprintf(w, "now: %s\n\n", now)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVICE\tTIER\tHOSTS\tAS REPORTED")
	for _, v := range s.Services {
		fmt.Fprintf(t, "%s\t%d of %d\t%d\t%s\n", v.Service, v.Issued, v.Last, v.Hosts, tierCounts(&v))
	}
	fmt.Fprintln(t, "\nSIGNAL\tVALUE\tLIMIT\tAGE")
	for _, v := range s.Signals {
		mark, why := "", ""
		if v.Abnormal {
			mark = " !"
		}
		if v.Reading.Detail != "" {
			why = "  " + v.Reading.Detail
		}
		fmt.Fprintf(t, "%s\t%s%s\t%s\t%s%s\n", v.Name, v.Text, mark, v.Limit, ageText(v.Reading.At, s.At), why)
	}
	t.Flush()
	fmt.Fprintln(w)
	printSkew(w, s)
	if s.SignalsClock.State == incident.ClocksDiffer {
		fmt.Fprintf(w, "clock: %s\n", s.SignalsClock.Text())
	}
	printCarriers(w, s.Carriers)
	printInactive(w, s.Domains)
	printDirectives(w, s)
}

func printCarriers(w io.Writer, carriers []incident.CarrierView) {
	for _, c := range carriers {
		state := "connected"
		if !c.Connected {
			state = "not connected"
		}
		if c.Detail != "" {
			state += ": " + c.Detail
		}
		fmt.Fprintf(w, "flag service %s: %s\n", c.Name, state)
		for _, m := range c.Lacks {
			fmt.Fprintf(w, "  lacks %s  %s", incident.ShortID(m.ID), m.Title)
			if m.Barred != "" {
				fmt.Fprintf(w, "  (%s)", m.Barred)
			}
			fmt.Fprintln(w)
		}
	}
}

// incidentLine says which incident is open and who commands it, in the words
// that every command uses.
func incidentLine(w *model.World) string {
	i := &w.Incident
	if i.OpenedAt.IsZero() {
		return "no incident is open"
	}
	return fmt.Sprintf("incident %s, open since %s; %s", i.ID, i.OpenedAt.UTC().Format("15:04Z"), incident.CommandText(&i.Lease, w.Now))
}

func printDirectives(w io.Writer, s *incident.Snapshot) {
	if len(s.Live) > 0 {
		fmt.Fprintln(w, "\nin force:")
	}
	for _, l := range s.Live {
		fmt.Fprintf(w, "  %s  %s  %s", incident.ShortID(l.Issued.Directive.ID), l.Title, reachText(&l))
		if end := l.Issued.Directive.NotAfter; !end.IsZero() {
			fmt.Fprintf(w, ", %s left", end.Sub(s.At).Round(time.Second))
		}
		fmt.Fprintln(w)
		for _, currency := range sortedKeys(l.Used) {
			u := l.Used[currency]
			fmt.Fprintf(w, "          let through: %s, %s", counted(int(u.Count), "item"), u.Total)
			if u.Unknown > 0 {
				fmt.Fprintf(w, "; what %s let through is not known", counted(u.Unknown, "host"))
			}
			fmt.Fprintln(w)
		}
	}
	for _, l := range s.Unknown {
		fmt.Fprintf(w, "  UNKNOWN: %s (%s) was signed and nobody has read what became of it\n", l.Title, incident.ShortID(l.Issued.Directive.ID))
	}
	for _, o := range s.Overrides {
		fmt.Fprintf(w, "  override of %s since %s: %s; remove it with ic break undo %s\n", o.Backend, o.Since.UTC().Format("15:04Z"), o.State, o.Operation)
	}
	for _, p := range s.Proposals {
		fmt.Fprintf(w, "  waits: %s (%s): ic cosign %s\n", incident.TitleOf(&p.Directive), p.Needs, incident.ShortID(p.Directive.ID))
	}
	for _, o := range s.Owed {
		fmt.Fprintf(w, "  owed: %s\n", o.Text())
	}
	for _, r := range s.Receipts {
		fmt.Fprintf(w, "  not on disk yet: %s\n", r)
	}
}

// reachText says how far a directive has come. Where nobody verifies, that is
// said, and no number looks like a count.
func reachText(l *incident.LiveView) string {
	if l.State == string(incident.Advised) {
		return "as advised, not verified"
	}
	return fmt.Sprintf("%d of %d hosts", l.Done, l.Total)
}

func tierCounts(v *incident.ServiceTier) string {
	var parts []string
	for _, tier := range sortedKeys(v.At) {
		parts = append(parts, fmt.Sprintf("%d at T%d", v.At[tier], tier))
	}
	if v.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("%d unknown", v.Unknown))
	}
	return strings.Join(parts, ", ")
}

func ageText(at, now time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return now.Sub(at).Round(time.Second).String()
}

func sortedKeys[K int | string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
