package tui

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// night is the moment of all fixtures.
var night = time.Date(2026, 11, 30, 3, 14, 7, 0, time.UTC)

const (
	policyDigest = "4f2a9c01aa4f2a9c01aa4f2a9c01aa4f2a9c01aa4f2a9c01aa4f2a9c01aa4f2a"
	bypassID     = "01JDWE00000000000000BYPAS1"
	shedID       = "01JDWE00000000000000SHED03"
)

// fakeDesk answers from functions and counts what is asked of it.
type fakeDesk struct {
	mu      sync.Mutex
	snap    incident.Snapshot
	changed chan struct{}
	calls   map[string]int
	asked   []decisions.Ask
	tokens  []string

	preview func(decisions.Ask) (incident.Preview, error)
	execute func(incident.Act) (incident.Result, error)
	plan    func(string) (incident.BreakPlan, error)
	push    func(func(incident.Progress)) (incident.Result, error)
}

func newDesk(s incident.Snapshot) *fakeDesk {
	d := &fakeDesk{snap: s, changed: make(chan struct{}, 1), calls: map[string]int{}}
	d.preview = func(ask decisions.Ask) (incident.Preview, error) { return previewOf(ask), nil }
	d.execute = func(incident.Act) (incident.Result, error) {
		return incident.Result{ID: bypassID, State: incident.Effective, Done: 60, Total: 60, Carriers: []string{"etcd: acknowledged"}}, nil
	}
	d.plan = func(backend string) (incident.BreakPlan, error) { return samplePlan(backend), nil }
	d.push = func(func(incident.Progress)) (incident.Result, error) {
		return incident.Result{State: incident.Partial, Done: 12, Total: 60, Detail: "48 hosts have not told yet"}, nil
	}
	return d
}

func (d *fakeDesk) count(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[name]++
}

func (d *fakeDesk) called(name string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[name]
}

// effects is how often anything was asked for that changes something.
func (d *fakeDesk) effects() int {
	n := 0
	for _, name := range []string{"execute", "push", "undo", "command", "cosign", "fault"} {
		n += d.called(name)
	}
	return n
}

func (d *fakeDesk) Snapshot() incident.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snap
}
func (d *fakeDesk) Changed() <-chan struct{} { return d.changed }
func (d *fakeDesk) Preview(ask decisions.Ask) (incident.Preview, error) {
	d.mu.Lock()
	d.calls["preview"]++
	d.asked = append(d.asked, ask)
	d.mu.Unlock()
	return d.preview(ask)
}
func (d *fakeDesk) Execute(_ context.Context, act incident.Act) (incident.Result, error) {
	d.count("execute")
	return d.execute(act)
}
func (d *fakeDesk) PlanBreak(_ context.Context, backend string) (incident.BreakPlan, error) {
	d.count("plan")
	return d.plan(backend)
}
func (d *fakeDesk) Push(_ context.Context, _ incident.BreakPlan, _ bool, progress func(incident.Progress)) (incident.Result, error) {
	d.count("push")
	return d.push(progress)
}
func (d *fakeDesk) UndoBreak(_ context.Context, _ string, _ bool, progress func(incident.Progress)) (incident.Result, error) {
	d.count("undo")
	return d.push(progress)
}
func (d *fakeDesk) Command(context.Context, string, string) (incident.Result, error) {
	d.count("command")
	return incident.Result{State: incident.Effective}, nil
}
func (d *fakeDesk) Cosign(_ context.Context, token string) (incident.Result, error) {
	d.count("cosign")
	d.mu.Lock()
	d.tokens = append(d.tokens, token)
	d.mu.Unlock()
	return incident.Result{State: incident.Sent}, nil
}
func (d *fakeDesk) Fault(context.Context, string, bool) error {
	d.count("fault")
	return nil
}

// hands drive a console without a terminal: they press keys, run what the
// console starts, and look at the frame.
type hands struct {
	t    testing.TB
	desk *fakeDesk
	m    *console
	now  time.Time // the world's clock
	real time.Time
	held []tea.Msg // answers kept back
	hold bool
	quit bool
}

