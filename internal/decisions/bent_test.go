package decisions

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

// What bent approval systems elsewhere, each a test by its name. The same for
// keys and documents is in package policy, for bytes in directive and incident.

// bentNeeds wants one reason and no other.
func bentNeeds(t *testing.T, b *policy.Bundle, w *model.World, r model.Request, code model.Code) {
	t.Helper()
	v := Evaluate(b, w, &r)
	if v.Outcome == model.Permitted || !slices.Equal(codes(v), []model.Code{code}) {
		t.Errorf("actor %s with %v: %s %v, want %s", r.Actor, r.Cosigners, v.Outcome, codes(v), code)
	}
}

func TestBentPeopleAreCountedTwiceByASecondName(t *testing.T) {
	b, w := changed(t, func(p *parts) {
		p.right(medium, func(r *policy.Right) { r.Cosign.Count = 2 })
	}), calm()
	r := draft(t, b, w, Ask{Right: medium, Reason: "x"})
	for _, cosigners := range [][]string{
		{"fiona"}, {"fiona", "fiona"}, {"fiona", "FIONA"}, {"fiona", "fiona "}, {"fiona", "finance"}, {"fiona", "ines"}, {"fiona", "dev"}, {"fiona", "ladder-controller"},
	} {
		r.Cosigners = cosigners
		if v := Evaluate(b, w, &r); v.Outcome == model.Permitted {
			t.Errorf("two people are %v", cosigners)
		}
	}
	r.Cosigners = []string{"fiona", "ravi"}
	expect(t, Evaluate(b, w, &r), model.Permitted)
}

func TestBentAGroupThatIsMissingOrEmptyApprovesNothing(t *testing.T) {
	for name, change := range map[string]func(*parts){
		"the group is not in the root":  func(p *parts) { p.right(medium, func(r *policy.Right) { r.Cosign.Of = "risk" }) },
		"no group is named":             func(p *parts) { p.right(medium, func(r *policy.Right) { r.Cosign.Of = "" }) },
		"the group has nobody in it":    func(p *parts) { p.root.Groups["finance"] = policy.Group{Any: 1} },
		"the group wants nobody":        func(p *parts) { p.root.Groups["finance"] = policy.Group{Any: 0} },
		"the root has no groups":        func(p *parts) { p.root.Groups = nil; p.role("ines", "dev") },
		"the root has an empty map":     func(p *parts) { p.root.Groups = map[string]policy.Group{}; p.role("ines", "dev") },
		"a group that holds itself":     func(p *parts) { p.root.Groups["finance"] = policy.Group{Any: 1, Of: []string{"commanders"}} },
		"more than there are people":    func(p *parts) { p.right(medium, func(r *policy.Right) { r.Cosign.Count = math.MaxInt }) },
		"less than nobody, by accident": func(p *parts) { p.right(medium, func(r *policy.Right) { r.Cosign.Count = -1 }) },
	} {
		b, w := changed(t, change), calm()
		r := draft(t, b, w, Ask{Right: medium, Reason: "x"})
		for _, cosigners := range [][]string{nil, {"ines"}, {"fiona", "ravi"}} {
			r.Cosigners = cosigners
			v := Evaluate(b, w, &r)
			if v.Outcome == model.Permitted || !slices.Contains(codes(v), model.CodeQuorum) {
				t.Errorf("%s: %s %v with %v", name, v.Outcome, codes(v), cosigners)
			}
		}
	}
}

// role makes commanders of people instead of a group.
func (p *parts) role(people ...string) {
	role := p.root.Roles["incident-commander"]
	role.Members = people
	p.root.Roles["incident-commander"] = role
}

// TestBentAnErrorIsNoApproval: what cannot be read is as if it said no.
func TestBentAnErrorIsNoApproval(t *testing.T) {
	for name, c := range map[string]struct {
		policy func(*parts)
		world  func(*model.World)
		code   model.Code
	}{
		"the domain of the right is not in force": {func(p *parts) { p.docs.Controls = nil }, nil, model.CodeUnknownRight},
		"nor is the matrix": {func(p *parts) {
			p.docs.Controls, p.docs.Rights = nil, nil
			p.states[policy.Rights] = policy.DomainState{Why: "could not be read"}
		}, nil, model.CodeInactiveDomain},
		"its state is not known":           {func(p *parts) { p.states = nil }, nil, model.CodePolicyExpired},
		"no control of that name is known": {func(p *parts) { p.docs.Controls["payments"].Controls = nil }, nil, model.CodeUnknownControl},
		"the row has no bounds":            {func(p *parts) { p.right(small, func(r *policy.Right) { r.Bypass = nil }) }, nil, model.CodeWrongKind},
		"the root has no roles":            {func(p *parts) { p.root.Roles = nil }, nil, model.CodeWrongRole},
		"nobody knows who commands":        {nil, func(w *model.World) { w.Incident.Lease = model.Lease{} }, NoLease},
		"no host has answered":             {nil, func(w *model.World) { w.Hosts = nil }, NoInventory},
		"the log has not answered":         {nil, func(w *model.World) { w.Durable = false }, NotDurable},
	} {
		b, w := shop(t, 0), calm()
		r := draft(t, b, w, Ask{Right: small, Reason: "x"})
		if c.policy != nil {
			b = changed(t, c.policy)
		}
		if c.world != nil {
			c.world(w)
		}
		v := Evaluate(b, w, &r)
		if v.Outcome == model.Permitted || !slices.Contains(codes(v), c.code) {
			t.Errorf("%s: %s %v, want %s", name, v.Outcome, codes(v), c.code)
		}
	}
	if v := Evaluate(shop(t, 0), nil, &model.Request{}); v.Outcome != model.Denied {
		t.Errorf("no world: %s", v.Outcome)
	}
	if v := Evaluate(shop(t, 0), &model.World{}, &model.Request{}); v.Outcome != model.Denied {
		t.Errorf("an empty world and an empty request: %s", v.Outcome)
	}
}

