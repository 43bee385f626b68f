package hostrun_test

import (
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostclock"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/policytest"
	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// fleetSize is the fleet of the claim.
const fleetSize = 1000

// BenchmarkFanOut measures, in one run, from a put of a signed shed to the moment
// when 99 % of 1,000 engines hold it (delivery, in memory) and have it on disk
// (durable), and beside it the floor: a bare etcd watch on as many connections,
// one Ed25519 verify and one synced append per host, on the same two cores. The
// claim is durable-ratio <= 1.5: go test -run xxx -bench FanOut -benchtime 5x.
func BenchmarkFanOut(b *testing.B) {
	f := newFanOut(b)
	var delivery, durable, bareWatch, bareVerify, bareWrite []time.Duration
	for b.Loop() {
		bareWatch = append(bareWatch, f.bareWatch(b))
		bareVerify = append(bareVerify, f.bareVerify())
		bareWrite = append(bareWrite, f.bareWrite(b))
		delivery = append(delivery, f.measure(b, f.memory))
		durable = append(durable, f.measure(b, f.disk))
	}
	ms := func(d []time.Duration) float64 { return float64(median(d).Microseconds()) / 1000 }
	floor := ms(bareWatch) + ms(bareVerify)
	b.ReportMetric(ms(bareWatch), "bare-watch-ms")
	b.ReportMetric(ms(bareVerify), "bare-verify-ms")
	b.ReportMetric(ms(bareWrite), "bare-write-ms")
	b.ReportMetric(ms(delivery), "delivery-ms")
	b.ReportMetric(ms(durable), "durable-ms")
	b.ReportMetric(ms(delivery)/floor, "delivery-ratio")
	b.ReportMetric(ms(durable)/(floor+ms(bareWrite)), "durable-ratio")
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

// fanOut is an etcd with two fleets on it, one in memory and one on disk.
type fanOut struct {
	etcd         *flagservice.Service
	carrier      *etcd.Carrier
	client       *clientv3.Client
	watchers     []clientv3.WatchChan
	memory, disk []*hostrun.Runner
	bundleRef    model.PolicyRef
	files        []*os.File
	round        int
}

func newFanOut(b *testing.B) *fanOut {
	ctx := b.Context()
	service, err := flagservice.Start(ctx, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(service.Kill)
	f := &fanOut{etcd: service, client: dial(b, service)}
	f.carrier, err = etcd.New(ctx, etcd.Options{
		Endpoints: []string{service.Endpoint()}, Fleet: policytest.Fleet, Now: time.Now, After: time.After, Rand: func() float64 { return 0.5 },
	})
	if err != nil {
		b.Fatal(err)
	}
	_, bundle, _ := policytest.Shop(b)
	f.bundleRef = bundle.Ref
	clock := hostclock.New(hostclock.Trust)
	root := b.TempDir()
	start := func(name string, folder engine.Folder) *hostrun.Runner {
		r, err := hostrun.Start(hostrun.Config{
			Engine: engine.Config{Fleet: policytest.Fleet, Host: name, Services: []string{"edge"}, Realm: directive.Production,
				Bundle: bundle, Folder: folder, Rand: crand.Reader, Software: "bench"},
			Clock: clock, Etcd: []string{service.Endpoint()}, FullReadEvery: time.Hour,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = r.Stop() })
		return r
	}
	for i := range fleetSize {
		name := fmt.Sprintf("edge-%04d", i)
		folder, err := engine.OpenDir(filepath.Join(root, name))
		if err != nil {
			b.Fatal(err)
		}
		f.disk = append(f.disk, start(name, folder))
		f.memory = append(f.memory, start(name, engine.NewMemory()))
		f.watchers = append(f.watchers, dial(b, service).Watch(ctx, "/bare"))
		file, err := os.Create(filepath.Join(root, "bare-"+name))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { file.Close() })
		f.files = append(f.files, file)
	}
	for i := range 60 { // until 2,000 connections have settled
		if f.carrier.Put(ctx, ulid.Make().String(), "ic1.warm.up") == nil {
			break
		}
		if i == 59 {
			b.Fatal("etcd did not settle")
		}
	}
	f.measure(b, append(slices.Clone(f.disk), f.memory...)) // everybody is connected
	return f
}

func dial(b *testing.B, s *flagservice.Service) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// measure puts one shed and waits until 99 % of the hosts are at its tier and,
// where they have a disk, have written it.
func (f *fanOut) measure(b *testing.B, hosts []*hostrun.Runner) time.Duration {
	f.round++
	id, token := f.shed(b)
	began := time.Now()
	if err := f.carrier.Put(b.Context(), id, token); err != nil {
		b.Fatal(err)
	}
	deadline := began.Add(2 * time.Minute)
	pending := slices.Clone(hosts)
	for len(pending) > len(hosts)/100 {
		pending = slices.DeleteFunc(pending, func(r *hostrun.Runner) bool { return f.holds(r) })
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d hosts never got it", len(pending), len(hosts))
		}
		time.Sleep(time.Millisecond) // looking must not take what is being measured
	}
	took := time.Since(began)
	for _, r := range hosts { // the rest, outside of the measure
		for !f.holds(r) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
	return took
}

// holds: the host is at the new tier, and has written what made it so. The second
// question waits for the write that is under way.
func (f *fanOut) holds(r *hostrun.Runner) bool {
	return r.Engine().Tier(f.scope(), r.Now()) == 1 && r.Engine().StoreError() == nil
}

// scope is new in every round: a shed once given stays in force.
func (f *fanOut) scope() string { return fmt.Sprintf("service-%d", f.round) }

func (f *fanOut) shed(b *testing.B) (id, token string) {
	id = ulid.Make().String()
	now := time.Now().UTC().Truncate(time.Second)
	payload, err := directive.Encode(model.Directive{
		ID: id, Fleet: policytest.Fleet, Incident: "bench", Scope: f.scope(), Kind: model.Shed, Tier: 1, IssuedAt: now, NotBefore: now,
		Right: "shed", Policy: f.bundleRef, Log: model.LogHead{Origin: policytest.Fleet + "/bench/bench", Root: strings.Repeat("0", 64)}, Reason: "bench",
	})
	if err != nil {
		b.Fatal(err)
	}
	sig, err := directive.Sign(policytest.Key("ines"), crand.Reader, payload, directive.Production, policytest.Fleet)
	if err != nil {
		b.Fatal(err)
	}
	if token, err = directive.Token(payload, sig); err != nil {
		b.Fatal(err)
	}
	return id, token
}

// bareWatch is etcd alone: a put of as many bytes until 99 % of as many watchers,
// each on a connection of its own, have seen it.
func (f *fanOut) bareWatch(b *testing.B) time.Duration {
	var wait sync.WaitGroup
	seen := make(chan time.Time, len(f.watchers))
	for _, w := range f.watchers {
		wait.Go(func() {
			<-w
			seen <- time.Now()
		})
	}
	began := time.Now()
	if _, err := f.client.Put(context.Background(), "/bare", strings.Repeat("x", 1000)); err != nil {
		b.Fatal(err)
	}
	wait.Wait()
	close(seen)
	var all []time.Duration
	for at := range seen {
		all = append(all, at.Sub(began))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// bareVerify is one Ed25519 verify per host on all cores.
func (f *fanOut) bareVerify() time.Duration {
	public, private, _ := ed25519.GenerateKey(crand.Reader)
	message := []byte(strings.Repeat("x", 700))
	sig := ed25519.Sign(private, message)
	return f.spread(func(int) { ed25519.Verify(public, message, sig) })
}

// bareWrite is one synced append of a token's size per host.
func (f *fanOut) bareWrite(b *testing.B) time.Duration {
	line := []byte(strings.Repeat("x", 1000) + "\n")
	return f.spread(func(i int) {
		if _, err := f.files[i].Write(line); err != nil {
			b.Error(err)
		}
		if err := f.files[i].Sync(); err != nil {
			b.Error(err)
		}
	})
}

// spread does something once per host, each in its own goroutine as hosts are.
func (f *fanOut) spread(do func(int)) time.Duration {
	began := time.Now()
	var wait sync.WaitGroup
	for i := range fleetSize {
		wait.Go(func() { do(i) })
	}
	wait.Wait()
	return time.Since(began)
}
