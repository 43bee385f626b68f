package breakglass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
)

// asBackend is the argument with which this test binary is a backend instead. It
// has to be an argument: a backend sees nothing of our environment.
const asBackend = "be-a-backend"

func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == asBackend {
		args = args[1:]
	}
	switch {
	case len(args) == 2 && args[0] == "backend":
		backend, known := Bundled(args[1])
		if !known {
			fmt.Fprintln(os.Stderr, "unknown backend", args[1])
			os.Exit(2)
		}
		sdk.Serve(backend)
		os.Exit(0)
	case len(args) == 3 && args[0] == "host":
		holdBackend(args[1], args[2])
	}
	if kind, foreign := strings.CutPrefix(filepath.Base(os.Args[0]), foreignPrefix); foreign {
		serveForeign(kind)
	}
	os.Exit(m.Run())
}

// selfOptions start this test binary as bundled backends.
func selfOptions(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	limits := DefaultLimits()
	limits.Start = time.Minute // the machine may be busy with other tests
	return Options{Self: Program{Path: self, Args: []string{asBackend}}, Getenv: os.Getenv, TempDir: shortDir(t), Limits: limits}
}

// shortDir is a temporary folder whose name leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "icb")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, spec Spec, opts Options) *Client {
	t.Helper()
	c, err := Open(t.Context(), spec, opts)
	must(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// alive reports whether a process is there and has not ended.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	return !strings.HasPrefix(strings.TrimSpace(after), "Z")
}

// wantGone fails unless a process ends soon.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return !alive(pid) })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// childrenOf lists the processes that have a private folder in dir: backends, and
// what they have started.
func childrenOf(dir string) []int {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	exitOn(err)
	var out []int
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(env), "TMPDIR="+dir+"/") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err == nil && alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// holdBackend is the host that gets killed: it opens a backend on dir, the
// bundled one or the foreign one at path, says so once a process is there, and
// lives until somebody ends it.
func holdBackend(dir, path string) {
	self, err := os.Executable()
	exitOn(err)
	spec := Spec{Name: "held", Bundled: HostFile, Config: map[string]string{"dir": dir}}
	if path != HostFile {
		text, err := os.ReadFile(path)
		exitOn(err)
		sum := sha256.Sum256(text)
		spec = Spec{Name: "held", Foreign: &Foreign{Path: path, SHA256: hex.EncodeToString(sum[:])}}
	}
	opts := Options{Self: Program{Path: self, Args: []string{asBackend}}, Getenv: os.Getenv, TempDir: filepath.Join(dir, "tmp"), Limits: DefaultLimits()}
	opts.Limits.Start = time.Minute
	go func() {
		_, err := Open(context.Background(), spec, opts)
		exitOn(err)
		if path == HostFile {
			fmt.Println("ready")
		}
	}()
	if path != HostFile { // it never answers
		for len(childrenOf(opts.TempDir)) == 0 {
			time.Sleep(time.Millisecond)
		}
		fmt.Println("ready")
	}
	select {}
}

func exitOn(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func runHost(t *testing.T, dir, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, asBackend, "host", dir, path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, 200)
	n, err := out.Read(line)
	must(t, err)
	if got := strings.TrimSpace(string(line[:n])); got != "ready" {
		t.Fatalf("the host says %q", got)
	}
	return cmd
}
