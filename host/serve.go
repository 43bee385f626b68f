package host

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/degradedmode/ic/host/metrics"
)

// Handler serves the report of this host and answers the same questions over
// HTTP, as an ic-agent does. Mount it where the console and Prometheus find it.
// maxAge is the age of a source from which /freshz fails; what sources count is
// part of /metrics.
func (h *Host) Handler(maxAge time.Duration, sources ...metrics.Source) http.Handler {
	answers := sync.OnceValue(func() http.Handler { return h.run.Load().Handler(maxAge) })
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", metrics.ContentType)
		if h.run.Load() != nil {
			answers().ServeHTTP(w, r)
		}
		_ = metrics.Write(w, sources...) // the asker has gone
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if h.run.Load() == nil {
			http.Error(w, "no policy verifies yet; the declared defaults count", http.StatusServiceUnavailable)
			return
		}
		answers().ServeHTTP(w, r)
	})
	return mux
}
