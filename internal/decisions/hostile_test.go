package decisions

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"pgregory.net/rapid"
)

// What a hostile world is made of: values at and beyond every edge, mixed with
// the few that mean something, so that combinations get past the first check.
var (
	numbers = []int{math.MinInt, -1, 0, 1, 2, 3, 4, 5, 10, 50, 99, 100, 101, math.MaxInt}
	amounts = []int64{math.MinInt64, -1, 0, 1, 4999, 5000, math.MaxInt64}
	times   = []time.Time{{}, day0, day0.Add(-time.Hour), day0.Add(time.Minute), day0.AddDate(8000, 0, 0), time.Unix(math.MaxInt32, 999).AddDate(-9000, 0, 0)}
	spans   = []model.Duration{math.MinInt64, -1, 0, 1, model.Duration(time.Minute), math.MaxInt64}
	kinds   = []model.Kind{model.Shed, model.Off, model.Bypass, model.Freeze, model.Dimmer, model.Ping, model.End, "", "teleport"}
	words   = []string{"", "*", "checkout", "edge", "payment-risk", "login", "recommendations", "ines", "dev", "fiona", "ladder-controller", "\x1b[2J", "nobody"}
	floats  = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 0.001, 0.5}
)

// chooser picks one of n. Everything hostile is made of its choices, be they
// rapid's or a fuzzer's.
type chooser func(label string, n int) int

// byRapid lets a failing case be made smaller, choice by choice.
func byRapid(t *rapid.T) chooser {
	return func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
}

// byBytes spends a byte on each choice, and chooses the first when there is none.
func byBytes(data []byte) chooser {
	return func(_ string, n int) int {
		if len(data) == 0 {
			return 0
		}
		at := int(data[0]) % n
		data = data[1:]
		return at
	}
}

func among[T any](c chooser, label string, from []T) T { return from[c(label, len(from))] }

func (c chooser) yes(label string) bool { return c(label, 2) == 1 }

func (c chooser) money() model.Money {
	return model.Money{Minor: among(c, "minor", amounts), Currency: among(c, "currency", []string{"USD", "", "EUR"})}
}

func (c chooser) words(label string) (out []string) {
	for range c(label, 4) {
		out = append(out, among(c, label, words))
	}
	return out
}

func (c chooser) directive(rights []string) model.Directive {
	number := func(label string) int { return among(c, label, numbers) }
	at := func(label string) time.Time { return among(c, label, times) }
	word := func(label string) string { return among(c, label, words) }
	d := model.Directive{
		ID: id(c("own id", 6)), Fleet: among(c, "fleet", []string{"shop", "", "bank"}), Scope: word("scope"),
		Kind: among(c, "kind", kinds), Ends: among(c, "ends", kinds), Reason: word("reason"),
		Tier: number("tier"), From: number("from"), To: number("to"), Percent: number("percent"), Ramp: id(c("ramp", 6)),
		Feature: word("feature"), Control: word("control"),
		TargetMS: number("target"), Floor: number("floor"), Ceiling: number("ceiling"),
		Caps:     model.Caps{Under: c.money(), HostCount: among(c, "count", amounts), HostTotal: c.money(), Total: c.money()},
		IssuedAt: at("issued"), NotBefore: at("not before"), NotAfter: at("not after"),
		Right:  among(c, "right", append(rights, "", "no-such-right")),
		Policy: model.PolicyRef{Version: among(c, "version", append(amounts, 3)), Digest: among(c, "digest", []string{digest, ""})},
	}
	for range c("ids", 5) {
		d.IDs = append(d.IDs, id(c("id", 6)))
	}
	return d
}

