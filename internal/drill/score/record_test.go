package score

import (
	"time"

	"github.com/degradedmode/ic/internal/audit"
)

const minute = 60_000

// outage is a run of 40 minutes: the fault at 2 min, seen at 3, tier 3 ordered at
// 4 and in force at 4:05, calm from 5, cleared at 20, normal from 31.
func outage() *Record {
	r := &Record{
		V: RecordVersion, Scenario: "risk-down", Title: "The risk check is gone", Seed: 7, Mode: WithIC,
		Start: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), LastsMS: 40 * minute, Verdict: Passed,
		Currency: "USD", CapCents: 2_000_000, Evidence: &Evidence{Whole: true, Entries: 12, Effects: 2, Missing: []string{}},
		Runbook: "payment-risk-down", Digest: "00", Through: true,
		Events: []Event{
			{AtMS: 2 * minute, Kind: Injected, What: "payment-risk-down"},
			{AtMS: 2*minute + 30_000, Kind: Alarm, What: "checkout-errors"},
			{AtMS: 3 * minute, Kind: Acknowledged, Who: "maya"},
			{AtMS: 3*minute + 10_000, Kind: Denied, Who: "dev", Right: "risk-bypass", Code: "wrong-role"},
			{AtMS: 3*minute + 20_000, Kind: Denied, Who: "maya", Right: "risk-bypass", Code: "quorum"},
			{AtMS: 3*minute + 20_000, Kind: Denied, Who: "maya", Right: "risk-bypass", Code: "not-rehearsed"}, // the same wish
			{AtMS: 4 * minute, Kind: Issued, Who: "maya", What: "shed 3", Scope: "checkout", ID: "A", Right: "shed-checkout"},
			{AtMS: 4*minute + 2_000, Kind: Moved, Scope: "checkout", Done: 0, Total: 3},
			{AtMS: 4*minute + 5_000, Kind: Effective, What: "shed 3", Scope: "checkout", ID: "A", Done: 25, Total: 25},
			{AtMS: 6 * minute, Kind: Step, ID: "see"},
			{AtMS: 7 * minute, Kind: Skipped, ID: "call"},
			{AtMS: 20 * minute, Kind: Cleared, What: "payment-risk-down"},
			{AtMS: 28 * minute, Kind: Moved, Scope: "checkout", Done: 3, Total: 2},
			{AtMS: 29 * minute, Kind: Moved, Scope: "checkout", Done: 2, Total: 3},
			{AtMS: 31 * minute, Kind: Moved, Scope: "checkout", Done: 3, Total: 0},
		},
	}
	for at := int64(0); at <= r.LastsMS; at += 30_000 {
		r.Samples = append(r.Samples, sampleOf(at))
	}
	return r
}

func sampleOf(at int64) Sample {
	s := Sample{
		AtMS: at, Tier: map[string]int{"checkout": 0}, Oracle: map[string]int{"checkout": 0},
		ErrorsPPM: map[string]int64{"checkout": 1_000, "edge": 0}, Hosts: 60, Reached: 60, Orders: map[string]int64{"taken": at / 1000},
	}
	if at >= 2*minute && at < 5*minute {
		s.ErrorsPPM["checkout"], s.ImpactPPM = 350_000, 200_000
	}
	if at >= 2*minute && at < 20*minute {
		s.Oracle["checkout"] = 2
	}
	if at > 4*minute && at < 31*minute {
		s.Tier["checkout"] = 3
	}
	s.UnscoredCents, s.LostCents = min(at, 20*minute)/10, at/100
	return s
}

func effects(ids ...string) []audit.Session {
	var s audit.Session
	for _, id := range ids {
		s.Entries = append(s.Entries,
			audit.Entry{Body: audit.PushIntent{Operation: id}}, audit.Entry{Body: audit.PushOutcome{Operation: id, State: audit.StateEffective}})
	}
	return []audit.Session{s}
}
