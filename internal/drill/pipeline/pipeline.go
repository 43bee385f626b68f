package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Defaults of a rollout: a fleet of 60 hosts is through in 25 s of virtual time.
const (
	DefaultBatch = 10
	DefaultPause = 5 * time.Second
)

// Options of a pipeline. Zero Batch and Pause mean the defaults.
type Options struct {
	Dir     string                                   // its folder; made if it is not there
	Hosts   []string                                 // whom a push restarts
	Batch   int                                      // hosts restarted together
	Pause   time.Duration                            // virtual time between two batches
	Restart func(host string, env map[string]string) // restarts one host with env
	Getenv  func(string) string                      // for PATH, nothing else
	Now     time.Time                                // virtual time, dates the first commit
}

// Phase is what the pipeline is doing.
type Phase string

// The phases. Done means that every host was restarted, not that any obeys.
const (
	Idle    Phase = "idle"
	Rolling Phase = "rolling"
	Stuck   Phase = "stuck"
	Done    Phase = "done"
	Refused Phase = "refused" // the pushed env file cannot be used
)

// Status is the last or current rollout.
type Status struct {
	Phase     Phase  `json:"phase"`
	Commit    string `json:"commit,omitempty"`
	Restarted int    `json:"restarted"`
	Hosts     int    `json:"hosts"`
	Detail    string `json:"detail,omitempty"`
}

// Pipeline deploys what is pushed to its repository. Advance belongs to one
// goroutine; the rest is safe for concurrent use.
type Pipeline struct {
	repo    *repository
	hosts   []string
	batch   int
	pause   time.Duration
	restart func(string, map[string]string)

	mu      sync.Mutex
	stuck   bool
	given   map[string]map[string]string // env that each host was last started with
	rollout rollout
}

type rollout struct {
	phase  Phase
	commit string
	detail string
	env    map[string]string
	next   time.Time // virtual time of the next batch
	done   int       // hosts restarted, in the order of Pipeline.hosts
}

// Create makes the pipeline under o.Dir, or opens the one that is there.
func Create(ctx context.Context, o Options) (*Pipeline, error) {
	if len(o.Hosts) == 0 || o.Restart == nil || o.Getenv == nil {
		return nil, errors.New("create the pipeline: it needs hosts, a way to restart them and an environment")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("create the pipeline: %w", err)
	}
	search := o.Getenv("PATH")
	git, err := program("git", search)
	if err != nil {
		return nil, fmt.Errorf("create the pipeline: %w", err)
	}
	p := &Pipeline{
		repo:  &repository{dir: dir, git: git, search: search},
		hosts: slices.Sorted(slices.Values(o.Hosts)), batch: o.Batch, pause: o.Pause, restart: o.Restart,
		given:   make(map[string]map[string]string, len(o.Hosts)),
		rollout: rollout{phase: Idle},
	}
	if p.batch <= 0 {
		p.batch = DefaultBatch
	}
	if p.pause <= 0 {
		p.pause = DefaultPause
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the pipeline: %w", err)
	}
	if err := p.repo.ensure(ctx, o.Now); err != nil {
		return nil, err
	}
	env, err := p.exported()
	if err != nil {
		return nil, err
	}
	for _, h := range p.hosts {
		p.given[h] = env
	}
	return p, nil
}

// Repo is the path to push to.
func (p *Pipeline) Repo() string { return p.repo.path() }

// EnvOf is the env that host was last started with: what it gets again when
// something else than the pipeline restarts it.
func (p *Pipeline) EnvOf(host string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.given[host])
}

// SetStuck is the fault pipeline-stuck: pushes are taken and nothing follows.
// Clearing it lets a rollout go on where it stood.
func (p *Pipeline) SetStuck(stuck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = stuck
}

// Status is the last or current rollout.
func (p *Pipeline) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.rollout
	s := Status{Phase: r.phase, Commit: r.commit, Restarted: r.done, Hosts: len(p.hosts), Detail: r.detail}
	if p.stuck {
		s.Phase = Stuck
	}
	return s
}

// Advance takes in what was pushed and restarts the batches that are due at the
// virtual time now. The world calls it on its own tick.
func (p *Pipeline) Advance(now time.Time) error {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck {
		return nil
	}
	if err := p.takeIn(now); err != nil {
		return err
	}
	for {
		hosts, env := p.due(now)
		if len(hosts) == 0 {
			return nil
		}
		for _, h := range hosts {
			p.restart(h, maps.Clone(env))
		}
	}
}

// takeIn begins a rollout of the env file if a push left a marker. A push in
// the middle of a rollout begins again with the first host: all must get it.
func (p *Pipeline) takeIn(now time.Time) error {
	entries, err := os.ReadDir(p.repo.inbox())
	if err != nil {
		return fmt.Errorf("look into the pipeline's inbox: %w", err)
	}
	markers := newestLast(entries)
	if len(markers) == 0 {
		return nil
	}
	// The markers go first: a push after this line leaves a new one, and its
	// file is read then.
	for _, m := range markers {
		if err := os.Remove(filepath.Join(p.repo.inbox(), m)); err != nil {
			return fmt.Errorf("empty the pipeline's inbox: %w", err)
		}
	}
	commit := markers[len(markers)-1]
	env, err := p.exported()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.rollout = rollout{phase: Refused, commit: commit, detail: err.Error()}
		return nil
	}
	p.rollout = rollout{phase: Rolling, commit: commit, env: env, next: now}
	return nil
}

// due takes the next batch, if its time has come, and notes what it gets.
func (p *Pipeline) due(now time.Time) ([]string, map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.rollout
	if r.phase != Rolling || now.Before(r.next) || p.stuck {
		return nil, nil
	}
	batch := p.hosts[r.done:min(r.done+p.batch, len(p.hosts))]
	r.done += len(batch)
	r.next = r.next.Add(p.pause)
	if r.next.Before(now) { // it was stuck: the pauses are still kept
		r.next = now.Add(p.pause)
	}
	for _, h := range batch {
		p.given[h] = r.env
	}
	if r.done == len(p.hosts) {
		r.phase = Done
	}
	return batch, r.env
}

// exported reads the env file that the hook wrote last.
func (p *Pipeline) exported() (map[string]string, error) {
	f, err := os.Open(p.repo.env())
	if err != nil {
		return nil, fmt.Errorf("read the pipeline's env file: %w", err)
	}
	defer f.Close()
	// One byte more than the limit, so that ParseEnv sees that it is too long.
	text, err := io.ReadAll(io.LimitReader(f, MaxEnvFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the pipeline's env file: %w", err)
	}
	return ParseEnv(string(text))
}

// newestLast lists the markers by the time at which they were dropped.
func newestLast(entries []fs.DirEntry) []string {
	type marker struct {
		name string
		at   time.Time
	}
	var found []marker
	for _, e := range entries {
		if info, err := e.Info(); err == nil && commitID(e.Name()) && info.Mode().IsRegular() {
			found = append(found, marker{e.Name(), info.ModTime()})
		}
	}
	slices.SortStableFunc(found, func(a, b marker) int { return a.at.Compare(b.at) })
	names := make([]string, len(found))
	for i, m := range found {
		names[i] = m.name
	}
	return names
}

// commitID reports whether s is an object id of git, SHA-1 or SHA-256.
func commitID(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
