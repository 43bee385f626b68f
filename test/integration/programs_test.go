//go:build integration && linux

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds every wait: a machine that is busy with other tests is slow,
	// and what is broken is waited for in vain.
	patience = 40 * time.Second
	// poll is the distance of two looks at something.
	poll = 25 * time.Millisecond
	// commandLimit bounds one command; a rollout through the demo's pipeline takes
	// 20 s.
	commandLimit = 90 * time.Second
	// exit codes that are a contract.
	done, denied, unconfirmed, integrity, needs = 0, 3, 4, 5, 6
)

// need passes a test over whose program is not on this machine, and fails it
// where the integration tests have to run.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatalf("%s is not on PATH, and IC_INTEGRATION=1 wants it: install %s", program, program)
		}
		t.Skipf("%s is not on PATH: install %s to run this test", program, program)
	}
}

// build makes a program of this module and returns its path.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/degradedmode/ic/cmd/"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return program
}

// environment is what our children get: no key, no keyring, no setting of the
// person who runs the tests.
func environment(home string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8", "TERM=xterm-256color"}, more...)
}

// until waits for something to become true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(poll)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("within %s it did not happen that %s", patience, what)
		}
	}
}

// seat is a place at which commands are given.
type seat struct {
	t       *testing.T
	program string
	state   string
	env     []string
}

// answer is what a command said.
type answer struct {
	code     int
	out, err string
}

// both is everything that was printed.
func (a answer) both() string { return a.out + a.err }

// ic runs one command without a terminal.
func (s *seat) ic(args ...string) answer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.program, append([]string{"--state", s.state}, args...)...)
	cmd.Env = s.env
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	failure := cmd.Run()
	var exit *exec.ExitError
	if failure != nil && (!errors.As(failure, &exit) || !exit.Exited()) {
		s.t.Fatalf("ic %s: %v\n%s%s", strings.Join(args, " "), failure, &out, &err)
	}
	return answer{cmd.ProcessState.ExitCode(), out.String(), err.String()}
}

// must runs one command that has to end with a code, and to say some things.
func (s *seat) must(code int, args []string, says ...string) answer {
	s.t.Helper()
	a := s.ic(args...)
	if a.code != code {
		s.t.Fatalf("ic %s: exit code %d, want %d\n%s", strings.Join(args, " "), a.code, code, a.both())
	}
	for _, text := range says {
		if !strings.Contains(a.both(), text) {
			s.t.Fatalf("ic %s does not say %q:\n%s", strings.Join(args, " "), text, a.both())
		}
	}
	return a
}

// read decodes what a command says in JSON.
func (a answer) read(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.out), into); err != nil {
		t.Fatalf("%v in what was printed:\n%s", err, a.both())
	}
}

// words are the arguments of a command.
func words(args ...string) []string { return args }

// processesOf lists the processes that run one of our programs, or hold one of
// our folders in their arguments, with those arguments.
func processesOf(paths ...string) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc") // none on a system that has no /proc: nothing is found
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		line := strings.ReplaceAll(strings.TrimRight(string(raw), "\x00"), "\x00", " ")
		for _, path := range paths {
			if strings.Contains(line, path) {
				found[pid] = line
			}
		}
	}
	return found
}

// endAll ends what is left of a test that failed.
func endAll(t *testing.T, paths ...string) {
	for pid, line := range processesOf(paths...) {
		t.Logf("still there and killed: %d %s", pid, line)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// chapter is one part of a long test.
type chapter struct {
	name string
	tell func()
}

// chapters runs the parts in order, with the time at which each was over. After
// one that fails nothing that follows would mean anything.
func chapters(t *testing.T, all []chapter) {
	t.Helper()
	began := time.Now()
	for _, c := range all {
		c.tell()
		if t.Failed() {
			t.Fatalf("in the chapter %q, %.1f s after the start", c.name, time.Since(began).Seconds())
		}
		t.Logf("%5.1f s  %s", time.Since(began).Seconds(), c.name)
	}
}
