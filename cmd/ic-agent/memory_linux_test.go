package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

const (
	maxRSS     = 40 << 10 // KiB
	statements = 2000     // of half a year with ten incidents a month
	askers     = 100      // connections
	questions  = 20       // of each
)

// memory is what the agent holds or has held at most, by the name that Linux gives
// it, in KiB.
func (m *machine) memory(name string) int {
	m.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		m.t.Fatal(err)
	}
	found := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		m.t.Fatalf("no %s in %s", name, status)
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		m.t.Fatal(err)
	}
	return kib
}

// history puts a month of features that went off and came back into a flag
// service.
func (m *machine) history(service *flagservice.Service) {
	m.t.Helper()
	c, err := etcd.New(m.t.Context(), etcd.Options{
		Endpoints: []string{service.Endpoint()}, Fleet: policytest.Fleet, Now: time.Now, After: time.After, Rand: func() float64 { return 0.5 },
	})
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	put := func(d model.Directive) string {
		token := m.token(d)
		signed, err := directive.Verify(token, directive.Production, policytest.Fleet)
		if err != nil {
			m.t.Fatal(err)
		}
		if err := c.Put(m.t.Context(), signed.Directive.ID, token); err != nil {
			m.t.Fatal(err)
		}
		return signed.Directive.ID
	}
	for range statements / 2 {
		off := put(model.Directive{Kind: model.Off, Scope: "catalog", Feature: "reviews", Right: "feature-off"})
		put(model.Directive{Kind: model.End, Ends: model.Off, IDs: []string{off}, Scope: "catalog", Right: "feature-on"})
	}
}

// ask asks for all flags over a hundred connections at once.
func (m *machine) ask() {
	m.t.Helper()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: askers}}
	defer client.CloseIdleConnections()
	body := `{"context":{"targetingKey":"` + strings.Repeat("x", 2000) + `"}}`
	var wait sync.WaitGroup
	for range askers {
		wait.Go(func() {
			for range questions {
				answer, err := client.Post(m.url+"/ofrep/v1/evaluate/flags", "application/json", strings.NewReader(body))
				if err != nil {
					m.t.Error(err)
					return
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					m.t.Errorf("asked for all flags it answers %d", answer.StatusCode)
				}
			}
		})
	}
	wait.Wait()
}

func TestAnAgentUnderLoadStaysSmall(t *testing.T) {
	m := newMachine(t)
	service, err := flagservice.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Kill)
	m.history(service)
	m.args = append(m.args, "-etcd", service.Endpoint())
	measure := func(start string) {
		t.Helper()
		m.start()
		m.until("all of it is read", func() bool { return m.report().Sources[0].AgeS >= 0 })
		idle := m.memory("VmRSS")
		m.ask()
		loaded := m.memory("VmRSS")
		t.Logf("%s, resident memory with %d statements: %d KiB, after %d questions on %d connections %d KiB, at most %d KiB",
			start, statements, idle, askers*questions, askers, loaded, m.memory("VmHWM"))
		if max(idle, loaded) > maxRSS {
			t.Errorf("%s it takes more than %d KiB", start, maxRSS)
		}
	}
	measure("with an empty folder")
	m.kill()
	measure("started again")
}
