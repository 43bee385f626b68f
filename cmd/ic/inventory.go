package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/fleet"
	"github.com/degradedmode/ic/internal/incident"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/signals"
	"github.com/degradedmode/ic/internal/untrusted"
	prom "github.com/prometheus/common/model"
)

// rosterFile keeps the last list of hosts in the state folder.
const rosterFile = "inventory.json"

// hostList is which hosts there should be: from a file, from the policy, or from a
// query that the policy names.
type hostList struct {
	source string
	fixed  bool                              // it is what it is
	known  func() fleet.Known                // never waits
	ask    func(context.Context) fleet.Known // asks for a newer one, if it is time to
	pull   fleet.Options
	scrape *signals.Source // for hosts that are not asked directly; nil: nobody
}

func (a *app) hostsOf(c config, b *policy.Bundle, s *seat, metrics *signals.Source) (*hostList, error) {
	now := func() time.Time { return s.clock.Now().Wall }
	l := &hostList{scrape: metrics, pull: fleet.Options{Fleet: c.Fleet, Now: now, Client: pooled()}}
	if c.Inventory == "" && b.Inventory.Query != "" {
		roster := fleet.NewRoster(fleet.RosterOptions{
			Fleet: c.Fleet, Query: b.Inventory.Query, MaxAge: b.Inventory.MaxAge, File: filepath.Join(c.State, rosterFile), Now: now, Ask: hostQuery(metrics),
		})
		l.source, l.known, l.ask = "the policy's query", roster.Known, roster.Refresh
		return l, nil
	}
	l.fixed = true
	if c.Inventory != "" {
		l.source = c.Inventory
		return l, l.readFile(c.Inventory)
	}
	l.source = "the policy"
	signed := fleet.Inventory{MaxAge: b.Inventory.MaxAge}
	for _, h := range b.Inventory.Hosts {
		signed.Hosts = append(signed.Hosts, fleet.Host{Name: h.Host, Services: h.Services, ReportURL: h.ReportURL})
	}
	// What was signed holds as long as the policy is in force.
	l.known = func() fleet.Known { return fleet.Known{Inventory: signed, At: now()} }
	l.ask = func(context.Context) fleet.Known { return l.known() }
	return l, nil
}

// readFile takes the list from a file, and again whenever the file has changed. A
// list is as old as its file. One that can no longer be read stays as it was, says
// so, and grows old.
func (l *hostList) readFile(path string) error {
	read := func() (fleet.Known, error) {
		written, err := os.Stat(path)
		if err != nil {
			return fleet.Known{}, fail(exitUsage, "read the inventory: %w", err)
		}
		inv, err := inventoryFile(path)
		return fleet.Known{Inventory: inv, At: written.ModTime()}, err
	}
	first, err := read()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	last := first
	l.known = func() fleet.Known {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
	l.ask = func(context.Context) fleet.Known {
		fresh, err := read()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			last.Detail = untrusted.Text(err.Error(), 200)
		} else {
			last = fresh
		}
		return last
	}
	return nil
}

func hostQuery(metrics *signals.Source) func(context.Context, string) (prom.Vector, time.Time, error) {
	if metrics == nil {
		return func(context.Context, string) (prom.Vector, time.Time, error) {
			return nil, time.Time{}, errors.New("no prometheus is configured")
		}
	}
	return metrics.Series
}

func inventoryFile(path string) (fleet.Inventory, error) {
	raw, err := readBounded(path, fleet.MaxInventory)
	if err != nil {
		return fleet.Inventory{}, fail(exitUsage, "read the inventory: %w", err)
	}
	inv, err := fleet.ParseInventory(raw)
	if err != nil {
		return inv, fail(exitUsage, "%s: %w", path, err)
	}
	return inv, nil
}

// listing is the list as a desk wants it.
func (l *hostList) listing() incident.Listing {
	known := l.known()
	out := incident.Listing{Inventory: model.Inventory{
		Source: l.source, At: known.At, MaxAge: known.MaxAge, Hosts: len(known.Hosts), Detail: known.Detail,
	}}
	for _, h := range known.Hosts {
		out.Hosts = append(out.Hosts, model.HostView{Host: h.Name, Services: h.Services, Detail: "not asked yet"})
	}
	return out
}

// reader asks the hosts; nil where the policy names none and asks for none.
func (l *hostList) reader() func(context.Context) []model.HostView {
	if l.fixed && len(l.known().Hosts) == 0 {
		return nil
	}
	return l.read
}

// read asks every host for its report, and Prometheus for those that are not asked
// directly.
func (l *hostList) read(ctx context.Context) []model.HostView {
	inv := l.ask(ctx).Inventory
	var scraped fleet.Inventory
	if l.scrape != nil {
		for _, h := range inv.Hosts {
			if h.ReportURL == "" {
				scraped.Hosts = append(scraped.Hosts, h)
			}
		}
	}
	if len(scraped.Hosts) == 0 {
		return fleet.Pull(ctx, inv, l.pull)
	}
	seen := make(chan []model.HostView, 1)
	go func() {
		views, err := fleet.FromPrometheus(ctx, l.scrape.API(), scraped, l.pull)
		_ = err // each view says why it has no report
		seen <- views
	}()
	views := fleet.Pull(ctx, inv, l.pull)
	others := <-seen // in the order of the inventory, as views are
	for i := range views {
		if len(others) > 0 && others[0].Host == views[i].Host {
			views[i], others = others[0], others[1:]
		}
	}
	return views
}

// pooled keeps one connection per host: reports are asked for every second.
func pooled() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, MaxIdleConns: 64, IdleConnTimeout: time.Minute}}
}

// hosts is the list of a configuration, as it is now.
func (a *app) hosts(ctx context.Context, c config) (fleet.Inventory, error) {
	b, err := a.bundle(c, false)
	if err != nil {
		return fleet.Inventory{}, err
	}
	s, err := a.files(c)
	if err != nil {
		return fleet.Inventory{}, err
	}
	var metrics *signals.Source
	if c.Inventory == "" && b.Inventory.Query != "" {
		if metrics, err = a.prometheus(c, s); err != nil {
			return fleet.Inventory{}, err
		}
	}
	l, err := a.hostsOf(c, b, s, metrics)
	if err != nil {
		return fleet.Inventory{}, err
	}
	return l.ask(ctx).Inventory, nil
}
