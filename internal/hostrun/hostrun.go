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
	advanceAtLeast  = time.Second // the engine wants it every ten; state on disk is fresher this way
)

// Config of one host. Engine.Folder decides whether it remembers.
type Config struct {
	Engine engine.Config
	Clock  model.Clock
	Env    string   // value of IC_DIRECTIVES at the start of the process
	File   string   // watched file; "" none
	Etcd   []string // endpoints; none: no flag service

	FullReadEvery time.Duration // 0: DefaultFullRead
	FileEvery     time.Duration // 0: DefaultFile
}

// Runner is a host that runs.
type Runner struct {
	cfg    Config
	engine *engine.Engine
	opened engine.Opened
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// Start opens the engine, offers the environment and begins to watch. It fails
// only for a configuration that is wrong: a folder that is damaged, a file that
// is not there and a flag service that is dead are states, not failures.
func Start(cfg Config) (*Runner, error) {
	if cfg.FullReadEvery == 0 {
		cfg.FullReadEvery = DefaultFullRead
	}
	if cfg.FileEvery == 0 {
		cfg.FileEvery = DefaultFile
	}
	e, opened, err := engine.Open(cfg.Engine, cfg.Clock.Now())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{cfg: cfg, engine: e, opened: opened, cancel: cancel}
	if tokens := directive.SplitCarrier(cfg.Env); len(tokens) > 0 {
		e.Seen(FromEnv, tokens, nil, cfg.Clock.Now())
	}
	if len(cfg.Etcd) > 0 {
		flags, err := etcd.New(ctx, etcd.Options{
			Endpoints: cfg.Etcd, Fleet: cfg.Engine.Fleet, FullReadEvery: cfg.FullReadEvery,
			Now: func() time.Time { return cfg.Clock.Now().Wall }, After: time.After, Rand: rand.Float64,
		})
		if err != nil {
			cancel()
			return nil, errors.Join(fmt.Errorf("start host %s: %w", cfg.Engine.Host, err), e.Close(cfg.Clock.Now()))
		}
		r.wait.Go(func() { r.watchEtcd(ctx, flags) })
	}
	if cfg.File != "" {
		r.wait.Go(func() { r.watchFile(ctx) })
	}
	r.wait.Go(func() { r.advance(ctx) })
	return r, nil
}

// Engine is the host's engine.
func (r *Runner) Engine() *engine.Engine { return r.engine }

// Opened says what the host found in its folder.
func (r *Runner) Opened() engine.Opened { return r.opened }

// Now is the host's clock.
func (r *Runner) Now() model.Instant { return r.cfg.Clock.Now() }

// Report is what the host says about itself now.
func (r *Runner) Report() model.Report { return r.engine.Report(r.Now()) }

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
	held := map[string]string{}
	var full time.Time
	flags.Watch(ctx, func(id, token string) {
		held[id] = token
		r.engine.Offer(FromEtcd, token, r.Now())
	}, func(s carriers.Status) {
		switch {
		case !s.Connected:
			r.engine.Seen(FromEtcd, nil, errors.New(s.Err), r.Now())
		case s.LastFullRead.After(full):
			full = s.LastFullRead
			tokens := make([]string, 0, len(held))
			for _, token := range held {
				tokens = append(tokens, token)
			}
			r.engine.Seen(FromEtcd, tokens, nil, r.Now())
		}
	})
}

func (r *Runner) watchFile(ctx context.Context) {
	tick := time.NewTicker(r.cfg.FileEvery)
	defer tick.Stop()
	f := carriers.File{Path: r.cfg.File, Ticks: tick.C, Now: func() time.Time { return r.Now().Wall }}
	f.Watch(ctx, func(tokens []string) { r.engine.Seen(FromFile, tokens, nil, r.Now()) }, func(s carriers.Status) {
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
	for {
		next := min(max(r.engine.Advance(r.Now()), advanceLeast), advanceAtLeast)
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
