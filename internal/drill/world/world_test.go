package world

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/pipeline"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"
)

// One world serves all of these in turn; each leaves it without a fault.
func TestAWorld(t *testing.T) {
	t.Parallel()
	b := startWorld(t, Options{State: t.TempDir()})
	for _, step := range []struct {
		name string
		test func(*testing.T, *bench)
	}{
		{"is announced as a drill's and answers by HTTP", comesUp},
		{"answers the policy's queries over the Prometheus API", answersSignals},
		{"turns the signals when payment-risk is down", paymentRiskDown},
		{"slows the catalog down", catalogSlow},
		{"is busier than planned in a surge", loadSurge},
		{"lets small orders past the check within the caps and not at them", smallOrdersPass},
		{"blinds Prometheus", prometheusBlind},
		{"puts one clock ahead and no other", clockAhead},
		{"keeps the fleet while the flag service is dead, and heals", flagsDown},
		{"restarts ten hosts that know their orders before any network", autoHeal},
		{"carries orders through the deploy pipeline", pipelinePush},
		{"knows no other fault", unknownFault},
	} {
		t.Run(step.name, func(t *testing.T) {
			inner := *b
			inner.t = t
			step.test(t, &inner)
		})
	}
}

func comesUp(t *testing.T, b *bench) {
	info, err := ReadInfo(b.state)
	if err != nil || info == nil || *info != b.w.info {
		t.Fatalf("announced: %+v, %v; want %+v", info, err, b.w.info)
	}
	views := b.reports()
	services := map[string]int{}
	for i := range views {
		if !views[i].Reachable || views[i].Report == nil {
			t.Fatalf("%s does not report: %s", views[i].Host, views[i].Detail)
		}
		services[views[i].Report.Services[0]]++
	}
	if want := map[string]int{"edge": 10, "catalog": 15, "checkout": 25, "payment-risk": 10}; fmt.Sprint(services) != fmt.Sprint(want) {
		t.Errorf("hosts that report, by service: %v, want %v", services, want)
	}
	if got := b.get(b.w.info.Control + "/hosts/checkout-01/metrics"); !strings.Contains(got, "ic_") {
		t.Errorf("the metrics of a host hold nothing of ic: %q", got)
	}
	if s := b.w.Status(); s.HostsUp != fleetSize || s.Hosts != fleetSize || s.Speed != 10 || s.Pipeline.Phase != pipeline.Idle {
		t.Errorf("status %+v", s)
	}
}

func answersSignals(t *testing.T, b *bench) {
	within := map[string][2]float64{
		templates.CheckoutP99: {0.01, 0.8}, templates.CheckoutErrors: {0, 0.5}, templates.CPU: {20, 80}, templates.PaymentRiskUp: {1, 1},
	}
	for name, signal := range b.w.bundle.Signals {
		bounds, known := within[name]
		if !known {
			t.Errorf("the policy has a signal %s of which this test knows nothing", name)
		}
		b.until(name+" is as on a good day", func() bool { return b.is(signal.Query, bounds[0], bounds[1]) })
	}
}

func paymentRiskDown(t *testing.T, b *bench) {
	up, failing := b.w.bundle.Signals[templates.PaymentRiskUp].Query, b.w.bundle.Signals[templates.CheckoutErrors].Query
	b.fault(faults.PaymentRiskDown, false)
	b.until("payment-risk is down and checkout fails", func() bool { return b.is(up, 0, 0) && b.is(failing, 5, 100) })
	b.fault(faults.PaymentRiskDown, true)
	b.until("both are well again", func() bool { return b.is(up, 1, 1) && b.is(failing, 0, 0.5) })
}

func catalogSlow(_ *testing.T, b *bench) {
	const p99 = `histogram_quantile(0.99, sum by (le) (rate(shop_request_duration_seconds_bucket{service="catalog"}[5s])))`
	b.fault(faults.CatalogSlow, false)
	b.until("the catalog is slow", func() bool { return b.is(p99, 0.5, 60) })
	b.fault(faults.CatalogSlow, true)
	b.until("it is fast again", func() bool { return b.is(p99, 0, 0.2) })
}

