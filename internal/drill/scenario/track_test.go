package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// quiet is a night in which everything that leaves no tier behind is done once.
const quiet = `scenario  quiet
title     Everything but a tier
source    a test
why       a freeze, a ping and endings are orders too

fleet     shop 12
lasts     14m
people    ines commander reacts 5s acts 5s

at 0s     inject payment-risk-down
at 4m     clear payment-risk-down

baseline
  at 1m ines decides nothing

with ic
  on 0s ines do ping scope *
  then ines do risk-bypass-small-orders scope checkout
  on 2m ines do feature-off scope * feature recommendations
  on 4m ines do end-bypass scope checkout
  on 8m ines do feature-on scope *
  on 9m ines do freeze scope *
  on 11m ines do unfreeze scope *

expect    ic denied = 0
`

func TestAFreezeAPingAndEndingsArePractised(t *testing.T) {
	s, err := Parse("quiet.scenario", []byte(quiet), Shop())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Play(t.Context(), s, Options{Seed: 1, Mode: score.WithIC, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	card := score.Of(r, score.Options{})
	if card.Verdict != score.Passed {
		t.Errorf("%s: %q", card.Verdict, card.Why)
	}
	for _, right := range []string{"ping", "feature-off", "feature-on", "end-bypass", "freeze", "unfreeze"} {
		at := slices.IndexFunc(card.Practised, func(p score.Practised) bool { return p.What == right })
		if at < 0 || card.Practised[at].EffectMS == nil || *card.Practised[at].EffectMS > 60_000 {
			t.Errorf("%s is not practised: %+v", right, card.Practised)
		}
	}
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == score.Effective && (e.Done != e.Total || e.Total == 0) || e.Kind == score.Effective && e.Who == "" {
			t.Errorf("%+v", e)
		}
	}
	// The first order that changes something is the bypass, not the ping before it.
	first := slices.IndexFunc(r.Events, func(e score.Event) bool { return e.Kind == score.Effective && strings.HasPrefix(e.What, "bypass") })
	want, _ := Value(r, Figure{Name: "effective"})
	if first < 0 || want != r.Events[first].AtMS {
		t.Errorf("effective after %d ms: %+v", want, r.Events)
	}
}

// A card knows the policy's own controller by its name, without knowing the policy.
func TestTheControllerIsNoPerson(t *testing.T) {
	if score.Controller != templates.LadderController {
		t.Errorf("the card's is %q, the policy's %q", score.Controller, templates.LadderController)
	}
}
