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
	Deputise   Action = "deputy"
	Relinquish Action = "relinquish"
	CloseIt    Action = "close"
)

// Command does something with the incident or with command. person is whom
// command is offered to, or who is named deputy; note is the title of what is
// opened or the words at closing.
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

// faster is what the second of two claimants is told.
func faster(l model.Lease) error {
	return fmt.Errorf("%w: %s has just taken command: look again (ic incident show)", ErrNeeds, l.Holder)
}

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
		if by, held := d.heldByAnother(cell.Value, incident, action); held {
			return "", "", faster(by)
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
	at, lookErr := d.lookAtBoard(ctx)
	if lookErr != nil {
		return text, doubt, nil
	}
	if at.Value == text {
		return text, "", nil
	}
	if by, held := d.heldByAnother(at.Value, incident, action); held {
		return "", "", faster(by)
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
	if err := log.Append(audit.IncidentClose{Note: note, Signoffs: d.reliedOn(w)}); err != nil {
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
	waived := d.waivedIn(w)
	for _, o := range w.Overrides {
		if _, ok := waived[overrideSubject+o.Operation]; !ok {
			out = append(out, fmt.Sprintf("an override of %s is still on hosts: ic break undo %s", o.Backend, o.Operation))
		}
	}
	var silent []string
	for i := range w.Hosts {
		if _, ok := waived[hostSubject+w.Hosts[i].Host]; !ok && !w.Hosts[i].Reachable {
			silent = append(silent, w.Hosts[i].Host)
		}
	}
	if len(silent) > 0 {
		out = append(out, fmt.Sprintf("%d hosts cannot be reached (%s)", len(silent), some(silent)))
	}
	return out
}

// waivedIn is what owners have waived in the incident of a world.
func (d *Desk) waivedIn(w *model.World) map[string]audit.Signoff {
	incident, state := d.history.now()
	if incident != w.Incident.ID {
		return nil
	}
	return d.waivers(incident, state.Signoffs)
}

// reliedOn are the waivers without which the incident would not close now.
func (d *Desk) reliedOn(w *model.World) []audit.Signoff {
	var out []audit.Signoff
	waived := d.waivedIn(w)
	for _, o := range w.Overrides {
		if s, ok := waived[overrideSubject+o.Operation]; ok {
			out = append(out, s)
		}
	}
	for i := range w.Hosts {
		if s, ok := waived[hostSubject+w.Hosts[i].Host]; ok && !w.Hosts[i].Reachable {
			out = append(out, s)
		}
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
