//go:build integration && linux

package integration

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"
)

// maxResident is what an agent may keep in memory, in bytes.
const maxResident = 40 << 20

// night is what the chapters of the test hand on to each other.
type night struct {
	*estate
	bypass model.Directive
	shed   string // id
	cut    []*agent
	notes  []string
}

func TestRealParts(t *testing.T) {
	t.Parallel() // it mostly waits
	need(t, "prometheus", "git", "curl")
	n := &night{}
	chapters(t, []chapter{
		{"everything runs", func() { n.estate = newEstate(t); n.ready() }},
		{"a client in another language: closed", func() { n.asks("freshz 200", "49.99 no closed", "50.00 no closed", "in force 0", "metrics 0") }},
		{"2 a right is used", n.usesARight},
		{"a client in another language: open", func() { n.asks("freshz 200", "49.99 yes", "50.00 no over-amount", "in force 1", "metrics 1") }},
		{"3 two hosts are cut off", n.losesTwoHosts},
		{"3 Prometheus sees the same", n.prometheusSeesTheSame},
		{"4 glass is broken", n.breaksGlass},
		{"5 Prometheus dies", n.losesPrometheus},
		{"6 console and etcd die, a disk lies", n.losesTheRest},
		{"6 the bypass ends by itself", n.endsByItself},
		{"memory", n.staysSmall},
		{"6 nothing brings it back", n.staysEnded},
		{"a client in another language: ended", func() { n.asks("freshz 503", "49.99 no closed", "50.00 no closed", "in force 2", "metrics 2") }},
		{"8 the log proves it", n.provesIt},
	})
}

// ready waits until every part sees every other.
func (n *night) ready() {
	until(n.t, "every signal has a value and every host reports", func() bool {
		s := n.status()
		for _, signal := range s.Signals {
			if signal.Reading.State != model.ReadingValue {
				return false
			}
		}
		return len(s.Signals) == 4 && s.Skew.Effective == hosts && s.Carriers[0].Connected
	})
	if s := n.status(); s.Mode != model.Live || s.Rehearsal || s.World.Incident.ID != "" {
		n.t.Fatalf("mode %s, incident %q", s.Mode, s.World.Incident.ID)
	}
}

// run gives an order and reads what came of it.
func (n *night) run(code int, args ...string) (r incident.Result) {
	n.t.Helper()
	n.by.must(code, append(args, "--yes", "--json")).read(n.t, &r)
	return r
}

// reached holds an outcome against what it should be.
func (n *night) reached(r incident.Result, state incident.State, done int) {
	n.t.Helper()
	if r.State != state || r.Done != done || r.Total != hosts {
		n.t.Fatalf("%s, %d of %d; want %s, %d of %d: %+v", r.State, r.Done, r.Total, state, done, hosts, r)
	}
}

// usesARight opens the bypass on every host: 49.99 passes, 50.00 does not.
func (n *night) usesARight() {
	for _, a := range n.agents {
		if v := a.allow("1.00"); v.Allowed || v.Reason != engine.CodeClosed {
			n.t.Errorf("before anything is open %s says %+v", a.name, v)
		}
	}
	n.reached(n.run(done, "do", "risk-bypass-small-orders", "--reason", "payment-risk answers nobody"), incident.Effective, hosts)
	for _, a := range n.agents {
		if v := a.allow("49.99"); !v.Allowed {
			n.t.Errorf("%s lets 49.99 not pass: %s", a.name, v.Reason)
		}
		if v := a.allow("50.00"); v.Allowed || v.Reason != engine.CodeOverAmount {
			n.t.Errorf("%s says to 50.00: %+v", a.name, v)
		}
	}
	s := n.status()
	if len(s.Live) != 1 || s.Live[0].Issued.Directive.Kind != model.Bypass {
		n.t.Fatalf("in force: %+v", s.Live)
	}
	n.bypass = s.Live[0].Issued.Directive
	// One order of 49.99 on each host, told by the hosts.
	if used := s.Live[0].Used["USD"]; used.Count != hosts || used.Total.Minor != hosts*49_99 {
		n.t.Errorf("used: %+v", used)
	}
}

