package score

import (
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/model"
)

// The thresholds of the axes. They are the same for every scenario and for every
// mode, so that a baseline is measured with the same rule.
const (
	// StableErrorsPPM is the share of errors below which a service counts as
	// stable: 1 %, twice the 0.5 % that remain while every host skips a dead check.
	StableErrorsPPM = 10_000
	// StableForMS is how long all services stay below it before it is believed: two
	// minutes, as the ladder's conditions for entering.
	StableForMS = 2 * 60_000
	// FlapWithinMS is the time within which a tier that rises again after it fell is
	// a flap. A second fault an hour later is none.
	FlapWithinMS = 30 * 60_000
)

// Axes are what was measured, each by itself. Times are milliseconds of virtual
// time; a nil is UNKNOWN: it did not happen, or the record does not tell.
type Axes struct {
	// The five times. Each begins where the one before ended, so that a slow alarm
	// does not count against who decided; stabilise begins at the injection, recover
	// when the last fault was cleared that stood in the way.
	DetectMS    *int64 `json:"detect_ms"`    // injection -> acknowledged
	DecideMS    *int64 `json:"decide_ms"`    // acknowledged -> first order signed (without ic: given)
	EffectMS    *int64 `json:"effect_ms"`    // that order -> in force on 95 % of the hosts
	StabiliseMS *int64 `json:"stabilise_ms"` // injection -> every service below 1 % errors, for 2 min
	RecoverMS   *int64 `json:"recover_ms"`   // a fault cleared -> normal for good: tier 0, no bypass, below 1 % errors

	Blocked   int `json:"blocked"`    // attempts that were refused
	WrongRole int `json:"wrong_role"` // of these, for want of the role

	OverTierMS  int64 `json:"over_tier_ms"`  // tiers above the oracle's x time, over all services
	UnderTierMS int64 `json:"under_tier_ms"` // tiers below it
	Flaps       int   `json:"flaps"`         // a service's tier rose again within 30 min after it fell
	Jumps       int   `json:"jumps"`         // recoveries by more than one tier at once

	Currency      string `json:"currency,omitempty"`
	UnscoredCents *int64 `json:"unscored_cents"` // worth of orders that no check has seen
	LostCents     *int64 `json:"lost_cents"`     // worth of orders that were wanted and not taken
	CapCents      *int64 `json:"cap_cents"`      // the most that the granted bypasses allow; nil: none was granted

	ImpactMS *int64 `json:"impact_ms"` // share of customers' requests without primary success x time

	Steps      int  `json:"steps"`       // of the runbook or the script, done
	Skipped    int  `json:"skipped"`     // and skipped
	BypassLeft *int `json:"bypass_left"` // hosts with a bypass open at the end

	Evidence *Evidence `json:"evidence"` // nil: nobody looked, or there is no log
}

