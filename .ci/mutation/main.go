// Command mutation changes one operator of the product at a time, with go test
// -overlay so that no source is touched, and wants a test of the package to turn
// red. What stays green has to stand in survivors.txt with its reason; a line
// there that survives no longer is a failure too.
//
//	go run ./.ci/mutation                   everything that survivors.txt is about
//	go run ./.ci/mutation -list             their names
//	go run ./.ci/mutation -only recover.go  one file, without judging the list as a whole
//
// An operator is a comparison (negated, and its bound moved by one), && and ||, a
// negation, + - * /. Coverage is not asked: a change that no test runs survives,
// and that is what has to be said.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// limit is the longest one run of a package's tests may take, its build included:
// a change that makes it go on for ever is caught by that.
const limit = 3 * time.Minute

// targets are what is decided on: everything else a mutation would break is seen
// on the road.
var targets = []target{
	{pkg: "internal/decisions"},
	{pkg: "internal/policy", files: []string{"admit.go"}, beside: []string{"admit_test.go", "bent_admit_test.go"}},
}

// target is a package, or files of it; nil: all. What the tests beside them do not
// catch, all tests of the package are asked about.
type target struct {
	pkg    string
	files  []string
	beside []string
}

// mutant is one change.
type mutant struct {
	file, in, old, new string // in: the function it stands in
	offset             int
}

// String names a mutant without its line, so that the list outlives edits above it.
func (m mutant) String() string {
	return fmt.Sprintf("%s %s: %s => %s", filepath.Base(m.file), m.in, m.old, m.new)
}

func main() {
	only := flag.String("only", "", "one file of the targets")
	list := flag.Bool("list", false, "name the mutants and try none")
	flag.Parse()
	excused, err := readExcuses(".ci/mutation/survivors.txt")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tried, bad, alive := 0, 0, map[string]bool{}
	for _, t := range targets {
		mutants, err := mutantsOf(t.pkg, t.files, *only)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if *list {
			for _, m := range mutants {
				fmt.Println(m)
			}
			continue
		}
		if len(mutants) > 0 && t.catches(mutant{file: mutants[0].file}) {
			fmt.Fprintf(os.Stderr, "the tests of %s are red without any change\n", t.pkg)
			os.Exit(1)
		}
		for _, m := range mutants {
			tried++
			if t.catches(m) {
				continue
			}
			name := m.String()
			alive[name] = true
			if reason := excused[name]; reason != "" {
				fmt.Printf("survives  %s (%s)\n", name, reason)
				continue
			}
			bad++
			fmt.Printf("SURVIVES  %s\n", name)
		}
	}
	for name := range excused {
		if *only == "" && !alive[name] {
			bad++
			fmt.Printf("CAUGHT    %s, although the list says that it survives\n", name)
		}
	}
	fmt.Printf("%d mutants, %d survive, %d of them or of the list without a reason\n", tried, len(alive), bad)
	if bad > 0 {
		os.Exit(1)
	}
}

// readExcuses reads lines of a mutant, " -- " and a reason.
func readExcuses(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for n, line := range strings.Split(string(raw), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " -- ")
		if !ok || reason == "" {
			return nil, fmt.Errorf("%s:%d: a mutant, \" -- \" and a reason belong here", path, n+1)
		}
		out[name] = reason
	}
	return out, nil
}

func mutantsOf(pkg string, files []string, only string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	var out []mutant
	for _, path := range paths {
		base := filepath.Base(path)
		if strings.HasSuffix(base, "_test.go") || files != nil && !slices.Contains(files, base) || only != "" && base != only {
			continue
		}
		found, err := mutantsIn(path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// swaps are the operators and what becomes of each.
var swaps = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="},
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.LAND: {"||"}, token.LOR: {"&&"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
}

func mutantsIn(path string) ([]mutant, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		return nil, err
	}
	var out []mutant
	text := func(n ast.Node) string {
		return strings.Join(strings.Fields(string(src[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset])), " ")
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.BinaryExpr:
				for _, op := range swaps[x.Op] {
					out = append(out, mutant{file: path, in: f.Name.Name, old: text(x.X) + " " + x.Op.String() + " " + text(x.Y), new: op, offset: set.Position(x.OpPos).Offset})
				}
			case *ast.UnaryExpr:
				if x.Op == token.NOT {
					out = append(out, mutant{file: path, in: f.Name.Name, old: text(x), new: text(x.X), offset: set.Position(x.OpPos).Offset})
				}
			}
			return true
		})
	}
	return out, nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)`)

// catches reports whether a test of the target turns red.
func (t target) catches(m mutant) bool {
	var names []string
	for _, file := range t.beside {
		src, err := os.ReadFile(filepath.Join(t.pkg, file))
		if err != nil {
			panic(err) // the table names a file that is not there
		}
		for _, found := range testFunction.FindAllSubmatch(src, -1) {
			names = append(names, string(found[1]))
		}
	}
	if len(names) > 0 && m.caught(t.pkg, "^("+strings.Join(names, "|")+")$") {
		return true
	}
	return m.caught(t.pkg, "")
}

// caught reports whether tests of the package turn red. What does not compile is
// caught too: string concatenation with a minus, for one.
func (m mutant) caught(pkg, run string) bool {
	src, err := os.ReadFile(m.file)
	if err != nil {
		panic(err) // it was read a moment ago
	}
	changed := src // the zero mutant changes nothing
	if m.old != "" {
		op, old := m.new, operatorAt(src[m.offset:])
		if old == "!" {
			op = ""
		}
		changed = slices.Concat(src[:m.offset], []byte(op), src[m.offset+len(old):])
	}
	dir, err := os.MkdirTemp("", "ic-mutation-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	overlay := filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(m.file)
	if err != nil {
		panic(err)
	}
	plan, err := json.Marshal(map[string]map[string]string{"Replace": {path: filepath.Join(dir, "mutant.go")}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "mutant.go"), changed, 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, plan, 0o600)
	}
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-failfast", "-vet=off", "-run", run, "./"+pkg).Run() != nil
}

// operatorAt is the operator that begins a text.
func operatorAt(src []byte) string {
	for _, op := range []string{"==", "!=", "<=", ">=", "&&", "||"} {
		if bytes.HasPrefix(src, []byte(op)) {
			return op
		}
	}
	return string(src[:1])
}
