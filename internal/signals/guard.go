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
	"github.com/degradedmode/ic/internal/untrusted"
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

	mu        sync.Mutex
	dated     ServerClock // by the Date of an answer
	evaluated ServerClock // by the time at which a query was evaluated
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
	g.readDate(resp, sent, g.now())
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
	case resp.StatusCode/100 == 2 && !isData(resp):
		return nil, wrong("it answers with %q instead of JSON; check the address", resp.Header.Get("Content-Type"))
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

// isData lets through what proxies make of the type of a JSON answer, none at all
// included. An image or a form is no data, whatever its bytes look like.
func isData(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "", "application/json", "text/json", "text/plain", "application/octet-stream":
		return true
	}
	return strings.HasSuffix(kind, "+json")
}

// sniff carries what the guard saw in an answer past the client, which decodes
// only what it knows. Each query has its own, in its context.
type sniff struct {
	partial bool
	odd     string // why this is no answer of Prometheus; "" when it is one
}

type sniffKey struct{}

func withSniff(ctx context.Context) (context.Context, *sniff) {
	s := new(sniff)
	return context.WithValue(ctx, sniffKey{}, s), s
}

// sniffOf never returns nil: queries of other readers have none.
func sniffOf(ctx context.Context) *sniff {
	if s, ok := ctx.Value(sniffKey{}).(*sniff); ok {
		return s
	}
	return new(sniff)
}

// look finds the mark by which VictoriaMetrics says that a part of its storage
// did not answer. Whatever the mark holds but a plain no is a yes. The client
// reads JSON more leniently than the standard library and takes an answer
// without a status for one without data: neither is good enough for a number.
func (s *sniff) look(body []byte) {
	var marks struct {
		Status    string          `json:"status"`
		IsPartial json.RawMessage `json:"isPartial"`
	}
	*s = sniff{}
	switch err := json.Unmarshal(body, &marks); {
	case err != nil:
		s.odd = "it is not JSON"
	case marks.Status != "success" && marks.Status != "error":
		s.odd = "it has no status"
	}
	switch string(marks.IsPartial) {
	case "", "false", "null":
	default:
		s.partial = true
	}
}

// whole is nil if the answer is one of Prometheus and claims to be complete.
func (s *sniff) whole(warnings []string) error {
	switch {
	case s.odd != "":
		return found(model.ReadingError, "the answer is not one of Prometheus: %s", s.odd)
	case s.partial:
		return found(model.ReadingPartial, "the answer is partial: a part of the storage did not answer")
	case len(warnings) > 0:
		return found(model.ReadingPartial, "the answer comes with a warning: %s", first(warnings))
	}
	return nil
}

// first quotes one of several remarks and says how many there are.
func first(remarks []string) string {
	if more := len(remarks) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", untrusted.Text(remarks[0], maxRemark), more)
	}
	return remarks[0]
}
