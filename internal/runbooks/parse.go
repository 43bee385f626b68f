package runbooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// Parse reads the bytes of a runbook. name is the file's name: its base without
// ".md" has to be the id. A file with v or use_when in its front matter, or with
// anything that is written like a step, has to keep the format, and the error is
// an Errors otherwise: every one has a line and a column. Any other Markdown is
// opened as a check list, Manual, unless there is nothing in it.
func Parse(name string, raw []byte) (*Runbook, error) {
	p := &problems{file: untrusted.Text(name, maxText)}
	if len(raw) > MaxFile {
		at := raw[:MaxFile]
		line := strings.Count(string(at), "\n") + 1
		p.at(Pos{line, len([]rune(string(at[strings.LastIndexByte(string(at), '\n')+1:]))) + 1}, "", CodeTooLarge,
			"the file is longer than %d bytes, and reading stops here; a runbook that nobody can read in a night is none: cut it in two", MaxFile)
		return nil, p.err()
	}
	sum := sha256.Sum256(raw)
	rb := &Runbook{
		File: p.file, ID: strings.TrimSuffix(path.Base(p.file), markdownExt),
		Digest: hex.EncodeToString(sum[:]), Source: slices.Clone(raw), where: make(map[string]Pos),
	}
	if strings.TrimSpace(string(raw)) == "" {
		p.at(Pos{1, 1}, "", CodeMissing, "the file is empty, and an empty check list asks nobody anything; ic runbook new writes one to begin with")
		return nil, p.err()
	}
	pg := scan(raw)
	rb.fences = pg.shownFences(0, len(pg.lines))
	if !pg.ours() {
		rb.plain(pg)
		return rb, nil
	}
	s := &strict{problems: p, page: pg, rb: rb, shapes: shapes()}
	s.read(raw)
	if err := p.err(); err != nil {
		return nil, err
	}
	return rb, nil
}

// ours reports whether a file claims to be a runbook of this format.
func (p *page) ours() bool {
	for _, line := range p.lines[:p.body] {
		key, _, found := strings.Cut(line, ":")
		if key = strings.TrimSpace(strings.TrimPrefix(key, "\ufeff")); found && (key == "v" || key == "use_when") {
			return true
		}
	}
	return p.hasStep()
}

// strict reads a runbook of the format.
type strict struct {
	*problems
	page   *page
	rb     *Runbook
	shapes map[string]shape
}

func (s *strict) read(raw []byte) {
	checkBytes(s.problems, raw)
	if len(s.errs) > 0 {
		return // positions of what follows would be those of another reader
	}
	s.page.hidden(func(line, column int, why string) {
		runes := utf8.RuneCountInString(s.page.lines[line][:min(column-1, len(s.page.lines[line]))])
		s.at(Pos{line + 1, runes + 1}, "", CodeHidden, "%s", why)
	})
	s.front()
	s.steps()
	s.prose()
}

// front reads the front matter.
func (s *strict) front() {
	if s.page.body == 0 {
		s.at(Pos{1, 1}, "", CodeMissing, "front matter is missing: the file begins with a line ---, the keys v, id, owner, use_when, valid_until and max_duration, and a line ---")
		return
	}
	r := &reader{problems: s.problems, shapes: s.shapes, where: s.rb.where}
	top := r.document(s.page.lines[1:s.page.body-1], 1, "")
	if top == nil {
		return
	}
	if !s.readable(r, top) {
		return
	}
	m := r.mapping(top, "", "front matter")
	m.integer("v", formatV, formatV)
	id := m.name("id")
	if id != "" && id != s.rb.ID {
		m.fail("id", CodeSyntax, "the file is %s and the id is %s; they are the same word, because a policy names runbooks by their file", quote(s.rb.ID+markdownExt), quote(id))
	}
	s.rb.Owner, s.rb.UseWhen = m.name("owner"), m.text("use_when", maxText)
	for i, n := range m.list("signals", 1, maxSignals) {
		key := fmt.Sprintf("signals[%d]", i)
		r.where[key] = r.pos(n)
		if name := m.element(key, n); slices.Contains(s.rb.Signals, name) {
			m.r.fail(n, key, CodeDuplicate, "%s stands here twice; remove one", quote(name))
		} else if name != "" {
			s.rb.Signals = append(s.rb.Signals, name)
		}
	}
	s.rb.ValidUntil = m.date("valid_until")
	s.rb.MaxDuration = m.duration("max_duration")
}

// readable looks at v before anything else: to a file of a later format the true
// answer is not that its keys are unknown.
func (s *strict) readable(r *reader, top *yaml.Node) bool {
	for i := 0; i+1 < len(top.Content); i += 2 {
		if v := top.Content[i+1]; top.Content[i].Value == "v" && v.ShortTag() == "!!int" && v.Value != fmt.Sprint(formatV) && len(v.Value) < 4 {
			r.fail(v, "v", CodeSyntax, "the file is of format %s and this ic reads format %d; a newer ic may read it", quote(v.Value), formatV)
			return false
		}
	}
	return true
}

// element reads a name in a list.
func (m *mapping) element(key string, n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		m.r.fail(n, key, CodeSyntax, "a name is expected here, not %s", describe(n))
		return ""
	}
	s := m.words(key, n, maxText)
	if s != "" && !directive.Name(s) {
		m.r.fail(n, key, CodeSyntax, "%s is no name", quote(s))
		return ""
	}
	return s
}

// date reads a day, as the moment at which it begins.
func (m *mapping) date(key string) time.Time {
	n, ok := m.scalar(key)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(dateForm, n.Value)
	if err != nil {
		m.fail(key, CodeSyntax, "%s is no day; write it as 2027-03-01", quote(n.Value))
		return time.Time{}
	}
	return at
}

// steps reads every step fence.
func (s *strict) steps() {
	ids := make(map[string]int) // to the line
	for i := range s.page.fences {
		f := &s.page.fences[i]
		if !f.isStep() || !f.closed {
			continue
		}
		if len(s.rb.Steps) == MaxSteps {
			s.at(Pos{f.from + 1, 1}, "", CodeTooLarge, "this is step %d; a runbook has at most %d", MaxSteps+1, MaxSteps)
			return
		}
		step := Step{Line: f.from + 1, Column: 1}
		index := len(s.rb.Steps)
		r := &reader{problems: s.problems, shapes: s.shapes, where: s.rb.where, base: stepPath(index, "")}
		if top := r.document(s.page.lines[f.from+1:f.to-1], f.from+1, ""); top != nil {
			r.step(top, &step)
		}
		if before, twice := ids[step.ID]; twice && step.ID != "" {
			s.at(s.rb.where[stepPath(index, "id")], "id", CodeTwice, "the step in line %d is called %s already; ids are unique", before, quote(step.ID))
		}
		ids[step.ID] = step.Line
		s.rb.Steps = append(s.rb.Steps, step)
	}
	if len(s.rb.Steps) == 0 && len(s.errs) == 0 {
		s.at(Pos{max(len(s.page.lines), 1), 1}, "", CodeMissing, "there is no step; a step is a fence that begins with ```%s", stepWord)
	}
}

// stepPath is the path of a value in a step, as the places are kept by.
func stepPath(index int, path string) string { return fmt.Sprintf("steps[%d].%s", index, path) }
