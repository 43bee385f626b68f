package breakglass

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/plugins/sdk"
)

// wantProblem fails unless err is one clean sentence of a kind, with words in it.
func wantProblem(t *testing.T, err error, kind Kind, words ...string) {
	t.Helper()
	if KindOf(err) != kind {
		t.Fatalf("got kind %q, want %q: %v", KindOf(err), kind, err)
	}
	text := err.Error()
	if strings.Contains(text, "\n") || untrusted.Text(text, len(text)) != text {
		t.Errorf("not one clean sentence: %q", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// wantNothingLeft fails unless no process of a test and no private folder is left.
func wantNothingLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "every process under "+dir+" ends", func() bool { return len(childrenOf(dir)) == 0 })
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("%d private folders are left, such as %s", len(left), left[0].Name())
	}
}

func TestABadProgramGivesOneSentenceAndLeavesNothing(t *testing.T) {
	all := newPrograms(t)
	for _, c := range []struct {
		kind  string
		want  Kind
		words []string
	}{
		{"chatty", NoHandshake, []string{`starting up\x1b[2J`, "instead of its handshake", "nothing was changed"}},
		{"endless", NoHandshake, []string{"no newline ever", "instead of its handshake"}},
		{"future", NoHandshake, []string{"cannot be talked to", "9", "nothing was changed"}},
		{"failing", NoHandshake, []string{"ended before its handshake", `no licence\x1b[2J`}},
		{"hanging", Slow, []string{"not ready within 700ms", "nothing was changed"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			opts := selfOptions(t)
			if c.want == Slow {
				opts.Limits.Start = 700 * time.Millisecond
			}
			client, err := Open(t.Context(), all.spec(t, c.kind), opts)
			if err == nil {
				client.Close()
			}
			wantProblem(t, err, c.want, c.words...)
			wantNothingLeft(t, opts.TempDir)
		})
	}
}

func TestAProgramThatIsNotThePinnedOneIsNotStarted(t *testing.T) {
	all := newPrograms(t)
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, f *Foreign)
		words string
	}{
		{"another hash", func(_ *testing.T, f *Foreign) { f.SHA256 = strings.Repeat("0", 64) }, "it is another program, or another version"},
		{"no hash", func(_ *testing.T, f *Foreign) { f.SHA256 = "" }, "the policy pins no SHA-256 for this platform"},
		{"a relative path", func(_ *testing.T, f *Foreign) { f.Path = "foreign-good" }, "not absolute"},
		{"nothing there", func(_ *testing.T, f *Foreign) { f.Path += "-not" }, "no such file"},
		{"writable by its group", func(t *testing.T, f *Foreign) { must(t, os.Chmod(f.Path, 0o775)) }, "chmod go-w"},
		{"writable by everybody", func(t *testing.T, f *Foreign) { must(t, os.Chmod(f.Path, 0o757)) }, "chmod go-w"},
		{"not executable", func(t *testing.T, f *Foreign) { must(t, os.Chmod(f.Path, 0o644)) }, "not executable"},
		{"a link", func(t *testing.T, f *Foreign) {
			must(t, os.Symlink(f.Path, f.Path+"-link"))
			f.Path += "-link"
		}, "symbolic link"},
		{"a folder", func(_ *testing.T, f *Foreign) { f.Path = filepath.Dir(f.Path) }, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := all.spec(t, "good")
			t.Cleanup(func() { must(t, os.Chmod(all.binary, 0o755)) })
			c.spoil(t, spec.Foreign)
			opts := selfOptions(t)
			_, err := Open(t.Context(), spec, opts)
			wantProblem(t, err, NotTrusted, c.words)
			wantNothingLeft(t, opts.TempDir)
		})
	}
}

func TestSwappingTheFileAfterTheCheckDoesNothing(t *testing.T) {
	all := newPrograms(t)
	spec := all.spec(t, "good")
	opts := selfOptions(t)
	marker := filepath.Join(t.TempDir(), "marker")

	c := &Client{name: spec.Name, limits: opts.Limits, words: &output{}}
	var err error
	c.folder, err = makeFolder(opts.TempDir)
	must(t, err)
	prog, err := c.program(spec, opts)
	must(t, err)
	evil := spec.Foreign.Path + ".new"
	must(t, os.WriteFile(evil, []byte("#!/bin/sh\n: >'"+marker+"'\n"), 0o755))
	must(t, os.Rename(evil, spec.Foreign.Path))

	must(t, c.start(t.Context(), prog, environment(opts.Getenv, c.folder.path, false)))
	d, err := c.Describe(t.Context())
	must(t, err)
	must(t, c.Close())
	if d.Name != HostFile {
		t.Errorf("it is %q that runs", d.Name)
	}
	if _, err := os.Stat(marker); !os.IsNotExist(err) {
		t.Errorf("the swapped file was executed")
	}
	_, err = Open(t.Context(), spec, opts)
	wantProblem(t, err, NotTrusted, "it is another program")
}

