package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/degradedmode/ic/internal/drill/freshness"
)

// effectsOf lists what was measured, by name.
func effectsOf(dates map[string]freshness.Practice) []effect {
	out := []effect{}
	for _, name := range slices.Sorted(maps.Keys(dates)) {
		p := dates[name]
		out = append(out, effect{What: name, At: p.At, Scenario: p.Scenario, EffectMS: p.Effect.EffectMS,
			ErrorsBeforePPM: p.Effect.ErrorsBeforePPM, ErrorsAfterPPM: p.Effect.ErrorsAfterPPM,
			ImpactBeforePPM: p.Effect.ImpactBeforePPM, ImpactAfterPPM: p.Effect.ImpactAfterPPM})
	}
	return out
}

func writeEffects(w io.Writer, all []effect) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REHEARSAL  measured in simulation\ton 95 % of hosts\terrors\timpact\tin\t")
	for i := range all {
		e := &all[i]
		took := "UNKNOWN"
		if e.EffectMS != nil {
			took = (time.Duration(*e.EffectMS) * time.Millisecond).Round(time.Second).String()
		}
		fmt.Fprintf(t, "REHEARSAL  %s\t%s\t%s\t%s\t%s\t\n", e.What, took,
			change(e.ErrorsBeforePPM, e.ErrorsAfterPPM), change(e.ImpactBeforePPM, e.ImpactAfterPPM), e.Scenario)
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
