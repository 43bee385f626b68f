package hostrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/ofrep"
)

// Beginnings of the keys that are no features.
const (
	tierKey   = "tier."
	dimmerKey = "dimmer."
	bypassKey = "bypass."
)

// view is what a host answers at one moment.
type view struct {
	state State
	set   *ofrep.Set
}

// desk makes views, and gives the same one out for as long as nothing can have
// changed, but never for longer than ages are counted in.
type desk struct {
	run    *Runner
	maxAge time.Duration

	mu       sync.Mutex
	last     *view
	revision uint64
	second   int64
	boot     string
}

// now is the view of this moment. What has ended by the clock is out of it: the
// revision is read after the engine was asked about this very moment.
func (d *desk) now() (*view, error) {
	at := d.run.Now()
	e := d.run.engine
	e.Tier("", at)
	revision, second := e.Revision(), int64(at.Boot/time.Second)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil && d.revision == revision && d.second == second && d.boot == at.BootID {
		return d.last, nil
	}
	v := &view{state: d.run.State()}
	var err error
	if v.set, err = v.state.flags(d.run.controls(), d.maxAge); err != nil {
		return nil, err
	}
	d.last, d.revision, d.second, d.boot = v, revision, second, at.BootID
	return v, nil
}

func (d *desk) flags() (*ofrep.Set, error) {
	v, err := d.now()
	if err != nil {
		return nil, err
	}
	return v.set, nil
}

// controls lists those that the policy names.
func (r *Runner) controls() []string {
	var out []string
	for name := range r.engine.Bundle().Controls {
		out = append(out, name)
	}
	return out
}

// BypassValue is the value of a flag bypass.<control>. Whoever keeps it past its
// end finds the end inside.
type BypassValue struct {
	Open      bool         `json:"open"`
	Under     *model.Money `json:"under,omitempty"` // exclusive, for one item
	ExpiresAt *time.Time   `json:"expiresAt,omitempty"`
}

// DimmerValue is the value of a flag dimmer.<service>. Without a dimmer a service
// does all of its optional work.
type DimmerValue struct {
	Active   bool `json:"active"`
	TargetMS int  `json:"targetMs,omitempty"`
	Floor    int  `json:"floor,omitempty"`
	Ceiling  int  `json:"ceiling,omitempty"`
}

// dimming is the value for one service, and its variant.
func (s *ServiceState) dimming() (value DimmerValue, variant string) {
	if d := s.Dimmer; d != nil {
		return DimmerValue{Active: true, TargetMS: d.TargetMS, Floor: d.Floor, Ceiling: d.Ceiling}, "dimmed"
	}
	return DimmerValue{}, "full"
}

// reserved reports whether a feature has a name that cannot be told from what is no
// feature; /v1/state has it.
func reserved(feature string) bool {
	return strings.HasPrefix(feature, tierKey) || strings.HasPrefix(feature, dimmerKey) || strings.HasPrefix(feature, bypassKey)
}

// stale reports whether what is known is older than it should be.
func (s *State) stale(maxAge time.Duration) bool {
	return s.AgeS < 0 || s.AgeS > int64(maxAge/time.Second)
}

// flags are the state in the words of OpenFeature.
func (s *State) flags(controls []string, maxAge time.Duration) (*ofrep.Set, error) {
	var out []ofrep.Flag
	add := func(key string, value any, variant string, changed bool) {
		out = append(out, ofrep.Flag{Key: key, Value: value, Variant: variant, Reason: s.reason(changed, maxAge)})
	}
	for service, is := range s.Services {
		add(tierKey+service, is.Tier, fmt.Sprintf("tier-%d", is.Tier), is.Tier > 0)
		dimming, variant := is.dimming()
		add(dimmerKey+service, dimming, variant, dimming.Active)
	}
	for name, is := range s.Features {
		if reserved(name) {
			continue
		}
		variant := "on"
		switch {
		case !is.On:
			variant = "off"
		case is.How != "":
			variant = "simpler"
		}
		add(name, is.On, variant, is.By != "")
		if is.How != "" {
			out[len(out)-1].Metadata = map[string]any{"how": is.How}
		}
	}
	for control, value := range s.openings(controls) {
		variant := "closed"
		if value.Open {
			variant = "open"
		}
		add(bypassKey+control, value, variant, value.Open)
	}
	return ofrep.NewSet(out, s.metadata(maxAge))
}

func (s *State) reason(changed bool, maxAge time.Duration) ofrep.Reason {
	switch {
	case s.stale(maxAge):
		return ofrep.Stale
	case changed:
		return ofrep.Matched
	case s.Condition == string(engine.StateSafeDefaults), s.Condition == string(engine.StateForeign):
		return ofrep.Default
	}
	return ofrep.Static
}

// openings say of each control whether a bypass of it is open: the one that lets
// the highest amounts pass, of equal ones that which ends last.
func (s *State) openings(controls []string) map[string]BypassValue {
	out := make(map[string]BypassValue, len(controls))
	for _, name := range controls {
		out[name] = BypassValue{}
	}
	open := slices.SortedFunc(slices.Values(s.Bypasses), func(a, b BypassState) int {
		return cmp.Or(cmp.Compare(a.Under.Minor, b.Under.Minor), a.Until.Compare(b.Until))
	})
	for _, b := range open {
		out[b.Control] = BypassValue{Open: true, Under: &b.Under, ExpiresAt: &b.Until}
	}
	return out
}

// metadata is what is true of all flags. OpenFeature allows bool, text and
// number.
func (s *State) metadata(maxAge time.Duration) map[string]any {
	out := map[string]any{
		"fleet": s.Fleet, "host": s.Host, "state": s.Condition, "posture": s.Posture, "policyVersion": s.Policy.Version,
		"stale": s.stale(maxAge), "ageSeconds": s.AgeS,
	}
	if !s.AsOf.IsZero() {
		out["asOf"] = s.AsOf.Format(time.RFC3339)
	}
	return out
}
