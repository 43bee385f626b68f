package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
)

const (
	maxSources    = 16  // carriers of one host
	reportPresent = 256 // ids of one carrier in a report, the newest
	reportBudgets = 64
)

// source is what a host knows of one carrier.
type source struct {
	present map[string]bool
	read    model.Instant // last full read
	ever    bool
	err     string
}

// sourceOf makes room for a source, up to a limit that no configuration reaches.
func (e *Engine) sourceOf(name string) *source {
	s, ok := e.sources[name]
	if !ok {
		s = &source{present: map[string]bool{}}
		if len(e.sources) < maxSources {
			e.sources[name] = s
		}
	}
	return s
}

// full replaces what is known of a source by a full read of it.
func (s *source) full(results []Result, now model.Instant) {
	s.present, s.read, s.ever, s.err = make(map[string]bool, len(results)), now, true, ""
	for _, r := range results {
		if r.carried {
			s.present[r.ID] = true
		}
	}
}

// age is the time since the last full read, -1 if there was none.
func (s *source) age(now model.Instant) int64 {
	switch {
	case !s.ever:
		return -1
	case s.read.BootID == now.BootID:
		return int64(max(0, now.Boot-s.read.Boot) / time.Second)
	}
	return int64(max(0, now.Wall.Sub(s.read.Wall)) / time.Second)
}

// Report is what the host says about itself at now. Lists of what others can
// make grow are cut: ids of a carrier at the 256 newest; refusals at 64, what
// matters first; heads at 64, forks and the newest first; budgets at the 64
// newest.
func (e *Engine) Report(now model.Instant) model.Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.floor.moment(now)
	r := model.Report{
		V: 1, Fleet: e.cfg.Fleet, Host: e.cfg.Host, Services: slices.Clone(e.cfg.Services),
		At: now.Wall.Round(0).UTC().Truncate(time.Millisecond), Boot: now.BootID, State: string(e.state()),
		Live: []model.ReportLive{}, Sources: []model.ReportSource{}, Budgets: []model.ReportBudget{},
		Refused:  e.reportRefused(at),
		Clock:    model.ReportClock{State: at.state, Floor: e.floor.on(now)},
		Heads:    e.heads.shown(),
		Policy:   e.bundle.Ref,
		Versions: model.ReportVersions{IC: e.cfg.Software, Engine: Version},
	}
	var ids []string
	for _, s := range e.standing(at) {
		if id := s.Directive.ID; len(ids) == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
			r.Live = append(r.Live, model.ReportLive{ID: id, Source: s.Source, Since: s.Since})
		}
	}
	r.Posture = directive.Posture(ids)
	for _, name := range slices.Sorted(maps.Keys(e.sources)) {
		s := e.sources[name]
		present := slices.AppendSeq(make([]string, 0, len(s.present)), maps.Keys(s.present))
		slices.Sort(present)
		present = present[max(0, len(present)-reportPresent):]
		r.Sources = append(r.Sources, model.ReportSource{Name: name, PresentIDs: present, AgeS: s.age(now), Error: s.err})
	}
	for _, p := range e.budgets.sorted() {
		used, _ := e.budgets.by[p].read()
		if used.count > 0 && len(r.Budgets) < reportBudgets {
			r.Budgets = append(r.Budgets, model.ReportBudget{Right: p.right, Control: p.control, Period: p.day, Count: used.count, Total: used.total})
		}
	}
	return r
}

// state is the one word for how much of what the host holds would survive.
func (e *Engine) state() Condition {
	for _, h := range e.set.byKey {
		if !h.durable {
			return StateUnpersisted
		}
	}
	return e.condition
}

// reportRefused lists what was not taken, what is held but not obeyed, and what is
// in force but shut, because as many grants of its right as may be are open.
func (e *Engine) reportRefused(at moment) []model.ReportRefused {
	out := []model.ReportRefused{}
	var bypasses []*held
	for _, h := range e.set.active {
		if h.d().Kind == model.Bypass && e.set.live(h, at) {
			bypasses = append(bypasses, h)
		}
	}
	_, beyond := earliest(e.bundle, bypasses)
	for _, h := range beyond {
		out = append(out, model.ReportRefused{ID: h.d().ID, Code: string(model.CodeOverLive)})
	}
	var idle []*held // held and not obeyed
	for _, h := range e.set.byKey {
		if !h.obeyed() && !expired(h.d(), at.host, h.run.elapsed(at.Instant)) { // then nobody waits for it any more
			idle = append(idle, h)
		}
	}
	slices.SortFunc(idle, func(a, b *held) int { return strings.Compare(a.signed.Token, b.signed.Token) })
	for _, h := range idle {
		switch {
		case h.unsupported:
			out = append(out, model.ReportRefused{ID: h.d().ID, Code: string(model.CodeUnsupported)})
		case h.closed != "":
			out = append(out, model.ReportRefused{ID: h.d().ID, Code: string(h.closed)})
		default:
			out = append(out, model.ReportRefused{ID: h.d().ID, Code: string(CodeNotDurable)})
		}
	}
	for _, r := range e.refused.sorted() {
		out = append(out, model.ReportRefused{ID: r.id, Code: string(r.code)})
	}
	return out[:min(len(out), reportRefused)]
}
