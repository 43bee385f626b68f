package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/plugins/sdk"
)

// Reconcile reads reality for everything that was begun and of which no outcome
// is on disk: what a crash between intent and outcome leaves behind, and a push
// that died in the middle. It writes down what it found, and repeats no effect.
// Without an open incident or anything unknown it does nothing.
func (d *Desk) Reconcile(ctx context.Context) error {
	d.acts.Lock()
	defer d.acts.Unlock()
	incident, state := d.history.now()
	if incident == "" || d.o.Person == "" {
		return nil
	}
	w := d.world()
	var found []audit.Body
	for _, is := range state.Unknown() {
		if _, ours := d.inFlight.Load(is.Directive.ID); ours {
			continue // it is being carried out at this moment
		}
		if r := d.found(&w, &is.Directive); r.State != audit.StateUnconfirmed { // else reality could not be read: it stays UNKNOWN
			found = append(found, r)
		}
	}
	for i := range state.Overrides {
		if state.Overrides[i].State == audit.StateUnconfirmed {
			if body := d.foundPush(ctx, &w, &state.Overrides[i]); body != nil {
				found = append(found, body)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return fmt.Errorf("write down what became of %d acts: %w", len(found), err)
	}
	for _, body := range found {
		d.note(log, body)
	}
	d.publish()
	return nil
}

// foundPush looks for a push whose end nobody has written down: on the hosts, and
// where they do not have it, at its backend. nil: nothing could be learned.
func (d *Desk) foundPush(ctx context.Context, w *model.World, over *model.Override) audit.Body {
	at := slices.IndexFunc(w.Overrides, func(o model.Override) bool { return o.Operation == over.Operation })
	if at >= 0 {
		switch state := w.Overrides[at].State; {
		case state == string(breakglass.Effective), strings.HasPrefix(state, string(breakglass.Partial)):
			word, _, _ := strings.Cut(state, " ")
			return audit.PushOutcome{Operation: over.Operation, State: word, Detail: "hosts report it: " + state}
		}
	}
	b, open, err := d.start(ctx, over.Backend)
	if err != nil {
		return nil
	}
	defer open.Close()
	heard, undone, written := d.relay(b.Name, nil), false, false
	err = open.Observe(ctx, over.Operation, func(p sdk.Progress) error {
		undone, written = undone || p.Phase == sdk.Undone, written || p.Phase == sdk.Written
		return heard.report(p)
	})
	detail := strings.Join(heard.lines, "; ")
	switch {
	case sdk.CodeOf(err) == sdk.CodeOperationUnknown && w.Now.Sub(over.Since) >= pushPatience:
		// Long enough ago that nothing of it can still be on its way.
		return audit.UndoOutcome{Operation: over.Operation, State: audit.StateUndone, Detail: b.Name + " has no trace of it: it never arrived"}
	case err != nil:
		return nil
	case undone && !written:
		return audit.UndoOutcome{Operation: over.Operation, State: audit.StateUndone, Detail: detail}
	case written:
		return audit.PushOutcome{Operation: over.Operation, State: audit.StateSent, Detail: detail}
	}
	return nil
}

// found looks for a directive on the hosts and on the carriers.
func (d *Desk) found(w *model.World, dir *model.Directive) audit.Reconciled {
	if d.advises(w) {
		return audit.Reconciled{ID: dir.ID, State: audit.StateAdvised, Detail: "ic stopped before it could say what to do by hand: " + TitleOf(dir)}
	}
	r := audit.Reconciled{ID: dir.ID, State: audit.StateUnconfirmed}
	reach := ReachOf(w, dir, d.o.ReportAge)
	carried := false
	for i := range w.Issued {
		if w.Issued[i].Directive.ID == dir.ID {
			carried = len(w.Issued[i].Carried) > 0
		}
	}
	switch {
	case reach.Total > 0 && reach.Done == reach.Total:
		r.State = audit.StateEffective
	case reach.Done > 0:
		r.State = audit.StatePartial
	case carried:
		r.State = audit.StateCarried
	case reach.Unreachable+reach.Stale == 0 && reach.Total > 0 && d.allCarriersRead():
		r.State = audit.StateAbsent
	}
	r.Detail = fmt.Sprintf("%d of %d hosts report it", reach.Done, reach.Total)
	return r
}

func (d *Desk) allCarriersRead() bool {
	for _, c := range d.seen.copy().carriers {
		if c.err != nil || c.readAt.IsZero() {
			return false
		}
	}
	return true
}
