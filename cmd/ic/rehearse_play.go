package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/freshness"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
)

const (
	// progressStep is how much virtual time passes between two looks at whether
	// something is to be said.
	progressStep = time.Minute
	// progressEvery is how often a person is told how far a run is, in real time.
	progressEvery = 2 * time.Second
)

// rehearsed is what ic rehearse prints of one run.
type rehearsed struct {
	World string      `json:"world"` // REHEARSAL
	Score score.Score `json:"score"`
	Worse []string    `json:"worse"` // than the last run, a sentence for each axis
	// Baseline is what the baseline of it did not do as the scenario expects: a
	// comparison with it is worth nothing then.
	Baseline []string `json:"baseline"`
	// Unlike is why there is no last run to compare with; "": there is one.
	Unlike string `json:"unlike,omitempty"`
	Kept   string `json:"kept,omitempty"` // the file of the run; "": it is not kept
	HTML   string `json:"html,omitempty"`
}

// player plays scenarios, keeps their scores and compares them with what was kept.
type player struct {
	a    *app
	c    config
	runs []freshness.Run
	o    scenario.Options // who acts; the zero value: the scenario
}

func (a *app) player(cmd *cobra.Command) (*player, error) {
	c, err := a.load(cmd)
	if err != nil {
		return nil, err
	}
	runs, err := freshness.Read(c.State)
	if err != nil {
		a.note("%s: not all earlier runs can be compared with: %v", model.Rehearsing, err)
	}
	return &player{a: a, c: c, runs: runs}, nil
}

func (a *app) rehearse(cmd *cobra.Command, word string, f *rehearsalFlags) error {
	s, err := f.library().read(word)
	if err != nil {
		return err
	}
	script := ""
	if f.script != "" {
		if s, script, err = scripted(s, f.script); err != nil {
			return err
		}
	}
	p, err := a.player(cmd)
	if err != nil {
		return err
	}
	if !f.baseline && !f.atConsole() {
		if err := p.follows(s, f); err != nil {
			return err
		}
	}
	base, err := p.play(cmd.Context(), s, f.seed, score.Baseline)
	if err != nil {
		return err
	}
	var out rehearsed
	switch {
	case f.baseline:
		out, err = p.conclude(base, nil, f)
	case f.atConsole():
		out, err = p.playAtConsole(cmd.Context(), s, f, func(r *score.Record) (rehearsed, error) { return p.conclude(r, base, f) })
	default:
		var r *score.Record
		if r, err = p.play(cmd.Context(), s, f.seed, score.WithIC); err != nil {
			return err
		}
		r.Played, r.Script = unattended(s, f, r), script
		out, err = p.conclude(r, base, f)
	}
	if err != nil {
		return err
	}
	if out.Score.Verdict != score.Passed {
		a.code = exitFailed
	}
	return a.print(out, func(w io.Writer) { out.write(w) })
}

// unattended is who acts with nobody at a console: a file, the scenario, or a runbook
// in somebody's hands.
func unattended(s *scenario.Scenario, f *rehearsalFlags, r *score.Record) *score.Played {
	played := &score.Played{By: score.ByMachine}
	taken := s.Follow()
	switch {
	case f.script != "":
		played.By = score.ByScript
	case taken != nil:
		person, _ := s.Seat(taken.Who) // one who is absent follows nothing, and the run has failed
		played.Who, played.Role = taken.Who, person.Role
	case f.with != "":
		if person, err := s.Seat(f.as); err == nil {
			played.Who, played.Role = person.Name, person.Role
		}
	}
	if f.with == "" || taken != nil { // --with acts in the place of a scenario that takes no runbook
		played.Planned(len(s.IC), r)
	}
	return played
}

// conclude scores and keeps a run, and draws its page where one is wanted.
func (p *player) conclude(r, base *score.Record, f *rehearsalFlags) (rehearsed, error) {
	out, err := p.keep(r, base)
	if err != nil || f.html == "" {
		return out, err
	}
	page, err := score.Page(&out.Score, r, base)
	if err != nil {
		return out, err
	}
	if err := renameio.WriteFile(f.html, page, 0o644); err != nil {
		return out, fail(exitFailed, "write the page: %w", err)
	}
	out.HTML = f.html
	return out, nil
}

