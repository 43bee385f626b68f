package signals_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/signals"
)

func TestAnswersThatAreNotPrometheussAreNamed(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); w.Write([]byte(body)) }
	}
	for _, c := range []struct {
		what   string
		answer http.HandlerFunc
		want   string
	}{
		{"a redirect to a login page", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login?from=x", http.StatusFound)
		}, `302 and sends us to "/login?from=x", most likely a login page`},
		{"a login page by its type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Write([]byte("Sign in"))
		}, "most likely a login page"},
		{"401", status(401, "no"), "wants a token (401)"},
		{"403", status(403, "no"), "client error: 403"},
		{"404", status(404, "<html>no</html>"), "client error: 404"},
		{"500", status(500, "<html>oops</html>"), "server error: 500"},
		{"503", status(503, `{"status":"error"}`), "server error: 503"},
		{"a refused query", status(400, `{"status":"error","errorType":"bad_data","error":"parse error\u001b"}`), `refuses the query: parse error\x1b`},
		{"a giant body", func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat("x", 64<<10))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "more than 4194304 bytes"},
		{"a body that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		}, "cannot be asked: unexpected EOF"},
	} {
		var calls atomic.Int32
		p := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			if !strings.HasPrefix(r.URL.Path, "/api/v1/") {
				t.Errorf("%s: a redirect was followed to %s", c.what, r.URL)
			}
			c.answer(w, r)
		})
		got := read(t, source(t, p), signals.Spec{Query: "up"})
		if got.State != model.ReadingError || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %s %q, want %q", c.what, got.State, got.Detail, c.want)
		}
	}
}

func TestAProxyThatOnlyLetsGETThroughIsUsed(t *testing.T) {
	p := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Write([]byte(vector("1")))
	})
	if got := read(t, source(t, p), signals.Spec{Query: "up+0"}); got.State != model.ReadingValue {
		t.Errorf("reading is %+v", got)
	}
}

func TestASlowPrometheusEndsAtTheDeadline(t *testing.T) {
	release := make(chan struct{})
	p := serveFunc(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	s := source(t, p, func(o *signals.Options) { o.Timeout = 100 * time.Millisecond })
	if got := read(t, s, signals.Spec{Query: "up"}); got.State != model.ReadingError || !strings.Contains(got.Detail, "no answer in time") {
		t.Errorf("reading is %+v", got)
	}
}

func TestAPrometheusThatIsGoneIsSaid(t *testing.T) {
	p := serve(t, nil)
	s := source(t, p)
	p.Close()
	if got := read(t, s, signals.Spec{Query: "up"}); got.State != model.ReadingError || !strings.Contains(got.Detail, "connection refused") {
		t.Errorf("reading is %+v", got)
	}
}

func TestASignalHasOneQueryUnderWay(t *testing.T) {
	var running, most atomic.Int32
	entered, release := make(chan struct{}, 8), make(chan struct{})
	p := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		entered <- struct{}{}
		<-release
		w.Write([]byte(vector("1")))
	})
	s := source(t, p)
	spec := []signals.Spec{{Name: "a", Query: "a+0"}}
	var group sync.WaitGroup
	group.Go(func() { s.Read(context.Background(), spec) })
	<-entered
	// The second one waits for its turn and gives up with its own context.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := s.Read(ctx, spec)["a"]; got.State != model.ReadingError || !strings.Contains(got.Detail, "has not come back") {
		t.Errorf("the second reading is %+v", got)
	}
	group.Go(func() { s.Read(context.Background(), spec) })
	close(release)
	group.Wait()
	if most.Load() != 1 || len(p.asked) != 2 {
		t.Errorf("%d queries at once, %d in all", most.Load(), len(p.asked))
	}
}

func TestTheTokenIsSentAndNeverShown(t *testing.T) {
	const secret = "s3cr3t-token"
	p := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			t.Errorf("Authorization is %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	s := source(t, p, func(o *signals.Options) { o.Token = func() (string, error) { return secret, nil } })
	got := read(t, s, signals.Spec{Query: "up"})
	if !strings.Contains(got.Detail, "refuses our token (401); run `ic login prometheus` again") || strings.Contains(got.Detail, secret) {
		t.Errorf("detail is %q", got.Detail)
	}
	s = source(t, p, func(o *signals.Options) { o.Token = func() (string, error) { return "line\nbreak", nil } })
	if got := read(t, s, signals.Spec{Query: "up"}); got.State != model.ReadingError || strings.Contains(got.Detail, "break") {
		t.Errorf("a token with a line break: %q", got.Detail)
	}
	asked := len(p.asked)
	s = source(t, p, func(o *signals.Options) {
		o.Token = func() (string, error) { return "", errors.New("the keyring is locked") }
	})
	if got := read(t, s, signals.Spec{Query: "up"}); !strings.Contains(got.Detail, "the keyring is locked") || len(p.asked) != asked {
		t.Errorf("detail is %q, %d queries without a token", got.Detail, len(p.asked)-asked)
	}
}

func TestThePathInFrontOfTheAPIIsKept(t *testing.T) {
	p := serve(t, map[string]string{"up+0": vector("1")})
	s := source(t, p, func(o *signals.Options) { o.URL += "/prometheus/" })
	read(t, s, signals.Spec{Query: "up+0"})
	if len(p.asked) != 1 || p.asked[0].URL.Path != "/prometheus/api/v1/query" {
		t.Errorf("asked %v", p.asked)
	}
	if _, _, _, err := s.API().Query(t.Context(), "up+0", t0); err != nil {
		t.Errorf("the same API for other queries: %v", err)
	}
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	now := func() time.Time { return t0 }
	for _, o := range []signals.Options{
		{URL: "prometheus:9090", Now: now},
		{URL: "", Now: now},
		{URL: "file:///etc/passwd", Now: now},
		{URL: "http://ana:secret@" + net.JoinHostPort("h", "1"), Now: now},
		{URL: "http://h:1"},
	} {
		if _, err := signals.New(o); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("New(%q): %v", o.URL, err)
		}
	}
}