// losesTwoHosts cuts two hosts off from the flag service, and sheds.
func (n *night) losesTwoHosts() {
	n.cut = []*agent{n.agents[1], n.agents[3]}
	n.cutOff()
	n.reached(n.run(unconfirmed, "shed", "2", "--reason", "checkout struggles"), incident.Partial, hosts-2)
	s := n.status()
	for _, l := range s.Live {
		if d := l.Issued.Directive; d.Kind == model.Shed {
			n.shed = d.ID
		}
	}
	var named []string
	for _, h := range s.World.Hosts {
		if len(h.Lacks) == 0 {
			continue
		}
		named = append(named, h.Host)
		if !slices.Equal(h.Lacks, []string{n.shed}) || h.Report == nil || len(h.Report.Sources) == 0 || h.Via != fleet.ViaDirect {
			n.t.Errorf("%s lacks %v, want %s: %+v", h.Host, h.Lacks, n.shed, h)
		}
	}
	want := []string{n.cut[0].name, n.cut[1].name}
	if !slices.Equal(named, want) || !slices.Equal(lackers(n.views(), n.shed), want) {
		n.t.Fatalf("ic names %v, by their reports %v lack it; %v were cut off", named, lackers(n.views(), n.shed), want)
	}
	n.by.must(done, words("status"), want[0], want[1], n.shed[len(n.shed)-6:], "3 of 5 hosts")
	for _, a := range n.agents {
		if tier := a.tier(); (tier == 2) == slices.Contains(want, a.name) {
			n.t.Errorf("%s is at tier %d", a.name, tier)
		}
	}
}

func (n *night) cutOff() {
	n.t.Helper()
	for _, a := range n.cut {
		if err := a.flags.Cut(proxy.Blackhole); err != nil {
			n.t.Fatal(err)
		}
	}
}

// prometheusSeesTheSame compares three ways to the same skew: the reports, the
// scraped series as anybody may query them, and what ic makes of these.
func (n *night) prometheusSeesTheSame() {
	client, err := promapi.NewClient(promapi.Config{Address: n.metrics})
	if err != nil {
		n.t.Fatal(err)
	}
	api := promv1.NewAPI(client)
	issued := n.status().World.Issued
	truth := map[string][]string{} // ids by host that lacks them
	for _, v := range n.views() {
		for _, d := range issued {
			if !holds(&v, d.Directive.ID) {
				truth[v.Host] = append(truth[v.Host], d.Directive.ID)
			}
		}
	}
	if len(issued) != 2 || len(truth) != len(n.cut) {
		n.t.Fatalf("%d orders are out, and %v lack some", len(issued), truth)
	}
	var scraped, skew map[string][]string
	defer func() {
		n.t.Logf("by the reports %v lack something, by Prometheus %v, and ic makes of it %v", truth, scraped, skew)
	}()
	until(n.t, "Prometheus sees what the reports say", func() bool {
		scraped, skew = n.scraped(api, issued), n.skew(api, issued)
		return reflect.DeepEqual(scraped, truth) && reflect.DeepEqual(skew, truth)
	})
}

// scraped asks Prometheus itself which host lacks what.
func (n *night) scraped(api promv1.API, issued []model.Issued) map[string][]string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	value, _, _, err := api.Query(ctx, fleet.MetricLive, time.Time{})
	if err != nil {
		n.t.Fatal(err)
	}
	held := map[string]bool{}
	for _, sample := range value.(prom.Vector) {
		held[string(sample.Metric["host"]+" "+sample.Metric["id"])] = true
	}
	lacks := map[string][]string{}
	for _, h := range n.inv.Hosts {
		for _, d := range issued {
			if !held[h.Name+" "+d.Directive.ID] {
				lacks[h.Name] = append(lacks[h.Name], d.Directive.ID)
			}
		}
	}
	return lacks
}

// skew is what ic makes of what Prometheus has scraped.
func (n *night) skew(api promv1.API, issued []model.Issued) map[string][]string {
	n.t.Helper()
	views, err := fleet.FromPrometheus(n.t.Context(), api, n.inv, fleet.Options{Fleet: policytest.Fleet, Now: time.Now, Timeout: patience})
	if err != nil {
		n.t.Fatal(err)
	}
	lacks := map[string][]string{}
	for _, h := range fleet.Skew(issued, views, 0, time.Now()).Hosts {
		if h.State != fleet.HostEffective {
			lacks[h.Host] = append(lacks[h.Host], h.Lacks...)
		}
	}
	return lacks
}

// breaksGlass carries both orders through git and the pipeline: the processes are
// others afterwards, and the reports count.
func (n *night) breaksGlass() {
	var plan incident.BreakPlan
	n.by.must(done, words("break", "git", "--plan", "--json")).read(n.t, &plan)
	if plan.Restarts != hosts || plan.Targets != hosts || plan.LastKnownGood != "yes" || len(plan.IDs) != 2 {
		n.t.Fatalf("the plan: %+v", plan)
	}
	n.reached(n.run(done, "break", "git"), incident.Effective, hosts)
	// A host that had both by the flag service counts before the pipeline comes to it.
	until(n.t, "every host has been restarted with both orders, and holds them", func() bool {
		return all(n.t, n.inv, func(v *model.HostView) bool {
			return holds(v, n.shed) && holds(v, n.bypass.ID) && carried(v, n.shed) && carried(v, n.bypass.ID)
		})
	})
	if s := n.status(); s.Mode != model.BreakGlass || len(s.Overrides) != 1 {
		n.t.Errorf("mode %s, overrides %+v", s.Mode, s.Overrides)
	}
}

