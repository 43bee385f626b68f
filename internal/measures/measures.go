package measures

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// The targets of the four measures.
const (
	// targetTested is the share of critical dependencies whose fallback was tested,
	// in percent; it has to be more.
	targetTested = 90
	// targetDegrade is the median time from the decision to degrade to hosts that
	// say so; it has to be less.
	targetDegrade = time.Minute
	// deepTier is where a service is kept alive by giving up what users notice.
	deepTier = 2
	// leastTraffic is the share of normal traffic in percent from which on a
	// fallback is tested by every day.
	leastTraffic = 1
)

// Incident is one incident as the log has it.
type Incident struct {
	ID      string
	State   audit.State
	Entries []audit.Entry // of all sessions, in order
	Err     error         // what could not be read
}

// Span is a time from one moment to another, both UTC.
type Span struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Input is everything that is known.
type Input struct {
	Bundle    *policy.Bundle
	Runbooks  []string // ids of those on the shelf
	Incidents []Incident
	Simulated map[string]time.Time // last practice in simulation, by name
	Outages   []Span               // full outages, as a person has written them down; nil: nobody has
	Since     time.Time
	Now       time.Time
}

// Standing says whether a target was met.
type Standing string

// The three standings.
const (
	Met     Standing = "met"
	Missed  Standing = "missed"
	Unknown Standing = "UNKNOWN"
)

// Measure is one figure with its target and its source. Number is nil where no
// source tells it.
type Measure struct {
	Name     string   `json:"name"`
	Number   *int64   `json:"number"`
	Unit     string   `json:"unit"`
	Text     string   `json:"text"`
	Target   string   `json:"target"`
	Standing Standing `json:"standing"`
	Source   string   `json:"source"`
	Detail   []string `json:"detail"` // a sentence each: what counts, and what is missing
}

// All computes the four measures.
func All(in *Input) []Measure {
	return []Measure{tested(in), deep(in), sharedFate(in), degrade(in)}
}

// within are the incidents of the time that is looked at.
func (in *Input) within() []*Incident {
	var out []*Incident
	for i := range in.Incidents {
		if opened := in.Incidents[i].State.Incident.OpenedAt; !opened.Before(in.Since) && !opened.After(in.Now) {
			out = append(out, &in.Incidents[i])
		}
	}
	return out
}

// unreadable adds what could not be read to a measure: it may be more than it says.
func (m *Measure) unreadable(all []*Incident) {
	for _, i := range all {
		if i.Err != nil {
			m.Detail = append(m.Detail, fmt.Sprintf("%s: not all of its log can be read, so this may be incomplete", i.ID))
		}
	}
}

// arrived reports whether hosts or a carrier have said that a directive is there.
func arrived(i *model.Issued) bool {
	return slices.Contains([]string{audit.StateCarried, audit.StatePartial, audit.StateEffective}, i.Outcome)
}

// tested is the share of the dependencies of critical features that have a
// fallback which was tested within a quarter.
func tested(in *Input) Measure {
	m := Measure{Name: "critical dependencies with a tested fallback", Unit: "percent", Target: "more than 90 %", Standing: Unknown,
		Source: "policy (features, controls, game days), rehearsals", Detail: []string{}}
	all, good := 0, 0
	live := Live(in.Incidents)
	for _, name := range slices.Sorted(maps.Keys(in.Bundle.Features)) {
		f := in.Bundle.Features[name]
		if f.Class != policy.Critical {
			continue
		}
		for _, endpoint := range slices.Sorted(maps.Keys(f.Endpoints)) {
			for _, on := range slices.Sorted(maps.Keys(f.Endpoints[endpoint].Dependencies)) {
				d := f.Endpoints[endpoint].Dependencies[on]
				all++
				by, why := in.testedBy(on, &d, f.Service, live)
				if by != "" {
					good++
					why = by
				}
				m.Detail = append(m.Detail, fmt.Sprintf("%s/%s on %s: %s", name, endpoint, on, why))
			}
		}
	}
	if all == 0 {
		m.Text = string(Unknown)
		m.Detail = append(m.Detail, "the policy lists no dependency of a critical feature")
		return m
	}
	share := int64(good * 100 / all)
	m.Number, m.Text = &share, fmt.Sprintf("%d %% (%d of %d)", share, good, all)
	m.Standing = standing(good*100 > targetTested*all)
	return m
}

func standing(met bool) Standing {
	if met {
		return Met
	}
	return Missed
}

