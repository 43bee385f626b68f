package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/untrusted"
	"github.com/google/renameio/v2"
	prom "github.com/prometheus/common/model"
)

// How often an inventory is asked for. Hosts come and go in minutes; whoever has
// no answer asks again sooner.
const (
	askEvery   = time.Minute
	askAgain   = 10 * time.Second
	askLimit   = time.Second // hosts are waiting to be asked for their reports
	oldestPart = 4           // a list is asked for again at a quarter of its max_age
)

// RosterOptions say who is asked for an inventory. All but File are required.
type RosterOptions struct {
	Fleet  string
	Query  string
	MaxAge model.Duration
	File   string // where the last list is kept for a night without Prometheus; "" nowhere
	Now    func() time.Time
	// Ask asks the query and says when, by our clock. An answer in part is an error.
	Ask func(ctx context.Context, query string) (prom.Vector, time.Time, error)
}

// Roster is an inventory that is asked of Prometheus. When there is no answer, the
// last list counts, with its age. It is safe for concurrent use.
type Roster struct {
	o RosterOptions

	asking sync.Mutex // one question at a time

	mu    sync.Mutex
	known Known
	tried time.Time
}

// Known is a list of hosts and when it was asked for.
type Known struct {
	Inventory
	At     time.Time // zero: there is no list
	Detail string    // why it is not newer, "" when nothing is wrong
}

// NewRoster reads the list of the last time, and asks nobody.
func NewRoster(o RosterOptions) *Roster {
	r := &Roster{o: o}
	r.known.MaxAge = o.MaxAge
	kept, err := readRoster(&o)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.known.Detail = "not asked yet"
	case err != nil:
		r.known.Detail = untrusted.Text(fmt.Sprintf("not asked yet, and the list of the last time is not used: %v", err), maxDetail)
	default:
		r.known.Hosts, r.known.At, r.known.Detail = kept.Hosts, kept.At, "not asked yet: this is the list of the last time"
	}
	return r
}

// Known is what is known now. It never waits.
func (r *Roster) Known() Known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}

// Refresh asks for the list if it is time to, and waits for the answer no longer
// than hosts can be kept waiting.
func (r *Roster) Refresh(ctx context.Context) Known {
	r.asking.Lock()
	defer r.asking.Unlock()
	if !r.due() {
		return r.Known()
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	series, at, err := r.o.Ask(ctx, r.o.Query)
	var hosts []Host
	if err == nil {
		hosts, err = HostsOf(series)
	}
	r.take(hosts, at, err)
	return r.Known()
}

func (r *Roster) due() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	every := askAgain
	if r.known.Detail == "" {
		every = askEvery
		if part := r.o.MaxAge.Std() / oldestPart; part > 0 && part < every {
			every = part
		}
	}
	return r.tried.IsZero() || r.o.Now().Sub(r.tried).Abs() >= every
}

func (r *Roster) take(hosts []Host, at time.Time, err error) {
	var keep error
	if err == nil {
		keep = r.keep(hosts, at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = r.o.Now()
	switch {
	case err == nil && keep == nil:
		r.known.Hosts, r.known.At, r.known.Detail = hosts, at, ""
	case err == nil:
		r.known.Hosts, r.known.At = hosts, at
		r.known.Detail = untrusted.Text(fmt.Sprintf("it cannot be kept for a night without Prometheus: %v", keep), maxDetail)
	case r.known.At.IsZero():
		r.known.Detail = untrusted.Text(fmt.Sprintf("there is no list: %v", err), maxDetail)
	default:
		r.known.Detail = untrusted.Text(fmt.Sprintf("this is the last list that is known: %v", err), maxDetail)
	}
}

// keptRoster is the list on disk.
type keptRoster struct {
	V     int        `json:"v"`
	Fleet string     `json:"fleet"`
	Query string     `json:"query"`
	At    time.Time  `json:"at"`
	Hosts []keptHost `json:"hosts"`
}

type keptHost struct {
	Host      string   `json:"host"`
	Services  []string `json:"services"`
	ReportURL string   `json:"report_url,omitempty"`
}

func (r *Roster) keep(hosts []Host, at time.Time) error {
	if r.o.File == "" {
		return nil
	}
	kept := keptRoster{V: 1, Fleet: r.o.Fleet, Query: r.o.Query, At: at.UTC(), Hosts: make([]keptHost, len(hosts))}
	for i, h := range hosts {
		kept.Hosts[i] = keptHost{h.Name, h.Services, h.ReportURL}
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return renameio.WriteFile(r.o.File, append(raw, '\n'), 0o600)
}

// readRoster reads the list of the last time. One of another query, or of the
// future, is another list.
func readRoster(o *RosterOptions) (list Known, err error) {
	if o.File == "" {
		return list, fs.ErrNotExist
	}
	info, err := os.Stat(o.File)
	if err != nil {
		return list, err
	}
	if info.Size() > MaxInventory {
		return list, fmt.Errorf("%s has %d bytes, at most %d", o.File, info.Size(), MaxInventory)
	}
	raw, err := os.ReadFile(o.File)
	if err != nil {
		return list, err
	}
	var kept keptRoster
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&kept); err != nil {
		return list, fmt.Errorf("%s: %w", o.File, err)
	}
	switch {
	case kept.V != 1 || kept.Fleet != o.Fleet || kept.Query != o.Query:
		return list, fmt.Errorf("%s is of another fleet, query or version", o.File)
	case kept.At.IsZero() || kept.At.After(o.Now()):
		return list, fmt.Errorf("%s is dated %s, which is not in the past", o.File, kept.At.Format(time.RFC3339))
	}
	for _, h := range kept.Hosts {
		list.Hosts = append(list.Hosts, Host{Name: h.Host, Services: h.Services, ReportURL: h.ReportURL})
	}
	list.At = kept.At
	return list, checkHosts(list.Hosts)
}
