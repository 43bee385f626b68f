package decisions

import (
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// AssuranceOf says who holds a fleet to what is decided. Where the policy names
// no host, asks for none and none has reported, nothing verifies and nothing ends
// by itself: ic decides, a person executes.
func AssuranceOf(b *policy.Bundle, w *model.World) model.Assurance {
	if len(w.Hosts) == 0 && len(b.Inventory.Hosts) == 0 && b.Inventory.Query == "" {
		return model.Advised
	}
	return model.HostHeld
}

func (e *evaluation) loosen() {
	if !e.w.Durable {
		e.add(model.Reason{Code: NotDurable})
	}
	if e.w.Clock == model.ClockUnsynced || e.w.Clock == model.ClockBehind {
		e.add(model.Reason{Code: model.CodeClockUnfit})
	}
	if strings.TrimSpace(e.d.Reason) == "" {
		e.add(model.Reason{Code: NoReason})
	}
	e.windowIsOpen()
	if e.right.Bypass == nil {
		return
	}
	e.rehearsed()
	e.nobodyCame()
	if used := usedToday(e.w, e.d); used >= e.right.Bypass.PerDay {
		e.add(model.Reason{Code: PerDay, N: int64(used), M: int64(e.right.Bypass.PerDay)})
	}
	e.liveGrants(int64(e.right.Bypass.Live))
	e.exposure()
}

// exposure denies what could cost more than was signed: more than the grant's own
// total, or, with all other grants of its control, more than the root lets the
// domain lose.
func (e *evaluation) exposure() {
	c := &e.d.Caps
	if c.Under.Minor < 1 || c.HostCount < 1 || c.HostTotal.Minor < 1 || c.Total.Minor < 1 {
		e.add(model.Reason{Code: NoRoom}) // no directive can say it, so nobody must be asked to sign it
		return
	}
	if e.v.Assurance == model.Advised {
		e.add(model.Reason{Code: NotEnforced})
		return
	}
	e.inventoryIsYoung()
	worst := WorstCase(e.b, e.w, e.d)
	switch most := e.b.Root.Domains[e.domain].Total; {
	case worst.Hosts == 0:
		e.add(model.Reason{Code: NoInventory})
	case worst.WorstCase.Minor > worst.Total.Minor:
		e.add(model.Reason{Code: OverTotal, Amount: worst.WorstCase, Limit: worst.Total})
	case most != nil && (most.Currency != worst.Together.Currency || worst.Together.Minor > most.Minor):
		e.add(model.Reason{Code: OverTotal, Name: e.d.Control, Amount: worst.Together, Limit: *most})
	}
}

// inventoryIsYoung wants a list of hosts that is as young as the policy says: a
// fleet that has grown since multiplies the worst case, and nobody would see it.
// One that is dated beyond every clock error was not read at a known time.
func (e *evaluation) inventoryIsYoung() {
	inv := &e.w.Inventory
	if inv.MaxAge <= 0 {
		return
	}
	age := e.w.Now.Sub(inv.At)
	switch limit := int64(inv.MaxAge.Std() / time.Second); {
	case inv.At.IsZero() || age < -policy.MaxAhead:
		e.add(model.Reason{Code: OldInventory, M: limit})
	case age > inv.MaxAge.Std():
		e.add(model.Reason{Code: OldInventory, Wait: model.Duration(age), M: limit})
	}
}

// rehearsed wants a live rehearsal or use that is recent enough. A rehearsal is a
// use of the right itself, or a ping that reached the scope by the same carriers:
// otherwise a right that was never used could never be used. One that is dated
// beyond every clock error is no evidence.
func (e *evaluation) rehearsed() {
	limit := e.right.RehearsedWithin
	if limit <= 0 {
		return
	}
	last, ping := e.lastLive(e.d.Right, time.Time{}), ""
	for _, name := range e.b.RightsOf(model.Ping) {
		if right, _, _ := e.b.Right(name); covers(right.Scope, e.d.Scope) {
			last = e.lastLive(name, last)
			if ping == "" {
				ping = name
			}
		}
	}
	if !last.IsZero() && e.w.Now.Sub(last) <= limit.Std() {
		return
	}
	reason := model.Reason{Code: NotRehearsed, Name: e.d.Right, Other: ping, At: last, M: int64(limit.Std() / time.Second)}
	if !last.IsZero() {
		reason.Wait = model.Duration(e.w.Now.Sub(last))
	}
	e.add(reason)
}

// lastLive is the later of a time and the last live rehearsal of a right.
func (e *evaluation) lastLive(right string, than time.Time) time.Time {
	at := e.w.Rehearsals[right].Live
	if at.After(than) && !at.After(e.w.Now.Add(policy.MaxAhead)) {
		return at
	}
	return than
}

// nobodyCame lets the right for "no second person came" be used only after that
// has happened: somebody proposed the other right for this scope, long enough
// ago, people are still missing, and they could still sign. A proposal whose
// window is over asks nobody any more: it does not count, so that one at dawn does
// not open the whole day. Only the console knows proposals; a host does not.
func (e *evaluation) nobodyCame() {
	rule := e.right.NoSecond
	if rule == nil {
		return
	}
	of, _, known := e.b.Right(rule.Of)
	found, least := false, time.Duration(0)
	for i := range e.w.Proposals {
		p := &e.w.Proposals[i]
		if !known || p.Right != rule.Of || !overlap(p.Scope, e.d.Scope) || !e.asks(p, &of) {
			continue
		}
		if left := remaining(p.At, rule.After, e.w.Now); !found || left < least {
			found, least = true, left
		}
	}
	switch {
	case !found:
		e.add(model.Reason{Code: NoProposal, Name: rule.Of})
	case least > 0:
		e.add(model.Reason{Code: SecondMayCome, Name: rule.Of, Wait: model.Duration(least)})
	}
}

// asks reports whether a proposal still waits for people who could still sign it
// in time.
func (e *evaluation) asks(p *model.Proposal, of *policy.Right) bool {
	lasts := of.Lasts
	if of.Bypass != nil {
		lasts = of.Bypass.Lasts
	}
	end := p.At.Add(of.LeadTime().Std()).Add(lasts.Std())
	return e.w.Now.Before(end) && lacking(e.b, of.Cosign, p.Requester, p.Signers) > 0
}

// liveGrants wants fewer other grants of the right in force during the window
// than the right allows. Hosts keep the earliest open and every other one shut,
// so a grant beyond that would be an act without an effect. What begins exactly
// when another ends does not overlap it.
func (e *evaluation) liveGrants(allowed int64) {
	var n int64
	for i := range e.w.Issued {
		if e.overlaps(&e.w.Issued[i]) {
			n++
		}
	}
	if n < allowed {
		return
	}
	// The first one to end frees a place, unless there are more than may be.
	free := model.Reason{Code: model.CodeOverLive, N: n, M: allowed}
	id := ""
	for range n - max(allowed, 1) + 1 {
		free.At, id = e.nextEnd(free.At, id)
	}
	if n > 0 {
		free.Wait = model.Duration(remaining(free.At, 0, e.w.Now))
	}
	e.add(free)
}

// overlaps reports whether a grant of the same right is, or will be, in force
// during the window that is judged.
func (e *evaluation) overlaps(g *model.Issued) bool {
	d, from := &g.Directive, e.d.NotBefore
	if e.w.Now.After(from) {
		from = e.w.Now
	}
	return d.Kind == model.Bypass && d.Right == e.d.Right && d.ID != e.d.ID && g.EndedBy == "" &&
		d.NotAfter.After(from) && d.NotBefore.Before(e.d.NotAfter)
}

// nextEnd is the end of an overlapping grant that comes next after another.
func (e *evaluation) nextEnd(after time.Time, afterID string) (end time.Time, id string) {
	end, id = after, afterID
	for i := range e.w.Issued {
		g := &e.w.Issued[i]
		if d := &g.Directive; e.overlaps(g) && later(d.NotAfter, d.ID, after, afterID) && (end.Equal(after) && id == afterID || later(end, id, d.NotAfter, d.ID)) {
			end, id = d.NotAfter, d.ID
		}
	}
	return end, id
}
