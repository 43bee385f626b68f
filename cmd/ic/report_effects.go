package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/drill/freshness"
	"github.com/degradedmode/ic/internal/measures"
)

// effectsOf lists what was measured, by name.
func effectsOf(dates map[string]freshness.Practice) []effect {
	out := []effect{}
	for _, name := range slices.Sorted(maps.Keys(dates)) {
		p := dates[name]
		played := ""
		if p.Played != nil {
			played = string(p.Played.By)
		}
		out = append(out, effect{What: name, At: p.At, Scenario: p.Scenario, Played: played, EffectMS: p.Effect.EffectMS,
			ErrorsBeforePPM: p.Effect.ErrorsBeforePPM, ErrorsAfterPPM: p.Effect.ErrorsAfterPPM,
			ImpactBeforePPM: p.Effect.ImpactBeforePPM, ImpactAfterPPM: p.Effect.ImpactAfterPPM})
	}
	return out
}

// playedBy is who played the rehearsal that a simulated date is of, in brackets: a
// machine that has practised something is not a person who has. The date of a tier
// may be that of the tier of every service.
func (r *reported) playedBy(f *measures.Freshness) string {
	for i := range r.Effects {
		e := &r.Effects[i]
		if e.Played != "" && e.At.Equal(f.Simulated) && (e.What == f.Name || e.What == audit.OfEveryService(f.Name)) {
			return " (" + e.Played + ")"
		}
	}
	return ""
}

func writeEffects(w io.Writer, all []effect) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REHEARSAL  measured in simulation\ton 95 % of hosts\terrors\timpact\tin\tplayed by\t")
	for i := range all {
		e := &all[i]
		took := "UNKNOWN"
		if e.EffectMS != nil {
			took = (time.Duration(*e.EffectMS) * time.Millisecond).Round(time.Second).String()
		}
		fmt.Fprintf(t, "REHEARSAL  %s\t%s\t%s\t%s\t%s\t%s\t\n", e.What, took,
			change(e.ErrorsBeforePPM, e.ErrorsAfterPPM), change(e.ImpactBeforePPM, e.ImpactAfterPPM), e.Scenario, orElse(e.Played, "UNKNOWN"))
	}
	t.Flush()
}

// change is a share before and after.
func change(before, after *int64) string {
	if before == nil || after == nil {
		return "UNKNOWN"
	}
	return share(*before) + " -> " + share(*after)
}

// share prints parts per million as a percentage with one decimal.
func share(ppm int64) string { return fmt.Sprintf("%d.%d %%", ppm/10_000, ppm/1_000%10) }
