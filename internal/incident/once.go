package incident

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
	"github.com/oklog/ulid/v2"
)

// idTime is how many characters of a ULID are its time; the rest is its random
// part, which is the act's own where the caller has fixed it.
const idTime = 10

// once refuses an act whose random part stands in the log, on a carrier or on a
// host already, unless reality was read and it was nowhere: whoever comes back
// after a crash must not do again what was done.
func once(w *model.World, id string) error {
	if id == "" {
		return nil
	}
	if _, err := ulid.ParseStrict(id); err != nil {
		return fmt.Errorf("the id %.40q of the act is not a ULID: nothing was done", id)
	}
	own := func(other string) bool { return len(other) == len(id) && other[idTime:] == id[idTime:] }
	found := ""
	for i := range w.Issued {
		is := &w.Issued[i]
		gone := is.Outcome == audit.StateAbsent || is.Outcome == audit.StateFailed || is.Outcome == audit.StateWithdrawn
		if own(is.Directive.ID) && !gone {
			found = is.Directive.ID
		}
	}
	for i := range w.Proposals {
		if own(w.Proposals[i].ID) {
			found = w.Proposals[i].ID
		}
	}
	for i := range w.Hosts {
		if r := w.Hosts[i].Report; r != nil {
			if at := slices.IndexFunc(r.Live, func(l model.ReportLive) bool { return own(l.ID) }); at >= 0 {
				found = r.Live[at].ID
			}
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%w: %w: it is %s; nothing was done now (ic status)", ErrNeeds, ErrRepeated, found)
}

// Record writes an entry of a run of a runbook into the log of the open incident.
// What accompanies a tightening is never held up by a disk: the answer is then a
// receipt to keep. Anything else is durable or an error.
func (d *Desk) Record(ctx context.Context, body audit.Body, tightens bool) (receipt string, err error) {
	w := d.world()
	if d.history.follows() == "" {
		return "", ErrNoIncident
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return "", err
	}
	defer d.publish()
	if tightens {
		return d.note(log, body), nil
	}
	if err := log.Append(body); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNeeds, err)
	}
	return "", nil
}

// Logs are the logs of the open incident as they stand. What is readable is
// returned also when a file is damaged.
func (d *Desk) Logs() ([]audit.Session, error) {
	err := d.history.read()
	sessions, open := d.history.sessions()
	switch {
	case !open:
		return nil, ErrNoIncident
	case sessions == nil && err == nil:
		err = errSlowLog
	}
	return sessions, err
}

// sessions are what has been read of the incident that is followed. A read that is
// under way and does not end is not waited for longer than any other.
func (h *history) sessions() (read []audit.Session, open bool) {
	h.mu.Lock()
	reader := h.reader
	h.mu.Unlock()
	if reader == nil {
		return nil, false
	}
	limit := time.NewTimer(historyLimit)
	defer limit.Stop()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
		return reader.Sessions(), true
	case <-limit.C:
		return nil, true
	}
}
