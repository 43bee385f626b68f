package etcd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	fleet   = 1000
	mostInS = fleet / 5 // of one fleet's requests in a second
	tryFor  = retryEvery * maxTries
)

// attempts are the moments at which a fleet reaches for etcd that has lost it
// together, and gets it back after an outage, by an injected clock and chance.
func attempts(outage time.Duration, chance *rand.Rand) []time.Duration {
	o := Options{Spread: FleetSpread, Rand: chance.Float64}
	var out []time.Duration
	for range fleet {
		at, failures := time.Duration(0), 0
		for {
			at += o.wait(failures)
			out = append(out, at)
			if at >= outage {
				break
			}
			at += tryFor
			failures++
		}
	}
	slices.Sort(out)
	return out
}

// densest is the most that lies within one second, wherever it begins.
func densest(sorted []time.Duration) int {
	most, first := 0, 0
	for i, at := range sorted {
		for at-sorted[first] >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestAFleetNeverComesBackInOneSecondHoweverLongTheOutage(t *testing.T) {
	for _, outage := range []time.Duration{
		0, 100 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second, 8 * time.Second, 9 * time.Second,
		14 * time.Second, 25 * time.Second, time.Minute, 10 * time.Minute,
	} {
		t.Run(fmt.Sprint(outage), func(t *testing.T) {
			for seed := range uint64(20) {
				all := attempts(outage, rand.New(rand.NewPCG(seed, 1)))
				if most := densest(all); most > mostInS {
					t.Errorf("seed %d: %d of %d in one second, at most %d", seed, most, fleet, mostInS)
				}
				if last := all[len(all)-1]; last > outage+15*time.Second+tryFor {
					t.Errorf("seed %d: the last host is back %s after the outage", seed, last-outage)
				}
			}
		})
	}
}

func TestAReaderAloneComesBackAtOnce(t *testing.T) {
	o := Options{Rand: func() float64 { return 0.5 }}
	for failures, want := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second} {
		if got := o.wait(failures); got != want {
			t.Errorf("after %d failures it waits %s, want %s", failures, got, want)
		}
	}
}

func TestWhoWaitsForHisTurnMakesNoConnection(t *testing.T) {
	for _, c := range []struct {
		spread time.Duration
		held   bool
	}{{FleetSpread, true}, {0, false}} {
		carrier := Carrier{opts: Options{Spread: c.spread}}
		carrier.hold(true)
		conn, err := carrier.dial(t.Context(), "127.0.0.1:0")
		if conn != nil || (err == errHeld) != c.held {
			t.Errorf("spread %s: %v", c.spread, err)
		}
		carrier.hold(false)
		if _, err := carrier.dial(t.Context(), "127.0.0.1:0"); err == errHeld {
			t.Errorf("spread %s: its turn has come, and it is held back", c.spread)
		}
	}
}
