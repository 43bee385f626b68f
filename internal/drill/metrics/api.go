package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// queryLimit is the longest a query may take, in real time; one over the
	// demo's window takes milliseconds.
	queryLimit = 10 * time.Second
	// maxSamples bounds what one query may load: every series of the store for
	// its whole window stays below.
	maxSamples = 20_000_000
	// maxForm bounds the body of a query posted as a form.
	maxForm = 1 << 20
	// lookback is how old a sample may be to count as present; Prometheus'
	// default, so that a policy's expressions mean the same here.
	lookback = 5 * time.Minute
	// maxPoints of one series in a range query; Prometheus' own limit.
	maxPoints = 11000
)

// Sight is what a reader gets to see.
type Sight int32

const (
	// Seeing answers with what is in the store.
	Seeing Sight = iota
	// Blind answers 503 to everything, the health check included: the fault
	// prometheus-blind.
	Blind
	// Hollow answers every query with success and no series: a Prometheus that
	// is up and has lost its data or its targets.
	Hollow
	// Partial answers with what is in the store and with the mark of a storage of
	// which a part did not answer.
	Partial
)

// API serves the Prometheus HTTP API over a store. It is an http.Handler for a
// socket and an http.RoundTripper for a client in the same process.
type API struct {
	store  *Store
	now    func() time.Time
	engine *promql.Engine
	parser parser.Parser
	mux    *http.ServeMux
	sight  atomic.Int32
}

// NewAPI serves store; now is the world's clock, the time of a query that names
// none.
func NewAPI(store *Store, now func() time.Time) *API {
	p := parser.NewParser(parser.Options{})
	a := &API{store: store, now: now, parser: p, mux: http.NewServeMux()}
	a.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: queryLimit, LookbackDelta: lookback, Parser: p,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
	})
	a.routes()
	return a
}

// SetSight changes what readers get to see from now on.
func (a *API) SetSight(s Sight) { a.sight.Store(int32(s)) }

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if Sight(a.sight.Load()) == Blind {
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	a.mux.ServeHTTP(w, r)
}

func (a *API) routes() {
	both := func(path string, h func(*http.Request) (*body, error)) {
		a.mux.HandleFunc("GET "+path, a.answer(h))
		a.mux.HandleFunc("POST "+path, a.answer(h))
	}
	both("/api/v1/query", a.query)
	both("/api/v1/query_range", a.queryRange)
	both("/api/v1/labels", a.labelNames)
	both("/api/v1/series", a.series)
	a.mux.HandleFunc("GET /api/v1/label/{name}/values", a.answer(a.labelValues))
	a.mux.HandleFunc("GET /api/v1/status/buildinfo", a.answer(a.buildInfo))
	for _, path := range []string{"GET /-/healthy", "GET /-/ready"} {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "the drill's Prometheus API is up")
		})
	}
	a.mux.HandleFunc("/", a.answer(func(r *http.Request) (*body, error) {
		return nil, &failure{"not_found", http.StatusNotFound, fmt.Errorf("the drill's Prometheus API does not serve %q", r.URL.Path)}
	}))
}

// body is every answer of the API.
type body struct {
	Status    string   `json:"status"`
	Data      any      `json:"data,omitempty"`
	ErrorType string   `json:"errorType,omitempty"`
	Error     string   `json:"error,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Infos     []string `json:"infos,omitempty"`
	IsPartial bool     `json:"isPartial,omitempty"` // VictoriaMetrics' mark
}

// failure is an error with the name and the status that Prometheus gives it.
type failure struct {
	kind string
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func badData(format string, args ...any) error {
	return &failure{"bad_data", http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// answer turns a handler's result or error into the API's JSON.
func (a *API) answer(h func(*http.Request) (*body, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		out, err := parsed(h, r)
		code := http.StatusOK
		var f *failure
		switch {
		case errors.As(err, &f):
			code, out = f.code, &body{Status: "error", ErrorType: f.kind, Error: f.Error()}
		case err != nil:
			code, out = http.StatusInternalServerError, &body{Status: "error", ErrorType: "internal", Error: err.Error()}
		default:
			out.Status, out.IsPartial = "success", Sight(a.sight.Load()) == Partial
		}
		text, err := json.Marshal(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		// An error here is a client that has gone.
		_, _ = w.Write(append(text, '\n'))
	}
}

func parsed(h func(*http.Request) (*body, error), r *http.Request) (*body, error) {
	if err := r.ParseForm(); err != nil {
		return nil, badData("parse the form: %w", err)
	}
	return h(r)
}

// executed gives the engine's errors the names that the API has for them.
func executed(err error) error {
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var storage promql.ErrStorage
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return &failure{"canceled", http.StatusServiceUnavailable, err}
	case errors.As(err, &timeout):
		return &failure{"timeout", http.StatusServiceUnavailable, err}
	case errors.As(err, &storage):
		return &failure{"internal", http.StatusInternalServerError, err}
	}
	return &failure{"execution", http.StatusUnprocessableEntity, err}
}

func (a *API) buildInfo(*http.Request) (*body, error) {
	return &body{Data: map[string]string{
		"version": "ic-drill", "revision": "", "branch": "", "buildUser": "", "buildDate": "",
		"goVersion": runtime.Version(),
	}}, nil
}