// testedBy says what has tested the fallback of a dependency, or why nothing has.
// A required dependency has none of its own: what helps there is a right to skip
// the control of its name.
func (in *Input) testedBy(on string, d *policy.Dependency, service string, live map[string]time.Time) (by, why string) {
	if d.Need == policy.Required {
		rights := in.bypassesOf(on)
		if len(rights) == 0 {
			return "", "required, no fallback"
		}
		for _, right := range rights {
			if at := later(in.Simulated[right], live[right]); in.fresh(at, Quarter) {
				return fmt.Sprintf("required; right %s used or rehearsed %s", right, day(at)), ""
			}
		}
		return "", fmt.Sprintf("required; right %s not used or rehearsed within a quarter", rights[0])
	}
	if d.Need == policy.Enhancing && d.Fallback == nil {
		return "", "no fallback is documented"
	}
	if d.Fallback != nil && d.Fallback.Traffic >= leastTraffic {
		return fmt.Sprintf("the fallback serves %g %% of a normal day's traffic", d.Fallback.Traffic), ""
	}
	if game := in.Bundle.Services[service].GameDay; in.fresh(game, Quarter) {
		return "game day of " + service + " " + day(game), ""
	}
	return "", "its fallback serves no traffic, and " + service + " had no game day within a quarter"
}

func (in *Input) bypassesOf(control string) []string {
	var out []string
	for _, name := range in.Bundle.RightsOf(model.Bypass) {
		if r, _, ok := in.Bundle.Right(name); ok && r.Bypass != nil && r.Bypass.Control == control {
			out = append(out, name)
		}
	}
	return out
}

// deep is the time at tier 2 and above, beside the time of full outages. The log
// knows the first only.
func deep(in *Input) Measure {
	m := Measure{Name: "minutes at T2+ against minutes of full outage", Unit: "minutes", Target: "degraded, not down", Standing: Unknown,
		Source: "audit log (sheds and their ends)", Detail: []string{}}
	var spans []Span
	for i := range in.Incidents { // one from before may last into the time that is looked at
		issued := in.Incidents[i].State.Issued
		for n := range issued {
			if s, ok := in.deepSpan(issued, &issued[n]); ok {
				spans = append(spans, s)
			}
			if d := &issued[n].Directive; d.Kind == model.Shed && d.Tier >= deepTier && !arrived(&issued[n]) && !d.IssuedAt.Before(in.Since) {
				m.Detail = append(m.Detail, fmt.Sprintf("%s: whether shed %d of %s arrived is %s, and it is not counted", in.Incidents[i].ID, d.Tier, d.Scope, Unknown))
			}
		}
	}
	minutes := int64(total(spans) / time.Minute)
	m.Number = &minutes
	if in.Outages == nil {
		m.Text = fmt.Sprintf("%d min at T2+, full outage %s", minutes, Unknown)
		m.Detail = append(m.Detail, "no log records an outage; write them down with --outage FROM/DURATION")
	} else {
		var clipped []Span
		for _, o := range in.Outages {
			if s, ok := in.clip(o); ok {
				clipped = append(clipped, s)
			}
		}
		down := int64(total(clipped) / time.Minute)
		m.Text, m.Source = fmt.Sprintf("%d min at T2+, %d min of full outage", minutes, down), m.Source+", outages given by hand"
		m.Standing = standing(down <= minutes)
	}
	m.unreadable(in.within())
	return m
}

// deepSpan is the time in which a directive held its scope at tier 2 or above.
func (in *Input) deepSpan(all []model.Issued, i *model.Issued) (Span, bool) {
	d, tier := &i.Directive, 0
	switch {
	case d.Kind == model.Shed:
		tier = d.Tier
	case d.IsRecovery() && d.Percent < 100:
		tier = d.From // on the hosts that are not there yet
	case d.IsRecovery():
		tier = d.To
	}
	if tier < deepTier || !arrived(i) {
		return Span{}, false
	}
	s := Span{From: later(d.IssuedAt, d.NotBefore), Until: in.Now}
	if at := slices.IndexFunc(all, func(e model.Issued) bool { return e.Directive.ID == i.EndedBy }); i.EndedBy != "" && at >= 0 {
		s.Until = all[at].Directive.IssuedAt
	}
	return in.clip(s)
}

func (in *Input) clip(s Span) (Span, bool) {
	s.From = later(s.From, in.Since)
	if s.Until.After(in.Now) {
		s.Until = in.Now
	}
	return s, s.Until.After(s.From)
}

