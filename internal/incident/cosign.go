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
	"github.com/degradedmode/ic/internal/policy"
)

// propose signs a request that lacks only other people, and writes down that it
// waits. Its token, with our signature on it, is what the others sign.
func (d *Desk) propose(ctx context.Context, w *model.World, act Act, result Result) (Result, error) {
	log, payload, token, err := d.signAct(ctx, w, &act, &result)
	if err != nil {
		return result, err
	}
	id := act.Request.Directive.ID
	waits := audit.Proposed{ID: id, Payload: string(payload), Token: token, Needs: result.Verdict.Reasons}
	if result.Verdict.Direction == model.Tighten {
		if text := d.note(log, waits); text != "" {
			result.Receipt = text
		}
	} else if err := log.Append(waits); err != nil {
		return result, fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	d.post(ctx, id, token)
	result.State, result.Token = Proposed, token
	result.Detail = fmt.Sprintf("waits: %s; the window starts at %s whoever is late",
		strings.Join(result.Reasons, "; "), act.Request.Directive.NotBefore.UTC().Format("15:04:05Z"))
	d.publish()
	return result, fmt.Errorf("%w: %s", ErrNeeds, strings.Join(result.Reasons, "; "))
}

// post puts a proposal on the board for the others; paste and file work without
// one.
func (d *Desk) post(ctx context.Context, id, token string) {
	if d.o.Board == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, carryLimit)
	defer cancel()
	if cell, err := d.o.Board.Proposal(limited, id); err == nil {
		_ = d.o.Board.SwapProposal(limited, id, cell.Revision, token) // a courtesy: the token is on screen too
	}
}

// Approval is a proposal as a co-signer has to see it before signing.
type Approval struct {
	Directive model.Directive     `json:"directive"`
	Title     string              `json:"title"`
	Requester string              `json:"requester"`
	Signers   []string            `json:"signers"`
	Mine      bool                `json:"mine"` // our signature is on it already
	Verdict   model.Verdict       `json:"verdict"`
	Reasons   []string            `json:"reasons"`
	Exposure  *decisions.Exposure `json:"exposure,omitempty"`
	Left      time.Duration       `json:"left"` // until the window is over
	Typed     string              `json:"typed"`
	token     string
	signed    *directive.Signed
}

// ReadProposal verifies a pasted proposal and judges it as if we had signed it.
func (d *Desk) ReadProposal(ctx context.Context, text string) (Approval, error) {
	token := strings.TrimSpace(text)
	signed, err := directive.Verify(token, d.o.Realm, d.o.Fleet)
	if err != nil {
		return Approval{}, fmt.Errorf("%w: the text is not a proposal of this fleet: %w", ErrDenied, err)
	}
	d.Refresh(ctx)
	a := Approval{Directive: signed.Directive, Title: TitleOf(&signed.Directive), token: token, signed: signed}
	for _, fp := range signed.Fingerprints() {
		who, ok := d.o.Bundle.SignerOf(fp)
		if !ok || who.Revoked {
			return a, fmt.Errorf("%w: it is signed by a key that is not in the trust root or revoked (%s)", ErrDenied, fp)
		}
		a.Signers = append(a.Signers, who.Name)
	}
	a.Mine = slices.Contains(a.Signers, d.o.Person)
	w, err := d.worldOfProposal(&a.Directive)
	if err != nil {
		return a, err
	}
	d.judge(&w, &a)
	return a, nil
}

// worldOfProposal is the world in the incident of a proposal. A console that has
// none open looks at the board for who commands that one; a console that has
// another one open would sign for a night that it does not see.
func (d *Desk) worldOfProposal(dir *model.Directive) (model.World, error) {
	h := d.seen.copy()
	incident, state := d.history.now()
	w := d.worldOf(&h, incident, &state)
	switch {
	case incident == "":
		w.Incident = model.Incident{ID: dir.Incident, OpenedAt: w.Now, Lease: d.leaseOf(dir.Incident, model.Lease{}, &h)}
	case incident != dir.Incident:
		return w, fmt.Errorf("%w: the proposal belongs to incident %s and %s is open here: close it, or sign at another seat", ErrDenied, dir.Incident, incident)
	}
	return w, nil
}

