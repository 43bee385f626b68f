package decisions

import (
	"maps"
	"slices"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Broken is something that a user comes to do and cannot.
type Broken struct {
	Name     string   `json:"journey"`
	Text     string   `json:"text"`
	Features []string `json:"features"` // off together, which is what breaks it
	Already  bool     `json:"already"`  // also without the directive that is judged
}

// BrokenJourneys names what users could no longer do if a shed or an off were in
// force besides all that is: first what it would break, then what is broken
// already. A feature is off where its tier says exactly "off", or a live off says
// so. The tier is that of the feature's own service: during a ramp the higher one,
// which some of the users meet.
func BrokenJourneys(b *policy.Bundle, w *model.World, d *model.Directive) []Broken {
	before := featuresOff(b, w, nil)
	after := featuresOff(b, w, d)
	var breaks, already []Broken
	for _, name := range sortedNames(b.Journeys) {
		journey := b.Journeys[name]
		set := firstSet(journey.BrokenBy, after)
		if set == nil {
			continue
		}
		broken := Broken{Name: name, Text: journey.Text, Features: slices.Sorted(slices.Values(set))}
		if broken.Already = firstSet(journey.BrokenBy, before) != nil; broken.Already {
			already = append(already, broken)
		} else {
			breaks = append(breaks, broken)
		}
	}
	return append(breaks, already...)
}

// firstSet is the first set of which every feature is off. An empty set breaks
// nothing.
func firstSet(sets [][]string, off map[string]bool) []string {
	for _, set := range sets {
		if len(set) > 0 && !slices.ContainsFunc(set, func(feature string) bool { return !off[feature] }) {
			return set
		}
	}
	return nil
}

// featuresOff is the set of features that are off by what is in force and, unless
// it is nil, by one directive more.
func featuresOff(b *policy.Bundle, w *model.World, d *model.Directive) map[string]bool {
	off := make(map[string]bool)
	tiers := make(map[string]int)
	for name, feature := range b.Features {
		tier, known := tiers[feature.Service]
		if !known {
			tier = tierWith(b, w, d, feature.Service)
			tiers[feature.Service] = tier
		}
		if feature.Tiers[tier] == policy.OffBehaviour || d != nil && switchesOff(d, name, feature.Service) {
			off[name] = true
		}
	}
	for i := range w.Issued {
		one := &w.Issued[i].Directive
		if feature, ok := b.Features[one.Feature]; ok && switchesOff(one, one.Feature, feature.Service) && w.Issued[i].LiveAt(w.Now) {
			off[one.Feature] = true
		}
	}
	return off
}

// tierWith is the tier of a service, with a shed that is not in force yet. Without
// a ladder hosts know no last tier, and neither do we.
func tierWith(b *policy.Bundle, w *model.World, d *model.Directive, service string) int {
	tier := TierOf(w, service)
	if d != nil && d.Kind == model.Shed && d.Covers(service) {
		tier = max(tier, d.Tier)
	}
	if len(b.Tiers) == 0 {
		return tier
	}
	return min(tier, b.LastTier(service))
}

func switchesOff(d *model.Directive, feature, service string) bool {
	return d.Kind == model.Off && d.Feature == feature && d.Covers(service)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
