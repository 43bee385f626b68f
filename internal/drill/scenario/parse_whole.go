package scenario

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/drill/score"
)

// unread takes note of a line that says nothing else: one fault is one sentence.
func (p *parser) unread(l *line) {
	if l.inside {
		p.begun[string(p.section)] = true
		return
	}
	p.stands(l.word(0))
}

// stands takes note of a keyword whose line cannot be read, of the section that it
// would begin, and of whom or what it would name.
func (p *parser) stands(keyword string) {
	p.begun[keyword] = true
	p.section = sectionNone
	switch keyword {
	case "baseline":
		p.section = sectionBaseline
	case "with":
		p.section = sectionRunbook // everything that may stand under either kind
	case "people":
		p.begun["person"] = true
	case "at":
		p.begun["fault"] = true
	}
}

// complete says what is missing, at the end of the file.
func (p *parser) complete(lines []line) {
	n, col := 1, 1
	if len(lines) > 0 {
		last := &lines[len(lines)-1]
		n, col = last.n, last.col(len(last.words))
	}
	for _, keyword := range []string{"scenario", "title", "source", "fleet", "lasts"} {
		if _, ok := p.seen[strconv.Quote(keyword)]; !ok && !p.begun[keyword] {
			p.fail(n, col, "the scenario has no %q line", keyword)
		}
	}
	lacks := func(is bool, begun string, text string) {
		if is && !p.begun[begun] {
			p.fail(n, col, "%s", text)
		}
	}
	lacks(len(p.s.Why) == 0, "why", `the scenario does not say why: at least one "why" line tells its story`)
	lacks(len(p.s.World) == 0 && len(p.s.Series) == 0 && !p.begun["series"], "at", `nothing happens in the scenario: it has no "at" line and no series`)
	lacks(len(p.s.Baseline) == 0 && !p.begun[string(sectionBaseline)], "baseline", "the scenario has no baseline: without what people did before, nobody knows what ic changes")
	acts := p.begun[string(sectionIC)] || p.begun[string(sectionRunbook)]
	lacks(len(p.s.IC) == 0 && p.s.Runbook == "" && !p.s.Ladder && !acts, "with",
		`the scenario says nothing of what is done with ic: add "with ic" and its acts, or "with runbook NAME"`)
	lacks(p.s.Runbook != "" && p.s.Follow() == nil && !acts, "with",
		`nobody takes the runbook: add an act like "on SIGNAL abnormal PERSON follow" under "with runbook"`)
	ofIC := false
	for i := range p.s.Expect {
		e := &p.s.Expect[i]
		ofIC = ofIC || e.Mode != score.Baseline
		if p.s.Runbook != "" && e.Mode == score.NoSecondBypass {
			p.fail(e.Line, 1, "the run without a second bypass leaves acts of the scenario out: there is none of a runbook")
		}
	}
	lacks(!ofIC, "expect", `nothing is expected of the run with ic, which could only pass: add a line like "expect ic lost < 50000.00 USD"`)
}

// Named says that a scenario is called like its file, which is how people find it.
func (s *Scenario) Named(file string) error {
	if name := strings.TrimSuffix(path.Base(filepath.ToSlash(file)), Extension); name != s.Name {
		e := s.named
		e.Text = fmt.Sprintf("the scenario is called %q and its file %s: they have the same name", s.Name, shown(name))
		return Errors{e}
	}
	return nil
}
