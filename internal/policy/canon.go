package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/degradedmode/ic/internal/untrusted"
	"go.yaml.in/yaml/v3"
)

// Limits of a document.
const (
	MaxDocument = 1 << 20 // bytes of one file: 5,000 inventory hosts fit
	maxDepth    = 16      // nesting of YAML values; the deepest document uses 8
	maxErrors   = 20      // errors shown for one file: a person mends a screenful at a time
)

// SyntaxError is one thing in a document that is not as it has to be.
type SyntaxError struct {
	File     string
	Line     int // from 1; 0 when the file as a whole is meant
	Col      int
	Path     string // such as rights.shed.tiers; "" for the whole document
	Sentence string
}

func (e *SyntaxError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Col)
	}
	if e.Path != "" {
		return where + ": " + e.Path + ": " + e.Sentence
	}
	return where + ": " + e.Sentence
}

// SyntaxErrors are the errors of one file in the order of its lines, at most
// maxErrors of them.
type SyntaxErrors []*SyntaxError

func (e SyntaxErrors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Pos is a place in a file, counted from 1.
type Pos struct{ Line, Col int }

// ManifestFileName and RootsFolder are fixed names of the layout.
const (
	ManifestFileName = "manifest.yaml"
	RootsFolder      = "roots"
	yamlSuffix       = ".yaml"
	sigSuffix        = ".sig"
)

// newDocument returns a pointer to the empty document that a file of this name
// holds. Every name that is not a fixed one is a document of controls.
func newDocument(name string) any {
	base := path.Base(name)
	if base == ManifestFileName {
		return new(Manifest)
	}
	if path.Base(path.Dir(name)) == RootsFolder || base == "root.yaml" {
		return new(Root)
	}
	switch Domain(strings.TrimSuffix(base, yamlSuffix)) {
	case Features:
		return new(FeaturesDoc)
	case Ladder:
		return new(LadderDoc)
	case Rights:
		return new(RightsDoc)
	case Backends:
		return new(BackendsDoc)
	case Journeys:
		return new(JourneysDoc)
	default:
		return new(ControlsDoc)
	}
}

// Fmt reads a document that need not be canonical and prints its canonical form.
// Which document it is follows from the name: roots/N.yaml, manifest.yaml, or
// <domain>.yaml. What fmt would have to drop or to guess is an error: comments,
// anchors, tags, merges, values of another type.
func Fmt(name string, src []byte) ([]byte, error) {
	doc := newDocument(name)
	if err := parse(name, src, doc, nil); err != nil {
		return nil, err
	}
	return Canonical(doc), nil
}

// Canonical prints a document of this package in its one canonical form.
func Canonical(doc any) []byte {
	p := printer{fields: make(fieldTable)}
	p.document(reflect.ValueOf(doc).Elem())
	return p.out.Bytes()
}

// parseCanonical reads bytes into doc and refuses them unless they are exactly
// what Canonical prints for it: what a person signed is what is obeyed.
func parseCanonical(name string, src []byte, doc any) error {
	if err := parse(name, src, doc, nil); err != nil {
		return err
	}
	return sameBytes(name, src, Canonical(doc))
}

func sameBytes(name string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	have, need := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	line := 0
	for line < len(have)-1 && line < len(need)-1 && have[line] == need[line] {
		line++
	}
	return SyntaxErrors{{File: name, Line: line + 1, Col: 1, Sentence: fmt.Sprintf(
		"not canonical: the line is %q, fmt prints %q; run `ic policy fmt` and sign again",
		untrusted.Text(have[line], maxQuoted), untrusted.Text(need[line], maxQuoted))}}
}

// maxQuoted bounds what an error quotes of a file.
const maxQuoted = 80

// parse reads src into doc, which points to a document of this package, and
// fills where, unless it is nil, with the place of every value by its path.
func parse(name string, src []byte, doc any, where map[string]Pos) error {
	if err := checkBytes(name, src); err != nil {
		return SyntaxErrors{err}
	}
	node, err := oneDocument(name, src)
	if err != nil {
		return SyntaxErrors{err}
	}
	if err := readable(name, node); err != nil {
		return SyntaxErrors{err}
	}
	d := decoder{file: name, where: where, fields: make(fieldTable)}
	d.plainYAML(node, 0)
	d.comments(src, node)
	if len(d.errs) == 0 {
		d.value(node, reflect.ValueOf(doc).Elem(), nil)
	}
	if len(d.errs) > 0 {
		return SyntaxErrors(d.errs)
	}
	return nil
}

// FormatVersion is the v of every document. Version 1 is frozen: a later one gets
// types of its own beside these, and a function that makes the one of the other,
// so that what was signed as version 1 keeps its meaning.
const FormatVersion = 1

// readable looks at v before anything else is read: to a file of a later format
// the true answer is not that its fields are unknown.
func readable(name string, node *yaml.Node) *SyntaxError {
	top := node.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if key.Value != "v" {
			continue
		}
		n, err := strconv.Atoi(value.Value)
		if err != nil || n == FormatVersion || strconv.Itoa(n) != value.Value {
			return nil // right, or for the decoder to say what is wrong with it
		}
		out := &SyntaxError{File: name, Line: value.Line, Col: value.Column, Path: "v"}
		if n < FormatVersion {
			out.Sentence = fmt.Sprintf("there is no format %d; write v: %d", n, FormatVersion)
		} else {
			out.Sentence = fmt.Sprintf("the file is of format %d and this ic reads format %d; a newer ic reads it", n, FormatVersion)
		}
		return out
	}
	return nil
}

