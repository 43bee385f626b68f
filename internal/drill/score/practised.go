package score

import (
	"cmp"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// SettleMS is how long after an order is in force its effect on errors is
// measured: as long as the windows of the errors' queries.
const SettleMS = 60_000

// Practised is one thing that a run has used, and what that did. It is the
// origin of a simulated date.
type Practised struct {
	What string `json:"what"` // a right's name, tier/<service>/<n>, feature/<name>, backend/<name>, runbook/<id>
	AtMS int64  `json:"at_ms"`

	// The measured effect; nil is UNKNOWN.
	EffectMS        *int64 `json:"effect_ms"`         // from the order to 95 % of the hosts
	ErrorsBeforePPM *int64 `json:"errors_before_ppm"` // of the service it is for, the worst where it is for all
	ErrorsAfterPPM  *int64 `json:"errors_after_ppm"`  // one minute after it was in force
	ImpactBeforePPM *int64 `json:"impact_before_ppm"` // on the customers
	ImpactAfterPPM  *int64 `json:"impact_after_ppm"`
}

// practisedIn lists what a run has practised. What was ordered and never came
// into force on 95 % of the hosts was not practised, and neither is anything of a
// run without ic.
func practisedIn(r *Record) []Practised {
	out := []Practised{}
	if r.Mode == Baseline {
		return out
	}
	events, samples := ordered(r)
	for i, order := range events {
		if order.Kind != Issued {
			continue
		}
		effective, ok := since(events[i:], order.AtMS, Effective, func(e Event) bool { return e.ID == order.ID })
		if !ok {
			continue
		}
		for _, what := range namesOf(&order) {
			out = append(out, measured(what, &order, effective.AtMS, samples))
		}
	}
	if r.Runbook != "" && r.Through {
		out = append(out, Practised{What: "runbook/" + r.Runbook, AtMS: r.LastsMS})
	}
	return latestEach(out)
}

// namesOf is what an order practises: its right, and what it is about.
func namesOf(order *Event) []string {
	var out []string
	if order.Right != "" {
		out = append(out, order.Right)
	}
	kind, argument, _ := strings.Cut(order.What, " ")
	switch {
	case argument == "":
	case kind == string(model.Shed) && order.Scope != "":
		out = append(out, "tier/"+order.Scope+"/"+argument)
	case kind == string(model.Off):
		out = append(out, "feature/"+argument)
	case kind == "push":
		out = append(out, "backend/"+argument)
	}
	return out
}

func measured(what string, order *Event, effective int64, samples []Sample) Practised {
	p := Practised{What: what, AtMS: effective, EffectMS: span(order.AtMS, effective)}
	before, after := sampleAt(samples, order.AtMS), sampleAt(samples, effective+SettleMS)
	if before == nil || after == nil || after.AtMS <= effective {
		return p // no sample lies behind it
	}
	p.ErrorsBeforePPM, p.ErrorsAfterPPM = errorsOf(before, order.Scope), errorsOf(after, order.Scope)
	p.ImpactBeforePPM, p.ImpactAfterPPM = &before.ImpactPPM, &after.ImpactPPM
	return p
}

// sampleAt is the sample that stands at a moment.
func sampleAt(samples []Sample, at int64) *Sample {
	n, found := slices.BinarySearchFunc(samples, at, func(s Sample, at int64) int { return cmp.Compare(s.AtMS, at) })
	if !found {
		n--
	}
	if n < 0 {
		return nil
	}
	return &samples[n]
}

func errorsOf(s *Sample, scope string) *int64 {
	if ppm, ok := s.ErrorsPPM[scope]; ok {
		return &ppm
	}
	if scope != model.AnyScope || len(s.ErrorsPPM) == 0 {
		return nil
	}
	worst := int64(0)
	for _, ppm := range s.ErrorsPPM {
		worst = max(worst, ppm)
	}
	return &worst
}

// latestEach keeps the last use of each thing, sorted by name.
func latestEach(all []Practised) []Practised {
	slices.SortStableFunc(all, func(a, b Practised) int { return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(b.AtMS, a.AtMS)) })
	return slices.CompactFunc(all, func(a, b Practised) bool { return a.What == b.What })
}