func TestBentSelfApproval(t *testing.T) {
	// dev and ines are both commanders, and either may cosign tier 4 for the other.
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "shed-4", Tier: 4})
	for _, cosigners := range [][]string{nil, {"ines"}, {"ines", "ines"}, {"ladder-controller"}} {
		r.Cosigners = cosigners
		bentNeeds(t, b, w, r, model.CodeQuorum)
	}
	r.Cosigners = []string{"dev"}
	expect(t, Evaluate(b, w, &r), model.Permitted)
	r.Cosigners = []string{"ines", "dev"}
	expect(t, Evaluate(b, w, &r), model.Permitted)
}

func TestBentAnApproverIsNoRequester(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: medium, Reason: "x", Actor: "fiona"})
	r.Cosigners = []string{"ravi"}
	w.Incident.Lease.Holder = "fiona"
	bentNeeds(t, b, w, r, model.CodeWrongRole)
}

func TestBentNotANumberIsNeitherGoodNorCalm(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, threshold := range map[string]policy.Threshold{
		"a limit that is not a number": {Below: &nan}, "a limit beyond all numbers": {Above: &inf}, "no limit": {}, "two limits": {Above: ptr(0.0), Below: ptr(1.0)},
	} {
		b := changed(t, func(p *parts) {
			for i := range p.docs.Ladder.Tiers {
				p.docs.Ladder.Tiers[i].Leave = []policy.Condition{{Signal: "errors", Threshold: threshold, For: model.Duration(time.Minute)}}
			}
		})
		w := calm()
		shedAt(w, 1, 2, day0.Add(-time.Hour))
		if r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier}); Evaluate(b, w, &r).Outcome == model.Permitted {
			t.Errorf("a tier is left by %s", name)
		}
	}
	for name, threshold := range map[string]policy.Threshold{"not a number": {Above: &nan}, "nothing": {}, "two": {Above: ptr(1.0), Below: ptr(0.0)}} {
		b := changed(t, func(p *parts) {
			s := p.docs.Ladder.Signals["errors"]
			s.Abnormal = &threshold
			p.docs.Ladder.Signals["errors"] = s
		})
		w := calm()
		w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Off, Scope: "*", NotBefore: day0}}}
		v := Evaluate(b, w, ptr(draft(t, b, w, Ask{Right: "feature-on"})))
		if v.Outcome == model.Permitted {
			t.Errorf("a signal is within a bound that is %s", name)
		}
	}
}

func TestBentAMissingBoundIsNoPermission(t *testing.T) {
	for name, change := range map[string]func(*policy.Bypass){
		"no cap per item":        func(p *policy.Bypass) { p.Under = model.Money{} },
		"no items on a host":     func(p *policy.Bypass) { p.HostCount = 0 },
		"no total of a host":     func(p *policy.Bypass) { p.HostTotal = model.Money{} },
		"no total":               func(p *policy.Bypass) { p.Total = model.Money{} },
		"no length":              func(p *policy.Bypass) { p.Lasts = 0 },
		"no grants in a day":     func(p *policy.Bypass) { p.PerDay = 0 },
		"no grants at a time":    func(p *policy.Bypass) { p.Live = 0 },
		"no control":             func(p *policy.Bypass) { p.Control = "" },
		"nothing at all":         func(p *policy.Bypass) { *p = policy.Bypass{} },
		"numbers below nothing":  func(p *policy.Bypass) { p.HostCount, p.Live, p.PerDay = -1, -1, -1 },
		"a total below nothing":  func(p *policy.Bypass) { p.Total = usd(-1) },
		"a length below nothing": func(p *policy.Bypass) { p.Lasts = -1 },
	} {
		whole, w := shop(t, 0), calm()
		b := changed(t, func(p *parts) { p.right(small, func(r *policy.Right) { change(r.Bypass) }) })
		asked := draft(t, whole, w, Ask{Right: small, Reason: "x"}) // what the row would grant if it were whole
		offered := draft(t, b, w, Ask{Right: small, Reason: "x"})   // what it offers as it is
		for _, r := range []*model.Request{&asked, &offered} {
			if v := Evaluate(b, w, r); v.Outcome == model.Permitted {
				t.Errorf("%s: permitted %+v", name, r.Directive.Caps)
			}
		}
	}
	shed := changed(t, func(p *parts) { p.right("recover", func(r *policy.Right) { r.Tiers = nil }) })
	w := calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	bentNeeds(t, shed, w, draft(t, shed, w, Ask{Right: "recover", Tier: NextTier}), model.CodeOverTier)
}

