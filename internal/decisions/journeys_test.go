package decisions

import (
	"fmt"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// browsing has two services of four and of two tiers, and what users do on them.
func browsing(t *testing.T) *policy.Bundle {
	return changed(t, func(p *parts) {
		p.docs.Ladder.Services = map[string]policy.Service{"edge": {Tiers: 2}, "catalog": {Tiers: 4}}
		feature := func(service string, tiers ...string) policy.Feature {
			f := policy.Feature{Class: policy.Sheddable, Service: service, Tiers: map[int]string{}}
			for i, behaviour := range tiers {
				f.Tiers[i+1] = behaviour
			}
			return f
		}
		const off, same = policy.OffBehaviour, policy.NoChange
		p.docs.Features.Features = map[string]policy.Feature{
			"search":  feature("edge", same, same, off, off), // the edge knows no tier 3
			"suggest": feature("edge", off, off, off, off),
			"reviews": feature("catalog", "off-peak ones only", off, off, off),
			"images":  feature("catalog", same, same, off, off),
			"ghost":   feature("nowhere", off, same, same, same),
		}
		p.docs.Journeys = &policy.JourneysDoc{Journeys: map[string]policy.Journey{
			"type-ahead": {Text: "find by typing", BrokenBy: [][]string{{"suggest"}}},
			"find":       {Text: "find a thing", BrokenBy: [][]string{{"search"}}},
			"compare":    {Text: "compare two things", BrokenBy: [][]string{{"reviews", "images"}, {"search", "suggest"}}},
			"judge":      {Text: "judge a thing", BrokenBy: [][]string{{"reviews"}}},
			"nothing":    {Text: "broken by nothing", BrokenBy: [][]string{{}}},
			"elsewhere":  {Text: "broken by what nobody named", BrokenBy: [][]string{{"wishlist"}}},
		}}
	})
}

func TestAShedNamesTheJourneysThatItBreaks(t *testing.T) {
	shed := func(scope string, tier int) model.Directive {
		return model.Directive{ID: id(tier), Kind: model.Shed, Scope: scope, Tier: tier, NotBefore: day0}
	}
	off := func(scope, feature string) model.Directive {
		return model.Directive{ID: id(9), Kind: model.Off, Scope: scope, Feature: feature, NotBefore: day0}
	}
	for _, c := range []struct {
		name    string
		inForce []model.Directive
		d       model.Directive
		want    string
	}{
		{"a low tier", nil, shed("*", 1), "[type-ahead [suggest]]"},
		{"words that begin with off are not off", nil, shed("catalog", 1), "[]"},
		{"one service only", nil, shed("catalog", 2), "[judge [reviews]]"},
		{"a service stays at its last tier", nil, shed("edge", 4), "[type-ahead [suggest]]"},
		{"a high tier", nil, shed("*", 4), "[compare [images reviews] judge [reviews] type-ahead [suggest]]"},
		{"features off and a tier elsewhere count with it", []model.Directive{off("*", "images"), shed("edge", 1)}, shed("catalog", 2),
			"[compare [images reviews] judge [reviews] type-ahead [suggest] already]"},
		{"a tier in force for all", []model.Directive{shed("*", 2)}, shed("catalog", 3), "[compare [images reviews] judge [reviews] already type-ahead [suggest] already]"},
		{"an off for another service is no off here", []model.Directive{off("edge", "images")}, shed("catalog", 2), "[judge [reviews]]"},
		{"an off", nil, off("*", "search"), "[find [search]]"},
		{"an off for its service", nil, off("edge", "search"), "[find [search]]"},
		{"an off for another service", nil, off("catalog", "search"), "[]"},
		{"the last feature of a set", []model.Directive{shed("edge", 1)}, off("*", "search"), "[compare [search suggest] find [search] type-ahead [suggest] already]"},
		{"an off of what nobody named", nil, off("*", "wishlist"), "[]"},
		{"a freeze breaks nothing", []model.Directive{shed("edge", 1)}, model.Directive{Kind: model.Freeze, Scope: "*"}, "[type-ahead [suggest] already]"},
	} {
		b, w := browsing(t), calm()
		for _, d := range c.inForce {
			w.Issued = append(w.Issued, model.Issued{Directive: d})
		}
		got := []string{}
		for _, broken := range BrokenJourneys(b, w, &c.d) {
			text := fmt.Sprint(broken.Name, " ", broken.Features)
			if broken.Already {
				text += " already"
			}
			got = append(got, text)
			if broken.Text != b.Journeys[broken.Name].Text {
				t.Errorf("%s: %s is %q", c.name, broken.Name, broken.Text)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatIsOverOrEndedBreaksNothing(t *testing.T) {
	b, w := browsing(t), calm()
	w.Issued = []model.Issued{
		{Directive: model.Directive{ID: id(1), Kind: model.Shed, Scope: "edge", Tier: 1, NotBefore: day0}, EndedBy: id(2)},
		{Directive: model.Directive{ID: id(3), Kind: model.Off, Scope: "*", Feature: "search", NotBefore: day0.Add(time.Minute)}},
	}
	if got := BrokenJourneys(b, w, &model.Directive{Kind: model.Freeze}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestWithoutALadderNoServiceHasALastTier: hosts cap nothing then, and what is said
// of users must not be less.
func TestWithoutALadderNoServiceHasALastTier(t *testing.T) {
	full := browsing(t)
	b := changed(t, func(p *parts) {
		p.docs.Ladder = nil
		p.docs.Features.Features = full.Features
		p.docs.Journeys = &policy.JourneysDoc{Journeys: full.Journeys}
	})
	found := false
	for _, broken := range BrokenJourneys(b, calm(), &model.Directive{Kind: model.Shed, Scope: "edge", Tier: 3}) {
		found = found || broken.Name == "find"
	}
	if !found {
		t.Error("search goes off at tier 3 and nobody is told")
	}
}
