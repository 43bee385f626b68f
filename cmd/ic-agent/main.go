package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
	"google.golang.org/grpc/grpclog"
)

// Exit codes, as those of ic.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// collectAt is how much an agent's memory may grow, in percent, before it is
// collected: a third of what Go takes, since a host has better use for memory than
// for the little time that this costs. With 2,000 statements it makes 2 MiB. GOGC in the environment wins.
const collectAt = 30

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	// gRPC would write lines of its own, and many while etcd is away.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	os.Exit(run(os.Args[1:], process{environ: os.Environ(), in: os.Stdin, out: os.Stdout, errOut: os.Stderr}, os.Stdout, os.Stderr))
}

// run is the whole program. out and errs are where it speaks itself.
func run(args []string, p process, out, errs io.Writer) int {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	switch word {
	case "version":
		return showVersion(args[1:], out, errs)
	case "man":
		writeMan(out, hostrun.Software())
		return exitDone
	case "help":
		writeHelp(out)
		return exitDone
	case "exec":
		args = args[1:]
	}
	say := teller(errs)
	a, err := readArgs(args, func(name string) string { return valueOf(p.environ, name) }, out)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err == nil {
		err = a.fits(word == "exec")
	}
	if err != nil {
		say(err.Error())
		return exitUsage
	}
	if word == "exec" {
		return execute(&a.config, a.command, p, say)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, &a.config, valueOf(p.environ, hostrun.EnvName), say); err != nil {
		say(err.Error())
		return exitFailed
	}
	return exitDone
}

// fits holds exec and its program together.
func (a *arguments) fits(exec bool) error {
	switch {
	case exec && len(a.command) == 0:
		return errors.New("exec runs a program: ic-agent exec [flags] -- CMD [ARGS]")
	case !exec && a.command != nil:
		return errors.New("to run a program say exec: ic-agent exec [flags] -- CMD [ARGS]")
	}
	return nil
}

func showVersion(args []string, out, errs io.Writer) int {
	version := hostrun.Software()
	switch {
	case len(args) == 0:
		fmt.Fprintln(out, "ic-agent "+version)
	case slices.Equal(args, []string{"--json"}), slices.Equal(args, []string{"-json"}):
		_ = json.NewEncoder(out).Encode(map[string]any{"version": version, "engine": engine.Version}) // nobody is left to be told
	default:
		teller(errs)(fmt.Sprintf("version takes --json or nothing, not %q", args[0]))
		return exitUsage
	}
	return exitDone
}

// teller writes whole lines, from whatever goroutine.
func teller(w io.Writer) func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(w, "ic-agent: "+line)
	}
}
