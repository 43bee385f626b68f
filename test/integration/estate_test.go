//go:build integration && linux

package integration

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/drill/pipeline"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/degradedmode/ic/internal/policy/templates"
	"golang.org/x/crypto/ssh"
)

const (
	hosts = 5
	// sourceAge is when /freshz fails: much later than a healthy agent reads
	// everything again, which is every 30 s.
	sourceAge = "1m"
)

// estate is a small installation of real parts: etcd, five agents behind proxies,
// a bare git repository with a pipeline behind it, Prometheus, and a commander
// with a key.
type estate struct {
	t          *testing.T
	by         *seat
	flags      *flagservice.Service
	agents     []*agent
	pipeline   *pipeline.Pipeline
	prometheus *exec.Cmd
	metrics    string // URL of Prometheus
	inv        fleet.Inventory
}

func newEstate(t *testing.T) *estate {
	t.Helper()
	dir := t.TempDir()
	e := &estate{t: t, by: &seat{t: t, program: build(t, "ic"), state: filepath.Join(dir, "commander"), env: environment(dir)}}
	var err error
	if e.flags, err = flagservice.Start(t.Context(), filepath.Join(dir, "etcd")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.flags.Kill)
	e.placeAgents(dir)
	e.openPipeline(dir)
	e.signPolicy(dir)
	for _, a := range e.agents {
		if err := a.start(""); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// placeAgents opens the proxies: the policy names where reports are before any
// host runs.
func (e *estate) placeAgents(dir string) {
	program := build(e.t, "ic-agent")
	for n := range hosts {
		a := &agent{t: e.t, name: fmt.Sprintf("checkout-%02d", n+1), program: program}
		a.state = filepath.Join(dir, a.name)
		a.flags, a.door = e.proxy(e.flags.Addr()), e.proxy(nowhere)
		e.agents = append(e.agents, a)
		e.inv.Hosts = append(e.inv.Hosts, fleet.Host{Name: a.name, Services: []string{templates.Checkout}, ReportURL: "http://" + a.door.Addr() + "/report"})
		e.t.Cleanup(func() { a.end(syscall.SIGKILL) })
	}
}

func (e *estate) proxy(target string) *proxy.Proxy {
	e.t.Helper()
	p, err := proxy.Listen(target)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { p.Close() })
	return p
}

// openPipeline deploys what is pushed: two hosts at a time get another process
// with the new environment.
func (e *estate) openPipeline(dir string) {
	e.t.Helper()
	names := make([]string, hosts)
	byName := map[string]*agent{}
	for i, a := range e.agents {
		names[i], byName[a.name] = a.name, a
	}
	var err error
	e.pipeline, err = pipeline.Create(e.t.Context(), pipeline.Options{
		Dir: filepath.Join(dir, "deploy"), Hosts: names, Batch: 2, Pause: time.Second, Getenv: os.Getenv, Now: time.Now(),
		Restart: func(host string, env map[string]string) {
			byName[host].end(syscall.SIGTERM)
			if err := byName[host].start(env[hostrun.EnvName]); err != nil {
				e.t.Error(err)
			}
		},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-tick.C:
				if err := e.pipeline.Advance(now); err != nil {
					e.t.Error(err)
					return
				}
			}
		}
	}()
	e.t.Cleanup(func() { close(stop); <-stopped })
}

// signPolicy writes the example policy as five people sign it for production, and
// tells agents and commander where it is.
func (e *estate) signPolicy(dir string) {
	e.t.Helper()
	p := policytest.Params()
	p.Expires = time.Now().AddDate(1, 0, 0)
	p.Pace = templates.TestPace()
	p.Git = map[string]string{"repo": e.pipeline.Repo(), "branch": pipeline.Branch, "path": pipeline.EnvFile}
	p.Queries = map[string]string{
		templates.CheckoutP99:    `vector(0.2)`,
		templates.CheckoutErrors: `vector(0)`,
		templates.CPU:            `vector(30)`,
		templates.PaymentRiskUp:  `avg(up{job="agents"})`,
	}
	for _, h := range e.inv.Hosts {
		p.Hosts = append(p.Hosts, policy.InventoryHost{Host: h.Name, Services: h.Services, ReportURL: h.ReportURL})
	}
	folder := filepath.Join(dir, "policy")
	opts := policytest.Write(e.t, folder, p)
	for _, a := range e.agents {
		a.args = []string{
			"-fleet", policytest.Fleet, "-host", a.name, "-services", templates.Checkout, "-root-sha256", opts.RootSHA256, "-policy", folder,
			"-state", a.state, "-etcd", "http://" + a.flags.Addr(), "-listen", "127.0.0.1:0", "-max-age", sourceAge,
		}
	}
	e.startPrometheus(dir)
	key, err := ssh.MarshalPrivateKey(policytest.PrivateKey(templates.Ines), "")
	if err != nil {
		e.t.Fatal(err)
	}
	if err := os.MkdirAll(e.by.state, 0o700); err != nil {
		e.t.Fatal(err)
	}
	writeFile(e.t, filepath.Join(e.by.state, "key"), string(pem.EncodeToMemory(key)))
	writeFile(e.t, filepath.Join(e.by.state, "config.yaml"), fmt.Sprintf("fleet: %s\nroot_sha256: %s\npolicy: %s\nperson: %s\nkey: key\netcd: %s\nprometheus: %s\n",
		policytest.Fleet, opts.RootSHA256, folder, templates.Ines, e.flags.Endpoint(), e.metrics))
}

// startPrometheus starts Debian's Prometheus, which scrapes the agents through
// their doors.
func (e *estate) startPrometheus(dir string) {
	e.t.Helper()
	targets := make([]string, hosts)
	for i, a := range e.agents {
		targets[i] = a.door.Addr()
	}
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(e.t, config, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n"+
		"- job_name: agents\n  static_configs: [{targets: ['"+strings.Join(targets, "', '")+"']}]\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	e.metrics = "http://" + l.Addr().String()
	l.Close()
	said := &transcript{}
	e.prometheus = exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+l.Addr().String(), "--log.level=warn")
	e.prometheus.Env, e.prometheus.Dir = environment(dir), dir
	e.prometheus.Stdout, e.prometheus.Stderr = said, said
	if err := e.prometheus.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(e.killPrometheus)
	client := http.Client{Timeout: time.Second}
	until(e.t, "Prometheus is ready", func() bool {
		answer, err := client.Get(e.metrics + "/-/ready")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

func (e *estate) killPrometheus() {
	if e.prometheus.ProcessState == nil {
		_ = e.prometheus.Process.Kill()
		_ = e.prometheus.Wait()
	}
}

// status is what the commander's console knows.
func (e *estate) status() (s incident.Snapshot) {
	e.t.Helper()
	e.by.must(done, words("status", "--json")).read(e.t, &s)
	return s
}

// views are the hosts by their own reports.
func (e *estate) views() []model.HostView {
	e.t.Helper()
	return reports(e.t, e.inv)
}
