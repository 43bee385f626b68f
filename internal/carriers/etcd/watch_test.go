package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/carriers"
	"github.com/degradedmode/ic/internal/carriers/etcd"
)

func TestAWatchDeliversWhatIsThereAndWhatComesEachOnce(t *testing.T) {
	c := open(t, options(shared.addr, fleetOf(t)))
	before, after := newID(), newID()
	put(t, c, before)
	w := watch(t, c)
	w.until(t, "the full read", func() bool { return w.has(before)() && w.status.Connected && !w.status.LastFullRead.IsZero() })
	put(t, c, after)
	w.until(t, "the event", w.has(after))
	if w.times[before] != 1 || w.times[after] != 1 {
		t.Errorf("delivered %v times", w.times)
	}
}

func TestACutWireIsSaidAndHealsByAFullRead(t *testing.T) {
	p := newProxy(t, shared.addr)
	direct := open(t, options(shared.addr, fleetOf(t)))
	w := watch(t, open(t, options(p.Addr(), fleetOf(t))))
	w.until(t, "connected", func() bool { return w.status.Connected })
	read := w.status.LastFullRead

	cut(t, p)
	w.until(t, "the cut in the status", func() bool { return !w.status.Connected && w.status.Err != "" })
	if !w.status.LastFullRead.Equal(read) {
		t.Error("the status forgot when it last read everything")
	}
	missed := newID()
	put(t, direct, missed)
	w.until(t, "a refused reconnect", func() bool { return len(w.statuses) >= 3 && w.tokens[missed] == "" })

	heal(t, p, shared.addr)
	w.until(t, "what was missed", w.has(missed))
	w.until(t, "a newer full read", func() bool {
		return w.status.Connected && w.status.Err == "" && w.status.LastFullRead.After(read)
	})
	late := newID()
	put(t, direct, late)
	w.until(t, "an event after healing", w.has(late))
}

func TestAWatchOutlivesARestartOfEtcd(t *testing.T) {
	dir := t.TempDir()
	first, err := start(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, first.addr)
	before, after := newID(), newID()
	c := open(t, options(p.Addr(), fleetOf(t)))
	put(t, c, before)
	w := watch(t, c)
	w.until(t, "the first token", w.has(before))

	cut(t, p) // or etcd waits 7 s for its watchers to leave
	first.Close()
	w.until(t, "the loss", func() bool { return !w.status.Connected })
	second := startOwn(t, dir, nil)
	t.Cleanup(func() { cut(t, p) })
	heal(t, p, second.addr)
	put(t, open(t, options(second.addr, fleetOf(t))), after)
	w.until(t, "a token of after the restart", w.has(before, after))
}

func TestACompactionPastTheWatcherLosesNothing(t *testing.T) {
	fleet := fleetOf(t)
	c := open(t, options(shared.addr, fleet))
	first := newID()
	put(t, c, first)
	w := &watcher{tokens: map[string]string{}, times: map[string]int{}, changed: make(chan struct{}, 1)}
	reached, goOn := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(ctx, func(arrived []etcd.Arrival) {
			if arrived[0].ID == first {
				close(reached) // the full read has happened, the watch is not yet there
				<-goOn
			}
			w.sink(arrived)
		}, w.take)
	}()
	defer func() { cancel(); <-done }()
	<-reached
	behind := []string{newID(), newID(), newID()}
	put(t, c, behind...)
	full, err := c.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, shared.addr).Compact(t.Context(), full.Revision); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	w.until(t, "what was compacted away", w.has(behind...))
	for _, s := range w.statuses {
		if !s.Connected {
			t.Errorf("a compaction was shown as a lost connection: %+v", s)
		}
	}
}

func TestEverythingIsReadAgainOnTheTimer(t *testing.T) {
	o := options(shared.addr, fleetOf(t))
	ticks := make(chan time.Time)
	o.After = func(d time.Duration) <-chan time.Time {
		if d > etcd.DefaultFullRead/2 && d <= etcd.DefaultFullRead {
			return ticks
		}
		return time.After(d)
	}
	w := watch(t, open(t, o))
	for n := 1; n <= 3; n++ {
		w.until(t, "a full read", func() bool { return len(w.statuses) == n })
		if n < 3 {
			ticks <- time.Time{}
		}
	}
	for i, s := range w.statuses {
		if !s.Connected || i > 0 && !s.LastFullRead.After(w.statuses[i-1].LastFullRead) {
			t.Errorf("status %d is %+v", i, s)
		}
	}
}

func TestADeletedKeyIsNotTakenBackAndAnOverwrittenOneIsDeliveredAgain(t *testing.T) {
	fleet := fleetOf(t)
	c := open(t, options(shared.addr, fleet))
	deleted, forged := newID(), newID()
	put(t, c, deleted, forged)
	w := watch(t, c)
	w.until(t, "both", w.has(deleted, forged))
	stranger := raw(t, shared.addr)
	if _, err := stranger.Delete(t.Context(), "/ic/"+fleet+"/d/"+deleted); err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Put(t.Context(), "/ic/"+fleet+"/d/"+forged, "forged"); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the forged token, for the engine to refuse", func() bool { return w.tokens[forged] == "forged" })
	if w.tokens[deleted] == "" || w.times[deleted] != 1 {
		t.Errorf("the deleted key was delivered %d times", w.times[deleted])
	}
}

func TestAWatchEndsWithItsCarrier(t *testing.T) {
	c, err := etcd.New(t.Context(), options(shared.addr, fleetOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	connected, done := make(chan struct{}, 8), make(chan struct{})
	go func() {
		defer close(done)
		c.Watch(t.Context(), func([]etcd.Arrival) {}, func(carriers.Status) { connected <- struct{}{} })
	}()
	<-connected
	c.Close()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the watch goes on")
	}
}
