package tui

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// scene is all that a view may look at: values, and no way to reach the desk.
type scene struct {
	snap     incident.Snapshot
	read     bool      // a snapshot has arrived
	now      time.Time // the world's clock
	seconds  bool      // something counts down, so ages show seconds
	runbooks []Runbook
	running  int // orders on their way
}

// Limits of what is drawn.
const (
	// reportsOld is when host reports look old if the inventory names no age.
	reportsOld = 60 * time.Second
	// carrierOld is when the last full read of a flag service looks old.
	carrierOld = 60 * time.Second
	// deskOld is when the console says that it has not heard from its own desk:
	// every number on the screen is at least that old.
	deskOld = 2 * time.Minute
	// policySoon is when the end of the policy begins to matter.
	policySoon = 30 * 24 * time.Hour
)

// counting reports whether anything runs towards an end that a person watches.
func counting(s *incident.Snapshot, now time.Time) bool {
	for i := range s.Live {
		d := &s.Live[i].Issued.Directive
		if now.Before(d.NotBefore) || now.Before(d.NotAfter) {
			return true
		}
	}
	if len(s.Proposals) > 0 {
		return true
	}
	for i := range s.Matrix {
		if slices.ContainsFunc(s.Matrix[i].Verdict.Reasons, waits) {
			return true
		}
	}
	return false
}

// hostOld is the age at which a host's report is no longer about now.
func (sc *scene) hostOld() time.Duration {
	if limit := sc.snap.World.Inventory.MaxAge.Std(); limit > 0 {
		return limit
	}
	return reportsOld
}

// reportAge is the age of what a host says: of its own clock or of our reading,
// whichever is older, so that an old report served afresh still looks old.
func (sc *scene) reportAge(h *model.HostView) time.Duration {
	d := sc.now.Sub(h.SeenAt)
	if h.Report != nil {
		d = max(d, sc.now.Sub(h.Report.At))
	}
	return max(d, 0)
}

// hostState is the one thing to know about a host, with its rank in the list:
// what needs a person comes first.
func (sc *scene) hostState(h *model.HostView) (span, int) {
	switch {
	case !h.Reachable:
		return span{"unreachable", unknown}, 0
	case h.Report == nil:
		return span{"no report", unknown}, 1
	case len(h.Lacks) > 0:
		return span{"lacks " + count(len(h.Lacks), "order"), abnormal}, 2
	case sc.reportAge(h) > sc.hostOld():
		return span{"stale", stale}, 3
	case len(h.Extra) > 0:
		return span{"holds " + count(len(h.Extra), "ended order"), abnormal}, 4
	case h.Report.Clock.State == model.ClockUnsynced || h.Report.Clock.State == model.ClockBehind:
		return span{"clock " + string(h.Report.Clock.State), abnormal}, 5
	case h.Report.State != "" && h.Report.State != "ok":
		return span{h.Report.State, abnormal}, 6
	default:
		return span{"holds all", normal}, 7
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
