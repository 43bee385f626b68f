package cedar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/degradedmode/ic/internal/model"
)

// step is the time between two samples of every signal, in seconds.
const step = 10

// reading is what is known of one signal: a value that has been the same for
// steady seconds. Before that it was no number.
type reading struct {
	state  model.ReadingState
	value  int64
	steady int64
}

// chain is what is in force in one scope: a shed since a moment, and perhaps a
// ramp out of it.
type chain struct {
	tier    int
	since   int64
	percent int   // 0: no ramp
	stepAt  int64 // when the ramp's last step began
	ids     []string
	ramp    string
	late    int64    // how long after its start the first host had the shed, or the ramp's last step
	unseen  bool     // no host has it, and nobody knows what became of it
	shedBy  []string // who signed the shed
	stepBy  []string // who signed the ramp's last step
}

// standing is another directive in force that a request may end.
type standing struct {
	id, scope, right string
	kind             model.Kind
	from, until      int64
	ended            bool
	control          string // bypass
	perHost          int64  // bypass: what one host may let through in a day
}

// proposal waits for other people's signatures.
type proposal struct {
	right, scope, requester string
	signers                 []string
	at                      int64
}

// scene is the world as it was drawn; times are seconds since the epoch.
type scene struct {
	now      int64
	mode     model.Mode
	durable  bool
	clock    model.ClockState
	holder   string
	until    int64
	hosts    map[string]int // by service, each host runs one
	readings map[string]reading
	chains   map[string]chain // by scope
	others   []standing
	asked    []proposal
	used     map[string]int64 // by right: when it was last used or rehearsed live; absent: never
}

// world is the scene in the product's words.
func (s *scene) world(fleet string, ref model.PolicyRef) *model.World {
	w := &model.World{
		V: 1, Now: at(s.now), Clock: s.clock, Fleet: fleet, Mode: s.mode, Durable: s.durable, Policy: ref,
		Readings: map[string]model.Reading{}, Rehearsals: map[string]model.Rehearsal{},
		Incident: model.Incident{ID: "night", Lease: model.Lease{Holder: s.holder, From: at(s.until - 3*3600), Until: at(s.until)}},
	}
	for name, r := range s.readings {
		w.Readings[name] = s.history(r)
	}
	for _, service := range services {
		for n := range s.hosts[service] {
			w.Hosts = append(w.Hosts, model.HostView{Host: fmt.Sprintf("%s-%d", service, n), Services: []string{service}})
		}
	}
	for _, scope := range scopes {
		if c, ok := s.chains[scope]; ok {
			w.Issued = append(w.Issued, c.issued(fleet, scope)...)
		}
	}
	for _, o := range s.others {
		w.Issued = append(w.Issued, o.issued(fleet))
	}
	for i, a := range s.asked {
		w.Proposals = append(w.Proposals, model.Proposal{ID: id(700 + i), Right: a.right, Scope: a.scope, Requester: a.requester, At: at(a.at), Signers: a.signers})
	}
	for name, when := range s.used {
		w.Rehearsals[name] = model.Rehearsal{Live: at(when)}
	}
	return w
}

func (o *standing) issued(fleet string) model.Issued {
	d := model.Directive{ID: o.id, Fleet: fleet, Scope: o.scope, Kind: o.kind, Right: o.right, NotBefore: at(o.from), NotAfter: at(o.until)}
	switch o.kind {
	case model.Off:
		d.NotAfter = time.Time{}
	case model.Bypass:
		usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
		d.Control = o.control
		d.Caps = model.Caps{Under: usd(5000), HostCount: 1_000_000, HostTotal: usd(o.perHost), Total: usd(1_000_000)}
	}
	out := model.Issued{Directive: d}
	if o.ended {
		out.EndedBy = id(999)
	}
	return out
}

func (c *chain) issued(fleet, scope string) []model.Issued {
	shed := model.Directive{ID: c.ids[0], Fleet: fleet, Scope: scope, Kind: model.Shed, Tier: c.tier, NotBefore: at(c.since)}
	if c.percent == 0 {
		return []model.Issued{{Directive: shed, Signers: c.shedBy, FirstSeen: c.firstSeen(c.since)}}
	}
	ramp := model.Directive{
		ID: c.ids[1], Fleet: fleet, Scope: scope, Kind: model.End, Ends: model.Shed, IDs: c.ids[:1],
		From: c.tier, To: c.tier - 1, Ramp: c.ramp, Percent: c.percent, NotBefore: at(c.stepAt),
	}
	return []model.Issued{{Directive: shed, EndedBy: ramp.ID, Signers: c.shedBy}, {Directive: ramp, Signers: c.stepBy, FirstSeen: c.firstSeen(c.stepAt)}}
}

func (c *chain) firstSeen(begins int64) time.Time {
	if c.unseen {
		return time.Time{}
	}
	return at(begins + c.late)
}

// history is a reading with a sample every step: no number, then the value.
func (s *scene) history(r reading) model.Reading {
	out := model.Reading{State: r.state, Value: float64(r.value), At: at(s.now), Step: model.Duration(step * time.Second)}
	for age := int64(1500); age > 0; age -= step {
		v := float64(r.value)
		if age > r.steady {
			v = math.NaN()
		}
		out.History = append(out.History, model.Sample{At: at(s.now - age), Value: v})
	}
	return out
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// often is true in n of 10 draws.
func often(r *rand.Rand, n int) bool { return r.IntN(10) < n }
