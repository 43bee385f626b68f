package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/internal/controller"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/keys"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/spf13/cobra"
)

// Limits of the controller's own work, in real time.
const (
	leastPause   = 100 * time.Millisecond // between two looks, however fast a drill's clock is
	lastPages    = 10 * time.Second       // what is still told when it ends
	askerPatient = 5 * time.Second        // to send a request to /metrics
)

// keptWebhook in the place of an address takes that of the token store: it is a
// secret, and those are no arguments.
const keptWebhook = "kept"

type controllerFlags struct {
	once, elect                    bool
	metrics, alertmanager, webhook string
}

func (a *app) controllerCmd() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the ladder: enter and leave automatic tiers by the signals of the policy",
		Long: `Look at the signals every ten seconds and move the ladder as the policy says: into tiers
that are automatic when their conditions have held, out of those that a machine has entered,
one at a time and in ramps, and on with the ramp of a commander whose gates hold. It signs
with the key of a machine (--person, --key) and may do what that machine's role may.

It keeps nothing in memory that matters: kill it, pause it, run two of them. A latch after
flapping, a tier that is held for very long and a spent budget are alarms; a person releases
a latch with any signed shed, recovery or freeze. Each look is a line, with --json all of it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.control(cmd.Context(), c, &f)
		},
	}
	cmd.Flags().BoolVar(&f.once, "once", false, "look once, do what follows, and end")
	cmd.Flags().BoolVar(&f.elect, "elect", false, "of several controllers let one work, by a key in etcd; it saves queries, two are harmless")
	cmd.Flags().StringVar(&f.metrics, "metrics", "", "serve /metrics and /healthz on this address, such as 127.0.0.1:9464")
	cmd.Flags().StringVar(&f.alertmanager, "alertmanager", "", "page by the Alertmanager at this address")
	cmd.Flags().StringVar(&f.webhook, "webhook", "", `page by a webhook that takes {"text": ...}, as Slack's do: its address, or "kept" for the one that ic login webhook keeps`)
	return cmd
}

// errNewPolicy ends one run: another policy lies in the folder, and is whole.
var errNewPolicy = errors.New("the policy has changed")

// control runs the loop, and begins it anew whenever the policy has changed.
func (a *app) control(ctx context.Context, c config, f *controllerFlags) error {
	s, err := a.world(c)
	if err != nil {
		return err
	}
	pager, err := a.pager(ctx, c, s, f)
	if err != nil {
		return err
	}
	served, err := serveMetrics(f.metrics)
	if err != nil {
		return err
	}
	defer served.close()
	paging, stop := context.WithCancel(ctx)
	defer stop()
	told := make(chan struct{})
	go func() {
		defer close(told)
		if pager != nil && !f.once {
			pager.Run(paging)
		}
	}()
	for {
		err = a.controlOnce(ctx, c, s, f, pager, served)
		if !errors.Is(err, errNewPolicy) {
			break
		}
		a.note("%v: the ladder goes by the new one", err)
	}
	stop()
	<-told
	if pager != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPages)
		defer cancel()
		pager.Round(last)
	}
	if errors.Is(err, context.Canceled) {
		return nil // that is how it is ended
	}
	return err
}

// controlOnce runs the loop under one policy.
func (a *app) controlOnce(ctx context.Context, c config, s *seat, f *controllerFlags, pager *controller.Pager, served *metricsServer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, b, err := a.desk(ctx, c)
	if err != nil {
		return err
	}
	if d.Snapshot().Person == "" {
		return errors.Join(fail(exitNeeds, "the ladder moves by the key of a machine, and none of %q is at hand", c.Person).
			hinting("name the machine with --person and its key file with --key"), d.Close())
	}
	speed := time.Duration(s.speed())
	o := controller.Options{
		Desk: d, Bundle: b, Machine: c.Person, Clock: s.clock, Stale: controller.DefaultStale * speed,
		Sleep: func(ctx context.Context, wait time.Duration) error {
			if err := sleep(ctx, max(wait/speed, leastPause)); err != nil {
				return err
			}
			return a.changed(c, b)
		},
		Emit: a.emitter(),
	}
	if pager != nil {
		o.Alarm, o.Rest = pager.Alarms, pager.Rest
	}
	if f.elect {
		election, err := a.election(c)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		defer election.Close(context.WithoutCancel(ctx))
		o.Leads = election.Leads
	}
	loop, err := controller.New(o)
	if err != nil {
		return errors.Join(fail(exitUsage, "%w", err).hinting("--person names a machine of the trust root"), d.Close())
	}
	served.show(loop, pager)
	if f.once {
		line := loop.Look(ctx)
		return errors.Join(a.ended(&line), d.Close())
	}
	return errors.Join(loop.Run(ctx), d.Close())
}

