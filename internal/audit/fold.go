package audit

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// State is what the logs of one incident say. It is computed, never stored.
type State struct {
	Incident  model.Incident
	OpenedBy  string
	ClosedAt  time.Time // zero: open, or never opened
	Issued    []model.Issued
	Proposals []Proposal // waiting for signatures
	Overrides []model.Override
	// Rehearsals has live uses only: by right, by "tier/<scope>/<n>", "feature/<name>"
	// and "backend/<name>", and by "runbook/<id>" where a run was finished.
	Rehearsals  map[string]model.Rehearsal
	Activations map[Use]int
	Signoffs    []Signoff // as they were written: who signed them is for the reader to check
	Lines       []Line    // the history, oldest first
	Unreadable  []string
}

// Proposal waits for signatures.
type Proposal struct {
	Directive model.Directive
	Payload   string
	Token     string // with the signatures at hand, "" if none
	Needs     []model.Reason
	At        time.Time
	Actor     string
}

// Use is a right on one UTC day: how often it was used is bounded by policy.
type Use struct {
	Right string
	Day   string // of not_before, 2026-11-30
}

// dayLayout names a UTC day as hosts name the period of a budget.
const dayLayout = "2006-01-02"

// IsOpen reports whether the incident was opened and not closed since.
func (s *State) IsOpen() bool { return !s.Incident.OpenedAt.IsZero() && s.ClosedAt.IsZero() }

// Unknown lists what was signed and of which nobody has read what became of it.
func (s *State) Unknown() []model.Issued {
	var out []model.Issued
	for _, i := range s.Issued {
		if i.Outcome == "" {
			out = append(out, i)
		}
	}
	return out
}

// placed is an entry at its place in the one order of all sessions.
type placed struct {
	Entry
	origin string
	order  time.Time // At, never earlier than that of the entry before in its session
}

// Fold computes the state from the logs of one incident. It is pure, and gives
// the same for every order of sessions and every way in which their writes
// interleaved.
//
// Within a session entries follow seq, whatever its wall clock did. Between
// sessions there is no order to be had from clocks that disagree, so what
// matters for safety is kept as sets: signed, ended and undone hold no matter
// which entry seems to come first. Only what is "latest" by nature (the lease, a
// carrier's last word) goes by time, then by session and seq.
func Fold(sessions []Session) State {
	f := newFolding()
	for _, s := range sessions {
		if parts := strings.Split(s.Name, "/"); len(parts) == 3 {
			f.state.Incident.ID = max(f.state.Incident.ID, parts[1])
		}
	}
	for _, e := range inOrder(sessions) {
		f.add(e)
	}
	return f.finish()
}

// inOrder brings the entries of all sessions into one order.
func inOrder(sessions []Session) []placed {
	byFile := slices.Clone(sessions)
	sortSessions(byFile)
	var out []placed
	var latest time.Time
	for i, s := range byFile {
		if i == 0 || s.Name != byFile[i-1].Name {
			latest = time.Time{}
		}
		for _, e := range s.Entries {
			if e.At.After(latest) {
				latest = e.At
			}
			out = append(out, placed{Entry: e, origin: s.Origin, order: latest})
		}
	}
	// Stable: within a session the entries already stand in their order.
	slices.SortStableFunc(out, func(a, b placed) int { return a.order.Compare(b.order) })
	return out
}

// InOrder is the entries of all sessions in the one order in which Fold takes
// them, whatever the order of the sessions: for folds of other packages. A late
// entry stands where it was chained and says what its receipt says.
func InOrder(sessions []Session) []Entry {
	all := inOrder(sessions)
	out := make([]Entry, len(all))
	for i := range all {
		out[i] = all[i].happened()
	}
	return out
}

// happened is the entry as it happened: a late one is what its receipt says, at
// the receipt's time.
func (e Entry) happened() Entry {
	late, ok := e.Body.(Late)
	if !ok {
		return e
	}
	inner, err := readBody(late.Receipt.Kind, late.Receipt.Body)
	if err != nil {
		return e // readEntry refused it already
	}
	e.Body, e.Actor = inner, late.Receipt.Actor
	if then, err := unstamp(late.Receipt.At); err == nil {
		e.At = then
	}
	return e
}

// told is the last word about one directive from one carrier.
type told struct {
	state string
	at    time.Time
}

// folding is the state while it is being computed.
type folding struct {
	state      State
	issued     map[string]*model.Issued
	signers    map[string]map[string]bool
	words      map[string]map[string]told // id -> carrier, "" is reality
	proposals  map[string]Proposal
	overrides  map[string]*model.Override
	overState  map[string]string
	undone     map[string]bool
	runs       map[string]string // run -> runbook
	leaseSince time.Time
	lastOpen   bool
}

