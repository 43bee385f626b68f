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

// write makes records durable. If the last write failed, or the file has grown,
// a whole new generation comes first.
func (e *Engine) write(records []record, now model.Instant) error {
	if e.closed {
		return errClosed
	}
	if e.store.file == nil || e.store.grown() {
		if err := e.rewrite(now); err != nil {
			return err
		}
	}
	e.storeErr = e.store.append(records)
	if e.storeErr != nil {
		e.retryAt = now.Boot + retryAfter
	}
	return e.storeErr
}

// rewrite makes everything durable that the host holds.
func (e *Engine) rewrite(now model.Instant) error {
	if e.storeErr != nil && now.Boot < e.retryAt {
		return e.storeErr
	}
	e.forget(now)
	if e.storeErr = e.store.rewrite(e.records(now)); e.storeErr != nil {
		e.retryAt = now.Boot + retryAfter
		return e.storeErr
	}
	for _, h := range e.set.byKey {
		h.durable = true
	}
	e.noted = now.Boot
	return nil
}

// records are the whole state, oldest statements first.
func (e *Engine) records(now model.Instant) []record {
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
	for _, k := range slices.Sorted(maps.Keys(e.set.byKey)) {
		out = append(out, e.set.byKey[k].record())
	}
	return append(out, e.budgets.records()...)
}

// record is the statement as it is kept: the signed token, which is verified
// again when it is read, and when it was first accepted.
func (h *held) record() record {
	r := record{
		Type: recordHeld, Token: h.signed.Token, Source: h.source,
		At: h.accepted, Boot: h.boot, MonoNS: h.mono,
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
	for _, h := range e.set.byKey {
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
	if e.store == nil || e.closed {
		return Never
	}
	if e.store.file == nil {
		if e.rewrite(now) != nil {
			return max(0, e.retryAt-now.Boot)
		}
	}
	at, every, next := e.floor.moment(now), noteIdle, Never
	for _, h := range e.set.byKey {
		if h.running(at) {
			every, next = noteEvery, noteEvery
			break
		}
	}
	if since := now.Boot - e.noted; since >= every || since < 0 {
		if e.write(e.clockRecords(now), now) != nil {
			return max(0, e.retryAt-now.Boot)
		}
		e.noted = now.Boot
	}
	if next != Never {
		next -= now.Boot - e.noted
	}
	return next
}

// forget drops what has its own end once no clock can bring it back: a statement
// whose end the floor has left behind would be refused as expired.
func (e *Engine) forget(now model.Instant) {
	low := e.floor.on(now)
	for k, h := range e.set.byKey {
		d := h.d()
		if !d.NotAfter.IsZero() && !low.Before(d.NotAfter.Add(forgetAfter)) {
			delete(e.set.byKey, k)
		}
	}
}
