package runbooks

import (
	"bytes"
	"github.com/degradedmode/ic/internal/policy"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// stepWord is the info string of a fence that is a step.
const stepWord = "ic-step"

// page is a file cut into lines, with the headings and fences that CommonMark
// sees in it. Which lines are a fence decides what is obeyed, so a real block
// parser looks: what a person sees rendered is what ic takes it for.
type page struct {
	lines    []string // without their line ends
	body     int      // index of the first line behind the front matter
	headings []heading
	fences   []fence // all, also those inside lists and quotes
}

// heading is one that stands at the top level. Lines are indices: [from, to).
type heading struct {
	from, to int
	level    int
	text     string
}

// fence is a fenced block. Lines are indices: [from, to).
type fence struct {
	from, to int
	column   int // of the opening fence, from 1, in bytes
	info     string
	text     string
	top      bool // at the top level: neither in a list nor in a quote
	closed   bool
}

// first is the first word of the info string.
func (f *fence) first() string {
	word, _, _ := strings.Cut(f.info, " ")
	return word
}

// looksLikeStep finds the opening fence of a step anywhere in a line, behind
// whatever marks of lists and quotes.
var looksLikeStep = regexp.MustCompile("^[ \t>*+0-9.)-]*(?:`{3,}|~{3,})[ \t]*(?i:" + stepWord + ")(?:[ \t]|$)")

// scan cuts a file. Front matter stands between a first line "---" and the next
// one; whether it is ours is for the caller to say.
func scan(src []byte) *page {
	p := &page{lines: strings.Split(string(src), "\n")}
	if n := len(p.lines); p.lines[n-1] == "" {
		p.lines = p.lines[:n-1]
	}
	p.body = frontMatter(p.lines)
	offset := 0
	for _, line := range p.lines[:p.body] {
		offset += len(line) + 1
	}
	p.blocks(src[min(offset, len(src)):])
	return p
}

// frontMatter is the number of lines that front matter takes; 0 without any.
func frontMatter(lines []string) int {
	if len(lines) == 0 || trimEnd(lines[0]) != "---" {
		return 0
	}
	for i := 1; i < len(lines); i++ {
		if trimEnd(lines[i]) == "---" {
			return i + 1
		}
	}
	return 0
}

func trimEnd(line string) string { return strings.TrimRight(line, " \t\r") }

// blocks finds headings and fences. No inline parser runs: nothing is rendered.
func (p *page) blocks(body []byte) {
	starts := []int{0}
	for i, b := range body {
		if b == '\n' {
			starts = append(starts, i+1)
		}
	}
	lineOf := func(offset int) int {
		at, found := slices.BinarySearch(starts, offset)
		if !found {
			at--
		}
		return at
	}
	md := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))
	document := md.Parse(text.NewReader(body))
	// The callback never returns an error.
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() == ast.TypeInline {
			return ast.WalkContinue, nil
		}
		top := n.Parent() == document
		switch n := n.(type) {
		case *ast.Heading:
			if top && n.Lines().Len() > 0 && n.Pos() >= 0 {
				p.headings = append(p.headings, p.heading(n, body, lineOf(n.Pos())+p.body))
			}
		case *ast.FencedCodeBlock:
			if n.Pos() >= 0 {
				line := lineOf(n.Pos())
				f := p.fence(n, body, line+p.body, top)
				f.column = n.Pos() - starts[line] + 1
				p.fences = append(p.fences, f)
			}
		}
		return ast.WalkContinue, nil
	})
}

func (p *page) heading(n *ast.Heading, body []byte, from int) heading {
	var words []string
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		words = append(words, strings.TrimSpace(string(at.Value(body))))
	}
	h := heading{from: from, to: from + n.Lines().Len(), level: n.Level, text: strings.Join(words, " ")}
	if !strings.HasPrefix(strings.TrimLeft(p.lines[from], " "), "#") {
		h.to++ // the line of = or - below it
	}
	h.to = min(h.to, len(p.lines))
	return h
}

func (p *page) fence(n *ast.FencedCodeBlock, body []byte, from int, top bool) fence {
	f := fence{from: from, top: top}
	if n.Info != nil {
		f.info = string(n.Info.Segment.Value(body))
	}
	var content bytes.Buffer
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		content.Write(at.Value(body))
	}
	f.text = content.String()
	f.to = min(from+1+n.Lines().Len(), len(p.lines))
	if f.to < len(p.lines) {
		closing := strings.TrimLeft(p.lines[f.to], " \t>")
		f.closed = strings.HasPrefix(closing, "```") || strings.HasPrefix(closing, "~~~")
	}
	if f.closed {
		f.to++
	}
	return f
}

// isStep reports whether a fence is a step. The word has to stand there exactly
// and at the top level, in the first column.
func (f *fence) isStep() bool { return f.info == stepWord && f.top && f.column == 1 }

// hidden finds what is written like a step and is none: inside a list, a quote, a
// comment, behind spaces, in other letters, or with words behind it. A whole
// fence that shows one as an example is left alone.
func (p *page) hidden(say func(line, column int, sentence string)) {
	for i := p.body; i < len(p.lines); i++ {
		if at := p.fenceAt(i); at != nil {
			if why := at.almost(); why != "" {
				say(i, at.column, why)
			}
			if at.top {
				i = at.to - 1
			}
			continue
		}
		if looksLikeStep.MatchString(p.lines[i]) {
			say(i, 1+strings.IndexAny(p.lines[i], "`~"), "this is written like a step and stands inside something else, where it would be neither seen nor run; start it in the first column, with an empty line before it")
		}
	}
}

// almost says why a fence that is meant to be a step is none; "" if it is one, or
// not meant to be.
func (f *fence) almost() string {
	word := f.first()
	switch {
	case f.isStep():
		if !f.closed {
			return "this step is not closed; end it with a line of as many marks as it begins with"
		}
		return ""
	case word == stepWord && f.info != stepWord:
		return "only " + stepWord + " may stand behind the marks of a step; remove the rest"
	case word == stepWord && !f.top:
		return "a step stands neither in a list nor in a quote; start it in the first column, with an empty line before it"
	case word == stepWord:
		return "a step starts in the first column; remove the spaces before it"
	case word != "" && word[0] != '{' && policy.Distance(strings.ToLower(word), stepWord) <= 2:
		return "a fence of " + quote(word) + " is shown and never run; did you mean " + stepWord + "?"
	}
	return ""
}

func (p *page) fenceAt(line int) *fence {
	for i := range p.fences {
		if p.fences[i].from == line {
			return &p.fences[i]
		}
	}
	return nil
}

// hasStep reports whether anything is written like a step.
func (p *page) hasStep() bool {
	found := false
	p.hidden(func(int, int, string) { found = true })
	return found || slices.ContainsFunc(p.fences, func(f fence) bool { return f.isStep() })
}
