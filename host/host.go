package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostclock"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
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
}

// EnvName is the environment variable whose value is Config.Directives.
const EnvName = hostrun.EnvName

// DefaultMaxAge is the age of a source from which /freshz fails, if Handler is
// given no other.
const DefaultMaxAge = hostrun.DefaultMaxAge

// Host is one host. It is safe for concurrent use.
type Host struct {
	run      *hostrun.Runner
	services []string
}

// Why an item may not pass, as Allow says it. More may come.
const (
	Closed        = string(engine.CodeClosed)     // no bypass is open here: the check stands
	OverAmount    = string(engine.CodeOverAmount) // the item is not under the cap
	BudgetSpent   = string(engine.CodeSpent)      // this host has let through what it may
	NotDurable    = string(engine.CodeNotDurable) // it could not be written down
	OtherCurrency = string(engine.CodeMismatch)   // the budget is in another currency
)

// Open reads the policy and the state folder, takes what they hold into force,
// and begins to watch. It fails when the policy does not verify, when another
// process uses the state folder, or when the configuration is wrong. A damaged
// state folder and a flag service that is down are no errors: see Condition.
func Open(cfg Config) (*Host, error) {
	if len(cfg.Services) == 0 {
		return nil, errors.New("open host: it needs at least one service")
	}
	realm, sync := directive.Production, hostclock.Trust
	if cfg.Drill {
		realm = directive.Drill
	}
	if cfg.RequireSync {
		sync = hostclock.Require
	}
	run := hostrun.Config{
		Engine: engine.Config{
			Fleet: cfg.Fleet, Host: cfg.Name, Services: slices.Clone(cfg.Services), Realm: realm,
			Volatile: cfg.State == "", Rand: rand.Reader, Software: software(),
		},
		Policy: &hostrun.Policy{Dir: cfg.Policy, Fleet: cfg.Fleet, RootSHA256: cfg.RootSHA256, Realm: realm},
		Clock:  hostclock.New(sync), Env: cfg.Directives, File: cfg.File, Etcd: cfg.Etcd, Tell: cfg.Log,
	}
	if cfg.State != "" {
		folder, err := engine.OpenDir(cfg.State)
		if err != nil {
			return nil, fmt.Errorf("open host: %w", err)
		}
		run.Engine.Folder = folder
		run.Policy.Remember = filepath.Join(cfg.State, hostrun.RememberFile)
	}
	r, err := hostrun.Start(run)
	if err != nil {
		return nil, fmt.Errorf("open host: %w", err)
	}
	return &Host{run: r, services: run.Engine.Services}, nil
}

// software is the version of this module in the program that runs it.
func software() string {
	const path = "github.com/degradedmode/ic"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(slices.Clone(info.Deps), &info.Main) {
		if m.Path == path && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}

// Tier is the tier in force for a service: 0 in normal operation, never beyond
// what the policy's ladder says the service knows. Where the ladder is not in
// force it may be higher; take it for your last tier then.
func (h *Host) Tier(service string) int { return h.run.Engine().Tier(service, h.run.Now()) }

// Off reports whether a directive has switched a feature off, for the service to
// which the policy says that it belongs, or for any service of this host. It wins
// over what a tier says.
func (h *Host) Off(feature string) bool {
	e, now := h.run.Engine(), h.run.Now()
	if known, ok := e.Bundle().Features[feature]; ok && known.Service != "" {
		return e.Off(feature, known.Service, now)
	}
	return slices.ContainsFunc(h.services, func(s string) bool { return e.Off(feature, s, now) })
}

// Allow asks whether one item may pass a control whose check cannot be made:
// whether a bypass of it is open for a service of this host, the item is under
// its cap, and this host's budget has room. If so the item is counted: ask once,
// and let it pass. minor is the amount in minor units, such as cents. The reason
// is empty when it may pass; Closed is the normal answer.
func (h *Host) Allow(control string, minor int64, currency string) (bool, string) {
	e, now := h.run.Engine(), h.run.Now()
	reason := engine.CodeClosed
	for _, service := range h.services {
		ok, code := e.Allow(control, service, model.Money{Minor: minor, Currency: currency}, now)
		if ok {
			return true, ""
		}
		if reason == engine.CodeClosed {
			reason = code
		}
	}
	return false, string(reason)
}

// Condition is "ok", or says in one word what this host lacks: "recovered",
// "safe-defaults", "foreign", "volatile" or "unpersisted". See
// docs/host-state.md.
func (h *Host) Condition() string { return h.run.Report().State }

// Handler serves the report of this host and answers the same questions over
// HTTP, as an ic-agent does. Mount it where the console and Prometheus find it.
// maxAge is the age of a source from which /freshz fails.
func (h *Host) Handler(maxAge time.Duration) http.Handler { return h.run.Handler(maxAge) }

// Close ends all watching and gives the state folder free.
func (h *Host) Close() error { return h.run.Stop() }
