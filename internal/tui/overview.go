package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
)

// overview answers the first questions of somebody who was woken: what matters
// now, which tier, which signals, what is in force and when it ends.
type overview struct {
	width, height int
	scroll        scroll
	lines         int // as last drawn
}

// Levels of tightness. The overview takes the first that fits the window.
const (
	airy   = iota // blank lines between blocks
	dense         // none
	folded        // what is normal shares one line
	levels
)

// widest is how wide tables of few columns get: further apart, the eye loses
// its row.
const widest = 100

func (v *overview) Size(width, height int) { v.width, v.height = min(width, widest), height }

func (v *overview) Keys() []ownKey {
	return append([]ownKey{{enter, "use the right that fits"}}, scrolling()...)
}

func (v *overview) Update(sc *scene, a action) outcome {
	if v.scroll.move(a, v.lines, v.height) {
		if v.lines <= v.height {
			return cannot("everything is in front of you: there is nothing to scroll")
		}
		return ok()
	}
	if a != enter {
		return outcome{}
	}
	if right := sc.snap.Headline.Right; right != "" {
		return outcome{handled: true, wish: askWish{decisions.Ask{Right: right, Tier: nearestTier(sc, right)}}}
	}
	return cannot("no right fits what is going on: 2 lists all of them, s sheds")
}

// nearestTier asks a recovery for its next step; for everything else the tier
// is the right's own.
func nearestTier(sc *scene, right string) int {
	for i := range sc.snap.Matrix {
		if r := &sc.snap.Matrix[i]; r.Name == right && r.Request.Directive.IsRecovery() {
			return decisions.NextTier
		}
	}
	return 0
}

func (v *overview) Draw(sc *scene) page {
	lines := v.fit(sc)
	v.lines = len(lines)
	v.scroll.top = min(v.scroll.top, max(len(lines)-v.height, 0))
	shownLines := window(lines, v.scroll.top, v.height)
	if rest := len(lines) - v.scroll.top - v.height; rest > 0 && len(shownLines) > 0 {
		shownLines[len(shownLines)-1] = say(faint, fmt.Sprintf("   %s below: j", count(rest+1, "line")))
	}
	return still(shownLines)
}

// Below this size there is no room for tables.
const smallWidth, smallHeight = 58, 10

// fit takes the airiest level that fits the window.
func (v *overview) fit(sc *scene) []line {
	if v.width < smallWidth || v.height < smallHeight {
		return summary(sc, v.width)
	}
	var lines []line
	for level := airy; level < levels; level++ {
		if lines = v.build(sc, level); len(lines) <= v.height {
			break
		}
	}
	return lines
}

func (v *overview) build(sc *scene, level int) []line {
	first := v.firstColumn(sc)
	blocks := [][]line{
		headline(sc, sc.snap.Headline, v.width),
		v.services(sc, first, level == folded),
		v.signals(sc, first, level == folded),
		v.inForce(sc),
		facts(standing(sc, level == folded), v.width),
	}
	var lines []line
	for _, b := range blocks {
		if level == airy && len(lines) > 0 && len(b) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, b...)
	}
	return lines
}

// firstColumn makes the tables share their first column.
func (v *overview) firstColumn(sc *scene) int {
	w := 0
	for i := range sc.snap.Services {
		w = max(w, cells(sc.snap.Services[i].Service))
	}
	for i := range sc.snap.Signals {
		w = max(w, cells(sc.snap.Signals[i].Name))
	}
	return min(w, v.width/3)
}

// headline is what matters now, and what fits.
func headline(sc *scene, h decisions.Headline, width int) []line {
	switch {
	case !sc.read:
		return sentence(unknown, "what matters now: not read yet", width)
	case h.Text == "":
		return sentence(unknown, "what matters now is not known: no signal has been read", width)
	case h.Calm:
		return sentence(normal, h.Text, width)
	}
	lines := sentence(abnormal, h.Text, width)
	var fits []string
	if h.Right != "" {
		fits = append(fits, "enter: "+h.Right)
	}
	if h.Runbook != "" {
		fits = append(fits, "runbook: "+h.Runbook)
	}
	if len(fits) > 0 {
		for _, part := range wrap(strings.Join(fits, "   "), width-margin-3) {
			lines = append(lines, line{{"   -> ", faint}, {part, strong}})
		}
	}
	return lines
}

// sentence is a sentence without a label, with its glyph in the margin.
func sentence(i ink, text string, width int) []line {
	var lines []line
	glyph := i.glyph()
	for _, part := range wrap(text, width-margin) {
		lines = append(lines, line{{" " + glyph + " ", i}, {part, i}})
		glyph = " "
	}
	return lines
}

func (v *overview) services(sc *scene, first int, fold bool) []line {
	if len(sc.snap.Services) == 0 {
		return sentence(unknown, "services: not read yet", v.width)
	}
	var rows []record
	var calm []string
	hosts := 0
	for i := range sc.snap.Services {
		s := &sc.snap.Services[i]
		r := serviceRow(sc, s, v.barWidth(first))
		if fold && r.mark == normal {
			calm, hosts = append(calm, s.Service), hosts+s.Hosts
			continue
		}
		rows = append(rows, r)
	}
	lines := draw([]column{
		{title: "service", least: first},
		{title: "tier", least: 6},
		{title: "hosts by tier", least: 4, drop: 1},
		{title: "", drop: 2},
		{title: "state", least: 6, grow: true},
	}, rows, v.width)
	if len(calm) > 0 {
		lines = append(lines, say(faint, fmt.Sprintf("   T0 on all %s: %s", count(hosts, "host"), joined(calm))))
	}
	return lines
}

