//go:build integration

package controller

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/ladder"
)

// alertmanager is Debian's, with one receiver that tells nobody.
type alertmanager struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
}

func newAlertmanager(t *testing.T) *alertmanager {
	t.Helper()
	if _, err := exec.LookPath("prometheus-alertmanager"); err != nil {
		if os.Getenv("IC_INTEGRATION") == "1" {
			t.Fatal("prometheus-alertmanager is not on PATH, and IC_INTEGRATION=1 wants it: install prometheus-alertmanager")
		}
		t.Skip("prometheus-alertmanager is not on PATH")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &alertmanager{t: t, dir: t.TempDir(), addr: l.Addr().String()}
	l.Close()
	if err := os.WriteFile(filepath.Join(a.dir, "config.yml"), []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

func (a *alertmanager) start() {
	a.t.Helper()
	a.cmd = exec.Command("prometheus-alertmanager", "--config.file="+filepath.Join(a.dir, "config.yml"), "--storage.path="+filepath.Join(a.dir, "data"),
		"--web.listen-address="+a.addr, "--cluster.listen-address=")
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.until("it is ready", func() bool {
		resp, err := http.Get("http://" + a.addr + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (a *alertmanager) kill() {
	if a.cmd != nil {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait() // it was killed
		a.cmd = nil
	}
}

func (a *alertmanager) until(what string, ok func() bool) {
	a.t.Helper()
	tick, end := time.NewTicker(50*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			a.t.Fatalf("not within 30 s: %s; active: %q", what, a.active())
		}
	}
}

// active are the alerts that fire now, as it tells them.
func (a *alertmanager) active() (out []string) {
	resp, err := http.Get("http://" + a.addr + "/api/v2/alerts?active=true")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var alerts []alert
	if err := json.NewDecoder(resp.Body).Decode(&alerts); err != nil {
		a.t.Fatal(err)
	}
	for _, one := range alerts {
		out = append(out, fmt.Sprintf("%s %s: %s", one.Labels["alertname"], one.Labels["severity"], one.Annotations["summary"]))
	}
	slices.Sort(out)
	return out
}

func TestARealAlertmanagerIsToldOfMovesAndAlarmsWhateverBecomesOfIt(t *testing.T) {
	am := newAlertmanager(t)
	r := newRig(t)
	open := func() *Pager {
		p, err := NewPager(PagerOptions{State: r.state, Real: time.Now, Rand: func() float64 { return 0 },
			Sinks: []Sink{NewAlertmanager(Address{URL: "http://" + am.addr}, "shop-demo", false, time.Now)}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	latched := ladder.Alarm{Kind: ladder.Latched, About: "*", Text: "it flaps", Since: time.Now().Add(-time.Minute)}
	r.shed(1) // while nobody listens
	p.Alarms([]ladder.Alarm{latched})
	p.Round(t.Context())
	p = open() // and the controller was started again meanwhile
	p.Alarms([]ladder.Alarm{latched})
	am.start()
	p.Round(t.Context())
	shed := func(tier int) string {
		return fmt.Sprintf("ic_signed notice: ines: shed all services to tier %d", tier)
	}
	am.until("the shed and the alarm", func() bool {
		got := am.active()
		return len(got) == 3 && slices.Contains(got, shed(1)) && slices.Contains(got, "ic_latched page: the ladder: latched")
	})
	am.kill()
	r.shed(2)
	p.Round(t.Context())
	am.start()
	am.until("what happened while it was down", func() bool { p.Round(t.Context()); return slices.Contains(am.active(), shed(2)) })
	p.Alarms(nil)
	am.until("the alarm is over", func() bool {
		p.Round(t.Context())
		return !slices.ContainsFunc(am.active(), func(s string) bool { return s == "ic_latched page: the ladder: latched" })
	})
}
