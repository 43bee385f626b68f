//go:build integration

package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/controller"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"
)

// drill is a demo with a controller beside it, both of them programs.
type drill struct {
	t     *testing.T
	state string
	clock *worldclock.Clock
	info  *world.Info
	loop  *exec.Cmd

	mu    sync.Mutex
	lines []controller.Line
}

func newDrill(t *testing.T, flags ...string) *drill {
	t.Helper()
	d := &drill{t: t, state: t.TempDir()}
	d.ic(append([]string{"demo", "--no-console"}, flags...)...)
	t.Cleanup(func() { d.ic("demo", "stop") })
	var err error
	if d.info, err = world.ReadInfo(d.state); err != nil {
		t.Fatal(err)
	}
	if d.clock, err = worldclock.Fetch(t.Context(), http.DefaultClient, d.info.Control, time.Now); err != nil {
		t.Fatal(err)
	}
	d.loop = d.command("controller", "--json")
	out, err := d.loop.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.loop.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { d.read(bufio.NewScanner(out)); close(ended) }()
	t.Cleanup(func() {
		_ = d.loop.Process.Signal(syscall.SIGCONT)
		_ = d.loop.Process.Signal(os.Interrupt)
		<-ended
		if err := d.loop.Wait(); err != nil {
			t.Errorf("the controller ends with %v", err)
		}
	})
	d.until(30*time.Second, "the controller looks", func() bool { return len(d.seen()) > 0 })
	return d
}

func (d *drill) command(args ...string) *exec.Cmd {
	cmd := exec.Command("ic", args...)
	cmd.Env = append(os.Environ(), "IC_STATE_DIR="+d.state, "IC_PERSON="+templates.LadderController, "IC_KEY="+filepath.Join(d.state, "keys", templates.LadderController))
	return cmd
}

func (d *drill) ic(args ...string) {
	d.t.Helper()
	if out, err := d.command(args...).CombinedOutput(); err != nil {
		d.t.Fatalf("ic %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (d *drill) read(in *bufio.Scanner) {
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var l controller.Line
		if json.Unmarshal(in.Bytes(), &l) == nil {
			d.mu.Lock()
			d.lines = append(d.lines, l)
			d.mu.Unlock()
		}
	}
}

func (d *drill) seen() []controller.Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines
}

// until waits in real time.
func (d *drill) until(limit time.Duration, what string, ok func() bool) {
	d.t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.After(limit)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			lines := d.seen()
			d.t.Fatalf("not within %s: %s; the last of %d looks: %+v", limit, what, len(lines), lines[max(0, len(lines)-1):])
		}
	}
}

// shedding counts the hosts that report a directive in force.
func (d *drill) shedding() int {
	inv := fleet.Inventory{MaxAge: model.Duration(time.Hour)}
	b, err := os.ReadFile(filepath.Join(d.state, "policy", "backends.yaml"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- host: "); ok {
			inv.Hosts = append(inv.Hosts, fleet.Host{Name: name, ReportURL: d.info.Control + "/hosts/" + name + "/report"})
		}
	}
	n := 0
	for _, h := range fleet.Pull(d.t.Context(), inv, fleet.Options{Fleet: world.Fleet, Now: d.clock.At, Client: pooled()}) {
		if h.Report != nil && len(h.Report.Live) > 0 {
			n++
		}
	}
	return n
}

// From the moment at which a condition has held for its whole window until 99 % of
// the hosts obey it takes seconds, of which the wait for the next look is the larger
// part. The figures are printed; what fails is a ladder that takes a minute, which no
// other work on the machine explains.
func TestTheLadderIsThereInSeconds(t *testing.T) {
	const (
		limit  = 2.0 // percent of errors that call for tier 2
		window = time.Minute
		hosts  = 60
	)
	d := newDrill(t, "--speed", "1")
	client, err := api.NewClient(api.Config{Address: d.info.Prometheus})
	if err != nil {
		t.Fatal(err)
	}
	query := `100 * sum(rate(shop_requests_total{service="checkout",outcome=~"failed_dependency|rejected_capacity"}[30s])) / sum(rate(shop_requests_total{service="checkout"}[30s]))`
	failing := func() bool {
		v, _, _, err := promv1.NewAPI(client).Query(t.Context(), query, d.clock.At())
		vector, ok := v.(prom.Vector)
		return err == nil && ok && len(vector) == 1 && float64(vector[0].Value) > limit
	}
	d.ic("demo", "fault", "payment-risk-down")
	d.until(time.Minute, "checkout fails", failing)
	held := d.clock.At().Add(window)
	d.until(3*time.Minute, "tier 2 is signed", func() bool {
		if !failing() {
			held = d.clock.At().Add(window)
		}
		lines := d.seen()
		return lines[len(lines)-1].Move != nil || d.shedding() > 0
	})
	d.until(time.Minute, "99 % of the hosts obey", func() bool { return d.shedding()*100 >= 99*hosts })
	there := d.clock.At()
	var look controller.Line
	d.until(time.Minute, "the look is told", func() bool {
		for _, l := range d.seen() {
			if l.Move != nil {
				look = l
				return true
			}
		}
		return false
	})
	total, own := there.Sub(held), there.Sub(look.At)
	t.Logf("condition held to 99 %% of %d hosts: %s of the fleet's time; from the look on: %s; %s", hosts, total.Round(time.Millisecond), own.Round(time.Millisecond), look.Move.Title)
	if total > time.Minute || own > time.Minute/2 {
		t.Errorf("condition held to 99 %% of the hosts took %s, from the look on %s", total, own)
	}
}

// Ten minutes of SIGSTOP, in a demo whose clock runs twenty times as fast.
func TestAControllerThatWasStoppedReadsBeforeItActs(t *testing.T) {
	d := newDrill(t, "--speed", "20")
	d.until(30*time.Second, "a few looks", func() bool { return len(d.seen()) > 3 })
	if err := d.loop.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := len(d.seen())
	from := d.clock.At()
	d.ic("demo", "fault", "load-surge")
	d.until(time.Minute, "five minutes of surge", func() bool { return d.clock.At().Sub(from) > 5*time.Minute })
	d.ic("demo", "fault", "load-surge", "--clear")
	d.until(time.Minute, "ten minutes", func() bool { return d.clock.At().Sub(from) > 10*time.Minute })
	woke := d.clock.At()
	if err := d.loop.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	d.until(30*time.Second, "it looks again", func() bool { return len(d.seen()) > stopped+3 })
	gap := false
	for _, l := range d.seen()[stopped:] {
		gap = gap || strings.Contains(l.Gap, "nobody has looked for ")
		if l.Move != nil && l.Move.Error == "" && l.At.Before(woke) {
			t.Errorf("it acted on what it had read before: %+v", l)
		}
	}
	if !gap || d.shedding() > 0 {
		t.Errorf("noticed: %v, %d hosts shed after the surge was over", gap, d.shedding())
	}
}