func sitDown(t testing.TB, d *fakeDesk, width, height int) *hands {
	h := &hands{t: t, desk: d, now: night, real: night}
	h.m = newConsole(t.Context(), d, Options{
		Now: func() time.Time { return h.now }, Real: func() time.Time { return h.real },
		Runbooks: func() []Runbook {
			return []Runbook{
				{Name: "catalog-slow", Signals: []string{"catalog-p95"}},
				{Name: "payment-risk-down", Signals: []string{"payment-risk-up"}, Rights: []string{"risk-bypass-small-orders"}},
			}
		},
	})
	h.m.post = h.send
	h.send(tea.WindowSizeMsg{Width: width, Height: height})
	h.refresh()
	return h
}

// refresh lets the console read the desk's snapshot.
func (h *hands) refresh() { h.run(h.m.read()) }

func (h *hands) send(msg tea.Msg) {
	h.t.Helper()
	_, cmd := h.m.Update(msg)
	h.m.View() // Bubble Tea draws after every message
	h.run(cmd)
}

// run does what the console started, except waiting: timers and listening are
// left out, and quitting is noted.
func (h *hands) run(cmd tea.Cmd) {
	h.t.Helper()
	if cmd == nil || isTimer(cmd) {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			h.run(c)
		}
	case tea.QuitMsg:
		h.quit = true
	case answer, snapshotMsg, crashMsg:
		if h.hold {
			h.held = append(h.held, msg)
			return
		}
		h.send(msg)
	}
}

// deliver hands over the answers kept back.
func (h *hands) deliver() {
	held := h.held
	h.held, h.hold = nil, false
	for _, msg := range held {
		h.send(msg)
	}
}

// press presses keys by name, one each 600 ms: a person, not a paste.
func (h *hands) press(keys ...string) *hands {
	h.t.Helper()
	for _, k := range keys {
		h.real = h.real.Add(600 * time.Millisecond)
		h.send(keyPress(k))
	}
	return h
}

// typeText types a text by hand.
func (h *hands) typeText(text string) *hands {
	h.t.Helper()
	for _, r := range text {
		h.press(string(r))
	}
	return h
}

func (h *hands) frame() string {
	content, _, _ := h.m.frame()
	return content
}

// screen is the frame as text.
func (h *hands) screen() string { return ansi.Strip(h.frame()) }

func (h *hands) sees(texts ...string) {
	h.t.Helper()
	for _, text := range texts {
		if !strings.Contains(squash(h.screen()), squash(text)) {
			h.t.Errorf("the screen does not show %q:\n%s", text, h.screen())
		}
	}
}

func (h *hands) seesNot(texts ...string) {
	h.t.Helper()
	for _, text := range texts {
		if strings.Contains(squash(h.screen()), squash(text)) {
			h.t.Errorf("the screen shows %q:\n%s", text, h.screen())
		}
	}
}

// squash makes a wrapped text findable.
func squash(s string) string { return strings.Join(strings.Fields(s), " ") }

func keyPress(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace,
	}
	var k tea.Key
	for {
		if rest, found := strings.CutPrefix(name, "ctrl+"); found {
			k.Mod, name = k.Mod|tea.ModCtrl, rest
			continue
		}
		if rest, found := strings.CutPrefix(name, "shift+"); found {
			k.Mod, name = k.Mod|tea.ModShift, rest
			continue
		}
		break
	}
	if code, ok := special[name]; ok {
		k.Code = code
		return tea.KeyPressMsg(k)
	}
	k.Code = []rune(name)[0]
	if name == " " {
		k.Code = tea.KeySpace
	}
	if k.Mod == 0 {
		k.Text = name
	}
	return tea.KeyPressMsg(k)
}

func usd(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }

func bypassDirective() model.Directive {
	return model.Directive{
		ID: bypassID, Fleet: "shop-demo", Incident: "inc-1", Reason: "risk scoring is down", Scope: model.AnyScope,
		Kind: model.Bypass, Control: "payment-risk", Right: "risk-bypass-small-orders",
		Caps:     model.Caps{Under: usd(5000), HostCount: 40, HostTotal: usd(7200), Total: usd(500000)},
		IssuedAt: night.Add(-2 * time.Minute), NotBefore: night.Add(-2 * time.Minute), NotAfter: night.Add(13 * time.Minute),
		Policy: model.PolicyRef{Version: 7, Digest: policyDigest}, Log: model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 3, Root: policyDigest},
	}
}

