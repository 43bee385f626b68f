package model

import (
	"slices"
	"time"
)

// World is everything a verdict may depend on besides the policy and the
// request. It is built once per decision and never changed afterwards. It can
// be saved as JSON and replayed.
type World struct {
	V          int                  `json:"v"`
	Now        time.Time            `json:"now"`
	Clock      ClockState           `json:"clock"`
	Fleet      string               `json:"fleet"`
	Mode       Mode                 `json:"mode"`
	Incident   Incident             `json:"incident"`
	Readings   map[string]Reading   `json:"readings"`
	Issued     []Issued             `json:"issued"` // every directive known, oldest first
	Hosts      []HostView           `json:"hosts"`
	Inventory  Inventory            `json:"inventory"`
	Rehearsals map[string]Rehearsal `json:"rehearsals"` // by right, and by "backend/<name>"
	Overrides  []Override           `json:"overrides"`
	Proposals  []Proposal           `json:"proposals"` // waiting for signatures, oldest first
	Durable    bool                 `json:"durable"`   // the log can take a durable intent now
	Policy     PolicyRef            `json:"policy"`
}

// Mode is where an act would land.
type Mode string

// The four modes of the console.
const (
	Live       Mode = "LIVE"
	Rehearsing Mode = "REHEARSAL"
	BreakGlass Mode = "BREAK-GLASS"
	ReadOnly   Mode = "READ-ONLY"
)

// Incident is the open incident; the zero value means none is open.
type Incident struct {
	ID       string    `json:"id,omitempty"`
	OpenedAt time.Time `json:"opened_at,omitzero"`
	Title    string    `json:"title,omitempty"`
	Lease    Lease     `json:"lease,omitzero"`
}

// Lease is command: who may recover and loosen. It orders people, it is not a
// safety mechanism. Confirmed means that a store with compare-and-swap holds
// it; otherwise it is local and shown as unconfirmed.
type Lease struct {
	Holder    string    `json:"holder"`
	Deputy    string    `json:"deputy,omitempty"`
	OfferedTo string    `json:"offered_to,omitempty"`
	From      time.Time `json:"from"`
	Until     time.Time `json:"until"`
	Confirmed bool      `json:"confirmed"`
}

// Held reports whether person holds the lease at now.
func (l Lease) Held(person string, now time.Time) bool {
	return l.Holder == person && person != "" && now.Before(l.Until)
}

// Issued is a directive that this console knows of, from its log, the carriers
// or the reports, and whether it has been ended.
type Issued struct {
	Directive Directive `json:"directive"`
	Signers   []string  `json:"signers"` // people or machines, by name
	Token     string    `json:"token,omitempty"`
	EndedBy   string    `json:"ended_by,omitempty"`
	Carried   []string  `json:"carried,omitempty"` // carriers that acknowledged it
	Outcome   string    `json:"outcome,omitempty"` // "" is UNKNOWN
	// FirstSeen is when the first of the hosts that report it had it in force, put on our
	// clock, or when the log says that hosts had it; zero: no host is known to.
	FirstSeen time.Time `json:"first_seen,omitzero"`
}

// LiveAt reports whether the directive is in force at now, as far as we know.
func (i *Issued) LiveAt(now time.Time) bool {
	d := &i.Directive
	return i.EndedBy == "" && !now.Before(d.NotBefore) && (d.NotAfter.IsZero() || now.Before(d.NotAfter))
}

// Begun is since when the directive holds: not_before, or later, when the first host
// had it. A signature that came late and a carrier that was down make it later.
func (i *Issued) Begun() time.Time {
	if i.FirstSeen.After(i.Directive.NotBefore) {
		return i.FirstSeen
	}
	return i.Directive.NotBefore
}

// Proposal is a directive that waits for somebody else's signature.
type Proposal struct {
	ID        string    `json:"id"`
	Right     string    `json:"right"`
	Scope     string    `json:"scope"`
	Requester string    `json:"requester"`
	At        time.Time `json:"at"`      // when it was proposed
	Signers   []string  `json:"signers"` // whose signatures are at hand, the requester's included
}

// Override is a token that a break-glass backend has put on hosts and that has
// not been removed. It is an obligation: an incident does not close over it.
type Override struct {
	Operation string    `json:"operation"`
	Backend   string    `json:"backend"`
	IDs       []string  `json:"ids"`
	Since     time.Time `json:"since"`
	State     string    `json:"state"` // planned, sent, unconfirmed, partial, effective, ...
}

// Pushed reports whether one of the overrides has a directive on hosts.
func Pushed(overrides []Override, id string) bool {
	return slices.ContainsFunc(overrides, func(o Override) bool { return slices.Contains(o.IDs, id) })
}

// Inventory is the denominator: which hosts there should be, and as of when. Detail
// says why it is not newer.
type Inventory struct {
	Source string    `json:"source"`
	At     time.Time `json:"at"`
	MaxAge Duration  `json:"max_age"`
	Hosts  int       `json:"hosts"`
	Detail string    `json:"detail,omitempty"`
}

// Rehearsal says when something was last done for practice: in simulation, and
// live (a ping over the real carriers, or a real use).
type Rehearsal struct {
	Simulated time.Time `json:"simulated,omitzero"`
	Live      time.Time `json:"live,omitzero"`
}

// Request is one wish to be judged: a directive that lacks only its id, its log
// head and its signatures, who asks, and who has signed already.
type Request struct {
	Directive Directive `json:"directive"`
	Actor     string    `json:"actor"`     // person or machine that asks
	Cosigners []string  `json:"cosigners"` // people whose valid signature over this content is at hand
	Evidence  string    `json:"evidence"`  // typed evidence, for recover-blind
}

// Outcome of a verdict.
type Outcome string

// The three outcomes.
const (
	Permitted Outcome = "permitted"
	Needs     Outcome = "needs"
	Denied    Outcome = "denied"
)

// Assurance says who ends a directive and who verifies it.
type Assurance string

// Assurance levels, strongest first.
const (
	HostHeld   Assurance = "host-held"
	VendorHeld Assurance = "vendor-held"
	Advised    Assurance = "advised"
)

// Code is a stable name of a reason or a refusal, the same on hosts, in
// verdicts, in the log and in the documentation.
type Code string

// Reason is a code with arguments; the sentence is rendered later, so that a
// verdict costs no text. Which fields a code uses stands at its definition in
// package decisions.
type Reason struct {
	Code   Code      `json:"code"`
	Name   string    `json:"name,omitempty"`
	Other  string    `json:"other,omitempty"`
	N      int64     `json:"n,omitempty"`
	M      int64     `json:"m,omitempty"`
	Wait   Duration  `json:"wait,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Amount Money     `json:"amount,omitzero"`
	Limit  Money     `json:"limit,omitzero"`
}

// Verdict is the answer to one request. Reasons is empty when permitted.
type Verdict struct {
	Outcome   Outcome   `json:"outcome"`
	Direction Direction `json:"direction"`
	Assurance Assurance `json:"assurance"`
	Reasons   []Reason  `json:"reasons"`
}
