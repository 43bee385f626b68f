package hostrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
)

// DefaultMaxAge is how old a watched source may be before /freshz says that this
// host may be behind. A healthy one is read in full every minute at the latest.
const DefaultMaxAge = 5 * time.Minute

const maxAsk = 4096 // bytes of a question to /v1/allow

// Handler answers what others ask about this host, and its services about what
// they may do:
//
//	GET  /report    the report, JSON
//	GET  /metrics   the report for Prometheus
//	GET  /healthz   200 while the process runs
//	GET  /freshz    503 when a watched source has not been read for maxAge
//	GET  /v1/state  tiers, features that are off, bypasses; loopback only
//	POST /v1/allow  may one item pass; counts it; loopback only
//
// Nothing here changes what the host holds.
func (r *Runner) Handler(maxAge time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, r.Report()) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = fleet.WriteMetrics(w, r.Report()) // the asker has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /freshz", func(w http.ResponseWriter, _ *http.Request) { r.fresh(w, maxAge) })
	mux.Handle("GET /v1/state", local(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, r.State()) }))
	mux.Handle("POST /v1/allow", local(r.allow))
	return mux
}

// fresh fails when data is old, not when a connection is down: a host that is
// cut off still knows what it knows. It must never be a liveness probe, which
// would restart hosts in the middle of an outage of the flag service.
func (r *Runner) fresh(w http.ResponseWriter, maxAge time.Duration) {
	limit := int64(maxAge / time.Second)
	for _, s := range r.Report().Sources {
		if s.Name != FromEnv && (s.AgeS < 0 || s.AgeS > limit) {
			how := fmt.Sprintf("was last read %d s ago", s.AgeS)
			if s.AgeS < 0 {
				how = "has not been read since the start"
			}
			http.Error(w, fmt.Sprintf("source %s %s: %s", s.Name, how, s.Error), http.StatusServiceUnavailable)
			return
		}
	}
	_, _ = io.WriteString(w, "fresh\n")
}

// State is what a service needs to know of its host.
type State struct {
	V        int                     `json:"v"`
	At       time.Time               `json:"at"`
	Services map[string]ServiceState `json:"services"`
	Off      []string                `json:"off"` // features
	Bypasses []BypassState           `json:"bypasses"`
}

// ServiceState is the tier in force for one service.
type ServiceState struct {
	Tier int `json:"tier"`
}

// BypassState is one bypass that is open here until its end at the latest.
type BypassState struct {
	ID      string      `json:"id"`
	Control string      `json:"control"`
	Scope   string      `json:"scope"`
	Under   model.Money `json:"under"`
	Until   time.Time   `json:"until"`
}

// State is what is in force for the services of this host.
func (r *Runner) State() State {
	now := r.Now()
	s := State{V: 1, At: now.Wall.Round(0).UTC().Truncate(time.Millisecond), Services: map[string]ServiceState{}, Off: []string{}, Bypasses: []BypassState{}}
	for _, service := range r.cfg.Engine.Services {
		s.Services[service] = ServiceState{Tier: r.engine.Tier(service, now)}
	}
	seen := map[string]bool{}
	for _, one := range r.engine.Standing(now) {
		d := &one.Directive
		mine := false
		for service := range s.Services {
			mine = mine || d.Covers(service)
		}
		switch {
		case !mine:
		case d.Kind == model.Off && !seen[d.Feature]:
			seen[d.Feature] = true
			s.Off = append(s.Off, d.Feature)
		case d.Kind == model.Bypass:
			s.Bypasses = append(s.Bypasses, BypassState{ID: d.ID, Control: d.Control, Scope: d.Scope, Under: d.Caps.Under, Until: d.NotAfter})
		}
	}
	return s
}

// ask is the question of one item.
type ask struct {
	Control string      `json:"control"`
	Service string      `json:"service"`
	Amount  model.Money `json:"amount"`
}

// Verdict is the answer.
type Verdict struct {
	Allowed bool       `json:"allowed"`
	Reason  model.Code `json:"reason,omitempty"` // why not
}

func (r *Runner) allow(w http.ResponseWriter, req *http.Request) {
	// A page in a browser on this machine may post forms, but not JSON.
	if req.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("send application/json"))
		return
	}
	var q ask
	dec := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxAsk))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf(`want {"control": "…", "service": "…", "amount": "49.99 USD"}: %w`, err))
		return
	}
	if q.Control == "" || q.Service == "" || q.Amount.IsZero() {
		refuse(w, http.StatusBadRequest, errors.New("control, service and amount are required"))
		return
	}
	ok, code := r.engine.Allow(q.Control, q.Service, q.Amount, r.Now())
	answer(w, http.StatusOK, Verdict{Allowed: ok, Reason: code})
}

// local keeps strangers from spending a budget, by address and by the name they
// asked for: a name that was made to lead here is not ours.
func local(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !loopback(req.RemoteAddr) || !loopback(req.Host) {
			refuse(w, http.StatusForbidden, errors.New("this is answered on this machine only, by its loopback address"))
			return
		}
		next(w, req)
	})
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func refuse(w http.ResponseWriter, status int, err error) {
	answer(w, status, struct {
		Error string `json:"error"`
	}{err.Error()})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the asker has gone
}
