//go:build integration && linux

package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/oklog/ulid/v2"
)

const (
	right = "risk-bypass-small-orders"
	// agentKills is how many runs there are about without IC_SWEEP; each takes some
	// seconds, since the agent looks at its file once a second.
	agentKills = 6
	items      = 12 // that a run asks for
)

// tale is one run of an agent that is followed, and what it has said of itself: what a
// client knows from it and may rely on.
type tale struct {
	*machine
	dir    string
	log    string
	made   []string      // changes, the last of which was not made if it was killed
	over   chan struct{} // closed when the process has ended
	tokens map[string]string
	ids    map[string]string
	live   []string // said to be in force, by name
	ended  []string // said to be in force no more
	maybe  []string // about to be ended when the process died
	passed int
}

// watched starts an agent and kills it before its nth change of a file, with 0 never.
func watched(t *testing.T, n int) *tale {
	t.Helper()
	m := newMachine(t)
	dir := t.TempDir() // everything that it writes is below
	m.state = filepath.Join(dir, "state")
	s := &tale{machine: m, dir: dir, log: filepath.Join(t.TempDir(), "log"), over: make(chan struct{}), tokens: map[string]string{}, ids: map[string]string{}}
	m.args = append(slices.Clone(m.policy), "-state", m.state, "-listen", "127.0.0.1:0", "-file", m.file,
		"-state-file", filepath.Join(dir, "state.json"), "-env-file", filepath.Join(dir, "ic.env"))
	m.said = &transcript{}
	cmd := exec.Command(os.Args[0], append([]string{m.program}, m.args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), followAt + "=" + strconv.Itoa(n), followIn + "=" + dir, followLog + "=" + s.log}
	cmd.Stderr = m.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(s.over)
	}()
	stop := func() { // what is followed dies with its follower
		_ = cmd.Process.Kill() // it may have ended by itself
		<-s.over
	}
	t.Cleanup(stop)
	s.tell()
	stop()
	s.made = followed(t, s.log)
	return s
}

// wait asks until ok says so. It is false when the process has ended.
func (s *tale) wait(what string, ok func() bool) bool {
	s.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-s.over:
			return false
		case <-deadline:
			s.t.Fatalf("%s: in vain; the agent said %s", what, s.said)
		case <-tick.C:
		}
	}
	return true
}

// ask puts one question; a process that dies in between has not answered.
func (s *tale) ask(method, path, body string, into any) bool {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// inForce are the ids that the agent says are in force and on its disk.
func (s *tale) inForce() (ids []string, known bool) {
	var r model.Report
	if !s.ask(http.MethodGet, "/report", "", &r) || r.State != "ok" {
		return nil, false
	}
	for _, l := range r.Live {
		ids = append(ids, l.ID)
	}
	return ids, true
}

func (s *tale) sign(name string, d model.Directive) {
	s.tokens[name] = s.token(d)
	s.ids[name] = idOf(s.t, s.tokens[name])
}

// brings writes the file and waits until all of these are in force.
func (s *tale) brings(names ...string) bool {
	s.write(s.tokens)
	if !s.wait("what the file brings", func() bool {
		ids, known := s.inForce()
		return known && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(ids, s.ids[n]) })
	}) {
		return false
	}
	s.live = append(s.live, names...)
	return true
}

// ends writes the file and waits until none of these is in force.
func (s *tale) ends(names ...string) bool {
	s.maybe = names
	s.write(s.tokens)
	if !s.wait("an ending", func() bool {
		ids, known := s.inForce()
		return known && !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(ids, s.ids[n]) })
	}) {
		return false
	}
	s.ended = append(s.ended, names...)
	return true
}

func (s *tale) write(tokens map[string]string) {
	s.t.Helper()
	var all []string
	for _, token := range tokens {
		all = append(all, token)
	}
	slices.Sort(all)
	next := s.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(strings.Join(all, " ")+"\n"), 0o600), os.Rename(next, s.file)); err != nil {
		s.t.Fatal(err)
	}
}

// spends asks for items until n have passed.
func (s *tale) spends(n int) bool {
	for range n {
		var v struct{ Allowed bool }
		if !s.ask(http.MethodPost, "/v1/allow", `{"control":"payment-risk","service":"checkout","amount":"1.00 USD"}`, &v) {
			return false
		}
		if v.Allowed {
			s.passed++
		}
	}
	return true
}

// tell is the run: what is in force, what passes, what is ended, as far as it gets.
func (s *tale) tell() {
	if !s.wait("its address", func() bool {
		found := answersOn.FindStringSubmatch(s.said.String())
		if found != nil {
			s.url = found[1]
		}
		return found != nil
	}) {
		return
	}
	s.sign("shed", model.Directive{Kind: model.Shed, Scope: model.AnyScope, Tier: 2, Right: "shed"})
	s.sign("off", model.Directive{Kind: model.Off, Scope: "checkout", Feature: "recommendations", Right: "feature-off"})
	s.sign("bypass", model.Directive{Kind: model.Bypass, Scope: "checkout", Right: right})
	if !s.brings("shed", "off", "bypass") || !s.spends(items) {
		return
	}
	s.sign("on", model.Directive{Kind: model.End, Ends: model.Off, Scope: "checkout", IDs: []string{s.ids["off"]}, Right: "feature-on"})
	s.sign("step", model.Directive{Kind: model.End, Ends: model.Shed, Scope: model.AnyScope, IDs: []string{s.ids["shed"]},
		From: 2, To: 1, Ramp: ulid.Make().String(), Percent: 100, Right: "recover"})
	if !s.ends("off", "shed") || !s.spends(items) {
		return
	}
	s.sign("close", model.Directive{Kind: model.End, Ends: model.Bypass, Scope: "checkout", IDs: []string{s.ids["bypass"]}, Right: "end-bypass"})
	s.ends("bypass")
}

