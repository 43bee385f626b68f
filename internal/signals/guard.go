package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// guard stands between the API client and the network: it sends the token,
// bounds and looks at each answer, and turns what is no answer of Prometheus
// into an error that says what it is. The client would follow a redirect, report
// a login page as bad JSON, and drop the mark of a partial answer.
type guard struct {
	next    http.RoundTripper
	token   func() (string, error)
	now     func() time.Time
	maxBody int64

	mu    sync.Mutex
	ahead time.Duration
	known bool
}

// wrongAnswer is an answer that no query result can be in.
type wrongAnswer struct{ what string }

func (w *wrongAnswer) Error() string { return w.what }

func wrong(format string, args ...any) error { return &wrongAnswer{fmt.Sprintf(format, args...)} }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := g.authorize(req)
	if err != nil {
		return nil, err
	}
	sent := g.now()
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	g.compareClocks(resp, sent, g.now())
	if err := g.refuse(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, g.maxBody+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > g.maxBody:
		return nil, wrong("it answers with more than %d bytes; the query has too many series", g.maxBody)
	case resp.StatusCode/100 == 2 && isPage(resp, body):
		return nil, wrong("it answers with a web page instead of data, most likely a login page; check the address and run `ic login prometheus`")
	}
	sniffOf(req.Context()).look(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// authorize works on a copy: a RoundTripper must not change what it was given.
func (g *guard) authorize(req *http.Request) (*http.Request, error) {
	if g.token == nil {
		return req, nil
	}
	token, err := g.token()
	if err != nil {
		return nil, wrong("its token cannot be read: %v", err)
	}
	if token == "" {
		return req, nil
	}
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req, nil
}

// refuse knows what it need not read. A 403 goes on to the client, which then
// asks again with GET: some proxies let nothing else through.
func (g *guard) refuse(resp *http.Response) error {
	switch {
	case resp.StatusCode/100 == 3:
		return wrong("it answers %d and sends us to %q, most likely a login page; redirects are not followed: check the address and run `ic login prometheus`",
			resp.StatusCode, resp.Header.Get("Location"))
	case resp.StatusCode == http.StatusUnauthorized && g.token == nil:
		return wrong("it wants a token (401); run `ic login prometheus`")
	case resp.StatusCode == http.StatusUnauthorized:
		return wrong("it refuses our token (401); run `ic login prometheus` again")
	}
	return nil
}

func isPage(resp *http.Response, body []byte) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/html" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// compareClocks takes the Date of an answer, which is cut to seconds, against
// the middle of our wait. An answer out of a cache says nothing about now.
func (g *guard) compareClocks(resp *http.Response, sent, received time.Time) {
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || strings.TrimLeft(resp.Header.Get("Age"), "0") != "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ahead, g.known = date.Add(time.Second/2).Sub(sent.Add(received.Sub(sent)/2)), true
}

func (g *guard) skew() (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ahead, g.known
}

// sniff carries what the guard saw in an answer past the client, which decodes
// only what it knows. Each query has its own, in its context.
type sniff struct{ partial bool }

type sniffKey struct{}

func withSniff(ctx context.Context) (context.Context, *sniff) {
	s := new(sniff)
	return context.WithValue(ctx, sniffKey{}, s), s
}

// sniffOf never returns nil: queries that are no signals have none.
func sniffOf(ctx context.Context) *sniff {
	if s, ok := ctx.Value(sniffKey{}).(*sniff); ok {
		return s
	}
	return new(sniff)
}

// look finds the mark by which VictoriaMetrics says that a part of its storage
// did not answer.
func (s *sniff) look(body []byte) {
	var marks struct {
		IsPartial bool `json:"isPartial"`
	}
	// What is not JSON is the client's to report.
	s.partial = json.Unmarshal(body, &marks) == nil && marks.IsPartial
}

// whole is nil if the answer claims to be complete.
func (s *sniff) whole(warnings []string) error {
	switch {
	case s.partial:
		return found(model.ReadingPartial, "the answer is partial: a part of the storage did not answer")
	case len(warnings) > 0:
		return found(model.ReadingPartial, "the answer comes with a warning: %s", warnings[0])
	}
	return nil
}
