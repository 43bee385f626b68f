package drill_test

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// whole is how exact the times of a statement are.
const whole = time.Second

// oneStep holds a recovery to the ladder: one tier, the next percentage of its ramp,
// not before its time, in known-good weather, and for no service a second one in the
// same window.
func (t *truth) oneStep(is *statement) {
	d := &is.Directive
	tier, known := t.tier(d.From)
	if !known {
		t.s.fail("step: %s leaves tier %d, which the ladder does not have", d.ID, d.From)
		return
	}
	t.nextPercent(is, tier)
	if right, _ := t.s.law.right(d.Right); !right.Blind {
		for i := range tier.Leave {
			if from := is.heard.Add(-tier.Leave[i].For.Std()).Add(3 * sampleEvery); !t.s.calm(from, d.IssuedAt) {
				t.s.fail("step: %s recovers at %s although the signals were not known to be good since %s",
					d.ID, d.IssuedAt.Format(time.TimeOnly), from.Format(time.TimeOnly))
			}
		}
	}
	t.oneAtATime(is, tier)
}

func (t *truth) tier(n int) (policy.Tier, bool) {
	for _, tier := range t.s.law.docs.Ladder.Tiers {
		if tier.Tier == n {
			return tier, true
		}
	}
	return policy.Tier{}, false
}

// nextPercent: the first step of a tier after the dwell, the next one after the
// pause of the ramp, and none of them twice. What two consoles do that cannot hear each
// other is not compared here: neither ends what it has not seen, so the slower of the
// two holds every host, and oneAtATime sees what comes of both.
func (t *truth) nextPercent(is *statement, tier policy.Tier) {
	d := &is.Directive
	for _, id := range d.IDs {
		if t.byID[id] == nil { // signed, and UNKNOWN: only a blind recovery goes on from it
			t.fromLogs(func(is *model.Issued) bool { return is.Directive.ID == id && is.Outcome != audit.StateAbsent })
		}
	}
	before := t.slowest(d)
	at := slices.Index(tier.Ramp, d.Percent)
	switch {
	case at < 0:
		t.s.fail("step: %s goes to %d %%, which is no step of the ramp", d.ID, d.Percent)
	case before == nil && at > 0:
		t.s.fail("step: %s begins with %d %%", d.ID, d.Percent)
	case before != nil && slices.Index(tier.Ramp, before.Percent) != at-1:
		t.s.fail("step: %s goes to %d %% after %s went to %d %%", d.ID, d.Percent, before.ID, before.Percent)
	case before != nil && is.begins().Sub(before.begins()) < tier.RampStep.Std()-whole:
		t.s.fail("step: %s follows %s after %s", d.ID, before.ID, is.begins().Sub(before.begins()))
	}
	if before != nil {
		if right, _ := t.s.law.right(d.Right); !right.Blind && !t.arrived(before) && !t.beyond(d) {
			t.s.fail("step: %s follows %s, which no host has had", d.ID, before.ID)
		}
		return
	}
	for _, entered := range t.all {
		// The dwell of a shed that nobody could see yet, or that came at the same time,
		// was not for this step to wait for.
		if entered != is && entered.illegal == "" && entered.Kind == model.Shed && entered.Scope == d.Scope && entered.Tier == d.From &&
			slices.Contains(d.IDs, entered.ID) && d.IssuedAt.Sub(t.heldFrom(entered)) < tier.Dwell.Std()-whole {
			t.s.fail("step: %s leaves tier %d %s after %s has entered it", d.ID, d.From, d.IssuedAt.Sub(t.heldFrom(entered)), entered.ID)
		}
	}
}

// beyond reports whether hosts have gone as far as a step before it: one of the same
// ramp that it lists has brought them there.
func (t *truth) beyond(d *model.Directive) bool {
	return slices.ContainsFunc(t.listed(d), func(other *statement) bool { return other.Percent >= d.Percent && t.arrived(other) })
}