func shedDirective() model.Directive {
	return model.Directive{
		ID: shedID, Fleet: "shop-demo", Incident: "inc-1", Scope: "checkout", Kind: model.Shed, Tier: 3, Right: "shed",
		IssuedAt: night.Add(-4 * time.Minute), NotBefore: night.Add(-4 * time.Minute), Policy: model.PolicyRef{Version: 7, Digest: policyDigest},
		Log: model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 2, Root: policyDigest},
	}
}

func exposure() *decisions.Exposure {
	return &decisions.Exposure{
		Under: usd(5000), PerHost: usd(7200), Hosts: 60, Replacements: 2, WorstCase: usd(446400), Total: usd(500000),
		Lasts: 15 * time.Minute, Ends: night.Add(13 * time.Minute),
	}
}

// previewOf permits what it is asked, with a text to type unless it tightens.
func previewOf(ask decisions.Ask) incident.Preview {
	switch ask.Right {
	case "shed":
		d := shedDirective()
		d.ID, d.Scope, d.Tier, d.Reason, d.NotBefore = "", ask.Scope, max(ask.Tier, 1), ask.Reason, night
		if d.Scope == "" {
			d.Scope = model.AnyScope
		}
		return incident.Preview{
			Request: model.Request{Directive: d, Actor: ask.Actor}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else",
			Verdict:   model.Verdict{Outcome: model.Permitted, Direction: model.Tighten, Assurance: model.HostHeld},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour), Live: night.Add(-26 * time.Hour)},
			UserText:  "no recommendations, no order history; checkout works", Journeys: []string{"reorder from history"},
		}
	case "recover":
		d := model.Directive{Fleet: "shop-demo", Scope: "checkout", Kind: model.End, Ends: model.Shed, IDs: []string{shedID},
			From: 3, To: 2, Ramp: shedID, Percent: 10, Right: "recover", NotBefore: night, Reason: ask.Reason}
		return incident.Preview{
			Request: model.Request{Directive: d}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else", Typed: "tier 2",
			Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Recover, Assurance: model.HostHeld},
		}
	default:
		d := bypassDirective()
		d.ID, d.Reason, d.NotBefore, d.NotAfter = "", ask.Reason, night, night.Add(15*time.Minute)
		p := incident.Preview{
			Request: model.Request{Directive: d, Actor: ask.Actor}, Title: incident.TitleOf(&d), Who: "commander", Cosign: "nobody else",
			Exposure: exposure(), Typed: "skip payment-risk",
			Verdict:   model.Verdict{Outcome: model.Permitted, Direction: model.Loosen, Assurance: model.HostHeld},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour)},
		}
		if ask.Reason == "" {
			p.Verdict.Outcome, p.Verdict.Reasons = model.Needs, []model.Reason{{Code: decisions.NoReason}}
		}
		return p
	}
}

func samplePlan(backend string) incident.BreakPlan {
	return incident.BreakPlan{
		Backend: backend, Operation: "01JDWE00000000000000PSH001", Carrier: "file", Digest: "9c1f33d2e0", IDs: []string{bypassID, shedID},
		Changes:  []incident.BreakChange{{Target: "checkout/ic.env", Before: "", After: "IC_DIRECTIVES=2 orders, 2412 bytes"}},
		Restarts: 12, Targets: 60, LastKnownGood: "partly", Conflicts: []string{"payments-config is owned by argocd"},
		Verdict: model.Verdict{Outcome: model.Permitted, Direction: model.Tighten}, At: night,
	}
}

