package decisions

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/degradedmode/ic/internal/model"
	"github.com/degradedmode/ic/internal/policy"
)

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
		{"inventory as old as it may be", func(w *model.World) {
			w.Inventory = model.Inventory{At: w.Now.Add(-time.Hour), MaxAge: model.Duration(time.Hour)}
		}, model.Permitted, ""},
		{"inventory too old", func(w *model.World) {
			w.Inventory = model.Inventory{At: w.Now.Add(-time.Hour - 1), MaxAge: model.Duration(time.Hour)}
		}, model.Needs, OldInventory},
		{"inventory never read", func(w *model.World) { w.Inventory.MaxAge = model.Duration(time.Hour) }, model.Needs, OldInventory},
		{"inventory of a clock from elsewhere", func(w *model.World) {
			w.Inventory = model.Inventory{At: w.Now.Add(policy.MaxAhead + 1), MaxAge: model.Duration(time.Hour)}
		}, model.Needs, OldInventory},
		{"inventory of a clock that is ahead", func(w *model.World) {
			w.Inventory = model.Inventory{At: w.Now.Add(policy.MaxAhead), MaxAge: model.Duration(time.Hour)}
		}, model.Permitted, ""},
		{"inventory without an age", func(w *model.World) { w.Inventory.At = day0.AddDate(-1, 0, 0) }, model.Permitted, ""},
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
