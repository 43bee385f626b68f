package scenario

import (
	"time"

	"github.com/degradedmode/ic/internal/drill/kernel"
)

// A person's reaction differs from time to time by at most a fifth, to either side,
// so that the median over many seeds is what the scenario says.
const (
	quickest = 800_000 // ppm
	slowest  = 1_200_000
)

// keyEvery is how long one character of a confirmation takes to type.
const keyEvery = 250 * time.Millisecond

// member is a person of the drill. The draws come from a stream of his own, so that
// the same person is as quick with ic as without: the n-th reaction of a seed is the
// same in every mode.
type member struct {
	Person
	draws *kernel.Stream
	free  time.Duration // when he was done with what he did last
	acted bool
}

func newCast(s *Scenario, seed uint64) map[string]*member {
	out := make(map[string]*member, len(s.People))
	for _, p := range s.People {
		out[p.Name] = &member{Person: p, draws: kernel.NewStream(seed, "reactions/"+p.Name)}
	}
	return out
}

// react is how long he takes from a cue to an act.
func (m *member) react() time.Duration { return m.about(m.Reacts) }

// act is how long he takes from one step to the next.
func (m *member) act() time.Duration { return m.about(m.Acts) }

func (m *member) about(d time.Duration) time.Duration {
	ppm := m.draws.Between(quickest, slowest)
	return time.Duration(d.Milliseconds()*ppm/1_000_000) * time.Millisecond
}
