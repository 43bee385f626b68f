package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/degradedmode/ic/host"
	"google.golang.org/grpc/grpclog"
)

// Exit codes, as those of ic.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Limits of the server. Who asks sits on this machine, or is one console.
const (
	headLimit  = 5 * time.Second
	writeLimit = 10 * time.Second
	idleLimit  = time.Minute
	stopLimit  = 3 * time.Second // for questions that are being answered
	maxHead    = 16 << 10
)

func main() {
	// gRPC would write lines of its own, and many while etcd is away.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program.
func run(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) int {
	if len(args) == 1 && args[0] == "version" {
		fmt.Fprintln(out, "ic-agent "+version())
		return exitDone
	}
	cfg, err := readArgs(args, getenv, errs)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	say := teller(errs)
	if err != nil {
		say(err.Error())
		return exitUsage
	}
	if err := serve(ctx, cfg, getenv(host.EnvName), say); err != nil {
		say(err.Error())
		return exitFailed
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

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// serve runs the host and answers until ctx ends. What is on disk is in force
// before the first question is taken.
func serve(ctx context.Context, cfg config, directives string, say func(string)) error {
	maxAge, err := cfg.age()
	if err != nil {
		return err
	}
	h, err := host.Open(host.Config{
		Fleet: cfg.fleet, Name: cfg.host, Services: list(cfg.services), Policy: cfg.policy, RootSHA256: cfg.rootSHA256,
		State: cfg.state, Etcd: list(cfg.etcd), File: cfg.file, Directives: directives,
		RequireSync: cfg.clock == clockRequire, Drill: cfg.realm == realmDrill, Log: say,
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.listenOn())
	if err != nil {
		return errors.Join(fmt.Errorf("answer on %s: %w", cfg.listenOn(), err), h.Close())
	}
	server := &http.Server{
		Handler: h.Handler(maxAge), ReadHeaderTimeout: headLimit, ReadTimeout: headLimit,
		WriteTimeout: writeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHead,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	say(fmt.Sprintf("host %s of fleet %s, state %s, answers on http://%s", cfg.host, cfg.fleet, h.Condition(), listener.Addr()))
	select {
	case <-ctx.Done():
		say("stops")
	case err = <-failed:
	}
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	if shut := server.Shutdown(deadline); shut != nil {
		_ = server.Close() // somebody listens too long; the folder matters more
	}
	return errors.Join(err, h.Close())
}

func (c *config) listenOn() string {
	if c.listen == "" {
		return defaultListen
	}
	return c.listen
}
