package hostclock

import (
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

func TestTheClockGoesForwardAndNamesItsBoot(t *testing.T) {
	c := New(Trust)
	first := c.Now()
	second := c.Now()
	if second.Boot < first.Boot || first.Boot <= 0 {
		t.Errorf("time since boot went from %s to %s", first.Boot, second.Boot)
	}
	if first.BootID == "" || first.BootID != second.BootID {
		t.Errorf("the boot is named %q and %q", first.BootID, second.BootID)
	}
	if d := time.Since(first.Wall); d < 0 || d > time.Minute {
		t.Errorf("wall time is %s off", d)
	}
}

func TestTrustNeverReportsAnUnsynchronisedClock(t *testing.T) {
	if s := New(Trust).Now().State; s == model.ClockUnsynced {
		t.Errorf("state %s", s)
	}
	if require, trust := New(Require).Now().State, New(Trust).Now().State; require != trust && require != model.ClockUnsynced {
		t.Errorf("require says %s, trust says %s", require, trust)
	}
}

// machine is a kernel whose clocks are moved by hand.
type machine struct {
	wall  time.Time
	boot  time.Duration
	slow  time.Duration // how long it takes to say what it knows
	state model.ClockState
	asked int
}

func (m *machine) pass(d time.Duration) { m.wall, m.boot = m.wall.Add(d), m.boot+d }

func (m *machine) clock() *Clock {
	return &Clock{boot: "b", sync: Require, now: func() time.Time { return m.wall }, kernel: func() (time.Duration, model.ClockState) {
		m.asked++
		boot := m.boot
		m.pass(m.slow)
		return boot, m.state
	}}
}

func TestTheKernelIsAskedEveryTenMillisecondsAndWhenAClockJumps(t *testing.T) {
	m := &machine{wall: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), boot: time.Hour, state: model.ClockOK}
	c := m.clock()
	for _, step := range []struct {
		what  string
		do    func()
		asked int
	}{
		{"at first", func() {}, 1},
		{"at once", func() {}, 1},
		{"9 ms later", func() { m.pass(9 * time.Millisecond) }, 1},
		{"10 ms later", func() { m.pass(time.Millisecond) }, 2},
		{"after a sleep", func() { m.pass(time.Hour) }, 3},
		{"a wall clock set back", func() { m.wall = m.wall.Add(-time.Hour) }, 4},
		{"a clock that lost its time server", func() { m.state = model.ClockUnsynced; m.pass(10 * time.Millisecond) }, 5},
	} {
		step.do()
		got := c.Now()
		if m.asked != step.asked || got.Boot != m.boot || !got.Wall.Equal(m.wall) || got.State != m.state {
			t.Errorf("%s: asked %d times, want %d; %+v, want %s and %s", step.what, m.asked, step.asked, got, m.wall, m.boot)
		}
	}
}

func TestAReadingThatTookLongIsNotCarriedOn(t *testing.T) {
	m := &machine{wall: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), slow: 5 * time.Millisecond, state: model.ClockOK}
	c := m.clock()
	c.Now()
	m.slow = 0
	if got := c.Now(); m.asked != 2 || got.Boot != m.boot {
		t.Errorf("asked %d times, boot %s, want %s", m.asked, got.Boot, m.boot)
	}
}

func BenchmarkNow(b *testing.B) {
	c := New(Trust)
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}
