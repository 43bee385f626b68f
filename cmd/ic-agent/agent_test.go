package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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

const patience = 30 * time.Second

// machine is a computer with an agent on it: the program, its policy, its state
// folder and a file that a deploy pipeline writes.
type machine struct {
	t       *testing.T
	program string
	bundle  *policy.Bundle
	policy  []string // what it may believe
	args    []string
	state   string
	file    string

	cmd  *exec.Cmd
	url  string
	said *transcript
}

// buildDir is where the agent is built once for all tests, by the first that wants
// it.
var buildDir string

var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "ic-agent")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("", "ic-agent-test"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// transcript is what a process says, for whoever reads meanwhile.
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

func newMachine(t *testing.T) *machine {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, program: path, state: filepath.Join(t.TempDir(), "state"), file: filepath.Join(t.TempDir(), "ic.directives")}
	p := policytest.Params()
	p.Expires = time.Now().UTC().AddDate(1, 0, 0).Truncate(24 * time.Hour)
	dir := t.TempDir()
	opts := policytest.Write(t, dir, p)
	if m.bundle, _, err = policy.LoadDir(dir, opts); err != nil {
		t.Fatal(err)
	}
	m.policy = []string{
		"-fleet", policytest.Fleet, "-host", "checkout-01", "-services", "checkout", "-root-sha256", opts.RootSHA256, "-policy", dir,
	}
	m.args = append(slices.Clone(m.policy),
		"-state", m.state, "-listen", "127.0.0.1:0", "-file", m.file,
		"-etcd", "http://127.0.0.1:1") // where nobody answers
	t.Cleanup(m.kill)
	return m
}

var answersOn = regexp.MustCompile(`answers on (http://\S+)`)

// start runs the agent and waits until it says where it answers.
func (m *machine) start() {
	m.t.Helper()
	m.cmd, m.said = exec.Command(m.program, m.args...), &transcript{}
	m.cmd.Env = []string{"HOME=" + m.t.TempDir()}
	m.cmd.Stderr = m.said
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.url = m.answers()
}

// answers waits for the address on which an agent says that it answers.
func (m *machine) answers() string {
	m.t.Helper()
	var found []string
	m.until("the agent says where it answers", func() bool {
		found = answersOn.FindStringSubmatch(m.said.String())
		return found != nil
	})
	return found[1]
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
	m.until("what the file brings is in force", ok)
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
