package incident

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// Action is something done with an incident or with command.
type Action string

// Actions.
const (
	Open       Action = "open"
	Take       Action = "take"
	Offer      Action = "offer"
	Accept     Action = "accept"
	Relinquish Action = "relinquish"
	CloseIt    Action = "close"
)

// Command does something with the incident or with command. person is whom
// command is offered to; note is the title of what is opened or the words at
// closing.
func (d *Desk) Command(ctx context.Context, action Action, person, note string) (Result, error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	d.Refresh(ctx)
	w := d.world()
	result := Result{Incident: w.Incident.ID}
	open := d.history.follows() != ""
	if action != Open && action != Take && !open {
		return result, fmt.Errorf("%w: ic incident open opens one", ErrNoIncident)
	}
	if action == CloseIt {
		return d.closeIncident(ctx, &w, note, result)
	}
	if action == Open && open {
		return result, fmt.Errorf("%w: incident %s is open already; close it first", ErrNeeds, w.Incident.ID)
	}
	next, err := d.nextLease(&w, action, person)
	if err != nil {
		return result, err
	}
	if note != "" {
		w.Incident.Title = note
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return result, err
	}
	if !open {
		// Opening takes command too; there is nothing left to do.
		result.State, result.Detail = Effective, fmt.Sprintf("incident %s is open and %s holds command", w.Incident.ID, d.o.Person)
		d.publish()
		return result, nil
	}
	detail, err := d.setLease(ctx, log, w.Incident.ID, audit.LeaseAction(action), next)
	if err != nil {
		return result, err
	}
	result.State, result.Detail = Effective, detail
	d.publish()
	return result, nil
}

// nextLease says what the lease would be, or why not. A second claimant is told
// who holds it; nobody is overwritten.
func (d *Desk) nextLease(w *model.World, action Action, person string) (model.Lease, error) {
	now, held := w.Now.Truncate(time.Second), w.Incident.Lease
	live := runs(held, w.Now)
	if now.Before(held.From) {
		now = held.From // given by a clock that is ahead: a later lease must not look older
	}
	if d.o.Person != "" && action != Offer && action != Relinquish && !d.mayCommand(d.o.Person) {
		return held, fmt.Errorf("%w: %s holds no role of the trust root, so command would be good for nothing", ErrDenied, d.o.Person)
	}
	mine := model.Lease{Holder: d.o.Person, From: now, Until: now.Add(LeaseLasts)}
	switch action {
	case Open:
		return mine, nil
	case Take:
		if live && held.Holder != d.o.Person {
			return held, fmt.Errorf("%w: %s holds command until %s: ask for it (ic incident give), or wait for the lease to lapse",
				ErrNeeds, held.Holder, held.Until.UTC().Format("15:04Z"))
		}
		return mine, nil
	case Offer:
		if !live || held.Holder != d.o.Person {
			return held, fmt.Errorf("%w: only who holds command can give it away", ErrDenied)
		}
		if !d.mayCommand(person) || person == d.o.Person {
			return held, fmt.Errorf("%w: %q is nobody else with a role in the trust root", ErrDenied, person)
		}
		held.OfferedTo, held.From = person, now
		return held, nil
	case Accept:
		if !live || held.OfferedTo != d.o.Person {
			return held, fmt.Errorf("%w: command was not offered to %s", ErrNeeds, d.o.Person)
		}
		mine.Deputy = held.Holder
		return mine, nil
	case Relinquish:
		if !live || held.Holder != d.o.Person {
			return held, fmt.Errorf("%w: %s does not hold command", ErrDenied, d.o.Person)
		}
		held.Until, held.From = now, now
		return held, nil
	default:
		return held, fmt.Errorf("unknown action %q", action)
	}
}

// setLease writes a lease down and puts it on the board if the board can be
// reached. Without a board it is local and shown as unconfirmed.
func (d *Desk) setLease(ctx context.Context, log *audit.Writer, incident string, action audit.LeaseAction, l model.Lease) (string, error) {
	text, doubt, err := d.postLease(ctx, incident, action, l)
	if err != nil {
		return "", err
	}
	confirmed := "confirmed"
	if l.Confirmed = doubt == ""; !l.Confirmed {
		confirmed = "unconfirmed: " + doubt
	}
	d.note(log, audit.LeaseAct{Action: action, Lease: l, Statement: text})
	return fmt.Sprintf("%s: %s until %s (%s)", action, l.Holder, l.Until.UTC().Format("15:04Z"), confirmed), nil
}

var errFaster = fmt.Errorf("%w: somebody else has just taken command: look again (ic incident show)", ErrNeeds)

// leaseTries is how often a lease is put on a board that somebody else has just
// changed: once more, for what was written before we looked.
const leaseTries = 2

// postLease signs a lease and swaps it in for what stands on the board. doubt says
// why it is not confirmed, "" if it is. Whoever was faster is not overwritten:
// that is the error.
func (d *Desk) postLease(ctx context.Context, incident string, action audit.LeaseAction, l model.Lease) (text, doubt string, err error) {
	cell := d.seen.copy().board
	if d.o.Board == nil {
		text, err = d.encodeLease(ctx, incident, l, cell.Value)
		return text, "no board can be reached, so another console may not know", err
	}
	for range leaseTries {
		at, lookErr := d.lookAtBoard(ctx)
		if lookErr != nil {
			doubt = lookErr.Error()
			break
		}
		if cell = at; text != "" && cell.Value == text {
			return text, "", nil // it stood there all along, and the answer was lost
		}
		if d.heldByAnother(cell.Value, incident, action) {
			return "", "", errFaster
		}
		if text, err = d.encodeLease(ctx, incident, l, cell.Value); err != nil {
			return "", "", err
		}
		limited, cancel := context.WithTimeout(ctx, carryLimit)
		swapErr := d.o.Board.SwapLease(limited, cell.Revision, text)
		cancel()
		if swapErr == nil {
			d.seen.takeBoard(Cell{Value: text, Revision: cell.Revision + 1}, d.o.Clock.Now().Wall)
			return text, "", nil
		}
		doubt = swapErr.Error()
	}
	// The last word may be that of somebody who was faster than we twice.
	if text == "" {
		text, err = d.encodeLease(ctx, incident, l, cell.Value)
		return text, doubt, err
	}
	switch at, lookErr := d.lookAtBoard(ctx); {
	case lookErr != nil:
	case at.Value == text:
		doubt = ""
	case d.heldByAnother(at.Value, incident, action):
		return "", "", errFaster
	}
	return text, doubt, nil
}

