package etcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/drill/proxy"
	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// patience is how long a test waits for something that should happen at once.
const patience = 40 * time.Second

// shared is the etcd of every test that does not hurt its server. Tests keep
// apart by their fleets.
var shared *server

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "ic-etcd")
	if err == nil {
		shared, err = start(dir, nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "start an embedded etcd:", err)
		os.Exit(1)
	}
	code := m.Run()
	shared.Close()
	os.RemoveAll(dir)
	os.Exit(code)
}

// server is a real etcd of one member on loopback.
type server struct {
	*embed.Etcd
	addr string
}

func start(dir string, change func(*embed.Config)) (*server, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{any}, []url.URL{any}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{any}, []url.URL{any}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true // power loss is no subject here
	if change != nil {
		change(cfg)
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return &server{e, e.Clients[0].Addr().String()}, nil
	case err := <-e.Err():
		return nil, err
	case <-time.After(patience):
		e.Close()
		return nil, fmt.Errorf("not ready in %s", patience)
	}
}

func startOwn(t *testing.T, dir string, change func(*embed.Config)) *server {
	t.Helper()
	s, err := start(dir, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// raw is a client past the product, for what a stranger or an administrator does.
func raw(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func options(addr, fleet string) etcd.Options {
	return etcd.Options{
		Endpoints: []string{"http://" + addr}, Fleet: fleet,
		Now: time.Now, After: time.After, Rand: rand.Float64,
	}
}

func open(t testing.TB, o etcd.Options) *etcd.Carrier {
	t.Helper()
	c, err := etcd.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func fleetOf(t *testing.T) string {
	return strings.ToLower(strings.ReplaceAll(t.Name()[:min(len(t.Name()), 60)], "/", "-"))
}

func newID() string { return ulid.Make().String() }

func put(t testing.TB, c *etcd.Carrier, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := c.Put(t.Context(), id, "token-of-"+id); err != nil {
			t.Fatal(err)
		}
	}
}

// watcher collects what a Watch delivers and lets a test wait for it.
type watcher struct {
	mu       sync.Mutex
	tokens   map[string]string
	times    map[string]int
	status   carriers.Status
	statuses []carriers.Status
	changed  chan struct{}
}

func watch(t testing.TB, c *etcd.Carrier) *watcher {
	w := &watcher{tokens: map[string]string{}, times: map[string]int{}, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(ctx, w.sink, w.take)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (w *watcher) sink(arrived []etcd.Arrival) {
	w.mu.Lock()
	for _, a := range arrived {
		w.tokens[a.ID] = a.Token
		w.times[a.ID]++
	}
	w.mu.Unlock()
	w.poke()
}

func (w *watcher) take(s carriers.Status) {
	w.mu.Lock()
	w.status = s
	w.statuses = append(w.statuses, s)
	w.mu.Unlock()
	w.poke()
}

func (w *watcher) poke() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// until waits for ok, which sees the watcher under its lock.
func (w *watcher) until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		w.mu.Lock()
		done := ok()
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.changed:
		case <-limit:
			w.mu.Lock()
			defer w.mu.Unlock()
			t.Fatalf("%s: not in %s; status %+v, %d tokens", what, patience, w.status, len(w.tokens))
		}
	}
}

func (w *watcher) has(ids ...string) func() bool {
	return func() bool {
		for _, id := range ids {
			if w.tokens[id] != "token-of-"+id {
				return false
			}
		}
		return true
	}
}

// newProxy is a wire that a test can cut: connections die and new ones do too.
func newProxy(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func cut(t *testing.T, p *proxy.Proxy) {
	t.Helper()
	if err := p.Cut(proxy.Reset); err != nil {
		t.Fatal(err)
	}
}

func heal(t *testing.T, p *proxy.Proxy, target string) {
	t.Helper()
	p.SetTarget(target)
	if err := p.Heal(); err != nil {
		t.Fatal(err)
	}
}