// listed are the steps of the same ramp that a step lists.
func (t *truth) listed(d *model.Directive) (out []*statement) {
	for _, other := range t.all {
		if other.illegal == "" && other.IsRecovery() && other.Ramp == d.Ramp && slices.Contains(d.IDs, other.ID) {
			out = append(out, other)
		}
	}
	return out
}

// heldFrom is when a shed may have begun to hold: when the first host that had it was
// last asked before that, as it counts time, and not before its own start. A host that
// was down could not be asked.
func (t *truth) heldFrom(is *statement) time.Time {
	var first time.Time
	for _, m := range t.hosts {
		if at, had := m.lacked[is.ID]; had {
			if at = at.Add(-m.behind); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	if first.Before(is.NotBefore) {
		return is.NotBefore
	}
	return first
}

// slowest is the step that a step of the same ramp follows: of those that it lists and
// that none of the others has ended, the one that let the fewest hosts go, and of
// those the last.
func (t *truth) slowest(d *model.Directive) *statement {
	listed := t.listed(d)
	var found *statement
	for _, is := range listed {
		over := slices.ContainsFunc(listed, func(by *statement) bool { return slices.Contains(by.IDs, is.ID) })
		if !over && (found == nil || is.Percent < found.Percent || is.Percent == found.Percent && is.begins().After(found.begins())) {
			found = is
		}
	}
	return found
}

// arrived reports whether any host has had a statement.
func (t *truth) arrived(is *statement) bool {
	for _, m := range t.hosts {
		if _, had := m.had[is.ID]; had {
			return true
		}
	}
	return slices.ContainsFunc(t.witnesses(), func(h witness) bool {
		return h.engine != nil && h.engine.Held([]byte(is.token)) != ""
	})
}

// oneAtATime compares the tier of every service just before and just after a step:
// it falls by one at most, and not twice in one window.
func (t *truth) oneAtATime(is *statement, tier policy.Tier) {
	for service := range t.s.law.docs.Ladder.Services {
		moved := false
		for _, bucket := range []int{0, 9, 10, 49, 50, 99} {
			before, after := t.issued(service, bucket, is), t.issued(service, bucket, nil)
			if before-after > 1 {
				t.s.fail("step: %s takes %s from tier %d to %d at once", is.ID, service, before, after)
			}
			moved = moved || after < before
		}
		if !moved {
			continue
		}
		at := is.begins()
		if last, ok := t.steps[service]; ok && at.Sub(last.at) < tier.RampStep.Std()-whole {
			t.s.fail("step: %s moves %s %s after %s did", is.ID, service, at.Sub(last.at), last.id)
		}
		t.steps[service] = step{at, is.ID}
	}
}

// begins is when a statement could first be obeyed.
func (is *statement) begins() time.Time {
	if is.IssuedAt.After(is.NotBefore) {
		return is.IssuedAt
	}
	return is.NotBefore
}

// issued is the tier that everything heard so far asks of a host in a bucket, as if
// without had never been said.
func (t *truth) issued(service string, bucket int, without *statement) int {
	tier, ended := 0, map[string]bool{}
	for _, e := range t.all {
		if e != without && e.illegal == "" && e.Kind == model.End && e.Ends == model.Shed {
			for _, id := range e.IDs {
				if d := t.byID[id]; d != nil && d.Scope == e.Scope {
					ended[id] = true
				}
			}
		}
	}
	for _, is := range t.all {
		if is == without || is.illegal != "" || ended[is.ID] || !is.Covers(service) {
			continue
		}
		switch {
		case is.Kind == model.Shed:
			tier = max(tier, is.Tier)
		case is.IsRecovery() && bucket < is.Percent:
			tier = max(tier, is.To)
		case is.IsRecovery():
			tier = max(tier, is.From)
		}
	}
	return min(tier, t.s.law.bundle.LastTier(service))
}
