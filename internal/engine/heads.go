package engine

import (
	"maps"
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// Limits of the heads that a host keeps as evidence about issuers' logs.
const (
	maxOrigins   = 256
	maxHeads     = 512 // first ones, and as many last ones, per origin
	reportHeads  = 64  // in a report
	reportOrigin = 4   // in a report, last ones per origin
)

// heads are the log heads that verified directives named. A cut tail or a fork
// of a log contradicts one of them.
type heads struct {
	by    map[string]*origin
	clock int // of arrivals: the origin that was heard of longest ago goes first
}

type origin struct {
	first, last []model.LogHead // in the order of arrival
	heard       int
}

// add keeps a head.
func (h *heads) add(head model.LogHead) {
	h.clock++
	o, ok := h.by[head.Origin]
	if !ok {
		if len(h.by) == maxOrigins {
			h.drop()
		}
		o = &origin{}
		h.by[head.Origin] = o
	}
	o.heard = h.clock
	switch {
	case slices.Contains(o.first, head) || slices.Contains(o.last, head):
	case len(o.first) < maxHeads:
		o.first = append(o.first, head)
	case len(o.last) < maxHeads:
		o.last = append(o.last, head)
	default:
		o.last = append(o.last[1:], head)
	}
}

func (h *heads) drop() {
	oldest := ""
	for name, o := range h.by {
		if oldest == "" || o.heard < h.by[oldest].heard {
			oldest = name
		}
	}
	delete(h.by, oldest)
}

// byAge lists the origins, the one heard of last first.
func (h *heads) byAge() []*origin {
	return slices.SortedFunc(maps.Values(h.by), func(a, b *origin) int { return b.heard - a.heard })
}

// all lists every head, so that adding them again in this order gives the same.
func (h *heads) all() []model.LogHead {
	var out []model.LogHead
	for _, o := range slices.Backward(h.byAge()) {
		out = append(append(out, o.first...), o.last...)
	}
	return out
}

// shown is the part of a report: of each origin what contradicts another head
// and the last ones, of the origins those heard of last.
func (h *heads) shown() []model.LogHead {
	out := []model.LogHead{}
	for _, o := range h.byAge() {
		all := append(slices.Clone(o.first), o.last...)
		roots := make(map[int64]string, len(all))
		forked := make(map[int64]bool)
		for _, head := range all {
			if root, seen := roots[head.Size]; seen && root != head.Root {
				forked[head.Size] = true
			}
			roots[head.Size] = head.Root
		}
		tail := max(0, len(all)-reportOrigin)
		for i, head := range all {
			if len(out) == reportHeads {
				return out
			}
			if i >= tail || forked[head.Size] {
				out = append(out, head)
			}
		}
	}
	return out
}
