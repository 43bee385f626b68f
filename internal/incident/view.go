package incident

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// maxLines bounds the log lines of a snapshot: more than any screen shows. The
// whole log is for ic audit.
const maxLines = 500

// view builds a snapshot from what is known now.
func (d *Desk) view() Snapshot {
	h := d.seen.copy()
	incident, state := d.history.now()
	w := d.worldOf(&h, incident, &state)
	b := d.o.Bundle
	s := Snapshot{
		At: w.Now, Fleet: d.o.Fleet, Rehearsal: d.o.Realm == directive.Drill, Mode: w.Mode, Person: d.o.Person, World: w,
		Matrix: decisions.Enumerate(b, &w, d.o.Person), Headline: decisions.HeadlineOf(b, &w),
		Services: d.services(&w), Signals: signalsOf(b, &w), Overrides: w.Overrides,
		Backends: d.backendsOf(&w), Domains: domainsOf(b), PolicyEnd: b.Expires(),
		Log: linesOf(&state), Proposals: d.proposals(&w, &state, &h),
		Owed: d.owedNow(incident, &state),
	}
	s.Skew = d.skewOf(&w, &h)
	s.Headline = withSkew(s.Headline, &s.Skew, len(w.Overrides) > 0)
	s.Live, s.Unknown = d.live(&w)
	s.Carriers = d.carriersOf(&w, &h)
	if d.o.SignalsClock != nil {
		s.SignalsClock = d.o.SignalsClock()
	}
	if incident != "" {
		s.Blockers = d.blockers(&w)
	} else {
		s.World.Incident = model.Incident{} // a wish is judged as if one were open; none is
	}
	d.receiptMu.Lock()
	s.Receipts = slices.Clone(d.receipts)
	d.receiptMu.Unlock()
	s.Session, s.Head = d.head()
	if d.o.Faults != nil {
		s.Faults = d.o.Faults()
	}
	return s
}

// head is where our own log stands; a console that has written nothing has none.
func (d *Desk) head() (string, model.LogHead) {
	log := d.log.Load()
	if log == nil {
		return "", model.LogHead{}
	}
	return log.session, log.Head()
}

// services are the tiers as issued and as reported, for every service that the
// ladder or the inventory names.
func (d *Desk) services(w *model.World) []ServiceTier {
	byName := make(map[string]*ServiceTier)
	of := func(name string) *ServiceTier {
		if byName[name] == nil {
			byName[name] = &ServiceTier{Service: name, Last: d.o.Bundle.LastTier(name), Issued: min(decisions.TierOf(w, name), d.o.Bundle.LastTier(name)), At: map[int]int{}}
		}
		return byName[name]
	}
	for name := range d.o.Bundle.Services {
		of(name)
	}
	tokens := make(map[string]*model.Directive, len(w.Issued))
	for i := range w.Issued {
		tokens[w.Issued[i].Directive.ID] = &w.Issued[i].Directive
	}
	for i := range w.Hosts {
		h := &w.Hosts[i]
		for _, name := range h.Services {
			s := of(name)
			s.Hosts++
			if tier, known := reportedTier(h, name, tokens, s.Last); known {
				s.At[tier]++
			} else {
				s.Unknown++
			}
		}
	}
	out := make([]ServiceTier, 0, len(byName))
	for _, name := range sortedNames(byName) {
		s := byName[name]
		s.Since, s.By, s.Ramp = heldSince(w, name)
		out = append(out, *s)
	}
	return out
}

// reportedTier computes a host's tier from the directives it says it holds. One
// that we do not know makes the tier unknown: it may be a shed.
func reportedTier(h *model.HostView, service string, known map[string]*model.Directive, last int) (int, bool) {
	if !h.Reachable || h.Report == nil {
		return 0, false
	}
	tier := 0
	for _, l := range h.Report.Live {
		dir, ok := known[l.ID]
		if !ok {
			return 0, false
		}
		if dir.EndedAs() == model.Shed && dir.Covers(service) {
			tier = max(tier, directive.TierOn(*dir, h.Host))
		}
	}
	return min(tier, last), true
}

// heldSince says since when and by whom a service is at its issued tier.
func heldSince(w *model.World, service string) (since time.Time, by string, ramp *decisions.Ramp) {
	best := 0
	for i := range w.Issued {
		dir := &w.Issued[i].Directive
		if dir.EndedAs() != model.Shed || !dir.Covers(service) || !w.Issued[i].LiveAt(w.Now) {
			continue
		}
		c := decisions.ChainOf(w, dir.Scope)
		if c.By != dir.ID || c.Tier < best {
			continue // it holds less than another one
		}
		best, since, by, ramp = c.Tier, c.Since, "", c.Ramp
		if len(w.Issued[i].Signers) > 0 {
			by = w.Issued[i].Signers[0]
		}
	}
	return since, by, ramp
}

