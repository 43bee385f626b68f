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
	Stale       int // hosts whose report is too old to count
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
func ReachOf(w *model.World, d *model.Directive, maxAge model.Duration) Reach {
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
		case tooOld(h, w.Now, maxAge):
			r.Stale++
		case hasEffect(h.Report, d):
			r.Done++
		}
	}
	return r
}

// tooOld: a host that has not answered for a while has stopped telling the truth
// about now.
func tooOld(h *model.HostView, now time.Time, maxAge model.Duration) bool {
	return h.SeenAt.IsZero() || now.Sub(h.SeenAt) > maxAge.Std()
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
