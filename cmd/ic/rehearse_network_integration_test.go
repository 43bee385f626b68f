//go:build integration

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestARehearsalSpeaksToNobody watches every call by which a process could reach
// another one while a whole night is played. There is none, although an etcd and a
// Prometheus are named in the environment of whoever rehearses.
func TestARehearsalSpeaksToNobody(t *testing.T) {
	stock(t, "strace")
	binary := filepath.Join(t.TempDir(), "ic")
	if err := os.Symlink(os.Args[0], binary); err != nil {
		t.Fatal(err)
	}
	home, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	watched := func(args ...string) (said, seen string, err error) {
		cmd := exec.CommandContext(ctx, "strace", append([]string{"-f", "-qq", "-o", calls, "-e", "signal=none", "-e", "trace=socket,connect,bind,listen,sendto,sendmsg,sendmmsg"}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "IC_ETCD=http://127.0.0.1:2379", "IC_PROMETHEUS=http://127.0.0.1:9090"}
		out, err := cmd.CombinedOutput()
		raw, readErr := os.ReadFile(calls)
		if readErr != nil {
			t.Fatal(readErr)
		}
		return string(out), string(raw), err
	}
	said, seen, err := watched(binary, "rehearse", "kill-switch-needs-the-outage", "--auto")
	if err != nil || !strings.Contains(said, "PASSED") {
		t.Fatalf("%v\n%s", err, said)
	}
	// A library asks the kernel at its start which interfaces there are; that is
	// nobody outside.
	for line := range strings.Lines(seen) {
		for _, way := range []string{"(AF_INET", "(AF_UNIX", "sa_family=AF_INET", "sa_family=AF_UNIX"} {
			if strings.Contains(line, way) {
				t.Errorf("a rehearsal opens a socket: %.500s", line)
			}
		}
	}
	// And a connection would have been seen.
	if _, seen, _ := watched("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9"); !strings.Contains(seen, "connect(") || !strings.Contains(seen, "sa_family=AF_INET") {
		t.Errorf("a connection was not seen: %q", seen)
	}
}
