package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/sshsig"
	"github.com/oklog/ulid/v2"
	"golang.org/x/crypto/ssh"
)

// Execute is the road: verdict, intent on disk, sign, carry, observe, outcome on
// disk. It judges again whatever the caller has shown before, on a world read
// afresh. ErrDenied and ErrNeeds come with a Result that says why.
func (d *Desk) Execute(ctx context.Context, act Act) (Result, error) {
	if d.o.Bundle.Direction(&act.Request.Directive) != model.Tighten {
		// What opens or recovers is judged by what is true now. What tightens waits
		// for nobody: not for a push that is under way, not for a key that another
		// act wants to be touched.
		d.acts.Lock()
		defer d.acts.Unlock()
		d.Refresh(ctx)
	}
	w := d.world()
	act.Request.Actor = d.o.Person
	act.Request.Cosigners = nil
	if err := once(&w, act.ID); err != nil {
		return Result{ID: act.ID, Incident: w.Incident.ID}, err
	}
	act.Request.Directive.ID = act.ID
	adopt(&act.Request.Directive, &w)
	verdict := decisions.Evaluate(d.o.Bundle, &w, &act.Request)
	result := Result{Verdict: verdict, Reasons: sentences(&verdict), Incident: w.Incident.ID}
	switch {
	case verdict.Outcome == model.Permitted:
		return d.carryOut(ctx, &w, act, result)
	case verdict.Outcome == model.Needs && onlySignatures(&verdict):
		return d.propose(ctx, &w, act, result)
	case verdict.Outcome == model.Needs:
		return d.refuse(ctx, &w, act, result, ErrNeeds)
	default:
		return d.refuse(ctx, &w, act, result, ErrDenied)
	}
}

// Refuse writes down that a wish, as it was shown, is not possible. It never
// acts: what has become possible since has to be shown and asked for again.
func (d *Desk) Refuse(ctx context.Context, p Preview) (Result, error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	w := d.world()
	kind := ErrDenied
	if p.Verdict.Outcome == model.Needs {
		kind = ErrNeeds
	}
	return d.refuse(ctx, &w, Act{Request: p.Request}, Result{Verdict: p.Verdict, Reasons: p.Reasons, Incident: w.Incident.ID}, kind)
}

// adopt puts a draft into the incident and the policy of the world it is judged
// in: a confirmation may have been on screen for a while. Start and end of a window
// stay as they were shown: what was confirmed is the most that is signed, and a slow
// answer only makes it shorter. What has no end begins when it is signed: dwell and
// the pause between two steps of a ramp count from there.
func adopt(r *model.Directive, w *model.World) {
	r.Incident, r.Policy, r.Fleet = w.Incident.ID, w.Policy, w.Fleet
	if now := w.Now.Truncate(time.Second); now.After(r.IssuedAt) {
		r.IssuedAt = now
	}
	if r.NotAfter.IsZero() && r.NotBefore.Before(r.IssuedAt) {
		r.NotBefore = r.IssuedAt
	}
}

func onlySignatures(v *model.Verdict) bool {
	for _, r := range v.Reasons {
		if r.Code != model.CodeQuorum {
			return false
		}
	}
	return true
}

// refuse writes the refusal down and returns it. A log that cannot take it does
// not change the answer.
func (d *Desk) refuse(ctx context.Context, w *model.World, act Act, result Result, kind error) (Result, error) {
	if d.o.Person != "" && !w.Incident.OpenedAt.IsZero() {
		if log, err := d.session(ctx, w); err == nil {
			d.note(log, audit.Denied{Request: audit.AskOf(&act.Request), Reasons: result.Verdict.Reasons})
		}
	}
	d.publish()
	return result, fmt.Errorf("%w: %s", kind, strings.Join(result.Reasons, "; "))
}

// carryOut takes a permitted act down the road.
func (d *Desk) carryOut(ctx context.Context, w *model.World, act Act, result Result) (Result, error) {
	log, _, token, err := d.signAct(ctx, w, &act, &result)
	if err != nil {
		return result, err
	}
	return d.deliver(ctx, log, &act.Request.Directive, token, []string{d.o.Person}, result)
}

// signAct takes an act from its verdict to our signature: a log, the bytes, the
// intent on disk, the key.
func (d *Desk) signAct(ctx context.Context, w *model.World, act *Act, result *Result) (log *audit.Writer, payload []byte, token string, err error) {
	if log, err = d.session(ctx, w); err != nil {
		return nil, nil, "", err
	}
	if result.Verdict.Direction != model.Tighten && !d.machine() && !w.Incident.Lease.Held(d.o.Person, w.Now) {
		// The verdict was for who opens the incident and takes command with it.
		return nil, nil, "", fmt.Errorf("%w: command of incident %s could not be taken: nothing was signed (ic incident show)", ErrNeeds, w.Incident.ID)
	}
	dir := &act.Request.Directive
	dir.Incident = w.Incident.ID
	if payload, err = d.fix(dir, log); err != nil {
		return nil, nil, "", err
	}
	result.ID, result.Incident = dir.ID, dir.Incident
	intent := audit.Intent{Payload: string(payload), Request: audit.AskOf(&act.Request), Verdict: result.Verdict, Asked: act.Asked}
	if err = d.before(log, result.Verdict.Direction, intent, result); err != nil {
		return nil, nil, "", err
	}
	token, err = d.sign(ctx, payload, nil)
	return log, payload, token, err
}

