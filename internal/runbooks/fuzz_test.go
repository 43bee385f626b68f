package runbooks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/runbooks"
)

// Whatever the bytes are: no panic, every error has a place in the file, every
// step has exactly one body, ids are unique, what is shown can be printed, and
// lint has a place for all that it finds.
func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	plain, err := filepath.Glob(filepath.Join("..", "..", "testdata", "runbooks-plain", "*", "*.md"))
	if err != nil || len(plain) == 0 {
		f.Fatal("no plain runbooks", err)
	}
	for _, path := range plain {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		rb, err := runbooks.Parse("payment-risk-down.md", raw)
		if err != nil {
			placed(t, raw, err)
			return
		}
		seen := map[string]bool{}
		for i := range rb.Steps {
			s := &rb.Steps[i]
			if seen[s.ID] || s.ID == "" || s.Line < 1 {
				t.Fatalf("step %d: %+v", i, s)
			}
			seen[s.ID] = true
			if bodies(s) != 1 && !rb.Manual {
				t.Fatalf("%s has %d bodies", s.ID, bodies(s))
			}
			if len(s.Says()) == 0 {
				t.Fatalf("%s says nothing", s.ID)
			}
		}
		if strings.ContainsAny(shownOf(rb), "\x1b\r\x00\u202e\u2028") {
			t.Fatal("a terminal would obey what is shown")
		}
		for _, finding := range runbooks.Lint(rb, known()) {
			if finding.Line < 1 || finding.Col < 1 || finding.Sentence == "" {
				t.Fatalf("a finding without a place: %+v", finding)
			}
		}
	})
}

func placed(t *testing.T, raw []byte, err error) {
	t.Helper()
	var all runbooks.Errors
	if !errors.As(err, &all) || len(all) == 0 {
		t.Fatalf("an error of another kind: %v", err)
	}
	lines := strings.Count(string(raw), "\n") + 1
	for _, e := range all {
		if e.Line < 1 || e.Line > lines || e.Column < 1 || e.Sentence == "" || e.Code == "" || strings.ContainsAny(e.Error(), "\n\x1b") {
			t.Fatalf("no place of %d lines: %q", lines, e.Error())
		}
	}
}

func bodies(s *runbooks.Step) int {
	n := 0
	for _, set := range []bool{s.Check != nil, s.Decide != nil, s.Do != nil, s.Recover != nil, s.Push != nil, s.Wait != nil, s.Note != nil} {
		if set {
			n++
		}
	}
	return n
}
