package policy_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/degradedmode/ic/internal/policy"
)

// baseFolder is a policy with one of everything: an exception in force, a busy
// time, a dimmer, a foreign backend, a right for when nobody came, one that
// outlives its document, controls of stock and of authorization. Rules are broken
// on it, here and in docs/lint. It is no template: it changes when a rule does.
func baseFolder(t testing.TB) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	folder := os.DirFS("testdata/lint")
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, name)
		files[name] = &fstest.MapFile{Data: content}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// On the base only the exception speaks; every row of bends adds to silence.
func TestTheBaseOfTheRulesIsClean(t *testing.T) {
	found := lintFolder(t, baseFolder(t))
	if len(found) != 1 || found[0].Code != "game-day" || found[0].Severity != policy.LintExcepted {
		t.Fatalf("got %v", found)
	}
	const says = "payment-risk has never taken part in a game day; the standard asks for one a quarter; the exception risk-not-drilled agrees to it until 2027-04-30, ines mends it"
	if found[0].Sentence != says || found[0].Line == 0 {
		t.Errorf("got %s", found[0])
	}
}