func loadSurge(_ *testing.T, b *bench) {
	cpu := b.w.bundle.Signals[templates.CPU].Query
	b.fault(faults.LoadSurge, false)
	b.until("the shop is busy", func() bool { return b.is(cpu, 80, 100) })
	b.fault(faults.LoadSurge, true)
	b.until("it has room again", func() bool { return b.is(cpu, 0, 70) })
}

func smallOrdersPass(t *testing.T, b *bench) {
	right, _, ok := b.w.bundle.Right("risk-bypass-small-orders")
	if !ok {
		t.Fatal("the policy has no such right")
	}
	caps := model.Caps{Under: right.Bypass.Under, HostCount: right.Bypass.HostCount, HostTotal: right.Bypass.HostTotal, Total: right.Bypass.Total}
	id := b.flags(model.Directive{
		Kind: model.Bypass, Scope: templates.Checkout, Control: templates.PaymentRisk, Caps: caps, Right: "risk-bypass-small-orders",
		NotAfter: b.w.clock.At().Truncate(time.Second).Add(30 * time.Second),
	})
	host := b.w.byName["checkout-03"]
	b.until("checkout has it", func() bool { return b.held(templates.Checkout, id) == 25 })
	for _, c := range []struct {
		cents int64
		want  bool
	}{{4999, true}, {5000, false}, {1, true}} {
		if got := host.Allow(templates.PaymentRisk, model.Money{Minor: c.cents, Currency: "USD"}); got != c.want {
			t.Errorf("an order of %d cents passes unscored: %v, want %v", c.cents, got, c.want)
		}
	}
	b.until("it ends by itself on every host", func() bool { return b.held(model.AnyScope, id) == 0 })
	if host.Open(templates.PaymentRisk) || host.Allow(templates.PaymentRisk, model.Money{Minor: 1, Currency: "USD"}) {
		t.Error("after its end an order still passes")
	}
}

func prometheusBlind(t *testing.T, b *bench) {
	query := b.w.bundle.Signals[templates.PaymentRiskUp].Query
	b.fault(faults.PrometheusBlind, false)
	if v, err := b.query(query); err == nil {
		t.Errorf("a blind Prometheus answers %v", v)
	}
	b.fault(faults.PrometheusBlind, true)
	if v, err := b.query(query); err != nil || v != 1 {
		t.Errorf("after it: %v, %v", v, err)
	}
}

func clockAhead(t *testing.T, b *bench) {
	ahead := func() []string {
		limit := b.w.clock.At().Add(faults.AheadBy - time.Minute)
		return hostsWhere(b.reports(), func(r *model.Report) bool { return r.At.After(limit) })
	}
	b.fault(faults.ClockAhead, false)
	if got := ahead(); len(got) != 1 || !strings.HasPrefix(got[0], templates.Checkout) {
		t.Errorf("ahead are %v; want one host of checkout", got)
	}
	b.fault(faults.ClockAhead, true)
	if got := ahead(); len(got) != 0 {
		t.Errorf("after it %v are still ahead", got)
	}
}

func flagsDown(t *testing.T, b *bench) {
	before := b.flags(shedTo(1, templates.Catalog))
	b.until("the catalog sheds", func() bool { return b.held(templates.Catalog, before) == 15 })
	b.fault(faults.FlagsDown, false)
	b.until("every host says that the flag service is gone", func() bool {
		return len(hostsWhere(b.reports(), func(r *model.Report) bool { return sourceOf(r, hostrun.FromEtcd).Error != "" })) == fleetSize
	})
	if got := b.held(templates.Catalog, before); got != 15 {
		t.Errorf("with the flag service dead %d of 15 hosts keep the shed", got)
	}
	b.fault(faults.FlagsDown, true)
	after := b.flags(shedTo(2, templates.Catalog))
	b.until("a new order arrives", func() bool { return b.held(templates.Catalog, after) == 15 })
}

