package drill_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// witness is one host as it is asked: by its own engine and its own clock.
type witness struct {
	host, service string
	engine        *engine.Engine // nil: the process is down
	clock         model.Clock
	paused        bool
}

// statement is one token with what the law says of it.
type statement struct {
	model.Directive
	token   string
	signers []string
	illegal string    // why it is not permitted; "" if it is
	heard   time.Time // by the flag service, or by a host
}

// memory is what a host has shown at some look.
type memory struct {
	had    map[string]time.Time // statement -> first seen in force
	lacked map[string]time.Time // statement -> last asked before that
	asked  time.Time            // last
	behind time.Duration        // most that its clock was behind so far
	paused time.Duration        // in all
	spent  map[string]spent     // by right
	count  int64
	cents  int64
}

type spent struct{ count, cents int64 }

// truth is what is known of the world from its hosts and its wires, and the promises
// that are held against it.
type truth struct {
	s     *swarm
	all   []*statement // as they were heard
	byID  map[string]*statement
	read  int // tokens of the world that are in all
	hosts map[string]*memory
	last  time.Time
	steps map[string]step // service -> the last recovery that changed it
}

type step struct {
	at time.Time
	id string
}

func newTruth(s *swarm) *truth {
	return &truth{s: s, byID: map[string]*statement{}, hosts: map[string]*memory{}, last: s.start, steps: map[string]step{}}
}

func (t *truth) memory(host string) *memory {
	m := t.hosts[host]
	if m == nil {
		m = &memory{had: map[string]time.Time{}, lacked: map[string]time.Time{}, asked: t.s.start, spent: map[string]spent{}}
		t.hosts[host] = m
	}
	return m
}

// hear takes in what has been signed since the last time.
func (t *truth) hear() {
	tokens := t.s.w.Tokens()
	for _, token := range tokens[t.read:] {
		t.take(token)
	}
	t.read = len(tokens)
}

func (t *truth) take(token string) *statement {
	signed, err := directive.Verify(token, directive.Drill, sim.Fleet)
	if err != nil {
		return nil // no host may take it; look says so
	}
	is := &statement{Directive: signed.Directive, token: token, heard: t.s.w.Kernel().Now()}
	for _, fp := range signed.Fingerprints() {
		is.signers = append(is.signers, t.s.law.names[fp])
	}
	is.illegal = t.s.law.forbids(&is.Directive, is.signers)
	t.s.counts.statements++
	if is.illegal != "" {
		t.s.counts.forged++
	}
	if other := t.byID[is.ID]; other != nil && other.illegal == "" {
		return other // the same statement with another signature
	}
	t.byID[is.ID] = is
	t.all = append(t.all, is)
	t.count(is)
	if is.illegal == "" && is.Kind == model.Shed {
		t.steps = map[string]step{} // what comes after it waits for its dwell, which nextPercent counts
	}
	if is.illegal == "" && is.IsRecovery() {
		t.oneStep(is)
	}
	return is
}

func (t *truth) count(is *statement) {
	switch {
	case is.illegal != "":
	case is.Kind == model.Bypass:
		t.s.counts.bypasses++
	case is.IsRecovery():
		t.s.counts.recoveries++
	case is.Kind == model.End:
		t.s.counts.endings++
	}
}

// ended reports whether somebody who may has ended a statement.
func (t *truth) ended(id string) bool {
	d := t.byID[id]
	for _, e := range t.all {
		if e.illegal == "" && e.Kind == model.End && e.Scope == d.Scope && e.Ends == d.EndedAs() && slices.Contains(e.IDs, id) {
			return true
		}
	}
	return false
}

// look asks every host, and holds it to what was promised.
func (t *truth) look() {
	t.hear()
	now := t.s.w.Kernel().Now()
	for _, h := range t.witnesses() {
		m := t.memory(h.host)
		m.behind = max(m.behind, now.Sub(h.clock.Now().Wall))
		if h.paused {
			m.paused += now.Sub(t.last)
		}
		if h.engine == nil || h.paused {
			continue
		}
		t.host(h, m, now)
	}
	t.last = now
}

func (t *truth) witnesses() []witness {
	var out []witness
	for _, h := range t.s.w.Inside() {
		out = append(out, witness{host: h.Host, service: h.Service, engine: h.Engine, clock: h.Clock, paused: h.Paused})
	}
	if t.s.plant.hosts != nil {
		out = t.s.plant.hosts(t.s, out)
	}
	return out
}

