package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/engine"
)

// promised is one host in true time, which no host knows: its own clocks are right,
// wrong, set, stopped and started anew, and its issuers' are right. What it owes is
// worked out from true time and the error of its wall clock alone.
//
// The promise: a bypass is never in force later than its not_after plus
//   - what the wall clock was behind true time at its first accept or, in a later
//     boot, at the last start of the process: no clock runs on through a reboot; and
//   - the time since then in which both clocks of the host stood still, as under a
//     hypervisor that stops a machine: nothing on the host can count that.
//
// Nothing else makes it later: no step of the clock, no pause, no restart, no late
// delivery. See "What ends a bypass" in docs/host-state.md.
type promised struct {
	*host
	random *rand.Rand
	truth  time.Time
	stood  time.Duration // in which both clocks stood still
	story  []string
	grants []*owed
	later  []delivery
	tally  map[string]int
}

// owed is one bypass and what is known of it in true time.
type owed struct {
	id       string
	from, to time.Time
	behind   time.Duration // of the wall clock, at the moment that counts
	stood    time.Duration // before that moment
	boot     string        // of the first accept; "" until then
	seen     bool          // was in force
	stepped  bool          // the clock was set while it was
}

// delivery is a token under way.
type delivery struct {
	at    time.Time
	token string
	grant *owed // nil: another statement, which proves the time of its issue
}

func newPromised(t *testing.T, seed uint64) *promised {
	p := &promised{host: newHost(t), random: rand.New(rand.NewPCG(seed, 0)), truth: start, tally: map[string]int{}}
	for range 1 + p.random.IntN(2) {
		p.issue(p.upTo(6 * time.Minute))
	}
	return p
}

func (p *promised) upTo(most time.Duration) time.Duration {
	return time.Duration(p.random.Int64N(int64(most/time.Second))+1) * time.Second
}

// issue signs a bypass at a time to come and sends it on a way that may be long.
func (p *promised) issue(in time.Duration) {
	at := p.truth.Add(in)
	d := open(10*time.Minute, at)
	if p.random.IntN(2) == 0 {
		d = led(at)
	}
	g := &owed{id: p.ids.next(), from: d.NotBefore, to: d.NotAfter}
	if g.from.IsZero() {
		g.from = at
	}
	p.grants = append(p.grants, g)
	token := sign(p.t, draft(g.id, d, at), "ada")
	p.later = append(p.later, delivery{at.Add(p.upTo(8 * time.Minute)), token, g})
}

// owes is when a bypass has to be over at the latest.
func (p *promised) owes(g *owed) time.Time { return g.to.Add(g.behind + p.stood - g.stood) }

// behind is by how much the wall clock is late.
func (p *promised) behind() time.Duration { return max(0, p.truth.Sub(p.clock.now.Wall)) }

func (p *promised) tell(what string, d time.Duration) {
	p.tally[what]++
	p.story = append(p.story, fmt.Sprintf("%s %s %s (clock %+.0f s)", p.truth.Format("15:04:05"), what, d, -p.truth.Sub(p.clock.now.Wall).Seconds()))
}

// look compares what is in force with what is owed.
func (p *promised) look() {
	standing := p.Standing(p.clock.now)
	for _, g := range p.grants {
		if !slices.ContainsFunc(standing, func(s engine.Standing) bool { return s.Directive.ID == g.id }) {
			continue
		}
		g.seen = true
		if p.truth.After(g.to) {
			p.tally["late, as far as it may"]++
		}
		if !p.truth.Before(p.owes(g)) {
			p.t.Fatalf("%s: a bypass of %s to %s is in force, it had to be over at %s\n%s", p.truth.Format("15:04:05"),
				g.from.Format("15:04:05"), g.to.Format("15:04:05"), p.owes(g).Format("15:04:05"), strings.Join(p.story, "\n"))
		}
	}
	if len(standing) == 0 && p.IsOpen("risk", "checkout", p.clock.now) {
		p.t.Fatal("it is open, and nothing is in force")
	}
}

// pass lets time go by on all clocks. It looks at each moment at which a bypass has
// to be over, and a second before.
func (p *promised) pass(d time.Duration, awake bool) {
	end := p.truth.Add(d)
	for {
		next := end
		for _, g := range p.grants {
			for _, at := range []time.Time{p.owes(g).Add(-time.Second), p.owes(g)} {
				if at.After(p.truth) && at.Before(next) {
					next = at
				}
			}
		}
		p.clock.pass(next.Sub(p.truth))
		p.truth = next
		if awake {
			p.Advance(p.clock.now)
		}
		p.look()
		if next.Equal(end) {
			return
		}
	}
}

// deliver hands over what has arrived by now.
func (p *promised) deliver() {
	for _, one := range p.later {
		if one.at.After(p.truth) {
			continue
		}
		r := p.Offer("test", one.token, p.clock.now)
		if g := one.grant; g != nil && g.boot == "" && r.Code == "" {
			g.boot, g.behind, g.stood = p.clock.now.BootID, p.behind(), p.stood
			p.tell("takes", p.truth.Sub(g.from))
		}
	}
}

