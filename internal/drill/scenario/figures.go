package scenario

import (
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/model"
)

// overMinute is the window of a share of errors: one second's noise is no figure.
const overMinute = time.Minute / time.Millisecond

// Value is a figure of a record, in its smallest unit; ok is false for one that the
// record does not have, which is never the same as zero.
func Value(r *score.Record, f Figure) (v int64, ok bool) {
	end := r.LastsMS
	if f.When != "" {
		end = f.Time.Milliseconds()
	}
	switch f.Name {
	case "detected", "decided", "effective":
		return since(r, f.Name)
	case "denied":
		return denials(r, f.Of), true
	case "moves":
		return moves(r, f.Of, end), true
	case "cap":
		return r.CapCents, r.Mode != score.Baseline
	}
	s := sampleAt(r, end)
	if s == nil {
		return 0, false
	}
	switch f.Name {
	case "unscored":
		return s.UnscoredCents, true
	case "lost":
		return s.LostCents, true
	case "bypass-open":
		return int64(s.BypassOpen), true
	case "orders":
		return s.Orders[f.Of], true
	case "tier":
		return int64(s.Tier[f.Of]), true
	case "reached":
		return int64(s.Reached) * million / max(1, int64(s.Hosts)), s.Hosts > 0
	case "errors":
		return errorsAt(r, f.Of, end)
	case "peak-errors":
		return peak(r, f.Of, end), true
	case "impact":
		return impactUntil(r, end), true
	}
	return 0, false
}

// sampleAt is the last sample at or before a time.
func sampleAt(r *score.Record, ms int64) *score.Sample {
	for i := len(r.Samples) - 1; i >= 0; i-- {
		if r.Samples[i].AtMS <= ms {
			return &r.Samples[i]
		}
	}
	return nil
}

// since is the time from the first fault to the first event of a kind.
func since(r *score.Record, name string) (int64, bool) {
	kind := map[string]score.EventKind{"detected": score.Alarm, "decided": score.Decided, "effective": score.Effective}[name]
	from, to := int64(-1), int64(-1)
	for i := range r.Events {
		e := &r.Events[i]
		if e.Kind == score.Injected && (from < 0 || e.AtMS < from) {
			from = e.AtMS
		}
		if e.Kind == kind && (to < 0 || e.AtMS < to) && e.What != string(model.Ping) {
			to = e.AtMS
		}
	}
	return to - from, from >= 0 && to >= from
}

func denials(r *score.Record, code string) (n int64) {
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == score.Denied && (code == "" || e.Code == code) {
			n++
		}
	}
	return n
}

func moves(r *score.Record, service string, until int64) (n int64) {
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == score.Moved && e.Scope == service && e.AtMS <= until {
			n++
		}
	}
	return n
}

// errorsAt is the mean over the minute before.
func errorsAt(r *score.Record, service string, at int64) (int64, bool) {
	var sum, n int64
	for i := range r.Samples {
		if s := &r.Samples[i]; s.AtMS <= at && s.AtMS > at-int64(overMinute) {
			sum += s.ErrorsPPM[service]
			n++
		}
	}
	return sum / max(1, n), n > 0
}

// peak is the highest such mean.
func peak(r *score.Record, service string, until int64) (most int64) {
	for i := range r.Samples {
		at := r.Samples[i].AtMS
		if at > until || at < int64(overMinute) {
			continue
		}
		if v, ok := errorsAt(r, service, at); ok {
			most = max(most, v)
		}
	}
	return most
}

// impactUntil adds up the customers who were hit, in milliseconds of full outage.
func impactUntil(r *score.Record, until int64) int64 {
	var sum int64 // ppm x ms
	for i := range r.Samples {
		s := &r.Samples[i]
		to := r.LastsMS
		if i+1 < len(r.Samples) {
			to = r.Samples[i+1].AtMS
		}
		sum += s.ImpactPPM * max(0, min(to, until)-s.AtMS)
	}
	return sum / million
}
