package tui

import (
	"context"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/incident"
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
	runs *fakeRuns
	m    *console
	now  time.Time // the world's clock
	real time.Time
	held []tea.Msg // answers kept back
	hold bool
	quit bool
}

func sitDown(t testing.TB, d *fakeDesk, width, height int) *hands {
	h := &hands{t: t, desk: d, now: night, real: night, runs: newRuns(t, d)}
	h.m = newConsole(t.Context(), d, Options{
		Runs: h.runs,
		Now:  func() time.Time { return h.now }, Real: func() time.Time { return h.real },
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
	h.run(h.m.readShelf())
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

// isTimer tells the commands that only wait: they were made by tea.Tick.
func isTimer(cmd tea.Cmd) bool {
	name := runtime.FuncForPC(reflect.ValueOf(cmd).Pointer()).Name()
	return strings.Contains(name, "bubbletea/v2.Tick") || strings.Contains(name, ").listen") || strings.Contains(name, "SetClipboard")
}