// requesterOf is who asked, as far as signatures tell: the first of the signers
// who holds the role of the right, or else the first.
func (d *Desk) requesterOf(right string, signers []string) string {
	if len(signers) == 0 {
		return ""
	}
	row, _, _ := d.o.Bundle.Right(right)
	for _, name := range signers {
		if d.o.Bundle.Root.HasRole(row.Who, signerNamed(d, name)) {
			return name
		}
	}
	return signers[0]
}

// signersOf names who signed, in the order of the signatures. A key that is
// nobody's has no name.
func (d *Desk) signersOf(signed *directive.Signed) []string {
	var out []string
	for _, fp := range signed.Fingerprints() {
		if s, ok := d.o.Bundle.SignerOf(fp); ok {
			out = append(out, s.Name)
		}
	}
	return out
}

// judge evaluates a proposal for the requester that makes it valid: the first
// signer who holds the role.
func (d *Desk) judge(w *model.World, a *Approval) {
	names := a.Signers
	if !a.Mine && d.o.Person != "" {
		names = append(slices.Clone(names), d.o.Person)
	}
	a.Requester = d.requesterOf(a.Directive.Right, names)
	request := model.Request{Directive: a.Directive, Actor: a.Requester, Evidence: decisions.Seen(&a.Directive)}
	for _, name := range names {
		if name != a.Requester {
			request.Cosigners = append(request.Cosigners, name)
		}
	}
	a.Verdict = decisions.Evaluate(d.o.Bundle, w, &request)
	a.Reasons, a.Typed = sentences(&a.Verdict), typedFor(&a.Directive, a.Verdict.Direction)
	if !a.Directive.NotAfter.IsZero() {
		a.Left = a.Directive.NotAfter.Sub(w.Now)
	}
	if a.Directive.Kind == model.Bypass {
		worst := decisions.WorstCase(d.o.Bundle, w, &a.Directive)
		a.Exposure = &worst
	}
}

func signerNamed(d *Desk, name string) (s policy.Signer) {
	s.Name = name
	_, s.Machine = d.o.Bundle.Root.Machines[name]
	return s
}

// Cosign adds our signature to a proposal and carries it when that makes it
// complete. When command cannot be confirmed from here, the token goes back to
// the requester, who carries it with the same verb.
func (d *Desk) Cosign(ctx context.Context, a Approval, asked bool) (Result, error) {
	if a.signed == nil {
		return Result{}, fmt.Errorf("%w: nothing was read that could be signed", ErrDenied)
	}
	if d.o.Bundle.Direction(&a.Directive) != model.Tighten {
		d.acts.Lock()
		defer d.acts.Unlock()
		d.Refresh(ctx)
	}
	w, err := d.worldOfProposal(&a.Directive)
	if err != nil {
		return Result{ID: a.Directive.ID, Token: a.token}, err
	}
	d.judge(&w, &a)
	result := Result{ID: a.Directive.ID, Verdict: a.Verdict, Reasons: a.Reasons, Incident: a.Directive.Incident, Token: a.token}
	if d.o.Person == "" {
		return result, fmt.Errorf("%w: no key of yours is in the trust root", ErrReadOnly)
	}
	if a.Verdict.Outcome == model.Denied {
		return result, fmt.Errorf("%w: %s", ErrDenied, strings.Join(a.Reasons, "; "))
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return result, err
	}
	request := audit.Ask{Actor: d.o.Person, Right: a.Directive.Right, Kind: a.Directive.Kind, Scope: a.Directive.Scope, Reason: a.Directive.Reason, Cosigners: a.Signers}
	intent := audit.Intent{Payload: string(a.signed.Payload), Request: request, Verdict: a.Verdict, Asked: asked}
	if err := d.before(log, a.Verdict.Direction, intent, &result); err != nil {
		return result, err
	}
	token := a.token
	if !a.Mine {
		if token, err = d.sign(ctx, a.signed.Payload, a.signed.Signers); err != nil {
			return result, err
		}
		a.Signers = append(a.Signers, d.o.Person)
		d.post(ctx, a.Directive.ID, token)
	}
	result.Token = token
	if a.Verdict.Outcome == model.Permitted {
		return d.deliver(ctx, log, &a.Directive, token, a.Signers, result)
	}
	d.note(log, audit.Proposed{ID: a.Directive.ID, Payload: string(a.signed.Payload), Token: token, Needs: a.Verdict.Reasons})
	result.State, result.Detail = Proposed, "signed; give the text back to "+a.Requester+" (ic cosign)"
	d.publish()
	return result, fmt.Errorf("%w: %s", ErrNeeds, strings.Join(a.Reasons, "; "))
}
