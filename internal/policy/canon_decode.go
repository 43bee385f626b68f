package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// decoder reads a YAML tree into a document by the document's own Go types. A
// field is required unless its tag says omitempty: an absent bound is never
// taken for zero. The YAML library's own decoder is not used, because it guesses.
type decoder struct {
	file   string
	errs   []*SyntaxError
	where  map[string]Pos // nil: nobody asks
	fields fieldTable
}

// trail is the way to a value; the text is made only when somebody reads it.
type trail struct {
	up   *trail
	step string
}

func (t *trail) String() string {
	if t == nil {
		return ""
	}
	if t.up == nil || strings.HasPrefix(t.step, "[") {
		return t.up.String() + t.step
	}
	return t.up.String() + "." + t.step
}

func (d *decoder) fail(n *yaml.Node, at *trail, format string, args ...any) {
	if !d.full() {
		d.errs = append(d.errs, &SyntaxError{File: d.file, Line: n.Line, Col: n.Column, Path: at.String(), Sentence: fmt.Sprintf(format, args...)})
	}
}

// full reports whether there is nothing more to tell: looking further would only
// cost time.
func (d *decoder) full() bool { return len(d.errs) >= maxErrors }

// plainYAML refuses everything that makes the text mean more than it shows.
func (d *decoder) plainYAML(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth:
		d.fail(n, nil, "nested deeper than %d levels", maxDepth)
		return
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fail(n, nil, "anchors and aliases are not allowed; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, nil, "tags such as %s are not allowed; remove it", untrusted.Text(n.Tag, maxQuoted))
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		d.fail(n, nil, "merge keys (<<) are not allowed; write the fields out")
	}
	for _, child := range n.Content {
		d.plainYAML(child, depth+1)
	}
}

// comments refuses comments: they are not signed as fields are, so their text
// belongs into a why field. The library may lose one; then the file has more
// number signs than its values.
func (d *decoder) comments(src []byte, root *yaml.Node) {
	inValues, seen := 0, false
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for _, comment := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			if comment != "" {
				seen = true
				d.commentAt(src, comment)
			}
		}
		if n.Kind == yaml.ScalarNode {
			inValues += strings.Count(n.Value, "#")
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(root)
	if !seen && bytes.Count(src, []byte("#")) > inValues {
		d.commentAt(src, "#")
	}
}

func (d *decoder) commentAt(src []byte, comment string) {
	if d.full() {
		return
	}
	first, _, _ := strings.Cut(comment, "\n")
	before := src[:max(bytes.Index(src, []byte(first)), 0)]
	at := yaml.Node{Line: bytes.Count(before, []byte("\n")) + 1, Column: len(before) - bytes.LastIndexByte(before, '\n')}
	d.fail(&at, nil, "comments are not kept by fmt; say it in a why: field")
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, at *trail) {
	if n.Kind == yaml.DocumentNode {
		n = n.Content[0]
	}
	if d.where != nil {
		d.where[at.String()] = Pos{n.Line, n.Column}
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.fail(n, at, "there is no value here; write one or remove the field")
		return
	}
	if Scalar(v.Type()) {
		d.scalar(n, v, at)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), at)
	case reflect.Struct:
		d.mapping(n, v, at)
	case reflect.Map:
		d.names(n, v, at, false)
	case reflect.Slice:
		d.list(n, v, at)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, at *trail) {
	fields := d.fields.of(v.Type())
	seen := d.keys(n, at)
	if seen == nil {
		return
	}
	for i := 0; i < len(n.Content) && !d.full(); i += 2 {
		key := n.Content[i]
		f := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key.Value })
		if f < 0 {
			d.fail(key, at, "unknown field %q%s", untrusted.Text(key.Value, maxQuoted), suggest(key.Value, fields))
			continue
		}
		child := &trail{at, fields[f].Key}
		into := v.FieldByIndex(fields[f].Index)
		if into.Kind() == reflect.Map {
			d.names(n.Content[i+1], into, child, fields[f].anyKey)
			continue
		}
		d.value(n.Content[i+1], into, child)
	}
	for _, f := range fields {
		if !f.Optional && !seen[f.Key] {
			d.fail(n, at, "%q is missing; every field is written out, also when it is zero or empty", f.Key)
		}
	}
}

