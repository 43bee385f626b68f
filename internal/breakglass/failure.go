package breakglass

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/degradedmode/ic/plugins/sdk"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind says what went wrong with a backend as a program. What a backend refuses
// as a backend is an sdk.Failure with its own code.
type Kind string

// The kinds.
const (
	NotTrusted  Kind = "not-trusted"  // it is not the program that the policy pins
	NotStarted  Kind = "not-started"  // it could not be executed
	NoHandshake Kind = "no-handshake" // it was, and does not speak the protocol
	Slow        Kind = "slow"         // it did not answer in time
	Died        Kind = "died"         // it ended in the middle
	Broken      Kind = "broken"       // it answers outside the protocol
)

// Error is a backend that failed as a program. Text is one clean sentence.
type Error struct {
	Backend string
	Kind    Kind
	Text    string
	Err     error
}

func (e *Error) Error() string { return fmt.Sprintf("backend %s %s", e.Backend, e.Text) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of err; empty if it has none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func problem(backend string, kind Kind, cause error, format string, args ...any) error {
	return &Error{Backend: backend, Kind: kind, Text: fmt.Sprintf(format, args...), Err: cause}
}

// call is one request to a backend, for the sentence when it fails.
type call struct {
	backend string
	doing   string // "applying operation 01J…"
	effect  bool   // it may have changed something by now
	limit   time.Duration
}

func (c *call) aftermath() string {
	if c.effect {
		return "what it did is unknown: observe the operation"
	}
	return "nothing was changed"
}

// explain turns what came back into one of our errors. A refusal keeps its code.
// The caller's own end of ctx is passed on as it is.
func (c *call) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s with backend %s was cut short, %s: %w", c.doing, c.backend, c.aftermath(), ctx.Err())
	}
	var refused *sdk.Failure
	if errors.As(err, &refused) {
		return &sdk.Failure{
			Code: sdk.Code(untrusted.Text(string(refused.Code), maxWord)),
			Text: "backend " + c.backend + ": " + untrusted.Text(refused.Text, maxSentence),
		}
	}
	switch code := status.Code(err); {
	case code == codes.DeadlineExceeded, code == codes.Canceled, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return problem(c.backend, Slow, err, "gave no sign for %s while %s; %s", c.limit, c.doing, c.aftermath())
	case code == codes.Unavailable:
		return problem(c.backend, Died, err, "ended while %s; %s", c.doing, c.aftermath())
	default:
		return problem(c.backend, Broken, err, "broke the protocol while %s: %s; %s", c.doing,
			untrusted.Text(status.Convert(err).Message(), maxSentence), c.aftermath())
	}
}