// Score is a record's axes with its verdict, beside those of other runs.
type Score struct {
	V        int      `json:"v"`
	World    string   `json:"world"` // REHEARSAL, in every export
	Scenario string   `json:"scenario"`
	Title    string   `json:"title,omitempty"`
	Seed     uint64   `json:"seed"`
	Mode     Mode     `json:"mode"`
	Runbook  string   `json:"runbook,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Script   string   `json:"script,omitempty"`
	Played   *Played  `json:"played,omitempty"` // nil: a baseline, or a run from before it was written down
	LastsMS  int64    `json:"lasts_ms"`
	Verdict  Verdict  `json:"verdict"`
	Why      []string `json:"why"` // of a verdict that is not passed
	Axes     Axes     `json:"axes"`

	Practised []Practised `json:"practised"` // what was used, with its measured effect

	Against []Other `json:"against"` // the baseline, your last run
}

// Other is another run of the same scenario, for comparison.
type Other struct {
	Name    string  `json:"name"` // baseline, last
	Mode    Mode    `json:"mode"`
	Seed    uint64  `json:"seed"`
	Played  *Played `json:"played,omitempty"`
	Verdict Verdict `json:"verdict"`
	Axes    Axes    `json:"axes"`
}

// Version is that of Score's JSON.
const Version = 1

// Options are the other runs to compare with. Either may be nil.
type Options struct {
	Baseline *Record
	Last     *Score
}

// Of scores a record. It is pure: the same record gives the same score.
func Of(r *Record, o Options) Score {
	s := Score{V: Version, World: string(model.Rehearsing), Scenario: r.Scenario, Title: r.Title, Seed: r.Seed, Mode: r.Mode,
		Runbook: r.Runbook, Digest: r.Digest, Script: r.Script, Played: r.Played, LastsMS: r.LastsMS, Axes: axesOf(r), Practised: practisedIn(r), Against: []Other{}}
	s.Verdict, s.Why = judge(r, &s.Axes)
	if o.Baseline != nil {
		axes := axesOf(o.Baseline)
		verdict, _ := judge(o.Baseline, &axes)
		s.Against = append(s.Against, Other{Name: "baseline", Mode: o.Baseline.Mode, Seed: o.Baseline.Seed, Verdict: verdict, Axes: axes})
	}
	if o.Last != nil {
		s.Against = append(s.Against, Other{Name: "last", Mode: o.Last.Mode, Seed: o.Last.Seed, Played: o.Last.Played, Verdict: o.Last.Verdict, Axes: o.Last.Axes})
	}
	return s
}

// Columns are the headings of the other runs, in the order of Against. One that was
// played at another speed says so: its times are another person's seconds.
func (s *Score) Columns() []string {
	out := make([]string, len(s.Against))
	for i := range s.Against {
		o := &s.Against[i]
		out[i] = o.Name
		if speed := o.Played.speed(); speed != "" && speed != s.Played.speed() {
			out[i] += ", " + speed
		}
	}
	return out
}

// judge is the verdict with its reasons. What the player found is kept; a run
// that left a bypass open, went over its cap or lacks evidence has failed
// whatever else it achieved. One in which nobody did what there was to do has
// not passed, however well the fleet came through it.
func judge(r *Record, a *Axes) (Verdict, []string) {
	why := slices.Clone(r.Why)
	if why == nil {
		why = []string{}
	}
	switch {
	case !slices.ContainsFunc(r.Events, func(e Event) bool { return e.Kind == Injected }):
		return NotInjected, append(why, "no fault was injected: there was nothing to rehearse")
	case r.Verdict == NotInjected:
		return NotInjected, why
	}
	idle := r.Played.Idle()
	if idle != "" {
		why = append(why, idle)
	}
	switch {
	case r.Aborted != "":
		return Aborted, append(why, "aborted: "+r.Aborted)
	case r.Verdict == Aborted:
		return Aborted, why
	}
	failed := a.failures(r.Mode)
	if r.Runbook != "" && !r.Through {
		failed = append(failed, "the runbook was not followed to its end"+lastRefusal(r.Events))
	}
	switch {
	case len(failed) > 0:
		return Failed, append(why, failed...)
	case len(r.Samples) == 0:
		return Inconclusive, append(why, "there is no sample: what became of the fleet is UNKNOWN")
	case r.Verdict == "":
		return Inconclusive, append(why, "the player gave no verdict")
	case idle != "" && r.Verdict == Passed:
		return Inconclusive, why
	}
	return r.Verdict, why
}

// lastRefusal is who was told last that something is not possible, and why.
func lastRefusal(events []Event) string {
	for i := range slices.Backward(events) {
		if e := &events[i]; e.Kind == Denied && e.Detail != "" {
			return fmt.Sprintf(": %s %s: %s", e.Who, e.What, e.Detail)
		}
	}
	return ""
}

// failures are those that no other axis makes up for.
func (a *Axes) failures(mode Mode) []string {
	var out []string
	if a.BypassLeft != nil && *a.BypassLeft > 0 {
		out = append(out, fmt.Sprintf("a bypass is alive at the end, on %d hosts", *a.BypassLeft))
	}
	if a.CapCents != nil && a.UnscoredCents != nil && *a.UnscoredCents > *a.CapCents {
		out = append(out, fmt.Sprintf("%s went unscored, over the cap of %s", money(*a.UnscoredCents, a.Currency), money(*a.CapCents, a.Currency)))
	}
	if mode != Baseline && a.Evidence != nil && !a.Evidence.Complete() {
		out = append(out, "the evidence is not complete: "+a.Evidence.first())
	}
	return out
}

func (e *Evidence) first() string {
	if len(e.Missing) == 0 {
		return "the chain does not verify"
	}
	return e.Missing[0]
}
