package score

import "time"

// RecordVersion is the version of Record's JSON.
const RecordVersion = 1

// Mode says who acted in the run.
type Mode string

// The modes of a run.
const (
	Baseline       Mode = "baseline"            // what people did without ic
	WithIC         Mode = "ic"                  // the same people, the same reaction times, with ic
	NoSecondBypass Mode = "ic-no-second-bypass" // with ic, and nobody grants a second bypass
)

// Verdict says what a run is worth.
type Verdict string

// The verdicts. A run whose fault was never injected is not a run.
const (
	Passed       Verdict = "passed"
	Failed       Verdict = "failed"
	Aborted      Verdict = "aborted"
	Inconclusive Verdict = "inconclusive"
	NotInjected  Verdict = "not-injected"
)

// EventKind names what happened.
type EventKind string

// The kinds of events.
const (
	Injected     EventKind = "injected"
	NotRaised    EventKind = "not-injected" // a fault of the scenario that did not take
	Cleared      EventKind = "cleared"
	Alarm        EventKind = "alarm"
	Acknowledged EventKind = "acknowledged"
	Denied       EventKind = "denied"    // Code says why
	Decided      EventKind = "decided"   // a person or the controller chose
	Issued       EventKind = "issued"    // the directive is signed and on its way
	Effective    EventKind = "effective" // on 95 % of the hosts: Done of Total
	Ended        EventKind = "ended"
	Opened       EventKind = "opened" // a bypass is open on the first host
	Closed       EventKind = "closed" // and on none any more
	Moved        EventKind = "moved"  // the tier of Scope went from Done to Total
	Step         EventKind = "step"
	Skipped      EventKind = "skipped"
	Stopped      EventKind = "aborted"
)

// Record is what a player of scenarios wrote down of one run. Everything is
// counted from Start in milliseconds of virtual time.
type Record struct {
	V        int       `json:"v"`
	Scenario string    `json:"scenario"`
	Title    string    `json:"title,omitempty"`
	Seed     uint64    `json:"seed"`
	Mode     Mode      `json:"mode"`
	Start    time.Time `json:"start"`
	LastsMS  int64     `json:"lasts_ms"`
	Events   []Event   `json:"events"`
	Samples  []Sample  `json:"samples"`
	Verdict  Verdict   `json:"verdict"`
	Why      []string  `json:"why,omitempty"`     // of a verdict that is not passed: one sentence for each reason
	Aborted  string    `json:"aborted,omitempty"` // the abort_if that became true

	Currency string    `json:"currency,omitempty"`  // of every amount in cents
	CapCents int64     `json:"cap_cents,omitempty"` // the most that the granted bypasses allow, replaced hosts included; 0: none was granted
	Evidence *Evidence `json:"evidence,omitempty"`  // of the logs that the run left; nil: nobody looked, or there are none (baseline)

	Runbook string `json:"runbook,omitempty"` // id of the runbook that was followed
	Digest  string `json:"digest,omitempty"`  // and SHA-256 of its exact bytes
	Through bool   `json:"through,omitempty"` // it was followed to its end
	Script  string `json:"script,omitempty"`  // SHA-256 of acts that were played instead of the scenario's

	Played *Played `json:"played,omitempty"` // who acted; nil: a baseline, or nobody has written it down
}

// Evidence is what verifying the logs of a run has shown. EvidenceOf fills it.
type Evidence struct {
	Whole   bool     `json:"whole"`   // the chain of every log verifies
	Entries int64    `json:"entries"` // verified
	Effects int      `json:"effects"` // directives signed, pushes and undos
	Missing []string `json:"missing"` // one sentence for each effect without its intent or its outcome, and for a chain that does not hold
}

// Event is one thing that happened. ID is the directive's, the fault's, the
// push's operation or the step's, the same from issued to ended; Done and Total
// count hosts, or for moved the tiers from and to. What of an issued, effective,
// ended, opened or closed one is the kind and its argument: "shed 3", "end 2",
// "off recommendations", "bypass payment-risk", "push git", "undo git", "flag
// bypass-risk".
type Event struct {
	AtMS   int64     `json:"at_ms"`
	Kind   EventKind `json:"kind"`
	Who    string    `json:"who,omitempty"`
	What   string    `json:"what,omitempty"` // the fault, the directive's kind with its argument, the alarm's signal
	Scope  string    `json:"scope,omitempty"`
	ID     string    `json:"id,omitempty"`
	Right  string    `json:"right,omitempty"`
	Code   string    `json:"code,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Done   int       `json:"done,omitempty"`
	Total  int       `json:"total,omitempty"`
}

// Sample is the world at one moment. A sample stands until the next one. Totals
// (orders, cents) are since Start; shares are of now.
type Sample struct {
	AtMS          int64            `json:"at_ms"`
	Tier          map[string]int   `json:"tier"`   // by service: on most hosts
	Oracle        map[string]int   `json:"oracle"` // by service: what someone who knew the fault would have chosen
	ErrorsPPM     map[string]int64 `json:"errors_ppm"`
	ImpactPPM     int64            `json:"impact_ppm"` // share of the customers' requests that are no primary success, now
	Reached       int              `json:"reached"`    // hosts whose posture is the one issued
	Hosts         int              `json:"hosts"`
	Orders        map[string]int64 `json:"orders"` // by outcome, so far
	UnscoredCents int64            `json:"unscored_cents"`
	LostCents     int64            `json:"lost_cents"`
	BypassOpen    int              `json:"bypass_open"` // hosts with a bypass open, now
}
