package carriers_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestACarrierFileIsTokensSeparatedBySpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "directives")
	write(t, path, "ic1.a.b ic1.c.d\n")
	got, err := carriers.ReadFile(path)
	if err != nil || !slices.Equal(got, []string{"ic1.a.b", "ic1.c.d"}) {
		t.Errorf("ReadFile = %q, %v", got, err)
	}
}

func TestAFileThatWasNeverWrittenIsAnEmptyValue(t *testing.T) {
	if got, err := carriers.ReadFile(filepath.Join(t.TempDir(), "directives")); err != nil || len(got) != 0 {
		t.Errorf("ReadFile = %q, %v", got, err)
	}
}

func TestWhatCannotBeACarrierFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, "long")
	write(t, long, strings.Repeat("x", 16385))
	full := filepath.Join(dir, "full")
	write(t, full, strings.Repeat("x", 16384))
	if got, err := carriers.ReadFile(full); err != nil || len(got) != 1 {
		t.Errorf("16,384 bytes: %d tokens, %v", len(got), err)
	}
	for what, c := range map[string]struct{ path, want string }{
		"a pipe nobody writes to":    {fifo, "not a regular file"},
		"a folder":                   {dir, "not a regular file"},
		"more than a carrier value":  {long, "longer than 16384 bytes"},
		"a folder that is not there": {filepath.Join(dir, "gone", "directives"), "no such file"},
		"a file below another one":   {filepath.Join(long, "directives"), "not a directory"},
		"a name that is too long":    {strings.Repeat("x", 5000), "file name too long"},
	} {
		if got, err := carriers.ReadFile(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// delivery is one call of the sink or of the status.
type delivery struct {
	tokens []string
	status *carriers.Status
}

func watchFile(t *testing.T, path string) (ticks chan time.Time, got chan delivery) {
	ticks, got = make(chan time.Time), make(chan delivery, 16)
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	f := carriers.File{Path: path, Ticks: ticks, Now: func() time.Time { now = now.Add(time.Second); return now }}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Watch(ctx, func(tokens []string) { got <- delivery{tokens: tokens} }, func(s carriers.Status) { got <- delivery{status: &s} })
	}()
	t.Cleanup(func() { cancel(); <-done })
	return ticks, got
}

func wantTokens(t *testing.T, got chan delivery, want ...string) {
	t.Helper()
	if d := <-got; d.status != nil || !slices.Equal(d.tokens, want) {
		t.Fatalf("delivered %q, status %+v; want %q", d.tokens, d.status, want)
	}
}

func wantStatus(t *testing.T, got chan delivery, connected bool) carriers.Status {
	t.Helper()
	d := <-got
	if d.status == nil || d.status.Connected != connected || (d.status.Err == "") != connected {
		t.Fatalf("delivered %q, status %+v; want connected %v", d.tokens, d.status, connected)
	}
	return *d.status
}

func TestAWatchedFileIsDeliveredAtOnceAndWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "directives")
	write(t, path, "one")
	ticks, got := watchFile(t, path)
	wantTokens(t, got, "one")
	first := wantStatus(t, got, true)

	ticks <- time.Time{}
	if again := wantStatus(t, got, true); !again.LastFullRead.After(first.LastFullRead) {
		t.Error("an unchanged file does not renew the age of its source")
	}

	// Same length and same time: only the content tells.
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "two")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	ticks <- time.Time{}
	wantTokens(t, got, "two")
	wantStatus(t, got, true)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	ticks <- time.Time{}
	wantTokens(t, got)
	wantStatus(t, got, true)
}

func TestAFileThatCannotBeReadDeliversNothingAndTakesNothingBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "directives")
	write(t, path, "one")
	ticks, got := watchFile(t, path)
	wantTokens(t, got, "one")
	read := wantStatus(t, got, true).LastFullRead

	write(t, path, strings.Repeat("x", 20_000))
	ticks <- time.Time{}
	if s := wantStatus(t, got, false); !s.LastFullRead.Equal(read) {
		t.Errorf("a failed read changed the age: %+v", s)
	}
	write(t, path, "one")
	ticks <- time.Time{}
	wantStatus(t, got, true) // the same tokens as before: no delivery
}