// losesPrometheus takes the signals away: whoever is blind may shed, and may not
// recover.
func (n *night) losesPrometheus() {
	for _, a := range n.cut {
		if err := a.flags.Heal(); err != nil {
			n.t.Fatal(err)
		}
	}
	n.killPrometheus()
	connected(n.t, n.inv)
	n.reached(n.run(done, "shed", "3", "--reason", "nobody sees anything"), incident.Effective, hosts)
	n.by.must(needs, words("recover", "--yes"), "checkout-p99")
}

// losesTheRest kills the console and the flag service, cuts hosts off, and flips a
// bit in the memory of one that starts again offline.
func (n *night) losesTheRest() {
	n.cutOff()
	console := exec.Command(n.by.program, "--state", n.by.state, "watch")
	console.Env = n.by.env
	out, err := console.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := console.Start(); err != nil {
		n.t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "checkout T3") {
		n.t.Errorf("the console says %q (%v)", line, err)
	}
	_ = console.Process.Kill()
	_ = console.Wait()
	n.flags.Kill()
	left := time.Until(n.bypass.NotAfter)
	if left < 5*time.Second {
		n.t.Fatalf("the bypass ends in %s: too late to prove anything", left)
	}
	n.t.Logf("the bypass ends %s after console and etcd were killed", left.Round(time.Second))

	liar := n.agents[2]
	liar.end(syscall.SIGKILL)
	liar.flip()
	if err := liar.start(n.pipeline.EnvOf(liar.name)[hostrun.EnvName]); err != nil {
		n.t.Fatal(err)
	}
	if r := liar.report(); r.State != string(engine.StateRecovered) || !strings.Contains(liar.words(), "state folder: ") {
		n.t.Errorf("a host whose memory was damaged reports %q and says: %s", r.State, liar.words())
	}
	if tier := liar.tier(); tier < 2 {
		n.t.Errorf("a host whose memory was damaged is at tier %d", tier)
	}
}

// endsByItself follows the end on every host, by report and by question.
func (n *night) endsByItself() {
	for _, a := range n.agents {
		if v := a.allow("49.99"); !v.Allowed {
			n.t.Errorf("%s lets 49.99 not pass before the end: %s", a.name, v.Reason)
		}
	}
	endsEverywhere(n.t, n.inv, n.bypass.ID, n.bypass.NotAfter)
	n.closed()
}

// closed asks every host.
func (n *night) closed() {
	n.t.Helper()
	for _, a := range n.agents {
		if v := a.allow("1.00"); v.Allowed || v.Reason != engine.CodeClosed {
			n.t.Errorf("after the end %s says %+v", a.name, v)
		}
	}
}

// staysEnded restarts hosts whose environment still carries the bypass: what was
// shed they know from their disk, and what has ended stays ended.
func (n *night) staysEnded() {
	for _, a := range n.agents {
		carried := n.pipeline.EnvOf(a.name)[hostrun.EnvName]
		if len(strings.Fields(carried)) != 2 {
			n.t.Fatalf("the environment of %s carries %q", a.name, carried)
		}
		a.end(syscall.SIGKILL)
		if err := a.start(carried); err != nil {
			n.t.Fatal(err)
		}
	}
	n.closed()
	for _, v := range n.views() {
		if holds(&v, n.bypass.ID) || !holds(&v, n.shed) {
			n.t.Errorf("%s holds %+v", v.Host, v.Report.Live)
		}
	}
	for i, a := range n.agents {
		if tier := a.tier(); tier != 3 && i != 2 { // the third has lost a part of its memory
			n.t.Errorf("%s is at tier %d with the flag service dead, want the 3 that it has on disk", a.name, tier)
		}
	}
}

// staysSmall looks at the memory of every agent.
func (n *night) staysSmall() {
	for _, a := range n.agents {
		resident, err := a.memory()
		if err != nil {
			n.t.Fatal(err)
		}
		n.notes = append(n.notes, fmt.Sprintf("%.1f", float64(resident)/(1<<20)))
		if resident > maxResident {
			n.t.Errorf("%s keeps %d bytes in memory, at most %d", a.name, resident, maxResident)
		}
	}
	n.t.Logf("resident memory of the agents, MiB: %s", strings.Join(n.notes, " "))
}

// provesIt verifies the log, which five commands and a console have written, with
// the heads that hosts kept.
func (n *night) provesIt() {
	n.by.must(done, words("audit", "verify"), "the log is whole", "heads from hosts were held against it")
}

// asks runs a client that is a shell script against the first agent.
func (n *night) asks(says ...string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", filepath.Join("testdata", "client.sh"), n.agents[0].at())
	cmd.Env = n.by.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("client.sh: %v\n%s", err, out)
	}
	for _, line := range append(says, "healthz 200", "a form 415", "another verb 405", "host "+n.agents[0].name) {
		if !slices.Contains(strings.Split(string(out), "\n"), line) {
			n.t.Errorf("the script does not say %q:\n%s", line, out)
		}
	}
}
