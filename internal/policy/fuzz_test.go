package policy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/degradedmode/ic/internal/policy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// kinds are a file of every type of document. Corpus files name one by its place:
// new ones go to the end.
var kinds = []string{
	"roots/1.yaml", "manifest.yaml", "features.yaml", "ladder.yaml", "rights.yaml", "payments.yaml", "backends.yaml", "journeys.yaml",
}

func fileOfKind(kind byte) string { return kinds[int(kind)%len(kinds)] }

// seeds adds the documents of the frozen vectors, which use every field; what
// others were bent by stands in testdata/fuzz.
func seeds(f *testing.F, add func(kind byte, content []byte)) {
	f.Helper()
	for kind, name := range kinds {
		content, err := os.ReadFile(filepath.Join(vectors, "folder", filepath.FromSlash(name)))
		if err != nil {
			f.Fatal(err)
		}
		add(byte(kind), content)
	}
	add(7, []byte(typed))
}

// Whatever the bytes are: no panic. What fmt accepts it prints once and for all,
// without losing a comment and without changing what the document says.
func FuzzFmt(f *testing.F) {
	seeds(f, func(kind byte, content []byte) { f.Add(kind, content) })
	f.Fuzz(func(t *testing.T, kind byte, src []byte) {
		name := fileOfKind(kind)
		once, err := policy.Fmt(name, src)
		if err != nil {
			return
		}
		twice, err := policy.Fmt(name, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable: %v\n%s\n---\n%s", err, once, twice)
		}
		if bytes.Count(src, []byte("#")) > bytes.Count(once, []byte("#")) {
			t.Fatalf("a comment was lost:\n%s\n---\n%s", src, once)
		}
		meant, err := policy.ReadForTest(name, src)
		if err != nil {
			t.Fatalf("fmt reads it and the reader does not: %v", err)
		}
		said, err := policy.ReadCanonicalForTest(name, once)
		if err != nil {
			t.Fatalf("what fmt prints is not canonical: %v\n%s", err, once)
		}
		if diff := cmp.Diff(meant, said, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("fmt changed what it says:\n%s", diff)
		}
	})
}

// A document has one canonical spelling: whatever is read as canonical prints as
// the same bytes, and no edit of it is canonical and says the same.
func FuzzCanonical(f *testing.F) {
	seeds(f, func(kind byte, content []byte) {
		f.Add(kind, content, uint32(len(content)), uint8(0), []byte("\n"))
	})
	f.Fuzz(func(t *testing.T, kind byte, src []byte, at uint32, drop uint8, put []byte) {
		name := fileOfKind(kind)
		doc, err := policy.ReadCanonicalForTest(name, src)
		if err != nil {
			return
		}
		if again := policy.Canonical(doc); !bytes.Equal(again, src) {
			t.Fatalf("read as canonical and printed otherwise:\n%s\n---\n%s", src, again)
		}
		from := min(int(at), len(src))
		edited := slices.Concat(src[:from], put, src[min(from+int(drop), len(src)):])
		other, err := policy.ReadCanonicalForTest(name, edited)
		if err != nil || bytes.Equal(edited, src) {
			return
		}
		if cmp.Equal(doc, other, cmpopts.EquateEmpty()) {
			t.Fatalf("two spellings of one document:\n%s\n---\n%s", src, edited)
		}
	})
}