// begin plans one token on a backend of its own, which then misbehaves.
func begin(t *testing.T, kind string, change func(*Limits)) (*Client, string, Options) {
	t.Helper()
	opts := selfOptions(t)
	opts.Limits.Stop = time.Second
	if change != nil {
		change(&opts.Limits)
	}
	c, err := Open(t.Context(), newPrograms(t).spec(t, kind), opts)
	must(t, err)
	p, err := c.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "A", Text: "ic1.a.b"}}, Targets: []string{"edge-01"}})
	if err != nil {
		c.Close()
		t.Fatal(err)
	}
	return c, p.Digest, opts
}

func ignore(sdk.Progress) error { return nil }

func TestADeathInTheMiddleIsAnUnknownOutcome(t *testing.T) {
	c, digest, opts := begin(t, "dying", nil)
	begun := false
	err := c.Apply(t.Context(), digest, "OP1", func(p sdk.Progress) error { begun = p.Phase == sdk.Writing; return nil })
	wantProblem(t, err, Died, "ended while applying operation OP1", "unknown: observe the operation")
	if !begun {
		t.Error("the progress before its death got lost")
	}
	must(t, c.Close())
	wantNothingLeft(t, opts.TempDir)
}

func TestSilenceInTheMiddleEndsAtTheIdleLimit(t *testing.T) {
	c, digest, opts := begin(t, "silent", func(l *Limits) { l.Idle = 500 * time.Millisecond })
	wantProblem(t, c.Apply(t.Context(), digest, "OP1", ignore), Slow, "gave no sign for 500ms", "unknown: observe the operation")
	must(t, c.Close())
	wantNothingLeft(t, opts.TempDir)
}

func TestAPanicIsARefusal(t *testing.T) {
	c, digest, opts := begin(t, "panicking", nil)
	err := c.Apply(t.Context(), digest, "OP1", ignore)
	if sdk.CodeOf(err) != sdk.CodeFailed || !strings.Contains(err.Error(), "the backend panicked: nil map") {
		t.Errorf("got %v", err)
	}
	must(t, c.Close())
	wantNothingLeft(t, opts.TempDir)
}

func TestABackendThatDoesNotStopIsKilled(t *testing.T) {
	c, _, opts := begin(t, "stubborn", nil)
	must(t, c.Close())
	wantNothingLeft(t, opts.TempDir)
}

func TestAPlanForSomethingElseIsRefused(t *testing.T) {
	opts := selfOptions(t)
	c := opened(t, newPrograms(t).spec(t, "lying"), opts)
	_, err := c.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "A", Text: "ic1.a.b"}}, Targets: []string{"edge-01"}})
	wantProblem(t, err, Broken, "not what was asked", "nothing was changed")
}

func TestNothingABackendSaysReachesATerminalRaw(t *testing.T) {
	c, digest, _ := begin(t, "rude", nil)
	defer c.Close()
	var said []string
	d, err := c.Describe(t.Context())
	must(t, err)
	said = append(said, d.Name, d.Version, d.Dependencies[0])
	findings, err := c.Check(t.Context())
	must(t, err)
	said = append(said, findings[0].Name, findings[0].Detail)
	p, err := c.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "B", Text: "ic1.b.b"}}, Targets: []string{"edge-01"}})
	must(t, err)
	said = append(said, p.Changes[0].Target, p.Changes[0].Before, p.Changes[0].Owner)
	err = c.Apply(t.Context(), digest, "OP1", func(p sdk.Progress) error {
		said = append(said, p.Target, p.Owner, p.RemoteID, p.Message)
		return nil
	})
	if sdk.CodeOf(err) != sdk.CodeDenied {
		t.Fatal(err)
	}
	said = append(said, err.Error())
	eventually(t, "what it printed arrives", func() bool { return len(c.Output()) > 0 })
	said = append(said, c.Output()...)
	for _, s := range said {
		if !strings.Contains(s, `\x1b[2J`) || untrusted.Text(s, len(s)) != s {
			t.Errorf("%q is not clean, or lost what was said", s)
		}
	}
	if !strings.HasPrefix(c.Output()[0], "backend rude: checking") {
		t.Errorf("its output is not labelled: %q", c.Output()[0])
	}
}

func TestAListenerThatFailsEndsTheCall(t *testing.T) {
	c, digest, _ := begin(t, "silent", nil)
	defer c.Close()
	full := errors.New("disk full")
	err := c.Apply(t.Context(), digest, "OP1", func(sdk.Progress) error { return full })
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "unknown: observe the operation") {
		t.Errorf("got %v", err)
	}
}

func TestTheCallersOwnEndIsNotTheBackendsFault(t *testing.T) {
	c, digest, _ := begin(t, "silent", nil)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Apply(ctx, digest, "OP1", func(sdk.Progress) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) || KindOf(err) != "" || !strings.Contains(err.Error(), "unknown: observe the operation") {
		t.Errorf("got %v", err)
	}
}