func matrix() []decisions.Row {
	row := func(name, text, who string, dir model.Direction, v model.Outcome, reasons ...model.Reason) decisions.Row {
		return decisions.Row{Name: name, Text: text, Who: who, Domain: policy.Rights,
			Verdict:   model.Verdict{Outcome: v, Direction: dir, Assurance: model.HostHeld, Reasons: reasons},
			Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour), Live: night.Add(-26 * time.Hour)}}
	}
	end := row("end-bypass", "end every bypass at once", "operator", model.Tighten, model.Permitted)
	end.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.End, Ends: model.Bypass, IDs: []string{bypassID}}
	off := row("feature-off", "switch one feature off", "operator", model.Tighten, model.Permitted)
	off.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.Off, Feature: "recommendations"}
	shedRow := row("shed", "shed one tier or more", "operator", model.Tighten, model.Permitted)
	shedRow.Request.Directive = model.Directive{Scope: model.AnyScope, Kind: model.Shed, Tier: 1}
	rec := row("recover", "one tier at a time, 10, 50, 100 % of hosts", "commander", model.Recover, model.Needs,
		model.Reason{Code: decisions.Dwell, Wait: model.Duration(3*time.Minute + 12*time.Second), N: 3},
		model.Reason{Code: decisions.SignalNotGood, Name: "checkout-p95", Wait: model.Duration(5 * time.Minute)})
	rec.Request.Directive = model.Directive{Scope: "checkout", Kind: model.End, Ends: model.Shed, IDs: []string{shedID}, From: 3, To: 2, Percent: 10}
	small := row("risk-bypass-small-orders", "orders under 50.00 USD skip risk scoring for 15 minutes", "commander", model.Loosen, model.Permitted)
	small.Request.Directive, small.Exposure, small.Domain = bypassDirective(), exposure(), "payments"
	large := row("risk-bypass-large-orders", "orders under 500.00 USD skip risk scoring for 10 minutes", "commander", model.Loosen, model.Needs,
		model.Reason{Code: model.CodeQuorum, N: 1, Other: "finance"})
	large.Cosign, large.Request.Directive, large.Exposure, large.Domain = policy.Cosign{Count: 1, Of: "finance"}, bypassDirective(), exposure(), "payments"
	large.Rehearsed = model.Rehearsal{}
	return []decisions.Row{end, off, shedRow, rec, large, small}
}

// hosts of the demo's fleet: five are cut off, one is ahead, one unreachable,
// one old.
func sampleHosts() []model.HostView {
	var out []model.HostView
	for _, group := range []struct {
		service string
		n       int
	}{{"catalog", 15}, {"checkout", 15}, {"edge", 15}, {"payment-risk", 15}} {
		for i := 1; i <= group.n; i++ {
			h := model.HostView{
				Host: fmt.Sprintf("%s-%02d", group.service, i), Services: []string{group.service}, Reachable: true,
				SeenAt: night.Add(-4 * time.Second), Via: "direct",
				Report: &model.Report{
					Host: fmt.Sprintf("%s-%02d", group.service, i), At: night.Add(-5 * time.Second), State: "ok", Posture: "c0ffee11",
					Live:     []model.ReportLive{{ID: bypassID, Source: "etcd", Since: night.Add(-2 * time.Minute)}},
					Sources:  []model.ReportSource{{Name: "etcd", PresentIDs: []string{bypassID, shedID}, AgeS: 2}, {Name: "file", AgeS: -1}},
					Clock:    model.ReportClock{State: model.ClockOK},
					Policy:   model.PolicyRef{Version: 7, Digest: policyDigest},
					Versions: model.ReportVersions{IC: "0.1.0", Engine: 1},
				},
			}
			if group.service == "checkout" && i <= 2 {
				h.Lacks = []string{shedID}
				h.Report.Sources[0] = model.ReportSource{Name: "etcd", AgeS: 190, Error: "context deadline exceeded"}
			}
			if h.Host == "edge-07" {
				h.Reachable, h.Detail, h.SeenAt = false, "connection refused", night.Add(-9*time.Minute)
			}
			if h.Host == "edge-11" {
				h.SeenAt, h.Report.At = night.Add(-3*time.Minute), night.Add(-3*time.Minute)
			}
			if h.Host == "payment-risk-04" {
				h.Report.Clock.State = model.ClockBehind
			}
			out = append(out, h)
		}
	}
	return out
}

