package drill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/directive"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/engine"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"github.com/degradedmode/ic/internal/policy/templates"
)

// plant breaks one world on purpose.
type plant struct {
	begin, end func(*swarm)
	hosts      func(*swarm, []witness) []witness // in place of what the world shows
	relapse    bool                              // people do again what they do not know to be done
}

// changeling is a host in the place of checkout-1 that hears everything that is
// signed, and is not as it should be.
type changeling struct {
	bundle func(*law) *policy.Bundle // what it judges by; nil: what everybody judges by
	stops  time.Duration             // when its clocks stop; 0: never
	loses  time.Duration             // when it loses its folder and hears nothing any more; 0: never
	engine *engine.Engine
	lost   bool
}

// stopped is a clock that shows one moment for ever and says that it is right.
type stopped struct{ at model.Instant }

// Now implements model.Clock.
func (c stopped) Now() model.Instant { return c.at }

func (c *changeling) hosts(s *swarm, of []witness) []witness {
	for i := range of {
		if of[i].host == "checkout-1" {
			c.stand(s, &of[i])
		}
	}
	return of
}

func (c *changeling) stand(s *swarm, h *witness) {
	since := s.w.Kernel().Since()
	h.clock = s.clock
	if c.stops > 0 && since >= c.stops {
		h.clock = stopped{s.frozen(h.clock)}
	}
	if c.engine == nil || c.loses > 0 && since >= c.loses && !c.lost {
		c.lost = c.engine != nil
		c.open(s, h)
	}
	if !c.lost {
		c.engine.OfferAll("signed", s.w.Tokens(), h.clock.Now())
	}
	h.engine, h.paused = c.engine, false
}

func (c *changeling) open(s *swarm, h *witness) {
	bundle := s.law.bundle
	if c.bundle != nil {
		bundle = c.bundle(s.law)
	}
	e, _, err := engine.Open(engine.Config{
		Fleet: sim.Fleet, Host: h.host, Services: []string{h.service}, Realm: directive.Drill, Bundle: bundle,
		Folder: engine.NewMemory(), Rand: kernel.NewStream(s.seed, "changeling"),
	}, h.clock.Now())
	if err != nil {
		s.fail("the changeling does not start: %v", err)
	}
	c.engine = e
}

// lax is a policy that nobody has signed: larger orders may pass, and authorization
// is a control like any other.
func lax(dir string) (*policy.Bundle, error) {
	l, err := enact(dir, func(docs *policy.Documents) {
		payments := docs.Controls[templates.PaymentsDomain]
		small := payments.Rights["risk-bypass-small-orders"]
		most := *small.Bypass
		most.Under.Minor, most.HostCount = 1000_00, 1_000_000
		small.Bypass = &most
		payments.Rights["risk-bypass-small-orders"] = small

		access := docs.Controls[accessDomain]
		check := access.Controls[accessCheck]
		check.Protects = policy.ProtectsMoney
		access.Controls[accessCheck] = check
		opens, door := small, most
		door.Control = accessCheck
		opens.Bypass, opens.Scope = &door, []string{shop.Checkout}
		access.Rights = map[string]policy.Right{"open-doors": opens}
	})
	if err != nil {
		return nil, err
	}
	return l.bundle, nil
}

// say has something signed with the commander's key at a moment of the world, by
// nobody's console.
func (s *swarm) say(at time.Duration, make func(now time.Time) model.Directive) {
	s.w.Kernel().At(s.start.Add(at), func() {
		d := make(s.w.Kernel().Now())
		token, err := s.law.sign(d, templates.Ines)
		if err != nil {
			s.fail("sign: %v", err)
			return
		}
		_ = s.w.Put(d.ID, token) // the flag service may be down; it has been said
	})
}

