package incident

import (
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// Snapshot is everything a screen or a status line shows, at one moment. It is
// a value: nobody changes it after it was handed out.
type Snapshot struct {
	At        time.Time            `json:"at"` // the clock of the fleet's world
	Fleet     string               `json:"fleet"`
	Rehearsal bool                 `json:"rehearsal"` // a drill's world: own root, own namespaces, REHEARSAL in every frame
	Mode      model.Mode           `json:"mode"`
	Person    string               `json:"person"`  // "" when no key of ours is in the trust root
	Session   string               `json:"session"` // "" until something was written
	World     model.World          `json:"world"`
	Matrix    []decisions.Row      `json:"matrix"`
	Headline  decisions.Headline   `json:"headline"`
	Services  []ServiceTier        `json:"services"`
	Signals   []SignalView         `json:"signals"`
	Skew      SkewView             `json:"skew"`
	Live      []LiveView           `json:"live"`    // directives in force, with their reach
	Unknown   []LiveView           `json:"unknown"` // signed, and no outcome on disk
	Overrides []model.Override     `json:"overrides"`
	Backends  []BackendView        `json:"backends"`
	Carriers  []CarrierView        `json:"carriers"`
	Proposals []Proposal           `json:"proposals"` // waiting for signatures
	Domains   []policy.DomainState `json:"domains"`
	PolicyEnd time.Time            `json:"policy_expires"`
	Head      model.LogHead        `json:"head"`               // zero until something was written
	Log       []LogLine            `json:"log"`                // newest last, bounded
	Receipts  []string             `json:"receipts,omitempty"` // acts whose record is not on disk yet
	Blockers  []string             `json:"blockers"`           // what keeps the incident from closing, as sentences
	Owed      []Owed               `json:"owed"`               // reviews owed afterwards, over all incidents; they keep nothing open
	Faults    []FaultView          `json:"faults,omitempty"`   // drills only

	SignalsClock ClockView `json:"signals_clock,omitzero"` // beside ours; zero: not compared
}

// ServiceTier is the tier of one service: as issued, and as its hosts report.
type ServiceTier struct {
	Service string          `json:"service"`
	Issued  int             `json:"issued"`
	Last    int             `json:"last"`  // highest tier it knows
	Hosts   int             `json:"hosts"` // in the inventory
	At      map[int]int     `json:"at"`    // tier -> hosts that report its posture
	Unknown int             `json:"unknown"`
	Since   time.Time       `json:"since,omitzero"`
	By      string          `json:"by,omitempty"`
	Ramp    *decisions.Ramp `json:"ramp,omitempty"`
}

// SignalView is one signal as the policy names it and as it reads.
type SignalView struct {
	Name     string        `json:"name"`
	Reading  model.Reading `json:"reading"`
	Abnormal bool          `json:"abnormal"`
	Text     string        `json:"text"`  // "3.0 s", "no data"
	Limit    string        `json:"limit"` // "above 0.5 s"
}

// SkewView is the version skew of the fleet: hosts whose posture differs from
// the one issued.
type SkewView struct {
	Hosts       int       `json:"hosts"`
	Effective   int       `json:"effective"`
	Lacking     int       `json:"lacking"`
	Unreachable int       `json:"unreachable"`
	Stale       int       `json:"stale"`
	Unknown     int       `json:"unknown"`     // answered, and not with its report
	At          time.Time `json:"at,omitzero"` // when the reports were read
	Alarm       bool      `json:"alarm"`       // over the share that alarms
	InventoryAt time.Time `json:"inventory_at,omitzero"`
}

// LiveView is one directive in force with how far it has come.
type LiveView struct {
	Issued    model.Issued        `json:"issued"`
	Title     string              `json:"title"` // "shed checkout to tier 3"
	Done      int                 `json:"done"`
	Total     int                 `json:"total"`
	State     string              `json:"state"` // effective, partial, unconfirmed, UNKNOWN
	Direction model.Direction     `json:"direction"`
	Exposure  *decisions.Exposure `json:"exposure,omitempty"`
	Used      map[string]UsedView `json:"used,omitempty"` // bypass: by currency
}

// UsedView is what hosts report to have let through; hosts that did not report
// are unknown, not zero.
type UsedView struct {
	Count   int64       `json:"count"`
	Total   model.Money `json:"total"`
	Unknown int         `json:"unknown_hosts"`
}

// BackendView is one break-glass backend.
type BackendView struct {
	Name         string          `json:"name"`
	Carrier      string          `json:"carrier"` // file, env, or "" when not asked yet
	Restarts     bool            `json:"restarts"`
	Dependencies []string        `json:"dependencies"`
	Overlap      []string        `json:"overlap"` // with what is failing now
	Rehearsed    model.Rehearsal `json:"rehearsed"`
	Detail       string          `json:"detail,omitempty"`
}

// CarrierView is one flag service as this console sees it.
type CarrierView struct {
	Name      string    `json:"name"`
	Connected bool      `json:"connected"`
	ReadAt    time.Time `json:"read_at,omitzero"`
	Detail    string    `json:"detail,omitempty"` // what is wrong, also with one that is connected
	Lacks     []Missing `json:"lacks,omitempty"`  // what a host would not learn from it
}

// ClockView is the clock of another machine beside ours.
type ClockView struct {
	State  ClockState `json:"state"`
	AheadS int64      `json:"ahead_s"` // seconds; negative when it is behind
	At     time.Time  `json:"at,omitzero"`
}

// ClockState says whether two clocks agree.
type ClockState string

// The states of a comparison. Not compared is no agreement.
const (
	ClocksUnknown ClockState = "not-compared"
	ClocksAgree   ClockState = "agree"
	ClocksDiffer  ClockState = "differ"
)

// Text says it in a sentence.
func (c *ClockView) Text() string {
	by := (time.Duration(c.AheadS) * time.Second).Abs()
	switch {
	case c.State != ClocksDiffer && c.State != ClocksAgree:
		return "the clock of whoever answers for the signals is not known yet"
	case c.State == ClocksAgree:
		return fmt.Sprintf("this machine and the server of the signals agree within %s", max(by, time.Second))
	case c.AheadS > 0:
		return fmt.Sprintf("the server of the signals is %s ahead of this machine: one of the two clocks is wrong (NTP?), and ages of signals are off by as much", by)
	}
	return fmt.Sprintf("the server of the signals is %s behind this machine: one of the two clocks is wrong (NTP?), and ages of signals are off by as much", by)
}

// Proposal is a directive that waits for signatures.
type Proposal struct {
	Directive model.Directive `json:"directive"`
	Token     string          `json:"token"` // payload and the signatures so far
	Needs     string          `json:"needs"` // "1 more signature from finance"
	Left      model.Duration  `json:"left"`  // until the window is over
}

// LogLine is one line of the log for people.
type LogLine struct {
	At    time.Time `json:"at"`
	Actor string    `json:"actor"`
	Kind  string    `json:"kind"`
	Text  string    `json:"text"`
}

// FaultView is a fault of a drill's world.
type FaultView struct {
	Name   string `json:"name"`
	Text   string `json:"text"`
	Active bool   `json:"active"`
}