// TestBentOneGrantsEndKillsAnOther: two grants overlap, and the end of one is the
// end of one.
func TestBentOneGrantsEndKillsAnOther(t *testing.T) {
	b, w := shop(t, 0), calm()
	first := grant(w, 1, small, day0.Add(-time.Minute), day0.Add(9*time.Minute)).Directive.ID
	second := grant(w, 2, medium, day0.Add(-time.Minute), day0.Add(9*time.Minute)).Directive.ID
	r := draft(t, b, w, Ask{Right: "end-bypass", Scope: "checkout", IDs: []string{first}})
	expect(t, Evaluate(b, w, &r), model.Permitted)
	if !slices.Equal(r.Directive.IDs, []string{first}) {
		t.Fatalf("the ending lists %v", r.Directive.IDs)
	}
	w.Issued[0].EndedBy = id(3)
	if got := LiveOf(w, model.Bypass, "checkout"); !slices.Equal(got, []string{second}) {
		t.Errorf("live are %v", got)
	}
	w.Now = day0.Add(8 * time.Minute)
	w.Issued[0].EndedBy, w.Issued[0].Directive.NotAfter = "", w.Now // it ends by itself
	if got := LiveOf(w, model.Bypass, "checkout"); !slices.Equal(got, []string{second}) {
		t.Errorf("live are %v", got)
	}
}

// TestBentTheClockStartsAtTheRequest: the window is counted from its beginning,
// which leaves time for signatures, and a late signature does not move it.
func TestBentTheClockStartsAtTheRequest(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: medium, Reason: "x"})
	begins, ends := day0.Add(3*time.Minute), day0.Add(18*time.Minute)
	if d := r.Directive; !d.IssuedAt.Equal(day0) || !d.NotBefore.Equal(begins) || !d.NotAfter.Equal(ends) {
		t.Fatalf("issued %s, from %s to %s", d.IssuedAt, d.NotBefore, d.NotAfter)
	}
	r.Cosigners = []string{"fiona"}
	for _, late := range []time.Duration{0, 10 * time.Minute, 18*time.Minute - time.Second} {
		w.Now = day0.Add(late)
		expect(t, Evaluate(b, w, &r), model.Permitted)
	}
	w.Now = ends
	expect(t, Evaluate(b, w, &r), model.Denied, EndsSoon)
	w.Now = day0
	r.Directive.NotAfter = ends.Add(time.Second)
	expect(t, Evaluate(b, w, &r), model.Denied, model.CodeOverDuration)
}

// TestBentStrippedSignaturesStopShedding: every document but the root has lost its
// signatures, and who may tighten by the root still sheds, alone.
func TestBentStrippedSignaturesStopShedding(t *testing.T) {
	whole, w := shop(t, 0), calm()
	shed := draft(t, whole, w, Ask{Right: "shed", Tier: 3})
	opens := draft(t, whole, w, Ask{Right: small, Reason: "x"})
	for name, change := range map[string]func(*parts){
		"the matrix":   func(p *parts) { p.docs.Rights = nil; p.states[policy.Rights] = policy.DomainState{} },
		"the ladder":   func(p *parts) { p.docs.Ladder = nil },
		"the features": func(p *parts) { p.docs.Features = nil; p.states[policy.Features] = policy.DomainState{} },
		"the control":  func(p *parts) { p.docs.Controls = nil; p.states["payments"] = policy.DomainState{} },
		"every document": func(p *parts) {
			p.docs, p.states = policy.Documents{}, map[policy.Domain]policy.DomainState{policy.Rights: {}}
		},
		"nothing is left": func(p *parts) { p.docs, p.states = policy.Documents{}, nil },
	} {
		b := changed(t, change)
		if v := Evaluate(b, w, &shed); v.Outcome != model.Permitted {
			t.Errorf("without %s a shed is %s %v", name, v.Outcome, codes(v))
		}
		if v := Evaluate(b, w, &opens); name != "the matrix" && name != "the ladder" && name != "the features" && v.Outcome == model.Permitted {
			t.Errorf("without %s a bypass is permitted", name)
		}
	}
}
