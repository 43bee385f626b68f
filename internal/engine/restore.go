package engine

import (
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// restore takes over what a folder says. Every token is verified again: a file
// that somebody has written himself may cost a host what it knew, and never
// gives it a statement that nobody signed.
func (e *Engine) restore(found *loaded, now model.Instant) error {
	e.floor = e.floor.raised(time.Time{}, now)
	runs := make(map[string]time.Duration)
	seen := make(map[string]bool)
	var statements []record
	for i := range found.records {
		r := &found.records[i]
		switch r.Type {
		case recordHeld, recordKept:
			if !seen[r.Token] {
				seen[r.Token] = true
				statements = append(statements, *r)
			}
		case recordClock:
			e.restoreClock(r, runs, now)
		case recordBudget:
			e.budgets.at(period{r.Control, r.Right, r.Day}).restore(r)
		case recordForfeit:
			e.budgets.forfeitThrough(r.Day)
		case recordHead:
			if r.Head != nil {
				e.heads.add(*r.Head)
			}
		default:
			found.note("a record of type %q is not known to this software", r.Type)
			found.condition, found.lost = StateRecovered, true
		}
	}
	e.restoreStatements(statements, runs, found, now)
	if e.store == nil {
		return nil
	}
	if found.lost {
		e.budgets.forfeitThrough(dayOf(e.floor.moment(now).host))
	}
	e.condition = found.condition
	if e.store.id == "" {
		id, err := newFolderID(now, e.cfg.Rand)
		if err != nil {
			return err
		}
		e.store.id = id
	}
	e.disk.Lock()
	defer e.disk.Unlock()
	if err := e.rewrite(now); err != nil {
		found.note("the state folder cannot be written: %v", err)
	}
	return nil
}

// restoreClock raises the floor, and collects how long each bypass had run.
func (e *Engine) restoreClock(r *record, runs map[string]time.Duration, now model.Instant) {
	since := sameBoot(r, now)
	if !r.Floor.IsZero() {
		e.floor = e.floor.raised(r.Floor.Add(since), now)
	}
	for id, ms := range r.RunMS {
		runs[id] = max(runs[id], time.Duration(ms)*time.Millisecond+since)
	}
}

// sameBoot is the time since a record was made, if that was in this boot.
func sameBoot(r *record, now model.Instant) time.Duration {
	if r.Boot != now.BootID {
		return 0
	}
	return max(0, now.Boot-r.MonoNS)
}

// restoreStatements verifies what is stored and holds it again.
func (e *Engine) restoreStatements(records []record, runs map[string]time.Duration, found *loaded, now model.Instant) {
	var taken []*held
	for i := range records {
		r := &records[i]
		if r.Type == recordKept {
			continue
		}
		signed, err := e.verify(r.Token)
		if err != nil || !e.known(signed) {
			found.note("a stored token is not signed by anybody known here (%s)", digestID(r.Token))
			found.condition = StateRecovered
			continue
		}
		e.floor = e.floor.raised(signed.Directive.IssuedAt.Add(sameBoot(r, now)), now)
		e.heads.add(signed.Directive.Log)
		taken = append(taken, &held{
			signed: signed, alias: []string{r.Token}, source: r.Source, first: r.At, accepted: r.At, boot: r.Boot, mono: r.MonoNS,
			direction: e.bundle.Direction(&signed.Directive), durable: true,
		})
	}
	at := e.floor.moment(now)
	for _, h := range taken {
		e.restoreOne(h, runs[h.d().ID], at)
	}
	for i := range records {
		if records[i].Type == recordKept {
			e.offerKept(&records[i], now)
		}
	}
}

// restoreOne judges a loosening again, with the time of its first accept. The
// same payload may be stored with several signatures; one that opens is enough.
func (e *Engine) restoreOne(h *held, run time.Duration, at moment) {
	// The file's word is enough to hold a shed, never to begin a recovery early.
	h.begun = h.direction == model.Tighten && !h.accepted.Before(h.d().NotBefore)
	if h.accepted.After(at.host) || h.accepted.IsZero() {
		h.accepted = at.host
	}
	if h.closed = e.judgeHeld(h.signed, h.accepted); h.closed == "" && h.direction == model.Loosen && !at.fit() {
		h.closed = model.CodeClockUnfit
	}
	if twin, ok := e.set.byKey[key(h.signed.Token)]; ok {
		if twin.closed != "" && h.closed == "" {
			twin.signed, twin.closed = h.signed, ""
		}
		return
	}
	h.resume(run, at)
	e.set.add(h)
}

// known reports whether every signer is or was somebody: a revoked key takes
// nothing new, but what it signed in time stays in force.
func (e *Engine) known(signed *statement) bool {
	for _, fp := range signed.By {
		if _, ok := e.bundle.SignerOf(fp); !ok && !slices.Contains(e.bundle.Root.Revoked, fp) {
			return false
		}
	}
	return true
}

// resume continues the run of a bypass: in the same boot from its first accept, by
// the clock that cannot be set; after a reboot from what was written down or the
// host time of now, whichever is more.
func (h *held) resume(written time.Duration, at moment) {
	if h.direction != model.Loosen {
		return
	}
	d := h.d()
	h.run = runFrom(d.NotBefore, at)
	if h.boot == at.BootID {
		h.run = run{before: h.first.Sub(d.NotBefore), since: h.mono, bootID: h.boot}
	}
	h.run = h.run.start(d.NotBefore, at)
	if written > 0 && written > h.run.elapsed(at.Instant) {
		h.run = run{started: true, before: written, since: at.Boot, bootID: at.BootID}
	}
}

// offerKept judges a statement of a kind that was not known when it came. New
// software may know it now. It becomes durable with the generation that every
// start writes.
func (e *Engine) offerKept(r *record, now model.Instant) {
	c := checked{token: r.Token}
	e.checkOne(&c)
	if c.signed != nil {
		c.id = c.signed.Directive.ID
	}
	e.take(r.Source, &c, now)
}
