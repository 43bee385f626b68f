package main

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/breakglass"
	"github.com/degradedmode/ic/internal/carriers/etcd"
	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/freshness"
	"github.com/degradedmode/ic/internal/drill/world"
	"github.com/degradedmode/ic/internal/drill/worldclock"
	"github.com/degradedmode/ic/internal/hostclock"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

// randReader is the system's entropy.
var randReader io.Reader = crand.Reader

// seat is where this console stands: before a real fleet, or in a drill's world
// that runs beside it. A drill has its own clock, root and namespaces; there is
// no switch that makes one out of the other.
type seat struct {
	clock model.Clock
	info  *world.Info // nil before a real fleet, and of a drill that is over
	over  bool        // a drill that is not running: its files can be read
}

func (s *seat) realm() directive.Realm {
	if s.info == nil && !s.over {
		return directive.Production
	}
	return directive.Drill
}

// speed is how many seconds of the fleet's clock pass in a real one.
func (s *seat) speed() int {
	if s.info == nil {
		return 1
	}
	return s.info.Speed
}

// errOver means that a state folder belongs to a drill that is not running.
var errOver = errors.New("the demo is not running")

// files is where a command stands that reads files only: the log and the policy
// of a drill can be looked at when it is over, by this machine's clock.
func (a *app) files(c config) (*seat, error) {
	s, err := a.world(c)
	if errors.Is(err, errOver) {
		return &seat{clock: hostclock.New(hostclock.Trust), over: true}, nil
	}
	return s, err
}

// world finds out where this console stands.
func (a *app) world(c config) (*seat, error) {
	if a.seat != nil {
		return a.seat, nil
	}
	info, err := world.ReadInfo(c.State)
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	if info == nil {
		if drill, err := world.IsDrill(c.State); err != nil || drill {
			return nil, fail(exitNeeds, "%w: %s", errOver, c.State).hinting("ic demo starts it again")
		}
		a.seat = &seat{clock: hostclock.New(hostclock.Trust)}
		return a.seat, nil
	}
	clock, err := worldclock.Fetch(context.Background(), http.DefaultClient, info.Control, a.real)
	if err != nil {
		return nil, fail(exitNeeds, "%w: %w", errOver, err).hinting("ic demo starts it again")
	}
	a.seat = &seat{clock: clock, info: info}
	return a.seat, nil
}

// withDesk wires a desk for one command and ends its session afterwards.
func (a *app) withDesk(cmd *cobra.Command, do func(context.Context, *incident.Desk) error) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	d, _, err := a.desk(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, d), d.Close())
}

// desk wires everything a desk is made of. Nothing here waits for a service.
func (a *app) desk(ctx context.Context, c config) (*incident.Desk, *policy.Bundle, error) {
	s, err := a.world(c)
	if err != nil {
		return nil, nil, err
	}
	b, err := a.bundle(c, true)
	if err != nil {
		return nil, nil, err
	}
	metrics, err := a.prometheus(c, s)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := a.hostsOf(c, b, s, metrics)
	if err != nil {
		return nil, nil, err
	}
	o := incident.Options{
		Realm: s.realm(), Fleet: c.Fleet, Person: a.person(ctx, c, b), State: c.State, Session: sessionName(c.Person, s.clock.Now().Wall),
		Bundle: b, Clock: s.clock, Rand: randReader, ReportAge: incident.DefaultReportAge * model.Duration(s.speed()),
		Signer:    func(ctx context.Context) (ssh.Signer, error) { return a.signer(ctx, c) },
		Inventory: hosts.listing, Hosts: hosts.reader(), Readings: readings(b, s, metrics),
		Simulated: freshness.Follow(c.State, func() time.Time { return s.clock.Now().Wall }),
	}
	if metrics != nil && s.info == nil {
		// A drill's clock is that of its world: there are no two to compare.
		o.SignalsClock = func() incident.ClockView { return clockView(metrics.Clock()) }
	}
	if c.Etcd != "" {
		carrier, err := etcd.New(ctx, etcd.Options{
			Endpoints: strings.Split(c.Etcd, ","), Fleet: c.Fleet,
			Now: func() time.Time { return s.clock.Now().Wall }, After: time.After, Rand: rand.Float64,
		})
		if err != nil {
			return nil, nil, fail(exitUsage, "%w", err)
		}
		flags := &flagService{carrier}
		o.Carriers, o.Board = []incident.Carrier{flags}, flags
	}
	for _, name := range slices.Sorted(maps.Keys(b.Backends)) {
		o.Backends = append(o.Backends, a.backendOf(c, name, b.Backends[name]))
	}
	if s.info != nil {
		d := &drillControl{base: s.info.Control}
		o.Faults, o.Fault = d.faults, d.fault
	}
	d, err := incident.New(o)
	return d, b, err
}

