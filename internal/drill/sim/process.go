package sim

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"
)

// errOver is what a wait gives back when the world, or a console, ends.
var errOver = errors.New("the simulation has ended")

// process is something that goes on while virtual time passes. It runs on the
// kernel's thread and gives it back whenever it waits: no two of them ever run at
// once, and their order is that of the kernel's events.
type process struct {
	next  func() (time.Duration, bool)
	stop  func()
	yield func(time.Duration) bool
}

type processKey struct{}

// processOf is the process that a context belongs to; nil: none.
func processOf(ctx context.Context) *process {
	p, _ := ctx.Value(processKey{}).(*process)
	return p
}

// process makes a process, which resume begins.
func (w *World) process(run func(context.Context)) *process {
	p := &process{}
	ctx := context.WithValue(context.Background(), processKey{}, p)
	p.next, p.stop = iter.Pull(func(yield func(time.Duration) bool) {
		p.yield = yield
		run(ctx)
	})
	w.processes = append(w.processes, p)
	return p
}

func (w *World) resume(p *process) {
	if d, more := p.next(); more {
		w.k.After(d, func() { w.resume(p) })
		return
	}
	w.forget(p)
}

// end makes the wait of a process fail, lets it run to its end, and forgets it.
func (w *World) end(p *process) {
	p.stop()
	w.forget(p)
}

func (w *World) forget(p *process) {
	if i := slices.Index(w.processes, p); i >= 0 {
		w.processes = slices.Delete(w.processes, i, i+1)
	}
}

// wait lets virtual time pass: in a process that of everybody; outside of one by
// running the kernel, or until whoever paces the world has come so far.
func (w *World) wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d = max(d, w.lookEvery())
	if p := processOf(ctx); p != nil {
		if !p.yield(d) {
			return errOver
		}
		return nil
	}
	if !w.o.Paced {
		w.k.Run(w.k.Now().Add(d))
		return nil
	}
	over := make(chan struct{})
	leave := w.enter(ctx)
	w.k.After(d, func() { close(over) })
	leave()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
