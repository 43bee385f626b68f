package scenario

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/model"
)

// naiveLadder is the ladder of the second incident: one threshold for the way in and
// the way out, and no dwell.
type naiveLadder struct {
	signal string
	limit  float64
	tier   int
	timer  kernel.Timer
}

// removed is the value that takes an override out of the pipeline.
const removed = "removed"

// actPlain does a step of the baseline: with flags that nobody has signed, that have
// no end, and that the hosts forget.
func (r *Run) actPlain(step *Step) {
	switch step.Verb {
	case "decides":
		r.Happened(score.Event{Kind: score.Decided, Who: step.Who, What: strings.Join(step.Args, " ")})
	case "flag":
		r.order(step, "flag", step.Args[0], step.Args[1])
	case "override":
		r.order(step, "override", step.Args[0], step.Args[1])
	case "pin":
		if r.naive != nil {
			r.naive.timer.Stop()
		}
		r.order(step, "flag", sim.FlagTier, step.Args[0])
	case "steps":
		r.ladder(step)
	}
}

// order sets a flag by one of the two ways, writes down what was ordered and begins
// to follow it.
func (r *Run) order(step *Step, way, flag, value string) {
	id := "line-" + strconv.Itoa(step.Line)
	if step.Verb == "steps" {
		id += "-" + strconv.FormatInt(r.Now().Milliseconds(), 10)
	}
	what := way + " " + flag
	r.Happened(score.Event{Kind: score.Decided, Who: step.Who, What: what, ID: id, Detail: value})
	var err error
	switch {
	case way == "flag":
		err = r.plain.Set(flag, value)
	case value == removed:
		err = r.plain.Override(flag, "")
	default:
		err = r.plain.Override(flag, value)
	}
	if err != nil {
		r.Happened(score.Event{Kind: score.Denied, Who: step.Who, What: what + " " + value, Code: codeOf(err), Detail: err.Error()})
		return
	}
	r.Happened(score.Event{Kind: score.Issued, Who: step.Who, What: what, ID: id, Detail: value})
	for _, t := range r.tracked { // a newer value takes the place of an older one, whatever carried it
		t.over = t.over || t.flag == flag
	}
	if value != removed {
		t := &tracked{id: id, what: what, flag: flag, share: million}
		t.covers, t.inForce = flagOn(flag, value)
		r.tracked = append(r.tracked, t)
	}
}

// flagOn is whom a naive flag concerns and how it shows there.
func flagOn(name, value string) (covers, inForce func(*sim.HostFacts) bool) {
	feature, _ := strings.CutPrefix(name, sim.FlagOff)
	switch name {
	case sim.FlagBypassRisk:
		return func(h *sim.HostFacts) bool { return h.Service == shop.Checkout },
			func(h *sim.HostFacts) bool { return h.Open == (value != "off") }
	case sim.FlagTier:
		tier, _ := strconv.Atoi(value) // checked by Parse
		return func(*sim.HostFacts) bool { return true }, func(h *sim.HostFacts) bool { return h.Tier == tier }
	default:
		return func(h *sim.HostFacts) bool { return h.Service == shop.Edge || h.Service == shop.Catalog },
			func(h *sim.HostFacts) bool { return slices.Contains(h.Off, feature) == (value == "on") }
	}
}

// ladder begins the naive ladder.
func (r *Run) ladder(step *Step) {
	limit, _ := strconv.ParseFloat(step.Args[1], 64) // all three checked by Parse
	every, _ := model.ParseDuration(step.Args[3])
	l := &naiveLadder{signal: step.Args[0], limit: limit}
	l.timer = r.w.Kernel().Every(r.w.Kernel().Now().Add(time.Millisecond), every.Std(), func() {
		reading := &r.dashboard.now[l.signal].reading
		want := 0
		if reading.State == model.ReadingValue && reading.Value > l.limit {
			want = 1
		}
		if want == l.tier {
			return
		}
		l.tier = want
		r.order(step, "flag", sim.FlagTier, strconv.Itoa(want))
	})
	r.naive = l
}