// person is who we are: the name in the configuration, if a key of it is at
// hand. Otherwise the console only reads.
func (a *app) person(ctx context.Context, c config, b *policy.Bundle) string {
	if c.Person == "" || c.Key == "" {
		return ""
	}
	own := b.FingerprintsOf(c.Person)
	if len(own) == 0 {
		a.note("%s has no key in the trust root: this console only reads", c.Person)
		return ""
	}
	listed, err := keys.List(ctx, a.keySources(c))
	for _, k := range listed {
		if slices.Contains(own, k.Fingerprint) && !k.Handle {
			return c.Person
		}
	}
	if err != nil {
		a.note("%v", err)
	}
	a.note("no key of %s is at hand: this console only reads (ic keys check)", c.Person)
	return ""
}

// backendOf says how a backend of the policy is started.
func (a *app) backendOf(c config, name string, p policy.Backend) incident.Backend {
	return incident.Backend{Name: name, Config: p, Open: func(ctx context.Context) (incident.OpenBackend, error) {
		spec := breakglass.Spec{Name: name, Bundled: p.Bundled, Config: p.Config, Secrets: map[string]string{}, SSHAgent: a.getenv("SSH_AUTH_SOCK") != ""}
		if p.Bundled == "" {
			platform := runtime.GOOS + "/" + runtime.GOARCH
			sum, ok := p.SHA256[platform]
			if !ok {
				return nil, fmt.Errorf("the policy pins no %s for %s", name, platform)
			}
			spec.Foreign = &breakglass.Foreign{Path: p.Path, SHA256: sum}
		}
		for _, secret := range p.Secrets {
			t, err := a.token(ctx, c, secret)
			if err != nil {
				return nil, err
			}
			spec.Secrets[secret] = t.Value
		}
		self, err := a.self()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		return breakglass.Open(ctx, spec, breakglass.Options{Self: breakglass.Program{Path: self}, Getenv: a.getenv})
	}}
}

// sessionName is new for every start: a session's file is never written twice.
func sessionName(person string, now time.Time) string {
	var tail [3]byte
	if _, err := io.ReadFull(randReader, tail[:]); err != nil {
		return now.UTC().Format("20060102-150405")
	}
	if person == "" {
		person = "reader"
	}
	return fmt.Sprintf("%s-%s-%s", person, now.UTC().Format("150405"), hex.EncodeToString(tail[:]))
}

// flagService is etcd as a carrier and as the board.
type flagService struct{ *etcd.Carrier }

// Name is the word that backends use for it as a dependency.
func (f *flagService) Name() string { return "etcd" }

// Read asks at the same time what is wrong with a store that can be read. A store
// that does not answer that question has been read all the same.
func (f *flagService) Read(ctx context.Context) (map[string]string, string, error) {
	health := make(chan string, 1)
	go func() {
		note, err := f.Health(ctx)
		if err != nil {
			note = ""
		}
		health <- note
	}()
	full, err := f.All(ctx)
	if err != nil {
		return nil, "", err
	}
	notes := slices.DeleteFunc([]string{<-health, full.Note}, func(s string) bool { return s == "" })
	return full.Tokens, strings.Join(notes, "; "), nil
}

func (f *flagService) Lease(ctx context.Context) (incident.Cell, error) {
	c, err := f.LeaseGet(ctx)
	return incident.Cell{Value: c.Value, Revision: c.Revision}, err
}

func (f *flagService) SwapLease(ctx context.Context, previous int64, value string) error {
	_, err := f.LeaseSwap(ctx, previous, value)
	return err
}

func (f *flagService) Proposal(ctx context.Context, id string) (incident.Cell, error) {
	c, err := f.CosignGet(ctx, id)
	return incident.Cell{Value: c.Value, Revision: c.Revision}, err
}

func (f *flagService) SwapProposal(ctx context.Context, id string, previous int64, value string) error {
	_, err := f.CosignSwap(ctx, id, previous, value)
	return err
}

func (f *flagService) Proposals(ctx context.Context) (map[string]string, error) {
	return f.CosignList(ctx)
}
