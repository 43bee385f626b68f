package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
)

// MaxText is the longest sentence of a history line in bytes: what a person reads
// in one go. The entry itself has all of it.
const MaxText = 400

// Line is one entry for the eye: safe to print, one sentence.
type Line struct {
	At     time.Time
	Actor  string
	Kind   Kind
	Text   string
	Origin string
	Seq    int64
	Late   bool // chained after the fact; At is when it happened
}

func lineOf(e placed) Line {
	l := Line{At: e.At, Actor: e.Actor, Kind: e.Kind(), Origin: e.origin, Seq: e.Seq}
	body := e.Body
	if late, ok := body.(Late); ok {
		r := late.Receipt
		l.Late, l.Kind, l.Actor = true, r.Kind, r.Actor
		if at, err := unstamp(r.At); err == nil {
			l.At = at
		}
		if inner, err := readBody(r.Kind, r.Body); err == nil {
			body = inner
		}
	}
	l.Actor = untrusted.Text(l.Actor, maxActor)
	l.Kind = Kind(untrusted.Text(string(l.Kind), maxActor))
	l.Text = untrusted.Text(sentence(body), MaxText)
	return l
}

// Kind is the kind of the entry's body.
func (e Entry) Kind() Kind { return e.Body.Kind() }

// sentence says what an entry records. It is not safe to print yet.
func sentence(body Body) string {
	switch b := body.(type) {
	case SessionStart:
		return sessionSentence(b)
	case SessionEnd:
		return "session ended" + because(b.Why)
	case IncidentOpen:
		return "incident opened: " + b.Title
	case IncidentClose:
		return "incident closed" + because(b.Note)
	case Intent:
		return intentSentence(b)
	case Proposed:
		return fmt.Sprintf("%s waits for signatures: %s", b.ID, codes(b.Needs))
	case Signed:
		return fmt.Sprintf("%s%s signed by %s", b.ID, what(b), strings.Join(b.Signers, ", "))
	case Outcome:
		return fmt.Sprintf("%s by %s: %s%s", b.ID, b.Carrier, b.State, because(b.Detail))
	case Reconciled:
		return fmt.Sprintf("%s, read from reality: %s%s", b.ID, b.State, because(b.Detail))
	case Denied:
		return fmt.Sprintf("%s refused: %s", asked(b.Request), codes(b.Reasons))
	case Note:
		return b.Text
	default:
		return operationSentence(body)
	}
}

func operationSentence(body Body) string {
	switch b := body.(type) {
	case PushIntent:
		return fmt.Sprintf("push %s by %s: %d directives, restarts %d", b.Operation, b.Backend, len(b.IDs), b.Restarts)
	case PushOutcome:
		return fmt.Sprintf("push %s: %s %d/%d%s", b.Operation, b.State, b.Done, b.Total, because(b.Detail))
	case UndoIntent:
		return fmt.Sprintf("undo %s by %s, restarts %d", b.Operation, b.Backend, b.Restarts)
	case UndoOutcome:
		return fmt.Sprintf("undo %s: %s %d/%d%s", b.Operation, b.State, b.Done, b.Total, because(b.Detail))
	case LeaseAct:
		return leaseSentence(b)
	case Verified:
		if b.Failure != "" {
			return "log verified, and it failed: " + b.Failure
		}
		return fmt.Sprintf("log verified: %d entries in %d files", b.Entries, b.Files)
	case Signoff:
		return signoffSentence(b)
	case Exported:
		return fmt.Sprintf("log exported as %s, sha256 %s", b.Format, b.SHA256)
	default:
		return runSentence(body)
	}
}

func sessionSentence(b SessionStart) string {
	if b.Sealed == nil {
		return "session began"
	}
	return fmt.Sprintf("session goes on in segment %d after entry %d of %s: %s", b.Segment, b.Sealed.Size, b.Sealed.Origin, b.Sealed.Why)
}

func intentSentence(b Intent) string {
	text := fmt.Sprintf("%s: %s", asked(b.Request), b.Verdict.Outcome)
	if len(b.Verdict.Reasons) > 0 {
		text += " (" + codes(b.Verdict.Reasons) + ")"
	}
	if !b.Asked {
		text += "; nobody was asked"
	}
	return text
}

func leaseSentence(b LeaseAct) string {
	l := b.Lease
	until := " until " + stamp(l.Until)
	switch b.Action {
	case LeaseOffer:
		return "command offered by " + l.Holder + " to " + l.OfferedTo
	case LeaseAccept:
		return "command accepted by " + l.Holder + until
	case LeaseDeputy:
		return l.Deputy + " named deputy by " + l.Holder
	case LeaseRelinquish:
		return "command given up by " + l.Holder
	default:
		return "command taken by " + l.Holder + until
	}
}

func signoffSentence(b Signoff) string {
	s, err := b.Read()
	if err != nil {
		return "a sign-off that cannot be read"
	}
	return fmt.Sprintf("signed off %s%s", s.Subject, because(s.Statement))
}

func asked(a Ask) string {
	return fmt.Sprintf("%s of %s under %s for %s%s", a.Kind, a.Scope, a.Right, a.Actor, because(a.Reason))
}

// what names the kind and scope of a signed directive.
func what(b Signed) string {
	d, ok := directiveIn(b)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%s of %s)", d.Kind, d.Scope)
}

func because(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

func codes(reasons []model.Reason) string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = string(r.Code)
	}
	return strings.Join(out, ", ")
}
