package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/charmbracelet/x/xpty"
	"golang.org/x/term"

	"github.com/degradedmode/ic/internal/incident"
)

// child names the console that this test binary becomes when a test starts it in
// a terminal of its own.
const child = "IC_TUI_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(child); name != "" {
		os.Exit(beConsole(name))
	}
	os.Exit(m.Run())
}

// beConsole runs the real program on the real terminal with a fake desk.
func beConsole(name string) int {
	d := newDesk(trouble())
	opt := Options{
		Now: func() time.Time { return night }, Real: time.Now,
		Input: os.Stdin, Output: os.Stdout, Environ: os.Environ(),
	}
	switch name {
	case "calm":
		d.snap = calm()
	case "desk-panics":
		d.plan = func(string) (incident.BreakPlan, error) { panic("a bug in the desk") }
	case "console-panics":
		opt.Runbooks = func() []Runbook { panic("a bug in the console") }
	}
	err := Run(context.Background(), d, opt)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrInterrupted):
		return 130
	default:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

// terminal is a pseudo-terminal with an emulator that shows what is on it.
type terminal struct {
	t      *testing.T
	pty    *xpty.UnixPty
	cmd    *exec.Cmd
	before *term.State

	mu    sync.Mutex
	emu   *vt.Emulator
	bytes int
	wrote chan struct{} // something was written
}

// limit is how long anything may take on a slow machine; nothing waits for it
// when all is well.
const limit = 20 * time.Second

func start(t *testing.T, name string, width, height int, answers bool) *terminal {
	t.Helper()
	p, err := xpty.NewUnixPty(width, height)
	if err != nil {
		t.Fatal(err)
	}
	tt := &terminal{t: t, pty: p, emu: vt.NewEmulator(width, height), wrote: make(chan struct{}, 1)}
	if tt.before, err = term.GetState(int(p.Slave().Fd())); err != nil {
		t.Fatal(err)
	}
	tt.cmd = exec.Command(os.Args[0])
	tt.cmd.Env = append(os.Environ(), child+"="+name, "TERM=xterm-256color")
	if err := p.Start(tt.cmd); err != nil {
		t.Fatal(err)
	}
	go tt.show()
	go tt.reply(answers)
	t.Cleanup(func() {
		_ = tt.cmd.Process.Kill()
		_ = p.Close()
		_ = tt.emu.InputPipe().(io.Closer).Close() // ends reply; Emulator.Close would race with it
	})
	return tt
}

