package flagservice

import (
	"context"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const limit = 20 * time.Second

func reach(t *testing.T, s *Service) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: limit, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestTheFlagServiceKeepsItsDataThroughADeath(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*limit)
	defer cancel()
	s, err := Start(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	c := reach(t, s)
	if _, err := c.Put(ctx, "/ic/shop-demo/d/01", "token"); err != nil {
		t.Fatal(err)
	}
	watch := c.Watch(clientv3.WithRequireLeader(ctx), "/ic/", clientv3.WithPrefix(), clientv3.WithRev(1))
	if got := <-watch; got.Err() != nil || string(got.Events[0].Kv.Value) != "token" {
		t.Fatalf("the watch delivered %+v", got)
	}

	before := time.Now()
	s.Kill()
	s.Kill()
	t.Logf("killed with an open watch in %v", time.Since(before))
	if s.Running() {
		t.Error("it runs after Kill")
	}
	if conn, err := net.DialTimeout("tcp", s.Addr(), limit); err == nil {
		conn.Close()
		t.Error("its port is open after Kill")
	}

	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(ctx); err != nil {
		t.Errorf("restarting what runs: %v", err)
	}
	got, err := c.Get(ctx, "/ic/shop-demo/d/01") // the client of before, on the same port
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "token" {
		t.Fatalf("after a restart: %v, %v", got, err)
	}
	if _, err := c.Put(ctx, "/ic/shop-demo/d/02", "more"); err != nil {
		t.Fatal(err)
	}
	if next := <-watch; next.Err() != nil || string(next.Events[0].Kv.Value) != "more" {
		t.Errorf("the watch of before the death goes on with %+v", next)
	}
}

func TestAStartThatHasNoTimeFailsAndLeavesNothingRunning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Start(ctx, t.TempDir()); err == nil {
		s.Kill()
		t.Error("a cancelled start succeeded")
	}
}
