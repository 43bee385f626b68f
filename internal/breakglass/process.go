package breakglass

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/degradedmode/ic/plugins/sdk"
	"github.com/hashicorp/go-plugin/runner"
)

// process is one backend's process, as go-plugin drives it. It exists because
// go-plugin's own gives the child our terminal, our process group and, when we
// are killed, eternal life.
type process struct {
	cmd    *exec.Cmd
	stdout *firstLine
	stderr io.ReadCloser
	wait   func() error

	mu       sync.Mutex
	pid      int
	graceful bool // it was asked to end: what it left running is its own business
	killed   bool
	ended    bool
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares the program: no terminal and no input, a session of its
// own, and no environment but env.
func newProcess(p program, env []string) (*process, error) {
	cmd := &exec.Cmd{Path: p.path, Args: p.argv(), Env: env, Dir: "/", ExtraFiles: p.files}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	return &process{cmd: cmd, stdout: &firstLine{ReadCloser: stdout}, stderr: stderr}, nil
}

// Start implements runner.Runner.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed {
		return errors.New("it was given up before it started")
	}
	wait, err := sdk.StartBound(p.cmd)
	if err != nil {
		return err
	}
	p.wait, p.pid = wait, p.cmd.Process.Pid
	return nil
}

// Wait implements runner.Runner. It is called once, after both pipes have ended.
func (p *process) Wait(context.Context) error {
	err := p.wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.graceful {
		p.killGroup() // what a crashed backend has left running
	}
	p.ended = true
	return err
}

// Kill implements runner.Runner.
func (p *process) Kill(context.Context) error {
	p.kill()
	return nil
}

// kill ends the process, and whatever it has started.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed, p.graceful = true, false
	if p.pid == 0 || p.ended {
		return
	}
	p.killGroup()
	time.AfterFunc(drainLimit, func() {
		p.stdout.Close()
		p.stderr.Close()
	})
}

func (p *process) killGroup() {
	_ = syscall.Kill(-p.pid, syscall.SIGKILL) // the only failure is that nobody is left
}

// letGo says that the process has been asked to end.
func (p *process) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.graceful = !p.killed
}

// started reports whether there ever was a process.
func (p *process) started() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid != 0
}

// Stdout implements runner.Runner.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr implements runner.Runner.
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Name implements runner.Runner.
func (p *process) Name() string { return p.cmd.Args[0] }

// ID implements runner.Runner. Without one, go-plugin knows that there is
// nothing to kill.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

// Diagnose implements runner.Runner; we explain failures ourselves.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// firstLine remembers how the output begins: what a plugin printed in the place
// of its handshake.
type firstLine struct {
	io.ReadCloser
	mu   sync.Mutex
	text []byte
	full bool
}

func (f *firstLine) Read(into []byte) (int, error) {
	n, err := f.ReadCloser.Read(into)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.full {
		f.text = append(f.text, into[:n]...)
		if i := bytes.IndexByte(f.text, '\n'); i >= 0 {
			f.text, f.full = f.text[:i], true
		}
		if len(f.text) > maxFirstLine {
			f.text, f.full = f.text[:maxFirstLine], true
		}
	}
	return n, err
}

func (f *firstLine) get() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.text)
}

// environment is what a backend gets to see of ours. TMPDIR is a folder of its
// own, so that nothing it leaves behind stays.
func environment(getenv func(string) string, tmp string, agent bool) []string {
	out := []string{"TMPDIR=" + tmp}
	names := []string{"PATH", "HOME", "LANG"}
	if agent {
		names = append(names, "SSH_AUTH_SOCK")
	}
	for _, name := range names {
		if value := getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// own is the program that runs now, also when its file has been replaced or
// deleted, as far as the platform can.
func own() (string, error) {
	if _, err := os.Stat(procSelf); err == nil {
		return procSelf, nil
	}
	return os.Executable()
}

const procSelf = "/proc/self/exe"
