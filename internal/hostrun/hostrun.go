package hostrun

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
)

// EnvName is the environment variable that carries tokens to a process.
const EnvName = "IC_DIRECTIVES"

// Names of the sources in a report.
const (
	FromEtcd = "etcd"
	FromFile = "file"
	FromEnv  = "env"
)

// Defaults, in real time.
const (
	DefaultFullRead = 30 * time.Second
	DefaultFile     = time.Second
	advanceAtLeast  = time.Second      // the engine wants it every ten; state on disk is fresher this way
	policyEvery     = 10 * time.Second // looks at the policy folder for changes
)

var errNotRead = errors.New("not read yet")

// Config of one host. Engine.Folder decides whether it remembers.
type Config struct {
	Engine engine.Config
	Policy *Policy // loaded at the start and whenever it changes; nil: Engine.Bundle for good
	Clock  model.Clock
	Env    string   // value of IC_DIRECTIVES at the start of the process
	File   string   // watched file; "" none
	Etcd   []string // endpoints; none: no flag service

	StateFile string // kept up to date with the JSON of /v1/state; "" none
	EnvFile   string // kept up to date with KEY=VALUE lines; "" none

	FullReadEvery time.Duration // 0: DefaultFullRead
	FileEvery     time.Duration // 0: DefaultFile
	PolicyEvery   time.Duration // 0: every ten seconds

	Tell func(line string) // is told what a person may have to know; nil: nobody is
}

// Runner is a host that runs.
type Runner struct {
	cfg    Config
	engine *engine.Engine
	opened engine.Opened
	cancel context.CancelFunc
	wait   sync.WaitGroup

	unheard sync.WaitGroup // watched sources that have not been tried yet
	outlets []*outlet      // files that say what is in force
}

// Start opens the engine, offers the environment and begins to watch. It fails
// only for a configuration that is wrong: a folder that is damaged, a file that
// is not there and a flag service that is dead are states, not failures. The
// folder belongs to the runner from now on, also when it does not start.
func Start(cfg Config) (*Runner, error) {
	r, err := start(cfg.withDefaults())
	if err != nil && cfg.Engine.Folder != nil {
		err = errors.Join(err, cfg.Engine.Folder.Close())
	}
	return r, err
}

func (cfg Config) withDefaults() Config {
	if cfg.FullReadEvery == 0 {
		cfg.FullReadEvery = DefaultFullRead
	}
	if cfg.FileEvery == 0 {
		cfg.FileEvery = DefaultFile
	}
	if cfg.PolicyEvery == 0 {
		cfg.PolicyEvery = policyEvery
	}
	if cfg.Tell == nil {
		cfg.Tell = func(string) {}
	}
	return cfg
}

