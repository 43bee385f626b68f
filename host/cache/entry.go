package cache

import (
	"container/list"
	"strings"
	"sync/atomic"
	"time"
)

// entry is one answer that is kept. What is plain in it never changes.
type entry[V any] struct {
	key   Key
	value V
	asOf  time.Time
	renew time.Time // from when on it is fetched again although it is fresh
	size  int64
	place *list.Element

	failed atomic.Pointer[failure]
}

// failure is the last attempt to renew an entry.
type failure struct {
	cause error
	until time.Time // no new attempt before
}

// age is by the clock that shows more: Go's monotonic clock stands still while a
// machine sleeps, and the wall clock may be set back.
func (e *entry[V]) age(now time.Time) time.Duration {
	return max(now.Sub(e.asOf), now.Round(0).Sub(e.asOf.Round(0)))
}

func (e *entry[V]) answer(now time.Time) Answer[V] {
	return Answer[V]{Value: e.value, AsOf: e.asOf, Age: e.age(now)}
}

// due reports whether a fresh entry is to be renewed ahead of time.
func (e *entry[V]) due(now time.Time) bool { return !now.Before(e.renew) && e.resting(now) == nil }

// resting is why the dependency, which has just failed, is not asked again yet;
// nil if it is to be asked.
func (e *entry[V]) resting(now time.Time) error {
	if e == nil {
		return nil
	}
	if f := e.failed.Load(); f != nil && now.Before(f.until) {
		return f.cause
	}
	return nil
}

// keep puts the answer of a flight in, if it fits, and drops the entries that were
// used the longest ago. The caller holds mu.
func (c *Cache[V]) keep(key Key, f *flight[V]) {
	if f.size < 0 || f.size > c.cfg.MaxBytes/valueShare {
		c.unkept.Add(1)
		return
	}
	// The caller's strings may be parts of a whole request.
	key = Key{strings.Clone(key.Scope), strings.Clone(key.Policy), strings.Clone(key.Name)}
	e := &entry[V]{key: key, value: f.value, asOf: f.began, size: f.size}
	e.renew = f.began.Add(time.Duration(float64(c.cfg.Fresh) * (1 - early*c.cfg.Rand())))
	if old, ok := c.entries[key]; ok {
		c.drop(old)
	}
	c.entries[key], e.place = e, c.recent.PushFront(e)
	c.bytes += e.size
	for c.bytes > c.cfg.MaxBytes || len(c.entries) > c.cfg.MaxEntries {
		c.drop(c.recent.Back().Value.(*entry[V]))
		c.evicted.Add(1)
	}
}

// drop takes an entry out, unless another has taken its place. The caller holds
// mu.
func (c *Cache[V]) drop(e *entry[V]) {
	if c.entries[e.key] != e {
		return
	}
	delete(c.entries, e.key)
	c.recent.Remove(e.place)
	c.bytes -= e.size
}
