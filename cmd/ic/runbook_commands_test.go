package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/degradedmode/ic/internal/policy/policytest"
	tonight "github.com/degradedmode/ic/runbooks"
)

// shellWord is a word of a command as it stands in a runbook.
var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)

// inline is a command in the middle of a sentence.
var inline = regexp.MustCompile("`(ic [^`]+)`")

// wordsOf takes a line apart as a shell would, up to a comment or a redirection.
func wordsOf(line string) []string {
	var out []string
	for _, word := range shellWord.FindAllString(line, -1) {
		if word == "#" || word == ">" {
			break
		}
		out = append(out, strings.Trim(word, `'"`))
	}
	return out
}

// understood says why ic would not understand a line, without doing what it says.
// whole: every argument has to be there, as in a line that is typed as it stands.
func understood(line string, whole bool) error {
	a, _, _ := quiet("")
	cmd, rest, err := a.root().Find(wordsOf(line)[1:])
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if !whole {
		return nil
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	return cmd.ValidateRequiredFlags()
}

// Whoever types what a runbook says at night must not learn then that there is no
// such command.
func TestEachCommandInARunbookIsOneThatIcUnderstands(t *testing.T) {
	files, err := fs.Glob(tonight.Files, "*.md")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	typed := 0
	for _, name := range files {
		raw, err := fs.ReadFile(tonight.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		fence, number := "", 0
		for lines := bufio.NewScanner(strings.NewReader(string(raw))); lines.Scan(); {
			line := lines.Text()
			number++
			switch {
			case strings.HasPrefix(line, "```"):
				fence = strings.TrimPrefix(line, "```")
			case fence == "sh" && strings.HasPrefix(line, "ic "):
				typed++
				if err := understood(line, true); err != nil {
					t.Errorf("%s:%d: %q: %v", name, number, line, err)
				}
			case fence == "sh":
				t.Errorf("%s:%d: %q is no command of ic", name, number, line)
			case fence == "":
				for _, found := range inline.FindAllStringSubmatch(line, -1) {
					if err := understood(found[1], false); err != nil {
						t.Errorf("%s:%d: %q: %v", name, number, found[1], err)
					}
				}
			}
		}
	}
	if typed < 40 {
		t.Errorf("only %d lines were found to be commands", typed)
	}
	for _, line := range []string{"ic polcy diff", "ic policy diff one", "ic freeze --scop '*'", "ic recover --to two", "ic end", "ic incident give"} {
		if understood(line, true) == nil {
			t.Errorf("%q is understood", line)
		}
	}
}

// What the commander compares before others sign is the version that he has staged.
func TestWithoutArgumentsThePolicyInForceIsComparedWithTheStagedOne(t *testing.T) {
	dir := t.TempDir()
	live, state := filepath.Join(dir, "policy"), filepath.Join(dir, "state")
	policytest.Write(t, live, policytest.Params())
	diff := func(args ...string) (string, string, int) {
		a, out, said := quiet("")
		code := run(t.Context(), append([]string{"policy", "diff", "--state", state, "--policy", live}, args...), a)
		return out.String(), said.String(), code
	}
	if _, said, code := diff(); code != exitNeeds || !strings.Contains(said, "nothing is staged beside "+live) {
		t.Errorf("%d: %s", code, said)
	}
	if err := os.CopyFS(live+".staged", os.DirFS(live)); err != nil {
		t.Fatal(err)
	}
	edited := filepath.Join(live+".staged", "backends.yaml")
	raw, err := os.ReadFile(edited)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(edited, bytes.Replace(raw, []byte("The everyday carrier."), []byte("Another carrier."), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, code := diff(); code != 0 || !strings.Contains(out, "Another carrier.") {
		t.Errorf("%d: %s%s", code, out, said)
	}
	if _, said, code := diff(live); code != exitUsage || !strings.Contains(said, "name both sides, or neither: 1 is named") {
		t.Errorf("%d: %s", code, said)
	}
}
