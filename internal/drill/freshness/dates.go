package freshness

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/degradedmode/ic/internal/drill/score"
)

// MaxAhead is how far a run may be dated ahead of now: the clocks of two laptops.
// One beyond it says nothing about what was practised.
const MaxAhead = 5 * time.Minute

// Practice is when something was practised last in simulation, in which scenario,
// and what it did then.
type Practice struct {
	At       time.Time
	Scenario string
	Verdict  score.Verdict
	Played   *score.Played // who acted; nil: the run does not say
	Effect   score.Practised
}

// Dates is the last practice of each thing, by its name in score.Practised. Runs
// dated ahead of now do not count.
func Dates(runs []Run, now time.Time) map[string]Practice {
	out := map[string]Practice{}
	for i := range runs {
		r := &runs[i]
		if r.At.After(now.Add(MaxAhead)) || r.Score.Verdict == score.NotInjected {
			continue
		}
		for _, p := range r.Score.Practised {
			if have, ok := out[p.What]; !ok || !r.At.Before(have.At) {
				out[p.What] = Practice{At: r.At, Scenario: r.Score.Scenario, Verdict: r.Score.Verdict, Played: r.Score.Played, Effect: p}
			}
		}
	}
	return out
}

// Follow returns the simulated dates of a state folder by name, read again
// whenever a run was added. What cannot be read is as if it were not there: ic
// report says so, and a console has better things to say.
func Follow(state string, now func() time.Time) func() map[string]time.Time {
	var (
		mu    sync.Mutex
		seen  time.Time
		dates map[string]time.Time
	)
	return func() map[string]time.Time {
		mu.Lock()
		defer mu.Unlock()
		info, err := os.Stat(filepath.Join(state, Folder))
		if err != nil || info.ModTime().Equal(seen) {
			return dates
		}
		runs, err := Read(state)
		if err != nil && len(runs) == 0 {
			return dates
		}
		seen, dates = info.ModTime(), map[string]time.Time{}
		for name, p := range Dates(runs, now()) {
			dates[name] = p.At
		}
		return dates
	}
}
