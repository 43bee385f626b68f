package incident

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// Reach is how far a directive has come, counted in host reports and in nothing
// else.
type Reach struct {
	Done        int // hosts that report it in force (or, for an ending, its ids gone)
	Total       int // hosts of the inventory that it speaks about
	Unreachable int
	Stale       int // hosts whose report is older than the inventory allows
}

// State puts a reach into a word.
func (r Reach) State() State {
	switch {
	case r.Total > 0 && r.Done == r.Total:
		return Effective
	case r.Done > 0:
		return Partial
	default:
		return Unconfirmed
	}
}

// ReachOf counts the hosts on which a directive has its effect.
func ReachOf(w *model.World, d *model.Directive) Reach {
	var r Reach
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if !slices.ContainsFunc(h.Services, d.Covers) {
			continue
		}
		r.Total++
		switch {
		case !h.Reachable || h.Report == nil:
			r.Unreachable++
		case tooOld(h, w):
			r.Stale++
		case hasEffect(h.Report, d):
			r.Done++
		}
	}
	return r
}

// tooOld wants a report that was made after the inventory's age limit; a host
// that serves an old report has stopped telling the truth about now.
func tooOld(h *model.HostView, w *model.World) bool {
	limit := w.Inventory.MaxAge.Std()
	return limit > 0 && age(h.SeenAt, w.Now) > limit
}

func age(at, now time.Time) time.Duration {
	if at.IsZero() {
		return 1<<63 - 1
	}
	return now.Sub(at)
}

// hasEffect: a host lists what it holds in force. An ending of anything but a
// shed leaves no line of its own: it has worked when what it ends is gone.
func hasEffect(r *model.Report, d *model.Directive) bool {
	if d.Kind == model.End && !d.IsRecovery() {
		return !slices.ContainsFunc(d.IDs, func(id string) bool { return inForce(r, id) })
	}
	return inForce(r, d.ID)
}

func inForce(r *model.Report, id string) bool {
	return slices.ContainsFunc(r.Live, func(l model.ReportLive) bool { return l.ID == id })
}
