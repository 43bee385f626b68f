package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostrun"
)

// Config says which host this is, what it may believe, and where directives come
// from. Fleet, Name, Services, Policy and RootSHA256 are required.
type Config struct {
	Fleet      string
	Name       string   // of this host in the inventory
	Services   []string // that run here
	Policy     string   // the policy folder
	RootSHA256 string   // SHA-256 of its first trust root, in hex

	// State is the folder in which the host keeps what it knows; no other process
	// may use it. Without one the host forgets everything at its end, and opens
	// nothing unless the right says that such hosts may.
	State string

	Etcd       []string // endpoints of the flag service
	File       string   // a file of directives to watch
	Directives string   // value of the environment variable IC_DIRECTIVES

	// Defaults are what counts while nothing could be read. With them Open succeeds
	// without a policy that verifies, and goes on looking for one.
	Defaults *Defaults

	// RequireSync opens nothing while the system calls its clock unsynchronised.
	// Without it such a clock is taken for what it says, unless signed statements
	// prove it wrong.
	RequireSync bool
	// Drill is for hosts of a rehearsal: they believe signatures made for drills,
	// and no others.
	Drill bool

	// Log is told what a person may have to know, one line at a time; nil: nobody
	// is. It is called from goroutines of the host.
	Log func(line string)

	retryEvery time.Duration // for tests; 0: retryPolicy
}

// Defaults are what a service declares safe while its host knows nothing: there is
// no policy that verifies; or nothing was in the state folder that could be used,
// and the flag service, or without one the file, has not been read since the
// start. They join what is in force: the higher tier counts, and off wins.
//
// The zero value is normal operation, and for a feature that is the right default:
// today's behaviour, never a new one. A control has no default but closed. If it
// had, damaging a folder would be a way to open it.
type Defaults struct {
	Tiers map[string]int // by service; 0 for the others
	Off   []string       // features
}

// EnvName is the environment variable whose value is Config.Directives.
const EnvName = hostrun.EnvName

// DefaultMaxAge is the age of a source from which /freshz fails, if Handler is
// given no other.
const DefaultMaxAge = hostrun.DefaultMaxAge

// retryPolicy is how often a host without a policy looks for one.
const retryPolicy = 10 * time.Second

// Host is one host. It is safe for concurrent use.
type Host struct {
	settings  hostrun.Settings
	defaults  Defaults
	authority string // the source that says what is in force to a host that knows nothing; "" for none

	run     atomic.Pointer[hostrun.Runner] // nil while there is no policy
	started chan struct{}                  // closed when there is one
	blank   atomic.Bool                    // nothing could be read, as far as we know

	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Conditions of a host. Those of an engine are in docs/host-state.md.
const (
	NoPolicy = "no-policy" // no policy verifies; the declared defaults count
	Unread   = "unread"    // nothing was on disk, nothing has been read since; the declared defaults count
)

// Open reads the policy and the state folder, takes what they hold into force,
// and begins to watch. It fails when another process uses the state folder, when
// the configuration is wrong, and, unless Defaults are declared, when the policy
// does not verify. A damaged state folder and a flag service that is down are no
// errors: see Condition.
func Open(cfg Config) (*Host, error) {
	h := &Host{
		settings: hostrun.Settings{
			Fleet: cfg.Fleet, Name: cfg.Name, Services: slices.Clone(cfg.Services), Policy: cfg.Policy, RootSHA256: cfg.RootSHA256,
			State: cfg.State, Etcd: cfg.Etcd, File: cfg.File, Directives: cfg.Directives,
			RequireSync: cfg.RequireSync, Drill: cfg.Drill, Tell: cfg.Log,
		},
		started: make(chan struct{}), cancel: func() {},
	}
	switch {
	case len(cfg.Etcd) > 0:
		h.authority = hostrun.FromEtcd
	case cfg.File != "":
		h.authority = hostrun.FromFile
	}
	if cfg.Defaults != nil {
		h.defaults = Defaults{Tiers: maps.Clone(cfg.Defaults.Tiers), Off: slices.Clone(cfg.Defaults.Off)}
	}
	err := h.start()
	var noPolicy *hostrun.PolicyError
	switch {
	case err == nil:
		return h, nil
	case cfg.Defaults == nil || !errors.As(err, &noPolicy):
		return nil, fmt.Errorf("open host: %w", err)
	}
	h.tell(fmt.Sprintf("%v; until a policy verifies the declared defaults count", err))
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	every := cfg.retryEvery
	if every == 0 {
		every = retryPolicy
	}
	h.wait.Go(func() { h.retry(ctx, every) })
	return h, nil
}

// start runs the host if there is a policy.
func (h *Host) start() error {
	r, err := hostrun.Open(h.settings)
	if err != nil {
		return err
	}
	h.blank.Store(!r.Opened().Read && h.authority != "")
	h.run.Store(r)
	close(h.started)
	return nil
}

// retry looks for a policy until there is one. What is wrong is told when it
// changes.
func (h *Host) retry(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	trouble := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := h.start()
		if err == nil {
			h.tell("a policy verifies; it is in force")
			return
		}
		if now := err.Error(); now != trouble {
			trouble = now
			h.tell("still no policy: " + now)
		}
	}
}

func (h *Host) tell(line string) {
	if h.settings.Tell != nil {
		h.settings.Tell(line)
	}
}

// Condition is "ok", or says in one word what this host lacks: NoPolicy, Unread,
// or "recovered", "safe-defaults", "foreign", "volatile" or "unpersisted" as
// docs/host-state.md explains.
func (h *Host) Condition() string {
	r := h.run.Load()
	if r == nil {
		return NoPolicy
	}
	condition := r.Engine().Condition()
	if h.unread(r) && condition != engine.StateSafeDefaults && condition != engine.StateForeign {
		return Unread
	}
	return string(condition)
}

// unread reports whether nothing could be read so far, and remembers when that is
// over.
func (h *Host) unread(r *hostrun.Runner) bool {
	if !h.blank.Load() {
		return false
	}
	if r.Engine().SourceRead(h.authority) {
		h.blank.Store(false)
		return false
	}
	return true
}

// Close ends all watching and gives the state folder free.
func (h *Host) Close() error {
	h.cancel()
	h.wait.Wait()
	if r := h.run.Load(); r != nil {
		return r.Stop()
	}
	return nil
}