// trouble is the night of the story: a bypass and a shed in force, the flag
// service gone for some hosts, signals abnormal, stale and unknown.
func trouble() incident.Snapshot {
	shedIssued := model.Issued{Directive: shedDirective(), Signers: []string{"alice"}, Outcome: "effective"}
	bypassIssued := model.Issued{Directive: bypassDirective(), Signers: []string{"alice"}, Outcome: "effective"}
	return incident.Snapshot{
		At: night, Fleet: "shop-demo", Mode: model.Live, Person: "alice", Session: "s1",
		World: model.World{
			Now: night, Fleet: "shop-demo", Mode: model.Live, Policy: model.PolicyRef{Version: 7, Digest: policyDigest},
			Incident: model.Incident{ID: "inc-1", OpenedAt: night.Add(-12 * time.Minute), Title: "payment-risk down",
				Lease: model.Lease{Holder: "alice", From: night.Add(-12 * time.Minute), Until: night.Add(2*time.Hour + 48*time.Minute), Confirmed: true}},
			Issued: []model.Issued{shedIssued, bypassIssued}, Hosts: sampleHosts(),
			Inventory: model.Inventory{Source: "policy", At: night.Add(-time.Minute), MaxAge: model.Duration(time.Minute * 2), Hosts: 60},
		},
		Matrix:   matrix(),
		Headline: decisions.Headline{Text: "payment-risk-up is 0, below 1", Right: "risk-bypass-small-orders", Runbook: "payment-risk-down"},
		Services: []incident.ServiceTier{
			{Service: "catalog", Last: 3, Hosts: 15, At: map[int]int{0: 15}},
			{Service: "checkout", Issued: 3, Last: 4, Hosts: 15, At: map[int]int{0: 2, 3: 13}, Since: night.Add(-4 * time.Minute), By: "alice"},
			{Service: "edge", Last: 2, Hosts: 15, At: map[int]int{0: 13}, Unknown: 2},
			{Service: "payment-risk", Last: 2, Hosts: 15, At: map[int]int{0: 15}},
		},
		Signals: []incident.SignalView{
			{Name: "catalog-p95", Text: "?", Limit: "above 0.5 s", Reading: model.Reading{State: model.ReadingNoData}},
			{Name: "checkout-p95", Text: "0.31 s", Limit: "above 0.5 s", Reading: model.Reading{State: model.ReadingValue, Value: .31, At: night.Add(-12 * time.Second)}},
			{Name: "error-rate", Text: "0.4 %", Limit: "above 2 %", Reading: model.Reading{State: model.ReadingStale, At: night.Add(-47 * time.Second)}},
			{Name: "orders-per-minute", Text: "412", Limit: "below 200", Reading: model.Reading{State: model.ReadingValue, At: night.Add(-12 * time.Second)}},
			{Name: "payment-risk-up", Text: "0", Limit: "below 1", Abnormal: true, Reading: model.Reading{State: model.ReadingValue, At: night.Add(-9 * time.Second)}},
		},
		Skew: incident.SkewView{Hosts: 60, Effective: 55, Lacking: 2, Unreachable: 1, Stale: 1, At: night.Add(-4 * time.Second), InventoryAt: night.Add(-time.Minute)},
		Live: []incident.LiveView{
			{Issued: bypassIssued, Title: "skip payment-risk under 50.00 USD at all services until 03:27:07Z", Done: 58, Total: 60, State: "partial",
				Direction: model.Loosen, Exposure: exposure(), Used: map[string]incident.UsedView{"USD": {Count: 9, Total: usd(41250), Unknown: 2}}},
			{Issued: shedIssued, Title: "shed checkout to tier 3", Done: 13, Total: 15, State: "partial", Direction: model.Tighten},
		},
		Overrides: []model.Override{{Operation: "01JDWE00000000000000PSH001", Backend: "git", IDs: []string{bypassID}, Since: night.Add(-time.Minute), State: "partial"}},
		Backends: []incident.BackendView{
			{Name: "host-file", Carrier: "file", Rehearsed: model.Rehearsal{Simulated: night.Add(-26 * time.Hour), Live: night.Add(-26 * time.Hour)}},
			{Name: "git", Carrier: "env", Restarts: true, Dependencies: []string{"git server"}, Rehearsed: model.Rehearsal{Simulated: night.Add(-72 * time.Hour)}},
			{Name: "helm", Overlap: []string{"catalog"}, Detail: "not asked yet"},
		},
		Carriers:  []incident.CarrierView{{Name: "etcd", Connected: true, ReadAt: night.Add(-2 * time.Second)}},
		PolicyEnd: night.Add(51*24*time.Hour + time.Hour),
		Head:      model.LogHead{Origin: "shop-demo/inc-1/s1", Size: 128, Root: "9f3ab2c17d2e44aa9f3ab2c17d2e44aa"},
		Log: []incident.LogLine{
			{At: night.Add(-12 * time.Minute), Actor: "alice", Kind: "opened", Text: "incident inc-1: payment-risk down"},
			{At: night.Add(-4 * time.Minute), Actor: "alice", Kind: "intent", Text: "shed checkout to tier 3"},
			{At: night.Add(-4*time.Minute + time.Second), Actor: "alice", Kind: "outcome", Text: "shed checkout to tier 3: partial, 13 of 15 hosts"},
			{At: night.Add(-2 * time.Minute), Actor: "alice", Kind: "signed", Text: "skip payment-risk under 50.00 USD at all services until 03:27:07Z"},
		},
		Blockers: []string{"a bypass is in force until 03:27:07Z", "1 override is on hosts: remove it (ic break undo)"},
	}
}

