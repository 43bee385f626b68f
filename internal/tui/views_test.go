package tui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/sshsig"
)

// From 1x1 to 300x100, in every view and mode: no panic, exactly as many lines
// as the window has, none of them wider.
func TestResizeStorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	snaps := []incident.Snapshot{few(trouble()), few(calm()), {}, few(wide())}
	sizes := [][2]int{{1, 1}, {2, 2}, {3, 1}, {1, 50}, {300, 1}, {10, 5}, {59, 14}, {60, 15}, {75, 24}, {76, 24}, {300, 100}}
	for range 6 {
		sizes = append(sizes, [2]int{1 + rng.IntN(300), 1 + rng.IntN(100)})
	}
	for name, keys := range scenes() {
		for _, snap := range snaps {
			h := sitDown(t, newDesk(snap), 80, 24)
			h.press(keys...)
			for _, s := range sizes {
				h.send(tea.WindowSizeMsg{Width: s[0], Height: s[1]})
				fits(t, fmt.Sprintf("%s at %dx%d", name, s[0], s[1]), h, s[0], s[1])
			}
		}
	}
}

func fits(t *testing.T, what string, h *hands, width, height int) {
	t.Helper()
	lines := strings.Split(h.frame(), "\n")
	if len(lines) != height {
		t.Fatalf("%s: %d lines", what, len(lines))
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w != width {
			t.Fatalf("%s: a line is %d wide: %q", what, w, ansi.Strip(l))
		}
	}
	v := h.m.View()
	if v.Cursor != nil && (v.Cursor.X < 0 || v.Cursor.X >= width || v.Cursor.Y < 0 || v.Cursor.Y >= height) {
		t.Fatalf("%s: cursor at %d,%d", what, v.Cursor.X, v.Cursor.Y)
	}
}

// wide is a fleet with long names and with text of two cells per character.
func wide() incident.Snapshot {
	s := trouble()
	long := strings.Repeat("very-long-name-", 20)
	s.Fleet, s.World.Incident.Title = long, "決済リスクが停止"
	s.Services[0].Service, s.Signals[0].Name, s.Matrix[0].Name = long, long, long
	s.World.Hosts[0].Host, s.World.Hosts[1].Host = long, "決済-01"
	s.Headline.Text = strings.Repeat("決済リスク ", 30)
	s.Log[0].Text = strings.Repeat("決", 300)
	return s
}

// The first frame waits for nothing: from an empty snapshot it says what has not
// been read.
func TestFirstFrameBeforeAnythingAnswered(t *testing.T) {
	d := newDesk(incident.Snapshot{})
	h := sitDown(t, d, 80, 24)
	h.sees("MODE NOT READ", "fleet not read yet", "signals: not read yet", "services: not read yet", "orders: not read yet", "03:14 UTC")
	for view, want := range []string{"signals", "rights", "backends", "runbooks", "hosts", "log"} {
		h.press(fmt.Sprint(view + 1))
		h.sees(want + ": not read yet")
	}
}

func TestEmptyStatesSayWhatToDo(t *testing.T) {
	s := calm()
	s.Backends, s.World.Hosts = nil, nil
	h := sitDown(t, newDesk(s), 80, 24)
	h.sees("no incident is open: i opens one and gives you command", "nothing is in force")
	h.press("3")
	h.sees("the policy names no backend")
	h.press("5")
	h.sees("the inventory names no host")
	h.press("6")
	h.sees("nothing has been written yet")
}

// What needs a person comes first, and each state has its own word.
func TestFleetShowsTroubleFirst(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 30)
	h.press("5")
	var order []string
	for _, l := range strings.Split(h.screen(), "\n") {
		for _, word := range []string{"unreachable", "lacks 1 order", "stale  ", "clock behind", "holds all"} {
			if strings.Contains(l, word) && strings.Contains(l, "-0") || strings.Contains(l, word) && strings.Contains(l, "-11") {
				order = append(order, word)
			}
		}
	}
	got := strings.Join(order[:6], ", ")
	if got != "unreachable, lacks 1 order, lacks 1 order, stale  , clock behind, holds all" {
		t.Errorf("order: %s\n%s", got, h.screen())
	}
	h.press("j", "enter")
	h.sees("context deadline exceeded", "shed checkout to tier 3 (SHED03)")
}

