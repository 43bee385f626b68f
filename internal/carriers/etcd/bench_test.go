package etcd_test

import (
	"testing"
)

// BenchmarkPutUntilSeen is one write on the way to one watcher: what delivery
// costs before any host has verified or stored a thing.
func BenchmarkPutUntilSeen(b *testing.B) {
	c := open(b, options(shared.addr, "bench"))
	w := watch(b, c)
	w.until(b, "connected", func() bool { return w.status.Connected })
	for b.Loop() {
		id := newID()
		put(b, c, id)
		w.until(b, "the token", w.has(id))
	}
}
