package hostrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/ofrep"
)

// DefaultMaxAge is how old a watched source may be before /freshz says that this
// host may be behind. A healthy one is read in full every minute at the latest.
const DefaultMaxAge = 5 * time.Minute

// Handler answers what others ask about this host, and its services about what
// they may do:
//
//	GET  /report    the report, JSON
//	GET  /metrics   the report for Prometheus
//	GET  /healthz   200 while the process runs
//	GET  /freshz    503 when a watched source has not been read for maxAge
//	GET  /v1/state  tiers, features, bypasses; this machine only
//	POST /v1/allow  may one item pass; counts it; this machine only
//	POST /ofrep/v1/evaluate/flags and …/flags/KEY  the same as flags; this machine only
//
// Nothing here changes what the host holds.
func (r *Runner) Handler(maxAge time.Duration) http.Handler {
	d := &desk{run: r, maxAge: maxAge}
	flags := local(ofrep.Handler(d.flags))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, r.Report()) })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = fleet.WriteMetrics(w, r.Report()) // the asker has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /freshz", func(w http.ResponseWriter, _ *http.Request) { r.fresh(w, maxAge) })
	mux.Handle("GET /v1/state", local(http.HandlerFunc(d.state)))
	mux.Handle("POST /v1/allow", local(http.HandlerFunc(d.allow)))
	mux.Handle(ofrep.BulkPath, flags)
	mux.Handle(ofrep.BulkPath+"/", flags)
	return mux
}

// fresh fails when data is old, not when a connection is down: a host that is
// cut off still knows what it knows. It must never be a liveness probe, which
// would restart hosts in the middle of an outage of the flag service.
func (r *Runner) fresh(w http.ResponseWriter, maxAge time.Duration) {
	worst, watched := oldest(r.Report().Sources)
	if !watched || worst.AgeS >= 0 && worst.AgeS <= int64(maxAge/time.Second) {
		_, _ = io.WriteString(w, "fresh\n")
		return
	}
	how := fmt.Sprintf("was last read %d s ago", worst.AgeS)
	if worst.AgeS < 0 {
		how = "has not been read since the start"
	}
	http.Error(w, fmt.Sprintf("source %s %s: %s", worst.Name, how, worst.Error), http.StatusServiceUnavailable)
}

func (d *desk) state(w http.ResponseWriter, _ *http.Request) {
	v, err := d.now()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	answer(w, http.StatusOK, v.state)
}

// local keeps strangers from spending a budget, by address and by the name they
// asked for: a name that was made to lead here is not ours. Who may open a socket
// in the file system is decided there.
func local(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		at, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
		bySocket := at != nil && at.Network() == "unix"
		if !bySocket && (!Loopback(req.RemoteAddr) || !Loopback(req.Host)) {
			refuse(w, http.StatusForbidden, errors.New("this is answered on this machine only, by its loopback address"))
			return
		}
		next.ServeHTTP(w, req)
	})
}

// Loopback reports whether an address, with or without its port, leads to this
// machine alone.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
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