// total is the time that any of the spans covers.
func total(spans []Span) time.Duration {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	var sum time.Duration
	var until time.Time
	for _, s := range spans {
		if from := later(s.From, until); s.Until.After(from) {
			sum += s.Until.Sub(from)
			until = s.Until
		}
	}
	return sum
}

// sharedFate counts incidents in which a way to the fleet failed together with
// what it was to help.
func sharedFate(in *Input) Measure {
	m := Measure{Name: "incidents in which a way to the fleet failed too", Unit: "incidents", Target: "0", Standing: Unknown,
		Source: "audit log (carriers and pushes that failed)", Detail: []string{}}
	within, count := in.within(), int64(0)
	for _, i := range within {
		failed := failedRoads(i.Entries)
		if len(failed) > 0 {
			count++
			m.Detail = append(m.Detail, fmt.Sprintf("%s: %s", i.ID, join(failed)))
		}
	}
	m.Detail = append(m.Detail, "fallbacks inside of services leave no entry in the log: whether one failed with its primary is "+string(Unknown))
	m.unreadable(within)
	if len(within) == 0 {
		m.Text = string(Unknown) + ": no incident"
		return m
	}
	m.Number, m.Text = &count, fmt.Sprintf("%d of %d", count, len(within))
	m.Standing = standing(count == 0)
	return m
}

func failedRoads(entries []audit.Entry) []string {
	failed, pushes := map[string]bool{}, map[string]string{}
	for _, e := range entries {
		switch b := e.Body.(type) {
		case audit.Outcome:
			if b.Carrier != "" && b.Carrier != audit.HostReports && (b.State == audit.StateFailed || b.State == audit.StateUnconfirmed) {
				failed["carrier "+b.Carrier] = true
			}
		case audit.PushIntent:
			pushes[b.Operation] = b.Backend
		case audit.PushOutcome:
			if b.State == audit.StateFailed {
				failed["backend "+cmp.Or(pushes[b.Operation], b.Operation)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(failed))
}

// degrade is the median time from a decision on disk to hosts that say so.
func degrade(in *Input) Measure {
	m := Measure{Name: "median time to degrade", Unit: "milliseconds", Target: "less than 1 min", Standing: Unknown,
		Source: "audit log (intent to effective, of sheds and features off)", Detail: []string{}}
	within := in.within()
	var took []time.Duration
	unknown := 0
	for _, i := range within {
		begun, effective := moments(i.Entries)
		for n := range i.State.Issued {
			d := &i.State.Issued[n].Directive
			if d.Kind != model.Shed && d.Kind != model.Off {
				continue
			}
			from, ok1 := begun[d.ID]
			until, ok2 := effective[d.ID]
			if !ok1 || !ok2 || until.Before(from) {
				unknown++
				continue
			}
			took = append(took, until.Sub(from))
		}
	}
	if unknown > 0 {
		m.Detail = append(m.Detail, fmt.Sprintf("orders to degrade of which no host said that they are in force: %d; %s, and not in the median", unknown, Unknown))
	}
	m.unreadable(within)
	if len(took) == 0 {
		m.Text = string(Unknown) + ": no order to degrade that hosts have confirmed"
		return m
	}
	slices.Sort(took)
	median := took[(len(took)-1)/2]
	ms := median.Milliseconds()
	m.Number, m.Text = &ms, fmt.Sprintf("%s (of %d)", median.Round(100*time.Millisecond), len(took))
	m.Standing = standing(median < targetDegrade)
	return m
}

// moments are when each directive was intended and when it was effective first.
func moments(entries []audit.Entry) (begun, effective map[string]time.Time) {
	begun, effective = map[string]time.Time{}, map[string]time.Time{}
	first := func(m map[string]time.Time, id string, at time.Time) {
		if have, ok := m[id]; !ok || at.Before(have) {
			m[id] = at
		}
	}
	for _, e := range entries {
		switch b := e.Body.(type) {
		case audit.Intent:
			if id := idOf(b.Payload); id != "" {
				first(begun, id, e.At)
			}
		case audit.Outcome:
			if b.State == audit.StateEffective {
				first(effective, b.ID, e.At)
			}
		case audit.Reconciled:
			if b.State == audit.StateEffective {
				first(effective, b.ID, e.At)
			}
		}
	}
	return begun, effective
}