// Every promise has a world that breaks it, and the swarm says so.
func TestSwarmNotices(t *testing.T) {
	loose, err := lax(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bent := func(*law) *policy.Bundle { return loose }
	for _, c := range []struct {
		name, says string
		plant      func() plant
	}{
		{"a host that permits more than its policy", "policy: checkout-1 obeys", func() plant {
			return plant{hosts: (&changeling{bundle: bent}).hosts, begin: func(s *swarm) {
				s.say(2*time.Minute, func(now time.Time) model.Directive {
					d := s.bypassBy(now)
					d.Caps.Under.Minor = 500_00
					return d
				})
			}}
		}},
		{"an order that no grant covers", "policy: checkout-2 let an order", func() plant {
			return plant{begin: func(s *swarm) {
				s.w.Kernel().At(s.start.Add(time.Minute), func() {
					s.w.Kernel().Log("shop", "order", kernel.Word("host", "checkout-2"), kernel.Int("cents", 300_00), kernel.Word("outcome", shop.Unscored))
				})
			}}
		}},
		{"a bypass that a clock never ends", "end: checkout-1 lets", func() plant {
			return plant{hosts: (&changeling{stops: 150 * time.Second}).hosts, begin: func(s *swarm) { s.say(2*time.Minute, s.bypassBy) }}
		}},
		{"authorization that opens", "authorization: checkout-1", func() plant {
			return plant{hosts: (&changeling{bundle: bent}).hosts, begin: func(s *swarm) {
				s.say(2*time.Minute, func(now time.Time) model.Directive {
					d := s.bypassBy(now)
					d.Right, d.Control = "open-doors", accessCheck
					return d
				})
			}}
		}},
		{"a shed that a host forgets", "shed: checkout-1 has lost", func() plant {
			return plant{hosts: (&changeling{loses: 4 * time.Minute}).hosts, begin: func(s *swarm) {
				s.say(2*time.Minute, func(now time.Time) model.Directive { return s.shedBy(now, 2) })
			}}
		}},
		{"two steps in one window", "step: ", func() plant { return plant{begin: func(s *swarm) { s.descend(0, 25*time.Second, 5*time.Second) }} }},
		{"a step before the dwell is over", "step: ", func() plant { return plant{begin: func(s *swarm) { s.descend(0, -20*time.Second, time.Minute) }} }},
		{"a step before a shed that came late has held", "step: ", func() plant {
			return plant{begin: func(s *swarm) { s.descend(40*time.Second, -20*time.Second, time.Minute) }}
		}},
		{"a step after one that no host has", "which no host has had", func() plant {
			return plant{hosts: deaf, begin: func(s *swarm) { s.descend(0, 25*time.Second, time.Minute) }}
		}},
		{"a statement that no log knows", "log: ", func() plant {
			return plant{begin: func(s *swarm) {
				s.say(time.Minute, func(now time.Time) model.Directive {
					d := s.shedBy(now, 1)
					d.Reason = "in nobody's log"
					return d
				})
			}}
		}},
		{"a byte of a log that was changed", "log: ", func() plant { return plant{end: func(s *swarm) { s.damage(flip) }} }},
		{"a log whose end was cut off", "log: ", func() plant { return plant{end: func(s *swarm) { s.damage(cut) }} }},
		{"a push that was made twice", "unknown: ", func() plant {
			return plant{end: func(s *swarm) {
				for range 100 { // more than anybody has meant
					s.w.Kernel().Log("pipeline", "push", kernel.Word("owner", "ic"))
				}
			}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := enact(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for seed := uint64(1); seed <= plantSeeds; seed++ {
				s := live(t, l, seed, c.plant())
				if s != nil && !strings.Contains(s.wrong, c.says) {
					t.Errorf("seed %d: the swarm says %q", seed, s.wrong)
				}
			}
		})
	}
}

// Not every night has somebody who asks twice.
func TestSwarmNoticesAnActThatIsDoneTwice(t *testing.T) {
	l, err := enact(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for seed := uint64(1); seed <= 12 && said == ""; seed++ {
		if s := live(t, l, seed, plant{relapse: true}); s != nil {
			said = s.wrong
		}
	}
	if !strings.Contains(said, "was done twice") {
		t.Errorf("the swarm says %q", said)
	}
}

// descend signs a shed and two steps down from it. late is how long ago the shed was
// to begin when the first host hears of it, early how long after the dwell the first
// step comes, pause how long after it the second.
func (s *swarm) descend(late, early, pause time.Duration) {
	s.sky = s.sky[:1] // good weather
	const at = 2 * time.Minute
	var chain []string
	shed := func(now time.Time) model.Directive {
		d := s.shedBy(now.Add(-late), 3)
		chain = append(chain, d.ID)
		return d
	}
	down := func(percent int) func(now time.Time) model.Directive {
		return func(now time.Time) model.Directive {
			d := s.common(now)
			d.Kind, d.Ends, d.Right, d.Scope, d.From, d.To = model.End, model.Shed, "recover", "*", 3, 2
			d.Ramp, d.Percent, d.IDs = chain[0], percent, append([]string{}, chain...)
			chain = append(chain, d.ID)
			return d
		}
	}
	dwell := swarmPace().Dwell.Std()
	s.say(at, shed)
	s.say(at+dwell+early, down(10))
	s.say(at+dwell+early+pause, down(50))
}

// deaf shows hosts that have heard of nothing, as if every process were down.
func deaf(_ *swarm, of []witness) []witness {
	for i := range of {
		of[i].engine = nil
	}
	return of
}

// damage changes the longest of the logs.
func (s *swarm) damage(how func([]byte) []byte) {
	var longest string
	var size int64
	for _, folder := range s.incidents() {
		files, _ := filepath.Glob(filepath.Join(folder, "*.jsonl"))
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Size() > size {
				longest, size = file, info.Size()
			}
		}
	}
	raw, err := os.ReadFile(longest)
	if err != nil {
		s.fail("there is no log to damage: %v", err)
		return
	}
	if err := os.WriteFile(longest, how(raw), 0o600); err != nil {
		s.fail("damage a log: %v", err)
	}
}

func flip(raw []byte) []byte {
	raw[len(raw)/2] ^= 1
	return raw
}

// cut takes records off the end, as whoever would have something not to have happened.
func cut(raw []byte) []byte {
	lines := strings.SplitAfter(string(raw), "\n")
	return []byte(strings.Join(lines[:4], "")) // the session's beginning: two records
}

// frozen is the moment at which a clock has stopped.
func (s *swarm) frozen(c model.Clock) model.Instant {
	if s.stoppedAt == nil {
		now := c.Now()
		s.stoppedAt = &now
	}
	return *s.stoppedAt
}
