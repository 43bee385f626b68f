package sim

import (
	"context"
	"slices"

	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

// Signed is a policy that was signed before, and everybody's keys by name: worlds
// that differ in their seed may share one.
type Signed struct {
	Bundle  *policy.Bundle
	Signers map[string]ssh.Signer
}

// Inside is one host for whoever checks the world: the host's own engine and clock.
type Inside struct {
	Host, Service string
	Engine        *engine.Engine // nil: the process is down
	Clock         model.Clock
	Paused        bool
	Boots         int64 // restarts since the world began
}

// Inside is every host, by name. It is for looking: what is told to an engine here
// the host does not notice.
func (w *World) Inside() []Inside {
	out := make([]Inside, len(w.hosts))
	for i, h := range w.hosts {
		out[i] = Inside{Host: h.spec.Name, Service: h.spec.Service, Engine: h.engine, Clock: h.clock, Paused: h.paused, Boots: h.boots}
	}
	return out
}

// Tokens is everything that anybody has handed to the flag service, whether it was
// there to take it or not, in that order.
func (w *World) Tokens() []string { return slices.Clone(w.tokens) }

// Put writes a token into the flag service, as anybody can who may write there.
func (w *World) Put(id, token string) error { return w.flags.Put(context.Background(), id, token) }
