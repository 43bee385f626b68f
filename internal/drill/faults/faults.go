package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// The faults of a drill, by the names that people type.
const (
	PaymentRiskDown = "payment-risk-down"
	CatalogSlow     = "catalog-slow"
	LoadSurge       = "load-surge"
	FlagsPartition  = "flags-partition"
	FlagsDown       = "flags-down"
	AutoHeal        = "auto-heal"
	PrometheusBlind = "prometheus-blind"
	ClockAhead      = "clock-ahead"
	PipelineStuck   = "pipeline-stuck"

	// Of a simulated fleet only.
	FlagsSlow         = "flags-slow"
	PrometheusHollow  = "prometheus-hollow"
	PrometheusPartial = "prometheus-partial"
	ClockBehind       = "clock-behind"
	HostsPaused       = "hosts-paused"
	PipelineDenied    = "pipeline-denied"
	GitOpsReverts     = "gitops-reverts"
	ConsoleDiskFull   = "console-disk-full"
	CommanderAbsent   = "commander-absent"
	ApproverAbsent    = "approver-absent"
)

// Figures that belong to the names.
const (
	HealedHosts = 10               // auto-heal restarts so many
	PausedHosts = 3                // hosts-paused
	AheadBy     = 20 * time.Minute // clock-ahead, on one host
)

// descriptions in the order in which a person sees them.
var descriptions = [...]struct{ name, sentence string }{
	{PaymentRiskDown, "payment-risk answers nobody: every check waits out its timeout and checkout fails a third of its requests"},
	{CatalogSlow, "a bad query plan: the catalog's p99 goes from 40 to 900 ms"},
	{LoadSurge, "more visitors than planned for: the edge runs above 80 % CPU"},
	{FlagsPartition, "half of the fleet cannot reach the flag service"},
	{FlagsDown, "the flag service is dead"},
	{AutoHeal, "the platform restarts 10 hosts that it takes for unhealthy; over at once"},
	{PrometheusBlind, "Prometheus answers 503"},
	{ClockAhead, "the wall clock of one host is 20 min ahead, and the host believes it"},
	{PipelineStuck, "the deploy pipeline takes pushes and restarts nobody"},
	{FlagsSlow, "what is given to the flag service now reaches hosts four minutes later"},
	{PrometheusHollow, "Prometheus answers and has lost its data"},
	{PrometheusPartial, "a part of the storage behind Prometheus does not answer, and it says so"},
	{ClockBehind, "the wall clock of one host is 20 min behind, and the host believes it"},
	{HostsPaused, "three machines of checkout are stopped by their hypervisor, and do not know"},
	{PipelineDenied, "the break-glass credential of the deploy pipeline has expired"},
	{GitOpsReverts, "a GitOps controller takes back within a minute what it has not declared"},
	{ConsoleDiskFull, "no console can write its log: its disk is full"},
	{CommanderAbsent, "the incident commander does not answer"},
	{ApproverAbsent, "nobody of finance, product and risk answers"},
}

// Lever is how one world does a fault. A nil Clear means that the fault is over
// as soon as it has happened.
type Lever struct {
	Inject func(context.Context) error
	Clear  func(context.Context) error
}

// State is one fault of a set.
type State struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Active      bool   `json:"active"`
	Momentary   bool   `json:"momentary"`
}

// ErrUnknown is wrapped by the error for a name that is no fault of this world.
var ErrUnknown = errors.New("no such fault")

// Set is the faults of one world. It is safe for concurrent use; one fault is
// injected or cleared at a time.
type Set struct {
	levers map[string]Lever

	pulling sync.Mutex // one lever at a time; some take a second
	mu      sync.Mutex
	active  map[string]bool
}

// New builds a set. Every lever must carry one of this package's names and have
// a way in.
func New(levers map[string]Lever) (*Set, error) {
	s := &Set{levers: make(map[string]Lever, len(levers)), active: make(map[string]bool)}
	for _, d := range descriptions {
		if l, ok := levers[d.name]; ok && l.Inject != nil {
			s.levers[d.name] = l
		}
	}
	if len(s.levers) != len(levers) {
		return nil, fmt.Errorf("build the faults: %d of %d levers have no known name or no way in", len(levers)-len(s.levers), len(levers))
	}
	return s, nil
}

// Inject makes a fault happen. Injecting an active one again does nothing.
func (s *Set) Inject(ctx context.Context, name string) error {
	s.pulling.Lock()
	defer s.pulling.Unlock()
	l, err := s.lever(name)
	if err != nil || s.isActive(name) {
		return err
	}
	if err := l.Inject(ctx); err != nil {
		return fmt.Errorf("inject %s: %w", name, err)
	}
	s.setActive(name, l.Clear != nil)
	return nil
}

// Clear ends a fault. One that is not active needs no clearing and is no error,
// so that a person who is not sure may ask.
func (s *Set) Clear(ctx context.Context, name string) error {
	s.pulling.Lock()
	defer s.pulling.Unlock()
	l, err := s.lever(name)
	if err != nil || !s.isActive(name) {
		return err
	}
	if err := l.Clear(ctx); err != nil {
		return fmt.Errorf("clear %s: %w", name, err)
	}
	s.setActive(name, false)
	return nil
}

func (s *Set) isActive(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[name]
}

func (s *Set) setActive(name string, active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[name] = active
}

// List is every fault of this world, in the order of the package.
func (s *Set) List() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]State, 0, len(s.levers))
	for _, d := range descriptions {
		if l, ok := s.levers[d.name]; ok {
			out = append(out, State{d.name, d.sentence, s.active[d.name], l.Clear == nil})
		}
	}
	return out
}

func (s *Set) lever(name string) (Lever, error) {
	if l, ok := s.levers[name]; ok {
		return l, nil
	}
	var names []string
	for _, d := range descriptions {
		if _, ok := s.levers[d.name]; ok {
			names = append(names, d.name)
		}
	}
	slices.Sort(names)
	return Lever{}, fmt.Errorf("fault %q: %w: the faults are %s", name, ErrUnknown, strings.Join(names, ", "))
}