func (c chooser) world(rights []string) *model.World {
	w := calm()
	w.Now = among(c, "now", times)
	w.Mode = among(c, "mode", []model.Mode{model.Live, model.ReadOnly, ""})
	w.Clock = among(c, "clock", []model.ClockState{model.ClockOK, model.ClockBehind, "", "sundial"})
	w.Durable = c.yes("durable")
	w.Incident.Lease = model.Lease{Holder: among(c, "holder", words), Until: among(c, "until", times)}
	if c.yes("no readings") {
		w.Readings = nil
	} else {
		r := steady(among(c, "value", floats), w.Now)
		r.State = among(c, "state", []model.ReadingState{model.ReadingValue, model.ReadingStale, "", "odd"})
		r.Step = among(c, "step", spans)
		w.Readings["errors"] = r
	}
	for range c("issued", 6) {
		w.Issued = append(w.Issued, model.Issued{Directive: c.directive(rights), EndedBy: among(c, "ended", []string{"", "x"})})
	}
	for range c("proposals", 4) {
		w.Proposals = append(w.Proposals, model.Proposal{
			ID: id(c("proposal", 6)), Right: among(c, "proposed", append(rights, "")), Scope: among(c, "of", words),
			Requester: among(c, "requester", words), At: among(c, "proposed at", times), Signers: c.words("signers"),
		})
	}
	w.Rehearsals = map[string]model.Rehearsal{among(c, "rehearsed", append(rights, "ping")): {Live: among(c, "rehearsed at", times)}}
	w.Hosts = nil
	for range c("hosts", 4) {
		w.Hosts = append(w.Hosts, model.HostView{Host: among(c, "host", words), Services: c.words("services")})
	}
	return w
}

// near is the world in which everything is there and a request that a row means,
// with a few things bent: what gets past the first check.
func (c chooser) near(b *policy.Bundle) (*model.World, model.Request) {
	w, rights := calm(), append(b.RightNames(), "no-such-right", small, medium, small, medium, "recover", "recover-blind")
	around := []time.Time{day0, day0.Add(-10 * time.Minute), day0.Add(-4 * time.Hour), day0.Add(5 * time.Minute), day0.Add(14 * time.Minute), day0.Add(24 * time.Hour)}
	people := []string{"ines", "fiona", "dev", "ravi", "ladder-controller"}
	for n := range c("grants", 3) {
		grant(w, n, among(c, "granted", rights), among(c, "from", around), among(c, "until", around))
	}
	for n := range c("sheds", 3) {
		shedAt(w, 3+n, 1+c("tier", 5), among(c, "entered", around))
	}
	w.Proposals = []model.Proposal{{Right: among(c, "proposed", rights), Scope: "checkout", Requester: among(c, "requester", people), At: among(c, "proposed at", around), Signers: c.words("signers")}}
	w.Rehearsals = map[string]model.Rehearsal{among(c, "rehearsed", rights): {Live: among(c, "rehearsed at", around)}}
	r, err := Draft(b, w, Ask{Right: among(c, "right", rights), Tier: c("to", 6) - 1, Reason: "x", Actor: "ines", Evidence: "seen"})
	for range c("cosigners", 3) {
		r.Cosigners = append(r.Cosigners, among(c, "cosigner", people))
	}
	other := c.directive(rights)
	switch d := &r.Directive; c("bend", 24) {
	case 0:
		d.Caps = other.Caps
	case 1:
		d.NotBefore = other.NotBefore
	case 2:
		d.NotAfter = other.NotAfter
	case 3:
		d.Scope = other.Scope
	case 4:
		d.Kind = other.Kind
	case 5:
		d.Control, d.Feature = other.Control, other.Feature
	case 6:
		d.IDs, d.Ends = other.IDs, other.Ends
	case 7:
		d.From, d.To, d.Percent = other.From, other.To, other.Percent
	case 8:
		d.Right = other.Right
	case 9:
		r.Actor = among(c, "actor", words)
	case 10:
		w.Incident.Lease.Holder = "dev"
	case 11:
		w.Now = among(c, "now", around)
	}
	if err != nil {
		r.Directive = other
	}
	return w, r
}

