package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"golang.org/x/sys/unix"
)

// exec is the agent with a program, which is a shell script.
func (m *machine) exec(environ, flags []string, script string) *exec.Cmd {
	m.t.Helper()
	args := slices.Concat([]string{"exec"}, m.policy, []string{"-volatile", "true"}, flags, []string{"--", "sh", "-euc", script})
	cmd := exec.Command(m.program, args...)
	cmd.Env = append([]string{"HOME=" + m.t.TempDir(), "PATH=" + os.Getenv("PATH")}, environ...)
	return cmd
}

func TestAProgramRunsUnderTheDirectivesOfItsEnvironment(t *testing.T) {
	m := newMachine(t)
	shed := m.token(model.Directive{Kind: model.Shed, Scope: "*", Tier: 2, Right: "shed"})
	forged := shed[:len(shed)-8] + "AAAAAAAA"
	const tell = `echo "$IC_TIER_CHECKOUT $IC_OFF_REVIEWS $IC_OFF_SIGN_IN $IC_CONDITION ${IC_AGENT%:*}"; env | grep -c '^IC_TIER_' `
	for name, c := range map[string]struct{ directives, want string }{
		"a shed":         {shed, "2 1 0 volatile http://127.0.0.1\n1\n"},
		"a forged one":   {forged, "0 0 0 volatile http://127.0.0.1\n1\n"},
		"none":           {"", "0 0 0 volatile http://127.0.0.1\n1\n"},
		"a forged tier":  {shed + "\nIC_TIER_EDGE=4", "2 1 0 volatile http://127.0.0.1\n1\n"},
		"noise and good": {"noise " + shed, "2 1 0 volatile http://127.0.0.1\n1\n"},
	} {
		environ := append(strings.Split("IC_DIRECTIVES="+c.directives, "\n"), "IC_TIER_CHECKOUT=0", "IC_OFF_REVIEWS=0")
		var errs bytes.Buffer
		cmd := m.exec(environ, nil, tell)
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %v, the program says %q, want %q; the agent %s", name, err, out, c.want, &errs)
		}
	}
}

func TestAProgramFindsItsAgentAndItsFiles(t *testing.T) {
	m := newMachine(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("this test asks as a service does, with curl: install curl")
	}
	dir := t.TempDir()
	envFile, stateFile, socket := filepath.Join(dir, "ic.env"), filepath.Join(dir, "state.json"), filepath.Join(dir, "agent.sock")
	shed := m.token(model.Directive{Kind: model.Shed, Scope: "*", Tier: 3, Right: "shed"})
	if err := os.WriteFile(m.file, []byte(shed+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := m.exec(nil, []string{"-listen", "127.0.0.1:0,unix:" + socket, "-env-file", envFile, "-state-file", stateFile, "-file", m.file}, `
		echo "$IC_TIER_CHECKOUT" # of the watched file, which was read before this began
		echo "$IC_AGENT"
		curl --silent --fail --max-time 10 --unix-socket "${IC_AGENT#unix:}" --request POST http://agent/ofrep/v1/evaluate/flags/tier.checkout
		. '`+envFile+`'; echo "$IC_TIER_CHECKOUT"
		test -s '`+stateFile+`'`)
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"\n3\nunix:" + socket + "\n", `"key":"tier.checkout","value":3`, "}\n3\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %q is not in\n%s", err, want, out)
		}
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestTheExitCodeIsTheProgramsOwn(t *testing.T) {
	m := newMachine(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command []string
		code    int
	}{
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "exit 1"}, 1},
		{[]string{"sh", "-c", "exit 77"}, 77},
		{[]string{"sh", "-c", "kill -TERM $$"}, exitSignal + int(syscall.SIGTERM)},
		{[]string{"sh", "-c", "kill -KILL $$"}, exitSignal + int(syscall.SIGKILL)},
		{[]string{"no-such-program"}, exitNotFound},
		{[]string{filepath.Join(t.TempDir(), "absent")}, exitNotFound},
		{[]string{plain}, exitNotRun},
	} {
		cmd := exec.Command(m.program, slices.Concat([]string{"exec"}, m.policy, []string{"-volatile", "true", "--"}, c.command)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.command, code, c.code, out)
		}
	}
}

// running starts a program that says "ready", and waits for it.
func running(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // what is read then ends
	t.Cleanup(func() { limit.Stop(); _ = cmd.Process.Kill() })
	lines := bufio.NewReader(pipe)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("the program says %q, %v", line, err)
	}
	return lines
}

func TestSignalsAreTheProgramsToAnswer(t *testing.T) {
	m := newMachine(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		name := strings.TrimPrefix(unix.SignalName(s), "SIG")
		// Whoever runs the tests may ignore it (nohup does), and then exec does too. What
		// a parent takes itself is back to normal in its children.
		taken := make(chan os.Signal, 1)
		signal.Notify(taken, s)
		defer signal.Stop(taken)
		cmd := m.exec(nil, nil, fmt.Sprintf(`trap 'echo got %s; exit 42' %s; echo ready; while :; do sleep 0.02; done`, name, name))
		lines := running(t, cmd)
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 42 || string(rest) != "got "+name+"\n" {
			t.Errorf("%s: exit code %d, the program says %q", name, code, rest)
		}
	}
}

func TestAProgramStartsAlsoWhenItsAgentCannot(t *testing.T) {
	m := newMachine(t)
	taken := m.exec(nil, []string{"-listen", "127.0.0.1:0"}, `echo ready "$IC_AGENT"; read line || true`)
	in, err := taken.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.said = &transcript{}
	taken.Stderr = m.said
	running(t, taken)
	at := strings.TrimPrefix(m.answers(), "http://")
	shed := m.token(model.Directive{Kind: model.Shed, Scope: "*", Tier: 2, Right: "shed"})
	for name, flags := range map[string][]string{
		"its address is taken":      {"-listen", at},
		"its policy cannot be read": {"-policy", filepath.Join(t.TempDir(), "absent")},
		"its pin is another":        {"-root-sha256", strings.Repeat("0", 64)},
	} {
		cmd := m.exec([]string{"IC_DIRECTIVES=" + shed, "IC_TIER_CHECKOUT=1", "IC_AGENT=http://127.0.0.1:1"}, flags, `echo "tier ${IC_TIER_CHECKOUT-none}, $IC_CONDITION, at ${IC_AGENT-nowhere}"`)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || string(out) != "tier none, no-agent, at nowhere\n" || !strings.Contains(errs.String(), "runs without directives") {
			t.Errorf("%s: %v, %q; said %s", name, err, out, &errs)
		}
	}
	in.Close()
	if err := taken.Wait(); err != nil {
		t.Error(err)
	}
}

func TestAnAgentBesideAProgramGoesOnToLearn(t *testing.T) {
	m := newMachine(t)
	cmd := m.exec(nil, []string{"-listen", "127.0.0.1:0", "-file", m.file}, `echo ready; read line || true`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.said = &transcript{}
	cmd.Stderr = m.said
	running(t, cmd)
	m.url = m.answers()
	m.deliver(func() bool { return m.tier() == 2 }, m.token(model.Directive{Kind: model.Shed, Scope: "*", Tier: 2, Right: "shed"}))
	if code := m.get("/freshz", nil); code != http.StatusOK {
		t.Errorf("fresh: %d", code)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// until waits for something to become true.
func (m *machine) until(what string, ok func() bool) {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			m.t.Fatalf("in %s it did not happen that %s", patience, what)
		}
	}
}
