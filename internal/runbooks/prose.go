package runbooks

import (
	"fmt"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
)

// uncut is longer than any line of a file with all its escapes.
const uncut = 16 * MaxFile

// tabStop is the distance of tab stops in Markdown.
const tabStop = 4

// shown makes lines of a file into what a person is shown: the same lines,
// nothing left out but empty ones at both ends. What a terminal would obey
// becomes a visible escape.
func (p *page) shown(from, to int) string {
	if from >= to {
		return ""
	}
	out := make([]string, 0, to-from)
	for _, line := range p.lines[from:to] {
		out = append(out, untrusted.Text(spaces(strings.TrimSuffix(line, "\r")), uncut))
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// spaces replaces tabs.
func spaces(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var out strings.Builder
	column := 0
	for _, r := range line {
		if r != '\t' {
			out.WriteRune(r)
			column++
			continue
		}
		for stop := column + tabStop - column%tabStop; column < stop; column++ {
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// shownFences are the fences of a range of lines that are no steps.
func (p *page) shownFences(from, to int) []Fence {
	var out []Fence
	for _, f := range p.fences {
		if f.from < from || f.from >= to || f.isStep() {
			continue
		}
		var text []string
		for _, line := range strings.Split(strings.TrimSuffix(f.text, "\n"), "\n") {
			text = append(text, untrusted.Text(spaces(strings.TrimSuffix(line, "\r")), uncut))
		}
		out = append(out, Fence{Info: untrusted.Text(f.info, maxText), Text: strings.Join(text, "\n"), Line: f.from + 1})
	}
	return out
}

// titleHeading is the first heading of the first level; nil when there is none.
func (p *page) titleHeading() *heading {
	for i := range p.headings {
		if p.headings[i].level == 1 {
			return &p.headings[i]
		}
	}
	return nil
}

// prose hands the text between steps to the steps that it belongs to. Text under
// a heading belongs to the next step; without a heading before it, to the step
// above. What precedes the heading of the first step is the introduction, and
// what has a heading after the last step stands at the end.
func (s *strict) prose() {
	title := s.page.titleHeading()
	if title == nil {
		s.at(Pos{max(min(s.page.body+1, len(s.page.lines)), 1), 1}, "", CodeMissing, "there is no title; write one below the front matter, such as # Flag service is down")
		return
	}
	s.rb.Title = untrusted.Text(title.text, uncut)
	var steps []*fence
	for i := range s.page.fences {
		if f := &s.page.fences[i]; f.isStep() && f.closed {
			steps = append(steps, f)
		}
	}
	if len(steps) != len(s.rb.Steps) || len(steps) == 0 {
		return // too many, which has been said
	}
	if title.from > steps[0].from {
		s.at(Pos{title.from + 1, 1}, "", CodeSyntax, "the title stands before the first step")
		return
	}
	from := title.to
	before := s.page.shown(s.page.body, title.from)
	for i, f := range steps {
		s.region(i, from, f.from)
		from = f.to
	}
	s.region(len(steps), from, len(s.page.lines))
	s.rb.Intro = paragraphs(before, s.rb.Intro)
}

// region hands out the lines between two steps; index is that of the step after
// them.
func (s *strict) region(index, from, to int) {
	var inside []heading
	for _, h := range s.page.headings {
		if h.from >= from && h.from < to {
			inside = append(inside, h)
		}
	}
	var next, last *Step
	if index < len(s.rb.Steps) {
		next = &s.rb.Steps[index]
	}
	if index > 0 {
		last = &s.rb.Steps[index-1]
	}
	if len(inside) == 0 {
		inside = []heading{{from: to, to: to}}
		if next != nil { // under the heading of the step before it
			inside[0] = heading{from: from, to: from}
			if last != nil {
				inside[0].text = last.Title
			}
		}
	}
	first, own := inside[0], inside[len(inside)-1]
	if above := s.page.shown(from, first.from); last != nil {
		last.Prose = paragraphs(last.Prose, above)
		last.Fences = append(last.Fences, s.page.shownFences(from, first.from)...)
	} else {
		s.rb.Intro = above
	}
	if next == nil {
		s.rb.Outro = s.page.shown(first.from, to)
		return
	}
	for _, h := range inside[:len(inside)-1] {
		s.rb.sections = append(s.rb.sections, section{untrusted.Text(h.text, uncut), Pos{h.from + 1, 1}})
	}
	next.Title = untrusted.Text(own.text, uncut)
	next.Prose = s.page.shown(own.to, to)
	next.Fences = s.page.shownFences(own.to, to)
	if between := s.page.shown(first.from, own.from); last == nil {
		s.rb.Intro = paragraphs(s.rb.Intro, between)
	} else {
		next.Prose = paragraphs(between, next.Prose)
		next.Fences = append(s.page.shownFences(first.from, own.from), next.Fences...)
	}
}

// paragraphs joins texts with an empty line.
func paragraphs(texts ...string) string {
	var out []string
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// plain opens Markdown that is no runbook of this format: every heading below the
// title becomes a manual step with the text under it. Nothing is left out.
func (rb *Runbook) plain(p *page) {
	rb.Manual, rb.Title = true, rb.ID
	title := p.titleHeading()
	if title != nil {
		rb.Title = untrusted.Text(title.text, uncut)
	}
	for i, line := range p.lines {
		if line = strings.TrimSuffix(line, "\r"); untrusted.Text(spaces(line), uncut) != spaces(line) {
			rb.escaped = append(rb.escaped, Pos{i + 1, 1})
		}
	}
	from := 0 // front matter of another tool is text
	var intro []string
	take := func(to int) {
		text, fences := p.shown(from, to), p.shownFences(from, to)
		if len(rb.Steps) == 0 {
			intro = append(intro, text)
			return
		}
		last := &rb.Steps[len(rb.Steps)-1]
		last.Prose, last.Fences = paragraphs(last.Prose, text), append(last.Fences, fences...)
	}
	for i := range p.headings {
		h := &p.headings[i]
		take(h.from)
		from = h.to
		if title != nil && h.from == title.from {
			continue
		}
		rb.Steps = append(rb.Steps, manual(len(rb.Steps), h.text, h.from))
	}
	take(len(p.lines))
	rb.Intro = paragraphs(intro...)
	if len(rb.Steps) == 0 { // all of it is one step
		step := manual(0, rb.Title, 0)
		step.Prose, step.Fences, rb.Intro = rb.Intro, p.shownFences(0, len(p.lines)), ""
		rb.Steps = []Step{step}
	}
}

// manual is a step of a check list.
func manual(index int, title string, line int) Step {
	return Step{ID: fmt.Sprintf("step-%d", index+1), Title: untrusted.Text(title, uncut), Line: line + 1, Column: 1, Kind: KindManual}
}
