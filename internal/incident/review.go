package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
	"golang.org/x/crypto/ssh"
)

// Owed is a review that the use of a right still owes: somebody of the group who
// did not ask for it has to say that he has looked. It keeps no incident open.
type Owed struct {
	Incident  string    `json:"incident"`
	ID        string    `json:"id"` // of the directive
	Title     string    `json:"title"`
	Right     string    `json:"right"`
	Group     string    `json:"group"`
	Requester string    `json:"requester"`
	At        time.Time `json:"at"` // when the right was used
}

// Text is one line about it.
func (o Owed) Text() string {
	return fmt.Sprintf("review of %s (%s) of %s by %s: ic incident review %s", o.Title, ShortID(o.ID), o.At.UTC().Format("2006-01-02 15:04Z"), o.Group, ShortID(o.ID))
}

// subjects of what an owner may waive at the close of an incident.
const (
	overrideSubject = "override/"
	hostSubject     = "host/"
)

// signedOff is a sign-off whose signature holds and whose signer is known.
type signedOff struct {
	subject, by string
	whole       audit.Signoff
}

// signedOff lists the sign-offs of one incident that count: of this fleet and
// incident, by a key of the trust root that is not revoked. For what the signer
// may sign off is asked where it is used.
func (d *Desk) signedOff(incident string, all []audit.Signoff) []signedOff {
	var out []signedOff
	for _, s := range all {
		said, fingerprint, err := s.SignedBy(d.o.Realm, d.o.Fleet)
		if err != nil || said.Incident != incident {
			continue
		}
		if who, known := d.o.Bundle.SignerOf(fingerprint); known && !who.Revoked && !who.Machine {
			out = append(out, signedOff{said.Subject, who.Name, s})
		}
	}
	return out
}

// used: what never left, or is nowhere, owes nothing.
func used(is *model.Issued) bool {
	return !slices.Contains([]string{audit.StateAbsent, audit.StateFailed, audit.StateWithdrawn}, is.Outcome)
}

// owedOf lists the reviews that one incident still owes, oldest use first.
func (d *Desk) owedOf(incident string, s *audit.State) []Owed {
	var out []Owed
	said := d.signedOff(incident, s.Signoffs)
	for i := range s.Issued {
		is := &s.Issued[i]
		right, _, known := d.o.Bundle.Right(is.Directive.Right)
		if !known || right.Review == "" || !used(is) {
			continue
		}
		signed := d.seen.verify(is.Token, d.o.Realm, d.o.Fleet)
		if signed == nil {
			continue
		}
		o := Owed{Incident: incident, ID: is.Directive.ID, Title: TitleOf(&is.Directive), Right: is.Directive.Right, Group: right.Review,
			Requester: d.requesterOf(is.Directive.Right, d.signersOf(signed)), At: is.Directive.IssuedAt}
		if !slices.ContainsFunc(said, func(s signedOff) bool { return s.subject == o.ID && d.mayReview(&o, s.by) == "" }) {
			out = append(out, o)
		}
	}
	return out
}

// mayReview says why a person cannot sign a use off, "" when he can.
func (d *Desk) mayReview(o *Owed, person string) string {
	switch {
	case person == o.Requester:
		return person + " asked for it, and nobody reviews himself"
	case !d.o.Bundle.Root.InGroup(o.Group, person):
		return person + " is not in the group " + o.Group
	}
	return ""
}

// owedNow is what the open incident and those before it owe.
func (d *Desk) owedNow(incident string, state *audit.State) []Owed {
	var out []Owed
	for _, before := range d.history.before() {
		out = append(out, d.owedOf(before.Incident.ID, &before)...)
	}
	if incident != "" {
		out = append(out, d.owedOf(incident, state)...)
	}
	return out
}

// Reviews lists what is owed over every incident on this machine.
func (d *Desk) Reviews() ([]Owed, error) {
	all, err := audit.List(d.history.states...)
	if err != nil {
		return nil, err
	}
	out := []Owed{}
	for i := range all {
		out = append(out, d.owedOf(all[i].ID, &all[i].State)...)
	}
	return out, nil
}

// Review signs the use of a right off. id is the directive's, or the end of it.
// It is possible in an open incident and, any time later, in a closed one.
func (d *Desk) Review(ctx context.Context, id, statement string) (Result, error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	d.Refresh(ctx)
	owed, err := d.Reviews()
	if err != nil {
		return Result{}, err
	}
	var found []Owed
	for _, o := range owed {
		if o.ID == id || len(id) >= idTail && strings.HasSuffix(o.ID, id) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return Result{}, fmt.Errorf("%w: %d reviews are owed for %q (ic incident reviews lists them)", ErrNeeds, len(found), id)
	}
	o := &found[0]
	result := Result{ID: o.ID, Incident: o.Incident}
	if d.o.Person == "" {
		return result, fmt.Errorf("%w: no key of yours is in the trust root", ErrReadOnly)
	}
	if why := d.mayReview(o, d.o.Person); why != "" {
		return result, fmt.Errorf("%w: %s", ErrDenied, why)
	}
	if err := d.signOff(ctx, o.Incident, []string{o.ID}, statement); err != nil {
		return result, err
	}
	result.State, result.Detail = Effective, fmt.Sprintf("%s has reviewed %s (%s)", d.o.Person, o.Title, ShortID(o.ID))
	return result, nil
}

