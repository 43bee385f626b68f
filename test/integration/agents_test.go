//go:build integration && linux

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
)

// nowhere is where a proxy leads before its target runs.
const nowhere = "127.0.0.1:1"

// agent is one host: an ic-agent process with a state folder of its own. Its way
// to the flag service and its door, by which console and Prometheus reach it, are
// TCP proxies: they stay where they are when the process is another.
type agent struct {
	t       *testing.T
	name    string
	program string
	args    []string
	state   string
	flags   *proxy.Proxy
	door    *proxy.Proxy

	mu   sync.Mutex // the pipeline restarts, and the test looks
	cmd  *exec.Cmd
	url  string
	said *transcript
}

// transcript is what a process has said so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var answersOn = regexp.MustCompile(`answers on (http://\S+)`)

// start runs the process with a value of IC_DIRECTIVES, and returns when it
// answers.
func (a *agent) start(directives string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cmd, a.said = exec.Command(a.program, a.args...), &transcript{}
	a.cmd.Env = environment(a.state, hostrun.EnvName+"="+directives)
	pipe, err := a.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := a.cmd.Start(); err != nil {
		return err
	}
	answers := make(chan string, 1)
	said := a.said
	go func() {
		defer close(answers)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			fmt.Fprintln(said, lines.Text())
			if found := answersOn.FindStringSubmatch(lines.Text()); found != nil {
				answers <- found[1]
			}
		}
	}()
	select {
	case a.url = <-answers:
	case <-time.After(patience):
	}
	at, err := url.Parse(a.url)
	if err != nil || at.Host == "" {
		return fmt.Errorf("agent %s does not say where it answers: %s", a.name, said)
	}
	a.door.SetTarget(at.Host)
	return nil
}

// end ends the process in the way of a signal.
func (a *agent) end(how syscall.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cmd == nil {
		return
	}
	_ = a.cmd.Process.Signal(how) // it may have ended by itself; then Wait says so
	_ = a.cmd.Wait()
	a.cmd = nil
}

// at is where the process itself answers.
func (a *agent) at() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.url
}

// words are what the process has said.
func (a *agent) words() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said.String()
}

// read reads one of its answers.
func (a *agent) read(path string, into any) {
	a.t.Helper()
	client := http.Client{Timeout: patience}
	answer, err := client.Get(a.at() + path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		a.t.Fatalf("%s%s: %v", a.name, path, err)
	}
}

func (a *agent) report() (r model.Report) {
	a.t.Helper()
	a.read("/report", &r)
	return r
}

// tier is the one in force for checkout.
func (a *agent) tier() int {
	a.t.Helper()
	var s hostrun.State
	a.read("/v1/state", &s)
	return s.Services["checkout"].Tier
}

// allow asks as a service does whether an order may pass.
func (a *agent) allow(amount string) hostrun.Verdict {
	a.t.Helper()
	ask := fmt.Sprintf(`{"control":"payment-risk","service":"checkout","amount":"%s USD"}`, amount)
	client := http.Client{Timeout: patience}
	answer, err := client.Post(a.at()+"/v1/allow", "application/json", strings.NewReader(ask))
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	var v hostrun.Verdict
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		a.t.Fatal(err)
	}
	return v
}

// flip changes one bit in the middle of what the host has written last. It must
// not run.
func (a *agent) flip() {
	a.t.Helper()
	files, err := filepath.Glob(filepath.Join(a.state, "state.??????"))
	if err != nil || len(files) == 0 {
		a.t.Fatalf("the state folder of %s holds %v (%v)", a.name, files, err)
	}
	newest := slices.Max(files)
	raw := []byte(readFile(a.t, newest))
	raw[len(raw)/2] ^= 1
	writeFile(a.t, newest, string(raw))
}

// memory is what the process keeps resident, in bytes.
func (a *agent) memory() (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("no VmRSS in the status of the process")
	}
	kib, err := strconv.Atoi(string(found[1]))
	return kib << 10, err
}
