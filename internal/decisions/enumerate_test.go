package decisions

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// TestARowIsTheNearestUseOfItsRight: the next tier up, the next tier down, the first
// feature by name that may be off; and nothing that does not belong to its kind.
func TestARowIsTheNearestUseOfItsRight(t *testing.T) {
	b := changed(t, func(p *parts) {
		for _, name := range []string{"zeal", "aisle", "more"} {
			p.docs.Features.Features[name] = policy.Feature{Class: policy.Sheddable}
		}
		p.docs.Rights.Rights["more-off"] = policy.Right{Kind: model.Off, Who: "incident-commander", Scope: []string{"*"}, Feature: "more"}
	})
	w := calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	seen := map[string]model.Directive{}
	for _, row := range Enumerate(b, w, "ines") {
		d := row.Request.Directive
		seen[row.Name] = d
		if d.Kind != model.Off && d.Feature != "" {
			t.Errorf("%s, a %s, names feature %s", row.Name, d.Kind, d.Feature)
		}
	}
	if d := seen["shed"]; d.Tier != 3 {
		t.Errorf("shed: tier %d", d.Tier)
	}
	if d := seen["recover"]; d.From != 2 || d.To != 1 {
		t.Errorf("recover: from %d to %d", d.From, d.To)
	}
	if d := seen["feature-off"]; d.Feature != "aisle" {
		t.Errorf("feature-off: %q", d.Feature)
	}
	if d := seen["more-off"]; d.Feature != "more" {
		t.Errorf("more-off: %q", d.Feature)
	}
}