// holds starts the agent anew on what is left and compares it with what it said. Its
// file carries all but the endings.
func (s *tale) holds() {
	s.t.Helper()
	budget, _, _ := s.bundle.Right(right)
	old := map[string]string{}
	for name, token := range s.tokens {
		if !slices.Contains([]string{"on", "step", "close"}, name) {
			old[name] = token
		}
	}
	if err := os.RemoveAll(s.file); err != nil {
		s.t.Fatal(err)
	}
	s.until("the folder is free", func() bool { // a kill takes its time on a busy machine
		dir, err := engine.OpenDir(s.state)
		if err == nil {
			err = dir.Close()
		}
		return err == nil
	})
	s.start()
	s.compare("at its start")
	old["another"] = s.token(model.Directive{Kind: model.Bypass, Scope: "checkout", Right: right})
	another := idOf(s.t, old["another"])
	s.write(old)
	s.until("another bypass", func() bool {
		return slices.ContainsFunc(s.report().Live, func(l model.ReportLive) bool { return l.ID == another })
	})
	s.compare("with the old tokens in its file")
	more := 0
	for {
		if ok, _ := s.allow("1.00 USD"); !ok {
			break
		}
		more++
	}
	if most := budget.Bypass.HostCount; int64(s.passed+more) > most || more == 0 {
		s.t.Errorf("%d items passed, then %d more, of %d", s.passed, more, most)
	}
	s.kill()
}

func (s *tale) compare(when string) {
	s.t.Helper()
	r := s.report()
	if r.State != "ok" {
		s.t.Errorf("%s: the folder is %s; it said %s", when, r.State, s.said)
	}
	is := func(name string) bool {
		return slices.ContainsFunc(r.Live, func(l model.ReportLive) bool { return l.ID == s.ids[name] })
	}
	for _, name := range s.ended {
		if is(name) {
			s.t.Errorf("%s: %s is in force, and was ended", when, name)
		}
	}
	for _, name := range s.live {
		if !is(name) && !slices.Contains(s.ended, name) && !slices.Contains(s.maybe, name) {
			s.t.Errorf("%s: %s was in force and is gone", when, name)
		}
	}
}

// idOf reads the id of a token of ours.
func idOf(t *testing.T, token string) string {
	t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	d, err := directive.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

// wholeFiles wants what the agent writes for others to be whole or not there.
func (s *tale) wholeFiles() {
	s.t.Helper()
	state, err := os.ReadFile(filepath.Join(s.dir, "state.json"))
	var v struct{ V int }
	if err == nil && (json.Unmarshal(state, &v) != nil || v.V != 1) || err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Errorf("the state file: %v, %q", err, state)
	}
	env, err := os.ReadFile(filepath.Join(s.dir, "ic.env"))
	if err == nil && (!strings.HasPrefix(string(env), "IC_AS_OF=") && !strings.HasPrefix(string(env), "IC_AT=") || !strings.HasSuffix(string(env), "\n")) {
		s.t.Errorf("the env file: %q", env)
	}
}

// TestAKillOfAnAgentAtEveryChangeForgetsNothing kills an agent with SIGKILL before
// its nth change of any file, whichever thread makes it, starts it again and holds it
// to what it had said to its clients. With IC_SWEEP=all n is each from the first to
// the last, without it a few.
func TestAKillOfAnAgentAtEveryChangeForgetsNothing(t *testing.T) {
	whole := watched(t, 0)
	changes := whole.made
	if len(whole.ended) != 3 || whole.passed == 0 || len(changes) < 50 {
		t.Fatalf("the tale goes to its end: ended %v, %d items, changes %v; said %s", whole.ended, whole.passed, changes, whole.said)
	}
	whole.holds()
	first, step := 0, len(changes)/agentKills
	if part := os.Getenv("IC_SWEEP"); part == "all" {
		step = 1
	} else if n, err := fmt.Sscanf(part, "%d/%d", &first, &step); part != "" && (n != 2 || err != nil || first < 0 || step <= first) {
		t.Fatalf("IC_SWEEP is %q; write all, or 0/8 to 7/8", part)
	}
	runs, killed := 0, 0
	for n := first + 1; n <= len(changes); n += step {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			s := watched(t, n)
			if runs++; len(s.made) == n {
				killed++
			}
			s.wholeFiles()
			s.holds()
			if t.Failed() {
				t.Logf("killed before %s, change %d", s.made[len(s.made)-1], n)
			}
		})
	}
	t.Logf("%d runs of a tale with %d changes, %d killed before its end, each at another change", runs, len(changes), killed)
	if killed < runs*9/10 { // a tale may be shorter by some
		t.Error("most of them went to their end")
	}
}
