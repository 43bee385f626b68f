package decisions

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
	"golang.org/x/crypto/ssh"
)

var (
	day0   = time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	digest = strings.Repeat("a", 64)
)

func usd(cents int64) model.Money { return model.Money{Minor: cents, Currency: "USD"} }

func publicKey(t testing.TB, name string) string {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}

func below(v float64) policy.Threshold { return policy.Threshold{Below: &v} }
func above(v float64) policy.Threshold { return policy.Threshold{Above: &v} }

// shop is a small policy: one commander and his deputy, two people in finance,
// four tiers, one control that may be bypassed and one that may never open.
func shop(t testing.TB, extra int) *policy.Bundle {
	t.Helper()
	people := map[string]policy.Person{}
	for _, name := range []string{"ines", "dev", "fiona", "ravi", "otto"} {
		people[name] = policy.Person{Name: name, Reach: "pager", Keys: []string{publicKey(t, name)}}
	}
	root := &policy.Root{
		V: 1, Fleet: "shop", Version: 1, Expires: day0.AddDate(1, 0, 0), People: people,
		Machines: map[string]policy.Machine{"ladder-controller": {Keys: []string{publicKey(t, "machine")}}},
		Groups: map[string]policy.Group{
			"finance":    {Any: 1, Of: []string{"fiona", "ravi"}},
			"commanders": {Any: 1, Of: []string{"ines", "dev"}},
		},
		Root: "commanders", Publish: "commanders",
		Domains: map[policy.Domain]policy.DomainRule{policy.Rights: {Group: "commanders"}, "payments": {Group: "finance"}},
		Roles: map[string]policy.Role{
			"incident-commander": {Members: []string{"commanders"}, Tightens: true, MaxTier: 4},
			"ladder-controller":  {Machines: []string{"ladder-controller"}, Tightens: true, MaxTier: 2},
		},
	}
	rights := map[string]policy.Right{
		"shed":          {Kind: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 3}},
		"shed-4":        {Kind: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 4, To: 4}, Cosign: policy.Cosign{Count: 1, Of: "commanders"}},
		"recover":       {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}},
		"recover-blind": {Kind: model.End, Ends: model.Shed, Who: "incident-commander", Scope: []string{"*"}, Tiers: &policy.Range{From: 1, To: 4}, Blind: true, Cosign: policy.Cosign{Count: 1, Of: "commanders"}},
		"end-bypass":    {Kind: model.End, Ends: model.Bypass, Who: "incident-commander", Scope: []string{"*", "checkout"}},
		"freeze":        {Kind: model.Freeze, Who: "incident-commander", Scope: []string{"*"}, Lasts: model.Duration(time.Hour)},
		"unfreeze":      {Kind: model.End, Ends: model.Freeze, Who: "incident-commander", Scope: []string{"*"}},
		"feature-on":    {Kind: model.End, Ends: model.Off, Who: "incident-commander", Scope: []string{"*"}},
		"feature-off":   {Kind: model.Off, Who: "incident-commander", Scope: []string{"*"}, Feature: "*"},
	}
	for i := range extra {
		rights[fmt.Sprintf("extra-%03d", i)] = rights["shed"]
	}
	bypass := policy.Bypass{
		Control: "payment-risk", Under: usd(5000), HostCount: 100, HostTotal: usd(200000), Total: usd(3000000),
		Lasts: model.Duration(15 * time.Minute), PerDay: 2, MaxReplacements: 2,
	}
	medium := bypass
	medium.Under = usd(20000)
	ramp, dwell := []int{10, 50, 100}, model.Duration(10*time.Minute)
	var tiers []policy.Tier
	for n := 1; n <= 4; n++ {
		tiers = append(tiers, policy.Tier{
			Tier: n, Ramp: ramp, RampStep: model.Duration(2 * time.Minute), Dwell: dwell,
			Leave: []policy.Condition{{Signal: "errors", Threshold: below(0.005), For: model.Duration(10 * time.Minute)}},
		})
	}
	limit := above(0.01)
	docs := policy.Documents{
		Features: &policy.FeaturesDoc{Features: map[string]policy.Feature{
			"recommendations": {Class: policy.Sheddable, Service: "edge"}, "pay": {Class: policy.Critical, Service: "checkout"},
		}},
		Ladder: &policy.LadderDoc{
			Signals: map[string]policy.Signal{"errors": {Unit: "ratio", Step: model.Duration(15 * time.Second), Abnormal: &limit, Right: "risk-bypass-small-orders"}},
			Tiers:   tiers,
		},
		Rights: &policy.RightsDoc{Rights: rights},
		Controls: map[policy.Domain]*policy.ControlsDoc{"payments": {
			Controls: map[string]policy.Control{
				"payment-risk": {Protects: policy.ProtectsMoney, Fails: policy.FailsClosed, Services: []string{"checkout"}},
				"login":        {Protects: policy.ProtectsAuthorization, Fails: policy.FailsClosed, Services: []string{"checkout"}},
			},
			Rights: map[string]policy.Right{
				"risk-bypass-small-orders":  {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &bypass},
				"risk-bypass-medium-orders": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &medium, Cosign: policy.Cosign{Count: 1, Of: "finance"}},
				"login-bypass": {Kind: model.Bypass, Who: "incident-commander", Scope: []string{"checkout"}, Bypass: &policy.Bypass{
					Control: "login", Under: usd(5000), HostCount: 1, HostTotal: usd(100), Total: usd(1000000), Lasts: model.Duration(time.Minute), PerDay: 9}},
			},
		}},
	}
	states := map[policy.Domain]policy.DomainState{
		policy.Rights: {Active: true, Expires: day0.AddDate(0, 6, 0)}, "payments": {Active: true, Expires: day0.AddDate(0, 6, 0)},
	}
	b, err := policy.NewBundle(root, model.PolicyRef{Version: 3, Digest: digest}, states, docs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// calm is a world in which everything that opening asks for is there.
func calm() *model.World {
	w := &model.World{
		V: 1, Now: day0, Clock: model.ClockOK, Fleet: "shop", Mode: model.Live, Durable: true,
		Policy:   model.PolicyRef{Version: 3, Digest: digest},
		Incident: model.Incident{ID: "inc-1", OpenedAt: day0, Lease: model.Lease{Holder: "ines", From: day0, Until: day0.Add(3 * time.Hour)}},
		Readings: map[string]model.Reading{"errors": steady(0.001, day0)},
	}
	for i := range 10 {
		w.Hosts = append(w.Hosts, model.HostView{Host: fmt.Sprintf("checkout-%02d", i), Services: []string{"checkout"}, Reachable: true})
	}
	return w
}

// steady is a signal with one value over the last hour.
func steady(v float64, now time.Time) model.Reading {
	r := model.Reading{Signal: "errors", State: model.ReadingValue, Value: v, At: now, Step: model.Duration(15 * time.Second)}
	for at := now.Add(-time.Hour); !at.After(now); at = at.Add(15 * time.Second) {
		r.History = append(r.History, model.Sample{At: at, Value: v})
	}
	return r
}

func id(n int) string { return fmt.Sprintf("01J0000000000000000000%04d", n) }

// shedAt puts a live shed into the world.
func shedAt(w *model.World, n, tier int, at time.Time) {
	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{
		ID: id(n), Fleet: "shop", Scope: "*", Kind: model.Shed, Tier: tier, Right: "shed", IssuedAt: at, NotBefore: at}})
}

