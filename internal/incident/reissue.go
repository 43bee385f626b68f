package incident

import (
	"context"
	"fmt"
	"slices"

	"github.com/degradedmode/ic/internal/audit"
)

// Reissued is what became of handing one token to a carrier again.
type Reissued struct {
	Missing
	Carrier string `json:"carrier"`
	State   State  `json:"state"` // carried, or unconfirmed
	Detail  string `json:"detail,omitempty"`
}

// Lacks reads every carrier and lists what each of those that answer lacks.
func (d *Desk) Lacks(ctx context.Context) []Reissued {
	d.Refresh(ctx)
	var out []Reissued
	for _, c := range d.Snapshot().Carriers {
		for _, m := range c.Lacks {
			out = append(out, Reissued{Missing: m, Carrier: c.Name, State: Unconfirmed, Detail: m.Barred})
		}
	}
	return out
}

// Reissue hands to each carrier the tokens it lacks: the very texts that were
// signed, so that nothing is in force afterwards that was not before. What is
// barred is left out and says why. Each goes into the log: of the open incident, or
// of its own, which is over. With ids it hands over those and no others.
func (d *Desk) Reissue(ctx context.Context, ids ...string) ([]Reissued, error) {
	if d.o.Person == "" {
		return nil, fmt.Errorf("%w: no key of yours is in the trust root (ic keys list)", ErrReadOnly)
	}
	d.acts.Lock()
	defer d.acts.Unlock()
	all := slices.DeleteFunc(d.Lacks(ctx), func(r Reissued) bool { return len(ids) > 0 && !slices.Contains(ids, r.ID) })
	said := map[string][]audit.Body{}
	for i := range all {
		r := &all[i]
		if r.Barred != "" {
			continue
		}
		if err := d.handOver(ctx, r); err != nil {
			r.Detail = err.Error()
		} else {
			r.State = Sent
		}
		into := d.history.follows()
		if into == "" {
			into = r.of
		}
		said[into] = append(said[into], audit.Note{Text: reissueText(r)})
	}
	var failed error
	for _, incident := range sortedNames(said) {
		if err := d.record(ctx, incident, said[incident]); err != nil {
			failed = fmt.Errorf("it was done, and is not in the log of incident %s: %w", incident, err)
		}
	}
	d.Refresh(ctx)
	return all, failed
}

func reissueText(r *Reissued) string {
	if r.State == Sent {
		return fmt.Sprintf("handed to %s again: %s (%s)", r.Carrier, r.Title, ShortID(r.ID))
	}
	return fmt.Sprintf("not handed to %s again: %s (%s): %s", r.Carrier, r.Title, ShortID(r.ID), r.Detail)
}

func (d *Desk) handOver(ctx context.Context, r *Reissued) error {
	limited, cancel := context.WithTimeout(ctx, carryLimit)
	defer cancel()
	for _, c := range d.o.Carriers {
		if c.Name() == r.Carrier {
			return c.Put(limited, r.ID, r.token)
		}
	}
	return fmt.Errorf("there is no carrier %q", r.Carrier)
}

// record writes into our log, or into that of an incident that is over.
func (d *Desk) record(ctx context.Context, incident string, bodies []audit.Body) error {
	if incident != d.history.follows() {
		return d.appendLater(ctx, incident, bodies, "handed over again")
	}
	w := d.world()
	log, err := d.session(ctx, &w)
	if err != nil {
		return err
	}
	for _, body := range bodies {
		d.note(log, body)
	}
	d.publish()
	return nil
}
