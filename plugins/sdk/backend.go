package sdk

import "context"

// Limits of the protocol. Each is checked by Session, so a backend sees nothing
// beyond them.
const (
	MaxCarrier   = 16384    // bytes of one carrier value: a host reads no longer one
	MaxMessage   = 64 << 20 // bytes of one message: before and after of 2,000 full files
	MaxTokens    = 1024     // tokens of one plan, fitting or not
	MaxTargets   = 100_000  // hosts of one plan
	MaxTarget    = 253      // bytes of a host's name, as DNS has it
	MaxOperation = 64       // bytes of an operation id: it becomes a file name and a trailer
	maxPlans     = 16       // plans a process remembers: a commander compares two or three
)

// Name is the one dedicated name that a backend writes where its carrier has
// names: an environment variable, a key. It never edits another.
const Name = "IC_DIRECTIVES"

// Carrier says how a value reaches a host.
type Carrier string

// The two carriers. A watched file is preferred: an environment variable is read
// at start only, so changing it restarts processes, and those lose every flag
// they held in memory.
const (
	File Carrier = "file"
	Env  Carrier = "env"
)

// Description is what a backend says about itself. After Configure it may be
// narrower than before.
type Description struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Carrier      Carrier  `json:"carrier"`
	Restarts     bool     `json:"restarts"`     // a change restarts processes
	CanUndo      bool     `json:"can_undo"`     // Undo works
	MaxBytes     int      `json:"max_bytes"`    // of one carrier value; 0 is MaxCarrier
	Dependencies []string `json:"dependencies"` // what must be alive for it to work: "github", "aws:us-east-1"
}

// Finding is one answer of Check.
type Finding struct {
	Name   string `json:"name"` // credentials, reach, permission, drift, ...
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Token is one signed directive. Text is opaque to a backend; ID is there to
// say what did not fit.
type Token struct {
	ID   string
	Text string
}

// PlanRequest is what is to be carried, and to whom. Tokens stand in order of
// importance, the most important first.
type PlanRequest struct {
	Tokens  []Token
	Targets []string // hosts, by inventory name
}

// Change is what one thing that is written, a file or a variable, turns from and
// into. Before and After are values of the carrier, without name or newline.
type Change struct {
	Target   string   `json:"target"`
	Hosts    []string `json:"hosts"` // targets of the request that read it
	Before   string   `json:"before"`
	After    string   `json:"after"`
	Owner    string   `json:"owner"`    // who wrote what stands there now; empty if nothing does
	Conflict bool     `json:"conflict"` // somebody else owns it: it will not be touched
	Restarts bool     `json:"restarts"`
}

// LastKnownGood counts hosts by whether they hold their last-known-good on disk,
// and so survive a restart while the flag service is down.
type LastKnownGood struct {
	Yes     int `json:"yes"`
	No      int `json:"no"`
	Unknown int `json:"unknown"`
}

// Plan is what Apply would do. A backend fills Changes and, if it can know,
// LastKnownGood; Session fills the rest.
type Plan struct {
	Changes       []Change      `json:"changes"`
	Restarts      int           `json:"restarts"` // N of "restarts N of M"
	Targets       int           `json:"targets"`  // M
	LastKnownGood LastKnownGood `json:"last_known_good"`
	LeftOut       []string      `json:"left_out"` // ids of tokens that did not fit
	Digest        string        `json:"plan_digest"`
}

// Application is a plan that was confirmed, just made again and found the same.
type Application struct {
	Operation string
	Plan      Plan
}

// Phase is a step of an operation at one target.
type Phase string

// The phases.
const (
	Writing  Phase = "writing"  // about to write
	Written  Phase = "written"  // the target holds what the operation wrote
	Rolling  Phase = "rolling"  // what a pipeline says about itself; never counted as success
	Blocked  Phase = "blocked"  // left alone: somebody else owns it
	Undone   Phase = "undone"   // what stood there before stands there again
	Kept     Phase = "kept"     // undo left it alone: it is no longer what the operation wrote
	Replaced Phase = "replaced" // it was written, and somebody has changed it since
	Missing  Phase = "missing"  // the operation is known, and this target was never written
)

// Progress is one event of an operation. Done and Total count targets of the
// phase.
type Progress struct {
	Phase    Phase  `json:"phase"`
	Target   string `json:"target"`
	Done     int    `json:"done"`
	Total    int    `json:"total"`
	RemoteID string `json:"remote_id"` // commit, run, revision
	Owner    string `json:"owner"`     // who, for blocked, kept and replaced
	Message  string `json:"message"`
}

// Report takes progress as it happens. When it fails, nobody listens any more:
// the operation stops at the next point where it can.
type Report func(Progress) error

// Backend is what an author writes. Session calls it with checked arguments,
// never two methods at once, and only after Configure (Describe may come before).
//
// What an operation did must be readable from the remote system itself: Observe
// and Undo are called in fresh processes that never saw the plan.
type Backend interface {
	// Describe answers at once, without I/O.
	Describe() Description

	// Configure takes the settings and secrets of the policy and the operator.
	// It refuses what it does not know. It does no I/O beyond local files.
	Configure(ctx context.Context, config, secrets map[string]string) error

	// Check proves, without changing anything, that Apply would work today.
	Check(ctx context.Context) ([]Finding, error)

	// Plan says what carrying value to targets would change. It changes nothing.
	// Over the same world it gives the same answer.
	Plan(ctx context.Context, value string, targets []string) (Plan, error)

	// Apply writes the plan's changes, except conflicts. An operation that is
	// there already has no second effect; one that is there in part is completed.
	// A target that no longer holds Before is refused with CodeChanged.
	Apply(ctx context.Context, application Application, report Report) error

	// Observe says what is now there of an operation, and ends. An operation
	// without any trace is CodeOperationUnknown.
	Observe(ctx context.Context, operation string, report Report) error

	// Undo puts back what stood before the operation wherever what it wrote still
	// stands, and leaves everything else alone. Again, it has no second effect.
	Undo(ctx context.Context, operation string, report Report) error

	// Stop releases what the backend holds. Running calls have ended before.
	Stop(ctx context.Context) error
}

// Conn is a backend as its host sees it, in this process or in another.
type Conn interface {
	Describe(ctx context.Context) (Description, error)
	Configure(ctx context.Context, config, secrets map[string]string) error
	Check(ctx context.Context) ([]Finding, error)
	Plan(ctx context.Context, request PlanRequest) (Plan, error)
	Apply(ctx context.Context, digest, operation string, report Report) error
	Observe(ctx context.Context, operation string, report Report) error
	Undo(ctx context.Context, operation string, report Report) error
	// Stop ends what runs, waits for it and releases the backend. Every later
	// call is refused.
	Stop(ctx context.Context) error
}

var (
	_ Conn = (*Session)(nil)
	_ Conn = (*remote)(nil)
)
