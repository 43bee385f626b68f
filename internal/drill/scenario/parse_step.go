package scenario

import (
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/model"
)

// step: CUE PERSON VERB WORDS..., indented in a section.
func (p *parser) step(l *line) {
	if p.section == sectionNone {
		p.begun[l.word(0)] = true
		p.at(l, 0, `an indented line belongs under "baseline", "with ic" or "with runbook NAME"`)
		return
	}
	baseline := p.section == sectionBaseline
	into := &p.s.IC
	if baseline {
		into = &p.s.Baseline
	}
	if len(*into) >= MaxSteps {
		p.at(l, 0, "a section has at most %d acts", MaxSteps)
		return
	}
	one := Step{Line: l.n}
	said := len(p.errs)
	i := p.cue(l, baseline, len(*into) == 0 && !p.begun[string(p.section)], &one.Cue)
	if i < 0 {
		return
	}
	timed := len(p.errs) == said
	one.Who = l.word(i)
	if !baseline || one.Who != ladder {
		one.Who = p.of(l, i, "person", p.known.People)
		p.acts(l, i, one.Who)
	}
	if timed {
		p.inOrder(l, *into, one.Cue)
	}
	v := verbNamed(l.word(i+1), p.section)
	if v == nil {
		p.at(l, i+1, "unknown act %s: %s", shown(l.word(i+1)), meant(l.word(i+1), verbNames(p.section)))
		return
	}
	if len(l.words)-i-2 < v.words {
		p.at(l, len(l.words), "%q lacks something: %s", v.name, v.text)
		return
	}
	one.Verb = v.name
	for _, w := range l.words[i+2:] {
		one.Args = append(one.Args, w.text)
	}
	p.arguments(l, i+2, &one)
	*into = append(*into, one)
}

// acts refuses somebody of whom nobody knows how fast he acts, once.
func (p *parser) acts(l *line, i int, name string) {
	who, key := p.personNamed(name), "nobody "+name
	switch {
	case name == "" || who == nil && (p.begun["person"] || p.seen[key] > 0):
	case who == nil:
		p.seen[key] = l.n
		p.at(l, i, `%s acts and has no "people" line, so nobody knows how fast`, name)
	case who.Absent:
		p.at(l, i, "%s is absent and cannot act", name)
	}
}

// cue reads what a step waits for and returns the word behind it, -1 if there is
// none.
func (p *parser) cue(l *line, baseline, first bool, c *Cue) int {
	switch l.word(0) {
	case "at":
		if !baseline {
			p.at(l, 0, `with ic nobody acts by the clock: write "on CUE" or "then", so that the reaction time of the person counts`)
			return -1
		}
		c.Kind, c.At = CueAt, p.moment(l, 1)
		return 2
	case "then":
		if first {
			p.at(l, 0, `"then" needs an act before it`)
			return -1
		}
		c.Kind = CueThen
		return 1
	case "on":
		return p.onCue(l, c)
	}
	p.at(l, 0, "unknown word %s: %s", shown(l.word(0)), meant(l.word(0), []string{"at", "on", "then"}))
	return -1
}

// onCue: on TIME | on skew | on SIGNAL abnormal | on SIGNAL normal
func (p *parser) onCue(l *line, c *Cue) int {
	w := l.word(1)
	switch {
	case w == "skew":
		c.Kind = CueSkew
		return 2
	case w != "" && w[0] >= '0' && w[0] <= '9':
		c.Kind, c.At = CueTime, p.moment(l, 1)
		return 2
	}
	c.Signal = p.of(l, 1, "signal", p.known.Signals)
	c.Kind = CueKind(p.of(l, 2, "state of a signal", []string{string(CueAbnormal), string(CueNormal)}))
	return 3
}

// inOrder refuses a time before that of the step before.
func (p *parser) inOrder(l *line, before []Step, c Cue) {
	if c.Kind != CueAt && c.Kind != CueTime {
		return
	}
	for i := len(before) - 1; i >= 0; i-- {
		if b := before[i].Cue; b.Kind == CueAt || b.Kind == CueTime {
			if c.At < b.At {
				p.at(l, 1, "%s is out of order: the act in line %d waits for %s", model.Duration(c.At), before[i].Line, model.Duration(b.At))
			}
			return
		}
	}
}

