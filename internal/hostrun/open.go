package hostrun

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostclock"
)

// Settings are what a person says about a host of this machine. Fleet, Name,
// Services, Policy and RootSHA256 are required.
type Settings struct {
	Fleet      string
	Name       string   // of this host in the inventory
	Services   []string // that run here
	Policy     string   // the policy folder
	RootSHA256 string   // SHA-256 of its first trust root, in hex
	State      string   // the state folder; "": the host forgets everything at its end

	Etcd       []string // endpoints of the flag service
	File       string   // a file of directives to watch
	Directives string   // value of IC_DIRECTIVES

	StateFile string // written with the state, for services beside it
	EnvFile   string // likewise

	RequireSync bool // opens nothing while the system calls its clock unsynchronised
	Drill       bool // believes signatures made for drills, and no others

	Tell func(line string)
}

// Open starts a host on this machine's clock, with its state folder if it has one.
func Open(s Settings) (*Runner, error) {
	if len(s.Services) == 0 {
		return nil, errors.New("a host needs at least one service")
	}
	realm, sync := directive.Production, hostclock.Trust
	if s.Drill {
		realm = directive.Drill
	}
	if s.RequireSync {
		sync = hostclock.Require
	}
	cfg := Config{
		Engine: engine.Config{
			Fleet: s.Fleet, Host: s.Name, Services: slices.Clone(s.Services), Realm: realm,
			Volatile: s.State == "", Rand: rand.Reader, Software: Software(),
		},
		Policy: &Policy{Dir: s.Policy, Fleet: s.Fleet, RootSHA256: s.RootSHA256, Realm: realm},
		Clock:  hostclock.New(sync), Env: s.Directives, File: s.File, Etcd: s.Etcd,
		StateFile: s.StateFile, EnvFile: s.EnvFile, Tell: s.Tell,
	}
	if s.State != "" {
		folder, err := engine.OpenDir(s.State)
		if err != nil {
			return nil, fmt.Errorf("open the state folder: %w", err)
		}
		cfg.Engine.Folder = folder
		cfg.Policy.Remember = filepath.Join(s.State, RememberFile)
	}
	return Start(cfg)
}

// Software is the version of this module in the program that runs it.
func Software() string {
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
