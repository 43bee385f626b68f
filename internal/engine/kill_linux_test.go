package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
)

const (
	// storyFolder in the environment makes the test binary live through the story
	// there, as the process that is killed.
	storyFolder = "IC_ENGINE_STORY"
	killLimit   = time.Minute // of one run under strace
	kills       = 16          // without IC_SWEEP
	tries       = 5           // until a kill is where it should be
)

// changes are the calls by which a host changes anything outside itself: files, and
// what it tells. Of openat those count that may write.
const changes = "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,link,linkat,symlinkat,fchmod,fchmodat"

// The story has one thread, so that strace, which counts calls by thread, counts
// all of them.
func init() {
	if os.Getenv(storyFolder) != "" {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	dir := os.Getenv(storyFolder)
	if dir == "" {
		os.Exit(m.Run())
	}
	s := newStory(alone{}, dir, func(line string) { fmt.Println(line) })
	s.first()
	s.rest()
}

// alone is a story without a test around it.
type alone struct{ testing.TB }

func (alone) Helper()                   {}
func (alone) Errorf(f string, a ...any) { alone{}.Fatalf(f, a...) }
func (alone) Fatal(a ...any)            { alone{}.Fatalf("%s", fmt.Sprint(a...)) }
func (alone) Fatalf(f string, a ...any) {
	fmt.Fprintf(os.Stderr, f+"\n", a...)
	os.Exit(1)
}

// call is one change in the order of the thread that makes them. nth counts the
// calls of its name, of which not all are changes.
type call struct {
	name string
	nth  int
}

var begun = regexp.MustCompile(`(?m)^(\d+) +(\w+)\((.*)$`)

// changesIn reads what strace has written about the first thread.
func changesIn(t *testing.T, log string) (out []call) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	first := ""
	for _, m := range begun.FindAllStringSubmatch(string(text), -1) {
		if first == "" {
			first = m[1]
		}
		if m[1] != first {
			continue
		}
		counts[m[2]]++
		if m[2] != "openat" || strings.Contains(m[3], "O_WRONLY") || strings.Contains(m[3], "O_RDWR") {
			out = append(out, call{m[2], counts[m[2]]})
		}
	}
	return out
}

// live runs the story under strace, and returns what it said and the changes that
// it began.
func live(t *testing.T, dir string, more ...string) ([]said, []call, error) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace")
	ctx, cancel := context.WithTimeout(t.Context(), killLimit)
	defer cancel()
	args := append([]string{"-f", "-qq", "-s", "0", "-o", log, "-e", "trace=" + changes, "-e", "signal=none"}, more...)
	cmd := exec.CommandContext(ctx, "strace", append(args, os.Args[0])...)
	cmd.Env = []string{storyFolder + "=" + dir, "GOMAXPROCS=1"}
	out, err := cmd.Output()
	var lines []said
	for line := range strings.Lines(string(out)) {
		lines = append(lines, heard(t, strings.TrimSpace(line)))
	}
	return lines, changesIn(t, log), err
}

// need passes a test over whose program is not on this machine. Under
// IC_INTEGRATION=1 a missing one is a failure.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("IC_INTEGRATION") == "1" {
		t.Fatalf("%s is not on PATH, and IC_INTEGRATION=1 wants it: install %s", program, program)
	}
	t.Skipf("%s is not on PATH: install %s to run this test", program, program)
}

// killedBefore kills a story before the i-th of its calls, and returns what it had
// said and its folder. The runtime opens files to read them when it likes, which
// moves the place that strace counts to: a run that died elsewhere is made again.
func killedBefore(t *testing.T, calls []call, i int) ([]said, string) {
	t.Helper()
	c := calls[i]
	for try := 1; ; try++ {
		dir := filepath.Join(t.TempDir(), "state")
		lines, got, err := live(t, dir, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", c.name, c.nth))
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(got) == i+1 && got[i].name == c.name {
			return lines, dir
		}
		if try == tries {
			t.Fatalf("kill before %+v, call %d: %v; it made %d calls and said %d lines", c, i, err, len(got), len(lines))
		}
	}
}

// TestAKillAtEveryChangeThatAHostMakesForgetsNothing kills a process that is a host
// with SIGKILL before each call that changes anything, and holds the folder against
// what the process had said. With IC_SWEEP=all each is tried, without it a few.
func TestAKillAtEveryChangeThatAHostMakesForgetsNothing(t *testing.T) {
	need(t, "strace")
	whole, calls, err := live(t, filepath.Join(t.TempDir(), "state"))
	if err != nil || len(calls) < 100 {
		t.Fatalf("the story runs to its end: %v, %d calls", err, len(calls))
	}
	here := newStory(t, t.TempDir(), func(string) {}) // for the ids and tokens of its names
	here.first()
	here.rest()
	if err := here.Close(here.clock.Now()); err != nil {
		t.Fatal(err)
	}
	byName := map[string]int{}
	for _, c := range calls {
		byName[c.name]++
	}
	killed := 0
	first, step := swept(t, len(calls)/kills)
	for i := first; i < len(calls) && !t.Failed(); i += step {
		c := calls[i]
		lines, dir := killedBefore(t, calls, i)
		if !slices.Equal(lines, whole[:min(len(lines), len(whole))]) {
			t.Fatalf("killed before %+v, call %d, it said %v", c, i, lines)
		}
		killed++
		folder, err := engine.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		next := whole[len(lines):min(len(lines)+1, len(whole))] // what it was about to say
		here.holdsTo(t, folder, tellsOf(lines), next, engine.StateOK)
		if t.Failed() {
			t.Errorf("killed before %+v, call %d of %d, after it had said %v", c, i, len(calls), lines)
		}
	}
	t.Logf("killed before %d of %d changes (%v), each once and exactly there", killed, len(calls), byName)
}
