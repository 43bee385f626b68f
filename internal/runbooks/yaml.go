package runbooks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// reader reads YAML that begins at a line of the file. The library's own decoder
// is not used, because it guesses.
type reader struct {
	*problems
	shapes map[string]shape
	where  map[string]Pos
	base   string // before every path in where, such as "steps[2]."
	offset int    // lines of the file before the YAML
}

func (r *reader) pos(n *yaml.Node) Pos { return Pos{n.Line + r.offset, n.Column} }

func (r *reader) fail(n *yaml.Node, path, code, format string, args ...any) {
	r.at(r.pos(n), path, code, format, args...)
}

// document parses lines of the file, from an index, into one mapping; nil when it
// is none, which has been said then.
func (r *reader) document(lines []string, from int, path string) *yaml.Node {
	r.offset = from
	before := len(r.errs)
	for i, line := range lines {
		if strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...") || strings.HasPrefix(line, "%") {
			r.at(Pos{from + i + 1, 1}, path, CodeNotPlain, "a step is one document without %q lines; remove it", line[:min(3, len(line))])
		}
		if col := strings.IndexByte(line, '\t'); col >= 0 {
			r.at(Pos{from + i + 1, len([]rune(line[:col])) + 1}, path, CodeHidden, "a tab; indent with spaces")
		}
	}
	if len(r.errs) > before {
		return nil
	}
	start := Pos{max(from, 1), 1} // the line that opens it
	dec := yaml.NewDecoder(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	var node yaml.Node
	switch err := dec.Decode(&node); {
	case errors.Is(err, io.EOF):
		r.at(start, path, CodeMissing, "there is nothing here; write keys and values, such as id: confirm")
		return nil
	case err != nil:
		r.notYAML(err, lines, path)
		return nil
	}
	top := node.Content[0]
	if !r.plain(top, 0) {
		return nil
	}
	if top.Kind != yaml.MappingNode {
		r.fail(top, path, CodeSyntax, "keys and values are expected here (id: confirm), not %s", describe(top))
		return nil
	}
	return top
}

// notYAML turns "yaml: line 3: did not find …" into a place and a sentence. The
// library's line is that of the collection it was reading, or none: the place is
// the first line without which what is above it would be YAML.
func (r *reader) notYAML(err error, lines []string, path string) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if n, _ := fmt.Sscanf(text, "line %d: ", &line); n == 1 {
		_, text, _ = strings.Cut(text, ": ")
	}
	if len(lines) <= maxPrefixes {
		for line = len(lines); line > 1 && !isYAML(lines[:line-1]); line-- {
		}
	}
	line = min(max(line, 1), len(lines))
	column := 1 + len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " "))
	r.at(Pos{r.offset + line, column}, path, CodeSyntax, "not YAML from this line on: %s", untrusted.Text(text, 2*maxQuoted))
}

// maxPrefixes bounds how often a broken text is read again to find the place.
const maxPrefixes = 200

func isYAML(lines []string) bool {
	var node yaml.Node
	err := yaml.Unmarshal([]byte(strings.Join(lines, "\n")+"\n"), &node)
	return err == nil
}

