package incident

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

// waitsAtMost is how long a proposal without a window of its own is shown to wait
// that is known from the board alone: nobody takes one down there.
const waitsAtMost = 24 * time.Hour

// proposal is one that was verified, with its token as far as it has come.
type proposal struct {
	token  string
	signed *directive.Signed
	names  []string // who signed
	logged *audit.Proposal
}

// pending are the proposals of our log and of the board, by id. Of one that stands
// in both, the text with more signatures counts.
func (d *Desk) pending(w *model.World, state *audit.State, h *heard) map[string]proposal {
	out := map[string]proposal{}
	for i := range state.Proposals {
		p := &state.Proposals[i]
		if signed := d.seen.verify(p.Token, d.o.Realm, d.o.Fleet); signed != nil && signed.Directive.ID == p.Directive.ID {
			out[p.Directive.ID] = proposal{token: p.Token, signed: signed, names: d.signersOf(signed), logged: p}
		}
	}
	for id, token := range h.posted {
		known, logged := out[id]
		signed := d.postedProposal(w, id, token, logged)
		if signed == nil || logged && len(signed.Signers) <= len(known.signed.Signers) {
			continue
		}
		out[id] = proposal{token: token, signed: signed, names: d.signersOf(signed), logged: known.logged}
	}
	return out
}

// postedProposal takes nobody's word for a proposal on the board: it verifies under
// its own id, everybody who signed is in the trust root, and it belongs to the
// incident that is open here, if one is.
func (d *Desk) postedProposal(w *model.World, id, token string, logged bool) *directive.Signed {
	signed := d.seen.verify(token, d.o.Realm, d.o.Fleet)
	if signed == nil || signed.Directive.ID != id || d.strange(signed) {
		return nil
	}
	dir := &signed.Directive
	switch {
	case logged:
		return signed
	case !w.Incident.OpenedAt.IsZero() && dir.Incident != w.Incident.ID:
		return nil
	case w.Now.Sub(dir.IssuedAt).Abs() > waitsAtMost:
		return nil
	}
	return signed
}

// strange: somebody signed who is not in the trust root, or no longer.
func (d *Desk) strange(signed *directive.Signed) bool {
	return slices.ContainsFunc(signed.Fingerprints(), func(fp string) bool {
		who, known := d.o.Bundle.SignerOf(fp)
		return !known || who.Revoked
	})
}

// waiting lists what waits for signatures, oldest first: verified, not yet
// complete anywhere that we know of, and with a window that is not over.
func (d *Desk) waiting(w *model.World, state *audit.State, h *heard) []model.Proposal {
	var out []model.Proposal
	for id, p := range d.pending(w, state, h) {
		dir := &p.signed.Directive
		over := !dir.NotAfter.IsZero() && !w.Now.Before(dir.NotAfter)
		if over || slices.ContainsFunc(w.Issued, func(is model.Issued) bool { return is.Directive.ID == id }) {
			continue
		}
		out = append(out, model.Proposal{ID: id, Right: dir.Right, Scope: dir.Scope, Requester: d.requesterOf(dir.Right, p.names), At: dir.IssuedAt, Signers: p.names})
	}
	slices.SortFunc(out, func(a, b model.Proposal) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

// proposals are those of the world, with what a second person needs to sign.
func (d *Desk) proposals(w *model.World, state *audit.State, h *heard) []Proposal {
	var out []Proposal
	pending := d.pending(w, state, h)
	for i := range w.Proposals {
		p := pending[w.Proposals[i].ID]
		v := Proposal{Directive: p.signed.Directive, Token: p.token, Needs: d.needsOf(w, &p)}
		if end := v.Directive.NotAfter; !end.IsZero() {
			v.Left = model.Duration(end.Sub(w.Now))
		}
		out = append(out, v)
	}
	return out
}

// needsOf says what a proposal waits for: as it was when it was written into our
// log, and as it is now when somebody has signed since, or when only the board
// knows it.
func (d *Desk) needsOf(w *model.World, p *proposal) string {
	needs := ""
	if p.logged != nil && p.logged.Token == p.token {
		for _, r := range p.logged.Needs {
			needs = decisions.Sentence(r)
		}
		return needs
	}
	request := model.Request{Directive: p.signed.Directive, Actor: d.requesterOf(p.signed.Directive.Right, p.names)}
	for _, name := range p.names {
		if name != request.Actor {
			request.Cosigners = append(request.Cosigners, name)
		}
	}
	verdict := decisions.Evaluate(d.o.Bundle, w, &request)
	for _, r := range verdict.Reasons {
		if needs == "" || r.Code == model.CodeQuorum {
			needs = decisions.Sentence(r)
		}
	}
	if needs == "" {
		needs = "nobody: whoever carries it (ic cosign) makes it take effect"
	}
	return needs
}