func (t *truth) host(h witness, m *memory, now time.Time) {
	host := h.clock.Now()
	standing := h.engine.Standing(host)
	open := false
	grants := map[string][]string{} // in force, by right: ids, for one may be held with several signatures
	t.neverOpen(h, host)
	for i := range standing {
		d := &standing[i].Directive
		is := t.known(d.ID)
		switch {
		case is == nil:
			t.s.fail("policy: %s obeys %s, which nobody has handed over", h.host, d.ID)
			return
		case is.illegal != "":
			t.s.fail("policy: %s obeys %s (%s by %v): %s", h.host, d.ID, d.Right, is.signers, is.illegal)
			return
		}
		if _, known := m.had[d.ID]; !known {
			m.had[d.ID], m.lacked[d.ID] = now, m.asked
		}
		if d.Kind == model.Bypass {
			open = true
			t.bypass(h.host, m, is, now)
			if !slices.Contains(grants[d.Right], d.ID) {
				grants[d.Right] = append(grants[d.Right], d.ID)
			}
			if right, _ := t.s.law.right(d.Right); len(grants[d.Right]) > right.Bypass.Live {
				t.s.fail("policy: %s has %d grants of %s in force at the same time", h.host, len(grants[d.Right]), d.Right)
			}
		}
	}
	m.asked = now
	t.closed(h, host, open)
	t.lasting(h, m, standing)
}

// known is a statement that a host has. A pipeline may carry what was nowhere before.
func (t *truth) known(id string) *statement {
	if t.byID[id] == nil {
		t.fromLogs(func(is *model.Issued) bool { return is.Directive.ID == id })
	}
	return t.byID[id]
}

// ending is what takes a statement back at once. A step of a recovery stays in force on
// a host, where it is found.
func ending(is *model.Issued) bool {
	return is.Directive.Kind == model.End && !is.Directive.IsRecovery()
}

// bypass: dead at its end, late by no more than the host's clock was wrong, and by
// its own length after the host has heard of it whatever the clock says.
func (t *truth) bypass(host string, m *memory, is *statement, now time.Time) {
	byClock := is.NotAfter.Add(m.behind)
	begun := m.had[is.ID]
	if is.NotBefore.After(begun) {
		begun = is.NotBefore
	}
	byBoot := begun.Add(is.NotAfter.Sub(is.NotBefore)).Add(m.paused)
	limit := byClock
	if byBoot.Before(limit) {
		limit = byBoot
	}
	if !now.Before(limit) && !now.Equal(limit) {
		t.s.fail("end: %s lets the bypass %s (until %s) live %s after its end", host, is.ID, is.NotAfter.Format(time.TimeOnly), now.Sub(is.NotAfter))
	}
}

// neverOpen: nothing opens authorization.
func (t *truth) neverOpen(h witness, now model.Instant) {
	for _, service := range []string{"*", h.service} {
		if h.engine.IsOpen(accessCheck, service, now) {
			t.s.fail("authorization: %s has %s open for %s", h.host, accessCheck, service)
		}
	}
	if ok, _ := h.engine.Allow(accessCheck, h.service, model.Money{Minor: 1, Currency: "USD"}, now); ok {
		t.s.fail("authorization: %s lets something past %s", h.host, accessCheck)
	}
}

// closed: nothing is open without a grant.
func (t *truth) closed(h witness, now model.Instant, granted bool) {
	if h.engine.IsOpen(templates.PaymentRisk, h.service, now) && !granted {
		t.s.fail("policy: %s has %s open and no grant in force", h.host, templates.PaymentRisk)
	}
}

// lasting: a shed that nobody has ended is in force on every host that had it.
func (t *truth) lasting(h witness, m *memory, standing []engine.Standing) {
	tier := 0
	for id := range m.had {
		is := t.byID[id]
		if is.Kind != model.Shed && is.Kind != model.Off && !is.IsRecovery() || t.ended(id) {
			continue
		}
		if !slices.ContainsFunc(standing, func(s engine.Standing) bool { return s.Directive.ID == id }) {
			if t.fromLogs(ending); t.ended(id) {
				continue // by what a pipeline carried and no flag service had
			}
			t.s.fail("shed: %s has lost %s (%s), which nobody has ended", h.host, id, is.Right)
			return
		}
		if is.Covers(h.service) {
			tier = max(tier, directive.TierOn(is.Directive, h.host))
		}
	}
	if last := t.s.law.bundle.LastTier(h.service); h.engine.Tier(h.service, h.clock.Now()) < min(tier, last) {
		t.s.fail("shed: %s is at tier %d and had %d, which nobody has ended", h.host, h.engine.Tier(h.service, h.clock.Now()), tier)
	}
}