// Waive lets an owner accept what would keep the open incident from closing:
// overrides by their operation, hosts that cannot be reached by their name. What
// is in force is never waived.
func (d *Desk) Waive(ctx context.Context, names []string, statement string) (Result, error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	d.Refresh(ctx)
	w := d.world()
	result := Result{Incident: w.Incident.ID}
	switch owners := d.closers(); {
	case d.history.follows() == "":
		return result, fmt.Errorf("%w: nothing is there to waive", ErrNoIncident)
	case d.o.Person == "":
		return result, fmt.Errorf("%w: no key of yours is in the trust root", ErrReadOnly)
	case !d.o.Bundle.Root.InGroup(owners, d.o.Person):
		return result, fmt.Errorf("%w: %s does not own the hosts and backends: that is the group %q", ErrDenied, d.o.Person, owners)
	}
	var subjects []string
	for _, name := range names {
		subject := ""
		for i := range w.Hosts {
			if w.Hosts[i].Host == name && !w.Hosts[i].Reachable {
				subject = hostSubject + name
			}
		}
		for i := range w.Overrides {
			if w.Overrides[i].Operation == name {
				subject = overrideSubject + name
			}
		}
		if subject == "" {
			return result, fmt.Errorf("%w: %q is neither a host that cannot be reached nor an override: nothing else can be waived (ic incident show)", ErrDenied, name)
		}
		subjects = append(subjects, subject)
	}
	if err := d.signOff(ctx, w.Incident.ID, subjects, statement); err != nil {
		return result, err
	}
	result.State, result.Detail = Effective, fmt.Sprintf("%s waives %s", d.o.Person, strings.Join(names, ", "))
	return result, nil
}

// closers is the group that owns the hosts and the ways to them.
func (d *Desk) closers() string {
	return d.o.Bundle.Root.GroupFor(string(policy.Backends) + ".yaml")
}

// waivers are the sign-offs by owners in the open incident, by subject.
func (d *Desk) waivers(incident string, all []audit.Signoff) map[string]audit.Signoff {
	out := map[string]audit.Signoff{}
	for _, s := range d.signedOff(incident, all) {
		if d.o.Bundle.Root.InGroup(d.closers(), s.by) {
			out[s.subject] = s.whole
		}
	}
	return out
}

// signOff signs a statement about each subject and writes it into the incident's
// log: into ours, or, when the incident is not open here, into one that holds
// nothing else.
func (d *Desk) signOff(ctx context.Context, incident string, subjects []string, statement string) error {
	var bodies []audit.Body
	for _, subject := range subjects {
		raw, err := audit.NewSignoff(d.o.Fleet, incident, subject, strings.TrimSpace(statement), d.o.Clock.Now().Wall)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDenied, err)
		}
		sig, err := d.withKey(ctx, func(key ssh.Signer) (sshsig.Signature, error) {
			return sshsig.Sign(key, d.o.Rand, raw, d.o.Realm.Namespace("signoff", d.o.Fleet))
		})
		if err != nil {
			return fmt.Errorf("sign: %w", err)
		}
		bodies = append(bodies, audit.Signoff{Statement: string(raw), Signature: sig.Blob})
	}
	if incident != d.history.follows() {
		return d.appendLater(ctx, incident, bodies, "signed off")
	}
	w := d.world()
	log, err := d.session(ctx, &w)
	if err != nil {
		return err
	}
	for _, body := range bodies {
		if err := log.Append(body); err != nil {
			return fmt.Errorf("write the sign-off down: %w", err)
		}
	}
	d.publish()
	return nil
}

// appendLater writes into the folder of an incident that is over: a session of its
// own, which begins, says this, and ends.
func (d *Desk) appendLater(ctx context.Context, incident string, bodies []audit.Body, why string) error {
	d.sessions.Lock()
	defer d.sessions.Unlock()
	log, _, err := d.begin(ctx, incident, nil)
	if err != nil {
		return err
	}
	for _, body := range bodies {
		if err := log.Append(body); err != nil {
			return fmt.Errorf("write it down: %w", err)
		}
	}
	err = log.Close(why)
	d.history.again()
	d.publish()
	return err
}
