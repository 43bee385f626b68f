package hostrun_test

import (
	crand "crypto/rand"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/flagservice"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/hostclock"
	"github.com/degradedmode/ic/internal/hostrun"
	"github.com/degradedmode/ic/internal/policy/policytest"
)

// relay stands before the flag service, as a load balancer does, and keeps the
// times at which connections came.
type relay struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool
	came []time.Time
}

func newRelay(t *testing.T, target string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, target: target, open: map[net.Conn]bool{}}
	r.wait.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.cut()
		r.wait.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		at := time.Now()
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		r.mu.Lock()
		r.came = append(r.came, at)
		r.open[client], r.open[server] = true, true
		r.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			r.wait.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			})
		}
	}
}

// cut ends every connection and forgets when they came. New ones are taken at
// once: nothing but the hosts themselves keeps them from coming all together.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
	r.open, r.came = map[net.Conn]bool{}, nil
}

func (r *relay) times() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.came)
}

// densest is the most that came within one second, wherever it begins.
func densest(came []time.Time) int {
	most, first := 0, 0
	for i, at := range came {
		for at.Sub(came[first]) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// A host is late when its machine is busy and never early, so on a busy one they
// come in bunches. What holds anywhere is that no more have come by any moment than
// a fifth of them for each second that has begun. That no second of the schedule
// itself has more than a fifth is held by a test of package etcd, on a clock of its
// own; how dense a second was here is said for whoever runs this on a quiet machine.
func TestAThousandHostsDoNotComeBackTogether(t *testing.T) {
	const hosts, mostInASecond = herd, herd / 5
	const together = 50 // at the start, which is not what this is about
	service, err := flagservice.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Kill)
	r := newRelay(t, service.Addr())
	_, bundle, _ := policytest.Shop(t)
	clock := hostclock.New(hostclock.Trust)
	var fleet []*hostrun.Runner
	t.Cleanup(func() {
		var wait sync.WaitGroup
		for _, h := range fleet {
			wait.Go(func() { _ = h.Stop() })
		}
		wait.Wait()
	})
	s := &shop{t: t}
	for i := range hosts {
		h, err := hostrun.Start(hostrun.Config{
			Engine: engine.Config{
				Fleet: policytest.Fleet, Host: fmt.Sprintf("edge-%04d", i), Services: []string{"edge"}, Realm: directive.Production,
				Bundle: bundle, Folder: engine.NewMemory(), Rand: crand.Reader, Software: "test",
			},
			Clock: clock, Etcd: []string{"http://" + r.listener.Addr().String()}, FullReadEvery: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		if fleet = append(fleet, h); len(fleet)%together == 0 {
			s.wait("the first read", func() bool {
				return !slices.ContainsFunc(fleet, func(h *hostrun.Runner) bool { return !h.Engine().SourceRead(hostrun.FromEtcd) })
			})
		}
	}

	cut := time.Now()
	r.cut()
	s.wait("the fleet is back", func() bool { return len(r.times()) >= hosts })
	came := r.times()
	for i, at := range came {
		if begun := int(at.Sub(cut)/time.Second) + 1; i+1 > mostInASecond*begun {
			t.Fatalf("%d of %d hosts came back in the first %s", i+1, hosts, at.Sub(cut).Round(time.Millisecond))
		}
	}
	t.Logf("%d connections in %s, at most %d in one second", len(came), came[len(came)-1].Sub(came[0]).Round(time.Millisecond), densest(came))
	s.wait("all have read everything again", func() bool {
		return !slices.ContainsFunc(fleet, func(h *hostrun.Runner) bool { return h.Report().Sources[0].Error != "" })
	})
}
