package shop

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/metrics"
)

// story runs a shop on a kernel for a while, with faults and a bypass, and logs
// every service every second.
func story(b *bench, seed uint64, log io.Writer, length time.Duration) error {
	k := kernel.New(seed, begins, log)
	k.Every(begins.Add(time.Second), time.Second, func() {
		tick := b.shop.Tick()
		for _, r := range tick.Services {
			k.Log("shop", "second", kernel.Word("service", r.Service), kernel.Int("rate", r.Rate),
				kernel.Int("p99_us", r.P99), kernel.Int("cpu_ppm", r.CPU), kernel.Int("errors_ppm", r.Errors))
		}
		for _, o := range tick.Orders {
			k.Log("shop", "order", kernel.Word("host", o.Host), kernel.Int("cents", o.Cents), kernel.Word("outcome", o.Outcome))
		}
	})
	k.After(2*time.Minute, func() { b.shop.SetRiskDown(true) })
	k.After(4*time.Minute, func() { b.each(Checkout, func(h *puppet) { h.under = 5_000 * int64(1-h.Half) }) })
	k.After(5*time.Minute, func() { b.shop.SetDemand(b.shop.Surge()); b.each(Edge, func(h *puppet) { h.tier = 1 }) })
	k.Run(begins.Add(length))
	return k.Err()
}

func TestSameSeedSameBytes(t *testing.T) {
	record := func(seed uint64) []byte {
		var log bytes.Buffer
		p := Default()
		b := newBench(t, 60, nil)
		var hosts []Host
		for _, h := range b.hosts {
			hosts = append(hosts, h)
		}
		var err error
		if b.shop, err = New(p, seed, hosts); err != nil {
			t.Fatal(err)
		}
		if err := story(b, seed, &log, 8*time.Minute); err != nil {
			t.Fatal(err)
		}
		return log.Bytes()
	}
	first := record(7)
	if !bytes.Equal(first, record(7)) {
		t.Error("two runs of seed 7 differ")
	}
	if bytes.Equal(first, record(8)) {
		t.Error("seeds 7 and 8 give the same log")
	}
	if lines := bytes.Count(first, []byte("\n")); lines < 4*8*60 {
		t.Errorf("the log has %d lines", lines)
	}
}

func TestTheSameCustomersComeWhateverIsDecided(t *testing.T) {
	amounts := func(under int64) (out []int64) {
		b := newBench(t, 60, nil)
		b.shop.SetRiskDown(true)
		b.each(Checkout, func(h *puppet) { h.under = under })
		for range 600 {
			for _, o := range b.shop.Tick().Orders {
				out = append(out, o.Cents)
			}
		}
		return out
	}
	if fmt.Sprint(amounts(0)) != fmt.Sprint(amounts(5_000)) {
		t.Error("a bypass changed who comes to the shop")
	}
}

func TestFleetsAreLaidOutByTheDocument(t *testing.T) {
	for n := MinFleet; n <= 250; n++ {
		halves, services, names := [2]int{}, map[string][2]int{}, map[string]bool{}
		for _, s := range Fleet(n) {
			halves[s.Half]++
			on := services[s.Service]
			on[s.Half]++
			services[s.Service] = on
			names[s.Name] = true
		}
		if len(names) != n || len(services) != 4 || halves[0]-halves[1] > 1 || halves[1]-halves[0] > 1 {
			t.Fatalf("a fleet of %d: %d names, services %v, halves %v", n, len(names), services, halves)
		}
		for service, on := range services {
			if on[0] == 0 || on[1] == 0 {
				t.Fatalf("in a fleet of %d all of %s stands on one side", n, service)
			}
		}
		if n == 60 && services[Checkout] != [2]int{12, 13} {
			t.Errorf("of 60, checkout stands %v; the document's 48 %% are 12 of 25", services[Checkout])
		}
	}
}

func TestAShopWithoutAServiceOrWithAStrangerIsRefused(t *testing.T) {
	strange := &puppet{Spec: Spec{Name: "x", Service: "mainframe"}}
	if _, err := New(Default(), 1, []Host{strange}); err == nil || !strings.Contains(err.Error(), "mainframe") {
		t.Errorf("a host of an unknown service: %v", err)
	}
	edge := &puppet{Spec: Spec{Name: "edge-1", Service: Edge}}
	if _, err := New(Default(), 1, []Host{edge}); err == nil || !strings.Contains(err.Error(), "no host") {
		t.Errorf("a shop of one edge host: %v", err)
	}
	if _, err := New(Default(), 1, []Host{edge, edge}); err == nil || !strings.Contains(err.Error(), "two hosts") {
		t.Errorf("a shop with one host twice: %v", err)
	}
}

