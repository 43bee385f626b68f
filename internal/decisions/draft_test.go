package decisions

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// TestAShedThatNamesNoTierIsTheNextOne within what the right allows.
func TestAShedThatNamesNoTierIsTheNextOne(t *testing.T) {
	b := shop(t, 0)
	for held, want := range map[int]int{0: 1, 1: 2, 2: 3, 3: 3} {
		w := calm()
		if held > 0 {
			shedAt(w, 1, held, day0.Add(-time.Hour))
		}
		if r := draft(t, b, w, Ask{Right: "shed", Reason: "load"}); r.Directive.Tier != want {
			t.Errorf("at tier %d: tier %d, want %d", held, r.Directive.Tier, want)
		}
	}
}

// TestAnEndingFindsWhatThereIsToEnd in the first scope that has any of its kind and
// that its right covers.
func TestAnEndingFindsWhatThereIsToEnd(t *testing.T) {
	frozen := func(w *model.World, n int, kind model.Kind, scope string) {
		w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{
			ID: id(n), Kind: kind, Scope: scope, NotBefore: day0.Add(-time.Minute), NotAfter: day0.Add(time.Hour)}})
	}
	narrow := changed(t, func(p *parts) {
		p.docs.Rights.Rights["unfreeze"] = policy.Right{Kind: model.End, Ends: model.Freeze, Who: "incident-commander", Scope: []string{"edge", "payment"}}
	})
	for _, c := range []struct {
		name   string
		b      *policy.Bundle
		freeze []string
		dimmed string // a scope with something of another kind
		want   string
	}{
		{"nothing anywhere", shop(t, 0), nil, "", "*"},
		{"the first of two", shop(t, 0), []string{"edge", "checkout"}, "", "checkout"},
		{"another kind in an earlier scope", shop(t, 0), []string{"edge"}, "checkout", "edge"},
		{"a scope that the right does not cover", narrow, []string{"checkout"}, "", "edge"},
		{"a scope that it covers", narrow, []string{"checkout", "payment"}, "", "payment"},
	} {
		w := calm()
		for n, scope := range c.freeze {
			frozen(w, n+1, model.Freeze, scope)
		}
		if c.dimmed != "" {
			frozen(w, 9, model.Dimmer, c.dimmed)
		}
		if r := draft(t, c.b, w, Ask{Right: "unfreeze", Reason: "over"}); r.Directive.Scope != c.want {
			t.Errorf("%s: scope %s, want %s", c.name, r.Directive.Scope, c.want)
		}
	}
}
