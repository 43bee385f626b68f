package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/oklog/ulid/v2"
)

const (
	patience = 30 * time.Second
	maxRSS   = 40 << 10 // KiB
)

// machine is a computer with an agent on it: the program, its policy, its state
// folder and a file that a deploy pipeline writes.
type machine struct {
	t       *testing.T
	program string
	bundle  *policy.Bundle
	args    []string
	state   string
	file    string

	cmd  *exec.Cmd
	url  string
	said *bytes.Buffer
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, program: filepath.Join(t.TempDir(), "ic-agent"), state: filepath.Join(t.TempDir(), "state"), file: filepath.Join(t.TempDir(), "ic.directives")}
	build := exec.Command("go", "build", "-o", m.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	p := policytest.Params()
	p.Expires = time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour)
	dir := t.TempDir()
	opts := policytest.Write(t, dir, p)
	var err error
	if m.bundle, _, err = policy.LoadDir(dir, opts); err != nil {
		t.Fatal(err)
	}
	m.args = []string{
		"-fleet", policytest.Fleet, "-host", "checkout-01", "-services", "checkout", "-root-sha256", opts.RootSHA256,
		"-policy", dir, "-state", m.state, "-listen", "127.0.0.1:0", "-file", m.file,
		"-etcd", "http://127.0.0.1:1", // where nobody answers
	}
	t.Cleanup(m.kill)
	return m
}

var answersOn = regexp.MustCompile(`answers on (http://\S+)`)

// start runs the agent and waits until it says where it answers.
func (m *machine) start() {
	m.t.Helper()
	m.cmd = exec.Command(m.program, m.args...)
	m.cmd.Env = []string{"HOME=" + m.t.TempDir()}
	pipe, err := m.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.said = &bytes.Buffer{}
	url := make(chan string, 1)
	go func() {
		defer close(url)
		lines := bufio.NewScanner(io.TeeReader(pipe, m.said))
		for lines.Scan() {
			if found := answersOn.FindStringSubmatch(lines.Text()); found != nil {
				url <- found[1]
			}
		}
	}()
	select {
	case m.url = <-url:
		if m.url == "" {
			m.t.Fatalf("the agent did not start: %s", m.said)
		}
	case <-time.After(patience):
		m.t.Fatal("the agent does not say where it answers")
	}
}

// kill is SIGKILL: nothing is put in order.
func (m *machine) kill() {
	if m.cmd != nil && m.cmd.ProcessState == nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
	}
}

func (m *machine) get(path string, into any) int {
	m.t.Helper()
	client := http.Client{Timeout: patience}
	answer, err := client.Get(m.url + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	if into != nil {
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			m.t.Fatalf("%s: %v", path, err)
		}
	}
	return answer.StatusCode
}

func (m *machine) tier() int {
	m.t.Helper()
	var state struct {
		Services map[string]struct{ Tier int }
	}
	m.get("/v1/state", &state)
	return state.Services["checkout"].Tier
}

func (m *machine) report() (r model.Report) {
	m.t.Helper()
	m.get("/report", &r)
	return r
}

func (m *machine) allow(amount string) (allowed bool, reason string) {
	m.t.Helper()
	ask := fmt.Sprintf(`{"control":"payment-risk","service":"checkout","amount":%q}`, amount)
	client := http.Client{Timeout: patience}
	answer, err := client.Post(m.url+"/v1/allow", "application/json", strings.NewReader(ask))
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	var v struct {
		Allowed bool
		Reason  string
	}
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		m.t.Fatal(err)
	}
	return v.Allowed, v.Reason
}

func (m *machine) token(d model.Directive) string {
	m.t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	d.ID, d.Fleet, d.Incident, d.IssuedAt, d.NotBefore = ulid.Make().String(), policytest.Fleet, "inc-1", now, now
	d.Policy, d.Log = m.bundle.Ref, model.LogHead{Origin: policytest.Fleet + "/inc-1/s1", Root: strings.Repeat("0", 64)}
	if d.Kind == model.Bypass {
		right, _, _ := m.bundle.Right(d.Right)
		b := right.Bypass
		d.Control, d.NotAfter = b.Control, now.Add(b.Lasts.Std())
		d.Caps = model.Caps{Under: b.Under, HostCount: b.HostCount, HostTotal: b.HostTotal, Total: b.Total}
	}
	payload, err := directive.Encode(d)
	if err != nil {
		m.t.Fatal(err)
	}
	sig, err := directive.Sign(policytest.Key(templates.Ines), rand.Reader, payload, directive.Production, policytest.Fleet)
	if err != nil {
		m.t.Fatal(err)
	}
	token, err := directive.Token(payload, sig)
	if err != nil {
		m.t.Fatal(err)
	}
	return token
}