func newFolding() *folding {
	return &folding{
		state:     State{Rehearsals: map[string]model.Rehearsal{}, Activations: map[Use]int{}},
		issued:    map[string]*model.Issued{},
		signers:   map[string]map[string]bool{},
		words:     map[string]map[string]told{},
		proposals: map[string]Proposal{},
		overrides: map[string]*model.Override{},
		overState: map[string]string{},
		undone:    map[string]bool{},
		runs:      map[string]string{},
	}
}

// add takes one entry in. A late entry counts as what its receipt says, at the
// receipt's time.
func (f *folding) add(e placed) {
	f.state.Lines = append(f.state.Lines, lineOf(e))
	happened := e.happened()
	at, actor := happened.At, happened.Actor
	switch b := happened.Body.(type) {
	case IncidentOpen:
		f.open(b, at, actor)
	case IncidentClose:
		f.state.ClosedAt, f.lastOpen = at, false
	case Proposed:
		f.propose(b, at, actor)
	case Signed:
		f.sign(b)
	case Outcome:
		f.hear(b.ID, b.Carrier, told{b.State, at})
	case Reconciled:
		f.reconcile(b, at)
	case PushIntent:
		if f.overrides[b.Operation] == nil {
			f.overrides[b.Operation] = &model.Override{Operation: b.Operation, Backend: b.Backend, IDs: b.IDs, Since: at}
		}
	case PushOutcome:
		f.pushed(b, at)
	case Signoff:
		f.state.Signoffs = append(f.state.Signoffs, b)
	case UndoOutcome:
		f.undone[b.Operation] = f.undone[b.Operation] || b.State == StateUndone
	case RunStart:
		f.runs[b.Run] = b.Runbook
	case RunEnd:
		if id := f.runs[b.Run]; id != "" && b.State == RunFinished {
			f.rehearsed("runbook/"+id, at)
		}
	case LeaseAct:
		if !b.Lease.From.Before(f.leaseSince) {
			f.state.Incident.Lease, f.leaseSince = b.Lease, b.Lease.From
		}
	}
}

func (f *folding) open(b IncidentOpen, at time.Time, actor string) {
	i := &f.state.Incident
	if i.OpenedAt.IsZero() || at.Before(i.OpenedAt) {
		i.OpenedAt, f.state.OpenedBy = at, actor
	}
	i.Title, f.lastOpen = b.Title, true
}

func (f *folding) propose(b Proposed, at time.Time, actor string) {
	d, err := directive.Parse([]byte(b.Payload))
	if err != nil || d.ID != b.ID {
		f.state.Unreadable = append(f.state.Unreadable, b.ID)
		return
	}
	// Doubled proposals of one id have one payload; the one with more signatures
	// is further. Who proposed it, and when, stays what it was.
	have, doubled := f.proposals[b.ID]
	if doubled && !further(b.Token, have.Token) {
		return
	}
	if doubled {
		at, actor = have.At, have.Actor
	}
	f.proposals[b.ID] = Proposal{Directive: d, Payload: b.Payload, Token: b.Token, Needs: b.Needs, At: at, Actor: actor}
}

func (f *folding) sign(b Signed) {
	d, ok := directiveIn(b)
	if !ok || d.ID != b.ID {
		f.state.Unreadable = append(f.state.Unreadable, b.ID)
		return
	}
	if have := f.issued[b.ID]; have == nil {
		f.issued[b.ID] = &model.Issued{Directive: d, Token: b.Token}
		f.signers[b.ID] = map[string]bool{}
	} else if further(b.Token, have.Token) {
		have.Directive, have.Token = d, b.Token
	}
	for _, signer := range b.Signers {
		f.signers[b.ID][signer] = true
	}
}

// further orders two tokens of one id: a longer one has more signatures.
func further(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}

func (f *folding) hear(id, carrier string, word told) {
	if f.words[id] == nil {
		f.words[id] = map[string]told{}
	}
	f.words[id][carrier] = word
}

// reconcile supersedes what carriers had said before reality was read.
func (f *folding) reconcile(b Reconciled, at time.Time) {
	delete(f.words, b.ID)
	f.hear(b.ID, "", told{b.State, at})
}

func (f *folding) pushed(b PushOutcome, at time.Time) {
	f.overState[b.Operation] = b.State
	if o := f.overrides[b.Operation]; o != nil && b.State == StateEffective {
		f.rehearsed("backend/"+o.Backend, at)
	}
}

// rehearsed notes a live use: the latest counts.
func (f *folding) rehearsed(what string, at time.Time) {
	if at.After(f.state.Rehearsals[what].Live) {
		f.state.Rehearsals[what] = model.Rehearsal{Live: at}
	}
}

