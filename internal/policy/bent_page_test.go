package policy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every row of the page names tests, and every test that it names is there: a
// table that promises more than is tested would be worse than none.
func TestThePageOfAttacksNamesTestsThatExist(t *testing.T) {
	const page = "../../docs/explanation/attacks.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("\\[`(Test\\w+)(?:/([^`]+))?`\\]\\(([^)]+_test\\.go)\\)")
	rows := 0
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| elsewhere") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 || len(tests) != strings.Count(line, "_test.go") {
			t.Errorf("this row names no test, or one in another way: %s", line)
		}
		for _, m := range tests {
			file := filepath.Join(filepath.Dir(page), filepath.FromSlash(m[3]))
			if !strings.Contains(source(t, file), "\nfunc "+m[1]+"(t *testing.T) {") {
				t.Errorf("%s has no %s", m[3], m[1])
			}
			if m[2] != "" && !strings.Contains(source(t, filepath.Join(filepath.Dir(file), "*_test.go")), `"`+m[2]+`"`) {
				t.Errorf("%s has no case %q", m[1], m[2])
			}
		}
	}
	if rows < 20 {
		t.Errorf("the page has %d rows", rows)
	}
}

// source is the text of all files of a pattern.
func source(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Errorf("%s: no such file (%v)", pattern, err)
	}
	var out strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(raw)
	}
	return out.String()
}