// step puts a recovery step into the world and ends what it lists.
func step(w *model.World, n int, d model.Directive, at time.Time) {
	d.ID, d.NotBefore, d.IssuedAt = id(n), at, at
	for i := range w.Issued {
		if slices.Contains(d.IDs, w.Issued[i].Directive.ID) {
			w.Issued[i].EndedBy = d.ID
		}
	}
	w.Issued = append(w.Issued, model.Issued{Directive: d})
}

func draft(t *testing.T, b *policy.Bundle, w *model.World, ask Ask) model.Request {
	t.Helper()
	if ask.Actor == "" {
		ask.Actor = "ines"
	}
	r, err := Draft(b, w, ask)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codes(v model.Verdict) []model.Code {
	out := []model.Code{}
	for _, r := range v.Reasons {
		out = append(out, r.Code)
	}
	return out
}

func expect(t *testing.T, v model.Verdict, outcome model.Outcome, want ...model.Code) {
	t.Helper()
	if v.Outcome != outcome || !slices.Equal(codes(v), want) && len(want)+len(v.Reasons) > 0 {
		t.Fatalf("got %s %v, want %s %v", v.Outcome, codes(v), outcome, want)
	}
	for _, r := range v.Reasons {
		if s := Sentence(r); s == "" || strings.HasPrefix(s, "refused: ") {
			t.Errorf("code %s has no sentence of its own", r.Code)
		}
	}
}

func TestSheddingGoesThroughWhateverIsBroken(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Readings = nil
	w.Durable = false
	w.Clock = model.ClockUnsynced
	w.Incident.Lease = model.Lease{Holder: "dev", Until: day0.Add(time.Hour)}
	w.Hosts = nil
	w.Now = day0.AddDate(3, 0, 0) // policy and root have expired
	w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(1), Kind: model.Freeze, Scope: "*", NotBefore: day0, NotAfter: day0.AddDate(9, 0, 0)}})
	r := draft(t, b, w, Ask{Right: "shed", Tier: 3})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Permitted)
	if v.Direction != model.Tighten {
		t.Errorf("a shed is %s", v.Direction)
	}
}