// A selection stays on its host when numbers change the order of the list.
func TestSelectionStaysOnItsHost(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 100, 30)
	h.press("5", "j") // checkout-01
	d.snap.World.Hosts = append([]model.HostView(nil), d.snap.World.Hosts...)
	for i := range d.snap.World.Hosts[:10] {
		d.snap.World.Hosts[i].Reachable = false
	}
	h.refresh()
	if f := h.m.views[fleetAt].(*fleetView); f.listing.id != "checkout-01" {
		t.Errorf("the selection moved to %s", f.listing.id)
	}
}

func TestFilterNarrowsAndEscapeClears(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 30)
	h.press("5", "/").typeText("checkout lacks").press("enter")
	h.sees("checkout-01", "checkout-02", "/checkout lacks: 2 of 60")
	h.seesNot("edge-07", "checkout-03")
	h.press("esc")
	h.sees("edge-07")
}

func TestLogFollowsTheEnd(t *testing.T) {
	s := trouble()
	for i := range 100 {
		s.Log = append(s.Log, incident.LogLine{At: night.Add(time.Duration(i) * time.Second), Actor: "alice", Kind: "note", Text: fmt.Sprintf("line %03d", i)})
	}
	d := newDesk(s)
	h := sitDown(t, d, 80, 24)
	h.press("6")
	h.sees("line 099")
	d.snap.Log = append(d.snap.Log, incident.LogLine{At: night.Add(time.Hour), Text: "the newest"})
	h.refresh()
	h.sees("the newest")
	h.press("k")
	d.snap.Log = append(d.snap.Log, incident.LogLine{At: night.Add(2 * time.Hour), Text: "one more"})
	h.refresh()
	h.seesNot("one more")
	h.press("G")
	h.sees("one more")
}

// Break-glass: plan, confirm by typing, push; the pipeline's word and the hosts'
// reports stand apart.
func TestBreakGlass(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 100, 40)
	told := false
	d.push = func(progress func(incident.Progress)) (incident.Result, error) {
		progress(incident.Progress{Phase: "restart", Done: 3, Total: 6, Message: "batch 3"})
		told = true
		h.sees("restart 3/6", "58 of 60 hold it")
		return incident.Result{State: incident.Partial, Done: 12, Total: 60, Detail: "48 hosts have not told yet"}, nil
	}
	h.press("b", "j", "b")
	h.sees("plan by git", "12 of 60 hosts", "partly", "payments-config is owned by argocd", "IC_DIRECTIVES=2 orders")
	if d.effects() != 0 {
		t.Fatal("a plan has an effect")
	}
	h.press("b")
	h.sees("BREAK-GLASS", "push git")
	h.typeText("push git").press("enter")
	if d.called("push") != 1 || !told {
		t.Fatalf("no push:\n%s", h.screen())
	}
	h.sees("partial: 48 hosts have not told yet")
	h.press("u").typeText("undo git").press("enter")
	if d.called("undo") != 1 {
		t.Fatalf("no undo:\n%s", h.screen())
	}
}

// A plan by one backend never becomes the plan of another one.
func TestLatePlanIsDropped(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 100, 40)
	h.press("3")
	h.hold = true
	h.press("enter", "j", "enter") // host-file is asked, then git
	if len(h.held) != 2 {
		t.Fatalf("%d plans asked for", len(h.held))
	}
	first, second := h.held[0], h.held[1]
	h.hold, h.held = false, nil
	h.send(first)
	if h.m.glass.plan != nil {
		t.Errorf("git was asked, and the plan of %s came", h.m.glass.plan.Backend)
	}
	h.send(second)
	h.send(first)
	if h.m.glass.plan == nil || h.m.glass.plan.Backend != "git" {
		t.Errorf("plan of %+v", h.m.glass.plan)
	}
}

// The verdicts of one chooser never fill another one.
func TestLateChoicesAreDropped(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 30)
	h.hold = true
	h.press("s", "esc", "i")
	h.deliver()
	h.sees("incident and command", "relinquish command")
	h.seesNot("to tier 3")
}

// What an older push still says is not said of the newer one.
func TestLateProgressIsDropped(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 100, 40)
	var old func(incident.Progress)
	h.desk.push = func(progress func(incident.Progress)) (incident.Result, error) {
		if old == nil {
			old = progress
			return incident.Result{State: incident.Blocked}, nil
		}
		old(incident.Progress{Phase: "from the first push"})
		h.seesNot("from the first push")
		progress(incident.Progress{Phase: "from the second push"})
		h.sees("from the second push")
		return incident.Result{State: incident.Effective}, nil
	}
	for range 2 {
		h.press("3", "enter", "enter").typeText("push host-file").press("enter")
	}
	if h.desk.called("push") != 2 {
		t.Fatalf("%d pushes:\n%s", h.desk.called("push"), h.screen())
	}
}

