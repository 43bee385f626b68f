package pipeline

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var begins = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)

func at(s int) time.Time { return begins.Add(time.Duration(s) * time.Second) }

// bench is a pipeline with 25 hosts and a person who pushes to it.
type bench struct {
	t      *testing.T
	p      *Pipeline
	starts []string // "host CHECKOUT_TIMEOUT_MS"
	work   string   // the person's clone
}

func newBench(t *testing.T) *bench {
	t.Helper()
	// A name that a careless script would take apart.
	dir := filepath.Join(t.TempDir(), "it's $HOME; a `folder`")
	b := &bench{t: t, work: filepath.Join(t.TempDir(), "clone")}
	b.open(dir)
	b.git("clone", "--quiet", b.p.Repo(), b.work)
	return b
}

func (b *bench) open(dir string) {
	b.t.Helper()
	var hosts []string
	for i := range 25 {
		hosts = append(hosts, fmt.Sprintf("checkout-%02d", 25-i))
	}
	p, err := Create(b.t.Context(), Options{
		Dir: dir, Hosts: hosts, Getenv: os.Getenv, Now: begins,
		Restart: func(host string, env map[string]string) {
			b.starts = append(b.starts, host+" "+env["CHECKOUT_TIMEOUT_MS"])
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.p = p
}

// git runs git as a person with a hostile configuration of their own would.
func (b *bench) git(args ...string) {
	b.t.Helper()
	if out, err := b.tryGit(args...); err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (b *bench) tryGit(args ...string) (string, error) {
	home := b.t.TempDir()
	config := "[user]\n\tname = someone\n\temail = someone@shop.invalid\n[core]\n\thooksPath = /nowhere\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o600); err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir = filepath.Dir(b.work)
	if _, err := os.Stat(b.work); err == nil {
		cmd.Dir = b.work
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// push commits text as the env file and pushes it.
func (b *bench) push(text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.work, EnvFile), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.git("commit", "--quiet", "--all", "--message", "a change")
	b.git("push", "--quiet", "origin", "HEAD:"+Branch)
}

func (b *bench) advance(seconds int) {
	b.t.Helper()
	if err := b.p.Advance(at(seconds)); err != nil {
		b.t.Fatal(err)
	}
}

func TestAFreshPipelineHasACommitAndDeploysNothingByItself(t *testing.T) {
	b := newBench(t)
	text, err := os.ReadFile(filepath.Join(b.work, EnvFile))
	if err != nil || string(text) != firstEnv {
		t.Fatalf("the clone holds %q, %v", text, err)
	}
	b.advance(60)
	if s := b.p.Status(); s.Phase != Idle || len(b.starts) != 0 {
		t.Errorf("without a push: %+v, restarted %v", s, b.starts)
	}
	if got := b.p.EnvOf("checkout-07")["CHECKOUT_TIMEOUT_MS"]; got != "800" {
		t.Errorf("a host starts with CHECKOUT_TIMEOUT_MS=%s, want 800", got)
	}
}

func TestAPushRestartsTheHostsInBatches(t *testing.T) {
	b := newBench(t)
	b.push(firstEnv + "IC_DIRECTIVES=ic1.a.b ic1.c.d\n")
	for _, step := range []struct {
		at, restarted int
		phase         Phase
	}{{0, 10, Rolling}, {4, 10, Rolling}, {5, 20, Rolling}, {10, 25, Done}, {60, 25, Done}} {
		b.advance(step.at)
		s := b.p.Status()
		if s.Restarted != step.restarted || s.Phase != step.phase || len(b.starts) != step.restarted {
			t.Fatalf("at %d s: %+v and %d restarts, want %d, %s", step.at, s, len(b.starts), step.restarted, step.phase)
		}
		if step.at == 5 {
			for host, want := range map[string]string{"checkout-20": "ic1.a.b ic1.c.d", "checkout-21": ""} {
				if got := b.p.EnvOf(host)["IC_DIRECTIVES"]; got != want {
					t.Errorf("in the middle %s would start with %q, want %q", host, got, want)
				}
			}
		}
	}
	if !slices.IsSorted(b.starts) {
		t.Errorf("hosts restarted in the order %v", b.starts)
	}
}

func TestAPushDuringARolloutReachesEveryHost(t *testing.T) {
	b := newBench(t)
	b.push(strings.Replace(firstEnv, "=800", "=801", 1))
	b.advance(0)
	b.push(strings.Replace(firstEnv, "=800", "=802", 1))
	for s := 1; s <= 30; s++ {
		b.advance(s)
	}
	if s := b.p.Status(); s.Phase != Done || len(b.starts) != 35 {
		t.Fatalf("%+v after %d restarts", s, len(b.starts))
	}
	for host := range b.p.given {
		if got := b.p.EnvOf(host)["CHECKOUT_TIMEOUT_MS"]; got != "802" {
			t.Errorf("%s has %s, want what was pushed last", host, got)
		}
	}
}

func TestAStuckPipelineTakesThePushAndDoesNothing(t *testing.T) {
	b := newBench(t)
	b.push(firstEnv + "A=1\n")
	b.advance(0)
	b.p.SetStuck(true)
	b.push(firstEnv + "A=2\n") // is not refused: that is what is wrong with it
	for s := 1; s <= 300; s++ {
		b.advance(s)
	}
	if s := b.p.Status(); s.Phase != Stuck || len(b.starts) != 10 {
		t.Fatalf("stuck: %+v after %d restarts, want the 10 of before", s, len(b.starts))
	}
	b.p.SetStuck(false)
	for s := 301; s <= 330; s++ {
		b.advance(s)
	}
	if s := b.p.Status(); s.Phase != Done || b.p.EnvOf("checkout-25")["A"] != "2" {
		t.Errorf("after the fault: %+v, %v", s, b.p.EnvOf("checkout-25"))
	}
}

func TestWhatCannotBeDeployedIsSaidAndRestartsNobody(t *testing.T) {
	b := newBench(t)
	b.push("IC_DIRECTIVES=a\nIC_DIRECTIVES=b\n")
	b.advance(0)
	if s := b.p.Status(); s.Phase != Refused || !strings.Contains(s.Detail, "IC_DIRECTIVES again") || len(b.starts) != 0 {
		t.Errorf("an ambiguous file: %+v, restarted %v", s, b.starts)
	}
	b.git("checkout", "--quiet", "-b", "draft")
	b.git("push", "--quiet", "origin", "draft")
	b.advance(10)
	if s := b.p.Status(); s.Phase != Refused || len(b.starts) != 0 {
		t.Errorf("a push to another branch: %+v, restarted %v", s, b.starts)
	}
	b.git("rm", "--quiet", EnvFile)
	b.git("commit", "--quiet", "--message", "without the file")
	b.git("push", "--quiet", "origin", "HEAD:"+Branch)
	b.advance(20)
	if len(b.starts) != 0 {
		t.Errorf("a commit without the file restarted %v", b.starts)
	}
	if leftover, _ := filepath.Glob(filepath.Join(b.p.repo.dir, "env", ".*")); len(leftover) != 0 {
		t.Errorf("the hook left %v behind", leftover)
	}
}

func TestHistoryCannotBeRewrittenOrDeleted(t *testing.T) {
	b := newBench(t)
	b.push(firstEnv + "A=1\n")
	b.git("reset", "--quiet", "--hard", "HEAD~1")
	b.git("commit", "--quiet", "--allow-empty", "--message", "another past")
	if out, err := b.tryGit("push", "--force", "origin", "HEAD:"+Branch); err == nil {
		t.Errorf("a forced push was taken: %s", out)
	}
	if out, err := b.tryGit("push", "origin", ":"+Branch); err == nil {
		t.Errorf("the branch was deleted: %s", out)
	}
}

func TestAPipelineIsOpenedAsItWasLeft(t *testing.T) {
	b := newBench(t)
	b.push(firstEnv + "A=1\n")
	b.advance(0)
	b.advance(5)
	b.advance(10)
	b.push(firstEnv + "A=2\n") // while the world is down
	b.starts = nil
	b.open(b.p.repo.dir)
	b.advance(100)
	if s := b.p.Status(); s.Phase != Rolling || len(b.starts) != 10 {
		t.Errorf("the push of meanwhile: %+v after %d restarts", s, len(b.starts))
	}
	if b.p.EnvOf("checkout-01")["A"] != "2" {
		t.Error("the reopened pipeline forgot what was pushed")
	}
}

func TestGitSeesNothingOfTheCallersEnvironment(t *testing.T) {
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("GIT_INDEX_FILE", "/nowhere")
	t.Setenv("HOME", "/nowhere")
	newBench(t)
}

func TestAPipelineWithoutGitSaysSo(t *testing.T) {
	_, err := Create(t.Context(), Options{
		Dir: t.TempDir(), Hosts: []string{"a"}, Restart: func(string, map[string]string) {},
		Getenv: func(string) string { return "relative:" + t.TempDir() },
	})
	if err == nil || !strings.Contains(err.Error(), "install git") {
		t.Errorf("without git: %v", err)
	}
}

func TestEnvFiles(t *testing.T) {
	good := "# a comment\n\nA=1\nIC_DIRECTIVES=ic1.x.y ic1.z.w\nEMPTY=\nQ=\"kept as it is\" # this too\n"
	vars, err := ParseEnv(good)
	want := map[string]string{"A": "1", "IC_DIRECTIVES": "ic1.x.y ic1.z.w", "EMPTY": "", "Q": `"kept as it is" # this too`}
	if err != nil || fmt.Sprint(vars) != fmt.Sprint(want) {
		t.Errorf("read %q, %v; want %q", vars, err, want)
	}
	var many strings.Builder
	for i := range MaxEnvVars + 1 {
		fmt.Fprintf(&many, "A%d=1\n", i)
	}
	for name, text := range map[string]string{
		"no equals sign": "A\n", "a lower-case name": "a=1\n", "a name with a space": "A B=1\n", "no name": "=1\n",
		"a digit first": "1A=1\n", "an export": "export A=1\n", "a carriage return": "A=1\r\n", "an escape": "A=\x1b[2J\n",
		"a C1 control": "A=\u009b2J\n", "a NUL": "A=\x00\n", "a name twice": "A=1\nB=2\nA=3\n",
		"too long": "A=" + strings.Repeat("x", MaxEnvFile) + "\n", "too many": many.String(),
	} {
		if vars, err := ParseEnv(text); err == nil {
			t.Errorf("%s was read as %q", name, vars)
		}
	}
}
