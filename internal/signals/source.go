package signals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/model"
	promclient "github.com/prometheus/client_golang/api"
	promapi "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/sync/errgroup"
)

// Limits and defaults.
const (
	DefaultTimeout = 5 * time.Second // of all queries of one signal in one Read
	DefaultMaxBody = 4 << 20         // bytes of one answer: one series needs a hundredth of it
	MaxHistory     = 2000            // samples in a window: more is a step that is too small
	MaxSeries      = 20_000          // series of one answer that is no signal: the hosts of an inventory
	concurrency    = 8               // signals asked at once: a Prometheus in trouble runs 20 queries
	maxHeader      = 64 << 10        // bytes of an answer's header: a cookie of a login fits many times
	maxFuture      = 5 * time.Second // a sample may be ahead of the question: two servers keep time by NTP
)

// Options say where Prometheus is. URL and Now are required.
type Options struct {
	URL          string            // http or https, without a user; a path in front of /api/v1 is kept
	RoundTripper http.RoundTripper // nil: a new http.Transport with the environment's proxies
	// Token is asked for the bearer token of each request; nil: none. An empty
	// one is not sent.
	Token   func() (string, error)
	Now     func() time.Time
	Timeout time.Duration // 0: DefaultTimeout
	MaxBody int64         // 0: DefaultMaxBody
}

// Spec is one signal: a query that gives one number.
type Spec struct {
	Name   string
	Query  string
	Flaw   string // what a look at the query has found when the policy was loaded; "" for nothing
	Unit   string
	MaxAge model.Duration // how old a sample may be; 0: as old as Prometheus lets it be
	Step   model.Duration // distance of two samples of the history
	Window model.Duration // length of the history; 0: none
}

// Source is one Prometheus. It is safe for concurrent use.
type Source struct {
	api   promapi.API
	guard *guard
	opts  Options

	mu    sync.Mutex
	turns map[string]chan struct{} // by signal; whoever is asking has put an element in
}

// New checks the options and asks for nothing.
func New(o Options) (*Source, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("prometheus: the address is not like https://prometheus.example:9090; check the configuration")
	}
	if u.User != nil {
		return nil, errors.New("prometheus: the address holds a user or password; take it out and use `ic login prometheus`")
	}
	if o.Now == nil {
		return nil, errors.New("prometheus: Now is required")
	}
	if o.RoundTripper == nil {
		o.RoundTripper = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: concurrency, MaxResponseHeaderBytes: maxHeader}
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	g := &guard{next: o.RoundTripper, token: o.Token, now: o.Now, maxBody: o.MaxBody}
	client, err := promclient.NewClient(promclient.Config{Address: u.String(), RoundTripper: g})
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return &Source{api: promapi.NewAPI(client), guard: g, opts: o, turns: make(map[string]chan struct{})}, nil
}

// API is the same Prometheus behind the same guards, for queries that are no
// signals.
func (s *Source) API() promapi.API { return s.api }

// Read asks for every signal and returns one reading for each, by name, whatever
// happens. A signal has one query under way at a time, also over several calls;
// the rest waits for its turn within its deadline.
func (s *Source) Read(ctx context.Context, specs []Spec) map[string]model.Reading {
	readings := make([]model.Reading, len(specs))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, spec := range specs {
		group.Go(func() error {
			readings[i] = s.read(ctx, spec)
			return nil // a failure is in the reading
		})
	}
	_ = group.Wait() // no goroutine returns an error
	out := make(map[string]model.Reading, len(specs))
	for _, r := range readings {
		out[r.Signal] = r
	}
	return out
}

func (s *Source) read(ctx context.Context, spec Spec) model.Reading {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	q := query{Source: s, spec: spec, reading: model.Reading{Signal: spec.Name, Unit: spec.Unit, Step: spec.Step}}
	turn := s.turn(spec.Name)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
		q.run(ctx)
	case <-ctx.Done():
		q.settle(model.ReadingError, "the query before it has not come back")
	}
	if spec.Flaw != "" && q.reading.State != model.ReadingValue {
		q.settle(q.reading.State, q.reading.Detail+"; "+spec.Flaw)
	}
	return q.reading
}

func (s *Source) turn(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[name] == nil {
		s.turns[name] = make(chan struct{}, 1)
	}
	return s.turns[name]
}