func TestPlanThatFailsSaysWhy(t *testing.T) {
	d := newDesk(trouble())
	d.plan = func(string) (incident.BreakPlan, error) {
		return incident.BreakPlan{}, errors.New("ask git for a plan: connection refused: is the server up?")
	}
	h := sitDown(t, d, 100, 30)
	h.press("3", "enter")
	h.sees("connection refused")
}

func token(t *testing.T, d model.Directive) string {
	payload, err := directive.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := directive.Token(payload, sshsig.Signature{Blob: []byte("signature")})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A pasted token is shown before it is signed; a paste is welcome there, also
// one that a mail has broken into lines.
func TestCosignShowsWhatIsSigned(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 100, 30)
	text := token(t, bypassDirective())
	h.press("c")
	h.send(tea.PasteMsg{Content: "  " + text[:40] + "\n" + text[40:] + " \n"})
	h.press("enter")
	h.sees("CO-SIGN", "skip payment-risk under 50.00 USD", "5000.00 USD in the whole fleet", "risk scoring is down", "03:27:07Z")
	h.typeText("sign risk-bypass-small-orders").press("enter")
	if d.called("cosign") != 1 || d.tokens[0] != text {
		t.Fatalf("cosigned %v", d.tokens)
	}
}

func TestForeignTokenIsNotSigned(t *testing.T) {
	d := newDesk(trouble())
	foreign := bypassDirective()
	foreign.Fleet = "other"
	h := sitDown(t, d, 100, 30)
	h.press("c")
	h.send(tea.PasteMsg{Content: token(t, foreign)})
	h.press("enter", "y", "enter")
	if d.effects() != 0 {
		t.Fatal("a token of another fleet was signed")
	}
	h.press("c")
	h.send(tea.PasteMsg{Content: "hello"})
	h.press("enter")
	h.sees("that is no token")
}

func TestIncidentCommands(t *testing.T) {
	d := newDesk(calm())
	h := sitDown(t, d, 80, 24)
	h.press("i").typeText("close").press("enter")
	h.sees("no incident is open")
	h.press("ctrl+u").typeText("open").press("enter")
	h.sees("begins a log and gives you command")
	h.press("y")
	if d.called("command") != 1 {
		t.Fatalf("not opened:\n%s", h.screen())
	}
}

// Closing is refused with the reasons, as long as something is left.
func TestCloseIsBlockedBySentences(t *testing.T) {
	d := newDesk(trouble())
	h := sitDown(t, d, 80, 24)
	h.press("i").typeText("close").press("enter")
	h.sees("cannot be given now: a bypass is in force until 03:27:07Z", "1 override is on hosts")
	h.press("y")
	if d.effects() != 0 {
		t.Fatal("closed over a bypass")
	}
}

func TestFaultsOfADrill(t *testing.T) {
	d := newDesk(drill())
	h := sitDown(t, d, 80, 24)
	h.press("f")
	h.sees("flags-down", "active: choosing it clears it")
	h.press("enter")
	if d.called("fault") != 1 {
		t.Fatal("no fault was cleared")
	}
}

// The palette finds rights, views, hosts, faults and commands, and what it runs
// goes the same way as the key.
func TestPaletteFindsEverything(t *testing.T) {
	d := newDesk(drill())
	for text, want := range map[string]string{
		"fleet": "[5 Fleet]", "edge-07": "connection refused", "risk-bypass-small": "why?", "incident and": "incident and command", "plan git": "plan by git",
		"close the": "cannot be given now",
	} {
		h := sitDown(t, d, 80, 30)
		h.press(":").typeText(text).press("enter")
		h.sees(want)
	}
	if d.effects() != 0 {
		t.Error("the palette gave an order")
	}
}

// Leaving says what goes on without the console.
func TestLeavingSaysWhatGoesOn(t *testing.T) {
	h := sitDown(t, newDesk(trouble()), 80, 24)
	h.press("q")
	h.sees("ends 03:27:07Z (in 13m00s) on every host by itself", "stays until it is removed")
	if h.quit {
		t.Fatal("left without saying")
	}
	h.press("q")
	if !h.quit {
		t.Fatal("q twice does not leave")
	}
	if !strings.Contains(h.m.farewell(), "on every host by itself") {
		t.Errorf("farewell: %q", h.m.farewell())
	}
	h = sitDown(t, newDesk(calm()), 80, 24)
	if h.press("q"); !h.quit {
		t.Error("a quiet console has nothing to say when it is left")
	}
}

