package cache

import (
	"context"
	"fmt"
)

// Why an answer could not be served from the cache.
type Why string

// The closed set. They are labels of a metric.
const (
	Nothing  Why = "nothing"   // nothing is kept under this key
	TooOld   Why = "too-old"   // what was kept is older than fresh and stale together
	Corrupt  Why = "corrupt"   // what was kept did not pass the check; it is gone
	NoScope  Why = "no-scope"  // the key does not say whose answer it is
	NoPolicy Why = "no-policy" // the key does not say by which version of the rules he may see it
	Gone     Why = "gone"      // the caller's time was up: nobody would read an answer
)

var reasons = map[Why]string{
	Nothing: "nothing is kept for it", TooOld: "what is kept is too old", Corrupt: "what was kept is damaged",
	NoScope: "the key has no scope", NoPolicy: "the key has no policy version", Gone: "the caller has gone",
}

// ErrBudget means that the caller's deadline left no time for a fetch. It is a
// timeout.
var ErrBudget = fmt.Errorf("no time is left to ask: %w", context.DeadlineExceeded)

// Refused is the error of Get: there is neither an answer of the dependency nor one
// that may stand in for it.
type Refused struct {
	Name  string // of the dependency
	Why   Why    // there is none in the cache
	Cause error  // why there is none of the dependency
}

// Error implements error.
func (r *Refused) Error() string {
	return fmt.Sprintf("ask %s: %v; and from the cache: %s", r.Name, r.Cause, reasons[r.Why])
}

// Unwrap is the error of the dependency.
func (r *Refused) Unwrap() error { return r.Cause }
