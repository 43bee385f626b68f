package overload_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/degradedmode/ic/host/metrics"
	"github.com/degradedmode/ic/host/overload"
)

// the limits of a service with a database.
var limits = []overload.Limit{
	{Signal: "p95", Degraded: overload.Band{Enter: 800, Leave: 500}, Severe: overload.Band{Enter: 2000, Leave: 1200}},
	{Signal: "pool", Severe: overload.Band{Enter: 0.9, Leave: 0.7}},
}

type bench struct {
	*overload.Detector
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T, change func(*overload.Config)) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)}
	cfg := overload.Config{Name: "checkout", Limits: limits, Now: func() time.Time { return b.now }}
	if change != nil {
		change(&cfg)
	}
	var err error
	if b.Detector, err = overload.New(cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func at(p95, pool float64) map[string]float64 { return map[string]float64{"p95": p95, "pool": pool} }

// reads one reading every ten seconds for a time, the first one at once.
func (b *bench) reads(readings map[string]float64, d time.Duration) overload.Mode {
	mode := b.Update(readings)
	for until := b.now.Add(d); b.now.Before(until); {
		b.now = b.now.Add(10 * time.Second)
		mode = b.Update(readings)
	}
	return mode
}

func (b *bench) want(what string, got, want overload.Mode) {
	b.t.Helper()
	if got != want || b.Mode() != want || b.State().Mode != want {
		b.t.Errorf("%s: %s (%s), want %s", what, got, b.Mode(), want)
	}
}

func TestItGoesUpWithTheFirstReadingAndSaysWhy(t *testing.T) {
	for _, c := range []struct {
		readings map[string]float64
		want     overload.Mode
		signal   string
	}{
		{at(800, 0.9), overload.Normal, ""},
		{at(801, 0), overload.Degraded, "p95"},
		{at(0, 0.91), overload.Severe, "pool"},
		{at(2001, 0), overload.Severe, "p95"},
		{at(900, 0.95), overload.Severe, "pool"},
	} {
		b := newBench(t, nil)
		b.want(fmt.Sprint(c.readings), b.Update(c.readings), c.want)
		if s := b.State(); s.Signal != c.signal || !s.Since.Equal(b.now) || s.Value != c.readings[c.signal] {
			t.Errorf("%v: state %+v", c.readings, s)
		}
	}
}

func TestItComesDownOneModeAtATimeAfterTheWholeWindow(t *testing.T) {
	b := newBench(t, nil)
	b.want("severe", b.Update(at(3000, 0.5)), overload.Severe)
	b.now = b.now.Add(10 * time.Second)
	b.want("low for nearly ten minutes", b.reads(at(100, 0.1), 10*time.Minute-10*time.Second), overload.Severe)
	b.want("low for ten minutes", b.reads(at(100, 0.1), 10*time.Second), overload.Degraded)
	b.now = b.now.Add(10 * time.Second)
	b.want("nearly ten more", b.reads(at(100, 0.1), 10*time.Minute-10*time.Second), overload.Degraded)
	b.want("ten more", b.reads(at(100, 0.1), 10*time.Second), overload.Normal)
	if s := b.State(); s.Signal != "" {
		t.Errorf("on the way down it says %+v", s)
	}
}

func TestBetweenTheThresholdsTheModeStays(t *testing.T) {
	b := newBench(t, nil)
	b.Update(at(900, 0.1))
	b.want("degraded, then between 500 and 800", b.reads(at(500, 0.1), time.Hour), overload.Degraded)
	b = newBench(t, nil)
	b.Update(at(2500, 0.1))
	b.want("severe, then between 1200 and 2000", b.reads(at(1200, 0.1), time.Hour), overload.Severe)
	b.want("severe, then below 1200", b.reads(at(1199, 0.1), 10*time.Minute), overload.Degraded)
	b.want("and it stays there", b.reads(at(1199, 0.1), time.Hour), overload.Degraded)
	b = newBench(t, nil)
	b.Update(at(0, 0.95))
	b.want("a signal that is only ever severe", b.reads(at(0, 0.1), 10*time.Minute), overload.Degraded)
	b.want("is between its thresholds", b.reads(at(0, 0.8), time.Hour), overload.Degraded)
}

func TestOneHighReadingBeginsTheWindowAnew(t *testing.T) {
	b := newBench(t, nil)
	b.Update(at(900, 0.1))
	b.reads(at(100, 0.1), 9*time.Minute)
	b.reads(at(501, 0.1), 10*time.Second)
	b.want("nine minutes after it", b.reads(at(100, 0.1), 9*time.Minute), overload.Degraded)
	b.want("ten minutes after it", b.reads(at(100, 0.1), time.Minute), overload.Normal)
}

func TestWhatIsNotKnownEntersNothingAndLeavesNothing(t *testing.T) {
	for name, blind := range map[string]map[string]float64{
		"nothing at all": nil, "no pool": {"p95": 1}, "no p95": {"pool": 0.1}, "NaN": at(math.NaN(), 0.1),
		"infinite": at(math.Inf(1), 0.1), "below all numbers": at(math.Inf(-1), 0.1),
	} {
		b := newBench(t, nil)
		b.want(name+", from normal", b.reads(blind, time.Hour), overload.Normal)
		b.Update(at(900, 0.1))
		b.want(name+", from degraded", b.reads(blind, time.Hour), overload.Degraded)
	}
}

func TestAGapInTheReadingsIsNoEvidence(t *testing.T) {
	b := newBench(t, nil)
	b.Update(at(900, 0.1))
	b.reads(at(100, 0.1), 5*time.Minute)
	b.now = b.now.Add(time.Hour)
	b.want("the first reading after an hour", b.Update(at(100, 0.1)), overload.Degraded)
	b.want("ten minutes after it", b.reads(at(100, 0.1), 10*time.Minute), overload.Normal)
}

func TestAPeakCanBeAskedToLast(t *testing.T) {
	b := newBench(t, func(cfg *overload.Config) { cfg.EnterAfter = 2 * time.Minute })
	b.want("nearly two minutes", b.reads(at(900, 0.1), 110*time.Second), overload.Normal)
	b.reads(at(100, 0.1), 10*time.Second)
	b.want("nearly two minutes again", b.reads(at(900, 0.1), 110*time.Second), overload.Normal)
	b.want("two minutes", b.reads(at(900, 0.1), 10*time.Second), overload.Degraded)
}

// A load that swings by itself every 90 s moved a ladder 20 times in 15 minutes;
// here it moves once.
func TestALoadThatSwingsDoesNotMakeItSwing(t *testing.T) {
	b := newBench(t, nil)
	moves, before := 0, b.Mode()
	for range 10 {
		for _, p95 := range []float64{950, 200} {
			if mode := b.reads(at(p95, 0.2), 45*time.Second); mode != before {
				moves, before = moves+1, mode
			}
		}
	}
	if moves != 1 {
		t.Errorf("%d moves", moves)
	}
}

// Whatever the readings, it never comes down by more than one mode nor sooner than
// LeaveAfter after the last reading that was not low.
func TestItNeverComesDownFast(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b := newBench(t, func(cfg *overload.Config) { cfg.LeaveAfter = 2 * time.Minute })
		var lastBad, lastMove time.Time
		down := 0
		level := 0.0
		for range 300 {
			b.now = b.now.Add(10 * time.Second)
			if random.IntN(15) == 0 {
				level = float64(random.IntN(3)) * 1100
			}
			before := b.Mode()
			mode := b.Update(at(level, 0.1))
			if level >= 500 && before == overload.Degraded || level >= 1200 && before == overload.Severe {
				lastBad = b.now
			}
			if mode < before {
				down++
				if before-mode != 1 || b.now.Sub(lastBad) < 2*time.Minute || b.now.Sub(lastMove) < 2*time.Minute {
					t.Fatalf("from %s to %s, %s after the last high reading, %s after the last move", before, mode, b.now.Sub(lastBad), b.now.Sub(lastMove))
				}
			}
			if mode != before {
				lastMove = b.now
			}
		}
		if level == 0 && down == 0 && b.Mode() != overload.Normal && b.now.Sub(lastBad) > 10*time.Minute {
			t.Fatal("it never comes down")
		}
	}
}