// deliver writes the watched file as a pipeline does and waits for ok.
func (m *machine) deliver(ok func() bool, tokens ...string) {
	m.t.Helper()
	next := m.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(strings.Join(tokens, " ")+"\n"), 0o600), os.Rename(next, m.file)); err != nil {
		m.t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			m.t.Fatalf("what the file brings is not in force in %s: %+v", patience, m.report())
		}
	}
}

// stateFiles lists the generations, the newest last.
func (m *machine) stateFiles() []string {
	m.t.Helper()
	names, err := filepath.Glob(filepath.Join(m.state, "state.??????"))
	if err != nil || len(names) == 0 {
		m.t.Fatal(names, err)
	}
	slices.Sort(names)
	return names
}

func TestAnAgentKeepsWhatItKnowsThroughKillAndDamage(t *testing.T) {
	m := newMachine(t)
	m.start()
	if tier := m.tier(); tier != 0 {
		t.Errorf("a new host is at tier %d", tier)
	}
	shed := m.token(model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: 2, Right: "shed"})
	opening := m.token(model.Directive{Kind: model.Bypass, Scope: "checkout", Right: "risk-bypass-small-orders"})
	m.deliver(func() bool { return len(m.report().Live) == 2 }, shed, opening)
	if ok, reason := m.allow("49.99 USD"); !ok {
		t.Errorf("49.99 USD does not pass: %s", reason)
	}
	if ok, reason := m.allow("50.00 USD"); ok || reason != "over-amount" {
		t.Errorf("50.00 USD: %v %s", ok, reason)
	}
	if code := m.get("/freshz", nil); code != http.StatusServiceUnavailable {
		t.Errorf("a host without its flag service calls itself fresh: %d", code)
	}
	if code := m.get("/healthz", nil); code != http.StatusOK {
		t.Errorf("health is %d", code)
	}
	if runtime.GOOS == "linux" {
		rss := m.rss()
		t.Logf("resident memory: %d KiB", rss)
		if rss > maxRSS {
			t.Errorf("the agent takes %d KiB, at most %d", rss, maxRSS)
		}
	}
	known := m.report().Posture

	m.kill()
	if err := os.Remove(m.file); err != nil {
		t.Fatal(err)
	}
	restart := func(state string) {
		t.Helper()
		m.start()
		r := m.report()
		if r.Posture != known || m.tier() != 2 || r.State != state {
			t.Errorf("state %s, tier %d, live %v; said %s", r.State, m.tier(), r.Live, m.said)
		}
		if ok, reason := m.allow("1.00 USD"); !ok {
			t.Errorf("1.00 USD does not pass: %s", reason)
		}
		m.kill()
	}
	restart("ok")

	names := m.stateFiles()
	newest := names[len(names)-1]
	data, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(newest, data, 0o600); err != nil {
		t.Fatal(err)
	}
	restart("recovered")
	restart("ok")

	for _, name := range m.stateFiles() {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.start()
	if r := m.report(); r.State != "safe-defaults" || len(r.Live) != 0 || m.tier() != 0 {
		t.Errorf("with an empty memory: state %s, live %v", r.State, r.Live)
	}
	m.deliver(func() bool { return len(m.report().Live) == 2 }, shed, opening)
	if ok, reason := m.allow("1.00 USD"); ok || reason != "budget-spent" {
		t.Errorf("after a loss the budget is refilled: %v %s", ok, reason)
	}
}

// rss is the memory that the agent holds, in KiB.
func (m *machine) rss() int {
	m.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		m.t.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		m.t.Fatalf("no VmRSS in %s", status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		m.t.Fatal(err)
	}
	return kib
}

func TestAnAgentStopsInOrderAndGivesItsFolderFree(t *testing.T) {
	m := newMachine(t)
	m.start()
	second := exec.Command(m.program, m.args...)
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another process holds the state folder") {
		t.Errorf("a second agent on one folder: %v, %s", err, out)
	}
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("stopped with %v: %s", err, m.said)
	}
	m.start()
	if state := m.report().State; state != "ok" {
		t.Errorf("state %s", state)
	}
}
