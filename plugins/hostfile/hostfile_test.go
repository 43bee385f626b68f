package hostfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/degradedmode/ic/plugins/sdk/conformance"
	"github.com/degradedmode/ic/plugins/sdk/conformance/worlds"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, worlds.HostFiles(func(t *testing.T, config map[string]string) sdk.Conn { return configured(t, config) }))
}

func configured(t *testing.T, config map[string]string) *sdk.Session {
	t.Helper()
	s := sdk.NewSession(New())
	t.Cleanup(func() { must(t, s.Stop(context.Background())) })
	must(t, s.Configure(t.Context(), config, nil))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

const value = "ic1.one.sig"

func plan(t *testing.T, s *sdk.Session, targets ...string) sdk.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: value}}, Targets: targets})
	must(t, err)
	return p
}

// heard takes progress and counts it by phase.
type heard map[sdk.Phase]int

func (h heard) report(p sdk.Progress) error {
	h[p.Phase]++
	return nil
}

func TestAFreePlaceIsFilledAndGivenBackAsItWas(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-01", fileName)
	write(t, file, "\n") // made by configuration management, empty
	s := configured(t, map[string]string{"dir": dir})
	must(t, s.Apply(t.Context(), plan(t, s, "edge-01").Digest, "OP1", heard{}.report))
	if got := read(t, file); got != value+"\n" {
		t.Errorf("the file is %q", got)
	}
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode() != fileMode {
		t.Errorf("its mode is %s: the agent of another user must read it", info.Mode())
	}
	must(t, s.Undo(t.Context(), "OP1", heard{}.report))
	if got := read(t, file); got != "\n" {
		t.Errorf("after undo the file is %q", got)
	}
}

func TestEveryHostMayHaveItsPlaceInATemplate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	must(t, os.Mkdir(dir, 0o755))
	s := configured(t, map[string]string{"path": filepath.Join(dir, "{host}", "run", "ic-{host}.conf")})
	h := heard{}
	must(t, s.Apply(t.Context(), plan(t, s, "edge-01", "edge-02").Digest, "OP1", h.report))
	for _, host := range []string{"edge-01", "edge-02"} {
		if got := read(t, filepath.Join(dir, host, "run", "ic-"+host+".conf")); got != value+"\n" {
			t.Errorf("%s has %q", host, got)
		}
	}
	must(t, configured(t, map[string]string{"path": filepath.Join(dir, "{host}", "run", "ic-{host}.conf")}).Observe(t.Context(), "OP1", h.report))
	if h[sdk.Written] != 4 {
		t.Errorf("written and observed: %v, want 2 each", h)
	}
}

func TestAHostThatCannotBeWrittenDoesNotHoldUpTheOthers(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "edge-02"), "a file where a folder should be")
	s := configured(t, map[string]string{"dir": dir})
	_, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: value}}, Targets: []string{"edge-01", "edge-02"}})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "edge-02")) {
		t.Errorf("the plan over a broken folder: %v", err)
	}

	p := plan(t, s, "edge-01", "edge-03", "edge-04")
	h := heard{}
	err = s.Apply(t.Context(), p.Digest, "OP1", func(p sdk.Progress) error {
		if p.Phase == sdk.Writing && p.Target == "edge-03" {
			write(t, filepath.Join(dir, "edge-03", fileName), "somebody was faster\n")
		}
		return h.report(p)
	})
	if sdk.CodeOf(err) != sdk.CodeChanged || !strings.Contains(err.Error(), "1 of 3 hosts failed") || h[sdk.Written] != 2 {
		t.Errorf("got %v and %v", err, h)
	}
	if got := read(t, filepath.Join(dir, "edge-03", fileName)); got != "somebody was faster\n" {
		t.Errorf("their file is %q", got)
	}
}

func TestOwnedHostsAreSkippedAndTheOthersWritten(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "edge-02", fileName), "theirs\n")
	s := configured(t, map[string]string{"dir": dir})
	p := plan(t, s, "edge-01", "edge-02")
	if c := p.Changes[1]; !c.Conflict || c.Owner != fmt.Sprintf("uid %d", os.Getuid()) {
		t.Errorf("the plan says %+v", c)
	}
	h := heard{}
	must(t, s.Apply(t.Context(), p.Digest, "OP1", h.report))
	if h[sdk.Written] != 1 || h[sdk.Blocked] != 1 || read(t, filepath.Join(dir, "edge-02", fileName)) != "theirs\n" {
		t.Errorf("got %v", h)
	}
}

func TestAKillBetweenReceiptAndFileIsUnderstood(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-01", fileName)
	write(t, file, "")
	w := watched{host: "edge-01", path: file}
	r := receipt{V: 1, Operation: "OP1", Host: "edge-01", Total: 1, Existed: true, After: value, State: writing}

	for _, c := range []struct {
		what, text string
		seen       sdk.Phase
	}{
		{"before the file", "", sdk.Missing},
		{"after the file", value + "\n", sdk.Written},
		{"and somebody else came", "theirs\n", sdk.Replaced},
	} {
		must(t, w.keep(r))
		write(t, file, c.text)
		h := heard{}
		must(t, configured(t, map[string]string{"dir": dir}).Observe(t.Context(), "OP1", h.report))
		if h[c.seen] != 1 {
			t.Errorf("killed %s, a fresh process sees %v", c.what, h)
		}
	}

	// Sent again after the file was written, it is completed, and undo still knows
	// what stood there first.
	write(t, file, value+"\n")
	s := configured(t, map[string]string{"dir": dir})
	must(t, s.Apply(t.Context(), plan(t, s, "edge-01").Digest, "OP1", heard{}.report))
	must(t, s.Undo(t.Context(), "OP1", heard{}.report))
	if got := read(t, file); got != "" {
		t.Errorf("after undo the file is %q, it was empty", got)
	}
}

