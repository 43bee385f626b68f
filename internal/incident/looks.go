package incident

import (
	"context"
	"time"
)

// looks are repeated looks at the hosts within a limit: of real time, or of the
// time of the world that the desk was told to wait in.
type looks struct {
	ctx  context.Context // ends with the limit of real time
	end  func()
	next func() bool // waits for the next look, and is false when the time is over
}

func (d *Desk) looks(ctx context.Context, limit time.Duration) looks {
	if d.o.Wait != nil {
		until := d.o.Clock.Now().Boot + limit
		return looks{ctx: ctx, end: func() {}, next: func() bool {
			return d.o.Clock.Now().Boot < until && d.o.Wait(ctx, observeEvery) == nil && ctx.Err() == nil
		}}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	tick := time.NewTicker(observeEvery)
	return looks{
		ctx:  limited,
		end:  func() { tick.Stop(); cancel() },
		next: func() bool { return nextTick(limited, tick) },
	}
}

// nextTick waits for the next look, and is false when the time is over, also when
// both have come.
func nextTick(ctx context.Context, tick *time.Ticker) bool {
	select {
	case <-tick.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
