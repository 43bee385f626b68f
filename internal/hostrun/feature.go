package hostrun

import (
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// Feature is one feature as this host sees it, by the policy and by what is in
// force. One that the policy does not name is on unless a directive says
// otherwise for a service of this host.
func (r *Runner) Feature(name string) FeatureState {
	now := r.Now()
	if f, known := r.engine.Bundle().Features[name]; known {
		return r.feature(name, &f, now)
	}
	if r.offHere(name, now) {
		return FeatureState{By: ByDirective}
	}
	return FeatureState{On: true}
}

// offHere reports whether a directive has switched a feature off for a service of
// this host.
func (r *Runner) offHere(name string, now model.Instant) bool {
	return slices.ContainsFunc(r.cfg.Engine.Services, func(service string) bool { return r.engine.Off(name, service, now) })
}