// fix gives a directive its id, unless it was fixed before, and the head of our
// log, and its bytes: from here on it is what it is.
func (d *Desk) fix(dir *model.Directive, log *audit.Writer) ([]byte, error) {
	if dir.ID == "" {
		id, err := ulid.New(ulid.Timestamp(d.o.Clock.Now().Wall), d.o.Rand)
		if err != nil {
			return nil, fmt.Errorf("make an id: %w", err)
		}
		dir.ID = id.String()
	}
	dir.Log = log.Head()
	return directive.Encode(*dir)
}

// before writes the intent. Whatever opens or recovers needs it durable; what
// tightens gets a receipt when no disk can take it.
func (d *Desk) before(log *audit.Writer, direction model.Direction, intent audit.Intent, result *Result) error {
	if direction == model.Tighten {
		result.Receipt = d.note(log, intent)
		return nil
	}
	if err := log.Append(intent); err != nil {
		return fmt.Errorf("%w: %w: nothing was signed", ErrNeeds, err)
	}
	return nil
}

// note writes an entry that must not hold anything up, and keeps its receipt on
// screen when no disk could take it.
func (d *Desk) note(log *audit.Writer, body audit.Body) string {
	receipt, err := log.AppendOrReceipt(body)
	if err != nil {
		return err.Error()
	}
	d.receiptMu.Lock()
	defer d.receiptMu.Unlock()
	if receipt == nil {
		if len(log.Late()) == 0 {
			d.receipts = nil
		}
		return ""
	}
	d.receipts = append(d.receipts, receipt.Text())
	return receipt.Text()
}

// sign adds our signature to those at hand.
func (d *Desk) sign(ctx context.Context, payload []byte, others []sshsig.Signature) (string, error) {
	sig, err := d.withKey(ctx, func(key ssh.Signer) (sshsig.Signature, error) {
		return directive.Sign(key, d.o.Rand, payload, d.o.Realm, d.o.Fleet)
	})
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return directive.Token(payload, append(slices.Clone(others), sig)...)
}

// withKey lets our key sign something, and waits for it no longer than a person
// needs to touch it.
func (d *Desk) withKey(ctx context.Context, sign func(ssh.Signer) (sshsig.Signature, error)) (sshsig.Signature, error) {
	limited, cancel := context.WithTimeout(ctx, signLimit)
	defer cancel()
	type answer struct {
		sig sshsig.Signature
		err error
	}
	done := make(chan answer, 1)
	go func() {
		key, err := d.o.Signer(limited)
		if err != nil {
			done <- answer{err: err}
			return
		}
		sig, err := sign(key)
		done <- answer{sig, err}
	}()
	select {
	case <-limited.Done():
		return sshsig.Signature{}, fmt.Errorf("the key did not answer within %s: %w", signLimit, limited.Err())
	case a := <-done:
		return a.sig, a.err
	}
}

// deliver writes down what was signed, hands it to every carrier, and counts
// the hosts that report it.
func (d *Desk) deliver(ctx context.Context, log *audit.Writer, dir *model.Directive, token string, signers []string, result Result) (Result, error) {
	d.inFlight.Store(dir.ID, true)
	defer d.inFlight.Delete(dir.ID)
	signed := audit.Signed{ID: dir.ID, Token: token, Signers: signers}
	if result.Verdict.Direction == model.Tighten {
		if text := d.note(log, signed); text != "" {
			result.Receipt = text
		}
	} else if err := log.Append(signed); err != nil {
		return result, fmt.Errorf("%w: %w: it was signed and not sent", ErrNeeds, err)
	}
	result.Token, result.State = token, Sent
	if w := d.world(); d.advises(&w) {
		d.advise(log, dir, &result)
		d.publish()
		return result, nil
	}
	result.Carriers = d.carry(ctx, log, dir.ID, token)
	d.observe(ctx, log, dir, &result)
	d.publish()
	return result, nil
}

// carry gives the token to all carriers at once. A carrier that fails is a line,
// not an error: break-glass is what it is for.
func (d *Desk) carry(ctx context.Context, log *audit.Writer, id, token string) []string {
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, len(d.o.Carriers))
	for _, c := range d.o.Carriers {
		go func() {
			limited, cancel := context.WithTimeout(ctx, carryLimit)
			defer cancel()
			answers <- answer{c.Name(), c.Put(limited, id, token)}
		}()
	}
	var lines []string
	for range d.o.Carriers {
		a := <-answers
		outcome := audit.Outcome{ID: id, Carrier: a.name, State: audit.StateCarried}
		line := a.name + ": carried"
		if a.err != nil {
			// A deadline says nothing about whether the write arrived.
			outcome.State, outcome.Detail = audit.StateUnconfirmed, a.err.Error()
			line = a.name + ": " + a.err.Error()
		}
		d.note(log, outcome)
		lines = append(lines, line)
	}
	return lines
}