// show puts what the program writes on the emulator's screen.
func (tt *terminal) show() {
	buf := make([]byte, 1<<16)
	for {
		n, err := tt.pty.Read(buf)
		if n > 0 {
			tt.mu.Lock()
			tt.bytes += n
			_, _ = tt.emu.Write(buf[:n])
			tt.mu.Unlock()
			select {
			case tt.wrote <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// reply sends the terminal's answers back, or swallows them: a relay that never
// answers must not hold up the first frame.
func (tt *terminal) reply(answers bool) {
	buf := make([]byte, 256)
	for {
		n, err := tt.emu.Read(buf)
		if err != nil {
			return
		}
		if answers {
			_, _ = tt.pty.Write(buf[:n])
		}
	}
}

func (tt *terminal) screen() string {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.emu.String()
}

// alternate reports whether the program still holds the screen or the cursor.
func (tt *terminal) alternate() bool {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.emu.IsAltScreen() || tt.emu.CursorHidden()
}

// written is how many bytes came over the line so far.
func (tt *terminal) written() int {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	return tt.bytes
}

// until waits for a screen that satisfies a condition.
func (tt *terminal) until(what string, ok func(screen string) bool) {
	tt.t.Helper()
	deadline := time.After(limit)
	for !ok(tt.screen()) {
		select {
		case <-tt.wrote:
		case <-deadline:
			tt.t.Fatalf("no screen with %s:\n%s", what, tt.screen())
		}
	}
}

func (tt *terminal) sees(text string) {
	tt.t.Helper()
	tt.until(text, func(s string) bool { return strings.Contains(squash(s), text) })
}

func (tt *terminal) keys(s string) {
	tt.t.Helper()
	if _, err := tt.pty.Write([]byte(s)); err != nil {
		tt.t.Fatal(err)
	}
}

// ends waits for the program's end and checks that the terminal is as it was.
func (tt *terminal) ends() int {
	tt.t.Helper()
	done := make(chan error, 1)
	go func() { done <- tt.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(limit):
		tt.t.Fatalf("the program does not end:\n%s", tt.screen())
	}
	after, err := term.GetState(int(tt.pty.Slave().Fd()))
	if err != nil {
		tt.t.Fatal(err)
	}
	if fmt.Sprint(*after) != fmt.Sprint(*tt.before) {
		tt.t.Errorf("the terminal's settings were not given back: %v, was %v", *after, *tt.before)
	}
	tt.until("the normal screen", func(string) bool { return !tt.alternate() })
	return tt.cmd.ProcessState.ExitCode()
}

// What a slow line has to carry, with room for a longer frame.
const (
	bytesPerKey   = 700
	bytesPerStart = 9000
)

func TestConsoleInATerminal(t *testing.T) {
	tt := start(t, "trouble", 80, 24, true)
	tt.sees("payment-risk-up is 0, below 1")
	if !tt.alternate() {
		t.Error("not on the alternate screen")
	}
	tt.keys("5")
	tt.sees("checkout-01")
	tt.sees(">? edge-07")
	before := tt.written()
	tt.keys("j")
	tt.sees(">! checkout-01")
	if n := tt.written() - before; n > bytesPerKey {
		t.Errorf("a key costs %d bytes over the line, at most %d", n, bytesPerKey)
	}
	tt.keys("/lacks\r")
	tt.sees("/lacks: 2 of 60")
	if err := tt.pty.Resize(120, 40); err != nil {
		t.Fatal(err)
	}
	tt.mu.Lock()
	tt.emu.Resize(120, 40)
	tt.mu.Unlock()
	_ = tt.cmd.Process.Signal(syscall.SIGWINCH)
	tt.until("120 columns", func(s string) bool { return len(strings.Split(s, "\n")) == 40 && strings.Contains(s, "via") })
	tt.keys("q")
	tt.sees("what goes on without this console")
	tt.keys("q")
	if code := tt.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	tt.sees("on every host by itself")
}

func TestMuteTerminalDoesNotHoldUpTheFirstFrame(t *testing.T) {
	tt := start(t, "calm", 80, 24, false)
	tt.sees("every signal is within its bounds")
	if n := tt.written(); n > bytesPerStart {
		t.Errorf("the first frame costs %d bytes, at most %d", n, bytesPerStart)
	}
	tt.keys("q")
	if code := tt.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTerminalIsGivenBack(t *testing.T) {
	cases := []struct {
		name, child string
		leave       func(*terminal)
		code        int
	}{
		{"SIGTERM", "trouble", func(tt *terminal) { _ = tt.cmd.Process.Signal(syscall.SIGTERM) }, 0},
		{"SIGINT", "trouble", func(tt *terminal) { _ = tt.cmd.Process.Signal(syscall.SIGINT) }, 130},
		{"ctrl-c", "trouble", func(tt *terminal) { tt.keys("\x03") }, 130},
		{"panic in a call", "desk-panics", func(tt *terminal) { tt.keys("3\r") }, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tt := start(t, c.child, 80, 24, true)
			tt.sees("payment-risk-up is 0, below 1")
			c.leave(tt)
			if code := tt.ends(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, tt.screen())
			}
		})
	}
}

// A fault in the console itself also gives the terminal back.
func TestPanicInTheConsoleGivesTheTerminalBack(t *testing.T) {
	tt := start(t, "console-panics", 80, 24, true)
	if code := tt.ends(); code != 1 {
		t.Errorf("exit code %d:\n%s", code, tt.screen())
	}
}

func TestNoTerminalIsTold(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if IsTerminal(r, w) || IsTerminal(strings.NewReader(""), w) {
		t.Error("a pipe is no terminal")
	}
	p, err := xpty.NewUnixPty(80, 24)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if !IsTerminal(p.Slave(), p.Slave()) {
		t.Error("a pty is a terminal")
	}
}
