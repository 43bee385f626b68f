package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/drill/freshness"
	"github.com/degradedmode/ic/internal/measures"
	"github.com/degradedmode/ic/internal/runbooks"
	"github.com/spf13/cobra"
)

// reported is what ic report prints.
type reported struct {
	Since     time.Time            `json:"since"`
	Until     time.Time            `json:"until"`
	Incidents int                  `json:"incidents"`
	Measures  []measures.Measure   `json:"measures"`
	Practice  []measures.Freshness `json:"practice"`
	Effects   []effect             `json:"effects"`
	Problems  []string             `json:"problems"` // what could not be read
}

// effect is what something did when it was practised in simulation.
type effect struct {
	What            string    `json:"what"`
	At              time.Time `json:"at"`
	Scenario        string    `json:"scenario"`
	Played          string    `json:"played"` // person, machine or script; "": the run does not say
	EffectMS        *int64    `json:"effect_ms"`
	ErrorsBeforePPM *int64    `json:"errors_before_ppm"`
	ErrorsAfterPPM  *int64    `json:"errors_after_ppm"`
	ImpactBeforePPM *int64    `json:"impact_before_ppm"`
	ImpactAfterPPM  *int64    `json:"impact_after_ppm"`
}

func (a *app) reportCmd() *cobra.Command {
	since, outages, all := "", []string(nil), false
	cmd := &cobra.Command{
		Use:   "report",
		Short: "What has gone stale, and how well we degrade",
		Long: `List what nobody has practised for too long: rights, tiers, features, backends and
runbooks of the policy, against the time that the policy sets for a right
(rehearsed_within, which only a live rehearsal or use fulfils) or a quarter.

And four measures: the share of critical dependencies with a tested fallback, minutes
at tier 2 and above against minutes of full outage, incidents in which a way to the
fleet failed too, and the median time to degrade. Each names its source. What no
source tells is UNKNOWN; outages are such a thing, until --outage says when they were.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, out, err := a.reportInput(cmd, since, outages)
			if err != nil {
				return err
			}
			out.Measures, out.Practice = measures.All(in), measures.Practice(in)
			return a.print(out, func(w io.Writer) { out.write(w, all) })
		},
	}
	cmd.Flags().StringVar(&since, "since", "", `incidents since then: a day like 2026-09-01, or a time before now like 720h (default a quarter)`)
	cmd.Flags().StringArrayVar(&outages, "outage", nil, "a full outage, FROM/DURATION, like 2026-11-30T02:30:00Z/12m (repeatable; 'none' if there was none)")
	cmd.Flags().BoolVar(&all, "all", false, "list also what is fresh, and the effects that were measured in rehearsals")
	return cmd
}

// reportInput reads what the report is made of. What cannot be read is said in it
// and hides nothing else.
func (a *app) reportInput(cmd *cobra.Command, since string, outages []string) (*measures.Input, *reported, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, nil, err
	}
	stand, err := a.files(c)
	if err != nil {
		return nil, nil, err
	}
	in := &measures.Input{Now: stand.clock.Now().Wall.UTC(), Simulated: map[string]time.Time{}}
	if in.Since, err = sinceOf(since, in.Now); err != nil {
		return nil, nil, err
	}
	if in.Outages, err = outagesOf(outages); err != nil {
		return nil, nil, err
	}
	if in.Bundle, err = a.bundle(c, false); err != nil {
		return nil, nil, err
	}
	out := &reported{Since: in.Since, Until: in.Now, Effects: []effect{}, Problems: []string{}}
	if in.Runbooks, err = onShelf(runbooksOf(c)); err != nil {
		out.Problems = append(out.Problems, err.Error())
	}
	listed, err := audit.List(c.State)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range listed {
		sessions, err := audit.Read(s.ID, c.State)
		if err != nil {
			out.Problems = append(out.Problems, fmt.Sprintf("%s: not all of its log can be read (ic audit verify)", s.ID))
		}
		in.Incidents = append(in.Incidents, measures.Incident{ID: s.ID, State: s.State, Entries: audit.InOrder(sessions), Err: errors.Join(s.Err, err)})
		if opened := s.State.Incident.OpenedAt; !opened.Before(in.Since) {
			out.Incidents++
		}
	}
	runs, err := freshness.Read(c.State)
	if err != nil {
		out.Problems = append(out.Problems, strings.Split(err.Error(), "\n")...)
	}
	dates := freshness.Dates(runs, in.Now)
	for name, p := range dates {
		in.Simulated[name] = p.At
	}
	out.Effects = effectsOf(dates)
	if len(out.Problems) > 0 {
		a.code = exitIntegrity
	}
	return in, out, nil
}

// onShelf is the ids of the runbooks in a folder. Where there is no folder there is
// nothing to practise.
func onShelf(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the runbooks: %w", err)
	}
	defer root.Close()
	names, err := runbooks.Names(root.FS())
	if err != nil {
		return nil, fmt.Errorf("list the runbooks: %w", err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".md")
	}
	return names, nil
}

func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.Add(-measures.Quarter), nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fail(exitUsage, "--since %q: want a day like 2026-09-01, or a time before now like 720h", text)
}

// outagesOf reads what a person has written down. "none" is an answer too.
func outagesOf(texts []string) ([]measures.Span, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out := []measures.Span{}
	for _, text := range texts {
		if text == "none" {
			continue
		}
		from, lasts, _ := strings.Cut(text, "/")
		at, err1 := time.Parse(time.RFC3339, from)
		d, err2 := time.ParseDuration(lasts)
		if err1 != nil || err2 != nil || d <= 0 {
			return nil, fail(exitUsage, "--outage %q: want FROM/DURATION, like 2026-11-30T02:30:00Z/12m", text)
		}
		out = append(out, measures.Span{From: at.UTC(), Until: at.UTC().Add(d)})
	}
	return out, nil
}

func (r *reported) write(w io.Writer, all bool) {
	fmt.Fprintf(w, "%s to %s, %s\n\n", day(r.Since), day(r.Until), counted(r.Incidents, "incident"))
	for i := range r.Measures {
		m := &r.Measures[i]
		fmt.Fprintf(w, "%s %s: %s\n", glyphOf(m.Standing), m.Name, m.Text)
		fmt.Fprintf(w, "    target %s: %s; source: %s\n", m.Target, m.Standing, m.Source)
		for _, line := range m.Detail {
			fmt.Fprintf(w, "    - %s\n", line)
		}
	}
	stale := 0
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  practised\tsimulated\tlive\t")
	for i := range r.Practice {
		f := &r.Practice[i]
		mark := " "
		if f.Stale {
			mark = "!"
			stale++
		}
		if f.Stale || all {
			fmt.Fprintf(t, "%s %s\t%s\t%s\t%s\n", mark, f.Name, dateOr(f.Simulated)+r.playedBy(f), dateOr(f.Live), f.Why)
		}
	}
	t.Flush()
	fmt.Fprintf(w, "%d of %d are stale\n", stale, len(r.Practice))
	if all && len(r.Effects) > 0 {
		writeEffects(w, r.Effects)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "X %s\n", p)
	}
}

func glyphOf(s measures.Standing) string {
	switch s {
	case measures.Met:
		return " "
	case measures.Missed:
		return "!"
	default:
		return "?"
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
