package sdk

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/degradedmode/ic/plugins/sdk/backendv1"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

const (
	// ProtocolVersion is the version of ic.backend that this sdk speaks.
	ProtocolVersion = 1

	// PluginName is the name under which go-plugin dispenses the backend.
	PluginName = "backend"

	// parentPoll is how often a backend looks whether its host still lives. On
	// Linux the kernel tells at once; this is for every other platform.
	parentPoll = 500 * time.Millisecond

	// stopLimit bounds the release of what the backend holds at its end.
	stopLimit = 2 * time.Second
)

// Handshake tells a person who starts a backend by hand that it is one. It is a
// courtesy and no protection: mutual TLS is.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "IC_BACKEND",
		MagicCookieValue: "ic.backend.v1",
	}
}

// HostPlugins is what a host negotiates with; dispensing PluginName gives a Conn.
func HostPlugins() map[int]plugin.PluginSet { return versions(nil) }

func versions(session *Session) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: &wirePlugin{session: session}}}
}

// Serve runs backend as a plugin until the host asks it to end or is gone. It is
// all that a backend's main has to do.
func Serve(backend Backend) {
	// go-plugin replaces os.Stdout and os.Stderr. Without a reference the old
	// files would be closed at some later collection, and the host would take that
	// for the end of this process.
	stdout, stderr := os.Stdout, os.Stderr
	go exitWithParent(os.Getppid(), time.NewTicker(parentPoll).C)

	session := NewSession(backend)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versions(session),
		Logger:           hclog.New(&hclog.LoggerOptions{Name: PluginName, Level: hclog.Error, Output: os.Stderr, DisableTime: true}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage))...)
		},
	})

	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	_ = session.Stop(ctx) // the process ends now, whatever it answers
	runtime.KeepAlive(stdout)
	runtime.KeepAlive(stderr)
}

// exitWithParent ends this process, and what it started, once parent is no
// longer its parent: an orphan would hold locks and go on writing with nobody to
// see it.
func exitWithParent(parent int, tick <-chan time.Time) {
	for range tick {
		if os.Getppid() == parent {
			continue
		}
		if syscall.Getpgrp() == os.Getpid() { // the host gave us a group of our own
			_ = syscall.Kill(0, syscall.SIGKILL)
		}
		os.Exit(1)
	}
}

// wirePlugin joins go-plugin to both sides of the protocol.
type wirePlugin struct {
	plugin.NetRPCUnsupportedPlugin
	session *Session // nil on the host's side
}

var _ plugin.GRPCPlugin = (*wirePlugin)(nil)

func (w *wirePlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	backendv1.RegisterBackendServer(s, &server{session: w.session})
	return nil
}

func (w *wirePlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &remote{client: backendv1.NewBackendClient(conn)}, nil
}
