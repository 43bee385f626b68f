package cedar

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

const (
	fleet = "oracle"
	money = policy.Domain("money") // the one document of controls
	noon  = 1_796_000_000          // when every policy is judged, give or take
)

// The names that policies and requests draw from; the last of each is in no policy.
var (
	services = []string{"edge", "till", "stock"}
	scopes   = []string{"edge", "till", "stock", model.AnyScope, "nowhere"}
	people   = []string{"ada", "ben", "cleo", "dan", "eve", "nobody"}
	machines = []string{"ladder", "robot"}
	features = []string{"search", "reviews", "images", "mystery"}
	controls = []string{"risk", "quota", "login", "fog"}
	signals  = []string{"errors", "load"}
	keys     = publicKeys()
)

func publicKeys() map[string]string {
	out := make(map[string]string)
	for _, name := range append(append([]string{}, people...), machines...) {
		seed := sha256.Sum256([]byte(name))
		key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
		if err != nil {
			panic(err) // an Ed25519 key is always one
		}
		out[name] = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	}
	return out
}

// rules are one random policy, as its documents.
type rules struct {
	root   *policy.Root
	docs   policy.Documents
	states map[policy.Domain]policy.DomainState
	ref    model.PolicyRef
	rights map[string]policy.Right // of all documents in force
	names  []string                // of rights, sorted, and one that is in no policy
}

func drawRules(r *rand.Rand) *rules {
	p := &rules{root: drawRoot(r), states: map[policy.Domain]policy.DomainState{}, ref: model.PolicyRef{Version: 5, Digest: strings.Repeat("5", 64)}}
	p.docs.Ladder = drawLadder(r)
	for _, domain := range []policy.Domain{policy.Features, policy.Rights, money} {
		p.states[domain] = policy.DomainState{Domain: domain, Active: often(r, 9), Expires: at(noon + pick[int64](r, -60, 60, 90_000, 9_000_000))}
	}
	p.states[policy.Ladder] = policy.DomainState{Domain: policy.Ladder, Active: true, Expires: at(noon + 9_000_000)}
	if p.states[policy.Features].Active {
		p.docs.Features = &policy.FeaturesDoc{Features: map[string]policy.Feature{}}
		for _, name := range features[:3] {
			p.docs.Features.Features[name] = policy.Feature{Class: policy.Sheddable, Service: pick(r, services...)}
		}
	}
	if p.states[policy.Rights].Active {
		p.docs.Rights = &policy.RightsDoc{Rights: map[string]policy.Right{}}
		for n := range 7 {
			p.docs.Rights.Rights[fmt.Sprintf("right-%d", n)] = drawRight(r)
		}
	}
	if p.states[money].Active {
		p.docs.Controls = map[policy.Domain]*policy.ControlsDoc{money: drawControls(r)}
	}
	p.rights = map[string]policy.Right{}
	if p.docs.Rights != nil {
		maps.Copy(p.rights, p.docs.Rights.Rights)
	}
	for _, doc := range p.docs.Controls {
		maps.Copy(p.rights, doc.Rights)
	}
	p.names = append(sorted(p.rights), "unheard-of")
	return p
}

func (p *rules) bundle() *policy.Bundle {
	b, err := policy.NewBundle(p.root, p.ref, p.states, p.docs)
	if err != nil {
		panic(err) // what is drawn is a policy
	}
	return b
}

func drawRoot(r *rand.Rand) *policy.Root {
	root := &policy.Root{
		V: 1, Fleet: fleet, Version: 1, Expires: at(noon + pick[int64](r, -60, 60, 9_000_000, 9_000_000)),
		People: map[string]policy.Person{}, Machines: map[string]policy.Machine{}, Groups: map[string]policy.Group{},
		Domains: map[policy.Domain]policy.DomainRule{}, Roles: map[string]policy.Role{},
	}
	for _, name := range people[:5] {
		root.People[name] = policy.Person{Keys: []string{keys[name]}}
	}
	if often(r, 7) {
		total := model.Money{Minor: pick[int64](r, 100_000, 400_000, 1_000_000), Currency: pick(r, "USD", "USD", "USD", "USD", "EUR")}
		root.Domains[money] = policy.DomainRule{Total: &total}
	}
	for _, name := range machines[:1+r.IntN(2)] {
		root.Machines[name] = policy.Machine{Keys: []string{keys[name]}}
	}
	crowd := r.Perm(5)
	for i, name := range []string{"north", "south"} {
		group := policy.Group{Any: 1}
		for _, n := range crowd[i*2 : i*2+2+r.IntN(2-i)] {
			group.Of = append(group.Of, people[n])
		}
		root.Groups[name] = group
	}
	root.Groups["both"] = policy.Group{Any: 2, Of: []string{"north", people[crowd[4]]}}
	for _, name := range []string{"lead", "helper"} {
		role := policy.Role{Tightens: often(r, 5), MaxTier: pick(r, 2, 3, 4, 4)}
		role.Members = append(role.Members, pick(r, "north", "south", "both", people[r.IntN(5)]))
		if often(r, 4) {
			role.Machines = append(role.Machines, machines[0])
		}
		root.Roles[name] = role
	}
	return root
}

func seconds(n int) model.Duration { return model.Duration(time.Duration(n) * time.Second) }