func TestBypassNeedsEverything(t *testing.T) {
	b := shop(t, 0)
	ask := Ask{Right: "risk-bypass-small-orders", Reason: "risk is down"}
	cases := []struct {
		name    string
		change  func(*model.World)
		outcome model.Outcome
		code    model.Code
	}{
		{"everything is there", func(*model.World) {}, model.Permitted, ""},
		{"log not durable", func(w *model.World) { w.Durable = false }, model.Needs, NotDurable},
		{"clock unfit", func(w *model.World) { w.Clock = model.ClockUnsynced }, model.Needs, model.CodeClockUnfit},
		{"somebody else holds command", func(w *model.World) { w.Incident.Lease.Holder = "dev" }, model.Needs, NoLease},
		{"lease has lapsed", func(w *model.World) { w.Incident.Lease.Until = day0 }, model.Needs, NoLease},
		{"inventory unknown", func(w *model.World) { w.Hosts = nil }, model.Needs, NoInventory},
		{"policy expired", func(w *model.World) {
			w.Now = day0.AddDate(0, 7, 0)
			w.Incident.Lease.Until = w.Now.Add(time.Hour)
		}, model.Denied, model.CodePolicyExpired},
		{"frozen", func(w *model.World) {
			w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(1), Kind: model.Freeze, Scope: "*", NotBefore: day0, NotAfter: day0.Add(time.Hour)}})
		}, model.Needs, Frozen},
		{"used up for today", func(w *model.World) {
			for n := range 2 {
				w.Issued = append(w.Issued, model.Issued{Directive: model.Directive{ID: id(n), Kind: model.Bypass, Right: ask.Right, NotBefore: day0.Add(-2 * time.Hour), NotAfter: day0.Add(-time.Hour)}})
			}
		}, model.Denied, PerDay},
		{"read-only console", func(w *model.World) { w.Mode = model.ReadOnly }, model.Denied, IsReadOnly},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := calm()
			c.change(w)
			r := draft(t, b, w, ask)
			v := Evaluate(b, w, &r)
			if c.code == "" {
				expect(t, v, c.outcome)
			} else {
				expect(t, v, c.outcome, c.code)
			}
			if v.Direction != model.Loosen {
				t.Errorf("a bypass is %s", v.Direction)
			}
		})
	}
}

func TestBypassBoundsAreTheSignedOnes(t *testing.T) {
	b, w := shop(t, 0), calm()
	ask := Ask{Right: "risk-bypass-small-orders", Reason: "risk is down"}
	wider := draft(t, b, w, ask)
	wider.Directive.Caps.Under = usd(5001)
	expect(t, Evaluate(b, w, &wider), model.Denied, model.CodeOverCap)

	longer := draft(t, b, w, ask)
	longer.Directive.NotAfter = longer.Directive.NotBefore.Add(15*time.Minute + time.Second)
	expect(t, Evaluate(b, w, &longer), model.Denied, model.CodeOverDuration)

	never := draft(t, b, w, Ask{Right: "login-bypass", Reason: "please"})
	expect(t, Evaluate(b, w, &never), model.Denied, model.CodeNeverOpens)

	wrong := draft(t, b, w, ask)
	wrong.Actor = "otto"
	expect(t, Evaluate(b, w, &wrong), model.Denied, model.CodeWrongRole, NoLease)
}

