package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/charmbracelet/x/xpty"
	"github.com/degradedmode/ic/internal/decisions"
	"github.com/degradedmode/ic/internal/drill/scenario"
	"github.com/degradedmode/ic/internal/drill/score"
	"github.com/degradedmode/ic/internal/incident"
)

// eyes are a person before a program in a terminal: what stands there, and keys.
type eyes struct {
	t   *testing.T
	pty *xpty.UnixPty
	cmd *exec.Cmd

	mu    sync.Mutex
	emu   *vt.Emulator
	plain bytes.Buffer // what was written since the screen was left
	wrote chan struct{}
}

// patience is how long anything may take on a slow machine; nothing waits for it
// when all is well.
const patience = 60 * time.Second

func watch(t *testing.T, dir string, args ...string) *eyes {
	t.Helper()
	p, err := xpty.NewUnixPty(100, 30)
	if err != nil {
		t.Fatal(err)
	}
	e := &eyes{t: t, pty: p, emu: vt.NewEmulator(100, 30), wrote: make(chan struct{}, 1)}
	e.cmd = exec.Command(os.Args[0], args...)
	e.cmd.Args[0] = "ic" // the test binary is it under this name
	e.cmd.Dir = dir
	e.cmd.Env = []string{"TERM=xterm-256color", "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "IC_STATE_DIR=" + filepath.Join(dir, "state")}
	if err := p.Start(e.cmd); err != nil {
		t.Fatal(err)
	}
	_ = p.Slave().Close() // the program's end is the last one
	go e.look()
	go func() { _, _ = io.Copy(io.Discard, e.emu) }() // a terminal that answers nothing
	t.Cleanup(func() {
		_ = e.cmd.Process.Kill()
		_ = p.Close()
		_ = e.emu.InputPipe().(io.Closer).Close()
	})
	return e
}

func (e *eyes) look() {
	chunk := make([]byte, 32<<10)
	for {
		n, err := e.pty.Read(chunk)
		if n > 0 {
			e.mu.Lock()
			_, _ = e.emu.Write(chunk[:n])
			e.plain.Write(chunk[:n])
			e.mu.Unlock()
			select {
			case e.wrote <- struct{}{}:
			default:
			}
		}
		if err != nil {
			close(e.wrote)
			return
		}
	}
}

func (e *eyes) screen() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for y := range e.emu.Height() {
		var b strings.Builder
		for x := 0; x < e.emu.Width(); x++ {
			c := e.emu.CellAt(x, y)
			if c == nil || c.Content == "" {
				b.WriteByte(' ')
				continue
			}
			b.WriteString(c.Content)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return strings.Join(lines, "\n")
}

// sees waits until all of the texts are on the screen.
func (e *eyes) sees(texts ...string) {
	e.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		missing := ""
		words := strings.Join(strings.Fields(e.screen()), " ")
		for _, text := range texts {
			if !strings.Contains(words, text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case _, open := <-e.wrote:
			if !open {
				e.t.Fatalf("the program ended before %q:\n%s", missing, e.screen())
			}
		case <-limit.C:
			e.t.Fatalf("%q does not come:\n%s", missing, e.screen())
		}
	}
}

// types types one key after the other, as fast as a quick person, once the keyboard
// has been quiet as long as a dialog wants it.
func (e *eyes) types(text string) {
	e.t.Helper()
	<-time.After(500 * time.Millisecond)
	for _, c := range text {
		if _, err := e.pty.Write([]byte(string(c))); err != nil {
			e.t.Fatal(err)
		}
		<-time.After(15 * time.Millisecond)
	}
}

// ends waits for the program's end.
func (e *eyes) ends() (code int, said string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = xpty.WaitProcess(ctx, e.cmd)
	for range e.wrote { // until everything has been read
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cmd.ProcessState.ExitCode(), e.plain.String()
}

const shortDrill = `scenario  risk-short
title     The risk check is gone for three minutes
source    a test
why       three minutes are enough to see a bypass open and end

fleet     shop 12
lasts     6m
people    ines commander reacts 10s acts 5s
people    fiona finance reacts 10s

at 10s    inject payment-risk-down
at 3m     clear payment-risk-down

baseline
  at 1m     ines flag bypass-risk on
  at 4m     ines flag bypass-risk off

with ic
  on checkout-errors abnormal ines do risk-bypass-small-orders scope checkout
  on payment-risk-up normal ines do end-bypass scope checkout

expect    ic bypass-open = 0
`

const shortBook = `---
v: 1
id: risk-gone
owner: payments
use_when: payment-risk does not answer and checkout fails
valid_until: 2027-03-01
max_duration: 45m
---
# Payment risk is gone

## Is it so?

` + "```ic-step" + `
id: see
check: {signal: checkout-errors, is: abnormal}
timeout: 4m
on_timeout: stop
` + "```" + `

## What is on the graph?

` + "```ic-step" + `
id: graph
note: {ask: 'What does the graph of checkout show?'}
` + "```" + `

## Which orders?

` + "```ic-step" + `
id: choose
decide:
  ask: How large?
  options:
    - {choose: small, means: orders under 50, goto: open}
    - {choose: none, means: nothing is opened, goto: end}
` + "```" + `

## Skip the check for small orders

` + "```ic-step" + `
id: open
do: {right: risk-bypass-small-orders, scope: checkout, for: 15m, reason: payment-risk is gone}
timeout: 2m
on_timeout: ask
probe: {reach: {at_least: 90}}
irreversible: orders that went through cannot be taken back
` + "```" + `

## Wait

` + "```ic-step" + `
id: back
wait: {until: {signal: payment-risk-up, is: normal}, at_most: 15m}
on_timeout: continue
` + "```" + `

## End it

` + "```ic-step" + `
id: close
do: {right: end-bypass, scope: checkout, reason: payment-risk is back}
timeout: 2m
on_timeout: ask
probe: {bypass: {control: payment-risk, is: closed}}
irreversible: an end is an end
` + "```" + `
`

func writeDrill(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"risk-short.scenario": shortDrill, "risk-gone.md": shortBook} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A person follows a runbook at the console of a rehearsal, on a real engine and real
// desks: sees, notes, decides, opens, waits, closes; the card says so.
func TestAPersonRehearsesARunbookAtTheConsole(t *testing.T) {
	dir := writeDrill(t)
	e := watch(t, dir, "rehearse", "risk-short.scenario", "--with", "risk-gone.md", "--speed", "12")
	e.sees("REHEARSAL", "shop-sim", "policy v1")
	e.types("4")
	e.sees("risk-gone", "Payment risk is gone")
	e.types("/risk-gone\r\r")
	e.sees("use when", "enter: start a run")
	e.types("\r")
	e.sees("start a run of risk-gone", "it is followed here although it is not signed")
	e.types("y")
	e.sees("* current see", "looks now")
	e.types("\r")
	e.sees("+ done see", "* current graph")
	e.types("\r")
	e.types("done\r")
	e.sees("that says nothing")
	e.types("\x15checkout fails 33 %\r")
	e.sees("+ done graph", "* current choose")
	e.types("\r")
	e.sees("How large?", "1 to 9 answer")
	e.types("1")
	e.sees("* current open")
	e.types("\r")
	e.sees("LOOSEN", "risk-gone, step open", "type skip payment-risk")
	e.types("skip payment-risk\r")
	e.sees("+ done open", "hosts report it", "* current back")
	e.types("\r")
	e.sees("+ done back", "* current close")
	e.types("\r")
	e.sees("gives the order")
	e.types("y")
	e.sees("run of risk-gone is finished")
	e.sees("REHEARSAL is over", "PASSED", "this run", "kept: ", "q or enter leaves") // at the end of the scenario
	e.types("\r")
	code, said := e.ends()
	if code != 0 || !strings.Contains(said, "REHEARSAL    PASSED") || !strings.Contains(said, "a person at the console as ines (commander) at 12 x real time, runbook risk-gone") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if strings.Contains(said, "ic: goes on") {
		t.Errorf("something is said to go on after a rehearsal:\n%s", said)
	}
	for _, gone := range []string{"incidents", "policy"} {
		if _, err := os.Stat(filepath.Join(dir, "state", gone)); err == nil {
			t.Errorf("the rehearsal left %s in the state folder", gone)
		}
	}
	if got := keptIn(t, dir); !strings.Contains(got, `"played":{"by":"person","who":"ines","role":"commander","speed":12,"acts":`) || !strings.Contains(got, `"runbook":"risk-gone","begun":true}`) {
		t.Errorf("kept %s", got)
	}
}

// keptIn is the one rehearsal that the state folder keeps.
func keptIn(t *testing.T, dir string) string {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(dir, "state", "rehearsals", "*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %q: %v", kept, err)
	}
	raw, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Who sits there and does nothing has not passed, and is told so before the console
// closes; a key that was meant for the fleet does not close it.
func TestARehearsalInWhichNobodyActsIsInconclusive(t *testing.T) {
	dir := writeDrill(t)
	quiet := strings.NewReplacer("lasts     6m", "lasts     3m", "at 3m     clear", "at 2m     clear", "at 4m     ines flag", "at 2m     ines flag").Replace(shortDrill)
	if err := os.WriteFile(filepath.Join(dir, "risk-short.scenario"), []byte(quiet), 0o600); err != nil {
		t.Fatal(err)
	}
	e := watch(t, dir, "rehearse", "risk-short.scenario", "--speed", "20", "--as", "finance", "--html", "card.html")
	e.sees("you are fiona (finance): 3m at 20 x real time")
	e.sees("REHEARSAL is over", "INCONCLUSIVE", "fiona did nothing at the console, and 2 acts of the scenario were left to that seat: nothing", "was rehearsed by anybody", "written: card.html")
	e.types("s")
	e.sees("the scenario is over: q or enter leaves")
	e.types("q")
	code, said := e.ends()
	if code != 1 || !strings.Contains(said, "! INCONCLUSIVE") || !strings.Contains(said, "nothing was rehearsed by anybody") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if got := keptIn(t, dir); !strings.Contains(got, `"played":{"by":"person","who":"fiona","role":"finance","speed":20,"due":2}`) {
		t.Errorf("kept %s", got)
	}
}

// Who leaves early has rehearsed something, and the card says how far.
func TestLeavingARehearsalIsSaidOnTheCard(t *testing.T) {
	e := watch(t, writeDrill(t), "rehearse", "risk-short.scenario", "--speed", "20")
	e.sees("REHEARSAL", "shop-sim", "policy v1")
	e.types("f")
	e.sees("a scenario says what goes wrong here")
	e.sees("02:01 UTC") // the fault has been injected and has taken
	e.types("q")
	e.sees("leaving the rehearsal", "of 6m have passed: leaving ends it here, the verdict is aborted")
	e.types("\x1b")
	e.sees("1 Overview", "quit")
	e.types("q")
	e.sees("leaving the rehearsal")
	e.types("y")
	code, said := e.ends()
	if code != 1 || !strings.Contains(said, "ABORTED") || !strings.Contains(said, "ines left at ") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

// What one person proposes is signed by the others of the scenario, as late as it says,
// and the record has both; an order after the end is refused.
func TestTheOthersOfAScenarioSignWhatAPersonProposes(t *testing.T) {
	s, err := scenario.Parse("risk-short.scenario", []byte(shortDrill), scenario.Shop())
	if err != nil {
		t.Fatal(err)
	}
	r := &rehearsal{a: &app{real: time.Now}, speed: maxSpeed}
	r.calls, r.hush = context.WithCancel(t.Context())
	if r.person, err = seatOf(s, "commander"); err != nil {
		t.Fatal(err)
	}
	o := scenario.Options{Seed: 1, Mode: score.WithIC, State: t.TempDir(), Paced: true, Acts: func(_ context.Context, run *scenario.Run) (err error) {
		r.desk, err = run.World().Desk(r.person.Name)
		return err
	}}
	if r.run, err = scenario.Open(t.Context(), s, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.busy.Go(func() { r.pace(ctx) })
	d := &rehearsalDesk{Desk: r.desk, r: r}
	d.Refresh(ctx)
	p, err := d.Preview(decisions.Ask{Right: "risk-bypass-medium-orders", Scope: "checkout", Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	proposed, _ := d.Execute(ctx, incident.Act{Request: p.Request, Asked: true})
	if proposed.State != incident.Proposed {
		t.Errorf("the order is %s", proposed.State)
	}
	signed := func() bool {
		d.Refresh(ctx)
		return len(d.Snapshot().Proposals) == 0
	}
	for until := r.run.Now() + time.Minute; !signed() && r.run.Now() < until; {
		_ = pause(ctx, stepEvery) // the world goes on meanwhile
	}
	cancel()
	r.end()
	if _, err := d.Execute(t.Context(), incident.Act{Request: p.Request, Asked: true}); !errors.Is(err, errRehearsed) {
		t.Errorf("after the end: %v", err)
	}
	record, err := r.run.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if record.CapCents == 0 || !slices.ContainsFunc(record.Events, func(e score.Event) bool { return e.Who == "fiona" && e.What == "cosigns" }) {
		t.Errorf("cap %d, events %+v", record.CapCents, record.Events)
	}
}

// In front of a real fleet view 4 has the shelf beside the policy, and begins nothing
// that nobody has signed.
func TestTheConsoleShowsTheShelf(t *testing.T) {
	state := t.TempDir()
	seatAt(t, state)
	if err := os.Mkdir(filepath.Join(state, "runbooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "runbooks", "risk-gone.md"), []byte(shortBook), 0o600); err != nil {
		t.Fatal(err)
	}
	e := watch(t, state, "--state", state)
	e.sees("Overview", "policy v1")
	e.types("4")
	e.sees("risk-gone", "unsigned", "nobody of the group rights-owners has signed it")
	e.types("/risk-gone\r\r")
	e.sees("What does the graph of checkout show?", "enter: start a run")
	e.types("\r")
	e.sees("cannot be given now: it is not signed, and outside a rehearsal only a signed one is followed")
	e.types("y")
	e.types("\x1b")
	e.sees("cancelled, nothing was done")
	e.types("\x03")
	if code, said := e.ends(); code != exitInterrupted {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if _, err := os.Stat(filepath.Join(state, "incidents")); err == nil {
		t.Error("an incident was opened")
	}
}
