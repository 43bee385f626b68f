package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/degradedmode/ic/internal/incident"
)

// Exit codes are a contract: scripts and pages decide on them.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // wrong words, or no terminal where one is needed
	exitDenied      = 3
	exitUnconfirmed = 4 // sent, and not every host has said so
	exitIntegrity   = 5
	exitNeeds       = 6 // something has to come first
	exitInterrupted = 130
)

// failure is an error with the exit code it deserves and what to do next.
type failure struct {
	code int
	err  error
	hint string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

func (f *failure) hinting(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// codeOf is the exit code of any error.
func codeOf(err error) int {
	var f *failure
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, incident.ErrDenied), errors.Is(err, incident.ErrReadOnly):
		return exitDenied
	case errors.Is(err, incident.ErrIntegrity):
		return exitIntegrity
	case errors.Is(err, incident.ErrNeeds), errors.Is(err, incident.ErrNoIncident):
		return exitNeeds
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitFailed
	}
}
