package incident

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/model"
)

// UndoBreak removes what an operation has put on hosts. It is denied while that
// is the only thing that still carries a shed.
func (d *Desk) UndoBreak(ctx context.Context, operation string, asked bool, progress func(Progress)) (Result, error) {
	removed, result, err := d.remove(ctx, operation, asked, progress)
	if err != nil {
		return result, err
	}
	d.observeRemoval(ctx, removed, &result, progress)
	d.publish()
	return result, nil
}

// removal is an override that its backend says to have removed.
type removal struct {
	log      *audit.Writer
	override model.Override
	carrier  string   // the source under which hosts report what it brought
	targets  []string // hosts
}

// remove has the backend take the override back. Its word is not the end of it.
func (d *Desk) remove(ctx context.Context, operation string, asked bool, progress func(Progress)) (removal, Result, error) {
	d.acts.Lock()
	defer d.acts.Unlock()
	d.Refresh(ctx)
	w := d.world()
	result := Result{ID: operation, Incident: w.Incident.ID}
	over, err := findOverride(&w, operation)
	if err != nil {
		return removal{}, result, err
	}
	if d.o.Person == "" {
		return removal{}, result, fmt.Errorf("%w: no key of yours is in the trust root", ErrReadOnly)
	}
	if only := d.onlyCarrierOf(&w, over); only != "" {
		result.Reasons = []string{onlySource + ": " + only}
		return removal{}, result, fmt.Errorf("%w: %s", ErrDenied, result.Reasons[0])
	}
	b, open, err := d.start(ctx, over.Backend)
	if err != nil {
		return removal{}, result, err
	}
	defer open.Close()
	described, err := open.Describe(ctx)
	if err != nil {
		return removal{}, result, fmt.Errorf("%s: describe: %w", b.Name, err)
	}
	log, err := d.session(ctx, &w)
	if err != nil {
		return removal{}, result, err
	}
	result.ID = over.Operation
	result.Receipt = d.note(log, audit.UndoIntent{Operation: over.Operation, Backend: b.Name})
	if !asked {
		d.note(log, audit.Note{Text: "nobody was asked before the removal of " + over.Operation})
	}
	heard := d.relay(b.Name, progress)
	if err := open.Undo(ctx, over.Operation, heard.report); err != nil {
		d.note(log, audit.UndoOutcome{Operation: over.Operation, State: audit.StateUnconfirmed, Detail: err.Error()})
		d.publish()
		return removal{}, result, fmt.Errorf("%s: undo: %w: the override counts as open", b.Name, err)
	}
	result.State, result.Carriers = Sent, heard.lines
	d.note(log, audit.UndoOutcome{Operation: over.Operation, State: audit.StateSent, Detail: strings.Join(heard.lines, "; ")})
	return removal{log: log, override: *over, carrier: string(described.Carrier), targets: targetsOf(&w, b.Config.Targets)}, result, nil
}

// observeRemoval counts the targets whose own reports no longer list what the
// override brought. Until all of them say so it counts as open.
func (d *Desk) observeRemoval(ctx context.Context, r removal, result *Result, progress func(Progress)) {
	outcome := audit.UndoOutcome{Operation: r.override.Operation, State: audit.StateUndone, Detail: "no host reports are configured"}
	result.State, result.Detail = Effective, "the override is gone from "+r.override.Backend+"; "+outcome.Detail
	if d.o.Hosts != nil {
		looks := d.looks(ctx, pushObserve)
		defer looks.end()
		for {
			d.lookAtHosts(looks.ctx)
			w := d.world()
			outcome.Done, outcome.Total = freed(&w, &r), len(r.targets)
			if progress != nil {
				progress(Progress{Phase: "hosts", Done: outcome.Done, Total: outcome.Total, Message: "hosts are rid of it, by their own reports"})
			}
			d.publish()
			if outcome.Done == outcome.Total || !looks.next() {
				break
			}
		}
		result.Done, result.Total = outcome.Done, outcome.Total
		result.State = Reach{Done: outcome.Done, Total: outcome.Total}.State()
		result.Detail = fmt.Sprintf("%d of %d hosts are rid of the override", outcome.Done, outcome.Total)
		outcome.Detail = result.Detail
		if result.State != Effective {
			outcome.State = string(result.State)
			result.Detail += ": it counts as open; ic break undo looks again"
		}
	}
	d.note(r.log, outcome)
}

// freed counts the targets that report nothing of an override under its carrier,
// but for what another open override brings there as well.
func freed(w *model.World, r *removal) int {
	ids := slices.Clone(r.override.IDs)
	for i := range w.Overrides {
		if o := &w.Overrides[i]; o.Operation != r.override.Operation {
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(o.IDs, id) })
		}
	}
	n := 0
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if slices.Contains(r.targets, h.Host) && h.Reachable && h.Report != nil && !carriesAny(h.Report, r.carrier, ids) {
			n++
		}
	}
	return n
}

func carriesAny(report *model.Report, carrier string, ids []string) bool {
	return slices.ContainsFunc(report.Sources, func(s model.ReportSource) bool {
		return s.Name == carrier && slices.ContainsFunc(s.PresentIDs, func(id string) bool { return slices.Contains(ids, id) })
	})
}
