package drill_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
)

var (
	seeds     = flag.Uint64("seeds", usualSeeds, "how many worlds the swarm lives through")
	firstSeed = flag.Uint64("first", 1, "the seed of the first of them")
)

const (
	swarmHosts   = 8
	mostFailures = 3   // seeds that are told in full
	enough       = 500 // worlds in which everything has to have happened
)

// In every world people, thieves and faults do what they can, and none of it breaks
// what ic promises.
func TestSwarm(t *testing.T) {
	l, err := enact(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var next, failed atomic.Uint64
	seen := &tally{}
	for part := range runtime.GOMAXPROCS(0) {
		t.Run(fmt.Sprintf("part %d", part+1), func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1); i <= *seeds; i = next.Add(1) {
				if failed.Load() >= mostFailures {
					return
				}
				if s := live(t, l, *firstSeed+i-1, plant{}); s != nil && s.wrong != "" {
					failed.Add(1)
					t.Error(s.story())
				} else if s != nil {
					seen.add(&s.counts)
				}
			}
		})
	}
	t.Cleanup(func() {
		t.Log(seen.String())
		if what := seen.missing(); what != "" && *seeds >= enough && failed.Load() == 0 {
			t.Errorf("a swarm with no %s proves little", what)
		}
	})
}

// The worlds in which the swarm has found something, in ic or in its own judge: see
// docs/how-to/run-the-swarm.md.
func TestSwarmSeedsThatFoundSomething(t *testing.T) {
	l, err := enact(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range []uint64{
		3409, 3974, 7612, 8257, 9776, 15586, 23143, 23893, 25037, 29438, 33351, 34208, 34845, 65623, 66508, 74156, 80226,
	} {
		if s := live(t, l, seed, plant{}); s != nil && s.wrong != "" {
			t.Error(s.story())
		}
	}
}

// A seed that has failed is worth something only if it fails again.
func TestASwarmOfOneSeedIsTheSameEachTime(t *testing.T) {
	l, err := enact(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for seed := uint64(3); seed < 3+twiceSeeds; seed++ {
		first, second := live(t, l, seed, plant{}), live(t, l, seed, plant{})
		if first == nil || second == nil {
			continue
		}
		if first.log.sum.Sum64() != second.log.sum.Sum64() || first.truth.signed() != second.truth.signed() || first.counts != second.counts {
			t.Errorf("seed %d: two lives differ:\n%s\n%s", seed, first.truth.signed(), second.truth.signed())
		}
	}
}

// live lets one seed's world live to its end, in a folder of its own.
func live(t *testing.T, l *law, seed uint64, p plant) *swarm {
	t.Helper()
	dir := filepath.Join(t.TempDir(), fmt.Sprint(seed))
	s, err := newSwarm(l, seed, dir, p)
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return nil
	}
	s.run()
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
	return s
}

// story is what a person needs to see it again.
func (s *swarm) story() string {
	return fmt.Sprintf("seed %d: %s\nagain: go test ./internal/drill -run 'TestSwarm$' -seeds 1 -first %d\nwhat was signed:\n%sthe last that happened:\n%s", s.seed, s.wrong, s.seed, s.truth.signed(), s.log.last())
}
