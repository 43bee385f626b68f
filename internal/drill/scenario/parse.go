package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/model"
)

// Parse reads a scenario. file is its name for messages; known is the world that
// it will be played on. The error is Errors: everything that is wrong, up to
// MaxErrors.
func Parse(file string, raw []byte, known Known) (*Scenario, error) {
	p := &parser{file: shownFile(file), known: known, s: &Scenario{}, seen: make(map[string]int), begun: make(map[string]bool), last: -1}
	p.check(p.lines(raw))
	if len(p.errs) > 0 {
		slices.SortStableFunc(p.errs, func(a, b ErrorAt) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, p.errs[:min(len(p.errs), MaxErrors)]
	}
	return p.s, nil
}

// shownFile is a file's name without quotes, which an editor could not follow.
func shownFile(name string) string {
	quoted := shown(name)
	return quoted[1 : len(quoted)-1]
}

type parser struct {
	file    string
	known   Known
	s       *Scenario
	errs    Errors
	seen    map[string]int  // line of a keyword that stands once, and of other things that do
	begun   map[string]bool // what stands there and could not be read: it is not missing as well
	last    int             // rank of the keyword before
	section section         // that an indented line belongs to
}

func (p *parser) fail(line, col int, format string, args ...any) {
	if len(p.errs) < 4*MaxErrors { // sorted and cut at the end
		p.errs = append(p.errs, ErrorAt{p.file, line, col, fmt.Sprintf(format, args...)})
	}
}

// at fails at word i of a line.
func (p *parser) at(l *line, i int, format string, args ...any) {
	p.fail(l.n, l.col(i), format, args...)
}

// once is false for what stands already, and says so.
func (p *parser) once(l *line, i int, what string) bool {
	if n, ok := p.seen[what]; ok {
		p.at(l, i, "%s stands in line %d already", what, n)
		return false
	}
	p.seen[what] = l.n
	return true
}

func (p *parser) check(lines []line) {
	if len(p.errs) > 0 && lines == nil {
		return
	}
	// The length and the people come first in the file because the rest is measured
	// against them; a file in another order is told so once.
	for i := range lines {
		l := &lines[i]
		switch {
		case l.odd:
			p.unread(l)
		case l.inside:
			n, acts := len(p.errs), len(p.s.Baseline)+len(p.s.IC)
			p.step(l)
			if len(p.errs) > n && len(p.s.Baseline)+len(p.s.IC) == acts {
				p.begun[string(p.section)] = true
			}
		default:
			p.section = sectionNone
			n := len(p.errs)
			p.statement(l)
			if len(p.errs) > n {
				p.begun[l.word(0)] = true
			}
		}
	}
	p.complete(lines)
}

func (p *parser) statement(l *line) {
	keyword := l.word(0)
	r := rank(keyword)
	if r < 0 {
		p.at(l, 0, "unknown word %s: %s", shown(keyword), meant(keyword, keywords[:]))
		if near := nearest(keyword, keywords[:]); near != "" {
			p.stands(near)
		}
		return
	}
	if r < p.last {
		p.at(l, 0, "%q is out of order: it stands before %q; acts of people are indented", keyword, keywords[p.last])
	}
	p.last = r // of what follows only what is out of order again is said
	if !slices.Contains(many[:], keyword) && !p.once(l, 0, strconv.Quote(keyword)) {
		p.stands(keyword)
		return
	}
	switch keyword {
	case "scenario":
		p.s.Name, p.s.named = p.name(l, 1), ErrorAt{File: p.file, Line: l.n, Column: l.col(1)}
		p.end(l, 2)
	case "title":
		p.s.Title = p.sentence(l)
	case "source":
		p.s.Source = p.sentence(l)
	case "why":
		p.s.Why = append(p.s.Why, p.sentence(l))
	case "fleet":
		p.fleet(l)
	case "lasts":
		p.s.Lasts = p.some(l, 1, "a scenario lasts longer than nothing")
		p.end(l, 2)
	case "people":
		p.person(l)
	case "shop":
		p.setting(l)
	case "policy":
		p.expires(l)
	case "series":
		p.series(l)
	case "at":
		p.happening(l)
	case "abort_if":
		p.s.AbortIf = append(p.s.AbortIf, p.bound(l, 1, false))
	case "baseline":
		p.section = sectionBaseline
		p.end(l, 1)
	case "with":
		p.with(l)
	case "expect":
		p.expect(l)
	case "fitted":
		p.fitted(l)
	}
}

// sentence is what follows the keyword.
func (p *parser) sentence(l *line) string {
	text := l.rest(1)
	if text == "" {
		p.at(l, 1, "%q wants a sentence after it", l.word(0))
	}
	return text
}

// end refuses words from i on.
func (p *parser) end(l *line, i int) {
	if len(l.words) > i {
		p.at(l, i, "%s is one word too many", shown(l.word(i)))
	}
}

// name is a word of small letters, digits and dashes.
func (p *parser) name(l *line, i int) string {
	w := l.word(i)
	if w == "" || len(w) > 64 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		p.at(l, i, "%s is no name: small letters, digits and dashes, at most 64", shown(w))
		return ""
	}
	return w
}