func start(cfg Config) (*Runner, error) {
	stamp := ""
	if cfg.Policy != nil {
		var note string
		var err error
		stamp, _ = cfg.Policy.stamp() // before the load, so that a change meanwhile is seen later
		if cfg.Engine.Bundle, note, err = cfg.Policy.Load(); err != nil {
			return nil, fmt.Errorf("start host %s: %w", cfg.Engine.Host, err)
		}
		if note != "" {
			cfg.Tell(note)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{cfg: cfg, cancel: cancel, outlets: cfg.outlets()}
	flags, err := r.flags(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start host %s: %w", cfg.Engine.Host, err)
	}
	if r.engine, r.opened, err = engine.Open(cfg.Engine, cfg.Clock.Now()); err != nil {
		cancel()
		return nil, err
	}
	for _, note := range r.opened.Notes {
		cfg.Tell("state folder: " + note)
	}
	r.watch(ctx, flags, stamp)
	return r, nil
}

// flags makes the flag service's carrier, which connects to nothing yet.
func (r *Runner) flags(ctx context.Context) (*etcd.Carrier, error) {
	if len(r.cfg.Etcd) == 0 {
		return nil, nil
	}
	return etcd.New(ctx, etcd.Options{
		Endpoints: r.cfg.Etcd, Fleet: r.cfg.Engine.Fleet, FullReadEvery: r.cfg.FullReadEvery, Spread: etcd.FleetSpread,
		Now: func() time.Time { return r.Now().Wall }, After: time.After, Rand: rand.Float64,
		Known: func(token []byte) string { return r.engine.Held(token) },
	})
}

// watch offers the environment and begins to watch everything else.
func (r *Runner) watch(ctx context.Context, flags *etcd.Carrier, policyStamp string) {
	if tokens := directive.SplitCarrier(r.cfg.Env); len(tokens) > 0 {
		r.engine.Seen(FromEnv, tokens, nil, r.Now())
	}
	if flags != nil {
		r.engine.Seen(FromEtcd, nil, errNotRead, r.Now())
		r.unheard.Add(1)
	}
	if r.cfg.File != "" {
		r.engine.Seen(FromFile, nil, errNotRead, r.Now())
		r.unheard.Add(1)
	}
	r.writeFiles() // a service that starts after this one finds them
	if flags != nil {
		r.wait.Go(func() { r.watchEtcd(ctx, flags) })
	}
	if r.cfg.File != "" {
		r.wait.Go(func() { r.watchFile(ctx) })
	}
	if r.cfg.Policy != nil {
		r.wait.Go(func() { r.watchPolicy(ctx, policyStamp) })
	}
	if len(r.outlets) > 0 {
		r.wait.Go(func() { r.keepFiles(ctx) })
	}
	r.wait.Go(func() { r.advance(ctx) })
}

// Engine is the host's engine.
func (r *Runner) Engine() *engine.Engine { return r.engine }

// Opened says what the host found in its folder.
func (r *Runner) Opened() engine.Opened { return r.opened }

// Now is the host's clock.
func (r *Runner) Now() model.Instant { return r.cfg.Clock.Now() }

// Report is what the host says about itself now.
func (r *Runner) Report() model.Report { return r.engine.Report(r.Now()) }

// Heard waits until every watched source has been read or has failed once, or ctx
// ends.
func (r *Runner) Heard(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		r.unheard.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Stop ends all watching and gives the folder free.
func (r *Runner) Stop() error {
	r.cancel()
	r.wait.Wait()
	return r.engine.Close(r.Now())
}

// watchEtcd offers what arrives. A break says so in the report and takes nothing
// back.
func (r *Runner) watchEtcd(ctx context.Context, flags *etcd.Carrier) {
	defer flags.Close()
	tried := sync.OnceFunc(r.unheard.Done)
	defer tried()
	held := map[string]string{}
	flags.Watch(ctx, func(arrived []etcd.Arrival) {
		tokens := make([]string, len(arrived))
		for i, a := range arrived {
			held[a.ID], tokens[i] = a.Token, a.Token
		}
		r.engine.OfferAll(FromEtcd, tokens, r.Now())
	}, func(s carriers.Status) {
		defer tried()
		if !s.Connected {
			r.engine.Seen(FromEtcd, nil, errors.New(s.Err), r.Now())
			return
		}
		// Only what is there now: a store that was emptied is no source of what it
		// once held, and the report must not say that it is. What comes back is not
		// delivered twice, so nothing is dropped from held.
		tokens := make([]string, len(s.Present))
		for i, id := range s.Present {
			tokens[i] = held[id]
		}
		r.engine.Seen(FromEtcd, tokens, nil, r.Now())
		if s.Err != "" {
			r.engine.Unchanged(FromEtcd, s.Err, r.Now()) // something in it was ignored
		}
	})
}

func (r *Runner) watchFile(ctx context.Context) {
	tick := time.NewTicker(r.cfg.FileEvery)
	defer tick.Stop()
	tried := sync.OnceFunc(r.unheard.Done)
	defer tried()
	f := carriers.File{Path: r.cfg.File, Ticks: tick.C, Now: func() time.Time { return r.Now().Wall }}
	f.Watch(ctx, func(tokens []string) { r.engine.Seen(FromFile, tokens, nil, r.Now()) }, func(s carriers.Status) {
		defer tried()
		if s.Connected {
			r.engine.Unchanged(FromFile, s.Err, r.Now())
			return
		}
		r.engine.Seen(FromFile, nil, errors.New(s.Err), r.Now())
	})
}

// advance lets the engine keep its folder up to date. Answers are right without
// it.
func (r *Runner) advance(ctx context.Context) {
	trouble := ""
	for {
		next := min(max(r.engine.Advance(r.Now()), advanceLeast), advanceAtLeast)
		trouble = r.changed(trouble, "state folder", r.engine.StoreError())
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// advanceLeast keeps a change that is due at once from spinning.
const advanceLeast = 10 * time.Millisecond

// watchPolicy takes a new policy when there is one that verifies. Until then the
// old one counts.
func (r *Runner) watchPolicy(ctx context.Context, stamp string) {
	tick := time.NewTicker(r.cfg.PolicyEvery)
	defer tick.Stop()
	trouble := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := r.cfg.Policy.stamp()
		if err == nil && now == stamp {
			continue
		}
		if err == nil {
			err = r.takePolicy()
		}
		if trouble = r.changed(trouble, "policy", err); err == nil {
			stamp = now
		}
	}
}

func (r *Runner) takePolicy() error {
	b, note, err := r.cfg.Policy.Load()
	if err != nil {
		return fmt.Errorf("%w; the policy of before stays in force", err)
	}
	if note != "" {
		r.cfg.Tell(note)
	}
	if err := r.engine.SetBundle(b, r.Now()); err != nil {
		return err
	}
	r.cfg.Tell(fmt.Sprintf("policy version %d is in force", b.Ref.Version))
	return nil
}

// changed tells of a trouble when it begins, changes or ends, and not each time
// it is met.
func (r *Runner) changed(before, what string, err error) string {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == before:
	case now == "":
		r.cfg.Tell(what + ": works again")
	default:
		r.cfg.Tell(what + ": " + now)
	}
	return now
}
