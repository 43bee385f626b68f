package measures

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Quarter is how old the last practice of anything may be where the policy says
// nothing stricter.
const Quarter = 92 * 24 * time.Hour

// Freshness is one thing that wants practice, and when it had it last.
type Freshness struct {
	Name      string    `json:"name"` // a right's name, tier/<service>/<n>, feature/<name>, backend/<name>, runbook/<id>
	Simulated time.Time `json:"simulated,omitzero"`
	Live      time.Time `json:"live,omitzero"`
	WithinS   int64     `json:"within_s"`  // how old it may be
	LiveOnly  bool      `json:"live_only"` // the policy wants it live (rehearsed_within)
	Stale     bool      `json:"stale"`
	Why       string    `json:"why"` // of a stale one, and of one that nothing asks for
}

// Practice lists everything of the policy and of the shelf that wants practice, and
// what else has a date, by name.
func Practice(in *Input) []Freshness {
	live, wants := Live(in.Incidents), in.wants()
	names := maps.Clone(wants)
	for _, dates := range []map[string]time.Time{in.Simulated, live} {
		for name := range dates {
			if _, ok := wants[name]; !ok && !everywhere(name) {
				names[name] = 0
			}
		}
	}
	out := make([]Freshness, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := in.freshness(name, names[name], dateOf(live, name))
		if _, ok := wants[name]; !ok {
			f.Stale, f.Why = false, "in neither the policy nor the folder of runbooks: it wants no practice"
		}
		out = append(out, f)
	}
	return out
}

// wants is what has to be practised, and how old that may be; 0: any practice within
// a quarter.
func (in *Input) wants() map[string]time.Duration {
	names, anyOff := map[string]time.Duration{}, false
	runbook := func(id string) {
		if id != "" {
			names["runbook/"+id] = 0
		}
	}
	for _, name := range in.Bundle.RightNames() {
		r, _, _ := in.Bundle.Right(name)
		names[name] = r.RehearsedWithin.Std()
		runbook(r.Runbook)
		switch {
		case r.Kind != model.Off:
		case r.Feature != model.AnyScope:
			names["feature/"+r.Feature] = 0
		default:
			anyOff = true
		}
	}
	for name := range in.Bundle.Signals {
		runbook(in.Bundle.Signals[name].Runbook)
	}
	for _, id := range in.Runbooks {
		runbook(id)
	}
	for name := range in.Bundle.Features {
		if anyOff && in.Bundle.Features[name].Class != policy.Critical { // a critical one is never switched off
			names["feature/"+name] = 0
		}
	}
	for name := range in.Bundle.Backends {
		names["backend/"+name] = 0
	}
	for name := range in.Bundle.Services {
		for n := 1; n <= in.Bundle.LastTier(name); n++ {
			names[fmt.Sprintf("tier/%s/%d", name, n)] = 0
		}
	}
	return names
}

// everywhere: a tier of every service is no thing of its own, it is a tier of each.
func everywhere(name string) bool { return name != "" && name == audit.OfEveryService(name) }

// dateOf is a date by name. A tier of every service is a tier of each.
func dateOf(dates map[string]time.Time, name string) time.Time {
	return later(dates[name], dates[audit.OfEveryService(name)])
}

func (in *Input) freshness(name string, within time.Duration, live time.Time) Freshness {
	f := Freshness{Name: name, Simulated: dateOf(in.Simulated, name), Live: live, LiveOnly: within > 0}
	if within <= 0 {
		within = Quarter
	}
	f.WithinS = int64(within / time.Second)
	counts, kind := later(f.Simulated, f.Live), "practised"
	if f.LiveOnly {
		counts, kind = f.Live, "used or rehearsed live"
	}
	switch {
	case counts.IsZero():
		f.Stale, f.Why = true, "never "+kind
	case !in.fresh(counts, within):
		f.Stale, f.Why = true, fmt.Sprintf("last %s %d days ago, at most %d", kind, int(in.Now.Sub(counts).Hours()/24), int(within.Hours()/24))
	}
	return f
}

// fresh reports whether a moment is within a time before now. One that lies ahead
// is no evidence.
func (in *Input) fresh(at time.Time, within time.Duration) bool {
	return !at.IsZero() && !at.After(in.Now) && in.Now.Sub(at) <= within
}

// Live is when each thing was last used live, over all incidents.
func Live(incidents []Incident) map[string]time.Time {
	out := map[string]time.Time{}
	for i := range incidents {
		for name, r := range incidents[i].State.Rehearsals {
			out[name] = later(out[name], r.Live)
		}
	}
	return out
}

func idOf(payload string) string {
	d, err := directive.Parse([]byte(payload))
	if err != nil {
		return ""
	}
	return d.ID
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02") }

func join(words []string) string { return strings.Join(words, ", ") }
