package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/hostrun"
)

// Limits of the server. Who asks sits on this machine, or is one console.
const (
	headLimit  = 5 * time.Second // of a whole question: who sends a byte a second gets none in
	writeLimit = 10 * time.Second
	idleLimit  = time.Minute
	stopLimit  = 3 * time.Second // for questions that are being answered
	maxHead    = 16 << 10
)

// agent is a host that answers.
type agent struct {
	run       *hostrun.Runner
	server    *http.Server
	listeners []net.Listener
	failed    chan error // of one listener; it has room for all
}

// startAgent opens the host and answers. What is on disk is in force before the
// first question is taken.
func startAgent(cfg *config, otherwise, directives string, say func(string)) (*agent, error) {
	maxAge, err := cfg.age()
	if err != nil {
		return nil, err
	}
	where, err := cfg.addresses(otherwise)
	if err != nil {
		return nil, err
	}
	run, err := hostrun.Open(cfg.hostSettings(directives, say))
	if err != nil {
		return nil, fmt.Errorf("start the host: %w", err)
	}
	listeners, err := openAll(where, cfg.allowRemote == "true")
	if err != nil {
		return nil, errors.Join(err, run.Stop())
	}
	guests := &crowd{most: maxConnections, last: map[net.Conn]int{}}
	a := &agent{run: run, listeners: listeners, failed: make(chan error, len(listeners)), server: &http.Server{
		Handler: run.Handler(maxAge), ReadHeaderTimeout: headLimit, ReadTimeout: headLimit,
		WriteTimeout: writeLimit, IdleTimeout: idleLimit, MaxHeaderBytes: maxHead, ConnState: guests.changed,
	}}
	for _, l := range listeners {
		go func() { a.failed <- a.server.Serve(l) }()
	}
	say(fmt.Sprintf("host %s of fleet %s, state %s, answers on %s", cfg.host, cfg.fleet, run.Report().State, strings.Join(a.answersOn(), " ")))
	return a, nil
}

func (a *agent) answersOn() []string {
	var out []string
	for _, l := range a.listeners {
		out = append(out, addressOf(l))
	}
	return out
}

// stop lets questions end that are being answered, and gives the folder free.
func (a *agent) stop() error {
	deadline, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if a.server.Shutdown(deadline) != nil {
		_ = a.server.Close() // somebody listens too long; the folder matters more
	}
	return a.run.Stop()
}

// serve answers until ctx ends.
func serve(ctx context.Context, cfg *config, directives string, say func(string)) error {
	a, err := startAgent(cfg, defaultListen, directives, say)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		say("stops")
	case err = <-a.failed:
	}
	return errors.Join(err, a.stop())
}
