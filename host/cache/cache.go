package cache

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/degradedmode/ic/host/degraded"
	"github.com/degradedmode/ic/host/fallback"
)

// Key names one answer. Two keys that differ anywhere have nothing in common.
type Key struct {
	Scope  string // whose answer it is: tenant, user or role, as authorization sees it
	Policy string // version of the rules by which he may see it
	Name   string // what was asked for
}

func (k Key) missing() Why {
	switch {
	case k.Scope == "":
		return NoScope
	case k.Policy == "":
		return NoPolicy
	}
	return ""
}

// Fetch asks the dependency. It has to end when ctx does.
type Fetch[V any] func(ctx context.Context) (V, error)

// Answer is a value with its age. The value is shared: nobody may change it.
type Answer[V any] struct {
	Value V
	AsOf  time.Time     // when the fetch began that brought it
	Age   time.Duration // since then
	Stale bool          // it stands in for one that could not be had: mark the response
	Cause error         // of a stale one: why there is none from now
}

// Panel makes a part of a response of what Get returns: current, stale with its
// time, or not available, with the reason under which fallbacks are counted.
func Panel[V any](a Answer[V], err error) degraded.Panel[V] {
	switch {
	case err != nil:
		return degraded.None[V](string(fallback.ReasonOf(err)))
	case a.Stale:
		return degraded.Old(a.Value, a.AsOf, string(fallback.ReasonOf(a.Cause)))
	}
	return degraded.Now(a.Value)
}

// Cache keeps answers of one dependency. It is safe for concurrent use.
type Cache[V any] struct {
	cfg Config[V]

	mu      sync.Mutex
	entries map[Key]*entry[V]
	recent  *list.List // of *entry, the one used last in front
	bytes   int64
	flights map[Key]*flight[V]
	running int // fetches, those without a key included

	evicted  atomic.Uint64
	unkept   atomic.Uint64
	outcomes outcomes
}

// New makes an empty cache.
func New[V any](cfg Config[V]) (*Cache[V], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Cache[V]{cfg: cfg, entries: map[Key]*entry[V]{}, recent: list.New(), flights: map[Key]*flight[V]{}}, nil
}

// Get returns a fresh answer from the cache; otherwise that of the dependency;
// otherwise a stale one; otherwise an error that is a *Refused. It takes no longer
// than the timeout, nor than the caller's deadline less the reserve. A fetch that
// takes longer goes on without the caller and is of use to the next one.
//
// Without a scope or a policy version in the key the dependency is asked each time
// and nothing is kept.
func (c *Cache[V]) Get(ctx context.Context, key Key, fetch Fetch[V]) (Answer[V], error) {
	if ctx.Err() != nil {
		return c.refuse(Gone, context.Cause(ctx))
	}
	if why := key.missing(); why != "" {
		a, cause := c.direct(ctx, key, fetch)
		if cause != nil {
			return c.refuse(why, cause)
		}
		return a, nil
	}
	now := c.cfg.Now()
	e, why := c.find(key, now)
	if e != nil && e.age(now) <= c.cfg.Fresh {
		if e.due(now) {
			c.renew(ctx, e, fetch)
		}
		c.outcomes.count(fresh)
		return e.answer(now), nil
	}
	cause := e.resting(now)
	if cause == nil {
		var a Answer[V]
		if a, cause = c.ask(ctx, key, fetch); cause == nil {
			return a, nil
		}
	}
	return c.instead(ctx, e, why, cause)
}

// instead serves a stale answer when there is none of the dependency.
func (c *Cache[V]) instead(ctx context.Context, e *entry[V], why Why, cause error) (Answer[V], error) {
	if ctx.Err() != nil {
		return c.refuse(Gone, cause)
	}
	if e == nil {
		return c.refuse(why, cause)
	}
	a := e.answer(c.cfg.Now()) // it has grown older while we waited
	if a.Age > c.cfg.Fresh+c.cfg.Stale {
		return c.refuse(TooOld, cause)
	}
	a.Stale, a.Cause = true, cause
	c.outcomes.count(stale)
	if c.cfg.Fallbacks != nil {
		c.cfg.Fallbacks.Stale(c.cfg.Name, fallback.ReasonOf(cause), a.Age)
	}
	return a, nil
}

// find returns an entry that may be served: whole, and not too old. Any other is
// dropped, and why says so.
func (c *Cache[V]) find(key Key, now time.Time) (*entry[V], Why) {
	c.mu.Lock()
	e, ok := c.entries[key]
	if ok {
		c.recent.MoveToFront(e.place)
	}
	c.mu.Unlock()
	var why Why
	switch {
	case !ok:
		return nil, Nothing
	case e.age(now) < 0 || e.age(now) > c.cfg.Fresh+c.cfg.Stale:
		why = TooOld // a clock that was set back says nothing about an age
	case c.cfg.Check != nil && c.cfg.Check(key, e.value) != nil:
		why = Corrupt
	default:
		return e, ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(e)
	return nil, why
}

func (c *Cache[V]) refuse(why Why, cause error) (Answer[V], error) {
	c.outcomes.refused(why)
	return Answer[V]{}, &Refused{Name: c.cfg.Name, Why: why, Cause: cause}
}

// Forget drops everything of one scope, as when what somebody may see has changed.
// What is being fetched meanwhile is neither kept nor given to who asks from now
// on.
func (c *Cache[V]) Forget(scope string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if key.Scope == scope {
			c.drop(e)
		}
	}
	for key := range c.flights {
		if key.Scope == scope {
			delete(c.flights, key)
		}
	}
}