// checkBytes refuses, before any YAML is read, what editors and parsers see
// differently: U+2028, U+0085 and a bare CR end a comment for the parser and not
// for the eye.
func checkBytes(name string, src []byte) *SyntaxError {
	if len(src) > MaxDocument {
		return &SyntaxError{File: name, Sentence: fmt.Sprintf("the file has %d bytes, at most %d", len(src), MaxDocument)}
	}
	for i, line := range bytes.Split(src, []byte("\n")) {
		if err := checkLine(line); err != nil {
			err.File, err.Line = name, i+1
			return err
		}
	}
	return nil
}

func checkLine(line []byte) *SyntaxError {
	for _, marker := range []string{"---", "...", "%"} {
		if bytes.HasPrefix(line, []byte(marker)) {
			return &SyntaxError{Col: 1, Sentence: fmt.Sprintf("a file is one document without %q lines; remove it", marker)}
		}
	}
	for col := 0; col < len(line); {
		r, size := utf8.DecodeRune(line[col:])
		if r == utf8.RuneError && size == 1 {
			return &SyntaxError{Col: col + 1, Sentence: fmt.Sprintf("byte 0x%02x is not UTF-8; save the file as UTF-8", line[col])}
		}
		if why := RefusedRune(r); why != "" {
			return &SyntaxError{Col: utf8.RuneCount(line[:col]) + 1, Sentence: why}
		}
		col += size
	}
	return nil
}

// RefusedRune says why a character may not stand in a document; "" if it may.
func RefusedRune(r rune) string {
	switch {
	case r >= ' ' && r <= '~':
		return ""
	case r == '\r':
		return "a carriage return (U+000D) ends a line for some readers only; lines end in LF"
	case r == '\u2028', r == '\u2029', r == '\u0085':
		return fmt.Sprintf("U+%04X ends a line for some readers only; remove it", r)
	case r == '\t':
		return "a tab; indent with spaces"
	case untrusted.Text("a"+string(r), 2*utf8.UTFMax) != "a"+string(r): // a mark needs a letter to stand on
		return fmt.Sprintf("U+%04X is not a printable character; remove it", r)
	}
	return ""
}

// oneDocument parses src and makes sure that nothing follows the document.
func oneDocument(name string, src []byte) (*yaml.Node, *SyntaxError) {
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var node, second yaml.Node
	switch err := dec.Decode(&node); {
	case errors.Is(err, io.EOF):
		return nil, &SyntaxError{File: name, Sentence: "the file is empty"}
	case err != nil:
		return nil, yamlError(name, err)
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &SyntaxError{File: name, Line: max(second.Line, 1), Col: max(second.Column, 1), Sentence: "a second document follows; a file is one document"}
	}
	return &node, nil
}

// yamlError turns "yaml: line 3: did not find …" into a place and a sentence.
func yamlError(name string, err error) *SyntaxError {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	out := &SyntaxError{File: name}
	if n, _ := fmt.Sscanf(text, "line %d: ", &out.Line); n == 1 {
		_, text, _ = strings.Cut(text, ": ")
		out.Col = 1
	}
	out.Sentence = "not YAML: " + untrusted.Text(text, 2*maxQuoted)
	return out
}
