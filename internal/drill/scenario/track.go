package scenario

import (
	"slices"
	"strconv"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// effectivePPM of the hosts is what counts as everywhere: one in twenty may be down,
// restarting or new.
const effectivePPM = 950_000

// tracked is an order that was given: a directive, or a flag without ic. Whether it
// is in force is read from the hosts themselves, never from what carried it.
type tracked struct {
	id, what, scope string
	flag            string // without ic: its name
	covers          func(h *sim.HostFacts) bool
	inForce         func(h *sim.HostFacts) bool
	share           int64 // ppm of the hosts that it is for: a ramp's
	effective       bool
	over            bool // ended, replaced or expired
	lasts           bool // a directive: over when it is no longer in force
	tier            bool // it is about tiers, of which several make one posture
}

func (t *tracked) pending() bool { return !t.effective && !t.over }

// count is on how many of its hosts it is in force.
func (t *tracked) count(f *sim.Facts) (done, total int) {
	for i := range f.Fleet {
		h := &f.Fleet[i]
		if !t.covers(h) {
			continue
		}
		total++
		if h.Up && t.inForce(h) {
			done++
		}
	}
	return done, (total*int(t.share) + million - 1) / million
}

// Pushed writes a push down that a backend has taken, and where hosts have said so
// that it is in force.
func (r *Run) Pushed(began time.Duration, who string, plan *incident.BreakPlan, result *incident.Result) {
	what := "push " + plan.Backend
	for _, kind := range []score.EventKind{score.Decided, score.Issued} {
		r.Happened(score.Event{AtMS: began.Milliseconds(), Kind: kind, Who: who, What: what, ID: plan.Operation})
	}
	if result.State == incident.Effective {
		r.Happened(score.Event{Kind: score.Effective, Who: who, What: what, ID: plan.Operation, Done: result.Done, Total: result.Total})
	}
}

// follow looks how far every order has come.
func (r *Run) follow(f *sim.Facts) {
	if r.plain == nil {
		r.newOrders(f)
	}
	for _, t := range r.tracked {
		if !t.pending() {
			continue
		}
		done, total := t.count(f)
		if total > 0 && int64(done)*million >= int64(total)*effectivePPM {
			t.effective = true
			r.Happened(score.Event{Kind: score.Effective, What: t.what, Scope: t.scope, ID: t.id, Done: done, Total: total})
		}
	}
}

// reach is how many hosts are as everything in force says they should be, of those
// that any of it is for; of a fleet without an order all are.
func (r *Run) reach(f *sim.Facts) (done, total int) {
	for i := range f.Fleet {
		h := &f.Fleet[i]
		covered, all := h.Issued > 0, r.plain != nil || h.Tier == h.Issued
		for _, t := range r.tracked {
			if t.over || !t.covers(h) {
				continue
			}
			covered = true
			all = all && (t.tier || t.inForce(h))
		}
		if covered {
			total++
			if all && h.Up {
				done++
			}
		}
	}
	if total == 0 {
		return f.Hosts, f.Hosts
	}
	return done, total
}

// newOrders finds what has come into force since the last look, whoever has signed
// it, and what no longer is.
func (r *Run) newOrders(f *sim.Facts) {
	live := map[string]bool{}
	for i := range f.Live {
		live[f.Live[i].ID] = true
	}
	for _, all := range [][]model.Directive{f.Live, f.Ends} {
		for i := range all {
			d := &all[i]
			if r.known[d.ID] {
				continue
			}
			r.known[d.ID] = true
			if t := trackedOf(d); t != nil {
				r.issued(d, t)
			}
		}
	}
	for _, t := range r.tracked {
		if t.lasts && !t.over && !live[t.id] {
			t.over = true
			r.Happened(score.Event{Kind: score.Ended, What: t.what, Scope: t.scope, ID: t.id})
		}
	}
}

// issued begins to follow a directive. Who signed it is in the logs, which are read
// at the end.
func (r *Run) issued(d *model.Directive, t *tracked) {
	at := max(d.IssuedAt.Sub(r.start).Milliseconds(), r.acknowledged.Milliseconds(), 0) // it is cut to a second
	for _, kind := range []score.EventKind{score.Decided, score.Issued} {
		r.rec.Events = append(r.rec.Events, score.Event{AtMS: at, Kind: kind, What: t.what, Scope: d.Scope, ID: d.ID, Right: d.Right})
	}
	r.tracked = append(r.tracked, t)
	if d.Kind == model.Bypass {
		r.bypasses++
	}
}

// trackedOf is how a directive shows on a host, nil for one that does not.
func trackedOf(d *model.Directive) *tracked {
	t := &tracked{id: d.ID, what: whatOf(d), scope: d.Scope, share: million, lasts: true}
	t.covers = func(h *sim.HostFacts) bool { return d.Covers(h.Service) }
	switch {
	case d.Kind == model.Shed:
		t.tier = true
		t.inForce = func(h *sim.HostFacts) bool { return h.Tier >= min(d.Tier, lastTier(h.Service)) }
	case d.Kind == model.Off:
		t.inForce = func(h *sim.HostFacts) bool { return slices.Contains(h.Off, d.Feature) }
	case d.Kind == model.Bypass:
		t.covers = func(h *sim.HostFacts) bool { return h.Service == shop.Checkout && d.Covers(h.Service) }
		t.inForce = func(h *sim.HostFacts) bool { return h.Open }
	case d.IsRecovery():
		t.tier = true
		t.share = int64(d.Percent) * million / 100
		t.inForce = func(h *sim.HostFacts) bool { return h.Tier <= d.To }
	case d.Kind == model.End: // it has worked where what it ends is gone
		t.lasts = false
		t.inForce = func(h *sim.HostFacts) bool { return !slices.ContainsFunc(d.IDs, h.Obeys) }
	case d.Kind == model.Freeze, d.Kind == model.Ping:
		t.inForce = func(h *sim.HostFacts) bool { return h.Obeys(d.ID) }
	default:
		return nil
	}
	return t
}

// lastTier is the highest that a service of the shop knows.
func lastTier(service string) int {
	if service == shop.PaymentRisk {
		return 1
	}
	return 4
}

// whatOf is a directive's kind with its argument, as records name it.
func whatOf(d *model.Directive) string {
	switch d.Kind {
	case model.Shed:
		return "shed " + strconv.Itoa(d.Tier)
	case model.Off:
		return "off " + d.Feature
	case model.Bypass:
		return "bypass " + d.Control
	case model.End:
		if d.IsRecovery() {
			return "end " + strconv.Itoa(d.To) + " " + strconv.Itoa(d.Percent) + " %"
		}
		return "end " + string(d.Ends)
	default:
		return string(d.Kind)
	}
}
