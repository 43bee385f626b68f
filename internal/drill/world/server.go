package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/pipeline"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/fleet"
)

// Paths of the control server.
const (
	faultsPath = "/faults"
	statusPath = "/status"
	stopPath   = "/stop"
)

func reportPath(host string) string { return "/hosts/" + host + "/report" }

// faultLimit is how long a fault may take to happen: an etcd that starts again
// needs a second.
const faultLimit = 15 * time.Second

// Status is what GET /status answers.
type Status struct {
	At       time.Time       `json:"at"`
	Speed    int             `json:"speed"`
	Faults   []faults.State  `json:"faults"`
	Pipeline pipeline.Status `json:"pipeline"`
	HostsUp  int             `json:"hosts_up"`
	Hosts    int             `json:"hosts"`
}

// routes serves the clock, the faults, the reports and the end. Every request is
// a sign that a client is there.
func (w *World) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+worldclock.Path, w.clock)
	mux.HandleFunc("GET "+faultsPath, func(out http.ResponseWriter, _ *http.Request) { answer(out, w.faults.List()) })
	mux.HandleFunc("POST "+faultsPath+"/{name}", w.setFault)
	mux.HandleFunc("GET "+statusPath, func(out http.ResponseWriter, _ *http.Request) { answer(out, w.Status()) })
	mux.HandleFunc("POST "+stopPath, func(out http.ResponseWriter, _ *http.Request) {
		answer(out, map[string]bool{"stopping": true})
		w.stop()
	})
	mux.HandleFunc("GET /hosts/{host}/report", w.serveReport)
	mux.HandleFunc("GET /hosts/{host}/metrics", w.serveMetrics)
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.touched.Store(w.o.Real().UnixNano())
		mux.ServeHTTP(out, r)
	})
}

func answer(out http.ResponseWriter, v any) {
	out.Header().Set("Content-Type", "application/json")
	// An error here is a client that has gone.
	_ = json.NewEncoder(out).Encode(v)
}

func (w *World) setFault(out http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), faultLimit)
	defer cancel()
	act := w.faults.Inject
	if r.URL.Query().Get("clear") == "1" {
		act = w.faults.Clear
	}
	err := act(ctx, r.PathValue("name"))
	switch {
	case errors.Is(err, faults.ErrUnknown):
		http.Error(out, err.Error(), http.StatusNotFound)
	case err != nil:
		http.Error(out, err.Error(), http.StatusInternalServerError)
	default:
		answer(out, w.faults.List())
	}
}

func (w *World) serveReport(out http.ResponseWriter, r *http.Request) {
	n, ok := w.byName[r.PathValue("host")]
	if !ok {
		http.NotFound(out, r)
		return
	}
	report, up := n.report()
	if !up {
		http.Error(out, "the host is down", http.StatusServiceUnavailable)
		return
	}
	answer(out, report)
}

func (w *World) serveMetrics(out http.ResponseWriter, r *http.Request) {
	n, ok := w.byName[r.PathValue("host")]
	if !ok {
		http.NotFound(out, r)
		return
	}
	if report, up := n.report(); up {
		out.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_ = fleet.WriteMetrics(out, report) // an error here is a client that has gone
		return
	}
	http.Error(out, "the host is down", http.StatusServiceUnavailable)
}

// Status is the world as it stands.
func (w *World) Status() Status {
	s := Status{At: w.clock.At(), Speed: w.clock.Speed(), Faults: w.faults.List(), Pipeline: w.pipeline.Status(), Hosts: len(w.nodes)}
	for _, n := range w.nodes {
		if n.Up() {
			s.HostsUp++
		}
	}
	return s
}

// listen opens a server on a free port of loopback and says where.
func listen() (net.Listener, string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("open a port on loopback: %w", err)
	}
	return l, "http://" + l.Addr().String(), nil
}

// dated answers with the world's own date: a console compares it with its clock.
func dated(h http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Date", now().UTC().Format(http.TimeFormat))
		h.ServeHTTP(out, r)
	})
}

// serverLimits bound what a client may hold up.
const (
	headerLimit = 5 * time.Second
	idleLimit   = time.Minute
)

func serve(l net.Listener, h http.Handler) *http.Server {
	s := &http.Server{Handler: h, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit}
	go s.Serve(l) // ends with Close; then it says only that
	return s
}