// arguments checks the words after a verb.
func (p *parser) arguments(l *line, i int, s *Step) {
	switch s.Verb {
	case "flag":
		p.flag(l, i)
	case "override":
		p.flag(l, i, removed)
	case "pin":
		p.whole(l, i, 4)
		p.end(l, i+1)
	case "steps":
		p.ladderSteps(l, i, s)
	case "command":
		p.command(l, i)
	case "do":
		p.doWords(l, i)
	case "recover":
		p.recoverWords(l, i)
	case "check":
		p.of(l, i, "backend", append(slices.Clone(p.known.Backends), allBackends))
		p.end(l, i+1)
	case "push":
		p.of(l, i, "backend", p.known.Backends)
		p.end(l, i+1)
	case verbFollow:
		if p.once(l, i-1, strconv.Quote(verbFollow)) {
			p.end(l, i)
		}
	case "cosign", "undo":
		p.end(l, i)
	}
}

// flag: NAME VALUE; also are further values.
func (p *parser) flag(l *line, i int, also ...string) {
	name := l.word(i)
	feature, isOff := strings.CutPrefix(name, "off-")
	switch {
	case name == "tier":
		if !slices.Contains(also, l.word(i+1)) {
			p.whole(l, i+1, 4)
		}
	case name == "bypass-risk":
		p.of(l, i+1, "value of a flag", append([]string{"on", "off"}, also...))
	case isOff:
		if !slices.Contains(p.known.Features, feature) {
			p.at(l, i, "unknown feature %s: %s", shown(feature), meant(feature, p.known.Features))
		}
		p.of(l, i+1, "value of a flag", append([]string{"on", "off"}, also...))
	default:
		p.at(l, i, "unknown flag %s: %s", shown(name), meant(name, []string{"tier", "bypass-risk", "off-FEATURE"}))
	}
	p.end(l, i+2)
}

// ladderSteps: ladder steps SIGNAL LIMIT every TIME
func (p *parser) ladderSteps(l *line, i int, s *Step) {
	if s.Who != ladder {
		p.at(l, i-2, `only %q steps by itself`, ladder)
	}
	p.of(l, i, "signal", p.known.Signals)
	p.whole(l, i+1, 1_000_000)
	if l.word(i+2) != "every" {
		p.at(l, i+2, "%s", verbNamed("steps", sectionBaseline).text)
		return
	}
	p.some(l, i+3, "a ladder looks every so often, not all the time")
	p.end(l, i+4)
}

func (p *parser) command(l *line, i int) {
	action := p.of(l, i, "act of command", []string{"take", "offer", "accept", "deputy", "relinquish"})
	if action == "offer" || action == "deputy" {
		p.of(l, i+1, "person", p.known.People)
		p.end(l, i+2)
		return
	}
	p.end(l, i+1)
}

// doWords: RIGHT, then pairs of a word and its value in any order, each once.
func (p *parser) doWords(l *line, i int) {
	p.of(l, i, "right", p.known.Rights)
	given := map[string]bool{}
	for i++; i < len(l.words); {
		w := l.word(i)
		if given[w] {
			p.at(l, i, "%q is said twice", w)
			return
		}
		given[w] = true
		switch w {
		case "scope":
			p.of(l, i+1, "scope", append(slices.Clone(p.known.Services), model.AnyScope))
		case "tier":
			p.whole(l, i+1, 4)
		case "feature":
			p.of(l, i+1, "feature of the policy", p.known.PolicyFeatures)
		case "for":
			p.some(l, i+1, "an order lasts longer than nothing")
		case "under":
			p.value(l, i+1, cents)
			i++
		default:
			p.at(l, i, "unknown word %s: %s", shown(w), meant(w, []string{"scope", "tier", "feature", "for", "under"}))
			return
		}
		i += 2
	}
}

// recoverWords: SERVICE to TIER [with RIGHT] [through BACKEND]
func (p *parser) recoverWords(l *line, i int) {
	p.of(l, i, "service", append(slices.Clone(p.known.Services), model.AnyScope))
	if l.word(i+1) != "to" {
		p.at(l, i+1, "%s", verbNamed("recover", sectionIC).text)
		return
	}
	p.whole(l, i+2, 3)
	for i += 3; l.word(i) == "with" || l.word(i) == "through" && l.word(i+2) != "with"; i += 2 {
		if l.word(i) == "with" {
			p.of(l, i+1, "right", p.known.Rights)
		} else {
			p.of(l, i+1, "backend", p.known.Backends)
		}
	}
	p.end(l, i)
}
