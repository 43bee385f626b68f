package audit

import (
	"encoding/json"

	"github.com/degradedmode/ic/internal/model"
)

// Kind names what an entry records.
type Kind string

// The kinds of version 1. A reader keeps and verifies kinds that it does not
// know, and shows them as such.
const (
	KindSession      Kind = "session"
	KindSessionEnd   Kind = "session-end"
	KindIncidentOpen Kind = "incident-open"
	KindIncidentEnd  Kind = "incident-close"
	KindIntent       Kind = "intent"
	KindProposed     Kind = "proposed"
	KindSigned       Kind = "signed"
	KindOutcome      Kind = "outcome"
	KindReconciled   Kind = "reconciled"
	KindPushIntent   Kind = "push-intent"
	KindPushOutcome  Kind = "push-outcome"
	KindUndoIntent   Kind = "undo-intent"
	KindUndoOutcome  Kind = "undo-outcome"
	KindLease        Kind = "lease"
	KindDenied       Kind = "denied"
	KindNote         Kind = "note"
	KindLate         Kind = "late"
	KindVerified     Kind = "verified"
	KindExported     Kind = "exported"
	KindSignoff      Kind = "signoff"
)

// States of outcomes and overrides. Others are kept as they are written; these
// are the ones that Fold acts on.
const (
	StateCarried     = "carried"     // a carrier acknowledged it
	StateEffective   = "effective"   // hosts report it
	StatePartial     = "partial"     // some hosts report it
	StateSent        = "sent"        // handed over, nothing heard yet
	StateAdvised     = "advised"     // a person was told to do it by hand: nobody can say whether it was done
	StateUnconfirmed = "unconfirmed" // it may or may not have arrived
	StateFailed      = "failed"      // it did not arrive
	StateAbsent      = "absent"      // reality was read: it is nowhere
	StateWithdrawn   = "withdrawn"   // a proposal that will not be signed
	StateUndone      = "undone"      // an override that is gone from its backend
)

// HostReports is the carrier of an outcome that was read from the reports of hosts:
// what arrived, by whatever way.
const HostReports = "hosts"

// Body is what an entry of one kind says.
type Body interface {
	Kind() Kind
}

// Sealed names the segment that this one continues, up to the last entry that
// was acknowledged, and why it was left.
type Sealed struct {
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Why    string `json:"why"`
}

// SessionStart is the first entry of every file. Statement is the exact text
// that Certificate, an SSHSIG blob, signs.
type SessionStart struct {
	Segment     int     `json:"segment"`
	Statement   string  `json:"statement"`
	Certificate []byte  `json:"certificate"`
	BeganBoot   string  `json:"began_boot"` // boot id and boot clock when the statement began
	BeganNS     int64   `json:"began_ns"`
	Sealed      *Sealed `json:"sealed,omitempty"`
}

// SessionEnd is the last entry of a session that ended in order. Its absence
// means a crash, a cut or a session that still runs.
type SessionEnd struct {
	Why string `json:"why"`
}

// IncidentOpen opens the incident that the log belongs to.
type IncidentOpen struct {
	Title string `json:"title"`
}

// Signoff is a signed statement about something that was owed: the exact text
// (see SignoffStatement) and the SSHSIG blob over it. It stands as an entry of
// its own, and once more in the close of an incident that relied on it.
type Signoff struct {
	Statement string `json:"statement"`
	Signature []byte `json:"signature"`
}

// IncidentClose closes it.
type IncidentClose struct {
	Note     string    `json:"note"`
	Signoffs []Signoff `json:"signoffs,omitempty"`
}

// Ask is a request in the words of the log.
type Ask struct {
	Actor     string     `json:"actor"`
	Right     string     `json:"right"`
	Kind      model.Kind `json:"kind"`
	Scope     string     `json:"scope"`
	Reason    string     `json:"reason"`
	Evidence  string     `json:"evidence,omitempty"`
	Cosigners []string   `json:"cosigners,omitempty"`
}

// AskOf summarises a request.
func AskOf(r *model.Request) Ask {
	d := &r.Directive
	return Ask{Actor: r.Actor, Right: d.Right, Kind: d.Kind, Scope: d.Scope, Reason: d.Reason,
		Evidence: r.Evidence, Cosigners: r.Cosigners}
}

// Intent is what will be signed: the exact payload, how it was judged, and
// whether a person was asked. Asked is false when --yes answered.
type Intent struct {
	Payload string        `json:"payload"`
	Request Ask           `json:"request"`
	Verdict model.Verdict `json:"verdict"`
	Asked   bool          `json:"asked"`
}

// Proposed waits for more signatures. Token holds the ones at hand, "" if none.
type Proposed struct {
	ID      string         `json:"id"`
	Payload string         `json:"payload"`
	Token   string         `json:"token,omitempty"`
	Needs   []model.Reason `json:"needs"`
}

// Signed is a token that may leave the console from here on. Without an outcome
// behind it, what became of it is UNKNOWN.
type Signed struct {
	ID      string   `json:"id"`
	Token   string   `json:"token"`
	Signers []string `json:"signers"` // people and machines, by name
}

// Outcome is what one carrier made of a directive.
type Outcome struct {
	ID      string `json:"id"`
	Carrier string `json:"carrier"`
	State   string `json:"state"`
	Detail  string `json:"detail,omitempty"`
}

// Reconciled is what reading reality said about a directive whose outcome was
// unknown. It supersedes the outcomes before it.
type Reconciled struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// PushIntent is a break-glass push about to be made. The override is open from
// here until an UndoOutcome says undone.
type PushIntent struct {
	Operation  string   `json:"operation"`
	Backend    string   `json:"backend"`
	PlanDigest string   `json:"plan_digest"`
	IDs        []string `json:"ids"`
	Restarts   int      `json:"restarts"`
}