// A panic in a call to the desk leaves in order, with an error.
func TestPanicInTheDeskLeavesInOrder(t *testing.T) {
	d := newDesk(trouble())
	d.execute = func(incident.Act) (incident.Result, error) { panic("a bug") }
	h := toShed(t, d)
	h.press("y")
	if !h.quit && h.m.crash == nil {
		t.Fatal("the console goes on after a panic")
	}
	if h.m.crash == nil || !strings.Contains(h.m.crash.Error(), "a bug") {
		t.Errorf("crash: %v", h.m.crash)
	}
}

func TestRunbooksOfAPolicy(t *testing.T) {
	root := &policy.Root{}
	b, err := policy.NewBundle(root, model.PolicyRef{}, nil, policy.Documents{
		Ladder: &policy.LadderDoc{Signals: map[string]policy.Signal{"a": {Runbook: "x"}, "b": {Runbook: "x"}, "c": {}}},
		Rights: &policy.RightsDoc{Rights: map[string]policy.Right{"r": {Runbook: "y"}, "s": {Runbook: "x"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(RunbooksOf(b))
	if got != "[{x [a b] [s]} {y [] [r]}]" {
		t.Errorf("got %s", got)
	}
}

// The lease of somebody else, a lapsed and an unconfirmed one are told apart.
func TestCommander(t *testing.T) {
	for _, c := range []struct {
		lease model.Lease
		want  string
	}{
		{model.Lease{Holder: "bob", Until: night.Add(time.Hour), Confirmed: true}, "bob commands, 1h00m left"},
		{model.Lease{Holder: "alice", Until: night.Add(time.Hour)}, "alice (you) commands, 1h00m left, unconfirmed"},
		{model.Lease{Holder: "bob", Deputy: "carol", Until: night.Add(time.Hour), Confirmed: true}, "bob commands, 1h00m left, deputy carol"},
		{model.Lease{Holder: "bob", Until: night.Add(-time.Minute)}, "nobody commands: the lease of bob lapsed 1m ago"},
		{model.Lease{Holder: "bob", Deputy: "carol", Until: night.Add(-time.Minute)}, "lapsed 1m ago, deputy carol"},
		{model.Lease{}, "nobody commands: i takes command"},
	} {
		s := trouble()
		s.World.Incident.Lease = c.lease
		sitDown(t, newDesk(s), 100, 30).sees(c.want)
	}
}

// A review that is owed is spoken of with and without an incident.
func TestReviewsOwed(t *testing.T) {
	owed := incident.Owed{ID: "01KC0000000000000000000009", Title: "skip payment-risk", Group: "finance", At: night}
	for _, s := range []incident.Snapshot{trouble(), calm()} {
		s.Owed = []incident.Owed{owed, owed}
		sitDown(t, newDesk(s), 140, 50).sees("review of skip payment-risk")
	}
}

// Where no host verifies anything, that is said instead of what is missing.
func TestAFleetWithoutHostsIsAdvised(t *testing.T) {
	s := calm()
	s.Carriers, s.Skew = nil, incident.SkewView{}
	for i := range s.Matrix {
		s.Matrix[i].Verdict.Assurance = model.Advised
	}
	screen := sitDown(t, newDesk(s), 100, 30)
	screen.sees("the policy names no host: ic decides and logs, a person executes")
	screen.seesNot("orders go by break-glass")
}

// What a person has to do by hand is said where no host does it.
func TestAdviceIsShownWithTheOutcome(t *testing.T) {
	list := resultFacts(&executed{result: incident.Result{State: incident.Advised, Advice: []string{"turn it off at the load balancer", "say so: ic recover"}}})
	if got := fmt.Sprint(list); !strings.Contains(got, "by hand") || !strings.Contains(got, "load balancer") || !strings.Contains(got, "ic recover") {
		t.Error(got)
	}
}

// The policy's end comes near in words and then in words that are critical.
func TestPolicyEnd(t *testing.T) {
	for left, want := range map[time.Duration]string{
		51 * 24 * time.Hour: "policy v7, 51d left", 12 * 24 * time.Hour: "! policy v7, 12d left", -time.Hour: "X policy v7 expired 1h00m ago",
	} {
		s := trouble()
		s.PolicyEnd = night.Add(left)
		sitDown(t, newDesk(s), 100, 30).sees(want)
	}
}