func drawLadder(r *rand.Rand) *policy.LadderDoc {
	doc := &policy.LadderDoc{Signals: map[string]policy.Signal{}, Services: map[string]policy.Service{}}
	for _, name := range signals {
		limit := 80.0
		signal := policy.Signal{Step: seconds(step), MaxAge: seconds(60)}
		if often(r, 8) {
			signal.Abnormal = &policy.Threshold{Above: &limit}
		}
		doc.Signals[name] = signal
	}
	for _, name := range services {
		doc.Services[name] = policy.Service{Tiers: 4}
	}
	for n := 1; n <= 2+r.IntN(3); n++ {
		tier := policy.Tier{Tier: n, Dwell: seconds(pick(r, 60, 600)), RampStep: seconds(pick(r, 30, 120)), Ramp: pick(r, []int{10, 50, 100}, []int{25, 100}, []int{100})}
		for _, name := range signals[:r.IntN(3)] {
			limit := 60.0
			tier.Leave = append(tier.Leave, policy.Condition{Signal: name, Threshold: policy.Threshold{Below: &limit}, For: seconds(pick(r, 100, 200, 500, 900))})
		}
		doc.Tiers = append(doc.Tiers, tier)
	}
	doc.Schedule = map[string]policy.Event{}
	for n := range r.IntN(3) {
		from := noon + pick[int64](r, -4000, -30, 30, 4000)
		doc.Schedule[fmt.Sprintf("event-%d", n)] = policy.Event{
			Tier: 1 + r.IntN(3), Scope: pick(r, []string{model.AnyScope}, []string{"edge"}, []string{"till", "stock"}), From: at(from), Until: at(from + 3000), Soak: seconds(pick(r, 600, 1400)),
		}
	}
	return doc
}

// drawRight makes a row of the matrix. Rows of the matrix may be of any kind: that
// Load would not let them be is not for Evaluate to rely on.
func drawRight(r *rand.Rand) policy.Right {
	right := policy.Right{
		Kind: pick(r, model.Shed, model.Shed, model.End, model.End, model.End, model.End, model.End, model.Off, model.Freeze, model.Ping, model.Dimmer),
		Who:  pick(r, "lead", "lead", "helper", "stranger"), Cosign: policy.Cosign{Count: pick(r, 0, 0, 1, 2), Of: pick(r, "north", "south", "both", "strangers")},
		Scope: pick(r, []string{model.AnyScope}, []string{"edge", "till"}, []string{"stock"}),
	}
	if often(r, 2) {
		right.RehearsedWithin = seconds(3600)
	}
	switch right.Kind {
	case model.Shed:
		right.Tiers = drawTiers(r)
	case model.Off:
		right.Feature = pick(r, "*", "search", "images", "risk")
	case model.Freeze, model.Ping:
		right.Lasts = seconds(pick(r, 600, 3600))
	case model.Dimmer:
		if often(r, 8) {
			right.Dimmer = &policy.Dimmer{TargetMS: policy.Range{From: 100, To: 500}, Floor: 2, Ceiling: 90}
		}
	case model.End:
		right.Ends = pick(r, model.Shed, model.Shed, model.Shed, model.Off, model.Bypass, model.Freeze, model.Ping)
		if right.Ends == model.Shed {
			right.Tiers, right.Blind = drawTiers(r), often(r, 3)
			right.Cosign.Count = pick(r, 0, right.Cosign.Count)
		}
	}
	return right
}

func drawTiers(r *rand.Rand) *policy.Range {
	if often(r, 1) {
		return nil
	}
	from := 1 + r.IntN(2)
	return &policy.Range{From: from, To: from + r.IntN(4)}
}

func drawControls(r *rand.Rand) *policy.ControlsDoc {
	doc := &policy.ControlsDoc{Controls: map[string]policy.Control{
		"risk":  {Protects: policy.ProtectsMoney, Services: []string{"till"}},
		"quota": {Protects: policy.ProtectsCapacity, Services: []string{"edge", "stock"}},
		"login": {Protects: policy.ProtectsAuthorization, Services: []string{"edge"}},
	}, Rights: map[string]policy.Right{}}
	usd := func(minor int64) model.Money { return model.Money{Minor: minor, Currency: "USD"} }
	names := []string{"bypass-0", "bypass-1", "bypass-2", "bypass-3"}
	for _, name := range names {
		right := drawRight(r)
		right.Kind, right.Ends, right.Tiers, right.Blind, right.Feature, right.Lasts, right.Dimmer = model.Bypass, "", nil, false, "", 0, nil
		right.Bypass = &policy.Bypass{
			Control: pick(r, controls[:3]...), Under: usd(pick(r, int64(5000), 20000)), HostCount: pick(r, int64(10), 100), HostTotal: usd(100_000),
			Total: usd(pick(r, int64(200_000), 900_000)), Lasts: seconds(pick(r, 600, 900)), PerDay: 1 + r.IntN(3), Live: 1 + r.IntN(2), MaxReplacements: int64(r.IntN(3)),
		}
		if often(r, 2) {
			right.NoSecond = &policy.NoSecond{Of: pick(r, names...), After: seconds(300)}
		}
		if often(r, 2) {
			right.Expires = at(noon + pick[int64](r, -30, 30, 9_000_000))
		}
		doc.Rights[name] = right
	}
	return doc
}