// odd is a policy that no lint would let pass: rows without their bounds, empty
// ramps, tiers without conditions, numbers at both ends.
func odd(t testing.TB) *policy.Bundle {
	t.Helper()
	b := shop(t, 0)
	one := 1.0
	rights := map[string]policy.Right{
		"no-bounds":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"*"}},
		"no-tiers":   {Kind: model.Shed, Who: "incident-commander"},
		"no-role":    {Kind: model.Shed, Tiers: &policy.Range{From: 0, To: 99}, Scope: []string{"*"}},
		"many":       {Kind: model.Shed, Who: "incident-commander", Cosign: policy.Cosign{Count: math.MaxInt, Of: "no-group"}, Scope: []string{"*"}, Tiers: &policy.Range{From: 5, To: -5}},
		"back":       {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*", "checkout"}, Tiers: &policy.Range{From: -99, To: 99}},
		"blind":      {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 99}, Blind: true},
		"end-ends":   {Kind: model.End, Ends: model.End, Who: "incident-commander", Scope: []string{"*"}},
		"dim":        {Kind: model.Dimmer, Who: "incident-commander", Scope: []string{"*"}},
		"what":       {Kind: "teleport", Who: "incident-commander", Scope: []string{"*"}},
		"huge-risk":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(math.MaxInt64), HostCount: math.MaxInt64, HostTotal: usd(math.MaxInt64), Total: usd(math.MaxInt64), Lasts: math.MaxInt64, PerDay: math.MaxInt, MaxReplacements: math.MaxInt64}},
		"minus-risk": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(-1), HostCount: -1, HostTotal: usd(-1), Total: usd(-1), Lasts: -1, PerDay: -1, MaxReplacements: -1}},
		"alone-risk": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, RehearsedWithin: math.MaxInt64, NoSecond: &policy.NoSecond{Of: "huge-risk", After: math.MaxInt64}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(5000), HostCount: 100, HostTotal: usd(1), Total: usd(math.MaxInt64), Lasts: math.MaxInt64, PerDay: 9, Live: math.MaxInt}},
		"never-risk": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, RehearsedWithin: math.MinInt64, NoSecond: &policy.NoSecond{Of: "never-risk", After: math.MinInt64}, Bypass: &policy.Bypass{Control: "payment-risk", Under: usd(5000), HostCount: 100, HostTotal: usd(1), Total: usd(math.MaxInt64), Lasts: math.MaxInt64, PerDay: 9, Live: 1}},
		"lead":       {Kind: model.Freeze, Who: "incident-commander", Scope: []string{"*"}, Lasts: math.MaxInt64, Lead: math.MaxInt64, Cosign: policy.Cosign{Count: 1, Of: "finance"}},
	}
	made, err := policy.NewBundle(b.Root, b.Ref, b.Domains, policy.Documents{
		Rights: &policy.RightsDoc{Rights: rights},
		Ladder: &policy.LadderDoc{
			Schedule: map[string]policy.Event{"now": {Tier: -1, Scope: []string{"*"}, From: day0.Add(-time.Hour), Until: day0.Add(time.Hour), Soak: math.MaxInt64}, "never": {}, "ever": {Scope: []string{""}, Until: day0.AddDate(8000, 0, 0), Soak: -1}},
			Signals:  map[string]policy.Signal{"errors": {Abnormal: &policy.Threshold{}}, "both": {Abnormal: &policy.Threshold{Above: &one, Below: &one}, Right: "what"}, "none": {}},
			Tiers: []policy.Tier{{Tier: 99}, {Tier: 0, Ramp: []int{}}, {Tier: 2, Ramp: []int{100, 10, -1}, RampStep: -1, Dwell: math.MaxInt64,
				Leave: []policy.Condition{{Signal: "errors", Threshold: above(1), For: math.MinInt64}, {Signal: "absent"}}}},
		},
		Features: &policy.FeaturesDoc{Features: map[string]policy.Feature{"recommendations": {Tiers: map[int]string{0: "off", -1: "off", math.MaxInt: "off"}}, "": {Service: "checkout"}}},
		Journeys: &policy.JourneysDoc{Journeys: map[string]policy.Journey{"": {BrokenBy: [][]string{nil, {""}, {"recommendations", "recommendations"}}}}},
		Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {Controls: b.Controls}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// bare is a policy of which nothing but the root is in force.
func bare(t testing.TB) *policy.Bundle {
	t.Helper()
	b, err := policy.NewBundle(shop(t, 0).Root, model.PolicyRef{}, nil, policy.Documents{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNothingHostileMakesItPanicOrOpen: whatever a world and a request are made
// of, there is a verdict, the same one in any order, and it opens or recovers
// nothing without a row of the matrix, command, and caps above zero.
func TestNothingHostileMakesItPanicOrOpen(t *testing.T) {
	bundles := hostileBundles(t)
	rapid.Check(t, func(t *rapid.T) { hostile(t, bundles, byRapid(t)) })
}

// FuzzEvaluate is the same, led by what reaches new code.
func FuzzEvaluate(f *testing.F) {
	bundles := hostileBundles(f)
	for seed := range byte(8) {
		choices := make([]byte, 512)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(choices) // never fails
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, data []byte) { hostile(t, bundles, byBytes(data)) })
}

func hostileBundles(t testing.TB) []*policy.Bundle {
	return []*policy.Bundle{shop(t, 0), strict(t), odd(t), bare(t)}
}

// failing is a test of either kind.
type failing interface {
	Fatalf(format string, args ...any)
}

func hostile(t failing, bundles []*policy.Bundle, c chooser) {
	b := among(c, "policy", bundles)
	var w *model.World
	var r model.Request
	if c.yes("near") {
		w, r = c.near(b)
	} else {
		w = c.world(b.RightNames())
		r = model.Request{Directive: c.directive(b.RightNames()), Actor: among(c, "actor", words), Cosigners: c.words("cosigners"), Evidence: among(c, "evidence", words)}
	}
	v := Evaluate(b, w, &r)
	checkVerdict(t, b, w, &r, &v)
	checkOrder(t, b, w, &r, &v)
	if worst := WorstCase(b, w, &r.Directive); worst.WorstCase.Minor < 0 || worst.PerHost.Minor < 0 || worst.Together.Minor < worst.WorstCase.Minor || worst.Together.Minor < worst.Others.Minor {
		t.Fatalf("a worst case below itself: %+v", worst)
	}
	ask := Ask{Right: r.Directive.Right, Scope: r.Directive.Scope, Tier: r.Directive.Tier, Feature: r.Directive.Feature, IDs: r.Directive.IDs,
		Lasts: among(c, "lasts", spans), Under: r.Directive.Caps.Under, Actor: r.Actor}
	if drafted, err := Draft(b, w, ask); err == nil {
		v := Evaluate(b, w, &drafted)
		checkVerdict(t, b, w, &drafted, &v)
	}
	Enumerate(b, w, r.Actor)
	if h := HeadlineOf(b, w); h.Text == "" || h.Calm && w.Readings == nil {
		t.Fatalf("headline %+v", h)
	}
	BrokenJourneys(b, w, &r.Directive)
}

// checkOrder judges once more, with everything that is a list the other way round.
func checkOrder(t failing, b *policy.Bundle, w *model.World, r *model.Request, v *model.Verdict) {
	turned, request := *w, *r
	turned.Issued, turned.Hosts, turned.Proposals, request.Cosigners = slices.Clone(w.Issued), slices.Clone(w.Hosts), slices.Clone(w.Proposals), slices.Clone(r.Cosigners)
	slices.Reverse(turned.Issued)
	slices.Reverse(turned.Hosts)
	slices.Reverse(turned.Proposals)
	slices.Reverse(request.Cosigners)
	if again := Evaluate(b, &turned, &request); again.Outcome != v.Outcome || !slices.Equal(again.Reasons, v.Reasons) && uniqueIDs(w) {
		t.Fatalf("in another order: %+v and %+v", v, again)
	}
}

func uniqueIDs(w *model.World) bool {
	seen := map[string]bool{}
	for i := range w.Issued {
		if seen[w.Issued[i].Directive.ID] {
			return false
		}
		seen[w.Issued[i].Directive.ID] = true
	}
	return true
}

func checkVerdict(t failing, b *policy.Bundle, w *model.World, r *model.Request, v *model.Verdict) {
	for _, reason := range v.Reasons {
		if Sentence(reason) == "" {
			t.Fatalf("%s has no sentence", reason.Code)
		}
	}
	if (v.Outcome == model.Permitted) != (len(v.Reasons) == 0) {
		t.Fatalf("%s with %v", v.Outcome, v.Reasons)
	}
	if v.Outcome != model.Permitted {
		return
	}
	if code := b.Admit(&r.Directive, keysOf(b, r), w.Now); code != "" {
		t.Fatalf("permitted %+v, and every host refuses it: %s", r, code)
	}
	if live, rule := overlapping(w, &r.Directive), boundsOf(b, &r.Directive); v.Direction == model.Loosen && live >= rule.Live {
		t.Fatalf("permitted beside %d live grants of %d", live, rule.Live)
	}
	d, lease := &r.Directive, w.Incident.Lease
	_, _, known := b.Right(d.Right)
	switch {
	case v.Direction != b.Direction(d) || w.Mode == model.ReadOnly:
		t.Fatalf("permitted as %s in mode %s", v.Direction, w.Mode)
	case v.Direction == model.Tighten:
		if !known && !tightens(b, r) {
			t.Fatalf("an unknown right %q was permitted to %s", d.Right, r.Actor)
		}
		return
	case !known:
		t.Fatalf("an unknown right %q was permitted as %s", d.Right, v.Direction)
	case !lease.Held(r.Actor, w.Now):
		t.Fatalf("%s without command", v.Direction)
	case v.Direction == model.Loosen && (d.Kind != model.Bypass || !w.Durable || w.Clock == model.ClockBehind || !w.Now.Before(d.NotAfter) || d.Caps.HostCount < 1 || d.Caps.Total.Minor < 1):
		t.Fatalf("opened: %+v", d)
	case d.IsRecovery() && (d.To != d.From-1 || d.From < 1):
		t.Fatalf("a jump from %d to %d", d.From, d.To)
	}
}

// keysOf is one key of everybody who would have signed.
func keysOf(b *policy.Bundle, r *model.Request) (out []string) {
	for _, name := range append([]string{r.Actor}, r.Cosigners...) {
		keys := b.FingerprintsOf(name)
		if len(keys) == 0 {
			keys = []string{"SHA256:unknown"}
		}
		out = append(out, keys[0])
	}
	return out
}

func boundsOf(b *policy.Bundle, d *model.Directive) policy.Bypass {
	if right, _, _ := b.Right(d.Right); right.Bypass != nil {
		return *right.Bypass
	}
	return policy.Bypass{}
}

// overlapping counts other grants of a right that are live at the beginning of one.
func overlapping(w *model.World, d *model.Directive) int {
	n, at := 0, d.NotBefore
	if w.Now.After(at) {
		at = w.Now
	}
	for _, is := range w.Issued {
		if o := is.Directive; o.Kind == model.Bypass && o.Right == d.Right && o.ID != d.ID && is.EndedBy == "" && !at.Before(o.NotBefore) && at.Before(o.NotAfter) {
			n++
		}
	}
	return n
}

// strict is the shop with everything that a row may ask for besides its bounds.
func strict(t testing.TB) *policy.Bundle {
	p := partsOf(t, 0)
	p.right(small, func(r *policy.Right) {
		r.RehearsedWithin, r.NoSecond, r.Bypass.Live = model.Duration(time.Minute), &policy.NoSecond{Of: medium, After: model.Duration(time.Minute)}, 2
	})
	p.right(medium, func(r *policy.Right) { r.Expires = day0.AddDate(7000, 0, 0) })
	rule, most := p.root.Domains["payments"], usd(4_000_000)
	rule.Total = &most
	p.root.Domains["payments"] = rule
	p.docs.Ladder.Schedule = map[string]policy.Event{"sale": {Tier: 1, Scope: []string{"*"}, From: day0, Until: day0.Add(time.Hour), Soak: model.Duration(20 * time.Minute)}}
	return p.bundle(t)
}

// tightens reports whether any signer has a role that may tighten at all.
func tightens(b *policy.Bundle, r *model.Request) bool {
	return slices.ContainsFunc(append(slices.Clone(r.Cosigners), r.Actor), func(name string) bool {
		_, machine := b.Root.Machines[name]
		for role, rule := range b.Root.Roles {
			if rule.Tightens && b.Root.HasRole(role, policy.Signer{Name: name, Machine: machine}) {
				return true
			}
		}
		return false
	})
}