// of is a word that must be one of known.
func (p *parser) of(l *line, i int, what string, known []string) string {
	w := l.word(i)
	if !slices.Contains(known, w) {
		p.at(l, i, "unknown %s %s: %s", what, shown(w), meant(w, known))
		return ""
	}
	return w
}

// span is a duration of at most most.
func (p *parser) span(l *line, i int, most time.Duration) time.Duration {
	d, err := model.ParseDuration(l.word(i))
	if err != nil {
		p.at(l, i, "%s is no duration: a number and one unit, like 15m, 45s or 2h", shown(l.word(i)))
		return 0
	}
	if d.Std() > most {
		p.at(l, i, "%s is more than %s, the most there is", d, model.Duration(most))
		return 0
	}
	return d.Std()
}

// some is a duration that is not nothing; none says why there is no such thing.
func (p *parser) some(l *line, i int, none string) time.Duration {
	n := len(p.errs)
	d := p.span(l, i, MaxLasts)
	if d == 0 && len(p.errs) == n {
		p.at(l, i, "%s", none)
	}
	return d
}

// moment is a time of the scenario.
func (p *parser) moment(l *line, i int) time.Duration {
	d := p.span(l, i, MaxLasts)
	if p.s.Lasts > 0 && d > p.s.Lasts {
		p.at(l, i, "%s is after the end: the scenario lasts %s", model.Duration(d), model.Duration(p.s.Lasts))
	}
	return d
}

// whole is a number without a sign.
func (p *parser) whole(l *line, i int, most int64) int64 {
	n, err := strconv.ParseInt(l.word(i), 10, 64)
	if err != nil || n < 0 || n > most || strconv.FormatInt(n, 10) != l.word(i) {
		p.at(l, i, "%s is no number from 0 to %d", shown(l.word(i)), most)
		return 0
	}
	return n
}

func (p *parser) fleet(l *line) {
	p.of(l, 1, "fleet", []string{"shop"})
	said := len(p.errs)
	n := int(p.whole(l, 2, MaxHosts))
	if n < 12 && len(p.errs) == said {
		p.at(l, 2, "a shop has at least 12 hosts: one of each service on each side of a partition")
	}
	p.s.Hosts = n
	p.end(l, 3)
}

// person: people NAME ROLE reacts 4m [acts 1m] | people NAME ROLE absent
func (p *parser) person(l *line) {
	one := Person{Name: p.of(l, 1, "person", p.known.People), Role: l.word(2)}
	if one.Name == "" {
		p.begun["person"] = true // whoever is meant has a line
	}
	if one.Role != "" {
		one.Role = p.name(l, 2)
	}
	if one.Name != "" && !p.once(l, 1, "person "+one.Name) {
		p.begun["person"] = true // somebody else may be meant
		return
	}
	switch l.word(3) {
	case "absent":
		one.Absent = true
		p.end(l, 4)
	case "reacts":
		const none = "nobody acts in no time: a person needs a second at least"
		one.Reacts = p.some(l, 4, none)
		one.Acts = one.Reacts
		if l.word(5) == "acts" {
			one.Acts = p.some(l, 6, none)
			p.end(l, 7)
		} else {
			p.end(l, 5)
		}
	default:
		p.at(l, 3, `after the role comes "reacts TIME", or "absent"`)
	}
	p.s.People = append(p.s.People, one)
}

func (p *parser) personNamed(name string) *Person {
	for i := range p.s.People {
		if p.s.People[i].Name == name {
			return &p.s.People[i]
		}
	}
	return nil
}

// setting: shop NAME [of SERVICE] VALUE
func (p *parser) setting(l *line) {
	info := settingNamed(l.word(1))
	if info == nil {
		p.at(l, 1, "unknown figure of the shop %s: %s", shown(l.word(1)), meant(l.word(1), settingNames()))
		return
	}
	one, i := Setting{Line: l.n, Name: info.name}, 2
	if info.of {
		if l.word(2) != "of" {
			p.at(l, 2, `%q wants "of SERVICE" after it`, info.name)
			return
		}
		one.Of = p.of(l, 3, "service", p.known.Services)
		i = 4
	}
	if !p.once(l, 1, strings.TrimSpace("shop "+info.name+" "+one.Of)) {
		return
	}
	switch {
	case info.unit != percent:
		one.Value, i = p.value(l, i, info.unit)
	case info.of: // how busy a station is
		one.Value, i = p.share(l, i, million, info.name+" can be"), i+2
	default:
		one.Value, i = p.share(l, i, MaxLoad, info.name+" can be"), i+2
	}
	p.end(l, i)
	p.s.Shop = append(p.s.Shop, one)
}