// plain refuses everything that makes the text mean more than it shows.
func (r *reader) plain(n *yaml.Node, depth int) bool {
	ok := true
	refuse := func(format string, args ...any) {
		ok = false
		r.fail(n, "", CodeNotPlain, format, args...)
	}
	switch {
	case depth > maxDepth:
		refuse("nested deeper than %d levels", maxDepth)
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		refuse("anchors and aliases are not allowed; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		refuse("tags such as %s are not allowed; remove it", untrusted.Text(n.Tag, maxQuoted))
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		refuse("merge keys (<<) are not allowed; write the keys out")
	}
	for _, child := range n.Content {
		ok = r.plain(child, depth+1) && ok
	}
	return ok
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	return quote(n.Value)
}

// mapping is one mapping that was read by its shape.
type mapping struct {
	r      *reader
	node   *yaml.Node
	path   string
	values map[string]*yaml.Node
}

// mapping reads the mapping at a path of the file. Unknown, missing and doubled
// keys are said; nil when n is no mapping at all.
func (r *reader) mapping(n *yaml.Node, path, name string) *mapping {
	if n.Kind != yaml.MappingNode {
		r.fail(n, path, CodeSyntax, "keys and values are expected here, such as {%s: …}, not %s", r.shapes[name][0].name, describe(n))
		return nil
	}
	m := &mapping{r: r, node: n, path: path, values: make(map[string]*yaml.Node)}
	known := r.shapes[name].names()
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, path, CodeSyntax, "a key is one word, not %s", describe(key))
		case !slices.Contains(known, key.Value):
			r.fail(key, path, CodeUnknown, "unknown key %s%s", quote(key.Value), nearest(key.Value, known))
		case m.values[key.Value] != nil:
			r.fail(key, path, CodeDuplicate, "%q stands here twice; remove one", key.Value)
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null":
			r.fail(key, join(path, key.Value), CodeMissing, "there is no value here; write one or remove the key")
		default:
			m.values[key.Value] = value
			r.where[r.base+join(path, key.Value)] = r.pos(value)
		}
	}
	for _, k := range r.shapes[name] {
		if k.required && m.values[k.name] == nil && !hasKey(n, k.name) {
			r.fail(n, path, CodeMissing, "%q is missing", k.name)
		}
	}
	return m
}

func hasKey(n *yaml.Node, name string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return true
		}
	}
	return false
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// has reports whether a key stands there, with whatever value.
func (m *mapping) has(key string) bool { return m.values[key] != nil }

func (m *mapping) fail(key, code, format string, args ...any) {
	n := m.node
	if v := m.values[key]; v != nil {
		n = v
	}
	m.r.fail(n, join(m.path, key), code, format, args...)
}

// scalar is the text of a value that is one word or sentence; ok is false when
// there is none, or another thing, which has been said.
func (m *mapping) scalar(key string) (n *yaml.Node, ok bool) {
	n = m.values[key]
	if n == nil {
		return nil, false
	}
	if n.Kind != yaml.ScalarNode {
		m.fail(key, CodeSyntax, "one value is expected here, not %s", describe(n))
		return nil, false
	}
	return n, true
}

// text reads a sentence of at most limit bytes.
func (m *mapping) text(key string, limit int) string {
	n, ok := m.scalar(key)
	if !ok {
		return ""
	}
	return m.words(key, n, limit)
}

// words is the text of a scalar. What another reader of YAML would take for a
// number or a truth value has to be quoted.
func (m *mapping) words(key string, n *yaml.Node, limit int) string {
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	switch {
	case !quoted && (n.ShortTag() != "!!str" || truthWord(n.Value)):
		m.r.fail(n, join(m.path, key), CodeNotPlain, "%s is a number, a truth value or nothing for some readers of YAML; a text like that is quoted: '%s'", quote(n.Value), untrusted.Text(n.Value, maxQuoted))
	case strings.TrimSpace(n.Value) == "":
		m.r.fail(n, join(m.path, key), CodeMissing, "the text is empty; write one or remove the key")
	case len(n.Value) > limit:
		m.r.fail(n, join(m.path, key), CodeTooLarge, "the text has %d bytes, at most %d", len(n.Value), limit)
	case refusedIn(n.Value) != "":
		m.r.fail(n, join(m.path, key), CodeHidden, "the text holds %s", refusedIn(n.Value))
	default:
		return strings.TrimSpace(n.Value)
	}
	return ""
}

// refusedIn says which character of a text nobody would see: also one that an
// escape of YAML wrote. Line ends are fine.
func refusedIn(text string) string {
	for _, r := range text {
		if r != '\n' && refused(r) != "" {
			return fmt.Sprintf("U+%04X, which is not printable; remove it", r)
		}
	}
	return ""
}

func truthWord(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false":
		return true
	}
	return false
}

