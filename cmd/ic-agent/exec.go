package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
	"golang.org/x/term"
)

// Exit codes of exec besides those of its program, as a shell has them.
const (
	exitNotRun   = 126 // it is there and cannot be run
	exitNotFound = 127
	exitSignal   = 128 // plus the signal that ended it
)

// agentEnv tells a program where the agent beside it answers.
const agentEnv = "IC_AGENT"

// hearLimit is how long a program waits at its start for what the watched file and
// the flag service say. Its environment is what it was told then.
const hearLimit = 3 * time.Second

// process is what exec has of its own process, passed in.
type process struct {
	environ     []string
	in          *os.File
	out, errOut *os.File
}

// execute runs a program under the directives of its environment: an agent of its
// own beside it, and what is in force in its environment. When the agent cannot
// start, the program does all the same: nothing is opened for it, and no service
// stays down because of us.
func execute(cfg *config, command []string, p process, say func(string)) int {
	said := []string{hostrun.EnvCondition + "=no-agent"}
	a, err := startAgent(cfg, anyPort, valueOf(p.environ, hostrun.EnvName), say)
	if err != nil {
		say(err.Error())
		say(command[0] + " runs without directives; it will not be found among the hosts that report")
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), hearLimit)
		a.run.Heard(ctx)
		cancel()
		said = a.run.Environment()
		if at := nearest(a.answersOn()); at != "" {
			said = append(said, agentEnv+"="+at)
		}
		go func() {
			if err := <-a.failed; !errors.Is(err, http.ErrServerClosed) {
				say(fmt.Sprintf("it answers no more: %v", err))
			}
		}()
	}
	code := supervise(command, append(withoutOurs(p.environ), said...), p, say)
	if a != nil {
		if err := a.stop(); err != nil {
			say(err.Error())
		}
	}
	return code
}

// nearest is where a program on this machine asks best. A socket needs no port, and
// the file system guards it; whoever answers everywhere answers on loopback too.
func nearest(answers []string) string {
	best := ""
	for _, at := range answers {
		if strings.HasPrefix(at, unixPrefix) {
			return at
		}
		host, port, err := net.SplitHostPort(strings.TrimPrefix(at, httpPrefix))
		switch ip := net.ParseIP(host); {
		case err != nil || best != "":
		case hostrun.Loopback(host):
			best = at
		case ip != nil && ip.IsUnspecified():
			best = httpPrefix + net.JoinHostPort("127.0.0.1", port)
		}
	}
	return best
}

// withoutOurs drops what only an agent may say: a variable that was set by hand
// would pass for a directive.
func withoutOurs(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case agentEnv, hostrun.EnvAt, hostrun.EnvAsOf, hostrun.EnvCondition, hostrun.EnvPosture:
			return true
		}
		return strings.HasPrefix(name, hostrun.EnvTier) || strings.HasPrefix(name, hostrun.EnvOff)
	})
}

func valueOf(environ []string, name string) string {
	for _, line := range environ {
		if key, value, _ := strings.Cut(line, "="); key == name {
			return value
		}
	}
	return ""
}

// supervise runs the program, hands signals on and returns its exit code. It stays
// on one thread, since a child that dies with its parent dies with that thread.
func supervise(command, environ []string, p process, say func(string)) int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := exec.LookPath(command[0])
	if err != nil {
		say(err.Error())
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return exitNotFound
		}
		return exitNotRun
	}
	signals := make(chan os.Signal, 16)                               // a burst of them
	if on := handedOn(term.IsTerminal(int(p.in.Fd()))); len(on) > 0 { // Notify would take none for all
		signal.Notify(signals, on...)
	}
	defer signal.Stop(signals)
	child := &exec.Cmd{
		Path: path, Args: command, Env: environ, Stdin: p.in, Stdout: p.out, Stderr: p.errOut, SysProcAttr: diesWithUs(),
	}
	if err := child.Start(); err != nil {
		say(fmt.Sprintf("run %s: %v", command[0], err))
		return exitNotRun
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case s := <-signals:
				_ = child.Process.Signal(s) // it has just ended
			}
		}
	}()
	err = child.Wait()
	close(ended)
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignal + int(status.Signal())
	}
	if code := child.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	say(fmt.Sprintf("wait for %s: %v", command[0], err))
	return exitFailed
}

// handedOn are the signals that are the program's. What is typed at a terminal
// reaches it without us, and twice would be once too often; it must only not end
// us before the program. Signals that our own parent ignores stay ignored.
func handedOn(terminal bool) []os.Signal {
	heeded := func(all ...os.Signal) []os.Signal { return slices.DeleteFunc(all, signal.Ignored) }
	sent := heeded(syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
	typed := heeded(syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGWINCH)
	if !terminal {
		return append(sent, typed...)
	}
	if len(typed) > 0 { // Notify would take none for all
		signal.Notify(make(chan os.Signal, 1), typed...)
	}
	return sent
}
