package metrics

import (
	"bytes"
	"io"
	"net/http"
	"slices"
)

var _ http.RoundTripper = (*API)(nil)

// RoundTrip answers a request of this process without a socket: the same
// handler, the same bytes.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	// A server's request always has a body; a client's may not.
	served := r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	defer served.Body.Close()
	rec := &recorder{head: make(http.Header)}
	a.ServeHTTP(rec, served)
	return &http.Response{
		Status: http.StatusText(rec.status()), StatusCode: rec.status(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rec.head, Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer in memory.
type recorder struct {
	head http.Header
	code int
	body bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.head }

func (r *recorder) WriteHeader(code int) {
	if r.code == 0 {
		r.code = code
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

func (r *recorder) status() int {
	if r.code == 0 {
		return http.StatusOK
	}
	return r.code
}

// union joins two sorted lists without doubles.
func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}
