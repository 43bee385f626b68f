package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// AlarmShare is the share of hosts in skew from which it is an alarm. Below it
// a fleet always has a host that is being replaced.
const AlarmShare = 0.05

// Settle is how long a host may differ before it counts for the alarm. A put
// reaches a watching host in milliseconds, a polled file in seconds.
const Settle = 15 * time.Second

// HostState says how one host stands to what was issued.
type HostState string

// The states of a host, each counted apart: only HostEffective and HostLacking
// are knowledge.
const (
	HostEffective   HostState = "effective"   // as issued
	HostLacking     HostState = "lacking"     // it lacks or has too much
	HostUnreachable HostState = "unreachable" // nobody answered
	HostStale       HostState = "stale"       // its last report is too old to count
	HostUnknown     HostState = "unknown"     // it answered, and not with its report
)

// HostSkew is one host against what was issued.
type HostSkew struct {
	Host  string    `json:"host"`
	State HostState `json:"state"`
	Lacks []string  `json:"lacks,omitempty"` // live and for one of its services, not on it
	Extra []string  `json:"extra,omitempty"` // on it, ended or never issued
	// Since is when it began to differ at the earliest known time; zero if an id
	// is unknown to us.
	Since time.Time `json:"since,omitzero"`
	// SeenAt is when it was last heard; zero: never. Via says by which way.
	SeenAt time.Time `json:"seen_at,omitzero"`
	Via    string    `json:"via,omitempty"`
	// Source is the source of directives that the host has not read for longest,
	// SourceAgeS its age in seconds, -1 if it never was read.
	Source     string `json:"source,omitempty"`
	SourceAgeS int64  `json:"source_age_s"`
	Detail     string `json:"detail,omitempty"`
}

// SkewSummary is the version skew of a fleet at one moment. Hosts are in the
// order they were given; the counts add up to Total.
type SkewSummary struct {
	Hosts       []HostSkew `json:"hosts"`
	Total       int        `json:"total"`
	Effective   int        `json:"effective"`
	Lacking     int        `json:"lacking"`
	Unreachable int        `json:"unreachable"`
	Stale       int        `json:"stale"`
	Unknown     int        `json:"unknown"`
	Share       float64    `json:"share"` // Lacking of Total, 0 to 1
	// Alarm: AlarmShare of the fleet or more has differed for longer than Settle.
	Alarm bool `json:"alarm"`
}

// Skew compares what was issued with what the hosts report. It fills in Lacks
// and Extra of each host in place. maxAge is how old a report may be, 0 for any
// age.
//
// A host has to hold every live directive whose scope covers one of its
// services. It may hold those of other services: that is no difference.
func Skew(issued []model.Issued, hosts []model.HostView, maxAge model.Duration, now time.Time) SkewSummary {
	live := liveSet(issued, now)
	sum := SkewSummary{Total: len(hosts), Hosts: make([]HostSkew, len(hosts))}
	settled := 0 // hosts that differ for longer than Settle
	for i := range hosts {
		s := live.compare(&hosts[i], maxAge, now)
		hosts[i].Lacks, hosts[i].Extra = s.Lacks, s.Extra
		sum.Hosts[i] = s
		switch s.State {
		case HostEffective:
			sum.Effective++
		case HostLacking:
			sum.Lacking++
			if now.Sub(s.Since) > Settle {
				settled++
			}
		case HostUnreachable:
			sum.Unreachable++
		case HostStale:
			sum.Stale++
		case HostUnknown:
			sum.Unknown++
		}
	}
	if sum.Total > 0 {
		sum.Share = float64(sum.Lacking) / float64(sum.Total)
		sum.Alarm = float64(settled)/float64(sum.Total) >= AlarmShare
	}
	return sum
}

// wanted is what hosts should hold at one moment.
type wanted struct {
	live    []*model.Directive   // oldest first, as issued
	isLive  map[string]bool      // by id
	endedAt map[string]time.Time // when what is no longer live was ended, or ran out
	held    map[string]bool      // of the host being compared; one map for all of them
}

// liveSet leaves out endings that are no recoveries: they have no line in a
// report, and have worked when what they end is gone.
func liveSet(issued []model.Issued, now time.Time) wanted {
	w := wanted{isLive: make(map[string]bool), endedAt: make(map[string]time.Time), held: make(map[string]bool)}
	for i := range issued {
		d := &issued[i].Directive
		switch {
		case d.Kind == model.End && !d.IsRecovery():
		case issued[i].LiveAt(now):
			w.live = append(w.live, d)
			w.isLive[d.ID] = true
		case issued[i].EndedBy == "" && !d.NotAfter.IsZero():
			w.endedAt[d.ID] = d.NotAfter
		}
	}
	for i := range issued {
		e := &issued[i].Directive
		for _, id := range e.IDs {
			if !w.isLive[id] && w.endedAt[id].IsZero() {
				w.endedAt[id] = begin(e)
			}
		}
	}
	return w
}

// begin is when a directive could be in force at the earliest.
func begin(d *model.Directive) time.Time {
	if d.NotBefore.After(d.IssuedAt) {
		return d.NotBefore
	}
	return d.IssuedAt
}

func (w *wanted) compare(h *model.HostView, maxAge model.Duration, now time.Time) HostSkew {
	s := HostSkew{Host: h.Host, SeenAt: h.SeenAt, Via: h.Via, Detail: h.Detail}
	switch {
	case !h.Reachable:
		s.State = HostUnreachable
		return s
	case h.Report == nil:
		s.State = HostUnknown
		return s
	}
	s.Source, s.SourceAgeS = oldestSource(h.Report.Sources)
	w.differences(h, &s)
	switch {
	case maxAge > 0 && now.Sub(h.SeenAt) > maxAge.Std():
		s.State = HostStale
	case len(s.Lacks)+len(s.Extra) > 0:
		s.State = HostLacking
	default:
		s.State = HostEffective
	}
	return s
}

func (w *wanted) differences(h *model.HostView, s *HostSkew) {
	clear(w.held)
	var since []time.Time
	for _, l := range h.Report.Live {
		w.held[l.ID] = true
		if !w.isLive[l.ID] {
			s.Extra = append(s.Extra, l.ID)
			since = append(since, w.endedAt[l.ID])
		}
	}
	for _, d := range w.live {
		if !w.held[d.ID] && slices.ContainsFunc(h.Services, d.Covers) {
			s.Lacks = append(s.Lacks, d.ID)
			since = append(since, begin(d))
		}
	}
	if len(since) > 0 {
		s.Since = slices.MinFunc(since, time.Time.Compare)
	}
}

// oldestSource is the one that was never read, or else the one with the highest
// age: what a host lacks is most likely there.
func oldestSource(sources []model.ReportSource) (string, int64) {
	if len(sources) == 0 {
		return "", 0
	}
	// As an unsigned number -1 is the highest age of all.
	oldest := slices.MaxFunc(sources, func(a, b model.ReportSource) int { return cmp.Compare(uint64(a.AgeS), uint64(b.AgeS)) })
	return oldest.Name, oldest.AgeS
}
