package host_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/degradedmode/ic/"

// sources parses the Go files of a folder, without its tests.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, names, err)
	}
	var out []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

// imported are the paths that a file imports.
func imported(f *ast.File) []string {
	var out []string
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		out = append(out, path)
	}
	return out
}

func TestTheFacadeShowsNoTypeOfAnInternalPackage(t *testing.T) {
	for _, f := range sources(t, ".") {
		internal := map[string]bool{}
		for _, path := range imported(f) {
			if strings.HasPrefix(path, module+"internal/") {
				internal[filepath.Base(path)] = true
			}
		}
		ast.FileExports(f) // leaves what others see
		for _, decl := range f.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok != token.TYPE {
				continue // values of constants are converted to basic types
			}
			if d, ok := decl.(*ast.FuncDecl); ok {
				d.Body = nil
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
						t.Errorf("%s.%s is part of the public API", x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

func TestEachPartIsOfUseAloneAndBringsNothingAlong(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		parts++
		for _, f := range sources(t, e.Name()) {
			for _, path := range imported(f) {
				if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !strings.HasPrefix(path, module+"host/") {
					t.Errorf("%s imports %s", e.Name(), path)
				}
			}
		}
	}
	if parts < 7 {
		t.Errorf("%d parts", parts)
	}
}