func (v *overview) barWidth(first int) int { return min(max(v.width-first-48, 8), 40) }

func serviceRow(sc *scene, s *incident.ServiceTier, width int) record {
	mark, state := normal, "normal"
	switch {
	case s.Hosts > 0 && s.Unknown == s.Hosts:
		mark, state = unknown, "no host reports"
	case s.Issued > 0 && s.Ramp != nil:
		mark, state = abnormal, fmt.Sprintf("recovering to T%d, %d %% of hosts", s.Ramp.To, s.Ramp.Percent)
	case s.Issued > 0:
		mark, state = abnormal, "shed"
	case s.At[0]+s.Unknown < s.Hosts:
		mark, state = abnormal, "hosts hold an old order"
	case s.Unknown > 0:
		mark, state = unknown, count(s.Unknown, "host")+" unknown"
	}
	if s.Issued > 0 && !s.Since.IsZero() {
		state += " " + sc.age(s.Since)
		if s.By != "" {
			state += " by " + s.By
		}
	}
	value := normal
	if s.Issued > 0 {
		value = abnormal
	}
	return record{mark: mark, cells: []span{
		{s.Service, normal}, {tierName(s.Issued), value}, {bar(s, width), mark}, {tally(s), faint}, {state, mark},
	}}
}

// bar draws hosts by tier: a point for a host that runs as built, the digit of
// its tier for one that is shed, "?" for one that does not tell. It needs no
// colour and no legend.
func bar(s *incident.ServiceTier, width int) string {
	total := max(s.Hosts, 1)
	width = min(width, total)
	var glyphs []string
	var parts []int
	sum := 0
	add := func(glyph string, hosts int) {
		if hosts > 0 {
			n := max(hosts*width/total, 1)
			glyphs, parts, sum = append(glyphs, glyph), append(parts, n), sum+n
		}
	}
	for _, t := range sortedKeys(s.At) {
		glyph := "."
		if t > 0 {
			glyph = strconv.Itoa(t % 10)
		}
		add(glyph, s.At[t])
	}
	add(unknown.glyph(), s.Unknown)
	if len(parts) == 0 {
		return ""
	}
	// The largest group takes what rounding has left, or gives what it took.
	largest := slices.Index(parts, slices.Max(parts))
	parts[largest] = max(parts[largest]+width-sum, 1)
	var b strings.Builder
	for i, n := range parts {
		b.WriteString(strings.Repeat(glyphs[i], n))
	}
	return clip(b.String(), width)
}

// tally is the bar in numbers.
func tally(s *incident.ServiceTier) string {
	tiers := sortedKeys(s.At)
	slices.Reverse(tiers)
	var parts []string
	for _, t := range tiers {
		if s.At[t] > 0 {
			parts = append(parts, fmt.Sprintf("T%d %d", t, s.At[t]))
		}
	}
	if s.Unknown > 0 {
		parts = append(parts, fmt.Sprintf("? %d", s.Unknown))
	}
	if len(parts) == 0 {
		return "no hosts"
	}
	return strings.Join(parts, "  ")
}

func (v *overview) signals(sc *scene, first int, fold bool) []line {
	if len(sc.snap.Signals) == 0 {
		return sentence(unknown, "signals: not read yet", v.width)
	}
	var rows []record
	var calm []string
	for i := range sc.snap.Signals {
		s := &sc.snap.Signals[i]
		r := signalRow(sc, s)
		if fold && r.mark == normal {
			calm = append(calm, s.Name)
			continue
		}
		rows = append(rows, r)
	}
	lines := draw([]column{
		{title: "signal", least: first},
		{title: "now", least: 6},
		{title: "abnormal when", least: 10, drop: 1},
		{title: "age", least: 4, right: true},
		{title: "state", least: 8, grow: true},
	}, rows, v.width)
	if len(calm) > 0 {
		lines = append(lines, say(faint, fmt.Sprintf("   within bounds: %s", joined(calm))))
	}
	return lines
}

func signalRow(sc *scene, s *incident.SignalView) record {
	mark, state := normal, normal.word()
	switch s.Reading.State {
	case model.ReadingValue:
		if s.Abnormal {
			mark, state = abnormal, abnormal.word()
		}
	case model.ReadingStale:
		mark, state = stale, "stale "+length(sc.now.Sub(s.Reading.At), true)
	case "":
		mark, state = unknown, "unknown: not read yet"
	default:
		mark, state = unknown, "unknown: "+string(s.Reading.State)
	}
	if s.Reading.Detail != "" && mark != normal {
		state += ", " + s.Reading.Detail
	}
	text := s.Text
	if mark == unknown {
		text = unknown.glyph()
	}
	age := "-"
	if !s.Reading.At.IsZero() {
		age = sc.age(s.Reading.At)
	}
	return record{mark: mark, cells: []span{{s.Name, normal}, {text, mark}, {s.Limit, faint}, {age, faint}, {state, mark}}}
}