// name reads a name as policies have them.
func (m *mapping) name(key string) string {
	s := m.text(key, maxText)
	if s != "" && !directive.Name(s) {
		m.fail(key, CodeSyntax, "%s is no name: lower-case letters, digits, - . _, starting with a letter or digit, at most %d bytes", quote(s), directive.MaxName)
		return ""
	}
	return s
}

// oneOf reads one of a few words.
func (m *mapping) oneOf(key string, words ...string) string {
	s := m.text(key, maxText)
	if s != "" && !slices.Contains(words, s) {
		m.fail(key, CodeSyntax, "%s is not one of the words that may stand here%s", quote(s), nearest(s, words))
		return ""
	}
	return s
}

// integer reads a whole number between low and high.
func (m *mapping) integer(key string, low, high int) int {
	n, ok := m.scalar(key)
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(n.Value)
	switch {
	case n.Style != 0 || n.ShortTag() != "!!int" || err != nil || strconv.Itoa(v) != n.Value:
		m.fail(key, CodeNotPlain, "%s is not a whole number in decimal digits, such as 3: no quotes, no sign +, no leading zero", quote(n.Value))
	case v < low || v > high:
		m.fail(key, CodeSyntax, "%d is not between %d and %d", v, low, high)
	default:
		return v
	}
	return 0
}

// duration reads a length of time above zero.
func (m *mapping) duration(key string) model.Duration {
	n, ok := m.scalar(key)
	if !ok {
		return 0
	}
	d, err := model.ParseDuration(n.Value)
	switch {
	case err != nil && strings.HasSuffix(n.Value, "d"):
		m.fail(key, CodeNotPlain, "%s: there is no unit for days; write 24h", quote(n.Value))
	case err != nil:
		m.fail(key, CodeNotPlain, "%s", untrusted.Text(err.Error(), 2*maxQuoted))
	case d == 0:
		m.fail(key, CodeSyntax, "a time of 0s is none; write a longer one or remove the key")
	default:
		return d
	}
	return 0
}

// list is the elements of a list, with their paths.
func (m *mapping) list(key string, low, high int) []*yaml.Node {
	n := m.values[key]
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode:
		m.fail(key, CodeSyntax, "a list is expected here ([one, two]), not %s", describe(n))
		return nil
	case len(n.Content) < low || len(n.Content) > high:
		entries := "entries"
		if len(n.Content) == 1 {
			entries = "entry"
		}
		m.fail(key, CodeTooLarge, "the list has %d %s; %d to %d are possible", len(n.Content), entries, low, high)
		return nil
	}
	return n.Content
}

// exactlyOne is the one of keys that stands there; "" after saying that none or
// several do.
func (m *mapping) exactlyOne(what string, keys []string) string {
	var found []string
	for _, key := range keys {
		if m.has(key) {
			found = append(found, key)
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		m.r.fail(m.node, m.path, CodeMissing, "%s has exactly one of %s; there is none", what, strings.Join(keys, ", "))
	default:
		m.fail(found[1], CodeSyntax, "%s has exactly one of %s; here are %s", what, strings.Join(keys, ", "), strings.Join(found, " and "))
	}
	return ""
}

// only says that a key makes no sense beside another one.
func (m *mapping) only(key, because string) {
	if m.has(key) {
		m.fail(key, CodeSyntax, "%q does not belong here: %s", key, because)
	}
}

// checkBytes refuses, in a runbook that is run, what editors, parsers and people
// see differently.
func checkBytes(p *problems, src []byte) {
	for i, line := range bytes.Split(src, []byte("\n")) {
		column := 0
		for rest := line; len(rest) > 0; {
			r, size := utf8.DecodeRune(rest)
			column++
			if why := refused(r); why != "" || r == utf8.RuneError && size == 1 {
				if why == "" {
					why = fmt.Sprintf("byte 0x%02x is not UTF-8; save the file as UTF-8", rest[0])
				}
				p.at(Pos{i + 1, column}, "", CodeHidden, "%s", why)
				break // one for a line says enough
			}
			rest = rest[size:]
		}
	}
}
