package incident

import (
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// deputyFirst is how long after a lapse only the deputy, and whoever let it
// lapse, may take command: two people who see it lapse must not both run for it.
// Without a deputy nobody has to wait.
const deputyFirst = 5 * time.Minute

// renewSoon is how long before the end of a lease its holder is told to renew it.
const renewSoon = 20 * time.Minute

// nextLease says what the lease would be, or why not. A second claimant is told
// who holds it; nobody is overwritten.
func (d *Desk) nextLease(w *model.World, action Action, person string) (model.Lease, error) {
	now, held := w.Now.Truncate(time.Second), w.Incident.Lease
	if !now.After(held.From) {
		// Given by a clock that is ahead, or in this very second: readers go by from,
		// and what follows must not look older or as old.
		now = held.From.Add(time.Second)
	}
	claims := action == Open || action == Take || action == Accept
	if d.o.Person != "" && claims && !d.mayCommand(d.o.Person) {
		return held, fmt.Errorf("%w: %s holds no role of the trust root, so command would be good for nothing", ErrDenied, d.o.Person)
	}
	if claims {
		return d.claim(w, action, person, now)
	}
	if !runs(held, w.Now) || held.Holder != d.o.Person {
		return held, fmt.Errorf("%w: %s does not hold command, and only who holds command can do that: %s", ErrDenied, orReader(d.o.Person), CommandText(&held, w.Now))
	}
	held.From = now
	switch action {
	case Offer:
		if err := d.anotherOne(person); err != nil {
			return held, err
		}
		held.OfferedTo = person
	case Deputise:
		if err := d.anotherOne(person); err != nil {
			return held, err
		}
		held.Deputy = person
	case Relinquish:
		held.Until = now
	default:
		return held, fmt.Errorf("unknown action %q", action)
	}
	return held, nil
}

// claim is the lease of somebody who takes command, renews it or accepts it.
func (d *Desk) claim(w *model.World, action Action, deputy string, now time.Time) (model.Lease, error) {
	held := w.Incident.Lease
	mine := model.Lease{Holder: d.o.Person, From: now, Until: now.Add(LeaseLasts)}
	if action == Open {
		return mine, nil
	}
	if action == Accept {
		if !runs(held, w.Now) || held.OfferedTo != d.o.Person {
			return held, fmt.Errorf("%w: command was not offered to %s: %s", ErrNeeds, d.o.Person, CommandText(&held, w.Now))
		}
		mine.Deputy = held.Holder
		return mine, nil
	}
	if why := mustWait(&held, d.o.Person, w.Now); why != "" {
		return held, fmt.Errorf("%w: %s", ErrNeeds, why)
	}
	if held.Holder == d.o.Person {
		mine.Deputy, mine.OfferedTo = held.Deputy, held.OfferedTo // renewing takes nothing back
	}
	if deputy != "" {
		if err := d.anotherOne(deputy); err != nil {
			return held, err
		}
		mine.Deputy = deputy
	}
	return mine, nil
}

// mustWait says why a person may not take command now, "" when he may.
func mustWait(l *model.Lease, person string, now time.Time) string {
	switch {
	case l.Holder == person:
		return ""
	case runs(*l, now):
		return fmt.Sprintf("%s holds command until %s: ask for it (ic incident give), or wait for the lease to lapse", l.Holder, clockTime(l.Until))
	case onlyDeputy(l, now) && l.Deputy != person:
		return CommandText(l, now)
	}
	return ""
}

// onlyDeputy: it lapsed so lately that the deputy goes first.
func onlyDeputy(l *model.Lease, now time.Time) bool {
	return l.Deputy != "" && !runs(*l, now) && now.Before(l.Until.Add(deputyFirst))
}

// heldByAnother: the board says, now, that somebody else holds command of this
// incident and did not offer it to us, or that a deputy goes first.
func (d *Desk) heldByAnother(text, incident string, action audit.LeaseAction) (model.Lease, bool) {
	of, l, err := d.readLease(text)
	if err != nil || of != incident {
		return l, false
	}
	if action == audit.LeaseAccept && l.OfferedTo == d.o.Person {
		return l, false
	}
	return l, mustWait(&l, d.o.Person, d.o.Clock.Now().Wall) != ""
}

// anotherOne wants somebody else who could use command.
func (d *Desk) anotherOne(person string) error {
	if !d.mayCommand(person) || person == d.o.Person {
		return fmt.Errorf("%w: %q is nobody else with a role in the trust root", ErrDenied, person)
	}
	return nil
}

// CommandText says who commands, until when, and what follows: the same words
// wherever a lease is shown.
func CommandText(l *model.Lease, now time.Time) string {
	switch {
	case l.Holder == "":
		return "nobody holds command"
	case !runs(*l, now):
		text := fmt.Sprintf("nobody holds command: the lease of %s lapsed at %s", l.Holder, clockTime(l.Until))
		if !l.From.Before(l.Until) {
			text = fmt.Sprintf("nobody holds command: %s gave it up at %s", l.Holder, clockTime(l.Until))
		}
		if onlyDeputy(l, now) {
			return text + fmt.Sprintf("; %s is deputy and may take it now, anybody at %s", l.Deputy, l.Until.Add(deputyFirst).UTC().Format("15:04:05Z"))
		}
		if l.Deputy != "" {
			text += "; " + l.Deputy + " was deputy"
		}
		return text
	}
	text := fmt.Sprintf("%s holds command until %s", l.Holder, clockTime(l.Until))
	if l.Deputy != "" {
		text += ", deputy " + l.Deputy
	}
	if l.OfferedTo != "" {
		text += ", offered to " + l.OfferedTo
	}
	if !l.Confirmed {
		text += " (unconfirmed)"
	}
	if left := l.Until.Sub(now); left < renewSoon {
		text += fmt.Sprintf("; %s left: ic incident take renews it", left.Truncate(time.Second))
	}
	return text
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04Z") }

func orReader(person string) string {
	if person == "" {
		return "a reader"
	}
	return person
}