func TestAnotherPersonIsAnotherPerson(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "risk-bypass-medium-orders", Reason: "risk is down"})
	if lead := r.Directive.NotBefore.Sub(day0); lead != policy.DefaultLead.Std() {
		t.Errorf("a quorum gets a lead of %s", lead)
	}
	v := Evaluate(b, w, &r)
	expect(t, v, model.Needs, model.CodeQuorum)
	if got := Sentence(v.Reasons[0]); got != "1 more signature from finance (ic cosign)" {
		t.Errorf("sentence %q", got)
	}
	for _, who := range [][]string{{"ines"}, {"dev"}, {"otto"}, {"ines", "ines"}} {
		r.Cosigners = who
		expect(t, Evaluate(b, w, &r), model.Needs, model.CodeQuorum)
	}
	r.Cosigners = []string{"fiona"}
	expect(t, Evaluate(b, w, &r), model.Permitted)
}

func TestWorstCaseStaysWithinTheTotal(t *testing.T) {
	b, w := shop(t, 0), calm()
	r := draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	e := WorstCase(b, w, &r.Directive)
	// 10 hosts and 2 replacements; 30,000.00 / 12 = 2,500.00 is over the rule's
	// 2,000.00 a host, so the rule's own bound counts.
	if e.Hosts != 10 || e.Replacements != 2 || e.PerHost != usd(200000) || e.WorstCase != usd(2400000) {
		t.Errorf("exposure %+v", e)
	}
	for i := range 40 {
		w.Hosts = append(w.Hosts, model.HostView{Host: fmt.Sprint(i), Services: []string{"edge", "checkout"}})
	}
	r = draft(t, b, w, Ask{Right: "risk-bypass-small-orders", Reason: "x"})
	e = WorstCase(b, w, &r.Directive)
	if e.WorstCase.Minor > e.Total.Minor || r.Directive.Caps.HostTotal != usd(3000000/52) {
		t.Errorf("50 hosts: caps %+v exposure %+v", r.Directive.Caps, e)
	}
	r.Directive.Caps.HostTotal = usd(200000)
	expect(t, Evaluate(b, w, &r), model.Denied, OverTotal)
}

func TestRecoveryGoesOneTierAtATime(t *testing.T) {
	b, w := shop(t, 0), calm()
	entered := day0.Add(-12 * time.Minute)
	shedAt(w, 1, 3, entered)

	jump := draft(t, b, w, Ask{Right: "recover", Tier: 1})
	v := Evaluate(b, w, &jump)
	expect(t, v, model.Denied, OneTier)
	if !strings.Contains(Sentence(v.Reasons[0]), "one tier at a time") {
		t.Error(Sentence(v.Reasons[0]))
	}

	first := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	if d := first.Directive; d.From != 3 || d.To != 2 || d.Percent != 10 || !slices.Equal(d.IDs, []string{id(1)}) {
		t.Fatalf("first step %+v", d)
	}
	expect(t, Evaluate(b, w, &first), model.Permitted)

	w.Now = entered.Add(time.Minute)
	w.Readings["errors"] = steady(0.001, w.Now)
	early := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	v = Evaluate(b, w, &early)
	expect(t, v, model.Needs, Dwell)
	if got := Sentence(v.Reasons[0]); got != "wait 9m: tier 3 has to hold before it is left" {
		t.Error(got)
	}
	jumpEarly := draft(t, b, w, Ask{Right: "recover", Tier: 0})
	if got := Sentence(Evaluate(b, w, &jumpEarly).Reasons[0]); !strings.Contains(got, "tier 2 is possible in 9m") {
		t.Error(got)
	}
}

func TestAWaitIsWholeSecondsAndLongEnough(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 3, day0)
	w.Now = day0.Add(time.Minute + 300*time.Millisecond)
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	for _, reason := range Evaluate(b, w, &r).Reasons {
		if reason.Code == Dwell && reason.Wait != model.Duration(9*time.Minute) {
			t.Errorf("wait %s of 8m59.7s", reason.Wait)
		}
	}
}

func TestRampKeepsItsNameAndItsPace(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 2, day0.Add(-time.Hour))
	ramp := ""
	for i, percent := range []int{10, 50, 100} {
		at := day0.Add(time.Duration(i) * 2 * time.Minute)
		w.Now, w.Readings["errors"] = at.Add(-time.Second), steady(0.001, at)
		if i > 0 {
			r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
			expect(t, Evaluate(b, w, &r), model.Needs, RampStep)
		}
		w.Now = at
		r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
		expect(t, Evaluate(b, w, &r), model.Permitted)
		if r.Directive.Percent != percent {
			t.Fatalf("step %d goes to %d %%", i, r.Directive.Percent)
		}
		if ramp == "" {
			ramp = r.Directive.Ramp
		}
		if r.Directive.Ramp != ramp {
			t.Fatalf("the ramp changed its name from %s to %s", ramp, r.Directive.Ramp)
		}
		step(w, 10+i, r.Directive, at)
	}
	if c := ChainOf(w, "*"); c.Tier != 1 || c.Ramp != nil || len(c.IDs) != 4 {
		t.Fatalf("after 100 %%: %+v", c)
	}
	w.Readings["errors"] = steady(0.001, w.Now)
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	expect(t, Evaluate(b, w, &r), model.Needs, Dwell)
	if r.Directive.From != 1 || r.Directive.To != 0 || r.Directive.Ramp == ramp {
		t.Errorf("next tier: %+v", r.Directive)
	}
}

