package promrules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Limits of rule files.
const (
	MaxFile  = 4 << 20 // bytes of one file: the longest that is known has a fifth of it
	MaxRules = 10_000  // rules, groups and objects of one import: more are no draft that a person reads
	maxKeys  = 1_000   // fields of one mapping: what is read has about 10, labels have fewer than 100
	maxMerge = 4       // merge keys below each other
	maxBad   = 50      // problems of one import that are told: a person mends a screenful at a time
	maxName  = 120     // bytes of an alert's or a group's name as they are shown
	maxURL   = 200     // bytes of a runbook's address as it is shown
)

// Source is one file with rules: a rule file, or Kubernetes objects.
type Source struct {
	Name    string // as it is shown
	Content []byte
}

// Place is where something stands in a file, counted from 1; Line is 0 when the
// file as a whole is meant.
type Place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Col  int    `json:"col"`
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Problem is one thing that could not be read.
type Problem struct {
	Place
	Sentence string `json:"sentence"`
}

func (p Problem) Error() string { return p.Place.String() + ": " + p.Sentence }

// rule is one rule as it stands in a file. Exactly one of alert and record is
// set. Its texts are still as the file has them.
type rule struct {
	at       Place
	group    string
	interval string // of the group; "" for the default of the server
	alert    string
	record   string
	expr     parser.Expr
	held     string // for
	keep     string // keep_firing_for
	severity string
	runbook  string // runbook_url, or runbook
}

// reader collects the rules of files.
type reader struct {
	file   string
	src    []byte
	rules  []rule
	bad    []Problem
	untold int       // problems beyond maxBad
	fails  int       // calls of fail, the same problem found again included
	other  []Problem // documents of another kind
	steps  int       // of MaxRules
}

// step counts one more thing to look at, and reports whether it may be. Aliases
// make a small file long.
func (r *reader) step(n *yaml.Node) bool {
	r.steps++
	if r.steps == MaxRules+1 {
		r.fail(n, "more than %d rules, groups and objects; import fewer at a time", MaxRules)
	}
	return r.steps <= MaxRules
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	at := Place{File: r.file}
	if n != nil {
		at.Line, at.Col = n.Line, n.Column
	}
	r.failAt(at, fmt.Sprintf(format, args...))
}

func (r *reader) failAt(at Place, sentence string) {
	r.fails++
	p := Problem{at, sentence}
	switch {
	case slices.Contains(r.bad, p):
	case len(r.bad) == maxBad:
		r.untold++
	default:
		r.bad = append(r.bad, p)
	}
}

// read takes the rules of one file. What it cannot read it reports, and goes on.
func (r *reader) read(s Source) {
	r.file, r.src = untrusted.Text(s.Name, maxURL), s.Content
	if len(s.Content) > MaxFile {
		r.fail(nil, "the file has %d bytes, at most %d", len(s.Content), MaxFile)
		return
	}
	dec := yaml.NewDecoder(bytes.NewReader(s.Content))
	for documents := 0; ; {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			if documents == 0 {
				r.fail(nil, "there is no document in the file")
			}
			return
		case err != nil:
			r.yamlError(err)
			return
		}
		if root := content(&n); root != nil {
			documents++
			r.document(root)
		}
	}
}

// content is the value of a document; nil for an empty one, as generators put it
// at the start of a file.
func content(n *yaml.Node) *yaml.Node {
	if n.Kind != yaml.DocumentNode || len(n.Content) == 0 || n.Content[0].ShortTag() == "!!null" {
		return nil
	}
	return n.Content[0]
}

// yamlError turns "yaml: line 3: did not find …" into a place and a sentence.
func (r *reader) yamlError(err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := Place{File: r.file}
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		digits, sentence, _ := strings.Cut(rest, ": ")
		if line, err := strconv.Atoi(digits); err == nil {
			at.Line, at.Col, text = line, 1, sentence
		}
	}
	r.failAt(at, "not YAML: "+untrusted.Text(text, maxDetail))
}

// document reads a rule file, a PrometheusRule, or a list of them.
func (r *reader) document(n *yaml.Node) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "a rule file has groups, and this is none")
		return
	}
	kind := r.text(n, "kind")
	switch {
	case kind == "PrometheusRule":
		if spec := r.get(n, "spec", yaml.MappingNode); spec != nil {
			r.groups(spec)
		}
	case kind == "List", kind == "PrometheusRuleList":
		if items := r.get(n, "items", yaml.SequenceNode); items != nil {
			for _, item := range items.Content {
				if !r.step(item) {
					return
				}
				r.item(item)
			}
		}
	case kind == "" && r.has(n, "groups"):
		r.groups(n)
	case kind != "":
		r.other = append(r.other, Problem{Place{r.file, n.Line, n.Column}, fmt.Sprintf("a %s holds no rules that are read here", untrusted.Text(kind, maxName))})
	default:
		r.fail(n, "neither a rule file (groups:) nor a PrometheusRule")
	}
}

// item is an object of a list; lists do not nest.
func (r *reader) item(n *yaml.Node) {
	n = follow(n)
	if n.Kind == yaml.MappingNode && strings.HasSuffix(r.text(n, "kind"), "List") {
		r.fail(n, "a list inside a list")
		return
	}
	r.document(n)
}