// play plays one mode of a scenario in a folder that is gone afterwards.
func (p *player) play(ctx context.Context, s *scenario.Scenario, seed uint64, mode score.Mode) (r *score.Record, err error) {
	dir, err := os.MkdirTemp("", "ic-rehearsal-")
	if err != nil {
		return nil, fail(exitFailed, "make a folder for the rehearsal: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	told := p.a.real()
	p.a.note("%s %s: %s, seed %d", model.Rehearsing, s.Name, mode, seed)
	o := p.o
	o.Seed, o.Mode, o.State = seed, mode, dir
	run, err := scenario.Open(ctx, s, o)
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	for run.Advance(run.Now() + progressStep) {
		if ctx.Err() != nil {
			_, finished := run.Finish()
			return nil, errors.Join(ctx.Err(), finished)
		}
		if now := p.a.real(); now.Sub(told) >= progressEvery {
			told = now
			p.a.note("%s %s: %s, %s", model.Rehearsing, s.Name, mode, spokenOf(run.Now(), s.Lasts))
		}
	}
	r, err = run.Finish()
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	return r, nil
}

// spokenOf is how far a run has come: "13m20s of 45m".
func spokenOf(now, whole time.Duration) string {
	return decisions.Spoken(model.Duration(now)) + " of " + decisions.Spoken(model.Duration(whole))
}

// keep scores a run against the baseline and the last one, and keeps it. A
// baseline is not kept: it is nothing that anybody has practised.
func (p *player) keep(r, base *score.Record) (rehearsed, error) {
	now := score.Of(r, score.Options{Baseline: base})
	out := rehearsed{World: string(model.Rehearsing), Score: now, Worse: []string{}, Baseline: []string{}}
	if r.Mode == score.Baseline {
		return out, nil
	}
	if base.Verdict == score.Failed {
		out.Baseline = append(out.Baseline, base.Why...)
	}
	if last := freshness.Last(p.runs, &now); last != nil {
		out.Score = score.Of(r, score.Options{Baseline: base, Last: &last.Score})
		out.Worse = append(out.Worse, now.Regressions(&last.Score)...)
	} else if other := freshness.LastOther(p.runs, &now); other != nil {
		out.Unlike = "no earlier run was played like this one; the last of this scenario, of " + day(other.At) + ", was " + other.Score.Run()
	}
	var err error
	kept := freshness.Run{At: p.a.real(), By: p.c.Person, Score: now}
	if out.Kept, err = freshness.Write(p.c.State, kept, randReader); err != nil {
		return out, fail(exitFailed, "%w", err)
	}
	return out, nil
}

// good reports whether nothing of it has to be looked at.
func (r *rehearsed) good() bool {
	return r.Score.Verdict == score.Passed && len(r.Worse) == 0 && len(r.Baseline) == 0
}

func (r *rehearsed) write(w io.Writer) {
	_ = r.Score.Write(w) // a terminal that is gone shows nothing
	for _, note := range r.notes() {
		fmt.Fprintf(w, "%s  %s\n", r.World, note)
	}
}

// notes are what stands below the card.
func (r *rehearsed) notes() []string {
	var out []string
	for _, why := range r.Baseline {
		out = append(out, "! the baseline is not as the scenario expects: "+why)
	}
	for _, worse := range r.Worse {
		out = append(out, "! worse than the last run: "+worse)
	}
	if r.Unlike != "" {
		out = append(out, r.Unlike)
	}
	if r.Kept != "" {
		out = append(out, "kept: "+r.Kept)
	}
	if r.HTML != "" {
		out = append(out, "written: "+r.HTML)
	}
	return out
}

// rehearseAll plays everything that ships. It goes on after a failure: the
// tables say everything.
func (a *app) rehearseAll(cmd *cobra.Command, f *rehearsalFlags) error {
	p, err := a.player(cmd)
	if err != nil {
		return err
	}
	out := []rehearsed{}
	l := f.library()
	names := l.names()
	if len(names) == 0 {
		return fail(exitUsage, "there is no scenario in %s", orElse(f.dir, "this program"))
	}
	for _, name := range names {
		s, err := l.read(name)
		if err != nil {
			return err
		}
		if err := p.follows(s, f); err != nil {
			return err
		}
		base, err := p.play(cmd.Context(), s, f.seed, score.Baseline)
		if err != nil {
			return err
		}
		for _, mode := range modesOf(s) {
			r, err := p.play(cmd.Context(), s, f.seed, mode)
			if err != nil {
				return err
			}
			r.Played = unattended(s, f, r)
			one, err := p.keep(r, base)
			if err != nil {
				return err
			}
			if !one.good() {
				a.code = exitFailed
			}
			out = append(out, one)
		}
	}
	return a.print(out, func(w io.Writer) { writeAll(w, out) })
}

// writeAll is a row for each run in two tables, how fast and at what cost, and below
// them what is wrong.
func writeAll(w io.Writer, all []rehearsed) {
	writeTable(w, all, 1, "verdict\tdetect\tdecide\teffect\tstabilise\trecover", func(s *score.Score, values map[string]string) []string {
		return []string{string(s.Verdict), values["detect"], values["decide"], values["effect on 95 %"], values["stabilise"], values["recover"]}
	})
	currency := ""
	if len(all) > 0 {
		currency = all[0].Score.Axes.Currency
	}
	fmt.Fprintf(w, "%s\n%s  with ic and without it: orders that no check saw and orders lost (%s), minutes of impact\n", model.Rehearsing, model.Rehearsing, orElse(currency, "UNKNOWN"))
	writeTable(w, all, 2, "unscored\twithout\tlost\twithout\timpact\twithout", func(s *score.Score, _ map[string]string) []string {
		base := &score.Axes{}
		if at := slices.IndexFunc(s.Against, func(o score.Other) bool { return o.Mode == score.Baseline }); at >= 0 {
			base = &s.Against[at].Axes
		}
		a := &s.Axes
		return []string{dollars(a.UnscoredCents), dollars(base.UnscoredCents), dollars(a.LostCents), dollars(base.LostCents), impactMinutes(a.ImpactMS), impactMinutes(base.ImpactMS)}
	})
	for i := range all {
		for _, why := range all[i].Score.Why {
			fmt.Fprintf(w, "%s  X %s: %s\n", model.Rehearsing, all[i].Score.Scenario, why)
		}
		for _, why := range all[i].Baseline {
			fmt.Fprintf(w, "%s  ! the baseline of %s is not as the scenario expects: %s\n", model.Rehearsing, all[i].Score.Scenario, why)
		}
		for _, worse := range all[i].Worse {
			fmt.Fprintf(w, "%s  ! %s is worse than the last run: %s\n", model.Rehearsing, all[i].Score.Scenario, worse)
		}
	}
}

// writeTable is a table with the scenarios at its side, gap columns between two
// values: at 100 columns the names of those that ship leave room for no more.
func writeTable(w io.Writer, all []rehearsed, gap int, heads string, row func(*score.Score, map[string]string) []string) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
	fmt.Fprintf(t, "  scenario\t%s\t\n", heads)
	for i := range all {
		s := &all[i].Score
		values := map[string]string{}
		for _, r := range s.Rows() {
			values[r.Name] = r.Value
		}
		name, mark := s.Scenario, score.VerdictMark(s.Verdict)
		if s.Mode == score.NoSecondBypass {
			name = "- without a second bypass" // the row above is the same scenario
		}
		if mark == score.Plain && !all[i].good() {
			mark = score.Abnormal
		}
		fmt.Fprintf(t, "%s %s\t%s\t\n", mark.Glyph(), name, strings.Join(row(s, values), "\t"))
	}
	t.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintf(w, "%s  %s\n", model.Rehearsing, strings.TrimRight(line, " \n"))
	}
}

// dollars is an amount without its cents, which compares more easily.
func dollars(cents *int64) string {
	if cents == nil {
		return "UNKNOWN"
	}
	return strconv.FormatInt((*cents+50)/100, 10)
}

// impactMinutes are customer-impact minutes with one decimal.
func impactMinutes(ms *int64) string {
	if ms == nil {
		return "UNKNOWN"
	}
	tenths := (*ms + 3_000) / 6_000
	return fmt.Sprintf("%d.%d", tenths/10, tenths%10)
}