func TestAnOperationIsNotUsedForTwoValues(t *testing.T) {
	dir := t.TempDir()
	s := configured(t, map[string]string{"dir": dir})
	must(t, s.Apply(t.Context(), plan(t, s, "edge-01").Digest, "OP1", heard{}.report))
	p, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "U", Text: "ic1.two.sig"}}, Targets: []string{"edge-01"}})
	must(t, err)
	if err := s.Apply(t.Context(), p.Digest, "OP1", heard{}.report); sdk.CodeOf(err) != sdk.CodeBadRequest {
		t.Errorf("got %v", err)
	}
	if got := read(t, filepath.Join(dir, "edge-01", fileName)); got != value+"\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestAHostRemembersSoManyOperationsAndNoLitter(t *testing.T) {
	dir := t.TempDir()
	s := configured(t, map[string]string{"dir": dir})
	write(t, filepath.Join(dir, "edge-01", tempPrefix+"of-a-killed-writer"), "half")
	for i := range maxReceipts + 3 {
		p, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: fmt.Sprintf("ic1.%d.sig", i)}}, Targets: []string{"edge-01"}})
		must(t, err)
		must(t, s.Apply(t.Context(), p.Digest, fmt.Sprintf("OP%02d", i), heard{}.report))
	}
	entries, err := os.ReadDir(filepath.Join(dir, "edge-01"))
	must(t, err)
	if len(entries) != maxReceipts+1 {
		t.Errorf("%d files are there, want %d receipts and the file", len(entries), maxReceipts)
	}
	if err := s.Observe(t.Context(), "OP00", heard{}.report); sdk.CodeOf(err) != sdk.CodeOperationUnknown {
		t.Errorf("the oldest operation: %v", err)
	}
	h := heard{}
	must(t, s.Observe(t.Context(), fmt.Sprintf("OP%02d", maxReceipts+2), h.report))
	if h[sdk.Written] != 1 {
		t.Errorf("the newest operation: %v", h)
	}
}

func TestAHostInUseIsWaitedForNotForEver(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "edge-01"), 0o755))
	held, err := os.Open(filepath.Join(dir, "edge-01"))
	must(t, err)
	defer held.Close()
	must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
	s := configured(t, map[string]string{"dir": dir})
	p := plan(t, s, "edge-01")
	err = s.Apply(t.Context(), p.Digest, "OP1", heard{}.report)
	if err == nil || !strings.Contains(err.Error(), "another operation holds this host") {
		t.Errorf("while it is held: %v", err)
	}
	must(t, syscall.Flock(int(held.Fd()), syscall.LOCK_UN))
	must(t, s.Apply(t.Context(), p.Digest, "OP1", heard{}.report))
}

func TestWhatIsNotAFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-01", fileName)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, syscall.Mkfifo(file, 0o644))
	s := configured(t, map[string]string{"dir": dir})
	_, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: value}}, Targets: []string{"edge-01"}})
	if err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe in the place of the file: %v", err)
	}
}

func TestAReceiptThatWasMovedIsNotBelieved(t *testing.T) {
	dir := t.TempDir()
	s := configured(t, map[string]string{"dir": dir})
	must(t, s.Apply(t.Context(), plan(t, s, "edge-01").Digest, "OP1", heard{}.report))
	must(t, os.Rename(filepath.Join(dir, "edge-01"), filepath.Join(dir, "edge-02")))
	err := s.Undo(t.Context(), "OP1", heard{}.report)
	if err == nil || !strings.Contains(err.Error(), "moved or edited") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsAndCheck(t *testing.T) {
	for _, c := range []struct {
		config  map[string]string
		secrets map[string]string
		want    string
	}{
		{map[string]string{}, nil, "either dir, or path"},
		{map[string]string{"dir": "/a", "path": "/b/{host}"}, nil, "either dir, or path"},
		{map[string]string{"dir": "a"}, nil, "not absolute"},
		{map[string]string{"path": "/a/b"}, nil, "has no {host}"},
		{map[string]string{"dir": "/a", "mode": "0600"}, nil, "no setting"},
		{map[string]string{"dir": "/a"}, map[string]string{"token": "x"}, "no secrets"},
	} {
		err := New().Configure(t.Context(), c.config, c.secrets)
		if sdk.CodeOf(err) != sdk.CodeBadConfig || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.config, err, c.want)
		}
	}
	dir := filepath.Join(t.TempDir(), "gone")
	s := configured(t, map[string]string{"dir": dir})
	findings, err := s.Check(t.Context())
	must(t, err)
	if findings[0].OK || !strings.Contains(findings[0].Detail, dir) {
		t.Errorf("a folder that is gone: %+v", findings)
	}
	if _, err := s.Plan(t.Context(), sdk.PlanRequest{Tokens: []sdk.Token{{ID: "T", Text: value}}, Targets: []string{"edge-01"}}); sdk.CodeOf(err) != sdk.CodeUnreachable {
		t.Errorf("a plan for a folder that is gone: %v", err)
	}
}