// observe reads host reports until all have it or the time is over. It is the
// only source of the word effective.
func (d *Desk) observe(ctx context.Context, log *audit.Writer, dir *model.Directive, result *Result) {
	if d.o.Hosts == nil {
		result.State, result.Detail = Unconfirmed, "no host reports are configured"
		d.note(log, audit.Outcome{ID: dir.ID, Carrier: audit.HostReports, State: audit.StateUnconfirmed, Detail: result.Detail})
		return
	}
	looks := d.looks(ctx, observeLimit)
	defer looks.end()
	var reach Reach
	for {
		d.lookAtHosts(looks.ctx)
		w := d.world()
		reach = ReachOf(&w, dir, d.o.ReportAge)
		d.publish()
		if reach.Total > 0 && reach.Done == reach.Total || notYet(dir, &w) {
			break
		}
		if !looks.next() {
			break
		}
	}
	result.Done, result.Total, result.State = reach.Done, reach.Total, reach.State()
	result.Detail = fmt.Sprintf("%d of %d hosts report it", reach.Done, reach.Total)
	if w := d.world(); result.State != Effective && notYet(dir, &w) {
		result.State, result.Detail = Sent, fmt.Sprintf("it starts at %s; no host reports it before", dir.NotBefore.UTC().Format("15:04:05Z"))
	}
	if reach.Unreachable > 0 {
		result.Detail += fmt.Sprintf("; %d cannot be reached", reach.Unreachable)
	}
	d.note(log, audit.Outcome{ID: dir.ID, Carrier: audit.HostReports, State: string(result.State), Detail: result.Detail})
}

// lookAtHosts asks every host once. An answer that was cut off by the end of the
// caller's own patience is no knowledge and is dropped.
func (d *Desk) lookAtHosts(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	hosts := d.o.Hosts(limited)
	if ctx.Err() == nil {
		d.seen.takeHosts(hosts, d.o.Clock.Now().Wall)
	}
}

// notYet: a directive that starts later cannot be in force on any host now.
func notYet(dir *model.Directive, w *model.World) bool { return w.Now.Before(dir.NotBefore) }

// session opens our log on the first act, and the incident with it when none is
// open: whoever acts first opens it and takes command.
func (d *Desk) session(ctx context.Context, w *model.World) (*audit.Writer, error) {
	d.sessions.Lock()
	defer d.sessions.Unlock()
	if d.o.Person == "" {
		return nil, fmt.Errorf("%w: no key of yours is in the trust root (ic keys list)", ErrReadOnly)
	}
	if open := d.history.follows(); open != "" && open != w.Incident.ID && w.Incident.OpenedAt.IsZero() {
		// One was opened while this was being judged, by another console or by
		// another act of ours: a second one would split the night's log.
		w.Incident = model.Incident{ID: open, OpenedAt: w.Now}
	}
	log := d.log.Load()
	if log != nil && log.incident == w.Incident.ID && !log.Over() {
		return log.Writer, nil
	}
	var late []audit.Receipt
	if log != nil {
		_ = log.Close("another session began") // what it could not chain goes into the new one
		late = log.Late()
	}
	fresh, name, err := d.begin(ctx, w.Incident.ID, late)
	if err != nil {
		return nil, err
	}
	d.log.Store(&openLog{Writer: fresh, incident: w.Incident.ID, session: name})
	opens := d.history.follows() == "" && w.Incident.OpenedAt.IsZero()
	d.history.follow(w.Incident.ID)
	if opens {
		d.openIncident(ctx, fresh, w)
	}
	return fresh, nil
}

// begin opens a new log of ours in an incident, under a name of its own.
func (d *Desk) begin(ctx context.Context, incident string, late []audit.Receipt) (log *audit.Writer, name string, err error) {
	name = d.o.Session
	if d.begun > 0 {
		name = fmt.Sprintf("%s-%d", name, d.begun+1)
	}
	log, err = audit.Open(d.o.State, audit.Options{
		Realm: d.o.Realm, Fleet: d.o.Fleet, Incident: incident, Session: name, Actor: d.o.Person,
		Second: d.o.Second, Clock: d.o.Clock, Rand: d.o.Rand, FS: d.o.FS, Late: late,
		Certify: func(statement []byte) ([]byte, error) { return d.certify(ctx, statement) },
	})
	if err != nil {
		return nil, "", fmt.Errorf("open the log: %w", err)
	}
	d.begun++
	return log, name, nil
}

func (d *Desk) certify(ctx context.Context, statement []byte) ([]byte, error) {
	sig, err := d.withKey(ctx, func(key ssh.Signer) (sshsig.Signature, error) {
		return sshsig.Sign(key, d.o.Rand, statement, d.o.Realm.Namespace("session", d.o.Fleet))
	})
	return sig.Blob, err
}