// keys checks that n is a mapping with distinct plain keys and lists them; nil
// if it is not a mapping.
func (d *decoder) keys(n *yaml.Node, at *trail) map[string]bool {
	if n.Kind != yaml.MappingNode {
		d.fail(n, at, "fields are expected here (name: value), not %s", describe(n))
		return nil
	}
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			d.fail(key, at, "the name of a field is one word, not %s", describe(key))
		case seen[key.Value]:
			d.fail(key, at, "%q stands here twice; remove one", untrusted.Text(key.Value, maxQuoted))
		}
		seen[key.Value] = true
	}
	return seen
}

// names reads a map whose keys are chosen by the author.
func (d *decoder) names(n *yaml.Node, v reflect.Value, at *trail, anyKey bool) {
	if d.where != nil {
		d.where[at.String()] = Pos{n.Line, n.Column}
	}
	if d.keys(n, at) == nil {
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(n.Content)/2))
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		child := &trail{at, key.Value}
		name := reflect.New(t.Key()).Elem()
		d.scalar(key, name, child)
		if name.Kind() == reflect.String && !anyKey && !directive.Name(key.Value) {
			d.fail(key, at, "%q is not a name: a-z, 0-9, '-', '.', '_', starting with a letter or digit, at most %d bytes",
				untrusted.Text(key.Value, maxQuoted), directive.MaxName)
			continue
		}
		element := reflect.New(t.Elem()).Elem()
		d.value(n.Content[i+1], element, child)
		v.SetMapIndex(name, element)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, at *trail) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, at, "a list is expected here ([a, b]), not %s", describe(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(item, v.Index(i), &trail{at, "[" + strconv.Itoa(i) + "]"})
	}
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of fields"
	case yaml.SequenceNode:
		return "a list"
	default:
		return "the value " + strconv.Quote(untrusted.Text(n.Value, maxQuoted))
	}
}

// fieldTable keeps what was learned about struct types during one pass.
type fieldTable map[reflect.Type][]Field

// of flattens a struct into its keys, in the order of its definition, which is
// the order that Canonical prints.
func (t fieldTable) of(typ reflect.Type) []Field {
	known, ok := t[typ]
	if !ok {
		known = FieldsOf(typ)
		t[typ] = known
	}
	return known
}

// suggest names the field that was probably meant.
func suggest(key string, fields []Field) string {
	best := slices.MinFunc(fields, func(a, b Field) int { return cmp.Compare(Distance(key, a.Key), Distance(key, b.Key)) })
	if Distance(key, best.Key) > max(2, len(best.Key)/3) {
		known := make([]string, len(fields))
		for i, f := range fields {
			known[i] = f.Key
		}
		return "; known here: " + strings.Join(known, ", ")
	}
	return fmt.Sprintf("; did you mean %q?", best.Key)
}

// Distance is the number of inserted, dropped and changed bytes between two words,
// for guessing what was meant; of words that are too long for a name it is only
// large.
func Distance(a, b string) int {
	if len(a) > directive.MaxName || len(b) > directive.MaxName {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Types that are written as one word.
var (
	timeType     = reflect.TypeFor[time.Time]()
	moneyType    = reflect.TypeFor[model.Money]()
	durationType = reflect.TypeFor[model.Duration]()
)

// wordsOf lists the values that a closed type takes; nil for an open one.
func wordsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[model.Kind]():
		return []string{"shed", "off", "bypass", "freeze", "dimmer", "ping", "end"}
	case reflect.TypeFor[Class]():
		return []string{"critical", "degradable", "sheddable"}
	case reflect.TypeFor[Fails]():
		return []string{"closed", "open"}
	case reflect.TypeFor[Protects]():
		return []string{"money", "authorization", "inventory", "capacity"}
	case reflect.TypeFor[Need]():
		return []string{"required", "enhancing", "optional"}
	case reflect.TypeFor[Source]():
		return []string{"snapshot", "cache", "live", "static"}
	case reflect.TypeFor[Carries]():
		return []string{"assigns", "passes", "ignores"}
	}
	return nil
}

func sortedMapKeys(v reflect.Value) []reflect.Value {
	keys := make(map[string]reflect.Value, v.Len())
	for _, k := range v.MapKeys() {
		if k.Kind() == reflect.String {
			keys[k.String()] = k
			continue
		}
		// Numbers of the same width sort as numbers.
		keys[fmt.Sprintf("%020d", k.Int())] = k
	}
	out := make([]reflect.Value, 0, len(keys))
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, keys[name])
	}
	return out
}
