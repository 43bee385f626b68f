package kernel

import (
	"container/heap"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// MaxPending bounds the events that wait in one kernel: a loop that schedules
// without end is a bug in a scenario and stops with a sentence, not by filling
// the memory.
const MaxPending = 1 << 20

// MaxInbox bounds the inputs posted and not yet taken in. A person and a few
// carriers post; thousands waiting means that nobody runs the kernel.
const MaxInbox = 4096

// Kernel is one simulated world's time. Its methods belong to one goroutine,
// except Post and Now.
type Kernel struct {
	seed    uint64
	start   time.Time
	now     time.Time
	shown   atomic.Int64 // now, for readers on other goroutines; ns since 1970
	seq     uint64
	pending queue
	streams map[string]*Stream
	log     *Log

	mu    sync.Mutex
	inbox []input
}

type input struct {
	name string
	do   func()
}

// New makes a kernel whose virtual time begins at start. The event log goes to
// log; errors of the writer are kept and returned by Err.
func New(seed uint64, start time.Time, log io.Writer) *Kernel {
	start = start.UTC().Truncate(time.Millisecond)
	k := &Kernel{seed: seed, start: start, streams: make(map[string]*Stream)}
	k.log = newLog(log, seed, start)
	k.set(start)
	return k
}

func (k *Kernel) set(now time.Time) {
	k.now = now
	k.shown.Store(now.UnixNano())
}

// Now is the virtual time: the time of the event that is running, or the time
// up to which Run has come. Clocks are read from any goroutine.
func (k *Kernel) Now() time.Time { return time.Unix(0, k.shown.Load()).UTC() }

// Since is the virtual time since the start.
func (k *Kernel) Since() time.Duration { return k.now.Sub(k.start) }

// Timer is a scheduled event that can be stopped.
type Timer struct{ event *event }

// Stop keeps the event from running. Stopping what has run, or twice, does
// nothing.
func (t Timer) Stop() { t.event.do = nil }

// At schedules do at t. What lies in the past runs at the present, after
// everything already scheduled for it.
func (k *Kernel) At(t time.Time, do func()) Timer {
	e := &event{}
	k.schedule(e, t, do)
	return Timer{e}
}

// After schedules do d from now.
func (k *Kernel) After(d time.Duration, do func()) Timer { return k.At(k.now.Add(d), do) }

// Every runs do at first and then every period, until the timer is stopped; do
// may stop it. A period below one millisecond would never let time pass and is
// a programming error.
func (k *Kernel) Every(first time.Time, period time.Duration, do func()) Timer {
	if period < time.Millisecond {
		panic(fmt.Sprintf("kernel: a period of %v does not advance virtual time", period))
	}
	e := &event{}
	var tick func()
	tick = func() {
		// Scheduled before do runs, so that do can stop it.
		k.schedule(e, k.now.Add(period), tick)
		do()
	}
	k.schedule(e, first, tick)
	return Timer{e}
}

func (k *Kernel) schedule(e *event, t time.Time, do func()) {
	if len(k.pending) >= MaxPending {
		panic(fmt.Sprintf("kernel: %d events wait: something schedules without end", len(k.pending)))
	}
	if t.Before(k.now) {
		t = k.now
	}
	k.seq++
	e.at, e.seq, e.do = t, k.seq, do
	heap.Push(&k.pending, e)
}

// Post hands an input to the kernel from any goroutine; name says in the log
// what it was. It runs when the owner next calls Step or Run, at the virtual
// time of that moment. An error means that the inbox is full.
func (k *Kernel) Post(name string, do func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.inbox) >= MaxInbox {
		return fmt.Errorf("post %q to the drill: %d inputs wait already: is the world still running?", name, MaxInbox)
	}
	k.inbox = append(k.inbox, input{name, do})
	return nil
}

// takeIn turns posted inputs into events of the present.
func (k *Kernel) takeIn() {
	k.mu.Lock()
	posted := k.inbox
	k.inbox = nil
	k.mu.Unlock()
	for _, in := range posted {
		k.At(k.now, func() {
			k.Log("kernel", "input", Word("name", in.name))
			in.do()
		})
	}
}

// Step runs the next event, whenever it is, and reports whether there was one.
func (k *Kernel) Step() bool {
	k.takeIn()
	return k.step(nil)
}

// Run runs every event up to and including until, and leaves the virtual time
// there. Inputs posted while it runs are taken in between two events.
func (k *Kernel) Run(until time.Time) {
	for {
		k.takeIn()
		if !k.step(&until) {
			break
		}
	}
	if k.now.Before(until) {
		k.set(until)
	}
}

func (k *Kernel) step(until *time.Time) bool {
	for len(k.pending) > 0 {
		if until != nil && k.pending[0].at.After(*until) {
			return false
		}
		e := heap.Pop(&k.pending).(*event)
		if e.do == nil {
			continue // stopped
		}
		do := e.do
		e.do = nil
		k.set(e.at)
		do()
		return true
	}
	return false
}

// Err is the first error of the event log's writer.
func (k *Kernel) Err() error { return k.log.err }

type event struct {
	at  time.Time
	seq uint64
	do  func() // nil: stopped or done
}

// queue is a heap by (at, seq): two events of one instant run in the order in
// which they were scheduled.
type queue []*event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
