package cedar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

func id(n int) string { return fmt.Sprintf("01KC%022d", n) }

func drawScene(r *rand.Rand, p *rules) *scene {
	s := &scene{
		now: noon + int64(r.IntN(120)) - 60, mode: pick(r, model.Live, model.Live, model.Live, model.BreakGlass, model.ReadOnly), durable: often(r, 8),
		clock:  pick(r, model.ClockOK, model.ClockOK, model.ClockOK, model.ClockUnknown, model.ClockBehind, model.ClockUnsynced),
		holder: pick(r, append(slices.Clone(people), "")...), hosts: map[string]int{}, readings: map[string]reading{}, chains: map[string]chain{},
	}
	s.until = s.now + pick[int64](r, 0, 1, 600, 9000)
	for _, service := range services {
		s.hosts[service] = pick(r, 0, 1, 2, 5)
	}
	quiet := often(r, 5)
	if quiet {
		s.quiet()
	}
	for _, name := range signals {
		if _, drawn := s.readings[name]; !drawn && often(r, 9) {
			s.readings[name] = reading{
				state:  pick(r, model.ReadingValue, model.ReadingValue, model.ReadingValue, model.ReadingValue, model.ReadingStale, model.ReadingNoData),
				value:  pick[int64](r, 0, 30, 30, 59, 60, 61, 80, 81),
				steady: pick[int64](r, 60, 300, 600, 1200, 1200),
			}
		}
	}
	n := 0
	for _, scope := range scopes {
		n += 2
		if often(r, 6) {
			c := drawChain(r, s.now, n)
			if quiet {
				c.since, c.stepAt = c.since-2000, c.stepAt-2000
			}
			s.chains[scope] = c
		}
	}
	n += 2
	for range r.IntN(5) {
		if n++; quiet && often(r, 7) {
			continue
		}
		s.others = append(s.others, p.drawStanding(r, s.now, n))
	}
	s.used = map[string]int64{}
	for _, name := range p.names {
		if often(r, 7) {
			s.used[name] = s.now - pick[int64](r, 0, 3599, 3600, 3601, 90_000)
		}
		if p.rights[name].Cosign.Count > 0 && often(r, 7) {
			s.asked = append(s.asked, proposal{
				right: name, scope: pick(r, scopes...), requester: pick(r, people[:5]...), at: s.now - pick[int64](r, 100, 299, 300, 301, 700, 2000),
				signers: []string{pick(r, people[:5]...), pick(r, people[:5]...)}[:r.IntN(3)],
			})
		}
	}
	return s
}

func (p *rules) drawStanding(r *rand.Rand, now int64, n int) standing {
	from := now - pick[int64](r, -60, 0, 300, 5000)
	o := standing{
		id: id(n), kind: pick(r, model.Freeze, model.Bypass, model.Bypass, model.Off, model.Ping), scope: pick(r, scopes...),
		right: pick(r, p.names...), from: from, until: from + pick[int64](r, 60, 900, 6000), ended: often(r, 2),
	}
	if o.kind == model.Bypass {
		o.control, o.perHost = pick(r, controls...), pick[int64](r, 10_000, 60_000)
		if bounds := p.rights[o.right].Bypass; bounds != nil {
			o.control = bounds.Control
		}
	}
	return o
}

// quiet is a night in which nothing stands in the way: most of what is asked in a
// random one is refused for several reasons at once.
func (s *scene) quiet() {
	s.mode, s.durable, s.clock, s.until = model.Live, true, model.ClockOK, s.now+9000
	for _, name := range signals {
		s.readings[name] = reading{state: model.ReadingValue, value: 30, steady: 1200}
	}
	for _, service := range services {
		s.hosts[service] = 1
	}
}

