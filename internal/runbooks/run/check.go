package run

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/degradedmode/ic/internal/audit"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/runbooks"
)

// Evidence is one look at reality: a value, how old it was, and whether it is what
// was asked for. NoData never holds.
type Evidence struct {
	Value  string
	At     time.Time // of the value at its source
	Holds  bool
	NoData bool
	Detail string
	Done   int // hosts
	Total  int

	blind bool // looking again is no use: only a person can see it
}

func noData(now time.Time, format string, args ...any) Evidence {
	return Evidence{At: now, NoData: true, Detail: clean(fmt.Sprintf(format, args...), maxValue)}
}

// look asks once. id is the directive of the step, for a probe that asks for its
// reach.
func (r *Run) look(ctx context.Context, c *runbooks.Check, id string) Evidence {
	now := r.o.now()
	switch {
	case c.PromQL != nil:
		if r.o.Query == nil {
			return noData(now, "no Prometheus is configured")
		}
		return r.compared(c.PromQL, r.o.Query(ctx, c.PromQL.Query))
	case c.HTTP != nil:
		if r.o.Get == nil {
			return noData(now, "no origin may be asked")
		}
		status, err := r.o.Get(ctx, c.HTTP.URL)
		if err != nil {
			return noData(now, "%s: %v", c.HTTP.URL, err)
		}
		return Evidence{Value: fmt.Sprintf("%s answered %d", c.HTTP.URL, status), At: now, Holds: status == c.HTTP.Status}
	}
	r.o.Desk.Refresh(ctx)
	s := r.o.Desk.Snapshot()
	switch {
	case c.Signal != nil:
		return signalIs(&s, c.Signal)
	case c.Tier != nil:
		return tierIs(&s, c.Tier)
	case c.Skew != nil:
		return skewIs(&s, c.Skew)
	case c.Bypass != nil:
		scene := r.o.Desk.Scene()
		return bypassIs(&s, scene.Bundle, c.Bypass)
	case c.Reach != nil:
		return r.reaches(c.Reach, id)
	}
	return noData(now, "the check asks for nothing that this version knows")
}

func (r *Run) compared(want *runbooks.PromQL, got model.Reading) Evidence {
	if got.State != model.ReadingValue {
		return noData(r.o.now(), "%s: %s", got.State, got.Detail)
	}
	value := strconv.FormatFloat(got.Value, 'g', 6, 64)
	return Evidence{Value: fmt.Sprintf("%s, wanted %s %s", value, want.Is.Op, strconv.FormatFloat(want.Is.Value, 'g', -1, 64)),
		At: got.At, Holds: want.Is.Holds(got.Value)}
}

func signalIs(s *incident.Snapshot, want *runbooks.SignalIs) Evidence {
	at := slices.IndexFunc(s.Signals, func(v incident.SignalView) bool { return v.Name == want.Name })
	if at < 0 {
		return noData(s.At, "the policy in force has no signal %s", want.Name)
	}
	v := &s.Signals[at]
	if v.Reading.State != model.ReadingValue {
		return noData(s.At, "%s: %s %s", want.Name, v.Reading.State, v.Reading.Detail)
	}
	is := runbooks.SignalNormal
	if v.Abnormal {
		is = runbooks.SignalAbnormal
	}
	return Evidence{Value: fmt.Sprintf("%s is %s, %s (%s)", want.Name, v.Text, is, v.Limit), At: v.Reading.At, Holds: is == want.Is}
}

// reachShare is the share of hosts, in percent, that makes a tier effective.
const reachShare = 95

func tierIs(s *incident.Snapshot, want *runbooks.TierIs) Evidence {
	e := Evidence{At: s.Skew.At, Holds: true}
	found := false
	for i := range s.Services {
		v := &s.Services[i]
		if want.Scope != model.AnyScope && v.Service != want.Scope {
			continue
		}
		found = true
		e.Done, e.Total = e.Done+v.At[min(want.Is, v.Last)], e.Total+v.Hosts
		e.Holds = e.Holds && v.Issued == min(want.Is, v.Last)
		e.Value = oneLine(e.Value, fmt.Sprintf("%s is at tier %d as issued", v.Service, v.Issued))
	}
	if !found {
		return noData(s.At, "no service is named %s", want.Scope)
	}
	if want.Scope == model.AnyScope {
		e.Value = fmt.Sprintf("all services at tier %d or their last: %t as issued", want.Is, e.Holds)
	}
	if e.Total > 0 {
		e.Holds = e.Holds && e.Done*100 >= e.Total*reachShare
		e.Value += fmt.Sprintf(", %d of %d hosts report it", e.Done, e.Total)
	}
	if e.At.IsZero() {
		e.At = s.At
	}
	return e
}

func skewIs(s *incident.Snapshot, want *runbooks.Skew) Evidence {
	if s.Skew.Hosts == 0 {
		return noData(s.At, "no host is known")
	}
	return Evidence{Value: fmt.Sprintf("%d of %d hosts have what was issued", s.Skew.Effective, s.Skew.Hosts), At: s.Skew.At,
		Holds: s.Skew.Effective*100 >= s.Skew.Hosts*want.AtLeast, Done: s.Skew.Effective, Total: s.Skew.Hosts}
}