func signalsOf(b *policy.Bundle, w *model.World) []SignalView {
	out := make([]SignalView, 0, len(b.Signals))
	for _, name := range sortedNames(b.Signals) {
		signal := b.Signals[name]
		reading, ok := w.Readings[name]
		if !ok {
			reading = model.Reading{Signal: name, State: model.ReadingNoData, Detail: "not read yet"}
		}
		out = append(out, SignalView{
			Name: name, Reading: trimmed(reading), Abnormal: decisions.Abnormal(&signal, &reading),
			Text: readingText(&reading, signal.Unit), Limit: decisions.LimitText(&signal),
		})
	}
	return out
}

// trimmed drops the history: screens show the value, verdicts have used the rest.
func trimmed(r model.Reading) model.Reading {
	r.History = nil
	return r
}

func readingText(r *model.Reading, unit string) string {
	if r.State != model.ReadingValue {
		return string(r.State)
	}
	return decisions.Quantity(r.Value, unit)
}

func (d *Desk) skewOf(w *model.World, h *heard) SkewView {
	v := fleet.Skew(w.Issued, w.Hosts, d.o.ReportAge, w.Now)
	return SkewView{
		Hosts: v.Total, Unknown: v.Unknown, Effective: v.Effective, Lacking: v.Lacking, Unreachable: v.Unreachable, Stale: v.Stale,
		Alarm: v.Alarm, At: h.hostsAt, InventoryAt: w.Inventory.At,
	}
}

// withSkew lets hosts that have not got what was issued speak up, unless glass is
// broken already or another right is called for. If one that answers is in force,
// bringing it to the others comes before the next one.
func withSkew(h decisions.Headline, skew *SkewView, broken bool) decisions.Headline {
	if !skew.Alarm || broken || h.Right != "" && h.Handled == "" {
		return h
	}
	text := fmt.Sprintf("%d of %d hosts lack what was issued: break glass carries it past the flag service (b, ic break)", skew.Lacking, skew.Hosts)
	if h.Right == "" {
		return decisions.Headline{Text: text, Handled: h.Handled}
	}
	h.Text = text + "; then " + h.Text
	return h
}

func (d *Desk) live(w *model.World) (live, unknown []LiveView) {
	for i := range w.Issued {
		is := &w.Issued[i]
		lasting := is.LiveAt(w.Now) && holdsFleet(&is.Directive)
		if !lasting && is.Outcome != "" {
			continue
		}
		reach := ReachOf(w, &is.Directive, d.o.ReportAge)
		v := LiveView{
			Issued: *is, Title: TitleOf(&is.Directive), Done: reach.Done, Total: reach.Total,
			State: string(reach.State()), Direction: d.o.Bundle.Direction(&is.Directive),
		}
		if is.Directive.Kind == model.Bypass {
			worst := decisions.WorstCase(d.o.Bundle, w, &is.Directive)
			v.Exposure, v.Used = &worst, usedOf(w, &is.Directive)
		}
		if is.Outcome == audit.StateAdvised && reach.Total == 0 {
			v.State = string(Advised)
		}
		if lasting {
			live = append(live, v)
		}
		if is.Outcome == "" {
			v.State = string(Unknown)
			unknown = append(unknown, v)
		}
	}
	return live, unknown
}

// usedOf adds up what hosts report to have let through under a right today;
// currencies are never added to one another.
func usedOf(w *model.World, dir *model.Directive) map[string]UsedView {
	period, silent := dir.NotBefore.UTC().Format("2006-01-02"), 0
	used := map[string]UsedView{}
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if !slices.ContainsFunc(h.Services, dir.Covers) {
			continue
		}
		if !h.Reachable || h.Report == nil {
			silent++
			continue
		}
		for _, budget := range h.Report.Budgets {
			if budget.Right != dir.Right || budget.Period != period {
				continue
			}
			u := used[budget.Total.Currency]
			u.Count += budget.Count
			u.Total = model.Money{Minor: u.Total.Minor + budget.Total.Minor, Currency: budget.Total.Currency}
			used[budget.Total.Currency] = u
		}
	}
	if silent > 0 {
		u := used[dir.Caps.Under.Currency]
		u.Total.Currency, u.Unknown = dir.Caps.Under.Currency, silent
		used[dir.Caps.Under.Currency] = u
	}
	return used
}

func domainsOf(b *policy.Bundle) []policy.DomainState {
	return slices.SortedFunc(maps.Values(b.Domains), func(x, y policy.DomainState) int {
		if x.Domain < y.Domain {
			return -1
		}
		return 1
	})
}

func linesOf(state *audit.State) []LogLine {
	lines := state.Lines
	if len(lines) > maxLines {
		lines = lines[len(lines)-maxLines:]
	}
	out := make([]LogLine, len(lines))
	for i, l := range lines {
		out[i] = LogLine{At: l.At, Actor: l.Actor, Kind: string(l.Kind), Text: l.Text}
	}
	return out
}
