package sdk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Arguments with which this test binary is something else.
const (
	asBackend = "be-a-backend"
	asHost    = "be-a-host"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case asBackend:
			Serve(&stub{})
			os.Exit(0)
		case asHost:
			startAndLeave()
		}
	}
	os.Exit(m.Run())
}

// startAndLeave starts a backend as a host without the kernel's help would, says
// its process id once it is ready, and ends when its input does.
func startAndLeave() {
	cmd := exec.Command(os.Args[0], asBackend)
	cmd.Env = append(os.Environ(), Handshake().MagicCookieKey+"="+Handshake().MagicCookieValue, "PLUGIN_PROTOCOL_VERSIONS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
	os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

func TestABackendEndsWhenItsHostIsGone(t *testing.T) {
	host := exec.Command(os.Args[0], asHost)
	stdin, err := host.StdinPipe()
	must(t, err)
	out, err := host.StdoutPipe()
	must(t, err)
	must(t, host.Start())
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the backend is not there: %v", err)
	}
	must(t, stdin.Close())
	must(t, host.Wait())
	limit := time.After(20 * parentPoll)
	tick := time.NewTicker(parentPoll / 10)
	defer tick.Stop()
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-tick.C:
		case <-limit:
			syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the backend has outlived its host")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stub is a backend that plans one change and can be told what to do.
type stub struct {
	max    int
	before string
	apply  func(context.Context, Report) error
	calls  []string
}

func (s *stub) note(call string) { s.calls = append(s.calls, call) }

func (s *stub) Describe() Description { return Description{Name: "stub", MaxBytes: s.max} }
func (s *stub) Configure(_ context.Context, config, _ map[string]string) error {
	s.note("configure")
	if config["bad"] != "" {
		return Refuse(CodeBadConfig, "bad")
	}
	return nil
}
func (s *stub) Check(context.Context) ([]Finding, error) {
	return []Finding{{Name: "reach\xff", Detail: "\xff"}}, nil
}
func (s *stub) Plan(_ context.Context, value string, targets []string) (Plan, error) {
	s.note("plan")
	return Plan{Changes: []Change{{Target: "file", Hosts: targets, Before: s.before, After: value, Owner: "o\xff", Restarts: true}}}, nil
}
func (s *stub) Apply(ctx context.Context, _ Application, report Report) error {
	s.note("apply")
	if s.apply != nil {
		return s.apply(ctx, report)
	}
	return nil
}
func (s *stub) Observe(context.Context, string, Report) error {
	s.note("observe")
	return Refuse(CodeOperationUnknown, "none")
}
func (s *stub) Undo(context.Context, string, Report) error { s.note("undo"); return nil }
func (s *stub) Stop(context.Context) error                 { s.note("stop"); return nil }

func session(t *testing.T, s *stub) *Session {
	t.Helper()
	out := NewSession(s)
	must(t, out.Configure(t.Context(), nil, nil))
	return out
}

func request(text string) PlanRequest {
	return PlanRequest{Tokens: []Token{{ID: "A", Text: text}}, Targets: []string{"edge-01"}}
}

func silent(Progress) error { return nil }

func wantCode(t *testing.T, err error, code Code) {
	t.Helper()
	if CodeOf(err) != code {
		t.Errorf("got %q (%v), want %q", CodeOf(err), err, code)
	}
}

func TestTokensFitFromTheFirstOn(t *testing.T) {
	tokens := []Token{{"A", "aaa"}, {"B", "bbbbb"}, {"C", "c"}}
	for _, c := range []struct {
		max     int
		value   string
		leftOut []string
	}{
		{11, "aaa bbbbb c", nil},
		{10, "aaa bbbbb", []string{"C"}},
		{8, "aaa", []string{"B", "C"}},
		{2, "", []string{"A", "B", "C"}},
	} {
		value, leftOut := Fit(tokens, c.max)
		if value != c.value || !slices.Equal(leftOut, c.leftOut) {
			t.Errorf("%d bytes: %q without %v, want %q without %v", c.max, value, leftOut, c.value, c.leftOut)
		}
	}
}

// The example of docs/backend-protocol.md: authors in other languages check
// theirs against it.
func TestThePlanDigestOfTheDocumentation(t *testing.T) {
	p := Plan{
		Changes: []Change{{
			Target: "fleet/ic.env", Hosts: []string{"edge-01", "edge-02"}, Before: "", After: "ic1.aa.bb", Restarts: true,
		}},
		Restarts: 2, Targets: 2, LeftOut: []string{"01JDX"},
	}
	const want = "881679cb84b5b5bdec7b8599a3e59e4e67c7c399d5525e27b146b36b7e8ecba0"
	if got := PlanDigest(&p); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEveryPartOfAPlanIsInItsDigest(t *testing.T) {
	base := func() Plan {
		return Plan{Changes: []Change{{Target: "t", Hosts: []string{"h"}, Before: "b", After: "a", Owner: "o"}}, Targets: 1, LeftOut: []string{"x"}}
	}
	plain := base()
	seen := map[string]int{PlanDigest(&plain): -1}
	for i, change := range []func(*Plan){
		func(p *Plan) { p.Changes[0].Target = "u" },
		func(p *Plan) { p.Changes[0].Hosts = []string{"i"} },
		func(p *Plan) { p.Changes[0].Hosts = nil },
		func(p *Plan) { p.Changes[0].Before = "c" },
		func(p *Plan) { p.Changes[0].After = "c" },
		func(p *Plan) { p.Changes[0].Before, p.Changes[0].After = "ba", "" },
		func(p *Plan) { p.Changes[0].Owner = "c" },
		func(p *Plan) { p.Changes[0].Conflict = true },
		func(p *Plan) { p.Changes[0].Restarts = true },
		func(p *Plan) { p.Restarts = 1 },
		func(p *Plan) { p.Targets = 2 },
		func(p *Plan) { p.LeftOut = nil },
		func(p *Plan) { p.Changes = append(p.Changes, p.Changes[0]) },
	} {
		p := base()
		change(&p)
		d := PlanDigest(&p)
		if other, taken := seen[d]; taken {
			t.Errorf("changes %d and %d have one digest", other, i)
		}
		seen[d] = i
	}
}

func TestNothingIsAskedBeforeConfigure(t *testing.T) {
	s := NewSession(&stub{})
	_, err := s.Plan(t.Context(), request("a"))
	wantCode(t, err, CodeNotConfigured)
	must(t, s.Configure(t.Context(), nil, nil))
	p, err := s.Plan(t.Context(), request("a"))
	must(t, err)
	wantCode(t, s.Configure(t.Context(), map[string]string{"bad": "x"}, nil), CodeBadConfig)
	wantCode(t, s.Apply(t.Context(), p.Digest, "OP", silent), CodeNotConfigured)
	must(t, s.Configure(t.Context(), nil, nil))
	wantCode(t, s.Apply(t.Context(), p.Digest, "OP", silent), CodePlanUnknown)
}

func TestARequestOutsideTheProtocolDoesNotReachTheBackend(t *testing.T) {
	b := &stub{}
	s := session(t, b)
	for _, r := range []PlanRequest{
		{},
		{Tokens: request("a").Tokens},
		{Targets: []string{"edge-01"}},
		request(""),
		request("a b"),
		request("a\n"),
		request("a\x7f"),
		{Tokens: request("a").Tokens, Targets: []string{"edge-01", "edge-01"}},
		{Tokens: request("a").Tokens, Targets: []string{".."}},
		{Tokens: request("a").Tokens, Targets: []string{"a/b"}},
		{Tokens: request("a").Tokens, Targets: []string{"-rf"}},
		{Tokens: request("a").Tokens, Targets: []string{strings.Repeat("a", MaxTarget+1)}},
		{Tokens: make([]Token, MaxTokens+1), Targets: []string{"edge-01"}},
	} {
		_, err := s.Plan(t.Context(), r)
		wantCode(t, err, CodeBadRequest)
	}
	for _, id := range []string{"", "..", "a/b", "-x", "a b", strings.Repeat("a", MaxOperation+1)} {
		wantCode(t, s.Apply(t.Context(), "d", id, silent), CodeBadRequest)
		wantCode(t, s.Observe(t.Context(), id, silent), CodeBadRequest)
		wantCode(t, s.Undo(t.Context(), id, silent), CodeBadRequest)
	}
	if !slices.Equal(b.calls, []string{"configure"}) {
		t.Errorf("the backend was asked %v", b.calls)
	}
}

func TestABackendsOwnLimitIsKept(t *testing.T) {
	s := session(t, &stub{max: 4})
	p, err := s.Plan(t.Context(), PlanRequest{Tokens: []Token{{"A", "aaa"}, {"B", "b"}}, Targets: []string{"edge-01"}})
	must(t, err)
	if p.Changes[0].After != "aaa" || !slices.Equal(p.LeftOut, []string{"B"}) {
		t.Errorf("got %+v", p)
	}
	_, err = s.Plan(t.Context(), request("aaaaa"))
	wantCode(t, err, CodeTooLarge)
}

func TestASessionRemembersTheLastPlans(t *testing.T) {
	s := session(t, &stub{})
	var digests []string
	for i := range maxPlans + 1 {
		p, err := s.Plan(t.Context(), request(fmt.Sprintf("t%d", i)))
		must(t, err)
		digests = append(digests, p.Digest)
	}
	wantCode(t, s.Apply(t.Context(), digests[0], "OP", silent), CodePlanUnknown)
	must(t, s.Apply(t.Context(), digests[1], "OP", silent))
	must(t, s.Apply(t.Context(), digests[maxPlans], "OP", silent))
}

func TestAPanicIsARefusalAndTheSessionGoesOn(t *testing.T) {
	b := &stub{apply: func(context.Context, Report) error { panic("nil map") }}
	s := session(t, b)
	p, err := s.Plan(t.Context(), request("a"))
	must(t, err)
	err = s.Apply(t.Context(), p.Digest, "OP", silent)
	wantCode(t, err, CodeFailed)
	if !strings.Contains(err.Error(), "nil map") {
		t.Errorf("it does not say why: %v", err)
	}
	must(t, s.Undo(t.Context(), "OP", silent))
}

func TestWhatIsNotTextDoesNotTravel(t *testing.T) {
	s := session(t, &stub{before: "b\xff" + strings.Repeat("x", 2*MaxCarrier)})
	p, err := s.Plan(t.Context(), request("a"))
	must(t, err)
	c := p.Changes[0]
	if !strings.HasPrefix(c.Before, "b\uFFFDx") || len(c.Before) > MaxCarrier+2 || c.Owner != "o\uFFFD" || p.Digest != PlanDigest(&p) {
		t.Errorf("before is %.20q (%d bytes), owner %q", c.Before, len(c.Before), c.Owner)
	}
	findings, err := s.Check(t.Context())
	must(t, err)
	if findings[0].Name != "reach\uFFFD" || findings[0].Detail != "\uFFFD" {
		t.Errorf("got %+v", findings)
	}
}

func TestStopEndsWhatRunsAndRefusesTheRest(t *testing.T) {
	running := make(chan struct{})
	b := &stub{apply: func(ctx context.Context, _ Report) error {
		close(running)
		<-ctx.Done()
		return errors.New("whatever a backend makes of it")
	}}
	s := session(t, b)
	p, err := s.Plan(t.Context(), request("a"))
	must(t, err)
	applied := make(chan error, 1)
	go func() { applied <- s.Apply(context.Background(), p.Digest, "OP", silent) }()
	<-running
	must(t, s.Stop(t.Context()))
	wantCode(t, <-applied, CodeStopped)
	must(t, s.Stop(t.Context()))
	_, err = s.Describe(t.Context())
	wantCode(t, err, CodeStopped)
	if n := len(b.calls); b.calls[n-1] != "stop" || b.calls[n-2] == "stop" {
		t.Errorf("the backend was asked %v, want stop once, last", b.calls)
	}
}

func TestOneOperationAtATime(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	s := session(t, &stub{apply: func(context.Context, Report) error { close(begun); <-end; return nil }})
	p, err := s.Plan(t.Context(), request("a"))
	must(t, err)
	applied := make(chan error, 1)
	go func() { applied <- s.Apply(context.Background(), p.Digest, "OP", silent) }()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Observe(ctx, "OP", silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second operation meanwhile: %v", err)
	}
	close(end)
	must(t, <-applied)
}

func TestAFailureCrossesTheWireWithItsCode(t *testing.T) {
	got := failureFromWire(failureToWire(fmt.Errorf("outside: %w", Refuse(CodeDenied, "no\xff"))))
	wantCode(t, got, CodeDenied)
	if got.Error() != "outside: no\uFFFD" {
		t.Errorf("it says %q", got)
	}
	wantCode(t, failureFromWire(failureToWire(errors.New("plain"))), CodeFailed)
	var f *Failure
	if err := failureFromWire(failureToWire(context.Canceled)); errors.As(err, &f) {
		t.Errorf("the end of a context became a refusal: %v", err)
	}
	if err := failureFromWire(failureToWire(nil)); err != nil {
		t.Errorf("nothing became %v", err)
	}
}