// The flag service is dead while they restart: what they know at once can only
// come from their disks.
func autoHeal(t *testing.T, b *bench) {
	id := b.flags(shedTo(1, model.AnyScope))
	b.until("the fleet sheds", func() bool { return b.held(model.AnyScope, id) == fleetSize })
	b.fault(faults.FlagsDown, false)
	before := map[string]*hostrun.Runner{}
	for _, n := range b.w.nodes {
		before[n.spec.Name] = n.host.Load()
	}
	b.fault(faults.AutoHeal, false)
	var restarted []*node
	for _, n := range b.w.nodes {
		if n.host.Load() != before[n.spec.Name] {
			restarted = append(restarted, n)
		}
	}
	if len(restarted) != faults.HealedHosts {
		t.Errorf("%d hosts were restarted, want %d", len(restarted), faults.HealedHosts)
	}
	for _, n := range restarted {
		if n.Tier() < 1 {
			t.Errorf("%s is back at tier %d: it has forgotten the shed", n.spec.Name, n.Tier())
		}
	}
	if got := b.held(model.AnyScope, id); got != fleetSize {
		t.Errorf("after the restarts %d hosts report the shed", got)
	}
	b.fault(faults.FlagsDown, true)
}

func pipelinePush(t *testing.T, b *bench) {
	id, token := b.order(shedTo(3, model.AnyScope))
	b.fault(faults.PipelineStuck, false)
	b.push("CHECKOUT_TIMEOUT_MS=800", hostrun.EnvName+"="+token)
	b.until("the pipeline is stuck", func() bool { return b.w.Status().Pipeline.Phase == pipeline.Stuck })
	if got := b.held(model.AnyScope, id); got != 0 {
		t.Errorf("a stuck pipeline has brought it to %d hosts", got)
	}
	b.fault(faults.PipelineStuck, true)
	b.until("every host has it from its environment", func() bool { return b.held(model.AnyScope, id) == fleetSize })
	inEnv := hostsWhere(b.reports(), func(r *model.Report) bool { return slices.Contains(sourceOf(r, hostrun.FromEnv).PresentIDs, id) })
	if len(inEnv) != fleetSize {
		t.Errorf("%d hosts say that it stands in their environment", len(inEnv))
	}
	if s := b.w.Status(); s.Pipeline.Phase != pipeline.Done || s.Pipeline.Restarted != fleetSize {
		t.Errorf("the pipeline: %+v", s.Pipeline)
	}
}

func unknownFault(t *testing.T, b *bench) {
	if got := b.post(b.w.info.Control + faultsPath + "/earthquake"); got != http.StatusNotFound {
		t.Errorf("an unknown fault: status %d", got)
	}
	for _, f := range b.w.Status().Faults {
		if f.Active {
			t.Errorf("%s is still active", f.Name)
		}
	}
}

// Half of the fleet stands behind a proxy of its own. While that is cut no order
// of the flag service arrives there; what those hosts say about themselves does
// not go through it.
func TestThePartitionCutsHalfOfTheFleet(t *testing.T) {
	t.Parallel()
	b := startWorld(t, Options{State: t.TempDir()})
	near, cut := b.half(0), b.half(1)
	if len(near)+len(cut) != fleetSize || len(cut) != fleetSize/2 {
		t.Fatalf("the halves have %d and %d hosts", len(near), len(cut))
	}
	b.fault(faults.FlagsPartition, false)
	id := b.flags(shedTo(2, model.AnyScope))
	var views []model.HostView
	b.until("every host that is not cut off has read the flag service in full again", func() bool {
		views = b.reports()
		return len(hostsWhere(views, func(r *model.Report) bool { return slices.Contains(sourceOf(r, hostrun.FromEtcd).PresentIDs, id) })) >= len(near)
	})
	if got := holders(views, model.AnyScope, id); !slices.Equal(got, near) {
		t.Errorf("the order is on %v\nwant exactly the half that is not cut off, %v", got, near)
	}
	if got := hostsWhere(views, func(*model.Report) bool { return true }); len(got) != fleetSize {
		t.Errorf("%d hosts answer for themselves", len(got))
	}
	// Twice the distance of two reads, in seconds of the demo's clock: nobody who
	// reads is ever so old.
	old := int64(2 * fullReadEvery / time.Second * time.Duration(b.w.clock.Speed()))
	b.until("the cut-off half, and no other host, shows how old its knowledge is", func() bool {
		return slices.Equal(cut, hostsWhere(b.reports(), func(r *model.Report) bool { return sourceOf(r, hostrun.FromEtcd).AgeS > old }))
	})
	b.fault(faults.FlagsPartition, true)
	b.until("the order arrives after all", func() bool { return b.held(model.AnyScope, id) == fleetSize })
}

