package drill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/drill/faults"
	"github.com/degradedmode/ic/internal/drill/kernel"
	"github.com/degradedmode/ic/internal/drill/shop"
	"github.com/degradedmode/ic/internal/drill/sim"
	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy/templates"
)

const (
	swarmLasts  = 10 * time.Minute // of virtual time
	lookAtWorld = 5 * time.Second  // two checks of every host
	lookAtHosts = 2 * time.Second  // two looks of a desk that waits for hosts
	quietPPM    = 40_000           // load: a few orders a second; the shop is not what is tested
	keptLines   = 40               // of the event log, for a person
)

// swarm is one seed's world and what is known of it that no desk was asked for.
type swarm struct {
	seed      uint64
	w         *sim.World
	dir       string
	law       *law
	rng       *kernel.Stream
	log       *eventLog
	sky       []weather
	plant     plant
	start     time.Time
	clock     *kernel.HostClock // one that is right
	stoppedAt *model.Instant    // of a changeling's clock

	acts   int
	seated []string // people with a desk
	full   []window // when no console could write
	counts counts

	truth *truth
	wrong string // the first promise that was broken
}

func newSwarm(l *law, seed uint64, dir string, p plant) (*swarm, error) {
	s := &swarm{seed: seed, dir: dir, law: l, rng: kernel.NewStream(seed, "swarm"), plant: p, start: sim.DefaultStart()}
	s.log = &eventLog{s: s, sum: fnv.New64a()}
	s.sky = forecast(s.rng, s.start)
	w, err := sim.New(sim.Options{
		Seed: seed, Hosts: swarmHosts, Log: s.log, State: dir, Pace: swarmPace(),
		Apart: s.rng.Below(2) == 0, Controller: s.rng.Below(4) == 0,
		Signed: &sim.Signed{Bundle: l.bundle, Signers: l.signers}, Readings: s.readings, Look: lookAtHosts,
	})
	if err != nil {
		return nil, err
	}
	s.w, s.truth, s.clock = w, newTruth(s), w.Kernel().HostClock("right")
	return s, nil
}

// run lets the world live, checks it all along, and at the end its logs.
func (s *swarm) run() {
	k := s.w.Kernel()
	s.w.SetDemand(quietPPM)
	s.scheduleFaults()
	s.schedulePeople()
	s.scheduleThief()
	if s.plant.begin != nil {
		s.plant.begin(s)
	}
	k.Every(s.start.Add(lookAtWorld), lookAtWorld, s.truth.look)
	for at := s.start; s.wrong == "" && k.Since() < swarmLasts; {
		at = at.Add(lookAtWorld)
		s.w.Advance(at)
	}
	// The logs are read below: what waits for a disk has to find one.
	s.must(s.w.Faults().Clear(context.Background(), faults.ConsoleDiskFull))
	if err := s.w.Close(); err != nil {
		s.fail("the world did not end: %v", err)
	}
	if err := s.w.Err(); err != nil {
		s.fail("the world broke: %v", err)
	}
	if s.wrong == "" {
		if s.plant.end != nil {
			s.plant.end(s)
		}
		s.truth.logs()
	}
}

// fail keeps the first promise that was broken.
func (s *swarm) fail(format string, args ...any) {
	if s.wrong == "" {
		s.wrong = fmt.Sprintf("at %s: ", s.w.Kernel().Since().Truncate(time.Millisecond)) + fmt.Sprintf(format, args...)
	}
}

// at is a random moment of the world.
func (s *swarm) at() time.Time {
	return s.start.Add(time.Duration(s.rng.Between(1, int64(swarmLasts/time.Second)-5)) * time.Second)
}

// scheduleFaults lets things go wrong, and most of them right again.
func (s *swarm) scheduleFaults() {
	names := []string{
		faults.PaymentRiskDown, faults.PaymentRiskDown, faults.CatalogSlow, faults.FlagsPartition, faults.FlagsDown, faults.FlagsSlow, faults.AutoHeal,
		faults.ClockAhead, faults.ClockBehind, faults.HostsPaused, faults.PipelineStuck, faults.PipelineDenied, faults.GitOpsReverts,
		faults.ConsoleDiskFull, faults.CommanderAbsent, faults.ApproverAbsent, faults.LoadSurge,
	}
	if s.rng.Below(2) == 0 { // or there are few orders to let through
		s.w.Kernel().At(s.start.Add(20*time.Second), func() { s.must(s.w.Faults().Inject(context.Background(), faults.PaymentRiskDown)) })
	}
	for range s.rng.Between(2, 7) {
		name, from := names[s.rng.Below(int64(len(names)))], s.at()
		s.w.Kernel().At(from, func() { s.must(s.w.Faults().Inject(context.Background(), name)) })
		until := s.start.Add(swarmLasts)
		if s.rng.Below(4) > 0 {
			until = from.Add(time.Duration(s.rng.Between(5, 240)) * time.Second)
			s.w.Kernel().At(until, func() { s.must(s.w.Faults().Clear(context.Background(), name)) })
		}
		if name == faults.ConsoleDiskFull {
			s.full = append(s.full, window{from, until})
		}
	}
}

type window struct{ from, to time.Time }

