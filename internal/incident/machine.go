package incident

import (
	"context"
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/model"
)

// machine reports whether a machine sits here. It goes the same road as a person,
// never holds command, and is judged without it.
func (d *Desk) machine() bool { return decisions.IsMachine(d.o.Bundle, d.o.Person) }

// Known is every directive that this desk knows of: of the open incident, of all
// others on disk, and of the carriers. It asks nobody.
func (d *Desk) Known() []model.Issued {
	w := d.world()
	out := slices.Clone(w.Issued)
	have := make(map[string]bool, len(out))
	for i := range out {
		have[out[i].Directive.ID] = true
	}
	for _, state := range d.history.before() {
		for _, is := range state.Issued {
			if !have[is.Directive.ID] && d.seen.verify(is.Token, d.o.Realm, d.o.Fleet) != nil {
				have[is.Directive.ID] = true
				out = append(out, is)
			}
		}
	}
	return out
}

// Note writes a line into the log of the open incident. It opens none: without
// one there is nothing that the line would belong to.
func (d *Desk) Note(ctx context.Context, text string) error {
	w := d.world()
	if w.Incident.OpenedAt.IsZero() {
		return ErrNoIncident
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return err
	}
	d.note(log, audit.Note{Text: text})
	return nil
}

// Redeliver hands over again what we have signed ourselves and a carrier lacked
// at the last Refresh: it could not be reached then, or has lost it since. A
// person's acts are his to hand over (Reissue). It says how many were taken.
func (d *Desk) Redeliver(ctx context.Context) (int, error) {
	ours := make(map[string]bool)
	for _, is := range d.Known() {
		ours[is.Directive.ID] = d.o.Person != "" && slices.Contains(is.Signers, d.o.Person)
	}
	sent := 0
	for _, c := range d.Snapshot().Carriers {
		for _, m := range c.Lacks {
			if !ours[m.ID] || m.Barred != "" {
				continue
			}
			r := &Reissued{Missing: m, Carrier: c.Name}
			if err := d.handOver(ctx, r); err != nil {
				return sent, fmt.Errorf("hand %s to %s again: %w", ShortID(m.ID), c.Name, err)
			}
			r.State = Sent
			sent++
			into := d.history.follows()
			if into == "" {
				into = m.of
			}
			if err := d.record(ctx, into, []audit.Body{audit.Note{Text: reissueText(r)}}); err != nil {
				return sent, err
			}
		}
	}
	return sent, nil
}