func TestAWorldStartsAgainWhereItEnded(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	b := startWorld(t, Options{State: state, Speed: 600})
	id := b.flags(shedTo(3, model.AnyScope))
	b.until("the fleet sheds", func() bool { return b.held(model.AnyScope, id) == fleetSize })
	b.until("the clock is well ahead of this machine's", func() bool { return b.w.clock.At().After(time.Now().Add(10 * time.Minute)) })
	first, last := kept(t, state), b.w.clock.At()
	version := b.w.bundle.Ref.Version

	if got := b.post(b.w.info.Control + stopPath); got != http.StatusOK {
		t.Fatalf("stop: status %d", got)
	}
	b.gone()
	if info, err := ReadInfo(state); err != nil || info != nil {
		t.Errorf("after its end it is still announced: %+v, %v", info, err)
	}
	if drill, err := IsDrill(state); err != nil || !drill {
		t.Errorf("its folder is not a drill's any more: %v", err)
	}
	// What the hosts know again can only come from their own disks.
	if err := os.RemoveAll(filepath.Join(state, etcdDir)); err != nil {
		t.Fatal(err)
	}

	again := startWorld(t, Options{State: state, Idle: 300 * time.Millisecond})
	if got := again.w.clock.At(); got.Before(last.Truncate(time.Second)) {
		t.Errorf("the clock went back from %s to %s", last, got)
	}
	if got := again.w.bundle.Ref.Version; got != version+1 {
		t.Errorf("the policy went from version %d to %d", version, got)
	}
	for _, n := range again.w.nodes {
		if want := min(3, again.w.bundle.LastTier(n.spec.Service)); n.Tier() != want {
			t.Errorf("%s is at tier %d after the restart of the world, want %d", n.spec.Name, n.Tier(), want)
		}
	}
	if got := kept(t, state); got != first {
		t.Errorf("keys and trust root have changed:\n%s\nwere\n%s", got, first)
	}
	again.gone() // nobody asks anything: it ends by itself
	if info, err := ReadInfo(state); err != nil || info != nil {
		t.Errorf("a world without a client is still announced: %+v, %v", info, err)
	}
}

// kept is what must never change in a state folder: the keys, the signatures of the
// runbooks, the first trust root, and the pin of it.
func kept(t *testing.T, state string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(state, keysDir, "*"))
	if err != nil || len(paths) < 6 {
		t.Fatalf("keys: %v, %v", paths, err)
	}
	signed, err := filepath.Glob(filepath.Join(state, runbooksDir, "*.md.sig", "*.sig"))
	if err != nil || len(signed) != 30 {
		t.Fatalf("ten runbooks of three signers: %v, %v", signed, err)
	}
	var out strings.Builder
	for _, path := range append(append(paths, signed...), filepath.Join(state, policyDir, "roots", "1.yaml")) {
		out.WriteString(read(t, path))
	}
	for line := range strings.Lines(read(t, filepath.Join(state, ConfigFile))) {
		if strings.HasPrefix(line, "root_sha256:") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAStrangersAnnouncementIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", `{"v":2,"realm":"ic-drill"}`, `{"v":1,"realm":"production","control":"http://127.0.0.1:1"}`} {
		state := t.TempDir()
		if err := os.WriteFile(filepath.Join(state, InfoFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := ReadInfo(state); err == nil {
			t.Errorf("%q is taken for a world: %+v", text, info)
		}
	}
}

// query asks as a client of Prometheus does. Without a time the API means the
// demo's clock.
func (b *bench) query(text string) (float64, error) {
	client, err := api.NewClient(api.Config{Address: b.w.info.Prometheus})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	value, warnings, _, err := promv1.NewAPI(client).Query(ctx, text, time.Time{})
	if err != nil {
		return 0, err
	}
	vector, ok := value.(prom.Vector)
	if !ok || len(vector) != 1 || len(warnings) > 0 {
		return 0, fmt.Errorf("%s: %v, warnings %v: want one series", text, value, warnings)
	}
	return float64(vector[0].Value), nil
}

// is reports whether a query answers with a value from low to high.
func (b *bench) is(query string, low, high float64) bool {
	v, err := b.query(query)
	return err == nil && v >= low && v <= high
}

func (b *bench) get(url string) string {
	b.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("GET %s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}