// over reports whether nothing of the story is left to come.
func (p *promised) over() bool {
	last := start.Add(20 * time.Minute)
	for _, g := range p.grants {
		if owed := p.owes(g); owed.After(last) {
			last = owed
		}
	}
	return p.truth.After(last.Add(5 * time.Minute))
}

// restarted notes that no clock has run on since the first accept.
func (p *promised) restarted() {
	for _, g := range p.grants {
		if g.boot != "" && g.boot != p.clock.now.BootID {
			g.behind, g.stood = p.behind(), p.stood
		}
	}
	p.crash()
}

// set sets the wall clock, by an hour or by what a host takes for right.
func (p *promised) set() {
	by := []time.Duration{time.Hour, -time.Hour, p.upTo(4 * time.Minute), -p.upTo(4 * time.Minute), p.truth.Sub(p.clock.now.Wall)}[p.random.IntN(5)]
	p.clock.set(by)
	p.tell("sets its clock by", by)
	for _, g := range p.grants {
		g.stepped = g.stepped || g.seen && p.truth.Before(g.to)
	}
}

// happen is one thing that may happen to a host.
func (p *promised) happen() {
	switch what := p.random.IntN(12); {
	case what < 5:
		d := p.upTo(90 * time.Second)
		p.tell("runs for", d)
		p.pass(d, true)
	case what == 5: // SIGSTOP, or suspend: the clocks go on and nobody looks
		d := p.upTo(12 * time.Minute)
		p.tell("is paused for", d)
		p.pass(d, false)
	case what == 6: // a machine that is stopped from outside
		d := p.upTo(2 * time.Minute)
		p.tell("stands still for", d)
		p.truth, p.stood = p.truth.Add(d), p.stood+d
	case what == 7:
		p.tell("is killed and restarts after", 0)
		p.restarted()
	case what == 8:
		d := p.upTo(4 * time.Minute)
		p.tell("reboots in", d)
		p.clock.reboot(d)
		p.truth = p.truth.Add(d)
		if p.random.IntN(3) == 0 {
			p.set()
		}
		p.restarted()
	case what == 9: // what else is said in an incident
		at := p.truth
		token := sign(p.t, draft(p.ids.next(), shed(1), at), "bea")
		p.later = append(p.later, delivery{at.Add(p.upTo(5 * time.Minute)), token, nil})
	default:
		p.set()
	}
	p.deliver()
	p.look()
}

// TestABypassIsLateByAtMostTheClockErrorAtItsFirstAccept tells 200 stories of steps
// of +-1 h and of less, pauses, kills and reboots, and with IC_SWEEP 8,000. A seed
// alone repeats its story.
func TestABypassIsLateByAtMostTheClockErrorAtItsFirstAccept(t *testing.T) {
	seeds, runs, tally := 200, 0, map[string]int{}
	first, step := swept(t, 1)
	if os.Getenv("IC_SWEEP") != "" {
		seeds = 8000
	}
	for seed := first; seed < seeds; seed += step {
		runs++
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			p := newPromised(t, uint64(seed))
			for !p.over() {
				p.happen()
			}
			for _, g := range p.grants {
				tally["bypasses"]++
				if g.seen {
					tally["in force"]++
				}
				if g.stepped {
					tally["the clock was set while in force"]++
				}
			}
			for what, n := range p.tally {
				tally[what] += n
			}
			if p.opened.Condition != engine.StateOK {
				t.Errorf("the folder is %s", p.opened.Condition)
			}
		})
	}
	t.Logf("%d stories: %v", runs, tally)
	for what, least := range map[string]int{
		"in force": runs / 2, "the clock was set while in force": runs / 4, "late, as far as it may": runs / 10,
		"reboots in": runs, "is paused for": runs, "stands still for": runs, "sets its clock by": 2 * runs,
	} {
		if tally[what] < least {
			t.Errorf("%q happened %d times, which proves little", what, tally[what])
		}
	}
}

func TestAClockThatIsSetBackAfterTheFirstAcceptGivesNoTime(t *testing.T) {
	for name, c := range map[string]struct {
		late     time.Duration // from the issue of a bypass of 3 to 13 minutes to its first accept
		restarts int           // afterwards, a second apart; the folder keeps two generations
		left     time.Duration // from the first accept to the end
	}{
		"it goes on":                 {8 * time.Minute, 0, 5 * time.Minute},
		"it restarts":                {8 * time.Minute, 1, 5 * time.Minute},
		"it begins later":            {2 * time.Minute, 0, 11 * time.Minute},
		"it begins later, restarted": {2 * time.Minute, 1, 11 * time.Minute},
		"it begins later, again":     {2 * time.Minute, 3, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			_, token := h.make(led(start))
			h.clock.pass(c.late)
			h.offer(token)
			h.clock.set(-c.late) // to the time of its issue, which is all that it proves
			for range c.restarts {
				h.clock.pass(time.Second)
				h.start()
			}
			h.clock.pass(c.left - time.Duration(c.restarts)*time.Second - time.Second)
			h.wantOpen(true)
			h.clock.pass(time.Second)
			h.wantOpen(false)
		})
	}
}
