package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
)

// glass is break-glass: the backends by rank, what one of them would do, how far
// a push has come, and what is still to be removed.
type glass struct {
	width, height int
	listing       listing
	scroll        scroll
	lines, room   int // below the backends, as last drawn

	asked   question // the plan that was asked for last
	asking  bool
	plan    *incident.BreakPlan
	planErr string
	push    *pushing
}

// pushing is a push or an undo on its way, or the last one.
type pushing struct {
	q        question
	verb     string // "push", "undo"
	backend  string
	ids      []string
	progress *incident.Progress
	done     bool
	result   incident.Result
	err      string
}

func (v *glass) Size(width, height int) { v.width, v.height = width, height }

func (v *glass) Keys() []ownKey {
	return append([]ownKey{{enter, "plan with this backend; then push the plan"}},
		ownKey{moveDown, "next backend"}, ownKey{moveUp, "previous backend"}, ownKey{pageDown, ""}, ownKey{pageUp, ""})
}

func (v *glass) ids(sc *scene) []string {
	var ids []string
	for i := range sc.snap.Backends {
		ids = append(ids, sc.snap.Backends[i].Name)
	}
	return ids
}

func (v *glass) Update(sc *scene, a action) outcome {
	ids := v.ids(sc)
	switch a {
	case pageDown, pageUp:
		if v.lines <= v.room {
			return cannot("everything is in front of you: there is nothing to scroll")
		}
		v.scroll.move(a, v.lines, v.room)
		return ok()
	case moveDown, moveUp:
		v.listing.move(a, ids)
		return ok()
	case back:
		if v.plan != nil || v.planErr != "" || v.asking {
			v.drop()
			return ok()
		}
	case enter, breakGlass:
		v.listing.settle(ids)
		return v.next(sc)
	}
	return outcome{}
}

// drop forgets the plan; an answer on its way will find nobody waiting.
func (v *glass) drop() {
	v.plan, v.planErr, v.asking, v.asked = nil, "", false, question{}
	v.scroll = scroll{}
}

// next is the step that the selected backend is at: plan, then push.
func (v *glass) next(sc *scene) outcome {
	switch {
	case len(sc.snap.Backends) == 0:
		return cannot("the policy names no backend: break-glass needs one (backends.yaml)")
	case v.push != nil && !v.push.done:
		return cannot("a " + v.push.verb + " by " + v.push.backend + " is on its way: wait for it")
	case v.asking && v.asked.target == v.listing.id:
		return cannot(v.listing.id + " is being asked for its plan")
	case v.plan != nil && v.plan.Backend == v.listing.id:
		return outcome{handled: true, wish: pushWish{}}
	default:
		return outcome{handled: true, wish: planWish{v.listing.id}}
	}
}

func (v *glass) Draw(sc *scene) page {
	rows := backendRows(sc)
	if len(rows) == 0 {
		text := "the policy names no backend: without one a dead flag service cannot be gone round (backends.yaml)"
		if !sc.read {
			text = "backends: not read yet"
		}
		return still(append(sentence(unknown, text, v.width), v.obligations(sc)...))
	}
	p := v.listing.rows([]column{
		{title: "backend", least: 8, most: 20},
		{title: "carries"},
		{title: "restarts", drop: 3},
		{title: "overlap", most: 30, drop: 1},
		{title: "sim / live", drop: 2},
		{title: "", least: 8, grow: true, drop: 4},
	}, v.ids(sc), rows, v.width, min(len(rows)+1, max(v.height/2-1, 2)))
	lines := slices.Concat(v.pushLines(sc), v.planLines(sc), v.obligations(sc))
	if v.height >= lowView {
		p.lines = append(p.lines, nil)
	}
	v.lines, v.room = len(lines), max(v.height-len(p.lines), 0)
	p.lines = append(p.lines, window(lines, v.scroll.top, v.room)...)
	if rest := v.lines - v.scroll.top - v.room; rest > 0 && v.room > 0 {
		p.lines[len(p.lines)-1] = say(faint, fmt.Sprintf("   %s below: pgdn", count(rest+1, "line")))
	}
	return p
}

