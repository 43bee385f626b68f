package hostrun

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// State is what a service needs to know of its host: the document of GET
// /v1/state and of the state file.
type State struct {
	V         int                     `json:"v"`
	Fleet     string                  `json:"fleet"`
	Host      string                  `json:"host"`
	At        time.Time               `json:"at"`             // when this was made
	AsOf      time.Time               `json:"as_of,omitzero"` // up to when all watched sources have been heard; absent: not since the start
	AgeS      int64                   `json:"age_s"`          // from as_of to at, in seconds; -1: as_of is absent
	Condition string                  `json:"state"`          // as in a report
	Posture   string                  `json:"posture"`
	Policy    model.PolicyRef         `json:"policy"`
	Services  map[string]ServiceState `json:"services"`
	Features  map[string]FeatureState `json:"features"`
	Bypasses  []BypassState           `json:"bypasses"`
	Sources   []SourceState           `json:"sources"`
}

// ServiceState is the tier in force for one service, and its dimmer if it has one.
type ServiceState struct {
	Tier   int          `json:"tier"`
	Dimmer *DimmerState `json:"dimmer,omitempty"`
}

// DimmerState bounds the share of requests, in percent, for which a service does
// optional work so that its latency stays at a target.
type DimmerState struct {
	TargetMS int `json:"target_ms"`
	Floor    int `json:"floor"`
	Ceiling  int `json:"ceiling"`
}

// What has changed a feature.
const (
	ByDirective = "directive" // an off that names it
	ByTier      = "tier"      // the tier of its service, by the policy
)

// FeatureState is one feature as this host sees it.
type FeatureState struct {
	On  bool   `json:"on"`
	How string `json:"how,omitempty"` // its simpler form, in the policy's words
	By  string `json:"by,omitempty"`  // directive or tier; absent: nothing touches it
}

// BypassState is one bypass that is open here until its end at the latest.
type BypassState struct {
	ID      string      `json:"id"`
	Control string      `json:"control"`
	Scope   string      `json:"scope"`
	Under   model.Money `json:"under"`
	Until   time.Time   `json:"until"`
}

// SourceState is how old a source is and why it cannot be read.
type SourceState struct {
	Name  string `json:"name"`
	AgeS  int64  `json:"age_s"` // -1: never
	Error string `json:"error,omitempty"`
}

// State is what is in force for the services of this host.
func (r *Runner) State() State {
	now := r.Now()
	report := r.engine.Report(now)
	s := State{
		V: 1, Fleet: report.Fleet, Host: report.Host, At: report.At,
		Condition: report.State, Posture: report.Posture, Policy: report.Policy,
		Services: make(map[string]ServiceState, len(report.Services)),
		Bypasses: []BypassState{}, Sources: make([]SourceState, 0, len(report.Sources)),
	}
	for _, source := range report.Sources {
		s.Sources = append(s.Sources, SourceState{Name: source.Name, AgeS: source.AgeS, Error: source.Error})
	}
	if worst, _ := oldest(report.Sources); worst.AgeS >= 0 {
		s.AgeS, s.AsOf = worst.AgeS, report.At.Add(-time.Duration(worst.AgeS)*time.Second)
	} else {
		s.AgeS = -1
	}
	for _, service := range report.Services {
		is := ServiceState{Tier: r.engine.Tier(service, now)}
		if d, ok := r.engine.Dimmer(service, now); ok {
			is.Dimmer = &DimmerState{TargetMS: d.TargetMS, Floor: d.Floor, Ceiling: d.Ceiling}
		}
		s.Services[service] = is
	}
	standing := r.engine.Standing(now)
	s.Features = r.features(standing, now)
	for _, one := range standing {
		d := &one.Directive
		if d.Kind == model.Bypass && slices.ContainsFunc(report.Services, d.Covers) && !shut(d.ID, report.Refused) {
			s.Bypasses = append(s.Bypasses, BypassState{ID: d.ID, Control: d.Control, Scope: d.Scope, Under: d.Caps.Under, Until: d.NotAfter})
		}
	}
	return s
}

// oldest is the watched source that was read in full the longest ago, or never.
// The environment is none: it cannot change under a process. Without any there is
// nothing to be behind of.
func oldest(sources []model.ReportSource) (worst model.ReportSource, watched bool) {
	for _, s := range sources {
		if s.Name != FromEnv && (!watched || worst.AgeS >= 0 && (s.AgeS < 0 || s.AgeS > worst.AgeS)) {
			worst, watched = s, true
		}
	}
	return worst, watched
}

// shut reports whether a bypass is in force and lets nothing through, because as
// many of its right as may be are open before it.
func shut(id string, refused []model.ReportRefused) bool {
	return slices.Contains(refused, model.ReportRefused{ID: id, Code: string(model.CodeOverLive)})
}

// features are those of the policy, and those that a directive names all the same.
func (r *Runner) features(standing []engine.Standing, now model.Instant) map[string]FeatureState {
	known := r.engine.Bundle().Features
	out := make(map[string]FeatureState, len(known))
	for name, f := range known {
		out[name] = r.feature(name, &f, now)
	}
	for _, one := range standing {
		d := &one.Directive
		if _, is := known[d.Feature]; !is && d.Kind == model.Off && slices.ContainsFunc(r.cfg.Engine.Services, d.Covers) {
			out[d.Feature] = FeatureState{By: ByDirective}
		}
	}
	return out
}

// feature is one feature at the tier that its service has on this host. A
// directive for that service, or for one that runs here, wins over what the tier
// says.
func (r *Runner) feature(name string, f *policy.Feature, now model.Instant) FeatureState {
	if r.engine.Off(name, f.Service, now) || r.offHere(name, now) {
		return FeatureState{By: ByDirective}
	}
	switch does := behaviour(f, r.engine.Tier(f.Service, now)); does {
	case "", policy.NoChange:
		return FeatureState{On: true}
	case policy.OffBehaviour:
		return FeatureState{By: ByTier}
	default:
		return FeatureState{On: true, How: does, By: ByTier}
	}
}

// behaviour is what the policy says about a feature at a tier; beyond the last
// tier that it speaks of, what it says of that.
func behaviour(f *policy.Feature, tier int) string {
	last := 0
	for t := range f.Tiers {
		last = max(last, t)
	}
	return f.Tiers[min(tier, last)]
}
