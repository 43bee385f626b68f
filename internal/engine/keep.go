package engine

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

const (
	// retryAfter is the least time between two attempts to write after a failure:
	// short enough to be durable soon, long enough not to load a sick disk.
	retryAfter = 2 * time.Second
	// noteEvery is how often the run of an open bypass is written down, and so
	// the most that a loss of power gives back to it; noteIdle is for the floor.
	noteEvery = 10 * time.Second
	noteIdle  = 10 * time.Minute
	// forgetAfter is how long the floor has to be past the end of a bypass, freeze
	// or ping before the host forgets it.
	forgetAfter = 24 * time.Hour
	maxRuns     = 512 // in one clock record
)

var errClosed = errors.New("the host is closed")

// persist makes new statements durable, and takes those into force that had to
// wait for it. A failure leaves them as they are, for the next attempt.
func (e *Engine) persist(fresh []*held, now model.Instant) {
	if len(fresh) == 0 || e.store == nil {
		return
	}
	e.mu.Lock()
	records := make([]record, len(fresh))
	for i, h := range fresh {
		records[i] = h.record()
	}
	e.mu.Unlock()
	if e.write(records, now) != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settle(fresh, records, now)
}

// settle notes that statements are on disk as these records say.
func (e *Engine) settle(statements []*held, records []record, now model.Instant) {
	waited := false
	for i, h := range statements {
		if h.signed.Token == records[i].Token { // else it has got other signatures meanwhile
			waited = waited || !h.obeyed()
			h.durable = true
		}
	}
	if waited {
		e.refresh(now)
	}
}

// write makes records durable. If the last write failed, or the file has grown,
// a whole new generation comes first.
func (e *Engine) write(records []record, now model.Instant) error {
	e.disk.Lock()
	defer e.disk.Unlock()
	return e.append(records, now)
}

// append is write while the disk is held.
func (e *Engine) append(records []record, now model.Instant) error {
	if err := e.ready(now); err != nil {
		return err
	}
	err := e.store.append(records)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wrote(err, now)
}

// ready makes sure that there is a file to append to; the disk is held.
func (e *Engine) ready(now model.Instant) error {
	e.mu.Lock()
	closed, last, early := e.closed, e.storeErr, now.Boot < e.retryAt
	e.mu.Unlock()
	switch {
	case closed:
		return errClosed
	case e.store.file != nil && !e.store.grown():
		return nil
	case last != nil && early:
		return last
	}
	return e.rewrite(now)
}

// rewrite makes everything durable that the host holds; the disk is held.
func (e *Engine) rewrite(now model.Instant) error {
	e.mu.Lock()
	e.forget(now)
	keys := slices.Sorted(maps.Keys(e.set.byKey))
	statements, records := make([]*held, len(keys)), make([]record, len(keys))
	for i, k := range keys {
		statements[i] = e.set.byKey[k]
		records[i] = statements[i].record()
	}
	records = append(records, e.otherRecords(now)...)
	e.mu.Unlock()
	err := e.store.rewrite(records)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.noted = now.Boot
		e.settle(statements, records, now)
	}
	return e.wrote(err, now)
}

// wrote remembers how the last write went.
func (e *Engine) wrote(err error, now model.Instant) error {
	if e.storeErr = err; err != nil {
		e.retryAt = now.Boot + retryAfter
	}
	return err
}

// otherRecords are the whole state without the statements.
func (e *Engine) otherRecords(now model.Instant) []record {
	out := e.clockRecords(now)
	named := make(map[model.LogHead]bool, len(e.set.byKey))
	for _, h := range e.set.byKey {
		named[h.d().Log] = true
	}
	for _, head := range e.heads.all() {
		if !named[head] {
			out = append(out, record{Type: recordHead, Head: &head})
		}
	}
	return append(out, e.budgets.records()...)
}

// record is the statement as it is kept: the signed token, which is verified
// again when it is read, and when it was first accepted.
func (h *held) record() record {
	r := record{
		Type: recordHeld, Token: h.signed.Token, Source: h.source,
		At: h.first, Boot: h.boot, MonoNS: h.mono,
	}
	if h.unsupported {
		r.Type = recordKept
	}
	return r
}

// clockRecords note the floor and how long open bypasses have run.
func (e *Engine) clockRecords(now model.Instant) []record {
	base := record{Type: recordClock, Floor: e.floor.on(now), Boot: now.BootID, MonoNS: now.Boot}
	out := []record{base}
	at := e.floor.moment(now)
	for _, h := range e.set.active {
		if !h.running(at) {
			continue
		}
		last := &out[len(out)-1]
		if len(last.RunMS) == maxRuns {
			out = append(out, base)
			last = &out[len(out)-1]
		}
		if last.RunMS == nil {
			last.RunMS = make(map[string]int64)
		}
		// Rounded up: nothing is given back.
		ms := int64((h.run.elapsed(now) + time.Millisecond - 1) / time.Millisecond)
		last.RunMS[h.d().ID] = max(last.RunMS[h.d().ID], ms)
	}
	return out
}

// running reports whether the time of a bypass is being counted.
func (h *held) running(at moment) bool {
	return h.run.started && !expired(h.d(), at.host, h.run.elapsed(at.Instant))
}

// keep does what the folder needs at now, and returns when it needs something
// again.
func (e *Engine) keep(now model.Instant) time.Duration {
	if e.store == nil {
		return Never
	}
	records, next := e.due(now)
	if records != nil && e.write(records, now) == nil {
		_, next = e.due(now)
	}
	return next
}

// due is what has to be written now, and how long it takes until something has
// to be.
func (e *Engine) due(now model.Instant) ([]record, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, Never
	}
	if e.storeErr != nil {
		if left := e.retryAt - now.Boot; left > 0 {
			return nil, left
		}
		return e.clockNote(now), retryAfter
	}
	every, at := noteIdle, e.floor.moment(now)
	running := slices.ContainsFunc(e.set.active, func(h *held) bool { return h.running(at) })
	if running {
		every = noteEvery
	}
	left := every - max(0, now.Boot-e.noted)
	switch {
	case left <= 0:
		return e.clockNote(now), retryAfter
	case running:
		return nil, left
	}
	return nil, Never
}

// clockNote is the clock's records; they count as written when they are made,
// and are made again if the write fails.
func (e *Engine) clockNote(now model.Instant) []record {
	e.noted = now.Boot
	return e.clockRecords(now)
}

// forget drops what has its own end once no clock can bring it back: a statement
// whose end the floor has left behind would be refused as expired.
func (e *Engine) forget(now model.Instant) {
	low := e.floor.on(now)
	e.set.forget(func(h *held) bool {
		end := h.d().NotAfter
		return !end.IsZero() && !low.Before(end.Add(forgetAfter))
	})
}
