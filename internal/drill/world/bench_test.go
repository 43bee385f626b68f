package world

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/pipeline"
	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/oklog/ulid/v2"
)

// patience bounds every wait, in real time: a machine that is busy with other
// tests is slow, and a world that is broken waits in vain.
const patience = 45 * time.Second

// bench is a running world and a commander with a key.
type bench struct {
	t     *testing.T
	w     *World
	state string
	ended chan error
}

// startWorld starts a world that ends with the test.
func startWorld(t *testing.T, o Options) *bench {
	t.Helper()
	o.Seed, o.Pace, o.Real, o.Rand = 1, templates.TestPace(), time.Now, rand.Reader
	if o.Speed == 0 {
		o.Speed = 10
	}
	o.Getenv = func(name string) string { return map[string]string{"PATH": os.Getenv("PATH")}[name] }
	said := &transcript{}
	o.Log = said
	w, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, w: w, state: o.State, ended: make(chan error, 1)}
	go func() { b.ended <- w.Run(context.Background()) }()
	t.Cleanup(func() {
		b.end()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return b
}

// end ends the world and waits until it is gone; a second time does nothing.
func (b *bench) end() {
	b.w.stop()
	b.gone()
}

func (b *bench) gone() {
	b.t.Helper()
	select {
	case err, first := <-b.ended:
		if first {
			close(b.ended)
		}
		if err != nil {
			b.t.Errorf("the world ended with %v", err)
		}
	case <-time.After(patience):
		b.t.Fatalf("the world did not end within %s", patience)
	}
}

// until waits for something to become true.
func (b *bench) until(what string, ok func() bool) {
	b.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("within %s it did not happen that %s", patience, what)
		}
	}
}

// order is a directive as the commander would sign it, and its token.
func (b *bench) order(d model.Directive) (id, token string) {
	b.t.Helper()
	now := b.w.clock.At().Truncate(time.Second)
	d.ID, d.Fleet, d.Incident, d.Policy = ulid.Make().String(), Fleet, "20261130-0317-test", b.w.bundle.Ref
	d.Log = model.LogHead{Origin: Fleet + "/test/ines", Root: strings.Repeat("0", 64)}
	d.IssuedAt, d.NotBefore = now, now
	payload, err := directive.Encode(d)
	if err != nil {
		b.t.Fatal(err)
	}
	key, err := keyOf(&b.w.o, templates.Ines)
	if err != nil {
		b.t.Fatal(err)
	}
	sig, err := directive.Sign(key, rand.Reader, payload, directive.Drill, Fleet)
	if err != nil {
		b.t.Fatal(err)
	}
	if token, err = directive.Token(payload, sig); err != nil {
		b.t.Fatal(err)
	}
	return d.ID, token
}

func shedTo(tier int, scope string) model.Directive {
	return model.Directive{Kind: model.Shed, Scope: scope, Tier: tier, Right: "shed"}
}

// flags gives an order to the flag service, past the proxies of the hosts.
func (b *bench) flags(d model.Directive) string {
	b.t.Helper()
	id, token := b.order(d)
	c, err := etcd.New(b.t.Context(), etcd.Options{
		Endpoints: []string{b.w.info.Etcd}, Fleet: Fleet, Now: time.Now, After: time.After, Rand: func() float64 { return 0 },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if err := c.Put(ctx, id, token); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// reports asks every host of the policy's inventory, as a console does.
func (b *bench) reports() []model.HostView {
	inv := fleet.Inventory{}
	for _, h := range b.w.bundle.Inventory.Hosts {
		inv.Hosts = append(inv.Hosts, fleet.Host{Name: h.Host, Services: h.Services, ReportURL: h.ReportURL})
	}
	return fleet.Pull(b.t.Context(), inv, fleet.Options{Fleet: Fleet, Now: b.w.clock.At, Timeout: patience})
}

// holders names the hosts of a service, or of any, that report a directive in
// force. Hosts of other services hold it too; it does nothing on them.
func holders(views []model.HostView, service, id string) []string {
	return hostsWhere(views, func(r *model.Report) bool {
		return (service == model.AnyScope || slices.Contains(r.Services, service)) &&
			slices.ContainsFunc(r.Live, func(l model.ReportLive) bool { return l.ID == id })
	})
}

// held counts them now.
func (b *bench) held(service, id string) int { return len(holders(b.reports(), service, id)) }

// hostsWhere names the hosts that answer and of whose report something is true.
func hostsWhere(views []model.HostView, is func(*model.Report) bool) []string {
	names := []string{}
	for i := range views {
		if views[i].Reachable && views[i].Report != nil && is(views[i].Report) {
			names = append(names, views[i].Host)
		}
	}
	return names
}

// sourceOf is a host's word about one of its sources.
func sourceOf(r *model.Report, name string) model.ReportSource {
	for _, s := range r.Sources {
		if s.Name == name {
			return s
		}
	}
	return model.ReportSource{AgeS: -1}
}

// half names the hosts behind one of the two proxies.
func (b *bench) half(n int) []string {
	var names []string
	for _, host := range b.w.nodes {
		if host.spec.Half == n {
			names = append(names, host.spec.Name)
		}
	}
	return names
}

// fault begins or ends a fault as a client does.
func (b *bench) fault(name string, clear bool) {
	b.t.Helper()
	url := b.w.info.Control + faultsPath + "/" + name
	if clear {
		url += "?clear=1"
	}
	if status := b.post(url); status != http.StatusOK {
		b.t.Fatalf("fault %s (clear %v): status %d", name, clear, status)
	}
}

func (b *bench) post(url string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// push commits an env file to the deploy pipeline and pushes it, as a person
// would.
func (b *bench) push(lines ...string) {
	b.t.Helper()
	work := filepath.Join(b.t.TempDir(), "clone")
	git := func(dir string, args ...string) {
		b.t.Helper()
		cmd := exec.CommandContext(b.t.Context(), "git", args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + b.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=dev", "GIT_AUTHOR_EMAIL=dev@shop.invalid", "GIT_COMMITTER_NAME=dev", "GIT_COMMITTER_EMAIL=dev@shop.invalid",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git(b.t.TempDir(), "clone", "--quiet", b.w.pipeline.Repo(), work)
	if err := os.WriteFile(filepath.Join(work, pipeline.EnvFile), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	git(work, "commit", "--quiet", "--all", "--message", "carry an order")
	git(work, "push", "--quiet", "origin", "HEAD:"+pipeline.Branch)
}

// transcript keeps what a world says; many goroutines write to it.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("the world said:\n%s", l.text.String())
}
