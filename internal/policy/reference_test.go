package policy_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

// The reference of all fields in docs/policy.md is made from the types and their
// comments, so that it cannot say anything else than the code.
const (
	referenceFile  = "../../docs/policy.md"
	referenceBegin = "<!-- begin of the fields: go test ./internal/policy -run TestReferenceOfFields -update -->\n"
	referenceEnd   = "<!-- end of the fields -->\n"
)

// documents are the types in the order of the reference, with their headings.
var documents = []struct{ typ, file string }{
	{"Root", "roots/N.yaml"}, {"Manifest", "manifest.yaml"}, {"Header", "every document"},
	{"FeaturesDoc", "features.yaml"}, {"LadderDoc", "ladder.yaml"}, {"RightsDoc", "rights.yaml"},
	{"ControlsDoc", "payments.yaml and every other document of controls"}, {"BackendsDoc", "backends.yaml"}, {"JourneysDoc", "journeys.yaml"},
}

func TestReferenceOfFields(t *testing.T) {
	types := structsOf(t, "documents*.go", "root.go")
	var out bytes.Buffer
	done := make(map[string]bool)
	for _, d := range documents {
		fmt.Fprintf(&out, "\n### `%s`\n", d.file)
		types.render(t, &out, d.typ, done)
	}
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), referenceBegin)
	_, after, ok2 := strings.Cut(rest, referenceEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the reference", referenceFile)
	}
	want := before + referenceBegin + out.String() + "\n" + referenceEnd + after
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want != string(text) && !*update {
		t.Errorf("%s is not what the types say: go test ./internal/policy -run TestReferenceOfFields -update", referenceFile)
	}
}

// structs are the struct types of the package by name, as written.
type structs map[string]*ast.TypeSpec

func structsOf(t *testing.T, patterns ...string) structs {
	t.Helper()
	out := make(structs)
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					if one, ok := spec.(*ast.TypeSpec); ok {
						one.Doc = gen.Doc
						out[one.Name.Name] = one
					}
				}
			}
		}
	}
	return out
}

// render writes the table of one type, and of the types that it is made of.
func (s structs) render(t *testing.T, out *bytes.Buffer, name string, done map[string]bool) {
	t.Helper()
	spec, ok := s[name]
	if !ok || done[name] {
		return
	}
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	done[name] = true
	doc := strings.Join(strings.Fields(spec.Doc.Text()), " ")
	fmt.Fprintf(out, "\n**%s** — %s\n\n| field | is | means |\n|---|---|---|\n", name, doc)
	var parts []string
	for _, field := range body.Fields.List {
		tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml")
		key, options, _ := strings.Cut(tag, ",")
		parts = append(parts, namesIn(field.Type)...)
		if options == "inline" {
			fmt.Fprintf(out, "| | the fields of %s | |\n", namesIn(field.Type)[0])
			continue
		}
		what := strings.TrimSpace(field.Comment.Text())
		if what == "" {
			t.Errorf("%s.%s has no comment: what it means, its unit and its limits", name, key)
		}
		is := wording(field.Type)
		if options == "omitempty" {
			is += ", may be absent"
		}
		if strings.Contains(is, "number") && !strings.ContainsFunc(what, unicode.IsDigit) && !strings.Contains(what, "above zero") {
			t.Errorf("%s.%s is a number and its comment names no limit: %s", name, key, what)
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", key, is, what)
	}
	for _, part := range parts {
		s.render(t, out, part, done)
	}
}

// namesIn lists the named types of an expression.
func namesIn(e ast.Expr) []string {
	var out []string
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && unicode.IsUpper(rune(id.Name[0])) {
			out = append(out, id.Name)
		}
		return true
	})
	return out
}

// wording says a type as a writer of the file sees it.
func wording(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return wording(x.X)
	case *ast.ArrayType:
		return "list of " + wording(x.Elt)
	case *ast.MapType:
		return wording(x.Value) + " by " + map[string]string{"string": "name", "int": "whole number", "Domain": "name of a document"}[fmt.Sprint(x.Key)]
	case *ast.SelectorExpr:
		return map[string]string{"Time": "time", "Duration": "duration", "Money": "amount", "Kind": "kind"}[x.Sel.Name]
	case *ast.Ident:
		if plain, ok := map[string]string{"string": "text", "int": "whole number", "int64": "whole number", "float64": "number", "bool": "true or false"}[x.Name]; ok {
			return plain
		}
		return x.Name
	}
	return "?"
}

// keysOf lists the keys of a struct type.
func keysOf(spec *ast.TypeSpec) []string {
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	var out []string
	for _, field := range body.Fields.List {
		if field.Tag == nil {
			continue
		}
		if key, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("yaml"), ","); key != "" {
			out = append(out, key)
		}
	}
	return out
}
