package incident

import (
	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
)

// world builds what a verdict depends on from what is known now. It asks nobody.
func (d *Desk) world() model.World {
	h := d.seen.copy()
	incident, state := d.history.now()
	return d.worldOf(&h, incident, &state)
}

func (d *Desk) worldOf(h *heard, incident string, state *audit.State) model.World {
	now, joined := d.o.Clock.Now(), d.history.withPast(state)
	w := model.World{
		V: 1, Now: now.Wall.UTC(), Clock: now.State, Fleet: d.o.Fleet, Policy: d.o.Bundle.Ref,
		Incident: state.Incident, Readings: h.readings,
		Overrides: state.Overrides, Durable: d.durable(), Rehearsals: joined.Rehearsals,
	}
	d.simulated(w.Rehearsals)
	var expected []model.HostView
	if d.o.Inventory != nil {
		listing := d.o.Inventory()
		w.Inventory, expected = listing.Inventory, listing.Hosts
	}
	w.Issued = d.issuedOf(joined.Issued, state.Overrides, h, w.Now)
	w.Hosts = d.hostsOf(h, &w, expected)
	firstSeen(&w)
	w.Overrides = d.overridesOf(&w)
	if incident == "" {
		// Whoever acts first opens the incident and takes command: that is the world
		// in which his wish is judged. A machine opens it and commands nothing.
		w.Incident = model.Incident{ID: newIncidentID(w.Now, d.o.Rand)}
		if !d.machine() {
			w.Incident.Lease = model.Lease{Holder: d.o.Person, From: w.Now, Until: w.Now.Add(LeaseLasts)}
		}
	} else {
		w.Incident.ID = incident // also while no disk could take its first entry
		w.Incident.Lease = d.leaseOf(incident, state.Incident.Lease, h)
	}
	w.Proposals = d.waiting(&w, state, h)
	w.Mode = d.modeOf(&w)
	return w
}

// firstSeen writes down since when each directive is in force on a host at all, as
// hosts say; what the log says of it stays where no host answers.
func firstSeen(w *model.World) {
	at := make(map[string]int, len(w.Issued))
	for i := range w.Issued {
		at[w.Issued[i].Directive.ID] = i
	}
	for i := range w.Hosts {
		r := w.Hosts[i].Report
		if r == nil {
			continue
		}
		for _, l := range r.Live {
			n, known := at[l.ID]
			if !known {
				continue
			}
			since := w.Hosts[i].OnOurClock(l.Since)
			if is := &w.Issued[n]; is.FirstSeen.IsZero() || since.Before(is.FirstSeen) {
				is.FirstSeen = since
			}
		}
	}
}

// simulated adds the dates of rehearsals in simulation. They are shown, and
// permit nothing: what a right wants to be rehearsed is rehearsed live.
func (d *Desk) simulated(rehearsals map[string]model.Rehearsal) {
	if d.o.Simulated == nil {
		return
	}
	for name, at := range d.o.Simulated() {
		r := rehearsals[name]
		r.Simulated = at
		rehearsals[name] = r
	}
}

// hostsOf is the inventory with what each host reports, and what it lacks.
func (d *Desk) hostsOf(h *heard, w *model.World, expected []model.HostView) []model.HostView {
	hosts := h.hosts
	if len(hosts) == 0 {
		hosts = expected
	}
	fleet.Skew(w.Issued, hosts, d.o.ReportAge, w.Now) // fills in what each lacks
	return hosts
}

func (d *Desk) modeOf(w *model.World) model.Mode {
	switch {
	case d.o.Person == "":
		return model.ReadOnly
	case len(w.Overrides) > 0:
		return model.BreakGlass
	case d.o.Realm == directive.Drill:
		return model.Rehearsing
	default:
		return model.Live
	}
}

// durable is whether the log can take a durable entry, as of the last refresh.
// The intent itself is what decides; this is for the verdict that is shown.
func (d *Desk) durable() bool { return d.notDurable.Load() == nil }

// checkLog asks our log whether it can take a durable entry, and lets it chain
// what is late. It may take as long as a disk may.
func (d *Desk) checkLog() {
	log := d.log.Load()
	if log == nil || log.Over() {
		d.notDurable.Store(nil) // the next act opens a new one and finds out
		return
	}
	if err := log.Ready(); err != nil {
		text := err.Error()
		d.notDurable.Store(&text)
		return
	}
	d.notDurable.Store(nil)
	d.receiptMu.Lock()
	defer d.receiptMu.Unlock()
	if len(log.Late()) == 0 {
		d.receipts = nil
	}
}