// PushOutcome is how far a push has come; there may be several of one push.
type PushOutcome struct {
	Operation string `json:"operation"`
	State     string `json:"state"`
	Detail    string `json:"detail,omitempty"`
	Done      int    `json:"done"`
	Total     int    `json:"total"`
}

// UndoIntent is the removal of an override about to be made.
type UndoIntent struct {
	Operation string `json:"operation"`
	Backend   string `json:"backend"`
	Restarts  int    `json:"restarts"`
}

// UndoOutcome is how far a removal has come.
type UndoOutcome struct {
	Operation string `json:"operation"`
	State     string `json:"state"`
	Detail    string `json:"detail,omitempty"`
	Done      int    `json:"done"`
	Total     int    `json:"total"`
}

// LeaseAction is what a person did with command.
type LeaseAction string

// The five acts.
const (
	LeaseTake       LeaseAction = "take"
	LeaseOffer      LeaseAction = "offer"
	LeaseAccept     LeaseAction = "accept"
	LeaseDeputy     LeaseAction = "deputy"
	LeaseRelinquish LeaseAction = "relinquish"
)

// LeaseAct is the lease after the act. Statement and Signature are the signed
// lease where one was made.
type LeaseAct struct {
	Action    LeaseAction `json:"action"`
	Lease     model.Lease `json:"lease"`
	Statement string      `json:"statement,omitempty"`
	Signature []byte      `json:"signature,omitempty"`
}

// Denied is a request that was refused or needs something first.
type Denied struct {
	Request Ask            `json:"request"`
	Reasons []model.Reason `json:"reasons"`
}

// Note is what a person wants to have in the record.
type Note struct {
	Text string `json:"text"`
}

// Late chains a receipt: something that happened when no disk could take it.
type Late struct {
	Receipt Receipt `json:"receipt"`
}

// Verified says that the log was verified, and up to which heads.
type Verified struct {
	Files   int             `json:"files"`
	Entries int64           `json:"entries"`
	Heads   []model.LogHead `json:"heads"`
	Failure string          `json:"failure,omitempty"`
}

// Exported says that the log left this machine.
type Exported struct {
	Format string          `json:"format"`
	SHA256 string          `json:"sha256"`
	Heads  []model.LogHead `json:"heads"`
}

// Foreign is the body of a kind that this version does not know. It is read,
// verified and kept; it cannot be written.
type Foreign struct {
	Name Kind
	Raw  json.RawMessage
}

// Kind implements Body for every kind of entry.
func (SessionStart) Kind() Kind  { return KindSession }
func (SessionEnd) Kind() Kind    { return KindSessionEnd }
func (IncidentOpen) Kind() Kind  { return KindIncidentOpen }
func (IncidentClose) Kind() Kind { return KindIncidentEnd }
func (Intent) Kind() Kind        { return KindIntent }
func (Proposed) Kind() Kind      { return KindProposed }
func (Signed) Kind() Kind        { return KindSigned }
func (Outcome) Kind() Kind       { return KindOutcome }
func (Reconciled) Kind() Kind    { return KindReconciled }
func (PushIntent) Kind() Kind    { return KindPushIntent }
func (PushOutcome) Kind() Kind   { return KindPushOutcome }
func (UndoIntent) Kind() Kind    { return KindUndoIntent }
func (UndoOutcome) Kind() Kind   { return KindUndoOutcome }
func (LeaseAct) Kind() Kind      { return KindLease }
func (Denied) Kind() Kind        { return KindDenied }
func (Note) Kind() Kind          { return KindNote }
func (Late) Kind() Kind          { return KindLate }
func (Verified) Kind() Kind      { return KindVerified }
func (Exported) Kind() Kind      { return KindExported }
func (Signoff) Kind() Kind       { return KindSignoff }
func (f Foreign) Kind() Kind     { return f.Name }

// decodeBody reads the body of a known kind strictly: the caller compares the
// canonical form. A kind that is not known keeps its bytes.
func decodeBody(kind Kind, raw []byte) (Body, error) {
	switch kind {
	case KindSession:
		return bodyOf[SessionStart](raw)
	case KindSessionEnd:
		return bodyOf[SessionEnd](raw)
	case KindIncidentOpen:
		return bodyOf[IncidentOpen](raw)
	case KindIncidentEnd:
		return bodyOf[IncidentClose](raw)
	case KindIntent:
		return bodyOf[Intent](raw)
	case KindProposed:
		return bodyOf[Proposed](raw)
	case KindSigned:
		return bodyOf[Signed](raw)
	case KindOutcome:
		return bodyOf[Outcome](raw)
	case KindReconciled:
		return bodyOf[Reconciled](raw)
	case KindPushIntent:
		return bodyOf[PushIntent](raw)
	case KindPushOutcome:
		return bodyOf[PushOutcome](raw)
	case KindUndoIntent:
		return bodyOf[UndoIntent](raw)
	case KindUndoOutcome:
		return bodyOf[UndoOutcome](raw)
	case KindLease:
		return bodyOf[LeaseAct](raw)
	case KindDenied:
		return bodyOf[Denied](raw)
	case KindNote:
		return bodyOf[Note](raw)
	case KindLate:
		return bodyOf[Late](raw)
	case KindVerified:
		return bodyOf[Verified](raw)
	case KindExported:
		return bodyOf[Exported](raw)
	case KindSignoff:
		return bodyOf[Signoff](raw)
	default:
		return decodeRunBody(kind, raw)
	}
}

func bodyOf[B Body](raw []byte) (Body, error) {
	var b B
	if err := strict(raw, &b); err != nil {
		return nil, err
	}
	return b, nil
}