// expires: policy expires TIME
func (p *parser) expires(l *line) {
	if l.word(1) != "expires" {
		p.at(l, 1, `of the policy can be said only when it is over: "policy expires TIME"`)
		return
	}
	n := len(p.errs)
	p.s.Expires = p.moment(l, 2)
	if p.s.Expires < time.Second && len(p.errs) == n {
		p.at(l, 2, "the policy has to be in force when the scenario begins: it expires after 1s at the earliest")
	}
	p.end(l, 3)
}

// happening: at TIME inject FAULT | clear FAULT | load SHARE
func (p *parser) happening(l *line) {
	said := len(p.errs)
	one := Happening{Line: l.n, At: p.moment(l, 1), Verb: l.word(2)}
	if n := len(p.s.World); len(p.errs) > said {
		if n > 0 {
			one.At = p.s.World[n-1].At // what follows is not out of order as well
		}
	} else if n > 0 && one.At < p.s.World[n-1].At {
		p.at(l, 1, "%s is out of order: the line before is at %s", model.Duration(one.At), model.Duration(p.s.World[n-1].At))
	}
	switch one.Verb {
	case "inject", "clear":
		one.Fault = l.word(3)
		if all := slices.Concat(p.known.Faults, p.known.Shocks); !slices.Contains(all, one.Fault) {
			p.at(l, 3, "this world has no fault %s: %s", shown(one.Fault), meant(one.Fault, all))
			p.begun["fault"] = true // the one that is meant may be cleared
		} else if slices.Contains(p.known.Shocks, one.Fault) {
			if one.Verb == "clear" {
				p.at(l, 3, "%s is over at once and needs no clearing", one.Fault)
			}
		} else if key := "fault " + one.Fault; one.Verb == "inject" {
			if p.once(l, 3, key) {
				break
			}
		} else if _, ok := p.seen[key]; !ok {
			if !p.begun["fault"] {
				p.at(l, 3, "%s is cleared and was not injected before", one.Fault)
			}
		} else {
			delete(p.seen, key) // it may come again
		}
	case "load":
		one.Load = p.share(l, 3, MaxLoad, "the demand can be")
		p.end(l, 5)
	default:
		p.at(l, 2, "unknown word %s: %s", shown(one.Verb), meant(one.Verb, []string{"inject", "clear", "load"}))
	}
	if one.Fault != "" {
		p.end(l, 4)
	}
	p.s.World = append(p.s.World, one)
}

func (p *parser) with(l *line) {
	switch l.word(1) {
	case "ic":
		p.section = sectionIC
		p.andLadder(l, 2)
	case "runbook":
		p.section = sectionRunbook
		p.s.Runbook = p.name(l, 2)
		p.andLadder(l, 3)
	default:
		p.at(l, 1, `after "with" comes "ic" or "runbook NAME", and "and ladder" if the policy's controller runs`)
		p.stands("with")
	}
}

// andLadder: [and ladder], at the end of a line.
func (p *parser) andLadder(l *line, i int) {
	if p.s.Ladder = l.word(i) == "and"; p.s.Ladder {
		p.of(l, i+1, "helper", []string{ladder})
		i += 2
	}
	p.end(l, i)
}

// expect: expect MODE BOUND
func (p *parser) expect(l *line) {
	mode := p.of(l, 1, "mode", []string{string(score.Baseline), string(score.WithIC), string(score.NoSecondBypass)})
	one := Expectation{Bound: p.bound(l, 2, true), Mode: score.Mode(mode)}
	p.s.Expect = append(p.s.Expect, one)
}

// fitted: fitted NAME = VALUE... because WHY...
func (p *parser) fitted(l *line) {
	one := Fitted{Line: l.n, Name: p.name(l, 1)}
	if l.word(2) != "=" {
		p.at(l, 2, `a fitted parameter is written NAME = VALUE because WHY`)
		return
	}
	i := 3
	for i < len(l.words) && l.word(i) != "because" {
		i++
	}
	if i == 3 || i+1 >= len(l.words) {
		p.at(l, i, `a fitted parameter is written NAME = VALUE because WHY`)
		return
	}
	if one.Name != "" && !p.once(l, 1, "fitted "+one.Name) {
		return
	}
	var value []string
	for _, w := range l.words[3:i] {
		value = append(value, w.text)
	}
	one.Value, one.Why = strings.Join(value, " "), l.rest(i+1)
	p.s.Fitted = append(p.s.Fitted, one)
}
