package runbooks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/runbooks"
)

// shownOf is all text that a person is shown of a runbook.
func shownOf(rb *runbooks.Runbook) string {
	all := []string{rb.Title, rb.Intro}
	for _, s := range rb.Steps {
		all = append(all, s.Title, s.Prose)
	}
	return strings.Join(append(all, rb.Outro), "\n")
}

// covered fails for every line of a text that is not shown, in its order.
func covered(t *testing.T, name, text string, rb *runbooks.Runbook) {
	t.Helper()
	rest := shownOf(rb)
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimRight(line, "\r"), "#"))
		if line == "" {
			continue
		}
		at := strings.Index(rest, line)
		if at < 0 && line == rb.Title {
			continue // shown first, wherever it stands
		}
		if at < 0 {
			t.Errorf("%s:%d is not shown: %q", name, i+1, line)
			continue
		}
		if line != rb.Title {
			rest = rest[at+len(line):]
		}
	}
}

func TestRunbooksOfOtherTeamsOpenWithoutLoss(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "runbooks-plain")
	opened := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rb, err := runbooks.Parse(d.Name(), raw)
		if err != nil {
			return err
		}
		opened++
		headings := strings.Count("\n"+string(raw), "\n#") - strings.Count(string(raw), "\n# ")
		if strings.HasPrefix(string(raw), "# ") {
			headings-- // the title in the first line
		}
		if !rb.Manual || rb.Title == "" || len(rb.Steps) < max(headings, 1) {
			t.Errorf("%s: %d steps for %d headings: %q", path, len(rb.Steps), headings, rb.Title)
		}
		for _, s := range rb.Steps {
			if s.Kind != runbooks.KindManual || s.Title == "" || s.Line < 1 {
				t.Errorf("%s: %+v", path, s)
			}
		}
		if runbooks.HasError(runbooks.Lint(rb, known())) {
			t.Errorf("%s: lint has an error for a check list", path)
		}
		covered(t, path, string(raw), rb)
		return nil
	})
	if err != nil || opened != 9 {
		t.Fatalf("%d of 9 opened: %v", opened, err)
	}
}

func TestNoTextOfARunbookIsLost(t *testing.T) {
	text := base
	for _, step := range strings.Split(base, "```ic-step\n")[1:] {
		body, _, _ := strings.Cut(step, "\n```")
		text = strings.Replace(text, "```ic-step\n"+body+"\n```", "", 1)
	}
	_, text, _ = strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	rb := parse(t, base)
	shown := shownOf(rb)
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "#")); !strings.Contains(shown, line) {
			t.Errorf("not shown: %q", line)
		}
	}
}

func TestPlainMarkdownOpensWhateverItIs(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		steps int
		title string
	}{
		"no heading":              {"Call the bank.\nThen wait.\n", 1, "x"},
		"a title only":            {"# Call the bank\n\nNow.\n", 1, "Call the bank"},
		"underlined headings":     {"Call\n====\n\nNow.\n\nThen\n----\n\nWait.\n", 1, "Call"},
		"windows line ends":       {"# Call\r\n\r\n## One\r\nNow.\r\n", 1, "Call"},
		"a heading in a fence":    {"# A\n\n```sh\n# no heading\n## neither\n```\n\n## One\n", 1, "A"},
		"a fence that never ends": {"# A\n\n## One\n\n```sh\nls\n## inside\n", 1, "A"},
		"front matter of another": {"---\ntitle: X\nweight: 20\n---\n# A\n\n## One\n## Two\n", 2, "A"},
		"two titles":              {"# A\n\n# B\n\ntext\n", 1, "A"},
		"a rule, no front matter": {"---\n\ntext\n", 1, "x"},
	} {
		rb, err := runbooks.Parse("x.md", []byte(c.text))
		if err != nil || !rb.Manual || len(rb.Steps) != c.steps || rb.Title != c.title {
			t.Errorf("%s: %+v %v", name, rb, err)
			continue
		}
		if name != "underlined headings" {
			covered(t, name, c.text, rb)
		}
	}
}

func TestPlainMarkdownCannotSpeakToATerminal(t *testing.T) {
	rb, err := runbooks.Parse("x.md", []byte("# A \x1b[2J\n\n## B \u202e\n\n\tcode\x07\n\n```sh\nrm \x1b]0;\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	if shown := shownOf(rb) + rb.Steps[0].Fences[0].Text; strings.ContainsAny(shown, "\x1b\x07\u202e\t") || !strings.Contains(shown, `\x1b`) || !strings.Contains(shown, "    code") {
		t.Errorf("shown: %q", shown)
	}
	escaped := 0
	for _, f := range runbooks.Lint(rb, known()) {
		if f.Code == runbooks.CodeHidden && f.Severity == runbooks.LintWarning {
			escaped++
		}
	}
	if escaped != 4 {
		t.Errorf("lint speaks of %d lines, want 4", escaped)
	}
}
