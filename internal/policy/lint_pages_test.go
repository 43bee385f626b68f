package policy_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/docs/lint"
	"github.com/degradedmode/ic/internal/policy"
)

func TestEveryCodeHasItsPageAndEveryPageItsCode(t *testing.T) {
	if pages, codes := lint.Codes(), policy.LintCodes(); !slices.Equal(pages, codes) {
		for _, code := range codes {
			if !slices.Contains(pages, code) {
				t.Errorf("docs/lint has no page for %s", code)
			}
		}
		for _, page := range pages {
			if !slices.Contains(codes, page) {
				t.Errorf("docs/lint/%s.md explains a code that does not exist", page)
			}
		}
	}
	severities, standard := policy.LintTableForTest()
	for code, severity := range severities {
		line := "| [`" + code + "`](" + code + ".md) | " + string(severity) + " |"
		if standard[code] {
			line = "| [`" + code + "`](" + code + ".md) ◇ | " + string(severity) + " |"
		}
		if !strings.Contains(lint.Index(), "\n"+line) {
			t.Errorf("the index of docs/lint has no line %q", line)
		}
	}
	if _, ok := lint.Page("README"); ok {
		t.Error("the index is taken for the page of a code")
	}
	if _, ok := lint.Page("no-such-code"); ok {
		t.Error("a code that does not exist has a page")
	}
}

// example is what the page of a code shows.
type example struct{ file, wrong, right string }

var exampleShape = regexp.MustCompile("(?s)\nWrong, in `([a-z0-9/.]+)`:\n\n```yaml\n(.*?)\n```\n\nRight:\n\n```yaml\n(.*?)\n```\n\n")

// on puts an excerpt into the folder: in the place of the right lines, which
// stand there already, or, when it is a whole section, in the place of that.
func (e *example) on(t *testing.T, clean fstest.MapFS, excerpt string) fstest.MapFS {
	t.Helper()
	text := string(clean[e.file].Data)
	if strings.Contains(text, e.right+"\n") {
		return bend(t, clean, e.file, e.right+"\n", excerpt+"\n")
	}
	section, _, _ := strings.Cut(excerpt, "\n")
	start := strings.Index("\n"+text, "\n"+section+"\n")
	if start < 0 || strings.HasPrefix(section, " ") {
		t.Fatalf("%s holds neither these lines nor a section %s:\n%s", e.file, section, e.right)
	}
	end := len(text)
	if next := regexp.MustCompile(`(?m)^[a-z]`).FindStringIndex(text[start+len(section):]); next != nil {
		end = start + len(section) + next[0]
	}
	files := maps.Clone(clean)
	files[e.file] = &fstest.MapFile{Data: []byte(text[:start] + excerpt + "\n" + text[end:])}
	return files
}

func TestThePageOfACodeSaysItsSeverityAndItsExampleGivesIt(t *testing.T) {
	clean := baseFolder(t)
	severities, standard := policy.LintTableForTest()
	for _, code := range policy.LintCodes() {
		t.Run(code, func(t *testing.T) {
			page, _ := lint.Page(code)
			head := "# `" + code + "`\n\n" + string(severities[code])
			exception := "No exception may name this code."
			if standard[code] {
				head += ", a departure from the standard"
				exception = "An exception may name this code"
			}
			if !strings.HasPrefix(page, head+" · ") {
				t.Errorf("the page does not begin with %q", head)
			}
			if !strings.Contains(strings.Join(strings.Fields(page), " "), exception) {
				t.Errorf("the page does not say: %s", exception)
			}
			shown := exampleShape.FindStringSubmatch(page)
			if shown == nil {
				t.Fatal("the page shows nothing wrong put right")
			}
			e := example{shown[1], shown[2], shown[3]}
			// Lines that stand in the base give what the base gives: nothing.
			if !strings.Contains(string(clean[e.file].Data), e.right+"\n") {
				if found := lintFolder(t, e.on(t, clean, e.right)); slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Code == code }) {
					t.Errorf("the right example gives %v", found)
				}
			}
			found := lintFolder(t, e.on(t, clean, e.wrong))
			if !slices.ContainsFunc(found, func(f policy.Finding) bool { return f.Code == code && f.Severity == severities[code] }) {
				t.Errorf("the wrong example gives %v", found)
			}
			for _, f := range found {
				if (f.Code == "syntax" || f.Code == "not-canonical") && f.Code != code {
					t.Errorf("the wrong example is not written as fmt writes it: %s", f)
				}
			}
		})
	}
}
