package engine

import (
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// MaxBehind is how far a wall clock may be behind the time floor before the host
// opens nothing.
const MaxBehind = 2 * time.Minute

// floor is the time that verified statements prove to have passed: the highest
// issued_at, plus the boot time since it was seen. Nobody can set it back.
type floor struct {
	at     time.Time
	boot   time.Duration
	bootID string
}

// on is the floor at now. Boot time that went back, as after a restored snapshot
// of a machine, adds nothing.
func (f floor) on(now model.Instant) time.Time {
	if f.at.IsZero() || f.bootID != now.BootID {
		return f.at
	}
	return f.at.Add(max(0, now.Boot-f.boot))
}

// raised is the floor after a statement proved that at has passed.
func (f floor) raised(at time.Time, now model.Instant) floor {
	current := f.on(now)
	switch {
	case at.After(current):
		current = at
	case f.bootID == now.BootID:
		return f
	}
	return floor{at: current, boot: now.Boot, bootID: now.BootID}
}

// moment is one reading of the clocks with the host time that follows from it:
// the later of wall clock and floor.
type moment struct {
	model.Instant
	host  time.Time
	state model.ClockState
}

func (f floor) moment(now model.Instant) moment {
	at := moment{Instant: now, host: now.Wall.Round(0).UTC(), state: now.State}
	low := f.on(now)
	if behind := low.Sub(at.host); behind > 0 {
		at.host = low
		if behind > MaxBehind && at.state != model.ClockUnsynced {
			at.state = model.ClockBehind
		}
	}
	return at
}

// fit reports whether the clocks allow opening anything.
func (m moment) fit() bool {
	return m.state != model.ClockUnsynced && m.state != model.ClockBehind
}

// run is how much of its length a bypass has used up. It is counted by a clock that
// cannot be set, from one look at the host time beside it: at the first accept or,
// in a later boot, at the start of the process. Whatever becomes of the wall clock
// afterwards, the bypass does not end later than that look promised.
type run struct {
	started bool
	before  time.Duration // used up at since; negative: it begins after so long
	since   time.Duration // boot clock
	bootID  string
}

// runFrom counts from a look at the clocks.
func runFrom(notBefore time.Time, at moment) run {
	return run{before: at.host.Sub(notBefore), since: at.Boot, bootID: at.BootID}
}

func (r run) elapsed(now model.Instant) time.Duration {
	if r.bootID != now.BootID {
		return r.before
	}
	return r.before + max(0, now.Boot-r.since)
}

// start begins the run when not_before has passed, by the look from which it is
// counted or by the host time of now. The latter dates it back to that moment, but
// not before that look: a clock that jumps ahead takes away no more than it must.
func (r run) start(notBefore time.Time, at moment) run {
	if r.started {
		return r
	}
	elapsed := r.elapsed(at.Instant)
	if late := at.host.Sub(notBefore); late >= 0 {
		elapsed = max(elapsed, min(late, at.Boot-r.since))
	}
	if elapsed < 0 {
		return r
	}
	return run{started: true, before: elapsed, since: at.Boot, bootID: at.BootID}
}
