package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/google/go-cmp/cmp"
)

func TestExitCodesAreAContract(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{fail(exitUsage, "wrong"), 2},
		{fmt.Errorf("here: %w", incident.ErrDenied), 3},
		{fmt.Errorf("here: %w", incident.ErrReadOnly), 3},
		{fail(exitUnconfirmed, "sent"), 4},
		{fmt.Errorf("here: %w", incident.ErrIntegrity), 5},
		{fmt.Errorf("here: %w", incident.ErrNeeds), 6},
		{fmt.Errorf("here: %w", incident.ErrNoIncident), 6},
		{fmt.Errorf("here: %w", context.Canceled), 130},
		// What was said on purpose counts more than what it wraps.
		{fmt.Errorf("here: %w", fail(exitUsage, "wrong: %w", incident.ErrNeeds)), 2},
		{errors.Join(incident.ErrDenied, nil), 3},
		{errors.Join(fail(exitNeeds, "first"), errors.New("closing failed too")), 6},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// quiet is a run of the program without a terminal.
func quiet(in string) (*app, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &app{
		in: strings.NewReader(in), out: &out, err: &err, getenv: environment(nil), real: time.Now,
		self: func() (string, error) { return "", errors.New("this is no program") },
	}, &out, &err
}

func TestWithoutATerminalNobodyIsAskedAndOnlyYesGoesOn(t *testing.T) {
	a, _, said := quiet("yes\n")
	asked, err := a.confirm("really?", "")
	if codeOf(err) != exitUsage || asked || said.Len() > 0 {
		t.Errorf("without --yes: asked %v, %v, said %q", asked, err, said)
	}
	var f *failure
	if !errors.As(err, &f) || !strings.Contains(f.hint, "--yes") {
		t.Errorf("the way on is not named: %v", err)
	}
	a.yes = true
	if asked, err := a.confirm("really?", "skip payment-risk"); asked || err != nil {
		t.Errorf("with --yes: asked %v, %v", asked, err)
	}
}

func TestAnErrorIsOneSentenceAndItsHintTheNextLine(t *testing.T) {
	a, out, said := quiet("")
	if code := run(t.Context(), []string{"status"}, a); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if want := "ic: no state folder: HOME is not set\n    name one with --state or IC_STATE_DIR\n"; said.String() != want || out.Len() > 0 {
		t.Errorf("said %q and %q, want %q", out, said, want)
	}
	a, out, said = quiet("")
	if code := run(t.Context(), []string{"status", "--json"}, a); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	want := `{"error":"no state folder: HOME is not set","exit_code":2,"hint":"name one with --state or IC_STATE_DIR"}` + "\n"
	if out.String() != want || said.Len() > 0 {
		t.Errorf("said %q and %q, want %q", out, said, want)
	}
}

func TestALineIsReadAndNothingAfterIt(t *testing.T) {
	in := strings.NewReader("one\ntwo")
	if got, err := readLine(in); got != "one" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := readLine(in); got != "two" || err == nil {
		t.Errorf("a line without an end: %q, %v", got, err)
	}
	longest := strings.Repeat("x", maxAnswer)
	if got, err := readLine(strings.NewReader(longest + "\n")); got != longest || err != nil {
		t.Errorf("the longest answer: %d bytes, %v", len(got), err)
	}
	if got, err := readLine(strings.NewReader(longest + "x\n")); got != "" || err == nil {
		t.Errorf("one byte more: %d bytes, %v", len(got), err)
	}
}

func TestAPasteMayBeginWithBlankLinesAndLackItsEnd(t *testing.T) {
	for _, text := range []string{"ic1.a.b\n", "ic1.a.b", "\n \n\tic1.a.b \r\nmore", "\r\nic1.a.b\r\n"} {
		a, _, _ := quiet(text)
		if got, err := a.pasted(); got != "ic1.a.b" || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n\n", strings.Repeat("x", maxAnswer+1)} {
		a, _, _ := quiet(text)
		if got, err := a.pasted(); got != "" || codeOf(err) != exitUsage {
			t.Errorf("%.10q: %q, %v", text, got, err)
		}
	}
}

func TestADirectiveIsFoundByItsIdOrTheEndOfIt(t *testing.T) {
	s := incident.Snapshot{}
	for _, id := range []string{"01M8NNTT4B8V41G0653FCNTNF0", "01M8NNV694E3V5YYPMH2CEYGE6", "01M8NNWGW889DP5AV54M9YYGE6"} {
		s.World.Issued = append(s.World.Issued, model.Issued{Directive: model.Directive{ID: id}})
	}
	for asked, want := range map[string]string{
		"01M8NNTT4B8V41G0653FCNTNF0": "01M8NNTT4B8V41G0653FCNTNF0", "CNTNF0": "01M8NNTT4B8V41G0653FCNTNF0", "NTNF0": "01M8NNTT4B8V41G0653FCNTNF0",
		"CEYGE6": "01M8NNV694E3V5YYPMH2CEYGE6", "YYGE6": "01M8NNWGW889DP5AV54M9YYGE6",
	} {
		if got, err := findIssued(s, asked); err != nil || got.ID != want {
			t.Errorf("%s: %v, %v; want %s", asked, got, err, want)
		}
	}
	for asked, want := range map[string]int{
		"YGE6": exitUsage /* two */, "NF0": exitFailed /* too short */, "": exitFailed, "ZZZZZZ": exitFailed, "x01M8NNTT4B8V41G0653FCNTNF0": exitFailed,
	} {
		if got, err := findIssued(s, asked); codeOf(err) != want {
			t.Errorf("%q: %v, %v; want exit code %d", asked, got, err, want)
		}
	}
}

func TestOnlySignaturesOfOthersMayBeMissing(t *testing.T) {
	quorum, wait := model.Reason{Code: model.CodeQuorum}, model.Reason{Code: "dwell"}
	for _, c := range []struct {
		outcome model.Outcome
		reasons []model.Reason
		want    bool
	}{
		{model.Permitted, nil, true},
		{model.Needs, []model.Reason{quorum}, true},
		{model.Needs, []model.Reason{quorum, wait}, false},
		{model.Needs, []model.Reason{wait}, false},
		{model.Denied, []model.Reason{quorum}, false},
		{model.Denied, nil, false},
	} {
		p := incident.Preview{Verdict: model.Verdict{Outcome: c.outcome, Reasons: c.reasons}}
		if got := possible(&p); got != c.want {
			t.Errorf("%s %v: %v, want %v", c.outcome, c.reasons, got, c.want)
		}
	}
}

func TestOverridesAreUndoneNewestFirst(t *testing.T) {
	at := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	overrides := []model.Override{
		{Operation: "first", Backend: "git", Since: at, State: "effective"},
		{Operation: "third", Backend: "git", Since: at.Add(2 * time.Minute), State: "sent"},
		{Operation: "second", Backend: "hostfile", Since: at.Add(time.Minute), State: "partial 3/60"},
	}
	got := newestFirst(overrides)
	if diff := cmp.Diff([]string{"third", "second", "first"}, got); diff != "" {
		t.Error(diff)
	}
	want := "remove from hosts:\n  third by git since 03:02:00Z: sent\n  second by hostfile since 03:01:00Z: partial 3/60\n  first by git since 03:00:00Z: effective"
	if got := undoQuestion(overrides, got); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := undoQuestion(overrides, []string{"git"}); got != "remove from hosts:\n  git" {
		t.Errorf("by the name of a backend: %q", got)
	}
}

func TestSkewNamesTheHostsThatDiffer(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	shed := model.Directive{ID: "01M8NNTT4B8V41G0653FCNTNF0", Scope: model.AnyScope, Kind: model.Shed, Tier: 2, IssuedAt: now.Add(-time.Minute), NotBefore: now.Add(-time.Minute)}
	host := func(n int, live ...model.ReportLive) model.HostView {
		return model.HostView{
			Host: fmt.Sprintf("edge-%02d", n), Services: []string{"edge"}, Reachable: true, SeenAt: now.Add(-2 * time.Second),
			Report: &model.Report{Live: live, Sources: []model.ReportSource{{Name: "etcd", AgeS: 94}}},
		}
	}
	s := incident.Snapshot{At: now}
	s.World.Issued = []model.Issued{{Directive: shed}}
	s.World.Hosts = []model.HostView{
		host(1, model.ReportLive{ID: shed.ID}), host(2),
		{Host: "edge-03", Services: []string{"edge"}, Detail: "connection refused"},
	}
	s.Skew = incident.SkewView{Hosts: 3, Effective: 1, Lacking: 1, Unreachable: 1}
	var out bytes.Buffer
	printSkew(&out, &s)
	want := `hosts: 1 of 3 have what was issued, 1 differ, 1 cannot be reached
  HOST     STATE        LACKS   TOO MUCH  OLDEST SOURCE       REPORT
  edge-02  lacking      CNTNF0  -         etcd, 1m34s ago     2s
  edge-03  unreachable  -       -         connection refused  never
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}

	for n := 4; n < 20; n++ {
		s.World.Hosts = append(s.World.Hosts, host(n))
	}
	s.Skew = incident.SkewView{Hosts: 19, Effective: 1, Lacking: 17, Unreachable: 1}
	out.Reset()
	printSkew(&out, &s)
	if got := strings.Count(out.String(), "\n"); got != maxHosts+3 || !strings.Contains(out.String(), "  and 6 more: ") {
		t.Errorf("%d lines:\n%s", got, out.String())
	}
}

func TestNumbersAndTheirNouns(t *testing.T) {
	for n, want := range map[int]string{0: "0 hosts", 1: "1 host", 60: "60 hosts"} {
		if got := counted(n, "host"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{"": "(nothing)", "short": "short", strings.Repeat("x", 50): strings.Repeat("x", 44) + "… (50 bytes)"} {
		if got := clip(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