func drawChain(r *rand.Rand, now int64, n int) chain {
	c := chain{tier: 1 + r.IntN(4), since: now - pick[int64](r, 30, 60, 100, 599, 600, 2000), ids: []string{id(n)}}
	signers := func() []string {
		return pick(r, nil, []string{pick(r, people[:5]...)}, []string{machines[0]}, []string{machines[0]}, []string{machines[1]}, []string{machines[0], pick(r, people[:5]...)})
	}
	c.shedBy = signers()
	if often(r, 5) {
		c.stepBy = signers()
		c.percent, c.ids, c.ramp = pick(r, 10, 25, 50), append(c.ids, id(n+1)), id(n)
		c.stepAt = now - min(now-c.since, pick[int64](r, 10, 30, 119, 120, 500))
	}
	if c.unseen = !often(r, 9); !c.unseen {
		c.late = pick[int64](r, 0, 0, 0, 1, 5)
	}
	return c
}

// request is what is asked, and what the one who asks knows of it: what a
// translation must not have to work out from ids.
type request struct {
	model.Request
	whole        bool // recovery: every id of the chain is listed
	ends, others int  // ending: ids of its kind and scope, and known ids that are not
	unknown      int  // ending: ids that nobody knows
}

// recoveries have the most conditions, so that most of them are refused.
func (p *rules) recoveries() []string {
	return slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return p.rights[name].Ends != model.Shed })
}

// drawRequest begins with what a right allows and bends a few things of it.
func drawRequest(r *rand.Rand, p *rules, s *scene) *request {
	q := &request{}
	d := &q.Directive
	d.Right = pick(r, p.names...)
	if recoveries := p.recoveries(); len(recoveries) > 0 && often(r, 4) {
		d.Right = pick(r, recoveries...)
	}
	right, known := p.rights[d.Right]
	if !known {
		right = drawRight(r)
	}
	d.ID, d.Fleet, d.Kind, d.Ends, d.Reason, d.Policy = id(900), fleet, right.Kind, right.Ends, "because", p.ref
	d.Scope = pick(r, append(slices.Clone(right.Scope), right.Scope[0], pick(r, scopes...))...)
	d.IssuedAt, d.NotBefore = at(s.now), at(s.now)
	if d.Kind == model.Bypass && often(r, 7) {
		d.Scope = pick(r, right.Scope...)
	}
	q.drawPeople(r, p, &right, s)
	q.drawBody(r, p, &right, s)
	if d.Kind == model.End {
		if d.Ends != model.Shed && often(r, 6) {
			s.others = append(slices.Clone(s.others), standing{id: id(500), kind: d.Ends, scope: d.Scope, right: d.Right, from: s.now - 100, until: s.now + 100})
		}
		q.drawIDs(r, s)
	}
	for range pick(r, 0, 0, 0, 0, 1, 2) {
		q.bend(r, p, s)
	}
	return q
}

func (q *request) drawPeople(r *rand.Rand, p *rules, right *policy.Right, s *scene) {
	everybody := append(slices.Clone(people), machines...)
	holders := membersOf(p.root, p.root.Roles[right.Who].Members)
	holders = append(holders, p.root.Roles[right.Who].Machines...)
	q.Actor = pick(r, everybody...)
	if len(holders) > 0 && often(r, 8) {
		q.Actor = pick(r, holders...)
	}
	role := p.root.Roles[right.Who]
	switch {
	case right.Ends == model.Shed && len(role.Machines) > 0 && often(r, 5):
		q.Actor = role.Machines[0] // without command, as machines are
	case often(r, 7):
		s.holder = q.Actor
	}
	group := membersOf(p.root, []string{right.Cosign.Of})
	for range pick(r, 0, 1, right.Cosign.Count, right.Cosign.Count+1) {
		name := pick(r, everybody...)
		if len(group) > 0 && often(r, 8) {
			name = pick(r, group...)
		}
		q.Cosigners = append(q.Cosigners, name)
	}
}

