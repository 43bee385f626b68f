package incident

import (
	"context"
	"fmt"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// Reconcile reads reality for every directive that was signed and of which no
// outcome is on disk: what a crash between intent and outcome leaves behind. It
// writes down what it found, and repeats no effect. Without an open incident or
// an unknown act it does nothing.
func (d *Desk) Reconcile(ctx context.Context) error {
	d.acts.Lock()
	defer d.acts.Unlock()
	incident, state := d.history.now()
	if incident == "" || d.o.Person == "" {
		return nil
	}
	unknown := state.Unknown()
	if len(unknown) == 0 {
		return nil
	}
	w := d.world()
	for i := range unknown {
		found := d.found(&w, &unknown[i].Directive)
		if found.State == audit.StateUnconfirmed {
			continue // reality could not be read: it stays UNKNOWN
		}
		log, err := d.session(ctx, &w)
		if err != nil {
			return fmt.Errorf("write down what became of %s: %w", ShortID(found.ID), err)
		}
		d.note(log, found)
	}
	d.publish()
	return nil
}

// found looks for a directive on the hosts and on the carriers.
func (d *Desk) found(w *model.World, dir *model.Directive) audit.Reconciled {
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
