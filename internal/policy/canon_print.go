package policy

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// printer writes the one canonical form: fields in the order of their
// definition, names sorted, two spaces of indent, lists of single values on one
// line, texts without quotes only when every YAML reader takes them for text.
type printer struct {
	out    bytes.Buffer
	fields fieldTable
}

func (p *printer) document(v reflect.Value) { p.mapping(v, 0, false) }

// mapping writes the fields of a struct; with begun the first one stands on the
// line that is already open, behind a dash.
func (p *printer) mapping(v reflect.Value, indent int, begun bool) {
	for _, f := range p.fields.of(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if f.Optional && absent(value) {
			continue
		}
		p.indent(indent, begun)
		begun = false
		p.out.WriteString(f.Key + ":")
		p.value(value, indent)
	}
}

func (p *printer) indent(n int, begun bool) {
	if !begun {
		p.out.WriteString(strings.Repeat("  ", n))
	}
}

// value writes what follows "key:".
func (p *printer) value(v reflect.Value, indent int) {
	if v.Kind() == reflect.Pointer {
		p.value(v.Elem(), indent)
		return
	}
	switch {
	case Scalar(v.Type()):
		p.out.WriteString(" " + word(v) + "\n")
	case p.empty(v):
		p.out.WriteString(map[bool]string{true: " []\n", false: " {}\n"}[v.Kind() == reflect.Slice])
	case v.Kind() == reflect.Slice && Scalar(v.Type().Elem()):
		p.out.WriteString(" " + flow(v) + "\n")
	default:
		p.out.WriteByte('\n')
		p.block(v, indent+1)
	}
}

func (p *printer) block(v reflect.Value, indent int) {
	switch v.Kind() {
	case reflect.Struct:
		p.mapping(v, indent, false)
	case reflect.Map:
		for _, key := range sortedMapKeys(v) {
			p.indent(indent, false)
			p.out.WriteString(word(key) + ":")
			p.value(v.MapIndex(key), indent)
		}
	case reflect.Slice:
		for i := range v.Len() {
			p.item(v.Index(i), indent)
		}
	}
}

func (p *printer) item(v reflect.Value, indent int) {
	p.indent(indent, false)
	p.out.WriteByte('-')
	if v.Kind() == reflect.Slice {
		p.value(v, indent)
		return
	}
	p.out.WriteByte(' ')
	p.mapping(v, indent+1, true)
}

// absent reports whether an optional field is left out.
func absent(v reflect.Value) bool {
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// empty reports whether nothing would stand below a key.
func (p *printer) empty(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return v.Len() == 0
	}
	for _, f := range p.fields.of(v.Type()) {
		if !f.Optional || !absent(v.FieldByIndex(f.Index)) {
			return false
		}
	}
	return true
}

func flow(v reflect.Value) string {
	words := make([]string, v.Len())
	for i := range words {
		words[i] = word(v.Index(i))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// word writes one value.
func word(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.UTC().Format(timeLayout)
	case model.Money:
		return text(x.String())
	case model.Duration:
		return x.String()
	}
	switch v.Kind() {
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// text writes a text: bare if it is a word of letters, digits, '.', '_' and '-'
// that starts with a letter and means nothing else to any reader, in double
// quotes otherwise. Digests are always quoted, whatever they start with.
func text(s string) string {
	if plainWord(s) && !reserved(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '.' && c != '_' && c != '-') {
			return false
		}
	}
	return s != "" && len(s) < sha256HexLen
}