func TestAHaltStopsARampAndANewOneListsIt(t *testing.T) {
	b, w := shop(t, 0), calm()
	shedAt(w, 1, 3, day0.Add(-time.Hour))
	r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	step(w, 2, r.Directive, day0.Add(-30*time.Minute))
	halt := draft(t, b, w, Ask{Right: "shed", Tier: 3})
	expect(t, Evaluate(b, w, &halt), model.Permitted)
	shedAt(w, 3, 3, day0.Add(-20*time.Minute))
	again := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
	if d := again.Directive; d.Percent != 10 || !slices.Equal(d.IDs, []string{id(1), id(2), id(3)}) {
		t.Fatalf("after a halt: %+v", d)
	}
	expect(t, Evaluate(b, w, &again), model.Permitted)
	again.Directive.IDs = []string{id(1), id(2)}
	expect(t, Evaluate(b, w, &again), model.Denied, IncompleteChain)
}

func TestNothingButAValueLeavesATier(t *testing.T) {
	b := shop(t, 0)
	gap := steady(0.001, day0)
	gap.History = slices.Delete(gap.History, len(gap.History)-20, len(gap.History)-10)
	spike := steady(0.001, day0)
	spike.History[len(spike.History)-5].Value = 0.2
	short := steady(0.001, day0)
	short.History = short.History[len(short.History)-10:]
	old := steady(0.001, day0)
	old.History[3].Value = 0.9 // before the window: does not matter
	stale := steady(0.001, day0.Add(-5*time.Minute))
	cases := []struct {
		name    string
		reading *model.Reading
		code    model.Code
	}{
		{"good for the whole window", &old, ""},
		{"absent", nil, SignalUnknown},
		{"no data", &model.Reading{State: model.ReadingNoData}, SignalUnknown},
		{"stale", &model.Reading{State: model.ReadingStale, Value: 0.001}, SignalUnknown},
		{"partial", &model.Reading{State: model.ReadingPartial, Value: 0.001}, SignalUnknown},
		{"error", &model.Reading{State: model.ReadingError}, SignalUnknown},
		{"not a number", ptr(steady(math.NaN(), day0)), SignalNotGood},
		{"a gap in the window", &gap, SignalNotGood},
		{"one bad sample", &spike, SignalNotGood},
		{"history too short", &short, SignalNotGood},
		{"history ends early", &stale, SignalNotGood},
		{"no history", &model.Reading{State: model.ReadingValue, Value: 0.001}, SignalNotGood},
		{"at the threshold", ptr(steady(0.005, day0)), SignalNotGood},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := calm()
			shedAt(w, 1, 2, day0.Add(-time.Hour))
			delete(w.Readings, "errors")
			if c.reading != nil {
				w.Readings["errors"] = *c.reading
			}
			r := draft(t, b, w, Ask{Right: "recover", Tier: NextTier})
			if c.code == "" {
				expect(t, Evaluate(b, w, &r), model.Permitted)
				return
			}
			expect(t, Evaluate(b, w, &r), model.Needs, c.code)
			blind := draft(t, b, w, Ask{Right: "recover-blind", Tier: NextTier})
			expect(t, Evaluate(b, w, &blind), model.Needs, model.CodeQuorum, NoEvidence)
			blind.Cosigners, blind.Evidence = []string{"dev"}, "synthetic checkout passes from two regions"
			expect(t, Evaluate(b, w, &blind), model.Permitted)
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestEndingABypassIsTighteningAndNeedsNoCommand(t *testing.T) {
	b, w := shop(t, 0), calm()
	w.Incident.Lease = model.Lease{}
	nothing := draft(t, b, w, Ask{Right: "end-bypass", Scope: "checkout"})
	expect(t, Evaluate(b, w, &nothing), model.Denied, NothingToEnd)
	w.Issued = []model.Issued{{Directive: model.Directive{ID: id(1), Kind: model.Bypass, Scope: "checkout", NotBefore: day0, NotAfter: day0.Add(time.Minute)}}}
	r := draft(t, b, w, Ask{Right: "end-bypass", Scope: "checkout"})
	v := Evaluate(b, w, &r)
	expect(t, v, model.Permitted)
	if v.Direction != model.Tighten || !slices.Equal(r.Directive.IDs, []string{id(1)}) {
		t.Errorf("%s %v", v.Direction, r.Directive.IDs)
	}
}

func TestHeadlineNamesTheRightThatFits(t *testing.T) {
	b, w := shop(t, 0), calm()
	if h := HeadlineOf(b, w); !h.Calm {
		t.Errorf("calm world: %+v", h)
	}
	w.Readings["errors"] = steady(0.35, day0)
	h := HeadlineOf(b, w)
	if h.Right != "risk-bypass-small-orders" || h.Text != "errors is 35 %, above 1 %" {
		t.Errorf("%+v", h)
	}
	w.Readings["errors"] = model.Reading{State: model.ReadingNoData, Value: 0.35}
	if h := HeadlineOf(b, w); h.Calm || !strings.Contains(h.Text, "not known") {
		t.Errorf("unknown: %+v", h)
	}
}

func TestMatrixHasARowForEveryRightAndIsStable(t *testing.T) {
	b, w := shop(t, 0), calm()
	rows := Enumerate(b, w, "ines")
	if len(rows) != len(b.RightNames()) {
		t.Fatalf("%d rows for %d rights", len(rows), len(b.RightNames()))
	}
	again := Enumerate(b, w, "ines")
	for i := range rows {
		if rows[i].Name != again[i].Name || rows[i].Verdict.Outcome != again[i].Verdict.Outcome {
			t.Fatalf("row %d differs: %s and %s", i, rows[i].Name, again[i].Name)
		}
	}
	if rows[0].Verdict.Direction != model.Tighten || rows[len(rows)-1].Verdict.Direction != model.Loosen {
		t.Error("rows go from tighten to loosen")
	}
}

func TestVerdictDoesNotDependOnOrder(t *testing.T) {
	b := shop(t, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		w := calm()
		for n := range 1 + rng.IntN(6) {
			shedAt(w, n, 1+rng.IntN(4), day0.Add(-time.Duration(rng.IntN(3600))*time.Second))
		}
		shuffled := *w
		shuffled.Issued = slices.Clone(w.Issued)
		rng.Shuffle(len(shuffled.Issued), func(i, j int) {
			shuffled.Issued[i], shuffled.Issued[j] = shuffled.Issued[j], shuffled.Issued[i]
		})
		for _, name := range b.RightNames() {
			r := draft(t, b, w, Ask{Right: name, Tier: NextTier, Reason: "x"})
			s := draft(t, b, &shuffled, Ask{Right: name, Tier: NextTier, Reason: "x"})
			one, two := Evaluate(b, w, &r), Evaluate(b, &shuffled, &s)
			if one.Outcome != two.Outcome || !slices.Equal(codes(one), codes(two)) {
				t.Fatalf("%s: %v %v and %v %v", name, one.Outcome, codes(one), two.Outcome, codes(two))
			}
		}
	}
}

// BenchmarkEvaluate judges one request against a policy of 500 rights. The
// claim is under 20 us median and at most 2 allocations.
func BenchmarkEvaluate(b *testing.B) {
	bundle, w := shop(b, 490), calm()
	if n := len(bundle.RightNames()); n < 500 {
		b.Fatalf("only %d rights", n)
	}
	r, err := Draft(bundle, w, Ask{Right: "risk-bypass-small-orders", Actor: "ines", Reason: "x"})
	if err != nil {
		b.Fatal(err)
	}
	r.Cosigners = []string{"fiona"}
	b.ReportAllocs()
	for b.Loop() {
		if v := Evaluate(bundle, w, &r); v.Outcome != model.Permitted {
			b.Fatal(codes(v))
		}
	}
}

func BenchmarkEvaluateDenied(b *testing.B) {
	bundle, w := shop(b, 490), calm()
	w.Now = w.Now.AddDate(0, 7, 0)
	r, err := Draft(bundle, w, Ask{Right: "risk-bypass-small-orders", Actor: "ines", Reason: "x"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if v := Evaluate(bundle, w, &r); v.Outcome != model.Denied {
			b.Fatal("permitted under an expired policy")
		}
	}
}