// membersOf lists the people behind names of people and groups.
func membersOf(root *policy.Root, names []string) []string {
	var out []string
	for _, name := range names {
		if group, ok := root.Groups[name]; ok {
			out = append(out, membersOf(root, group.Of)...)
		} else if _, ok := root.People[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

func (q *request) drawBody(r *rand.Rand, p *rules, right *policy.Right, s *scene) {
	d := &q.Directive
	switch d.Kind {
	case model.Shed:
		d.Tier = 1 + r.IntN(4)
	case model.Off:
		if d.Feature = right.Feature; d.Feature == "*" || often(r, 4) {
			d.Feature = pick(r, append(slices.Clone(features), controls...)...)
		}
	case model.Freeze, model.Ping:
		d.NotAfter = d.NotBefore.Add(right.Lasts.Std())
	case model.Dimmer:
		d.TargetMS, d.Floor, d.Ceiling = pick(r, 99, 100, 300, 500, 501), pick(r, 1, 2, 10), pick(r, 50, 90, 91)
	case model.Bypass:
		b := right.Bypass
		d.Control, d.NotAfter = b.Control, d.NotBefore.Add(b.Lasts.Std())
		d.Caps = model.Caps{Under: b.Under, HostCount: b.HostCount, HostTotal: b.HostTotal, Total: b.Total}
		d.Caps.HostTotal.Minor = pick(r, b.HostTotal.Minor, b.HostTotal.Minor/5, b.HostTotal.Minor/10)
	case model.End:
		if d.Ends != model.Shed {
			return
		}
		c := s.chains[d.Scope]
		d.From, d.To, d.Ramp = c.tier, c.tier-1, pick(r, c.ramp, c.ramp, c.ramp, c.ramp, id(77))
		d.Percent = pick(r, 10, 25, 50, 100)
		if n := c.tier - 1; n >= 0 && n < len(p.docs.Ladder.Tiers) && often(r, 7) {
			ramp := p.docs.Ladder.Tiers[n].Ramp
			d.Percent = ramp[r.IntN(len(ramp))]
		}
		q.Evidence = pick(r, "", "  ", "seen by eye", "seen by eye")
	}
}

// drawIDs chooses what an ending lists, and counts it as whoever asks would.
func (q *request) drawIDs(r *rand.Rand, s *scene) {
	d := &q.Directive
	if d.IsRecovery() {
		c := s.chains[d.Scope]
		d.IDs = slices.Clone(c.ids)
		if len(d.IDs) > 0 && often(r, 1) {
			d.IDs = d.IDs[1:]
		}
		q.whole = len(d.IDs) == len(c.ids)
		return
	}
	if often(r, 1) {
		d.IDs, q.unknown = append(d.IDs, id(88)), 1
	}
	for _, o := range s.others {
		fits := o.kind == d.Ends && o.scope == d.Scope // also what has been ended already: it may have been missed
		switch {
		case fits && often(r, 9):
			d.IDs, q.ends = append(d.IDs, o.id), q.ends+1
		case !fits && often(r, 1):
			d.IDs, q.others = append(d.IDs, o.id), q.others+1
		}
	}
}

// bend changes one thing to something near it.
func (q *request) bend(r *rand.Rand, p *rules, s *scene) {
	d := &q.Directive
	switch r.IntN(14) {
	case 0:
		d.Fleet = pick(r, fleet, "other")
	case 1:
		d.Kind = pick(r, model.Shed, model.Off, model.Freeze, model.Ping, model.Kind("melt"))
	case 2:
		d.IssuedAt = at(s.now + pick[int64](r, 86_399, 86_400, 86_401))
	case 3:
		d.Policy.Version = pick[int64](r, 4, 6)
	case 4:
		d.Policy.Digest = strings.Repeat("6", 64)
	case 5:
		d.Reason = pick(r, "", " \t")
	case 6:
		d.NotAfter = at(s.now + pick[int64](r, -5, 0, 1, 599, 600, 601, 3600, 3601))
	case 7:
		d.Caps.Under.Minor = pick[int64](r, 0, 1, 4999, 5001, 20_001)
	case 8:
		d.Caps.HostTotal.Minor, d.Caps.HostCount = pick[int64](r, 0, 1, 99_999, 100_001), pick[int64](r, 0, 1, 9, 101)
	case 9:
		d.Caps.Total.Currency = "EUR"
	case 10:
		d.From, d.To = r.IntN(5), r.IntN(4)
	case 11:
		d.Tier = r.IntN(7)
	case 12:
		d.Control = pick(r, controls...)
	case 13:
		d.Caps.Total.Minor = pick[int64](r, 1, 100_000, 900_001)
	}
}
