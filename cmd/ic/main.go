package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc/grpclog"
)

func main() {
	// gRPC would write its own lines over the console.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// SIGHUP too: a terminal that goes away must not leave children behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], &app{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		getenv: os.Getenv, real: time.Now, self: os.Executable,
	})
	stop()
	os.Exit(code)
}

// run is the whole program, for main and for the tests of commands.
func run(ctx context.Context, args []string, a *app) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return a.code
	}
	code := codeOf(err)
	if code == exitFailed && !a.began {
		code = exitUsage // cobra refused the words before any command began
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		code = exitInterrupted
	}
	if a.json {
		a.printError(code, err)
	} else {
		fmt.Fprintf(a.err, "ic: %v\n", err)
	}
	var f *failure
	if errors.As(err, &f) && f.hint != "" && !a.json {
		fmt.Fprintf(a.err, "    %s\n", f.hint)
	}
	return code
}
