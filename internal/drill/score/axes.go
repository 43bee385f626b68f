package score

import (
	"maps"
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// Who gives orders and is no person.
const (
	Ladder     = "ladder"            // the naive ladder of a baseline
	Controller = "ladder-controller" // the policy's own
)

// axesOf measures a record. It does not trust its order: events and samples are
// taken by their time.
func axesOf(r *Record) Axes {
	events, samples := ordered(r)
	a := Axes{Currency: r.Currency, Evidence: r.Evidence}
	a.times(events, samples, r.LastsMS)
	a.counts(events)
	a.tiers(samples, r.LastsMS)
	a.money(samples)
	if r.CapCents > 0 {
		a.CapCents = &r.CapCents
	}
	return a
}

func ordered(r *Record) ([]Event, []Sample) {
	events, samples := slices.Clone(r.Events), slices.Clone(r.Samples)
	slices.SortStableFunc(events, func(a, b Event) int { return int(a.AtMS - b.AtMS) })
	slices.SortStableFunc(samples, func(a, b Sample) int { return int(a.AtMS - b.AtMS) })
	return events, samples
}

// since is the time from a moment to an event of a kind, the first at or after it.
func since(events []Event, from int64, kind EventKind, fits func(Event) bool) (event Event, ok bool) {
	at := slices.IndexFunc(events, func(e Event) bool { return e.Kind == kind && e.AtMS >= from && (fits == nil || fits(e)) })
	if at < 0 {
		return Event{}, false
	}
	return events[at], true
}

func span(from, to int64) *int64 {
	d := to - from
	return &d
}

// times measures the five times.
func (a *Axes) times(events []Event, samples []Sample, end int64) {
	injected, ok := since(events, 0, Injected, nil)
	if !ok {
		return
	}
	a.StabiliseMS = stable(samples, injected.AtMS, end)
	a.RecoverMS = recovered(events, samples)
	seen, ok := acknowledged(events, injected.AtMS)
	if ok {
		a.DetectMS = span(injected.AtMS, seen.AtMS)
	}
	order, ok := since(events, injected.AtMS, Issued, changes)
	if !ok {
		return
	}
	if a.DetectMS != nil && order.AtMS >= seen.AtMS {
		a.DecideMS = span(seen.AtMS, order.AtMS)
	}
	effective, ok := since(events, order.AtMS, Effective, func(e Event) bool { return e.ID == order.ID })
	if ok {
		a.EffectMS = span(order.AtMS, effective.AtMS)
	}
}

// acknowledged is the first sign that somebody knows: an alarm is acknowledged, or a
// person gives an order before any alarm has been.
func acknowledged(events []Event, from int64) (event Event, ok bool) {
	seen, said := since(events, from, Acknowledged, nil)
	order, ordered := since(events, from, Issued, func(e Event) bool {
		return changes(e) && e.Who != "" && e.Who != Ladder && e.Who != Controller
	})
	if ordered && (!said || order.AtMS < seen.AtMS) {
		return order, true
	}
	return seen, said
}

// changes: a ping is an order that changes nothing, and decides nothing.
func changes(e Event) bool { return e.What != string(model.Ping) }

func calm(s *Sample) bool {
	for _, ppm := range s.ErrorsPPM {
		if ppm >= StableErrorsPPM {
			return false
		}
	}
	return true
}

// stable is the time from the injection to the first sample from which on every
// service stays calm for StableForMS. Samples before the errors have begun are
// calm too, so it counts from the first that is not; where none is not, the fault
// did no harm and the answer is 0.
func stable(samples []Sample, injected, end int64) *int64 {
	hurt := slices.IndexFunc(samples, func(s Sample) bool { return s.AtMS >= injected && !calm(&s) })
	if hurt < 0 {
		if len(samples) == 0 {
			return nil
		}
		return span(injected, injected)
	}
	from := int64(-1)
	for i := hurt; i < len(samples); i++ {
		s := &samples[i]
		switch {
		case !calm(s):
			from = -1
		case from < 0:
			from = s.AtMS
		}
		until := end
		if i+1 < len(samples) {
			until = samples[i+1].AtMS
		}
		if from >= 0 && until-from >= StableForMS {
			return span(injected, from)
		}
	}
	return nil
}

// recovered is the time that normality took: from the clearing of the last fault
// before it to the first sample from which on everything is normal until the end.
// It is 0 where all was normal when the first fault was cleared.
func recovered(events []Event, samples []Sample) *int64 {
	injected, cleared := int64(-1), []int64(nil)
	for _, e := range events {
		switch e.Kind {
		case Injected:
			injected = e.AtMS
		case Cleared:
			cleared = append(cleared, e.AtMS)
		}
	}
	if len(cleared) == 0 || injected > cleared[len(cleared)-1] || len(samples) == 0 {
		return nil // no fault was cleared, or one came after that
	}
	last := slices.IndexFunc(backwards(samples), func(s Sample) bool { return !normal(&s) })
	switch {
	case last == 0:
		return nil
	case last < 0:
		return span(0, 0)
	}
	at, from := samples[len(samples)-last].AtMS, int64(-1)
	for _, c := range cleared {
		if c <= at {
			from = c
		}
	}
	if from < 0 {
		return span(0, 0)
	}
	return span(from, at)
}

func backwards(samples []Sample) []Sample {
	out := slices.Clone(samples)
	slices.Reverse(out)
	return out
}

func normal(s *Sample) bool {
	for _, tier := range s.Tier {
		if tier > 0 {
			return false
		}
	}
	return calm(s) && s.BypassOpen == 0
}

// attempt is one wish that was refused, whatever the number of reasons: each
// reason is an event of its own.
type attempt struct {
	at               int64
	who, what, right string
}

func (a *Axes) counts(events []Event) {
	fell := map[string]int64{} // service -> when its tier fell
	blocked, role := map[attempt]bool{}, map[attempt]bool{}
	for _, e := range events {
		switch e.Kind {
		case Denied:
			one := attempt{e.AtMS, e.Who, e.What, e.Right}
			blocked[one] = true
			if model.Code(e.Code) == model.CodeWrongRole {
				role[one] = true
			}
		case Step:
			a.Steps++
		case Skipped:
			a.Skipped++
		case Moved:
			from, to := e.Done, e.Total
			if from-to > 1 {
				a.Jumps++
			}
			last, before := fell[e.Scope]
			switch {
			case to < from:
				fell[e.Scope] = e.AtMS
			case to > from && before && e.AtMS-last <= FlapWithinMS:
				a.Flaps++
				delete(fell, e.Scope)
			}
		}
	}
	a.Blocked, a.WrongRole = len(blocked), len(role)
}

// tiers integrates what lies between each sample and the next one: the distance
// from the oracle, and the customers that had no primary success.
func (a *Axes) tiers(samples []Sample, end int64) {
	if len(samples) == 0 {
		return
	}
	var ppm int64 // ppm x ms
	for i := range samples {
		s := &samples[i]
		until := end
		if i+1 < len(samples) {
			until = samples[i+1].AtMS
		}
		lasts := max(until-s.AtMS, 0)
		for _, service := range slices.Sorted(maps.Keys(s.Oracle)) {
			switch d := int64(s.Tier[service] - s.Oracle[service]); {
			case d > 0:
				a.OverTierMS += d * lasts
			case d < 0:
				a.UnderTierMS -= d * lasts
			}
		}
		ppm += s.ImpactPPM * lasts
	}
	impact := ppm / 1_000_000
	a.ImpactMS = &impact
	left := samples[len(samples)-1].BypassOpen
	a.BypassLeft = &left
}

func (a *Axes) money(samples []Sample) {
	if len(samples) == 0 {
		return
	}
	last := &samples[len(samples)-1]
	a.UnscoredCents, a.LostCents = &last.UnscoredCents, &last.LostCents
}