func TestLimitsThatCannotWorkAreRefused(t *testing.T) {
	band := func(enter, leave float64) overload.Band { return overload.Band{Enter: enter, Leave: leave} }
	for name, cfg := range map[string]overload.Config{
		"no name":           {Limits: limits},
		"no limits":         {Name: "x"},
		"no signal":         {Name: "x", Limits: []overload.Limit{{Degraded: band(2, 1)}}},
		"no band":           {Name: "x", Limits: []overload.Limit{{Signal: "a"}}},
		"out above in":      {Name: "x", Limits: []overload.Limit{{Signal: "a", Degraded: band(1, 2)}}},
		"out at in":         {Name: "x", Limits: []overload.Limit{{Signal: "a", Severe: band(1, 1)}}},
		"NaN":               {Name: "x", Limits: []overload.Limit{{Signal: "a", Severe: band(math.NaN(), 1)}}},
		"severe below":      {Name: "x", Limits: []overload.Limit{{Signal: "a", Degraded: band(2, 1), Severe: band(2, 1)}}},
		"twice":             {Name: "x", Limits: []overload.Limit{{Signal: "a", Degraded: band(2, 1)}, {Signal: "a", Severe: band(2, 1)}}},
		"a time below zero": {Name: "x", Limits: limits, LeaveAfter: -1},
	} {
		if _, err := overload.New(cfg); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestItSaysHowItStands(t *testing.T) {
	b := newBench(t, nil)
	var before, after bytes.Buffer
	_ = metrics.Write(&before, b)
	b.Update(at(900, 0.1))
	b.now = b.now.Add(3 * time.Second)
	_ = metrics.Write(&after, b)
	if strings.Contains(before.String(), "ic_overload_last_reading_seconds{") {
		t.Errorf("a reading has an age before there was one:\n%s", &before)
	}
	for _, line := range []string{`ic_overload_mode{detector="checkout"} 1`, `ic_overload_moves_total{detector="checkout",mode="DEGRADED"} 1`,
		`ic_overload_moves_total{detector="checkout",mode="SEVERE"} 0`, `ic_overload_last_reading_seconds{detector="checkout"} 3`} {
		if !strings.Contains(after.String(), line+"\n") {
			t.Errorf("%s is missing in\n%s", line, &after)
		}
	}
}

func TestItIsAskedAndFedAtTheSameTime(t *testing.T) {
	d, err := overload.New(overload.Config{Name: "x", Limits: limits, LeaveAfter: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for j := range 300 {
				d.Update(at(float64((i+j)%3)*1100, 0.1))
				if m := d.Mode(); m < overload.Normal || m > overload.Severe {
					t.Errorf("mode %d", m)
				}
				d.State()
				d.Metrics()
			}
		})
	}
	wait.Wait()
	if d.Update(at(3000, 0)) != overload.Severe || d.Mode() != overload.Severe {
		t.Error("after all that it does not go up any more")
	}
}

func BenchmarkMode(b *testing.B) {
	d, err := overload.New(overload.Config{Name: "x", Limits: limits})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Mode()
	}
}

func BenchmarkUpdate(b *testing.B) {
	d, err := overload.New(overload.Config{Name: "x", Limits: limits})
	if err != nil {
		b.Fatal(err)
	}
	readings := at(900, 0.1)
	b.ReportAllocs()
	for b.Loop() {
		d.Update(readings)
	}
}

func ExampleDetector() {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	d, err := overload.New(overload.Config{
		Name: "checkout", Now: func() time.Time { return now },
		Limits: []overload.Limit{{Signal: "db-pool", Degraded: overload.Band{Enter: 0.8, Leave: 0.6}, Severe: overload.Band{Enter: 0.9, Leave: 0.7}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Update(map[string]float64{"db-pool": 0.95}), "by", d.State().Signal)
	for range 60 { // ten minutes of little load
		now = now.Add(10 * time.Second)
		d.Update(map[string]float64{"db-pool": 0.2})
	}
	fmt.Println(d.Mode())
	now = now.Add(10 * time.Second)
	fmt.Println(d.Update(map[string]float64{"db-pool": 0.2}))
	// Output:
	// SEVERE by db-pool
	// SEVERE
	// DEGRADED
}
