package decisions

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// TestSheddingIsEasyRecoveringIsSlowOpeningIsHard is the table of the design: for
// each direction what an act needs, by taking one thing away at a time from a
// world in which everything is there. "-" goes through all the same.
func TestSheddingIsEasyRecoveringIsSlowOpeningIsHard(t *testing.T) {
	live := func(d model.Directive) func(*model.World) {
		d.ID, d.Scope, d.NotBefore = id(1), "*", day0.Add(-time.Hour)
		return func(w *model.World) { w.Issued = append(w.Issued, model.Issued{Directive: d, FirstSeen: d.NotBefore}) }
	}
	without := []struct {
		name   string
		change func(*model.World)
	}{
		{"signals", func(w *model.World) { w.Readings = nil }},
		{"fresh policy", func(w *model.World) {
			w.Now = day0.AddDate(2, 0, 0)
			w.Incident.Lease.Until = w.Now.Add(time.Hour)
			w.Readings["errors"] = steady(0.001, w.Now)
		}},
		{"fit clock", func(w *model.World) { w.Clock = model.ClockBehind }},
		{"command", func(w *model.World) { w.Incident.Lease = model.Lease{} }},
		{"disk", func(w *model.World) { w.Durable = false }},
		{"inventory", func(w *model.World) { w.Hosts = nil }},
		{"a host that reports", func(w *model.World) {
			for i := range w.Issued {
				w.Issued[i].FirstSeen = time.Time{}
			}
		}},
	}
	acts := []struct {
		name      string
		ask       Ask
		before    func(*model.World)
		direction model.Direction
		needs     map[string]model.Code // by what is missing; absent: goes through
	}{
		{"shed to a higher tier", Ask{Right: "shed", Tier: 3}, nil, model.Tighten, nil},
		{"feature off", Ask{Right: "feature-off", Feature: "recommendations"}, nil, model.Tighten, nil},
		{"freeze", Ask{Right: "freeze", Lasts: model.Duration(time.Minute)}, nil, model.Tighten, nil},
		{"end a bypass", Ask{Right: "end-bypass", IDs: []string{id(9)}}, nil, model.Tighten, nil},
		{"end a shed", Ask{Right: "recover", Tier: NextTier}, live(model.Directive{Kind: model.Shed, Tier: 2}), model.Recover,
			map[string]model.Code{"signals": SignalUnknown, "command": NoLease, "a host that reports": Unseen}},
		{"feature on", Ask{Right: "feature-on"}, live(model.Directive{Kind: model.Off, Feature: "recommendations"}), model.Recover,
			map[string]model.Code{"signals": SignalUnknown, "command": NoLease}},
		{"end a freeze", Ask{Right: "unfreeze"}, live(model.Directive{Kind: model.Freeze, NotAfter: day0.AddDate(9, 0, 0)}), model.Recover,
			map[string]model.Code{"signals": SignalUnknown, "command": NoLease}},
		{"a bypass", Ask{Right: "risk-bypass-small-orders", Reason: "risk is down"}, nil, model.Loosen,
			map[string]model.Code{"fresh policy": model.CodePolicyExpired, "fit clock": model.CodeClockUnfit, "command": NoLease, "disk": NotDurable, "inventory": NoInventory}},
	}
	b := shop(t, 0)
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			for _, missing := range without {
				w := calm()
				if act.before != nil {
					act.before(w)
				}
				missing.change(w)
				r := draft(t, b, w, act.ask)
				v := Evaluate(b, w, &r)
				if v.Direction != act.direction {
					t.Fatalf("it is %s, not %s", v.Direction, act.direction)
				}
				want, needed := act.needs[missing.name]
				switch {
				case !needed && v.Outcome != model.Permitted:
					t.Errorf("without %s: %s %v", missing.name, v.Outcome, codes(v))
				case needed && (v.Outcome == model.Permitted || codes(v)[0] != want):
					t.Errorf("without %s: %s %v, want %s", missing.name, v.Outcome, codes(v), want)
				}
			}
		})
	}
}

// TestNothingThatIsAControlIsTightenedByItsName: a control that a policy offers
// as a feature still opens when it is switched off, and no row can grant that.
func TestNothingThatIsAControlIsTightenedByItsName(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "feature-off", Feature: "payment-risk", Reason: "it is slow"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Denied, model.CodeWrongKind)
	if v.Direction != model.Loosen {
		t.Errorf("switching a control off is %s", v.Direction)
	}
}