// bypassIs counts hosts on which a grant of the control is in force, of those that
// have the control. Closed needs the word of each of them, and that nothing issued is
// open. Of a control that the policy in force does not have every host is asked.
func bypassIs(s *incident.Snapshot, b *policy.Bundle, want *runbooks.BypassIs) Evidence {
	w := &s.World
	control, known := b.Controls[want.Control]
	var grants []*model.Directive
	issued := 0
	for i := range w.Issued {
		if d := &w.Issued[i].Directive; d.Kind == model.Bypass && d.Control == want.Control {
			grants = append(grants, d)
			if w.Issued[i].LiveAt(w.Now) {
				issued++
			}
		}
	}
	open, silent, total := 0, 0, 0
	for i := range w.Hosts {
		h := &w.Hosts[i]
		if known && !slices.ContainsFunc(control.Services, func(has string) bool { return slices.Contains(h.Services, has) }) {
			continue
		}
		total++
		if !h.Reachable || h.Report == nil {
			silent++
		} else if slices.ContainsFunc(grants, func(d *model.Directive) bool { return openOn(h, d) }) {
			open++
		}
	}
	grant := "grants"
	if issued == 1 {
		grant = "grant"
	}
	e := Evidence{At: s.At, Done: open, Total: total,
		Value: fmt.Sprintf("%s: %d %s in force, open on %d of %d hosts that have it, %d silent", want.Control, issued, grant, open, total, silent)}
	if want.Is == runbooks.BypassOpen {
		e.Holds = issued > 0 && open > 0
		return e
	}
	e.Holds = issued == 0 && open == 0 && silent == 0
	e.NoData = issued == 0 && open == 0 && silent > 0
	return e
}

// openOn: the host reports the grant, and serves what it is for.
func openOn(h *model.HostView, d *model.Directive) bool {
	return slices.ContainsFunc(h.Services, d.Covers) &&
		slices.ContainsFunc(h.Report.Live, func(l model.ReportLive) bool { return l.ID == d.ID })
}

// reaches counts the hosts that report the directive of this very step.
func (r *Run) reaches(want *runbooks.Reach, id string) Evidence {
	scene := r.o.Desk.Scene()
	w := &scene.World
	at := issuedAt(w.Issued, id)
	if at < 0 {
		return noData(w.Now, "the directive of this step is not known here")
	}
	is := &w.Issued[at]
	reach := incident.ReachOf(w, &is.Directive, r.o.ReportAge)
	if reach.Total == 0 {
		if is.Outcome == audit.StateAdvised {
			e := noData(w.Now, "a person does it by hand, and ic cannot see whether it is done")
			e.blind = true
			return e
		}
		return noData(w.Now, "no host is known that it concerns")
	}
	value := fmt.Sprintf("%d of %d hosts report it", reach.Done, reach.Total)
	if reach.Unreachable+reach.Stale > 0 {
		value += fmt.Sprintf(", %d cannot be reached", reach.Unreachable+reach.Stale)
	}
	return Evidence{Value: value, At: w.Now, Holds: reach.Done*100 >= reach.Total*want.AtLeast, Done: reach.Done, Total: reach.Total}
}

// issuedAt finds the directive of an effect: under its id, or under that of another
// attempt at the same step. One that reached somebody counts before one that was
// nowhere.
func issuedAt(all []model.Issued, id string) int {
	found := -1
	for i := range all {
		if !sameEffect(all[i].Directive.ID, id) {
			continue
		}
		if found < 0 || all[found].Outcome == audit.StateAbsent || all[found].Directive.ID != id && all[i].Directive.ID == id {
			found = i
		}
	}
	return found
}

// until looks again and again until the check has held for hold without a break,
// or the deadline has come. It looks at least once.
func (r *Run) until(ctx context.Context, c *runbooks.Check, id string, deadline time.Time) (Evidence, error) {
	hold := time.Duration(0)
	if c.PromQL != nil {
		hold = c.PromQL.For.Std()
	}
	if deadline.IsZero() {
		deadline = r.o.now().Add(hold)
	}
	var since time.Time
	for {
		e := r.look(ctx, c, id)
		now := r.o.now()
		if err := ctx.Err(); err != nil {
			return e, err
		}
		if !e.Holds {
			since = time.Time{}
		} else if since.IsZero() {
			since = now
		}
		if e.Holds && now.Sub(since) >= hold {
			if hold > 0 {
				e.Value += fmt.Sprintf(", for %s", model.Duration(now.Sub(since).Truncate(time.Second)))
			}
			return e, nil
		}
		left := deadline.Sub(now)
		if left <= 0 || e.blind {
			e.Holds = false
			return e, nil
		}
		r.o.Progress(fmt.Sprintf("%s; %s left", waitingFor(&e, since, hold, now), model.Duration(left.Round(time.Second))))
		if err := r.o.Wait(ctx, min(lookEvery, left)); err != nil {
			return e, err
		}
	}
}

func waitingFor(e *Evidence, since time.Time, hold time.Duration, now time.Time) string {
	switch {
	case e.NoData:
		return "no data: " + e.Detail
	case e.Holds:
		return fmt.Sprintf("%s, has held for %s of %s", e.Value, model.Duration(now.Sub(since).Round(time.Second)), model.Duration(hold))
	}
	return e.Value
}

// put writes evidence into an outcome.
func (e *Evidence) put(into *audit.RunOutcome, now time.Time) {
	into.Value, into.Done, into.Total = clean(e.Value, maxValue), e.Done, e.Total
	into.Detail = clean(oneLine(into.Detail, e.Detail), maxValue)
	if age := now.Sub(e.At); !e.At.IsZero() && age > 0 {
		into.AgeS = int64(age / time.Second)
	}
}