// calm is a quiet fleet with no incident.
func calm() incident.Snapshot {
	s := trouble()
	s.World.Incident, s.World.Issued = model.Incident{}, nil
	s.Live, s.Overrides, s.Blockers, s.Log, s.Head = nil, nil, nil, nil, model.LogHead{}
	s.Headline = decisions.Headline{Text: "every signal is within its bounds", Calm: true}
	for i := range s.Services {
		s.Services[i].Issued, s.Services[i].At, s.Services[i].Unknown = 0, map[int]int{0: 15}, 0
	}
	for i := range s.Signals {
		s.Signals[i].Abnormal = false
		s.Signals[i].Text = "1"
		s.Signals[i].Reading = model.Reading{State: model.ReadingValue, At: night.Add(-12 * time.Second)}
	}
	for i := range s.Matrix {
		s.Matrix[i].Verdict.Reasons = nil
	}
	for i := range s.World.Hosts {
		h := &s.World.Hosts[i]
		h.Reachable, h.Lacks, h.SeenAt, h.Report.At, h.Report.Clock.State = true, nil, night, night, model.ClockOK
		h.Report.Live = nil
	}
	s.Skew = incident.SkewView{Hosts: 60, Effective: 60, At: night.Add(-4 * time.Second), InventoryAt: night.Add(-time.Minute)}
	return s
}

// drill is a rehearsal with faults.
func drill() incident.Snapshot {
	s := trouble()
	s.Mode, s.World.Mode = model.Rehearsing, model.Rehearsing
	s.Faults = []incident.FaultView{{Name: "flags-down", Text: "the flag service answers nobody", Active: true}, {Name: "payment-risk-down", Text: "risk scoring is gone"}}
	return s
}

// few is a snapshot with a handful of hosts, for tests that press many keys.
func few(s incident.Snapshot) incident.Snapshot {
	s.World.Hosts = append(slices.Clone(s.World.Hosts[:2]), s.World.Hosts[14:20]...)
	return s
}

// isTimer tells the commands that only wait: they were made by tea.Tick.
func isTimer(cmd tea.Cmd) bool {
	name := runtime.FuncForPC(reflect.ValueOf(cmd).Pointer()).Name()
	return strings.Contains(name, "bubbletea/v2.Tick") || strings.Contains(name, ").listen") || strings.Contains(name, "SetClipboard")
}

func as(s incident.Snapshot, mode model.Mode) incident.Snapshot {
	s.Mode, s.World.Mode = mode, mode
	return s
}
