package hostrun_test

import (
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
	"github.com/degradedmode/ic/internal/policy"
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
	// In one process a write that waits for its disk holds one of Go's processors,
	// and with two of them the next host is not even woken. A thousand machines do
	// not stand in each other's way like that.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
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

// fanOut is one fleet in memory and one on disk, each with an etcd of its own, and
// the bare watchers on a third.
type fanOut struct {
	memory, disk *side
	client       *clientv3.Client
	watchers     []clientv3.WatchChan
	bundleRef    model.PolicyRef
	files        []*os.File
	round        int
}

// side is one fleet and its flag service.
type side struct {
	carrier *etcd.Carrier
	hosts   []*hostrun.Runner
}

func newFanOut(b *testing.B) *fanOut {
	_, bundle, _ := policytest.Shop(b)
	root := b.TempDir()
	f := &fanOut{bundleRef: bundle.Ref}
	f.memory = newSide(b, bundle, func(string) (engine.Folder, error) { return engine.NewMemory(), nil })
	f.disk = newSide(b, bundle, func(name string) (engine.Folder, error) { return engine.OpenDir(filepath.Join(root, name)) })
	bare := serve(b)
	f.client = dial(b, bare)
	for i := range fleetSize {
		f.watchers = append(f.watchers, dial(b, bare).Watch(b.Context(), "/bare"))
		folder := filepath.Join(root, fmt.Sprintf("bare-%d", i)) // one of its own, as a host has
		if err := os.Mkdir(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		file, err := os.Create(filepath.Join(folder, "file"))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { file.Close() })
		f.files = append(f.files, file)
	}
	for _, s := range []*side{f.memory, f.disk} {
		f.measure(b, s) // everybody is connected
	}
	f.bareWatch(b)
	return f
}

func newSide(b *testing.B, bundle *policy.Bundle, folder func(name string) (engine.Folder, error)) *side {
	service := serve(b)
	s := &side{}
	var err error
	s.carrier, err = etcd.New(b.Context(), etcd.Options{
		Endpoints: []string{service.Endpoint()}, Fleet: policytest.Fleet, Now: time.Now, After: time.After, Rand: func() float64 { return 0.5 },
	})
	if err != nil {
		b.Fatal(err)
	}
	clock := hostclock.New(hostclock.Trust)
	for i := range fleetSize {
		name := fmt.Sprintf("edge-%04d", i)
		at, err := folder(name)
		if err != nil {
			b.Fatal(err)
		}
		r, err := hostrun.Start(hostrun.Config{
			Engine: engine.Config{Fleet: policytest.Fleet, Host: name, Services: []string{"edge"}, Realm: directive.Production,
				Bundle: bundle, Folder: at, Rand: crand.Reader, Software: "bench"},
			Clock: clock, Etcd: []string{service.Endpoint()}, FullReadEvery: time.Hour,
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = r.Stop() })
		s.hosts = append(s.hosts, r)
	}
	for range 60 { // until 1,000 connections have settled
		if s.carrier.Put(b.Context(), ulid.Make().String(), "ic1.warm.up") == nil {
			return s
		}
	}
	b.Fatal("etcd did not settle")
	return nil
}

func serve(b *testing.B) *flagservice.Service {
	service, err := flagservice.Start(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(service.Kill)
	return service
}

func dial(b *testing.B, s *flagservice.Service) *clientv3.Client {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// look is how often the hosts are asked: looking must not take what is measured.
const look = 5 * time.Millisecond

// measure puts one shed and waits until 99 % of the hosts are at its tier and,
// where they have a disk, have written it.
func (f *fanOut) measure(b *testing.B, s *side) time.Duration {
	f.round++
	id, token := f.shed(b)
	before := make(map[*hostrun.Runner]uint64, len(s.hosts))
	for _, r := range s.hosts {
		before[r] = r.Engine().Revision()
	}
	// What is in force has changed, and all of it is on disk. Neither question
	// reads a clock: asking 1,000 hosts must not take what is being measured.
	holds := func(r *hostrun.Runner) bool {
		return r.Engine().Revision() != before[r] && r.Engine().Condition() != engine.StateUnpersisted
	}
	began := time.Now()
	for tries := 1; ; tries++ { // on a machine with other work etcd may be late; that is part of the measure
		err := s.carrier.Put(b.Context(), id, token)
		if err == nil {
			break
		}
		if tries == 3 {
			b.Fatal(err)
		}
	}
	deadline := began.Add(2 * time.Minute)
	pending := slices.Clone(s.hosts)
	wait := func(left int) {
		for len(pending) > left {
			if time.Now().After(deadline) {
				b.Fatalf("%d of %d hosts never got it", len(pending), len(s.hosts))
			}
			time.Sleep(look)
			pending = slices.DeleteFunc(pending, holds)
		}
	}
	wait(len(s.hosts) / 100)
	took := time.Since(began)
	wait(0) // the rest, outside of the measure
	for _, r := range s.hosts {
		if tier := r.Engine().Tier(f.scope(), r.Now()); tier != 1 {
			b.Fatalf("a host is at tier %d", tier)
		}
	}
	return took
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

// bareWrite is one synced append of a record's size per host.
func (f *fanOut) bareWrite(b *testing.B) time.Duration {
	line := []byte(strings.Repeat("x", 2200) + "\n") // an engine writes each record twice, so that one flipped bit costs nothing
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