// lookAtBoard reads the lease that stands there now, and remembers it.
func (d *Desk) lookAtBoard(ctx context.Context) (Cell, error) {
	limited, cancel := context.WithTimeout(ctx, carryLimit)
	defer cancel()
	cell, err := d.o.Board.Lease(limited)
	if err == nil {
		d.seen.takeBoard(cell, d.o.Clock.Now().Wall)
	}
	return cell, err
}

// heldByAnother: the board says, now, that somebody else holds command of this
// incident, and did not offer it to us.
func (d *Desk) heldByAnother(text, incident string, action audit.LeaseAction) bool {
	of, l, err := d.readLease(text)
	if err != nil || of != incident || l.Holder == d.o.Person || !runs(l, d.o.Clock.Now().Wall) {
		return false
	}
	return action != audit.LeaseAccept || l.OfferedTo != d.o.Person
}

// openIncident writes down that an incident is open and that whoever acted first
// commands it. Neither may hold up a shed; w says afterwards who commands.
func (d *Desk) openIncident(ctx context.Context, log *audit.Writer, w *model.World) {
	d.note(log, audit.IncidentOpen{Title: w.Incident.Title})
	w.Incident.OpenedAt, w.Incident.Lease = w.Now, model.Lease{}
	now := w.Now.Truncate(time.Second)
	mine := model.Lease{Holder: d.o.Person, From: now, Until: now.Add(LeaseLasts)}
	if !d.mayCommand(d.o.Person) {
		return
	}
	if _, err := d.setLease(ctx, log, w.Incident.ID, audit.LeaseTake, mine); err != nil {
		d.note(log, audit.Note{Text: "command was not taken: " + err.Error()})
		return
	}
	w.Incident.Lease = mine
}

// newIncidentID is readable and unique enough for one fleet: the minute and four
// random hex digits.
func newIncidentID(now time.Time, rand io.Reader) string {
	var tail [2]byte
	if _, err := io.ReadFull(rand, tail[:]); err != nil {
		return now.UTC().Format("20060102-150405")
	}
	return now.UTC().Format("20060102-1504-") + hex.EncodeToString(tail[:])
}

// closeIncident refuses while something is still owed, and says all of it.
func (d *Desk) closeIncident(ctx context.Context, w *model.World, note string, result Result) (Result, error) {
	if blockers := d.blockers(w); len(blockers) > 0 {
		result.Reasons = blockers
		return result, fmt.Errorf("%w: %s", ErrNeeds, strings.Join(blockers, "; "))
	}
	log, err := d.session(ctx, w)
	if err != nil {
		return result, err
	}
	if err := log.Append(audit.IncidentClose{Note: note}); err != nil {
		return result, fmt.Errorf("close: %w", err)
	}
	err = d.endSession("the incident was closed")
	if err != nil && !errors.Is(err, audit.ErrNotDurable) {
		return result, err
	}
	d.history.forget()
	d.publish()
	result.State, result.Detail = Effective, fmt.Sprintf("incident %s is closed", result.Incident)
	return result, nil
}

// endSession closes our log; the next act opens another.
func (d *Desk) endSession(why string) error {
	d.sessions.Lock()
	defer d.sessions.Unlock()
	return d.log.Swap(nil).Close(why)
}

// blockers are what keeps an incident open: a live directive, an override still
// in a deploy pipeline, a host nobody has heard of.
func (d *Desk) blockers(w *model.World) []string {
	var out []string
	for i := range w.Issued {
		is := &w.Issued[i]
		if is.LiveAt(w.Now) && holdsFleet(&is.Directive) {
			out = append(out, fmt.Sprintf("%s is in force (%s)", TitleOf(&is.Directive), ShortID(is.Directive.ID)))
		}
		if is.Outcome == "" {
			out = append(out, fmt.Sprintf("what became of %s (%s) is UNKNOWN: ic status reads it", TitleOf(&is.Directive), ShortID(is.Directive.ID)))
		}
	}
	for _, o := range w.Overrides {
		out = append(out, fmt.Sprintf("an override of %s is still on hosts: ic break undo %s", o.Backend, o.Operation))
	}
	var silent []string
	for i := range w.Hosts {
		if !w.Hosts[i].Reachable {
			silent = append(silent, w.Hosts[i].Host)
		}
	}
	if len(silent) > 0 {
		out = append(out, fmt.Sprintf("%d hosts cannot be reached (%s)", len(silent), some(silent)))
	}
	return out
}

// holdsFleet: an ending changes nothing any more, and a recovery that has
// arrived at tier 0 holds nothing.
func holdsFleet(d *model.Directive) bool {
	if d.Kind == model.End {
		return d.IsRecovery() && (d.To > 0 || d.Percent < 100)
	}
	return true
}

// some names the first three.
func some(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}