func (r *reader) groups(n *yaml.Node) {
	groups := r.get(n, "groups", yaml.SequenceNode)
	if groups == nil {
		return
	}
	for _, group := range groups.Content {
		if !r.step(group) {
			return
		}
		group = follow(group)
		if group.Kind != yaml.MappingNode {
			r.fail(group, "a group has a name and rules, and this is none")
			continue
		}
		if !r.has(group, "rules") {
			continue // a group without rules is valid
		}
		rules := r.get(group, "rules", yaml.SequenceNode)
		if rules == nil {
			continue
		}
		name, interval := r.text(group, "name"), r.text(group, "interval")
		for _, n := range rules.Content {
			if !r.step(n) {
				return
			}
			r.rule(follow(n), name, interval)
		}
	}
}

func (r *reader) rule(n *yaml.Node, group, interval string) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "a rule has an expr and either alert or record, and this is none")
		return
	}
	before := r.fails
	out := rule{
		at: Place{r.file, n.Line, n.Column}, group: group, interval: interval,
		alert: r.text(n, "alert"), record: r.text(n, "record"),
		held: r.text(n, "for"), keep: r.text(n, "keep_firing_for"),
	}
	if (out.alert == "") == (out.record == "") {
		r.fail(n, "a rule has either alert or record, and not both")
		return
	}
	if labels := r.below(n, "labels"); labels != nil {
		out.severity = r.text(labels, "severity")
	}
	if notes := r.below(n, "annotations"); notes != nil {
		if out.runbook = r.text(notes, "runbook_url"); out.runbook == "" {
			out.runbook = r.text(notes, "runbook")
		}
	}
	text := r.get(n, "expr", yaml.ScalarNode)
	if text == nil {
		return
	}
	expr, err := parse(text.Value)
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		r.failAt(r.placeIn(text, syntax.Offset), syntax.Sentence)
		return
	}
	if r.fails > before {
		return
	}
	out.expr = expr
	r.rules = append(r.rules, out)
}

// follow is the value that an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// find is the value of a key; nil if it is not there. A key that stands twice is
// reported, since readers differ in which one they take.
func (r *reader) find(n *yaml.Node, key string, merges int) *yaml.Node {
	if len(n.Content) > 2*maxKeys {
		r.fail(n, "more than %d fields", maxKeys)
		return nil
	}
	var found, merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], follow(n.Content[i+1])
		switch {
		case k.Value == key && found != nil:
			r.fail(k, "%q stands here twice; remove one", key)
		case k.Value == key:
			found = v
		case k.ShortTag() == "!!merge" && merged == nil:
			merged = v
		}
	}
	if found != nil || merged == nil {
		return found
	}
	if merges == maxMerge || merged.Kind != yaml.MappingNode {
		r.fail(n, "merge keys (<<) are followed to one mapping, and at most %d deep; write the fields out", maxMerge)
		return nil
	}
	return r.find(merged, key, merges+1)
}

func (r *reader) has(n *yaml.Node, key string) bool { return r.find(n, key, 0) != nil }

// get is the value of a key that has to be there and of one kind.
func (r *reader) get(n *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	v := r.find(n, key, 0)
	switch {
	case v == nil:
		r.fail(n, "%q is missing", key)
	case v.Kind != kind:
		r.fail(v, "%q is not %s", key, map[yaml.Kind]string{
			yaml.MappingNode: "a group of fields", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value"}[kind])
	default:
		return v
	}
	return nil
}

// below is an optional group of fields.
func (r *reader) below(n *yaml.Node, key string) *yaml.Node {
	v := r.find(n, key, 0)
	if v == nil || v.ShortTag() == "!!null" {
		return nil
	}
	return r.get(n, key, yaml.MappingNode)
}

// text is an optional single value.
func (r *reader) text(n *yaml.Node, key string) string {
	v := r.find(n, key, 0)
	if v == nil || v.ShortTag() == "!!null" {
		return ""
	}
	if v.Kind != yaml.ScalarNode {
		r.fail(v, "%q is not one value", key)
		return ""
	}
	return v.Value
}

// placeIn is the place in the file of an offset in an expression. Only where the
// file shows the expression as it is, in a literal block or on one line, is it
// exact; elsewhere it is where the expression starts.
func (r *reader) placeIn(n *yaml.Node, offset int) Place {
	at := Place{r.file, n.Line, n.Column}
	before := n.Value[:min(offset, len(n.Value))]
	line := strings.Count(before, "\n")
	col := len(before) - (strings.LastIndexByte(before, '\n') + 1)
	switch {
	case len(r.bad) == maxBad: // nobody will read it
	case n.Style&yaml.LiteralStyle != 0:
		text := strings.Split(n.Value, "\n")[line]
		lines := bytes.Split(r.src, []byte("\n"))
		if at.Line+line < len(lines) {
			if indent := bytes.Index(lines[at.Line+line], []byte(text)); indent >= 0 {
				return Place{r.file, at.Line + line + 1, indent + col + 1}
			}
		}
	case n.Style == 0 && line == 0:
		at.Col += col
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && line == 0:
		at.Col += col + 1
	}
	return at
}
