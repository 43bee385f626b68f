package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/degradedmode/ic/host/fallback"
)

// flight is one fetch that all who ask for its key wait for.
type flight[V any] struct {
	began    time.Time
	deadline time.Time // after it nobody waits for the flight any more

	done  chan struct{} // closed when what follows may be read
	value V
	size  int64
	err   error
}

var errNoReturn = errors.New("the fetch has ended without an answer")

// ask returns the dependency's answer, of a flight that is under way or of a new
// one, within the caller's time.
func (c *Cache[V]) ask(ctx context.Context, key Key, fetch Fetch[V]) (Answer[V], error) {
	wait, err := c.budget(ctx)
	if err != nil {
		return Answer[V]{}, err
	}
	f, err := c.join(ctx, key, fetch)
	if err != nil {
		return Answer[V]{}, err
	}
	return c.await(ctx, f, wait)
}

// direct asks for a key that lacks something: nothing is shared, nothing is kept.
func (c *Cache[V]) direct(ctx context.Context, key Key, fetch Fetch[V]) (Answer[V], error) {
	wait, err := c.budget(ctx)
	if err != nil {
		return Answer[V]{}, err
	}
	c.mu.Lock()
	f, err := c.start(ctx, key, fetch)
	c.mu.Unlock()
	if err != nil {
		return Answer[V]{}, err
	}
	return c.await(ctx, f, wait)
}

// renew starts a flight that nobody waits for. Without room it is left: the entry
// is still fresh, and the next who asks tries again.
func (c *Cache[V]) renew(ctx context.Context, e *entry[V], fetch Fetch[V]) {
	_, _ = c.join(ctx, e.key, fetch)
}

// budget is how long a caller may wait: the timeout, or less.
func (c *Cache[V]) budget(ctx context.Context) (time.Duration, error) {
	wait := c.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-c.cfg.Reserve)
	}
	if wait <= 0 {
		return 0, ErrBudget
	}
	return wait, nil
}

func (c *Cache[V]) await(ctx context.Context, f *flight[V], wait time.Duration) (Answer[V], error) {
	timer := time.NewTimer(min(wait, time.Until(f.deadline)))
	defer timer.Stop()
	select {
	case <-f.done:
	case <-ctx.Done():
		return Answer[V]{}, context.Cause(ctx)
	case <-timer.C:
		return Answer[V]{}, fmt.Errorf("no answer in %s: %w", wait.Round(time.Millisecond), context.DeadlineExceeded)
	}
	if f.err != nil {
		return Answer[V]{}, f.err
	}
	c.outcomes.count(fetched)
	return Answer[V]{Value: f.value, AsOf: f.began, Age: max(0, c.cfg.Now().Sub(f.began))}, nil
}

// join finds the flight of a key or starts one, if there is room.
func (c *Cache[V]) join(ctx context.Context, key Key, fetch Fetch[V]) (*flight[V], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, ok := c.flights[key]; ok {
		return f, nil
	}
	f, err := c.start(ctx, key, fetch)
	if err == nil {
		c.flights[key] = f
	}
	return f, err
}

// start begins a fetch in a goroutine of its own, since the first who asks may
// leave before the others. The caller holds mu.
func (c *Cache[V]) start(ctx context.Context, key Key, fetch Fetch[V]) (*flight[V], error) {
	if c.running >= c.cfg.MaxFetches {
		return nil, fmt.Errorf("%d fetches are under way: %w", c.running, fallback.ErrBulkhead)
	}
	c.running++
	f := &flight[V]{began: c.cfg.Now(), deadline: time.Now().Add(c.cfg.Timeout), done: make(chan struct{}), err: errNoReturn}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), f.deadline)
	go func() {
		defer cancel()
		defer c.land(key, f)
		defer func() {
			if p := recover(); p != nil { // of a request's handler it would not have ended the process either
				f.err = fmt.Errorf("the fetch has panicked: %v", p)
			}
		}()
		f.fly(ctx, key, fetch, &c.cfg)
	}()
	return f, nil
}

func (f *flight[V]) fly(ctx context.Context, key Key, fetch Fetch[V], cfg *Config[V]) {
	value, err := fetch(ctx)
	if err == nil && cfg.Check != nil {
		if err = cfg.Check(key, value); err != nil {
			err = fmt.Errorf("the answer is damaged: %w", err)
		}
	}
	if err == nil {
		if f.size = int64(cfg.Size(value)); f.size >= 0 {
			f.size += overhead + int64(len(key.Scope)+len(key.Policy)+len(key.Name))
		}
	}
	f.value, f.err = value, err
}

// land keeps what a flight has brought, unless its scope was forgotten meanwhile.
func (c *Cache[V]) land(key Key, f *flight[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(f.done)
	c.running--
	if c.flights[key] != f {
		return
	}
	delete(c.flights, key)
	if f.err == nil {
		c.keep(key, f)
	} else if e, ok := c.entries[key]; ok {
		rest := time.Duration(float64(c.cfg.RetryAfter) * (0.75 + 0.5*c.cfg.Rand()))
		e.failed.Store(&failure{cause: f.err, until: c.cfg.Now().Add(rest)})
	}
}