// ended says what became of the one look.
func (a *app) ended(l *controller.Line) error {
	switch {
	case l.Move == nil:
		return nil
	case l.Move.Error != "":
		return fail(exitFailed, "%s: %s", l.Move.Title, l.Move.Error)
	case l.Move.State != incident.Effective:
		a.code = exitUnconfirmed
	}
	return nil
}

// emitter prints each look as JSON, and for people what is new in it.
func (a *app) emitter() func(controller.Line) {
	last := ""
	return func(l controller.Line) {
		text := l.Text()
		if !a.json && text == last {
			return
		}
		last = text
		_ = a.printLine(l, func(w io.Writer) { fmt.Fprintf(w, "%s  %s\n", l.At.Format("15:04:05Z"), text) }) // nobody reads on; the ladder goes on
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// changed reports errNewPolicy when another policy can be loaded. One that cannot
// is an apply that is under way, or a mistake: the one in force goes on.
func (a *app) changed(c config, b *policy.Bundle) error {
	raw, err := os.ReadFile(filepath.Join(c.Policy, "manifest.yaml"))
	if err != nil || bytes.Contains(raw, []byte(fmt.Sprintf("\nversion: %d\n", b.Ref.Version))) {
		return nil
	}
	if fresh, err := a.bundle(c, false); err != nil || fresh.Ref == b.Ref {
		return nil
	}
	return errNewPolicy
}

func (a *app) election(c config) (*controller.Election, error) {
	if c.Etcd == "" {
		return nil, fail(exitUsage, "--elect needs etcd, and none is configured").hinting("two controllers without an election are harmless")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unnamed"
	}
	return controller.NewElection(strings.Split(c.Etcd, ","), c.Fleet, host+" "+sessionName(c.Person, a.real()))
}

// pager is nil when nobody is to be paged.
func (a *app) pager(ctx context.Context, c config, s *seat, f *controllerFlags) (*controller.Pager, error) {
	var sinks []controller.Sink
	drill := s.info != nil
	if f.alertmanager != "" {
		if err := controller.CheckAddress(f.alertmanager); err != nil {
			return nil, fail(exitUsage, "--alertmanager: %w", err)
		}
		token := func() (string, error) {
			t, err := a.token(ctx, c, "alertmanager")
			if errors.Is(err, keys.ErrNoToken) {
				return "", nil
			}
			return t.Value, err
		}
		if drill {
			token = nil // a drill has no secrets
		}
		sinks = append(sinks, controller.NewAlertmanager(controller.Address{URL: f.alertmanager, Token: token}, c.Fleet, drill, a.real))
	}
	if f.webhook != "" {
		address := f.webhook
		if address == keptWebhook {
			t, err := a.token(ctx, c, "webhook")
			if err != nil {
				return nil, tokenFailure(err)
			}
			address = t.Value
		}
		if err := controller.CheckAddress(address); err != nil {
			return nil, fail(exitUsage, "--webhook: %w", err)
		}
		sinks = append(sinks, controller.NewWebhook(controller.Address{URL: address}, c.Fleet, drill))
	}
	if len(sinks) == 0 {
		return nil, nil
	}
	p, err := controller.NewPager(controller.PagerOptions{
		State: c.State, Sinks: sinks, Real: a.real, Rand: rand.Float64, Report: func(err error) { a.note("%v", err) },
	})
	if err != nil {
		return nil, fail(exitFailed, "%w", err)
	}
	return p, nil
}

// metricsServer serves what the loop of the moment says of itself.
type metricsServer struct {
	server *http.Server
	loop   atomic.Pointer[http.Handler] // of the loop that runs; nil before the first
}

func serveMetrics(addr string) (*metricsServer, error) {
	m := &metricsServer{}
	if addr == "" {
		return m, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fail(exitUsage, "--metrics: %w", err)
	}
	m.server = &http.Server{ReadHeaderTimeout: askerPatient, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := m.loop.Load()
		if h == nil {
			http.Error(w, "the loop has not begun", http.StatusServiceUnavailable)
			return
		}
		(*h).ServeHTTP(w, r)
	})}
	go m.server.Serve(l) // ends with Close; then it says only that
	return m, nil
}

func (m *metricsServer) show(loop *controller.Controller, pager *controller.Pager) {
	var pages func(io.Writer)
	if pager != nil {
		pages = pager.WriteMetrics
	}
	h := loop.Handler(pages)
	m.loop.Store(&h)
}

func (m *metricsServer) close() {
	if m.server != nil {
		_ = m.server.Close() // whoever was asking has gone
	}
}
