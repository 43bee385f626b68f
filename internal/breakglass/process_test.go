package breakglass

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/degradedmode/ic/plugins/sdk"
)

// theChild is the one process of an open backend.
func theChild(t *testing.T, dir string) int {
	t.Helper()
	pids := childrenOf(dir)
	if len(pids) != 1 {
		t.Fatalf("%d processes run, want 1", len(pids))
	}
	return pids[0]
}

func TestABackendSeesNoTerminalAndOnlyTheAllowedEnvironment(t *testing.T) {
	t.Setenv("IC_TOKEN", "hidden")
	t.Setenv("SSH_AUTH_SOCK", "/agent")
	t.Setenv("LANG", "C.UTF-8")
	for _, agent := range []bool{false, true} {
		opts := selfOptions(t)
		opened(t, Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": t.TempDir()}, SSHAgent: agent}, opts)
		pid := theChild(t, opts.TempDir)

		stdin, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
		must(t, err)
		if stdin != os.DevNull {
			t.Errorf("its stdin is %s", stdin)
		}
		session, err := syscall.Getpgid(pid)
		must(t, err)
		if session != pid || session == syscall.Getpgrp() {
			t.Errorf("it runs in process group %d, want its own, %d", session, pid)
		}

		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		must(t, err)
		var names []string
		for _, entry := range strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
			name, value, _ := strings.Cut(entry, "=")
			if name == "TMPDIR" && filepath.Dir(value) != opts.TempDir {
				t.Errorf("its TMPDIR is %s, want a folder of its own", value)
			}
			if !strings.HasPrefix(name, "PLUGIN_") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		want := []string{"HOME", "IC_BACKEND", "LANG", "PATH", "TMPDIR"}
		if agent {
			want = []string{"HOME", "IC_BACKEND", "LANG", "PATH", "SSH_AUTH_SOCK", "TMPDIR"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("with the agent %v it sees %v, want %v", agent, names, want)
		}
	}
}

func TestCloseEndsTheProcessAndRemovesItsFolder(t *testing.T) {
	opts := selfOptions(t)
	c, err := Open(t.Context(), Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": t.TempDir()}}, opts)
	must(t, err)
	pid := theChild(t, opts.TempDir)
	must(t, c.Close())
	if alive(pid) {
		t.Error("it is still there after Close")
	}
	wantNothingLeft(t, opts.TempDir)
}

func TestAKilledHostTakesItsBackendAlong(t *testing.T) {
	dir := shortDir(t)
	tmp := filepath.Join(dir, "tmp")
	must(t, os.Mkdir(tmp, 0o700))
	host := runHost(t, dir, HostFile)
	pid := theChild(t, tmp)
	must(t, host.Process.Kill())
	host.Wait() // it was killed, and says so
	wantGone(t, pid)

	// What it left, the next one removes.
	left, err := os.ReadDir(tmp)
	must(t, err)
	if len(left) != 1 {
		t.Fatalf("the killed host left %d folders, want 1", len(left))
	}
	opts := selfOptions(t)
	opts.TempDir = tmp
	c, err := Open(t.Context(), Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": dir}}, opts)
	must(t, err)
	must(t, c.Close())
	wantNothingLeft(t, tmp)
}

// A backend that is not ours may never look for its parent: the kernel has to.
func TestAKilledHostTakesAStrangerAlong(t *testing.T) {
	dir := shortDir(t)
	must(t, os.Mkdir(filepath.Join(dir, "tmp"), 0o700))
	host := runHost(t, dir, newPrograms(t).spec(t, "waiting").Foreign.Path)
	pid := theChild(t, filepath.Join(dir, "tmp"))
	must(t, host.Process.Kill())
	host.Wait() // it was killed, and says so
	wantGone(t, pid)
}

func TestAFolderInUseIsNotSweptAway(t *testing.T) {
	opts := selfOptions(t)
	c := opened(t, Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": t.TempDir()}}, opts)
	second, err := makeFolder(opts.TempDir)
	must(t, err)
	must(t, second.remove())
	if _, err := os.Stat(c.folder.path); err != nil {
		t.Errorf("the folder of an open backend: %v", err)
	}
	_, err = c.Check(t.Context())
	must(t, err)
}

func TestAnOperationWhoseBackendWasKilledIsObservedAndCompleted(t *testing.T) {
	opts := selfOptions(t)
	dir := t.TempDir()
	spec := Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": dir}}
	c, err := Open(t.Context(), spec, opts)
	must(t, err)
	pid := theChild(t, opts.TempDir)
	request := sdk.PlanRequest{Tokens: []sdk.Token{{ID: "A", Text: "ic1.a.b"}}}
	for i := range 200 {
		request.Targets = append(request.Targets, fmt.Sprintf("host-%03d", i))
	}
	p, err := c.Plan(t.Context(), request)
	must(t, err)
	killed := false // once: what it wrote before may still be told after it is gone
	err = c.Apply(t.Context(), p.Digest, "OP1", func(p sdk.Progress) error {
		if p.Phase != sdk.Written || killed {
			return nil
		}
		killed = true
		return syscall.Kill(pid, syscall.SIGKILL)
	})
	wantProblem(t, err, Died, "unknown: observe the operation")
	must(t, c.Close())

	count := map[sdk.Phase]int{}
	observe := func(c *Client) {
		clear(count)
		must(t, c.Observe(t.Context(), "OP1", func(p sdk.Progress) error {
			count[p.Phase] = max(p.Done, count[p.Phase])
			return nil
		}))
	}
	fresh := opened(t, spec, opts)
	observe(fresh)
	if n := count[sdk.Written]; n < 1 || n == len(request.Targets) {
		t.Fatalf("after the kill %d of %d hosts are written: it was not in the middle", n, len(request.Targets))
	}
	again, err := fresh.Plan(t.Context(), request)
	must(t, err)
	must(t, fresh.Apply(t.Context(), again.Digest, "OP1", ignore))
	observe(fresh)
	if count[sdk.Written] != len(request.Targets) {
		t.Errorf("after completion %v, want %d written", count, len(request.Targets))
	}
}

func TestTheBundledProgramIsTheRunningOneByDefault(t *testing.T) {
	path, err := own()
	must(t, err)
	running, err := os.Stat(path)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	want, err := os.Stat(self)
	must(t, err)
	if !os.SameFile(running, want) {
		t.Errorf("%s is not this program", path)
	}
}

func TestOnlyHostFileWorksWithoutAProcess(t *testing.T) {
	opts := selfOptions(t)
	opts.Self = Program{Path: "/nonexistent"}
	_, err := Open(t.Context(), Spec{Name: "push", Bundled: Git, Config: map[string]string{"repo": "/r", "path": "f"}}, opts)
	wantProblem(t, err, NotStarted, "was not started", "no such file")
	_, err = Open(t.Context(), Spec{Name: "x", Bundled: "ansible"}, opts)
	wantProblem(t, err, NotStarted, `"ansible" is none of git, hostfile`)
	wantNothingLeft(t, opts.TempDir)
}

func TestAPlaceWithALongNameHasRoomForASocketAllTheSame(t *testing.T) {
	opts, dir := selfOptions(t), t.TempDir()
	opts.TempDir = ""
	t.Setenv("TMPDIR", filepath.Join(dir, strings.Repeat("x", maxParent)))
	must(t, os.Mkdir(os.Getenv("TMPDIR"), 0o700))
	c, err := Open(t.Context(), Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"dir": dir}}, opts)
	must(t, err)
	if c.InProcess() != nil {
		t.Error(c.InProcess())
	}
	must(t, c.Close())
}

func TestABadSettingIsRefusedAndLeavesNothing(t *testing.T) {
	opts := selfOptions(t)
	_, err := Open(t.Context(), Spec{Name: "files", Bundled: HostFile, Config: map[string]string{"folder": "/x"}}, opts)
	if sdk.CodeOf(err) != sdk.CodeBadConfig || !strings.HasPrefix(err.Error(), "backend files: hostfile has no setting") {
		t.Errorf("got %v", err)
	}
	wantNothingLeft(t, opts.TempDir)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Spec{Name: "files", Bundled: HostFile}, opts); err == nil {
		t.Error("a cancelled Open opened")
	}
	wantNothingLeft(t, opts.TempDir)
}
