package flagservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// startLimit is how long etcd may take to serve; it takes 0.8 s on an idle
	// machine.
	startLimit = 30 * time.Second
	// quota bounds its database: a demo writes some hundred directives.
	quota = 64 << 20
	// maxRequest bounds one request: a carrier value has at most 16 KiB.
	maxRequest = 256 << 10
	// portTries is how often Start looks for a free port: another program may
	// take the one just found.
	portTries = 5
)

// Service is one etcd, running or not. It is safe for concurrent use.
type Service struct {
	dir  string
	addr string

	mu   sync.Mutex
	etcd *embed.Etcd   // nil: dead
	dead chan struct{} // closed when this life of etcd ends
}

// Start makes a flag service with its data under dir and waits until it serves
// or ctx ends.
func Start(ctx context.Context, dir string) (*Service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the flag service's folder: %w", err)
	}
	var err error
	for range portTries {
		var addr string
		if addr, err = freePort(); err != nil {
			break
		}
		s := &Service{dir: dir, addr: addr}
		if err = s.Restart(ctx); err == nil {
			return s, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, err
}

// Addr is the address of the client port, host:port; it stays the same through
// Kill and Restart.
func (s *Service) Addr() string { return s.addr }

// Endpoint is Addr as an etcd client wants it.
func (s *Service) Endpoint() string { return "http://" + s.addr }

// Running reports whether it serves.
func (s *Service) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.etcd != nil
}

// Restart starts it on what its folder holds; one that runs is left alone.
func (s *Service) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd != nil {
		return nil
	}
	dead := make(chan struct{})
	etcd, err := embed.StartEtcd(s.config(dead))
	if err != nil {
		return fmt.Errorf("start the flag service on %s: %w", s.addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	select {
	case <-etcd.Server.ReadyNotify():
		s.etcd, s.dead = etcd, dead
		return nil
	case err = <-etcd.Err():
	case <-etcd.Server.StopNotify():
		err = errors.New("it stopped by itself")
	case <-ctx.Done():
		err = fmt.Errorf("it does not serve: %w", ctx.Err())
	}
	close(dead)
	etcd.Close()
	return fmt.Errorf("start the flag service on %s: %w", s.addr, err)
}

// Kill ends it without a farewell: streams break off, the port is closed. What
// it had acknowledged is on disk. Killing the dead does nothing.
func (s *Service) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etcd == nil {
		return
	}
	close(s.dead)
	s.etcd.Server.HardStop()
	s.etcd.Close()
	s.etcd = nil
}

func (s *Service) config(dead <-chan struct{}) *embed.Config {
	c := embed.NewConfig()
	c.Name = "flags"
	c.Dir = filepath.Join(s.dir, "etcd")
	client := url.URL{Scheme: "http", Host: s.addr}
	// A single member speaks to no peer; the port is taken because etcd wants one.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.QuotaBackendBytes = quota
	c.MaxRequestBytes = maxRequest
	// The console's terminal is not etcd's log.
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.GRPCAdditionalServerOptions = []grpc.ServerOption{grpc.ChainStreamInterceptor(breakOff(dead))}
	return c
}

// breakOff ends every stream when the service dies. Without it etcd waits seven
// seconds for watches that never end by themselves.
func breakOff(dead <-chan struct{}) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		done := make(chan error, 1)
		go func() { done <- handle(srv, stream) }()
		select {
		case err := <-done:
			return err
		case <-dead:
			return status.Error(codes.Unavailable, "the flag service has died")
		}
	}
}

// freePort is an address of loopback on which nothing listened a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port for the flag service: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