// noRoom reports whether the disks were full at some time between two moments.
func (s *swarm) noRoom(from, to time.Time) bool {
	return slices.ContainsFunc(s.full, func(w window) bool { return !to.Before(w.from) && !w.to.Before(from) })
}

func (s *swarm) must(err error) {
	if err != nil {
		s.fail("the world does not do what it is told: %v", err)
	}
}

// weather is what the signals say from a moment on.
type weather struct {
	from  time.Time
	bad   bool
	state model.ReadingState
}

// forecast is the weather of ten minutes and of two before them: mostly good.
func forecast(rng *kernel.Stream, start time.Time) []weather {
	sky := []weather{{from: start.Add(-10 * time.Minute), state: model.ReadingValue}}
	states := []model.ReadingState{model.ReadingNoData, model.ReadingError, model.ReadingPartial, model.ReadingStale}
	for at := start; at.Before(start.Add(swarmLasts)); {
		next := weather{from: at, state: model.ReadingValue}
		switch rng.Below(6) {
		case 0:
			next.bad = true
		case 1:
			next.state = states[rng.Below(int64(len(states)))]
		}
		sky = append(sky, next)
		at = at.Add(time.Duration(rng.Between(10, 150)) * time.Second)
	}
	return sky
}

func (s *swarm) weather(at time.Time) weather {
	now := s.sky[0]
	for _, next := range s.sky {
		if next.from.After(at) {
			break
		}
		now = next
	}
	return now
}

// Values of a signal in good and in bad weather, beyond every threshold of the ladder
// up to tier 3 and short of all.
var signalValues = map[string][2]float64{
	templates.CheckoutP99: {0.2, 3}, templates.CheckoutErrors: {0.1, 10}, templates.CPU: {30, 95}, templates.PaymentRiskUp: {1, 0},
}

const sampleEvery = 5 * time.Second

// readings is what desks are told; a stretch without sight leaves a gap.
func (s *swarm) readings(now time.Time) map[string]model.Reading {
	out := map[string]model.Reading{}
	sky := s.weather(now)
	for name, values := range signalValues {
		r := model.Reading{Signal: name, State: sky.state, Step: model.Duration(sampleEvery)}
		if sky.state != model.ReadingValue {
			r.Detail = "no sight"
			out[name] = r
			continue
		}
		pick := func(w weather) float64 {
			if w.bad {
				return values[1]
			}
			return values[0]
		}
		r.Value, r.At = pick(sky), now
		for at := now.Truncate(sampleEvery).Add(-2 * time.Minute); !at.After(now); at = at.Add(sampleEvery) {
			if then := s.weather(at); then.state == model.ReadingValue {
				r.History = append(r.History, model.Sample{At: at, Value: pick(then)})
			}
		}
		out[name] = r
	}
	return out
}

// calm reports whether the signals were known to be good all along. Samples are five
// seconds apart and three may be missing, so a shorter cloud may go unseen.
func (s *swarm) calm(from, to time.Time) bool {
	cloudy := 0
	for at := from; !at.After(to); at = at.Add(sampleEvery) {
		w := s.weather(at)
		switch {
		case w.bad:
			return false
		case w.state != model.ReadingValue:
			cloudy++
		default:
			cloudy = 0
		}
		if cloudy > 3 {
			return false
		}
	}
	return true
}

// eventLog is the world's log as it is written: the last lines for a person, and the
// few kinds that a check lives on.
type eventLog struct {
	s     *swarm
	lines [keptLines][]byte
	n     int
	ours  int // pushes of ic through the pipeline
	sum   hash.Hash64
}

type logLine struct {
	Host, Owner string
	Cents       int64
}

// Write implements io.Writer: one line at a time.
func (l *eventLog) Write(p []byte) (int, error) {
	_, _ = l.sum.Write(p) // a hash takes everything
	if bytes.Contains(p, []byte(`"event":"vitals"`)) {
		return len(p), nil
	}
	order := bytes.Contains(p, []byte(`"event":"order"`))
	if !order {
		l.lines[l.n%keptLines] = append(l.lines[l.n%keptLines][:0], p...)
		l.n++
	}
	unscored := order && bytes.Contains(p, []byte(`"outcome":"`+shop.Unscored+`"`))
	push := bytes.Contains(p, []byte(`"event":"push"`))
	if !unscored && !push {
		return len(p), nil
	}
	var line logLine
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, fmt.Errorf("the event log is no JSON: %w", err)
	}
	switch {
	case unscored:
		l.s.truth.order(line.Host, line.Cents)
	case push && line.Owner == "ic" && !l.s.noRoom(l.s.w.Kernel().Now(), l.s.w.Kernel().Now()):
		l.ours++
	}
	return len(p), nil
}

func (l *eventLog) last() string {
	var b strings.Builder
	for i := max(0, l.n-keptLines); i < l.n; i++ {
		b.Write(l.lines[i%keptLines])
	}
	return b.String()
}

// counts is what a swarm has seen: a swarm in which nothing happens proves nothing.
type counts struct {
	statements, forged, repeated, bypasses, recoveries, endings, pushes, orders, kills, acts, reconciled, unknown int64
}