// finish turns sets into sorted lists and applies what ends what.
func (f *folding) finish() State {
	s := &f.state
	if f.lastOpen {
		s.ClosedAt = time.Time{}
	}
	for _, id := range sortedKeys(f.issued) {
		f.conclude(id)
		s.Issued = append(s.Issued, *f.issued[id])
	}
	slices.SortStableFunc(s.Issued, func(a, b model.Issued) int { return a.Directive.IssuedAt.Compare(b.Directive.IssuedAt) })
	applyEndings(s.Issued)
	for _, id := range sortedKeys(f.proposals) {
		if f.issued[id] == nil && len(f.words[id]) == 0 {
			s.Proposals = append(s.Proposals, f.proposals[id])
		}
	}
	for _, operation := range sortedKeys(f.overrides) {
		if o := f.overrides[operation]; !f.undone[operation] {
			o.State = cmp.Or(f.overState[operation], StateUnconfirmed)
			s.Overrides = append(s.Overrides, *o)
		}
	}
	slices.SortStableFunc(s.Overrides, func(a, b model.Override) int { return a.Since.Compare(b.Since) })
	slices.Sort(s.Unreadable)
	s.Unreadable = slices.Compact(s.Unreadable)
	return *s
}

// conclude settles what became of one directive.
func (f *folding) conclude(id string) {
	i := f.issued[id]
	i.Signers = sortedKeys(f.signers[id])
	var used time.Time
	for _, carrier := range sortedKeys(f.words[id]) {
		word := f.words[id][carrier]
		if i.Outcome == "" || rank(word.state) > rank(i.Outcome) {
			i.Outcome = word.state
		}
		if rank(word.state) >= rank(StatePartial) && (i.FirstSeen.IsZero() || word.at.Before(i.FirstSeen)) {
			i.FirstSeen = word.at
		}
		if rank(word.state) < rank(StateCarried) {
			continue
		}
		if carrier != "" {
			i.Carried = append(i.Carried, carrier)
		}
		if word.at.After(used) {
			used = word.at
		}
	}
	d := &i.Directive
	if !used.IsZero() {
		f.rehearsed(d.Right, used)
		if about := PractisedBy(d); about != "" {
			f.rehearsed(about, used)
		}
	}
	if d.Kind != model.Ping && d.Kind != model.End {
		f.state.Activations[Use{d.Right, d.NotBefore.UTC().Format(dayLayout)}]++
	}
}

// PractisedBy names what a directive uses besides its right, as rehearsals do: a tier
// or a feature; "" for anything else.
func PractisedBy(d *model.Directive) string {
	switch d.Kind {
	case model.Shed:
		return fmt.Sprintf("tier/%s/%d", d.Scope, d.Tier)
	case model.Off:
		return "feature/" + d.Feature
	default:
		return ""
	}
}

// OfEveryService names the same tier of every service, which is that tier of each:
// "tier/*/2" for "tier/edge/2"; "" for what is no tier.
func OfEveryService(name string) string {
	if parts := strings.Split(name, "/"); len(parts) == 3 && parts[0] == "tier" {
		return "tier/" + model.AnyScope + "/" + parts[2]
	}
	return ""
}

// rank orders the states of an outcome: the best of several carriers is what
// became of the directive. One that is not in the list says least.
func rank(state string) int {
	order := []string{StateFailed, StateWithdrawn, StateAbsent, StateUnconfirmed, StateAdvised, StateSent, StateCarried, StatePartial, StateEffective}
	return slices.Index(order, state)
}

// Departed reports whether an outcome says that what was signed has left its console:
// for a carrier, a host, or a person who was told what to do by hand.
func Departed(outcome string) bool { return rank(outcome) >= rank(StateAdvised) }

// applyEndings sets EndedBy: an ending ends exactly the ids it lists that are of
// its kind and scope. Of several endings the first issued counts. One that was
// looked for and is nowhere has ended nothing, nor, unless it is a step of a recovery,
// has one that is not known to have left its console.
func applyEndings(issued []model.Issued) {
	at := make(map[string]int, len(issued))
	for i := range issued {
		at[issued[i].Directive.ID] = i
	}
	for i := range issued {
		e := &issued[i].Directive
		if e.Kind != model.End || issued[i].Outcome == StateAbsent || !e.IsRecovery() && !Departed(issued[i].Outcome) {
			continue
		}
		for _, id := range e.IDs {
			n, known := at[id]
			if !known || issued[n].EndedBy != "" {
				continue
			}
			if d := &issued[n].Directive; d.EndedAs() == e.Ends && d.Scope == e.Scope {
				issued[n].EndedBy = e.ID
			}
		}
	}
}

// directiveIn reads the directive that an entry holds. It judges neither its
// signatures nor its permission.
func directiveIn(body Body) (model.Directive, bool) {
	var payload []byte
	switch b := body.(type) {
	case Intent:
		payload = []byte(b.Payload)
	case Proposed:
		payload = []byte(b.Payload)
	case Signed:
		parts := strings.Split(b.Token, ".")
		if len(parts) < 3 {
			return model.Directive{}, false
		}
		raw, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			return model.Directive{}, false
		}
		payload = raw
	default:
		return model.Directive{}, false
	}
	d, err := directive.Parse(payload)
	return d, err == nil
}
