package incident

import (
	"errors"
	"time"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// Preview is what a confirmation shows: the request as it would be signed, the
// verdict, the worst case, and when it was last rehearsed.
type Preview struct {
	Request   model.Request       `json:"request"`
	Title     string              `json:"title"`
	Verdict   model.Verdict       `json:"verdict"`
	Reasons   []string            `json:"reasons"` // sentences
	Who       string              `json:"who"`     // role that decides
	Cosign    string              `json:"cosign"`  // "nobody else", "1 of finance"
	Exposure  *decisions.Exposure `json:"exposure,omitempty"`
	Rehearsed model.Rehearsal     `json:"rehearsed"`
	Practised *Practised          `json:"practised,omitempty"` // of the tier or the feature that it is about
	Review    string              `json:"review,omitempty"`    // group that reviews each use afterwards
	Journeys  []string            `json:"journeys"`            // what users can no longer do
	UserText  string              `json:"user_text"`           // what users see at that tier
	Typed     string              `json:"typed"`               // text to type before it goes; "" for tightening
	Opens     bool                `json:"opens"`               // it would open an incident and take command
	Command   string              `json:"command"`             // who holds command; "" when it would open an incident
}

// Act is a confirmed wish. Asked is false when nobody was asked (--yes without a
// terminal); the log says so. ID is for whoever has to find the act again after a
// crash: a ULID that was written down before, whose random part is the act's own.
// An act whose random part is known already is not done again. "" is a fresh one.
type Act struct {
	Request model.Request
	Asked   bool
	ID      string
}

// State of an act or a push: how far it has come, never what a pipeline says.
type State string

// States.
const (
	Planned     State = "planned"
	Proposed    State = "proposed"
	Sent        State = "sent"
	Unconfirmed State = "unconfirmed"
	Partial     State = "partial"
	Effective   State = "effective"
	Advised     State = "advised" // a person was told to do it by hand
	Blocked     State = "blocked"
	Dropped     State = "dropped"
	Unknown     State = "UNKNOWN"
)

// Result of an act.
type Result struct {
	ID       string        `json:"id"`
	State    State         `json:"state"`
	Done     int           `json:"done"`
	Total    int           `json:"total"`
	Detail   string        `json:"detail"`
	Token    string        `json:"token,omitempty"`
	Verdict  model.Verdict `json:"verdict"`
	Reasons  []string      `json:"reasons,omitempty"`
	Incident string        `json:"incident"`
	Advice   []string      `json:"advice,omitempty"`  // what to do by hand, line by line, where no host verifies directives
	Receipt  string        `json:"receipt,omitempty"` // the record could not be written: keep this text
	Carriers []string      `json:"carriers"`          // one line each: what happened
}

// Practised is when a tier or a feature was last used for practice, whatever the right.
type Practised struct {
	Name string `json:"name"` // as ic report has it
	model.Rehearsal
}

// BreakPlan is what a backend would do, in words.
type BreakPlan struct {
	Backend       string        `json:"backend"`
	Operation     string        `json:"operation"`
	Carrier       string        `json:"carrier"`
	Digest        string        `json:"plan_digest"`
	IDs           []string      `json:"ids"`
	LeftOut       []string      `json:"left_out"`
	Changes       []BreakChange `json:"changes"`
	Restarts      int           `json:"restarts"`
	Targets       int           `json:"targets"`
	Hosts         []string      `json:"hosts"`
	LastKnownGood string        `json:"last_known_good"` // yes, no, partly, unknown
	Conflicts     []string      `json:"conflicts"`
	Verdict       model.Verdict `json:"verdict"`
	Reasons       []string      `json:"reasons"`
	At            time.Time     `json:"at"`

	Rehearsed model.Rehearsal `json:"rehearsed"`
}

// BreakChange is one value before and after.
type BreakChange struct {
	Target string `json:"target"`
	Before string `json:"before"`
	After  string `json:"after"`
	Owner  string `json:"owner,omitempty"`
}

// Progress of a push or an undo, as a backend tells it. It is never proof.
type Progress struct {
	Phase   string `json:"phase"`
	Target  string `json:"target"`
	Done    int    `json:"done"`
	Total   int    `json:"total"`
	Message string `json:"message"`
}

// Errors that decide an exit code.
var (
	ErrDenied     = errors.New("denied")                // exit 3
	ErrNeeds      = errors.New("needs something first") // exit 6
	ErrIntegrity  = errors.New("integrity failure")     // exit 5
	ErrReadOnly   = errors.New("read-only")
	ErrNoIncident = errors.New("no incident is open")
	ErrRepeated   = errors.New("it was done before") // what became of it has to be read: nothing was done now
)
