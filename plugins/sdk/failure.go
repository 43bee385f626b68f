package sdk

import (
	"errors"
	"fmt"
)

// Code is the stable name of a backend's refusal.
type Code string

// The codes. Everything without one is CodeFailed.
const (
	CodeNotConfigured    Code = "not-configured"    // Configure has not been called, or failed
	CodeBadConfig        Code = "bad-config"        // a setting is missing, unknown or malformed
	CodeBadRequest       Code = "bad-request"       // an argument is outside the protocol
	CodeTooLarge         Code = "too-large"         // not even the first token fits the carrier
	CodePlanUnknown      Code = "plan-unknown"      // this process has not made that plan
	CodeChanged          Code = "changed"           // the world is no longer as planned
	CodeUnchanged        Code = "unchanged"         // every target holds the value already
	CodeOwnerConflict    Code = "owner-conflict"    // somebody else owns everything that would be written
	CodeOperationUnknown Code = "operation-unknown" // there is no trace of that operation
	CodeUnreachable      Code = "unreachable"       // the remote system does not answer
	CodeDenied           Code = "denied"            // it answers and does not let us
	CodeStopped          Code = "stopped"           // Stop came before or in the middle
	CodeFailed           Code = "failed"
)

// Failure is a refusal with a code. Text is one sentence: what was tried, on
// what, why not, and what to do.
type Failure struct {
	Code Code
	Text string
}

func (f *Failure) Error() string { return f.Text }

// Refuse makes a Failure.
func Refuse(code Code, format string, args ...any) error {
	return &Failure{Code: code, Text: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of err: CodeFailed if it carries none, empty for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var f *Failure
	if errors.As(err, &f) {
		return f.Code
	}
	return CodeFailed
}