// The figures that the console will read are those of the model.
func TestPromQLReadsWhatTheModelComputed(t *testing.T) {
	b := newBench(t, 60, nil)
	store := metrics.NewStore(time.Hour)
	now := begins
	b.shop.SetRiskDown(true)
	b.each(Checkout, func(h *puppet) { h.under = 5_000 * int64(1-h.Half) })
	b.hosts[30].down = true
	var tick *Tick
	for sec := 1; sec <= 300; sec++ {
		tick = b.shop.Tick()
		now = begins.Add(time.Duration(sec) * time.Second)
		if sec%5 != 0 {
			continue
		}
		err := b.shop.Collect(func(name string, v float64, pairs ...string) error { return store.Append(now, name, v, pairs...) })
		if err != nil {
			t.Fatal(err)
		}
	}
	read := reader(t, store, func() time.Time { return now })
	r := tick.Service(Checkout)
	tallies := b.shop.Tallies()
	for query, want := range map[string]float64{
		`sum(rate(shop_requests_total{service="checkout",outcome=~"failed_dependency|rejected_capacity"}[1m]))
			/ sum(rate(shop_requests_total{service="checkout"}[1m]))`: float64(r.Errors) / million,
		`histogram_quantile(0.99, sum by (le) (rate(shop_request_duration_seconds_bucket{service="checkout"}[1m])))`: float64(r.P99) / million,
		`avg(shop_cpu_share{service="checkout"})`:                              float64(r.CPU) / million,
		`count(shop_breaker_open{dependency="payment-risk"} == 1)`:             24,
		`sum(up{service="payment-risk"})`:                                      0,
		`count(up == 0)`:                                                       11,
		`sum(shop_unscored_cents_total)`:                                       float64(tallies[1].Cents),
		`shop_order_cents_total{outcome="unscored"}`:                           float64(tallies[1].Cents),
		`shop_orders_total{outcome="failed"}`:                                  float64(tallies[3].Count),
		`sum(rate(shop_orders_total[4m])) * 60`:                                118,
		`rate(shop_request_duration_seconds_count{service="edge"}[1m])`:        2250,
		`sum(rate(shop_requests_total{service="catalog"}[1m])) / 1000`:         31.5,
		`max(shop_request_duration_seconds_sum{service="checkout"}) > bool 30`: 1,
	} {
		got := read(query)
		if math.Abs(got-want) > 0.02*want && !(strings.Contains(query, "shop_orders_total[") && math.Abs(got-want) < 20) {
			t.Errorf("%s is %v, the model has %v", query, got, want)
		}
	}
}

func reader(t *testing.T, store *metrics.Store, now func() time.Time) func(string) float64 {
	t.Helper()
	c, err := api.NewClient(api.Config{Address: "http://drill.invalid", RoundTripper: metrics.NewAPI(store, now)})
	if err != nil {
		t.Fatal(err)
	}
	return func(query string) float64 {
		t.Helper()
		v, _, _, err := promv1.NewAPI(c).Query(context.Background(), query, now())
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		vector, ok := v.(model.Vector)
		if !ok || len(vector) != 1 {
			t.Fatalf("%s gave %v, want one sample", query, v)
		}
		return float64(vector[0].Value)
	}
}

func TestHistogramsAreCumulativeAndCountersOnlyGrow(t *testing.T) {
	b := newBench(t, 24, nil)
	last := map[string]float64{}
	seconds := 0
	collect := func() {
		bucket := -1.0
		err := b.shop.Collect(func(name string, v float64, pairs ...string) error {
			key := name + fmt.Sprint(pairs)
			if strings.HasSuffix(name, "_total") || strings.Contains(name, "duration") {
				if v < last[key] {
					t.Fatalf("second %d: %s fell from %v to %v", seconds, key, last[key], v)
				}
				last[key] = v
			}
			if strings.HasSuffix(name, "_bucket") {
				if pairs[3] == "0.005" {
					bucket = -1
				}
				if v < bucket {
					t.Fatalf("second %d: %s has %v, the bucket below %v", seconds, key, v, bucket)
				}
				bucket = v
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for seconds = range 300 {
		switch seconds {
		case 30:
			b.shop.SetRiskDown(true)
		case 60:
			b.shop.SetCatalogSlow(true)
		case 90:
			b.each(Checkout, func(h *puppet) { h.under = 5_000 })
		case 120:
			b.each(Edge, func(h *puppet) { h.tier = 2 })
		case 150:
			b.hosts[7].down, b.hosts[2].down = true, true
		case 180:
			b.shop.SetDemand(6 * million)
		case 240:
			b.each("", func(h *puppet) { h.down, h.tier = false, 4 })
		}
		b.shop.Tick()
		collect()
	}
}

func BenchmarkTick(b *testing.B) {
	for _, n := range []int{60, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bench := newBench(b, n, nil)
			bench.shop.SetRiskDown(true)
			bench.each(Checkout, func(h *puppet) { h.under = 5_000 })
			b.ReportAllocs()
			for b.Loop() {
				bench.shop.Tick()
			}
		})
	}
}

// One hour of 200 hosts with its log and its samples: the cost of a rehearsal's
// world without its engines.
func BenchmarkHour(b *testing.B) {
	for b.Loop() {
		bench := newBench(b, 200, nil)
		k := kernel.New(1, begins, io.Discard)
		store := metrics.NewStore(2 * time.Hour)
		k.Every(begins.Add(time.Second), time.Second, func() {
			for _, r := range bench.shop.Tick().Services {
				k.Log("shop", "second", kernel.Word("service", r.Service), kernel.Int("errors_ppm", r.Errors))
			}
		})
		k.Every(begins.Add(5*time.Second), 5*time.Second, func() {
			err := bench.shop.Collect(func(name string, v float64, pairs ...string) error { return store.Append(k.Now(), name, v, pairs...) })
			if err != nil {
				b.Fatal(err)
			}
		})
		k.After(10*time.Minute, func() { bench.shop.SetRiskDown(true) })
		k.Run(begins.Add(time.Hour))
	}
}
