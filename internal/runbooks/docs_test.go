package runbooks_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/runbooks"
)

func specification(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbook-format.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestTheExampleOfTheSpecificationHasNothingForLint(t *testing.T) {
	example := regexp.MustCompile("(?s)\n````markdown\n(.*?)````\n").FindStringSubmatch(specification(t))
	if example == nil {
		t.Fatal("the specification has no example")
	}
	if found := lintOf(example[1]); len(found) > 0 {
		t.Error(found)
	}
}

func TestTheSpecificationNamesEveryKeyAndLimit(t *testing.T) {
	text := specification(t)
	for name, keys := range runbooks.KeysForTest() {
		for _, key := range keys {
			if !strings.Contains(text, "`"+key+"`") && !strings.Contains(text, "{"+key+":") {
				t.Errorf("%s: the specification does not name %q", name, key)
			}
		}
	}
	for _, word := range []string{"262,144 bytes", "200 steps", "8 deep", "1 to 300 bytes", "2,000 bytes", "500 bytes", "2 to 9", "1 to 16", "at most 20", "200 bytes", "60,000", "at most 100"} {
		if !strings.Contains(text, word) {
			t.Errorf("the specification does not say %q", word)
		}
	}
}