func backendRows(sc *scene) []record {
	var rows []record
	for i := range sc.snap.Backends {
		b := &sc.snap.Backends[i]
		carries, restarts := span{b.Carrier, normal}, "no"
		switch {
		case b.Carrier == "":
			carries, restarts = span{"not asked", faint}, "-"
		case b.Restarts:
			restarts = "yes"
		}
		mark, overlap := normal, span{"none", faint}
		if len(b.Overlap) > 0 {
			mark, overlap = abnormal, span{joined(b.Overlap), abnormal}
		}
		rows = append(rows, record{mark: mark, cells: []span{
			{b.Name, normal}, carries, {restarts, normal}, overlap, {sc.brief(b.Rehearsed), faint}, {b.Detail, faint}}})
	}
	return rows
}

// planLines are what would change, in words.
func (v *glass) planLines(sc *scene) []line {
	switch {
	case v.asking:
		return sentence(normal, v.asked.target+" is asked what it would do ...", v.width)
	case v.planErr != "":
		return append([]line{rule("no plan by "+v.asked.target, v.width)}, sentence(abnormal, v.planErr, v.width)...)
	case v.plan == nil && v.push == nil:
		return sentence(faint, "enter asks the selected backend for a plan; nothing is changed by that", v.width)
	case v.plan == nil:
		return nil
	}
	return append([]line{rule("plan by "+v.plan.Backend, v.width)}, facts(planFacts(sc, v.plan), v.width)...)
}

// planFacts are a plan for the view and for its confirmation.
func planFacts(sc *scene, p *incident.BreakPlan) []fact {
	list := []fact{
		{"carries", fmt.Sprintf("%s as %s: %s", count(len(p.IDs), "order"), p.Carrier, named(sc, p.IDs)), normal},
		{"restarts", fmt.Sprintf("%d of %s", p.Restarts, count(p.Targets, "host")), restartInk(p)},
	}
	good := fact{"on disk", "last-known-good: yes, on every host", normal}
	if p.LastKnownGood != "yes" {
		good.ink, good.text = abnormal, "last-known-good: "+orDash(p.LastKnownGood)+"; a host that restarts without it loses what it holds in memory"
	}
	list = append(list, good, fact{"rehearsed", sc.rehearsed(p.Rehearsed), normal})
	label := "conflicts"
	for _, c := range p.Conflicts {
		list, label = append(list, fact{label, c, abnormal}), ""
	}
	if len(p.LeftOut) > 0 {
		list = append(list, fact{"left out", shortIDs(p.LeftOut) + ": the carrier has no room for them", abnormal})
	}
	list = append(list, verdictFacts(sc, p)...)
	list = append(list, changeFacts(p)...)
	return append(list, fact{"plan", fmt.Sprintf("%.8s, made %s", p.Digest, sc.ago(p.At)), faint})
}

// changeFacts are what the plan writes where. Targets of the same change share one
// entry that names each of them: a fleet of sixty files is read before it is
// confirmed, and sixty times the same is not.
func changeFacts(p *incident.BreakPlan) []fact {
	type same struct {
		owner, before, after string
	}
	targets := map[same][]string{}
	var order []same
	for _, c := range p.Changes {
		key := same{c.Owner, c.Before, c.After}
		if targets[key] == nil {
			order = append(order, key)
		}
		targets[key] = append(targets[key], c.Target)
	}
	var list []fact
	for _, key := range order {
		where := joined(runsOf(targets[key]))
		if n := len(targets[key]); n > 1 {
			where = fmt.Sprintf("%d targets: %s", n, where)
		}
		if key.owner != "" {
			where += " (owned by " + key.owner + ")"
		}
		list = append(list, fact{"change", where, strong}, fact{"  before", carried(key.before), faint}, fact{"  after", carried(key.after), normal})
	}
	return list
}

