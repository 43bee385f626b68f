package etcd

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"
)

// DefaultFullRead is the time between two full reads of a healthy watch. It
// bounds how late an event can be that the watch has lost, and the age that a
// host reports for this source.
const DefaultFullRead = time.Minute

// Waits after a failure: doubled from the first to the cap, and only then spread
// over half to one and a half of it, so that a fleet does not come back as one.
const (
	firstWait = 250 * time.Millisecond
	maxWait   = 10 * time.Second
)

// maxDoublings keeps the shift below from overflowing; the cap is reached first.
const maxDoublings = 16

var errLost = errors.New("the connection is lost; what is known stays in force")

// Arrival is one token under its id.
type Arrival struct{ ID, Token string }

// deliverAtOnce bounds the arrivals of one delivery: many, so that a host that
// comes back writes them down together, and few enough to verify in a moment.
const deliverAtOnce = 128

// Watch delivers every token of the fleet, each once, and then those that
// arrive, until ctx or the carrier ends. It reads everything again after a break, after a
// compaction and every FullReadEvery. A token that changes under its id is
// delivered again; one that is deleted is not taken back. sink and status are
// called from this goroutine, one at a time.
func (c *Carrier) Watch(ctx context.Context, sink func([]Arrival), status func(carriers.Status)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	w := watch{Carrier: c, sink: sink, status: status, seen: make(map[string]string)}
	for ctx.Err() == nil {
		err := w.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		w.state.Connected, w.state.Err = false, err.Error()
		status(w.state)
		select {
		case <-ctx.Done():
		case <-c.opts.After(c.opts.wait(w.failures)):
		}
		w.failures++
	}
}

type watch struct {
	*Carrier
	sink     func([]Arrival)
	status   func(carriers.Status)
	seen     map[string]string
	state    carriers.Status
	failures int // since the last watch that was established
}

// round is one full read and the watch from its revision on, which no event can
// fall between. It ends without an error when the next full read is due.
func (w *watch) round(ctx context.Context) error {
	w.hold(false)
	full, err := w.all(ctx, w.known)
	w.hold(true)
	if err != nil {
		return err
	}
	ids := slices.Sorted(maps.Keys(full.Tokens)) // oldest first
	w.state = carriers.Status{Connected: true, LastFullRead: w.opts.Now(), Present: ids, Err: full.Note}
	for some := range slices.Chunk(ids, deliverAtOnce) {
		news := make([]Arrival, 0, len(some))
		for _, id := range some {
			news = append(news, Arrival{id, full.Tokens[id]})
		}
		w.deliver(news)
	}
	w.status(w.state)
	return w.follow(ctx, full.Revision+1)
}

// known is the copy of a token that is in memory already, "" if none is.
func (w *watch) known(id string, token []byte) string {
	if seen := w.seen[id]; seen == string(token) {
		return seen
	}
	if w.opts.Known == nil {
		return ""
	}
	return w.opts.Known(token)
}

// deliver hands over what has not been delivered before.
func (w *watch) deliver(all []Arrival) {
	news := slices.DeleteFunc(all, func(a Arrival) bool { return w.seen[a.ID] == a.Token })
	for _, a := range news {
		w.seen[a.ID] = a.Token
	}
	if len(news) > 0 {
		w.sink(news)
	}
}

// follow delivers events from revision on. The client would hide a lost
// connection and reconnect by itself for ever; a host has to say that it is cut
// off, so the connection is watched as well.
func (w *watch) follow(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	client, err := w.connect(ctx)
	if err != nil {
		return w.explain("watch", err)
	}
	go func() {
		client.ActiveConnection().WaitForStateChange(ctx, connectivity.Ready)
		cancel() // ends the watch, also one that is still being set up
	}()
	events := client.Watch(ctx, w.directiveKey(""), clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithCreatedNotify())
	due := w.opts.After(w.opts.FullReadEvery - time.Duration(w.opts.Rand()*float64(w.opts.FullReadEvery)/4))
	for {
		select {
		case <-due:
			return nil
		case r, open := <-events:
			if !open {
				return w.explain("watch", errLost)
			}
			if err := r.Err(); errors.Is(err, rpctypes.ErrCompacted) {
				return nil // what was compacted is in the next full read
			} else if err != nil {
				return w.explain("watch", err)
			}
			w.failures = 0
			w.take(r.Events)
		}
	}
}

func (w *watch) take(events []*clientv3.Event) {
	var news []Arrival
	for _, e := range events {
		id, token := strings.TrimPrefix(string(e.Kv.Key), w.directiveKey("")), string(e.Kv.Value)
		if e.Type == clientv3.EventTypePut && deliverable(id, token) {
			news = append(news, Arrival{id, token})
		}
	}
	w.deliver(news)
}

// waitAfter is the wait after so many failures in a row; jitter is in [0, 1).
func waitAfter(failures int, jitter float64) time.Duration {
	d := min(firstWait<<min(failures, maxDoublings), maxWait)
	return d/2 + time.Duration(jitter*float64(d))
}
