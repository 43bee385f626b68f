package etcd

import (
	"context"
	"errors"
	"net"
	"time"
)

// FleetSpread is over how long hosts come back that have lost etcd at the same
// moment: an eighth of them in a second. What they know stays in force meanwhile.
const FleetSpread = 8 * time.Second

var errHeld = errors.New("it waits for its turn to connect again")

// wait is the pause after a failure. A single reader comes back quickly; one of a
// fleet anywhere within Spread, and after a second failure at the cap, so that no
// length of an outage brings them together again.
func (o *Options) wait(failures int) time.Duration {
	switch jitter := o.Rand(); {
	case o.Spread == 0:
		return waitAfter(failures, jitter)
	case failures == 0:
		return time.Duration(jitter * float64(o.Spread))
	default:
		return waitAfter(maxDoublings, jitter)
	}
}

// hold keeps gRPC, which would connect again at once and at a pace of its own,
// from doing so before its turn; it does nothing without Spread.
func (c *Carrier) hold(held bool) { c.held.Store(held && c.opts.Spread > 0) }

func (c *Carrier) dial(ctx context.Context, addr string) (net.Conn, error) {
	if c.held.Load() {
		return nil, errHeld
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}