// order is one that went through without a check: some grant that was in force there
// covers it, and the host has not spent more than its budget.
func (t *truth) order(host string, cents int64) {
	t.s.counts.orders++
	t.hear()
	for _, h := range t.witnesses() {
		if h.host == host && h.engine != nil {
			for _, s := range h.engine.Standing(h.clock.Now()) {
				t.known(s.Directive.ID)
			}
		}
	}
	m := t.memory(host)
	m.count, m.cents = m.count+1, m.cents+cents
	now := t.s.w.Kernel().Now()
	covered := false
	most := map[string]spent{} // by right: grants of one right share a budget
	for _, is := range t.all {
		if is.Kind != model.Bypass || is.illegal != "" || is.NotBefore.After(now.Add(t.ahead(host))) {
			continue
		}
		b := most[is.Right]
		most[is.Right] = spent{max(b.count, is.Caps.HostCount), max(b.cents, is.Caps.HostTotal.Minor)}
		live := !now.After(is.NotAfter.Add(m.behind)) || m.behind+m.paused > 0
		covered = covered || live && cents < is.Caps.Under.Minor
	}
	if !covered {
		t.s.fail("policy: %s let an order of %d cents through that no grant covers", host, cents)
	}
	var count, total int64
	for _, b := range most {
		count, total = count+b.count, total+b.cents
	}
	if m.count > count || m.cents > total {
		t.s.fail("policy: %s has let %d orders of %d cents through; its budget is %d of %d", host, m.count, m.cents, count, total)
	}
}

// ahead is how far a host's clock is before the time.
func (t *truth) ahead(host string) time.Duration {
	for _, h := range t.s.w.Inside() {
		if h.Host == host {
			return max(0, h.Clock.Now().Wall.Sub(t.s.w.Kernel().Now()))
		}
	}
	return 0
}

// signed lists the statements for a person.
func (t *truth) signed() string {
	var b strings.Builder
	for _, is := range t.all {
		fmt.Fprintf(&b, "%7.1fs %s %s %s by %v", is.heard.Sub(t.s.start).Seconds(), is.ID, is.Right, is.Scope, is.signers)
		switch {
		case is.IsRecovery():
			fmt.Fprintf(&b, ": %d to %d, %d %% of ramp %s, ending %v", is.From, is.To, is.Percent, is.Ramp, is.IDs)
		case is.Kind == model.Shed:
			fmt.Fprintf(&b, ": tier %d", is.Tier)
		case is.Kind == model.End:
			fmt.Fprintf(&b, ": ending %v", is.IDs)
		case !is.NotAfter.IsZero():
			fmt.Fprintf(&b, ": from %s to %s", is.NotBefore.Format(time.TimeOnly), is.NotAfter.Format(time.TimeOnly))
		}
		if is.illegal != "" {
			fmt.Fprintf(&b, " (not permitted: %s)", is.illegal)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// tally sums up what all swarms have seen.
type tally struct {
	mu  sync.Mutex
	n   int
	sum counts
}

func (t *tally) add(c *counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	s := &t.sum
	s.statements += c.statements
	s.forged += c.forged
	s.repeated += c.repeated
	s.bypasses += c.bypasses
	s.recoveries += c.recoveries
	s.endings += c.endings
	s.pushes += c.pushes
	s.orders += c.orders
	s.kills += c.kills
	s.acts += c.acts
	s.unknown += c.unknown
	s.reconciled += c.reconciled
}

// missing names something that has not happened in any world.
func (t *tally) missing() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sum
	for _, c := range []struct {
		n    int64
		what string
	}{
		{s.kills, "console killed"}, {s.forged, "statement of a thief"}, {s.bypasses, "bypass"}, {s.recoveries, "recovery step"},
		{s.endings, "ending"}, {s.pushes, "push"}, {s.orders, "order without a check"}, {s.repeated, "act asked for twice"}, {s.reconciled, "act of which a later console has found out"},
	} {
		if c.n == 0 {
			return c.what
		}
	}
	return ""
}

// String is one line for the record.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sum
	return fmt.Sprintf("%d worlds: %d acts, %d consoles killed, %d statements signed (%d of them by a thief), %d asked for twice, %d bypasses, %d recovery steps, %d endings, %d pushes, %d orders without a check, %d acts found out about by a later console and %d left UNKNOWN",
		t.n, s.acts, s.kills, s.statements, s.forged, s.repeated, s.bypasses, s.recoveries, s.endings, s.pushes, s.orders, s.reconciled, s.unknown)
}