func verdictFacts(sc *scene, p *incident.BreakPlan) []fact {
	if len(p.Reasons) == 0 {
		return []fact{{"verdict", string(p.Verdict.Outcome), strong}}
	}
	var list []fact
	for i, text := range p.Reasons {
		f := fact{"", text, normal}
		if i == 0 {
			f = fact{"verdict", string(p.Verdict.Outcome) + ": " + text, normal}
		}
		list = append(list, f)
	}
	return list
}

func restartInk(p *incident.BreakPlan) ink {
	if p.Restarts > 0 {
		return abnormal
	}
	return normal
}

// maxValue is how much of a value that holds no orders is shown, in cells: enough
// to recognise it.
const maxValue = 160

// carried is the value of a carrier for people: the orders in it by what they do,
// not by their signatures; anything else as it is.
func carried(value string) string {
	if value == "" {
		return "(empty)"
	}
	var titles []string
	for _, token := range directive.SplitCarrier(value) {
		d, err := decoded(token)
		if err != nil {
			return clip(value, maxValue)
		}
		titles = append(titles, incident.TitleOf(&d)+" ("+incident.ShortID(d.ID)+")")
	}
	return fmt.Sprintf("%s, %d bytes: %s", count(len(titles), "order"), len(value), strings.Join(titles, "; "))
}

// pushLines tell what the pipeline says and what hosts report, apart: only the
// second counts.
func (v *glass) pushLines(sc *scene) []line {
	p := v.push
	if p == nil {
		return nil
	}
	list := []fact{pipelineFact(p)}
	for i := range sc.snap.Live {
		l := &sc.snap.Live[i]
		if !slices.Contains(p.ids, l.Issued.Directive.ID) {
			continue
		}
		mark := normal
		if l.Done < l.Total {
			mark = abnormal
		}
		list = append(list, fact{"hosts say", fmt.Sprintf("%d of %d hold it: %s", l.Done, l.Total, what(l)), mark})
	}
	return append([]line{rule(p.verb+" by "+p.backend, v.width)}, facts(list, v.width)...)
}

func pipelineFact(p *pushing) fact {
	switch {
	case p.err != "":
		return fact{"failed", p.err, abnormal}
	case p.done:
		return fact{"result", outcomeText(&p.result), stateInk(p.result.State)}
	case p.progress == nil:
		return fact{"it says", "started", normal}
	default:
		text := p.progress.Phase
		if p.progress.Total > 0 {
			text += fmt.Sprintf(" %d/%d", p.progress.Done, p.progress.Total)
		}
		if p.progress.Target != "" {
			text += " at " + p.progress.Target
		}
		if p.progress.Message != "" {
			text += ": " + p.progress.Message
		}
		return fact{"it says", text, normal}
	}
}

// obligations are the overrides that have to be removed.
func (v *glass) obligations(sc *scene) []line {
	if !sc.read {
		return nil
	}
	if len(sc.snap.Overrides) == 0 {
		return append([]line{nil}, sentence(faint, "no override is on any host", v.width)...)
	}
	lines := []line{nil, rule("to be removed (u)", v.width)}
	for i := range sc.snap.Overrides {
		o := &sc.snap.Overrides[i]
		lines = append(lines, sentence(abnormal, fmt.Sprintf("%s by %s since %s, %s: %s",
			incident.ShortID(o.Operation), o.Backend, sc.age(o.Since), o.State, shortIDs(o.IDs)), v.width)...)
	}
	return lines
}

// stateInk is how far an order has come, for the eye.
func stateInk(s incident.State) ink {
	switch s {
	case incident.Effective, incident.Proposed, incident.Planned:
		return normal
	case incident.Blocked, incident.Dropped, incident.Unknown:
		return critical
	default:
		return abnormal
	}
}
